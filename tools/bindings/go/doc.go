// SPDX-License-Identifier: BSD-2-Clause

// Package natra limits the bandwidth of pods without hurting their small flows.
//
// It is libnatra for Go. The functions do what those of natra/natra.h do, which
// describes them in full; this documentation says what differs in Go. Directions are
// the pod's: ingress goes into the pod, and egress out of it. At the host's end of a veth,
// ingress is what that receives from the pod.
//
//	n, err := natra.New(natra.Options{})
//	if err != nil {
//		return err
//	}
//	_, err = n.Attach(ctx, natra.Target{ID: "web", Ifname: "eth0", Netns: path},
//		natra.Policy{IngressRateBitsPerSec: 10e6, EgressRateBitsPerSec: 10e6})
//
// # Back ends
//
// With cgo the package links libnatra, which pkg-config finds. The shared library is
// the default; the build tag natra_static takes the archive.
//
// With CGO_ENABLED=0, or where [Options].Natractl names it, the package runs natractl,
// one process for each call. Its file can be the static one, so that neither the program
// nor the node needs a library. Both back ends refuse the same things with the same
// texts, but natractl also takes $NATRA_ATTACH_MODE and $NATRA_EDT_PACING for Auto. An attach takes some milliseconds of CPU more this way; what each back end takes is
// in tests/bench/results/bindings-cost-6.18.txt.
//
// # Errors
//
// An error of a call is an [*Error], with an errno and with the library's text, which is
// one line that names the object:
//
//	if errors.Is(err, syscall.ENODEV) { ... }
//
// # Contexts
//
// Calls on the same attachment or network namespace wait for each other, whichever
// processes make them. A context ends the wait: the error is then the context's as well
// as ECANCELED, and nothing was changed. A call that has begun to change something goes on to
// its end, and so do [Handle.GC] and [Handle.GCNetwork] from their begin. Only a natractl that has
// not ended 20 s after the context is killed; what it left half done, [Handle.GC] mends.
//
// # What is missing
//
// [Handle.AnnotatePod] runs natractl with each back end. Groups are made, removed and listed by
// `natractl group`. Counters of classes, natra_preload and natra_parse_class are in C alone.
//
// # Network namespaces
//
// A [Target] without a namespace means that of the calling thread: a caller that has
// moved its thread with setns(2) has to have called [runtime.LockOSThread].
//
// # Privileges
//
// The process needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, to be root or have
// CAP_DAC_OVERRIDE, and for other network namespaces and Probe CAP_SYS_ADMIN.
package natra
