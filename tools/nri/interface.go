// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"github.com/containerd/nri/pkg/api"
	"golang.org/x/sys/unix"

	"natra.io/go/natra"
)

const (
	// standard is the name that runtimes give to a pod's interface.
	standard = "eth0"
	// resultsDir is libcni's cache of results.
	resultsDir = "/var/lib/cni/results"
	// A pod can make any number of interfaces; no more than these are asked for their
	// other ends.
	pairsMax = 64
)

var native = binary.NativeEndian

// link is an interface of a network namespace.
type link struct {
	name, kind string // the kind is "veth", "dummy" and so on; "" of a device and of lo
	leaves     bool   // the interface below it, or its other end, is on the node
	addresses  []net.IP
}

// interfaceOf returns the name of a pod's interface: of a pod that has not run yet the one
// that has its first address, or without an address the one of the standard name. A process
// of a pod that may have run can have given both to another interface, so of such a pod it is
// the other end of the veth that libcni's result names; or without such a result the one with
// the address if that leads to the node, and no other one does.
func (p *plugin) interfaceOf(ctx context.Context, pod *api.PodSandbox, mayHaveRun bool) (string, error) {
	if !mayHaveRun && len(pod.GetIps()) == 0 {
		return standard, nil
	}
	links, err := p.links(namespace(pod))
	if err != nil {
		return "", err
	}
	if !mayHaveRun {
		return holder(links, pod.GetIps())
	}
	hosts := cachedHosts(p.results, pod.GetId())
	var leading []string // the veths whose other end is on the node
	for _, l := range links {
		if l.kind != "veth" {
			continue
		}
		if len(leading) == pairsMax {
			return "", fmt.Errorf("over %d interfaces: %w", pairsMax, syscall.E2BIG)
		}
		left, err := p.n.FindLeftovers(ctx, natra.Target{Ifname: l.name, Netns: namespace(pod)})
		if err != nil {
			return "", err
		}
		if left.HostIfname == "" {
			continue
		}
		if slices.Contains(hosts, left.HostIfname) {
			return l.name, nil
		}
		leading = append(leading, l.name)
	}
	if err := p.noneOnNode(hosts); err != nil {
		return "", err
	}
	name, err := holder(links, pod.GetIps())
	if err != nil {
		return "", err
	}
	if len(leading) == 0 && leadsOut(links, name) ||
		len(leading) == 1 && leading[0] == name {
		return name, nil
	}
	return "", fmt.Errorf("interface %q of a pod that runs already may not be its own: "+
		"interfaces that lead to the node: %v: %w", name, leading, syscall.EBADE)
}

// noneOnNode returns an error if one of the interfaces is a veth of the node.
func (p *plugin) noneOnNode(hosts []string) error {
	if len(hosts) == 0 {
		return nil
	}
	node, err := p.links("/proc/self/ns/net")
	if err != nil {
		return err
	}
	for _, l := range node {
		if l.kind == "veth" && slices.Contains(hosts, l.name) {
			return fmt.Errorf("the other end of %q is not in the pod's network namespace: %w",
				l.name, syscall.EBADE)
		}
	}
	return nil
}

// leadsOut returns whether packets can leave the pod by an interface that is no pair: it is a
// device, or above one of the node's. A process in the pod can make one of any kind above what
// it has itself, and give it, or lo, the pod's address.
func leadsOut(links []link, name string) bool {
	for _, l := range links {
		if l.name == name {
			return l.kind == "" && name != "lo" || l.kind != "veth" && l.leaves
		}
	}
	return false
}

// holder returns the interface that has the first address, or the one of the standard name
// without any.
func holder(links []link, addresses []string) (string, error) {
	if len(addresses) == 0 {
		return standard, nil
	}
	want := net.ParseIP(addresses[0])
	if want == nil {
		return "", fmt.Errorf("address %q is no IP address", addresses[0])
	}
	for _, l := range links {
		if slices.ContainsFunc(l.addresses, want.Equal) {
			return l.name, nil
		}
	}
	return "", fmt.Errorf("no interface has %v: %w", want, syscall.ENODEV)
}

// cachedHosts returns the interfaces outside of the pod that libcni's results of its eth0
// name. Without a result there are none.
func cachedHosts(dir, sandbox string) (hosts []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*-"+sandbox+"-"+standard))
	if err != nil {
		return nil
	}
	for _, file := range files {
		var cached struct {
			ContainerID string `json:"containerId"`
			Result      struct {
				Interfaces []struct{ Name, Sandbox string }
			}
		}
		text, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(text, &cached) != nil || cached.ContainerID != sandbox {
			continue
		}
		for _, one := range cached.Result.Interfaces {
			if one.Sandbox == "" {
				hosts = append(hosts, one.Name)
			}
		}
	}
	return hosts
}

// linksOf returns the interfaces of a network namespace.
func linksOf(netns string) (links []link, err error) {
	file, err := os.Open(netns)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	node, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	defer node.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread is not unlocked, so it ends with the goroutine: it must not
		// run others in the pod's namespace.
		runtime.LockOSThread()
		if err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err == nil {
			links, err = linksHere(node)
		}
	}()
	<-done
	return links, err
}

// linksHere returns those of the thread's namespace.
func linksHere(node *os.File) ([]link, error) {
	looks, err := looksHere(node)
	if err != nil {
		return nil, err
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var links []link
	for _, one := range all {
		addresses, err := one.Addrs()
		if err != nil {
			continue // it is gone
		}
		l := looks[one.Index]
		l.name = one.Name
		for _, a := range addresses {
			if block, ok := a.(*net.IPNet); ok {
				l.addresses = append(l.addresses, block.IP)
			}
		}
		links = append(links, l)
	}
	return links, nil
}

// looksHere returns by their indices what net.Interfaces does not tell of interfaces.
func looksHere(node *os.File) (map[int]link, error) {
	answer, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_UNSPEC)
	if err != nil {
		return nil, os.NewSyscallError("netlinkrib", err)
	}
	messages, err := syscall.ParseNetlinkMessage(answer)
	if err != nil {
		return nil, err
	}
	// The dump has given the node an id, if an interface is above one of the node's.
	id, err := idOf(node)
	if err != nil {
		return nil, err
	}
	looks := map[int]link{}
	for _, m := range messages {
		if m.Header.Type != syscall.RTM_NEWLINK {
			continue
		}
		attributes := m.Data[unix.SizeofIfInfomsg:]
		index := int32(native.Uint32(m.Data[4:])) // of struct ifinfomsg
		looks[int(index)] = link{
			kind: unix.ByteSliceToString(attribute(
				attribute(attributes, unix.IFLA_LINKINFO), unix.IFLA_INFO_KIND)),
			leaves: id != nil && bytes.Equal(attribute(attributes, unix.IFLA_LINK_NETNSID), id),
		}
	}
	return looks, nil
}

// idOf returns the id by which the thread's namespace knows another one; nil: it has none.
func idOf(netns *os.File) ([]byte, error) {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer unix.Close(s)
	request := native.AppendUint32(nil, unix.NLMSG_HDRLEN+4+8)
	request = native.AppendUint16(request, unix.RTM_GETNSID)
	request = native.AppendUint16(request, unix.NLM_F_REQUEST)
	request = append(request, make([]byte, 8+4)...) // with struct rtgenmsg
	request = native.AppendUint16(request, 8)
	request = native.AppendUint16(request, unix.NETNSA_FD)
	request = native.AppendUint32(request, uint32(netns.Fd()))
	if err = unix.Sendto(s, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(s, answer, 0)
	if err != nil {
		return nil, os.NewSyscallError("recvfrom", err)
	}
	messages, err := syscall.ParseNetlinkMessage(answer[:n])
	if err != nil || len(messages) != 1 || messages[0].Header.Type != unix.RTM_NEWNSID {
		return nil, err
	}
	id := attribute(messages[0].Data[4:], unix.NETNSA_NSID)
	if len(id) != 4 || int32(native.Uint32(id)) < 0 {
		return nil, nil
	}
	return id, nil
}

// attribute returns the value of one of netlink's attributes; nil: there is none.
func attribute(all []byte, kind uint16) []byte {
	for len(all) >= unix.SizeofRtAttr {
		size := int(native.Uint16(all))
		if size < unix.SizeofRtAttr || size > len(all) {
			break
		}
		if native.Uint16(all[2:]) == kind {
			return all[unix.SizeofRtAttr:size]
		}
		all = all[min((size+3)&^3, len(all)):]
	}
	return nil
}
