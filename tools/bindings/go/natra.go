// SPDX-License-Identifier: BSD-2-Clause

package natra

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"syscall"
)

// Handle calls the library. It holds options and no state of the kernel, so there is
// nothing to close. Goroutines may use it at the same time.
type Handle struct {
	backend backend
}

// backend is how the functions of libnatra are called. Its arguments are what the
// functions of natra.h take; nil stands for NULL.
type backend interface {
	attach(context.Context, *Target, *Policy) (Info, error)
	configure(ctx context.Context, id string, policy *Policy) error
	upgrade(ctx context.Context, id string) error
	detach(context.Context, *Target) (bool, error)
	check(ctx context.Context, id string, policy *Policy) error
	query(ctx context.Context, id string) (Info, error)
	find(context.Context, *Target) (string, error)
	stats(ctx context.Context, id string) (Stats, error)
	foreachStats(context.Context) ([]InfoStats, error)
	foreachAttachment(context.Context) ([]Info, error)
	foreachNeighbour(ctx context.Context, id string) ([]Neighbour, error)
	foreachSubnet(ctx context.Context, id string) ([]string, error)
	top(ctx context.Context, id string, direction Direction) ([]Flow, error)
	openEvents(context.Context) (eventReader, error)
	recordUnshaped(ctx context.Context, target *Target, policy *Policy, reason string) error
	findLeftovers(context.Context, *Target) (Leftovers, error)
	drainLeftovers(context.Context, *Target) error
	removeLeftovers(context.Context, *Target) error
	gc(ctx context.Context, network *string, keep []string) (int, error)
	probe(context.Context) (Features, error)
	status(context.Context) error
	policyCheck(*Policy) error
	policyAnnotate(context.Context, *Policy, Annotations) (Policy, error)
	policyAnnotatePod(context.Context, *Policy, Annotations, Pod) (PodPolicy, error)
	parse(what, text string) (uint64, error)
	version() (string, error)
}

// eventReader is a reader of events. One goroutine at a time uses it.
type eventReader interface {
	read() ([]Event, error)
	close()
}

// New makes a handle. It fails if libnatra is older than this package (EOPNOTSUPP), or if there is
// no natractl to run.
func New(options Options) (*Handle, error) {
	err := checkTexts("open", named{"bpffs_path", options.BPFFSPath})
	if err != nil {
		return nil, err
	}
	open := openLibrary
	if options.Natractl != "" || open == nil {
		open = openNatractl
	}
	b, err := open(options)
	if err != nil {
		return nil, err
	}
	return &Handle{b}, nil
}

// HasLibrary says whether libnatra is linked, so that natractl is not needed but for
// [Handle.AnnotatePod].
func HasLibrary() bool { return openLibrary != nil }

// Version returns the version of libnatra or natractl.
func (h *Handle) Version() (string, error) { return h.backend.version() }

// Attach shapes an interface: it creates the attachment of target, or replaces it. If
// it fails, the interface and the state are as before. A repeated call with the same
// arguments succeeds and keeps counters. As long as an ID has limits on an interface, it cannot
// be attached to another one (EBADE). The result is what Query reports.
//
// An attachment that has classes loses those that are not in the policy.
func (h *Handle) Attach(ctx context.Context, target Target, policy Policy) (Info, error) {
	if err := checkOrder("attach", &target, &policy); err != nil {
		return Info{}, err
	}
	return h.backend.attach(ctx, &target, &policy)
}

// Configure changes the limits of an attachment, atomically for each packet. The policy
// replaces the one it has: begin with Info.Policy of [Handle.Query] to change a part of it. The
// fields that are fixed at attach have to be as they were attached, or zero; else it is EINVAL.
func (h *Handle) Configure(ctx context.Context, id string, policy Policy) error {
	if err := checkID("configure", id); err != nil {
		return err
	}
	if err := checkPolicy("configure", &policy); err != nil {
		return err
	}
	return h.backend.configure(ctx, id, &policy)
}

// Upgrade makes an attachment of another build run this library's programs. It succeeds
// if there is nothing to change.
func (h *Handle) Upgrade(ctx context.Context, id string) error {
	if err := checkID("upgrade", id); err != nil {
		return err
	}
	return h.backend.upgrade(ctx, id)
}

// Detach removes an attachment with all that natra put there, and returns whether there was
// one. It succeeds when there is nothing, when the interface or namespace is gone, and when
// called twice. The target needs ID, or Ifname (and a namespace) if the id was the default: EBUSY if it was not.
func (h *Handle) Detach(ctx context.Context, target Target) (removed bool, err error) {
	if err := checkTarget("detach", &target); err != nil {
		return false, err
	}
	return h.backend.detach(ctx, &target)
}

// Check compares the kernel's state with what was last set, and also with a policy
// unless that is nil. EBADE: something differs, and the text says what.
func (h *Handle) Check(ctx context.Context, id string, policy *Policy) error {
	if err := checkID("check", id); err != nil {
		return err
	}
	if policy != nil {
		if err := checkPolicy("check", policy); err != nil {
			return err
		}
	}
	return h.backend.check(ctx, id, policy)
}

// Query reports one attachment.
func (h *Handle) Query(ctx context.Context, id string) (Info, error) {
	if err := checkID("query", id); err != nil {
		return Info{}, err
	}
	return h.backend.query(ctx, id)
}

// Find returns the id of the attachment on an interface; ENOENT: there is none.
func (h *Handle) Find(ctx context.Context, target Target) (string, error) {
	if err := checkTarget("find", &target); err != nil {
		return "", err
	}
	return h.backend.find(ctx, &target)
}

// Stats reads the counters of an attachment, which begin again when it is attached anew:
// [Info].PinPath is another one then.
func (h *Handle) Stats(ctx context.Context, id string) (Stats, error) {
	if err := checkID("stats", id); err != nil {
		return Stats{}, err
	}
	return h.backend.stats(ctx, id)
}

// AllStats reads the counters of all attachments, in no particular order. It is cheaper
// than Attachments and Stats for each.
func (h *Handle) AllStats(ctx context.Context) ([]InfoStats, error) {
	return h.backend.foreachStats(ctx)
}

// Attachments returns all attachments, in the order of their ids.
func (h *Handle) Attachments(ctx context.Context) ([]Info, error) {
	return h.backend.foreachAttachment(ctx)
}

// Neighbours returns every program on the hooks of an attachment, in the order in which
// they run.
func (h *Handle) Neighbours(ctx context.Context, id string) ([]Neighbour, error) {
	if err := checkID("foreach_neighbour", id); err != nil {
		return nil, err
	}
	return h.backend.foreachNeighbour(ctx, id)
}

// Subnets returns the subnets of an attachment, shaped or unshaped: canonical, in
// ascending order, IPv4 before IPv6.
func (h *Handle) Subnets(ctx context.Context, id string) ([]string, error) {
	if err := checkID("foreach_subnet", id); err != nil {
		return nil, err
	}
	return h.backend.foreachSubnet(ctx, id)
}

// Top returns the heavy flows of one direction, sorted by bytes, descending.
func (h *Handle) Top(ctx context.Context, id string, direction Direction) ([]Flow, error) {
	if err := checkID("top", id); err != nil {
		return nil, err
	}
	return h.backend.top(ctx, id, direction)
}

// RecordUnshaped records that an interface runs without the limits it should have, for
// a caller that goes on when Attach failed. Limits of the same id on this interface
// still hold and stay.
func (h *Handle) RecordUnshaped(ctx context.Context, target Target, policy Policy, reason string) error {
	if err := checkOrder("record_unshaped", &target, &policy); err != nil {
		return err
	}
	if err := checkTexts("record_unshaped", named{"reason", reason}); err != nil {
		return err
	}
	return h.backend.recordUnshaped(ctx, &target, &policy, reason)
}

// FindLeftovers finds what upstream's bandwidth plugin left on the host side of an
// interface: its limits apply beside natra's until they are removed. The target has
// Ifname and its namespace, or the ID alone of what natra has attached.
func (h *Handle) FindLeftovers(ctx context.Context, target Target) (Leftovers, error) {
	if err := checkTarget("find_leftovers", &target); err != nil {
		return Leftovers{}, err
	}
	return h.backend.findLeftovers(ctx, &target)
}

// DrainLeftovers lets pass what waits in these limits, for up to a second: else
// RemoveLeftovers drops it. natra's own limits of target.ID do not hold
// meanwhile in the directions that drain, and hold again when it returns.
func (h *Handle) DrainLeftovers(ctx context.Context, target Target) error {
	if err := checkTarget("drain_leftovers", &target); err != nil {
		return err
	}
	return h.backend.drainLeftovers(ctx, &target)
}

// RemoveLeftovers removes what FindLeftovers finds.
func (h *Handle) RemoveLeftovers(ctx context.Context, target Target) error {
	if err := checkTarget("remove_leftovers", &target); err != nil {
		return err
	}
	return h.backend.removeLeftovers(ctx, &target)
}

// GC removes attachments whose interface is gone, and the leftovers of killed processes.
// It returns how many it removed.
func (h *Handle) GC(ctx context.Context) (removed int, err error) {
	return h.backend.gc(ctx, nil, nil)
}

// GCNetwork does what GC does, and removes every attachment of a network whose id is not
// in keep. The network "" is that of all that were attached without one.
func (h *Handle) GCNetwork(ctx context.Context, network string, keep []string) (removed int, err error) {
	texts := []named{{"network", network}}
	for _, id := range keep {
		texts = append(texts, named{"keep", id})
	}
	if err := checkTexts("gc", texts...); err != nil {
		return 0, err
	}
	return h.backend.gc(ctx, &network, keep)
}

// Probe reports what the kernel can do, and which mode AttachModeAuto would take. It leaves
// nothing behind.
func (h *Handle) Probe(ctx context.Context) (Features, error) { return h.backend.probe(ctx) }

// Status checks whether attaching can work here. It is cheap enough to be called every
// few seconds.
func (h *Handle) Status(ctx context.Context) error { return h.backend.status(ctx) }

// CheckPolicy checks a policy without touching the kernel.
func (h *Handle) CheckPolicy(policy Policy) error {
	if err := checkPolicy("policy_check", &policy); err != nil {
		return err
	}
	return h.backend.policyCheck(&policy)
}

// Annotations are what a pod asks for by its annotations, and what of it it may have.
type Annotations struct {
	// Of has all annotations of the pod. Other texts than UTF-8 without NUL bytes are no names of
	// natra's, and wrong as values.
	Of map[string]string
	// Allowed names those that it may use, as the key allowAnnotations of natra's CNI
	// plugin does. Kubernetes' rates ("kubernetes.io/ingress-bandwidth") are ignored, too, if
	// they are not here, and without a line in the log.
	Allowed []string
	// AllowAll lets it use all.
	AllowAll bool
	// SkipBad leaves bad values out, and logs why, in place of an error.
	SkipBad bool
}

// AnnotatePolicy puts what a pod asks for into a policy. What the policy has in a direction
// without a rate, or for a group that it is not in, is left out, so that it may have values
// for whatever rates pods ask for.
func (h *Handle) AnnotatePolicy(ctx context.Context, policy Policy, a Annotations) (Policy, error) {
	if err := checkAnnotations("policy_annotate", &policy, &a); err != nil {
		return policy, err
	}
	return h.backend.policyAnnotate(ctx, &policy, a)
}

// Pod is a pod, and where natra-agent has written what its namespace may have.
type Pod struct {
	// Name is "namespace/name"; else it is EINVAL.
	Name string
	// Namespaces is the path of the file, "/var/lib/natra/namespaces.json"; "" is none. Without
	// the file there is no maximum, unless RequireNamespaces, which needs a path (EINVAL): that is
	// EBADMSG, as a file is that cannot be read.
	Namespaces        string
	RequireNamespaces bool
}

// PodPolicy is what a pod gets: Rates is without what annotations other than Kubernetes' rates ask
// for. Note is the first of these that applies, or "": with SkipBad, that the file cannot be read or
// is not there, and that a rate of Kubernetes' is wrong; and what was lowered to the maximum. Other
// annotations that do not count are in the log alone.
type PodPolicy struct {
	Policy Policy `json:"policy"`
	Rates  Policy `json:"rates"`
	Note   string `json:"note"`
}

// AnnotatePod does what AnnotatePolicy does for the pod of a namespace, as natra's CNI plugin does
// it: Kubernetes' rates may be asked for, the pod gets the default of its namespace and at most
// the maximum, and what that allows stands in for a.Allowed; a.AllowAll does not count. With
// a.SkipBad a file that cannot be read is in the Note. It runs natractl with each back end.
func (h *Handle) AnnotatePod(ctx context.Context, policy Policy, a Annotations, pod Pod) (PodPolicy, error) {
	const call = "policy_annotate_pod"
	err := checkAnnotations(call, &policy, &a)
	if err == nil {
		err = checkTexts(call, named{"pod", pod.Name}, named{"namespaces", pod.Namespaces})
	}
	if err != nil {
		return PodPolicy{}, err
	}
	return h.backend.policyAnnotatePod(ctx, &policy, a, pod)
}

// checkAnnotations also changes a pod's annotations that cannot be passed on. It refuses none: what
// Kubernetes takes under whatever name is to count as natra judges it, and most is not natra's.
func checkAnnotations(call string, policy *Policy, a *Annotations) error {
	if err := checkPolicy(call, policy); err != nil {
		return err
	}
	of := maps.Clone(a.Of)
	for name, value := range a.Of {
		switch {
		case unfit(name) != "":
			delete(of, name)
		case unfit(value) != "":
			of[name] = strconv.Quote(value) // no value of natra's has quotation marks
		}
	}
	a.Of = of
	for _, name := range a.Allowed {
		if err := checkTexts(call, named{"allowed", name}); err != nil {
			return err
		}
	}
	return nil
}

// ParseRate reads a Kubernetes quantity in bit/s, such as "10M" or "1.5G". ERANGE: it is
// outside of what a rate can be.
func (h *Handle) ParseRate(text string) (bitsPerSec uint64, err error) {
	return h.parse("rate", text)
}

// ParseSize reads a quantity in bytes.
func (h *Handle) ParseSize(text string) (bytes uint64, err error) {
	return h.parse("size", text)
}

// ParseTime reads a decimal number with ns, us, ms or s, and returns nanoseconds.
func (h *Handle) ParseTime(text string) (ns uint64, err error) {
	return h.parse("time", text)
}

func (h *Handle) parse(what, text string) (uint64, error) {
	if err := checkTexts("parse_"+what, named{what, text}); err != nil {
		return 0, err
	}
	number, err := h.backend.parse(what, text)
	if e, ok := err.(*Error); ok {
		switch e.Errno {
		case syscall.EINVAL:
			return 0, badField("parse_"+what, what, fmt.Sprintf("%q is not a %s", text, what))
		case syscall.ERANGE:
			e.Text = fmt.Sprintf("%q is out of range for a %s", text, what)
		}
	}
	return number, err
}

func checkID(call, id string) error { return checkTexts(call, named{"id", id}) }

func checkTarget(call string, t *Target) error {
	// A file that is closed has no descriptor, and to C 0 is none, so that it would take the
	// caller's own namespace.
	if t.NetnsFile != nil && int(t.NetnsFile.Fd()) <= 0 {
		return badField(call, "netns_fd", strconv.Itoa(int(t.NetnsFile.Fd())))
	}
	return checkTexts(call, named{"id", t.ID}, named{"ifname", t.Ifname},
		named{"netns", t.Netns}, named{"network", t.Network}, named{"label", t.Label})
}

func checkPolicy(call string, p *Policy) error {
	for _, list := range []struct {
		name    string
		subnets []string
	}{{"shaped_subnets", p.ShapedSubnets}, {"unshaped_subnets", p.UnshapedSubnets}} {
		for i, s := range list.subnets {
			name := list.name + "[" + strconv.Itoa(i) + "]"
			if err := checkTexts(call, named{name, s}); err != nil {
				return err
			}
		}
	}
	for i, c := range p.Classes {
		if err := checkClass(call, "classes["+strconv.Itoa(i)+"].", &c); err != nil {
			return err
		}
	}
	return nil
}

func checkClass(call, what string, c *Class) error {
	for _, dscp := range c.DSCPs {
		if dscp < 0 || dscp > 63 {
			return badField(call, what+"dscps", fmt.Sprintf("%d is not 0 to 63", dscp))
		}
	}
	for i, s := range c.Subnets {
		name := what + "subnets[" + strconv.Itoa(i) + "]"
		if err := checkTexts(call, named{name, s}); err != nil {
			return err
		}
	}
	return checkTexts(call, named{what + "name", c.Name})
}

func checkOrder(call string, t *Target, p *Policy) error {
	if err := checkTarget(call, t); err != nil {
		return err
	}
	return checkPolicy(call, p)
}
