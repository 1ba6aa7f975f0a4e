// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/containerd/nri/pkg/api"

	natra "github.com/OWNER/natra/tools/bindings/go"
)

const (
	// standard is the name that runtimes give to a pod's interface.
	standard = "eth0"
	// resultsDir is libcni's cache of results, and multusDir that of Multus.
	resultsDir = "/var/lib/cni/results"
	multusDir  = "/var/lib/cni/multus/results"
	// A pod can make any number of interfaces; no more than these are asked for their
	// other ends.
	pairsMax = 64
)

// interfaceOf returns the name of a pod's interface: of a pod that has not run yet the one
// that has its first address, or without an address the one of the standard name. A process
// of a pod that may have run can have given both to another interface, so of such a pod it is
// the other end of the pair (veth or netkit) that libcni's result names; or without such a result the one with
// the address if that leads out of the pod, and no other one does that no result names.
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
	results := p.resultsOf(pod.GetId())
	own := results[standard]
	leading := map[string]string{} // those of a pair whose other end is on the node, and that end
	asked := 0
	for _, l := range links {
		if !isPair(l.kind) {
			continue
		}
		if asked++; asked > pairsMax {
			return "", fmt.Errorf("over %d interfaces: %w", pairsMax, syscall.E2BIG)
		}
		left, err := p.n.FindLeftovers(ctx, natra.Target{Ifname: l.name, Netns: namespace(pod)})
		if err != nil {
			return "", err
		}
		if left.HostIfname == "" {
			continue
		}
		if slices.Contains(own.hosts, left.HostIfname) {
			return l.name, nil
		}
		leading[l.name] = left.HostIfname
	}
	if len(own.hosts) > 0 {
		return "", fmt.Errorf("the other end of %q is not in the pod's network namespace: %w",
			own.hosts[0], syscall.EBADE)
	}
	name, err := holder(links, pod.GetIps())
	if err != nil {
		return "", err
	}
	delete(results, standard)
	unnamed := leadOut(links, leading, results)
	if slices.Equal(unnamed, []string{name}) {
		return name, nil
	}
	return "", fmt.Errorf("interface %q of a pod that runs already may not be its own: "+
		"interfaces that lead out of it: %v: %w", name, unnamed, syscall.EBADE)
}

// isPair returns whether an interface of the kind has another end, which is one of the pod's
// only if it was moved there.
func isPair(kind string) bool {
	return kind == "veth" || kind == "netkit"
}

// leadOut returns the interfaces by which packets leave the pod, but those that results name: a
// pair that leads to the node, a device, and what is above one of the node's. A process in the
// pod can make one of any kind above what it has itself, and give it, or lo, the pod's address.
func leadOut(links []link, leading map[string]string, results map[string]result) (names []string) {
	for _, l := range links {
		host, leads := leading[l.name]
		leads = leads || !isPair(l.kind) && l.leaves || l.kind == "" && l.device
		if leads && !isNamed(l, host, results) {
			names = append(names, l.name)
		}
	}
	return names
}

// isNamed returns whether the runtime, or Multus, made an interface by what results say: the
// one that has the name and MAC, or the other end on the node.
func isNamed(l link, host string, results map[string]result) bool {
	for _, r := range results {
		if slices.Contains(r.hosts, host) {
			return true
		}
		mac, found := r.own[l.name]
		if len(r.hosts) == 0 && found && (mac == "" || strings.EqualFold(mac, l.mac.String())) {
			return true
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

// result is what libcni's cache says of one interface of a pod.
type result struct {
	hosts []string          // the ends of pairs that are outside of the pod, on the node
	own   map[string]string // those in it, and their MACs
}

// resultsOf returns the results of a sandbox by their interfaces. Without any there are none.
func (p *plugin) resultsOf(sandbox string) map[string]result {
	results := map[string]result{}
	for _, dir := range []string{multusDir, p.results} {
		// A sandbox's id has no character that is special here.
		files, _ := filepath.Glob(filepath.Join(dir, "*-"+sandbox+"-*"))
		for _, file := range files {
			var cached struct {
				ContainerID string `json:"containerId"`
				IfName      string `json:"ifName"`
				Result      struct {
					Interfaces []struct{ Name, Sandbox, Mac string }
				}
			}
			text, err := readRegular(file)
			if err != nil || json.Unmarshal(text, &cached) != nil || cached.ContainerID != sandbox {
				continue
			}
			r := result{own: map[string]string{}}
			for _, one := range cached.Result.Interfaces {
				if one.Sandbox != "" {
					r.own[one.Name] = one.Mac
				} else if isPair(p.kindOnNode(one.Name)) {
					r.hosts = append(r.hosts, one.Name)
				}
			}
			// Multus and libcni can both have one of an interface.
			before := results[cached.IfName]
			r.hosts = append(r.hosts, before.hosts...)
			for name, mac := range before.own {
				if r.own[name] == "" {
					r.own[name] = mac
				}
			}
			results[cached.IfName] = r
		}
	}
	return results
}

// readRegular reads a file, but none that has no end, nor one of which another process has to
// write the rest.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: is not a file", path)
	}
	return os.ReadFile(path)
}
