// SPDX-License-Identifier: BSD-2-Clause

package natra_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	natra "github.com/OWNER/natra/tools/bindings/go"
)

// tests/bindings/go.py runs the tests in namespaces of their own, and says so by this.
const isolatedVariable = "NATRA_TEST_ISOLATED"

func sh(t testing.TB, format string, a ...any) string {
	t.Helper()
	command := fmt.Sprintf(format, a...)
	out, err := exec.Command("sh", "-ec", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out)
}

func needKernel(t testing.TB) {
	t.Helper()
	if os.Getenv(isolatedVariable) == "" {
		t.Skip("needs root and namespaces of its own: tests/bindings/go.py")
	}
}

// backend is one of those that are here.
type backend struct {
	name    string
	options natra.Options
}

func (b backend) open(t testing.TB) *natra.Handle {
	t.Helper()
	n, err := natra.New(b.options)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func backends() []backend {
	all := []backend{{"natractl", natra.Options{Natractl: os.Getenv("NATRACTL")}}}
	if natra.HasLibrary() {
		all = append(all, backend{"library", natra.Options{}})
	}
	return all
}

// each runs a test for each back end.
func each(t *testing.T, test func(t *testing.T, n *natra.Handle)) {
	for _, b := range backends() {
		t.Run(b.name, func(t *testing.T) { test(t, b.open(t)) })
	}
}

var podNumber struct {
	sync.Mutex
	last int
}

// pod is a namespace with eth0, whose peer is in the node. The kernel sends nothing there by itself,
// which would count between two readings: both ends know each other's address, and have none of IPv6.
type pod struct {
	name, path, host, ip string
}

func newPod(t testing.TB) pod {
	t.Helper()
	needKernel(t)
	podNumber.Lock()
	podNumber.last++
	number := podNumber.last
	podNumber.Unlock()
	p := pod{name: fmt.Sprintf("go%d", number), host: fmt.Sprintf("h-go%d", number),
		ip: fmt.Sprintf("10.79.%d.2", number)}
	p.path = "/run/netns/" + p.name
	sh(t, "ip netns add %[1]s; ip link add %[2]s address 02:00:00:00:00:01 type veth "+
		"peer name eth0 address 02:00:00:00:00:02 netns %[1]s;"+
		"ip addr add 10.79.%[3]d.1/24 dev %[2]s; ip link set %[2]s addrgenmode none up;"+
		"ip -n %[1]s addr add %[4]s/24 dev eth0; ip -n %[1]s link set eth0 addrgenmode none up;"+
		"ip neigh add %[4]s lladdr 02:00:00:00:00:02 dev %[2]s;"+
		"ip -n %[1]s neigh add 10.79.%[3]d.1 lladdr 02:00:00:00:00:01 dev eth0",
		p.name, p.host, number, p.ip)
	t.Cleanup(func() {
		exec.Command("ip", "link", "del", p.host).Run()
		sh(t, "ip netns del %s", p.name)
	})
	return p
}

func (p pod) target(id string) natra.Target {
	return natra.Target{ID: id, Ifname: "eth0", Netns: p.path}
}

// send sends packets into the pod, where nobody waits for them.
func (p pod) send(t testing.TB, packets int) {
	t.Helper()
	c, err := net.Dial("udp", p.ip+":9")
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	for range packets {
		// The pod answers that the port is closed, and the next send tells of it.
		c.Write(make([]byte, 1000))
	}
}

func mbit(in, out uint64) natra.Policy {
	return natra.Policy{IngressRateBitsPerSec: in * 1e6, EgressRateBitsPerSec: out * 1e6}
}

// attach attaches, and detaches when the test ends.
func attach(t testing.TB, n *natra.Handle, target natra.Target, policy natra.Policy) natra.Info {
	t.Helper()
	info, err := n.Attach(context.Background(), target, policy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := n.Detach(context.Background(), natra.Target{ID: info.ID}); err != nil {
			t.Error(err)
		}
	})
	return info
}

// state is what natra changes: pins, interfaces with their qdiscs, and programs.
func state(t testing.TB) string {
	return sh(t, "find /sys/fs/bpf/natra 2>/dev/null | sort; tc qdisc show;"+
		"for n in $(ls /run/netns); do tc -n $n qdisc show; done")
}

// fake writes a shell script as a program, and returns its path.
func fake(t testing.TB, script ...string) string {
	path := filepath.Join(t.TempDir(), "natractl")
	text := "#!/bin/sh\n" + strings.Join(script, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
