// SPDX-License-Identifier: BSD-2-Clause

package natra_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	natra "github.com/OWNER/natra/tools/bindings/go"
)

var background = context.Background()

// same checks that all back ends return the same.
func same[T any](t *testing.T, what string, call func(n *natra.Handle) (T, error)) (first T) {
	t.Helper()
	for i, b := range backends() {
		got, err := call(b.open(t))
		if err != nil {
			t.Fatalf("%s of %s: %v", what, b.name, err)
		}
		if i > 0 && !reflect.DeepEqual(got, first) {
			t.Errorf("%s of %s: %+v, not %+v", what, b.name, got, first)
		}
		first = got
	}
	return first
}

// full is a policy with another value than the default in each field.
func full() natra.Policy {
	return natra.Policy{
		IngressRateBitsPerSec: 10e6, EgressRateBitsPerSec: 20e6,
		IngressBurstBits: 70001, EgressBurstBits: 1<<53 + 1,
		HeavyHitterThresholdBytes: 90001, Horizon: 3 * time.Second,
		PaceLimit: 20 * time.Millisecond, FastPassSharePercent: 51,
		FastPass:                natra.FastPassStrict,
		IngressPacketRatePerSec: 10001, EgressPacketRatePerSec: 10002,
		IngressConnectionRatePerSec: 10003, EgressConnectionRatePerSec: 10004,
		Group: "all", GroupIsAutomatic: true, GroupWeight: 3, GroupFloorBitsPerSec: 1e6,
		AutomaticGroup: &natra.AutomaticGroup{IngressRateBitsPerSec: 1e8},
		IngressMode:    natra.IngressModePolice, AttachMode: natra.AttachModeClsactPodside,
		EDTPacing: natra.EDTPacingOff, SLI: natra.SLIOn,
		UnshapedSubnets: []string{"10.0.0.0/8", "fd00::/8"},
	}
}

func TestPolicyComesBack(t *testing.T) {
	p := newPod(t)
	each(t, func(t *testing.T, n *natra.Handle) {
		policy := full()
		v := reflect.ValueOf(policy)
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			// Classes have a test of their own.
			if v.Field(i).IsZero() && name != "ShapedSubnets" && name != "IngressMode" &&
				name != "Classes" {
				t.Errorf("the test's policy lacks %s", name)
			}
		}
		target := p.target("full")
		target.Network, target.Label = "net", "shop/wéb"
		info := attach(t, n, target, policy)
		policy.AutomaticGroup = nil // it is not reported
		if !reflect.DeepEqual(info.Policy, policy) {
			t.Errorf("attached %+v\nwanted %+v", info.Policy, policy)
		}
		if info.Network != "net" || info.Label != "shop/wéb" || info.Ifname != "eth0" {
			t.Errorf("%+v", info)
		}
		if got := same(t, "query", func(n *natra.Handle) (natra.Info, error) {
			return n.Query(background, "full")
		}); !reflect.DeepEqual(got, info) {
			t.Errorf("query: %+v\nattach: %+v", got, info)
		}
		if err := n.Check(background, "full", &policy); err != nil {
			t.Error(err)
		}
		// What Query reports is all that Configure replaces.
		changed := info.Policy
		changed.EgressRateBitsPerSec = 21e6
		if err := n.Configure(background, "full", changed); err != nil {
			t.Fatal(err)
		}
		if got, err := n.Query(background, "full"); err != nil || !reflect.DeepEqual(got.Policy, changed) {
			t.Errorf("configured %+v\nwanted %+v, %v", got.Policy, changed, err)
		}
	})
}

// Each word means the same number in Go as in C.
func TestWords(t *testing.T) {
	p := newPod(t)
	n := backends()[0].open(t)
	for _, change := range []func(*natra.Policy){
		func(p *natra.Policy) { p.FastPass = natra.FastPassStrict },
		func(p *natra.Policy) { p.FastPass = natra.FastPassOff },
		func(p *natra.Policy) { p.EDTPacing = natra.EDTPacingAuto },
		func(p *natra.Policy) { p.AttachMode = natra.AttachModeTCXPodside },
		func(p *natra.Policy) { p.AttachMode = natra.AttachModeTCXHostside },
		func(p *natra.Policy) { p.AttachMode = natra.AttachModeClsactHostside },
		func(p *natra.Policy) { p.IngressMode = natra.IngressModePace },
		func(p *natra.Policy) { p.EDTPacing = natra.EDTPacingOn },
	} {
		policy := mbit(10, 10)
		policy.EDTPacing = natra.EDTPacingOff
		change(&policy)
		info, err := n.Attach(background, p.target("words"), policy)
		if errors.Is(err, syscall.EOPNOTSUPP) {
			t.Logf("not here: %v", err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(info.Policy, policy) {
			t.Errorf("%+v\nwanted %+v", info.Policy, policy)
		}
		same(t, "query", func(n *natra.Handle) (natra.Info, error) {
			return n.Query(background, "words")
		})
		if _, err := n.Detach(background, natra.Target{ID: "words"}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLife(t *testing.T) {
	p := newPod(t)
	each(t, func(t *testing.T, n *natra.Handle) {
		before := state(t)
		info := attach(t, n, p.target(""), mbit(10, 10))
		if !strings.HasSuffix(info.ID, "-eth0") {
			t.Errorf("id %q", info.ID)
		}
		if id, err := n.Find(background, p.target("")); id != info.ID || err != nil {
			t.Errorf("find: %q, %v", id, err)
		}
		policy := info.Policy
		policy.IngressRateBitsPerSec = 30e6
		if err := n.Configure(background, info.ID, policy); err != nil {
			t.Fatal(err)
		}
		if err := n.Upgrade(background, info.ID); err != nil {
			t.Error(err)
		}
		got, err := n.Query(background, info.ID)
		if err != nil || got.Effective.IngressRateBitsPerSec != 30e6 {
			t.Errorf("%v, %v", got.Effective, err)
		}
		// A repeated attach keeps the id's attachment.
		attach(t, n, p.target(info.ID), policy)
		all, err := n.Attachments(background)
		if err != nil || len(all) != 1 || all[0].ID != info.ID {
			t.Errorf("%v, %v", all, err)
		}
		for range 2 {
			if _, err := n.Detach(background, p.target("")); err != nil {
				t.Fatal(err)
			}
		}
		if err := n.Check(background, info.ID, nil); !errors.Is(err, syscall.ENOENT) {
			t.Error(err)
		}
		if _, err := n.GC(background); err != nil {
			t.Error(err)
		}
		if after := state(t); after != before && !strings.Contains(after, "clsact") {
			t.Errorf("left:\n%s\nwas:\n%s", after, before)
		}
	})
}

func TestCounters(t *testing.T) {
	p := newPod(t)
	n := backends()[0].open(t)
	policy := mbit(1, 1)
	policy.SLI = natra.SLIOn
	policy.HeavyHitterThresholdBytes = 5000
	policy.IngressBurstBits = 80000
	attach(t, n, p.target("counters"), policy)
	p.send(t, 100)
	stats := same(t, "stats", func(n *natra.Handle) (natra.Stats, error) {
		return n.Stats(background, "counters")
	})
	if link := stats.Ingress.Other.Packets + stats.Egress.Other.Packets; link != 0 {
		t.Errorf("%d packets of the kernel's own", link)
	}
	in := stats.Ingress
	if in.Mice.Packets == 0 || in.DroppedRate.Packets == 0 || in.HeavyFlows != 1 ||
		in.Mice.Packets+in.Admitted.Packets+in.DroppedRate.Packets < 50 {
		t.Errorf("%+v", in)
	}
	all := same(t, "all stats", func(n *natra.Handle) ([]natra.InfoStats, error) {
		return n.AllStats(background)
	})
	if len(all) != 1 || all[0].Info.ID != "counters" || !reflect.DeepEqual(*all[0].Stats, stats) {
		t.Errorf("%+v\nwanted %+v", all, stats)
	}
	flows := same(t, "top", func(n *natra.Handle) ([]natra.Flow, error) {
		flows, err := n.Top(background, "counters", natra.DirectionIngress)
		for i := range flows {
			flows[i].Idle = 0
		}
		return flows, err
	})
	if len(flows) != 1 || flows[0].Dst.String() != p.ip || flows[0].DstPort != 9 ||
		flows[0].Protocol != syscall.IPPROTO_UDP || flows[0].IPVersion != 4 || flows[0].Bytes == 0 {
		t.Errorf("%+v", flows)
	}
	testEvents(t, flows[0])
}

// testEvents expects that the flow became heavy and lost packets.
func testEvents(t *testing.T, flow natra.Flow) {
	flow.Bytes, flow.Packets = 0, 0
	events := same(t, "events", func(n *natra.Handle) (events []natra.Event, err error) {
		reader, err := n.OpenEvents(background)
		if err != nil {
			return nil, err
		}
		defer reader.Close()
		for {
			event, ok, err := reader.Read()
			if !ok || err != nil {
				return events, err
			}
			events = append(events, event)
		}
	})
	for _, reason := range []natra.EventReason{natra.EventHeavy, natra.EventDroppedRate} {
		if !slices.ContainsFunc(events, func(e natra.Event) bool {
			return e.ID == "counters" && e.Reason == reason && e.Flow == flow &&
				e.Direction == natra.DirectionIngress && e.Time > 0
		}) {
			t.Errorf("no %s of %+v: %+v", reason, flow, events)
		}
	}
}

func TestEventsWait(t *testing.T) {
	p := newPod(t)
	each(t, func(t *testing.T, n *natra.Handle) {
		policy := mbit(1, 1)
		policy.HeavyHitterThresholdBytes = 5000
		attach(t, n, p.target("waiting"), policy)
		reader, err := n.OpenEvents(background)
		if err != nil {
			t.Fatal(err)
		}
		for { // the events of other tests
			if _, ok, err := reader.Read(); err != nil {
				t.Fatal(err)
			} else if !ok {
				break
			}
		}
		ctx, cancel := context.WithTimeout(background, 300*time.Millisecond)
		defer cancel()
		if _, err := reader.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.AfterFunc(time.Millisecond, func() { p.send(t, 100) })
		ctx, cancel = context.WithTimeout(background, 10*time.Second)
		defer cancel()
		if event, err := reader.Next(ctx); err != nil || event.ID != "waiting" {
			t.Errorf("%+v, %v", event, err)
		}
		reader.Close()
		if _, err := reader.Next(ctx); !errors.Is(err, syscall.EBADF) {
			t.Error(err)
		}
	})
}

func TestNeighboursAndSubnets(t *testing.T) {
	p := newPod(t)
	policy := mbit(1, 1)
	policy.ShapedSubnets = []string{"fd01::1/16", "10.1.2.3/8"}
	attach(t, backends()[0].open(t), p.target("around"), policy)
	subnets := same(t, "subnets", func(n *natra.Handle) ([]string, error) {
		return n.Subnets(background, "around")
	})
	if fmt.Sprint(subnets) != "[10.0.0.0/8 fd01::/16]" {
		t.Error(subnets)
	}
	all := same(t, "neighbours", func(n *natra.Handle) ([]natra.Neighbour, error) {
		return n.Neighbours(background, "around")
	})
	// The third one judges ingress on the host side.
	if len(all) != 3 || !all[0].IsOurs || all[0].ProgID == 0 || all[0].Ifname != "eth0" ||
		all[0].IsOnHost || !all[2].IsOnHost || all[0].Direction == all[1].Direction {
		t.Errorf("%+v", all)
	}
}

func TestLeftovers(t *testing.T) {
	p := newPod(t)
	each(t, func(t *testing.T, n *natra.Handle) {
		sh(t, "tc qdisc replace dev %s root handle 1: tbf rate 10mbit burst 64k latency 50ms", p.host)
		found, err := n.FindLeftovers(background, p.target(""))
		want := natra.Leftovers{HostIfname: p.host, LimitsIngress: true}
		if err != nil || found != want {
			t.Errorf("%+v, %v", found, err)
		}
		if err := n.DrainLeftovers(background, p.target("")); err != nil {
			t.Error(err)
		}
		if err := n.RemoveLeftovers(background, p.target("")); err != nil {
			t.Error(err)
		}
		if out := sh(t, "tc qdisc show dev %s", p.host); strings.Contains(out, "tbf") {
			t.Error(out)
		}
	})
}

func TestUnshapedAndGC(t *testing.T) {
	each(t, func(t *testing.T, n *natra.Handle) {
		p, q := newPod(t), newPod(t)
		target := p.target("bare")
		target.Network = "net"
		if err := n.RecordUnshaped(background, target, mbit(1, 1), "a\ntest"); err != nil {
			t.Fatal(err)
		}
		info, err := n.Query(background, "bare")
		if err != nil || !info.Unshaped || info.Reason != "a?test" {
			t.Errorf("%+v, %v", info, err)
		}
		err = n.Check(background, "bare", nil)
		if !errors.Is(err, syscall.EBADE) || !strings.Contains(err.Error(), "a?test") {
			t.Error(err)
		}
		target = q.target("kept")
		target.Network = "net"
		attach(t, n, target, mbit(1, 1))
		if removed, err := n.GCNetwork(background, "net", []string{"kept"}); removed != 1 || err != nil {
			t.Errorf("removed %d, %v", removed, err)
		}
		if removed, err := n.GC(background); removed != 0 || err != nil {
			t.Errorf("removed %d, %v", removed, err)
		}
		sh(t, "ip link del %s", q.host)
		if removed, err := n.GC(background); removed != 1 || err != nil {
			t.Errorf("removed %d, %v", removed, err)
		}
	})
}

func TestProbe(t *testing.T) {
	needKernel(t)
	features := same(t, "probe", func(n *natra.Handle) (natra.Features, error) {
		return n.Probe(background)
	})
	if !features.KernelOK || !features.BPF || features.Kernel == "" || features.ABI == 0 {
		t.Errorf("%+v", features)
	}
	each(t, func(t *testing.T, n *natra.Handle) {
		if err := n.Status(background); err != nil {
			t.Error(err)
		}
	})
}

func TestParse(t *testing.T) {
	if os.Getenv("NATRACTL") == "" {
		t.Skip("no NATRACTL")
	}
	each(t, func(t *testing.T, n *natra.Handle) {
		rate, err := n.ParseRate("1.5G")
		if rate != 1500e6 || err != nil {
			t.Errorf("%d, %v", rate, err)
		}
		size, err := n.ParseSize("9223372036854775807")
		if size != 1<<63-1 || err != nil {
			t.Errorf("%d, %v", size, err)
		}
		ns, err := n.ParseTime("50ms")
		if ns != 50e6 || err != nil {
			t.Errorf("%d, %v", ns, err)
		}
	})
}

// holdNamespace does what a process does that attaches in the pod's namespace.
func holdNamespace(t *testing.T, p pod) *os.File {
	t.Helper()
	stat, err := os.Stat(p.path)
	if err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/sys/fs/bpf/natra/netns_%d", stat.Sys().(*syscall.Stat_t).Ino)
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	f := open(path)
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		os.Remove(path)
		f.Close()
	})
	return f
}

func TestContextEndsTheWait(t *testing.T) {
	p := newPod(t)
	each(t, func(t *testing.T, n *natra.Handle) {
		lock := holdNamespace(t, p)
		before := state(t)
		for _, test := range []struct {
			want   error
			cancel func() (context.Context, context.CancelFunc)
		}{
			{context.DeadlineExceeded, func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(background, 300*time.Millisecond)
			}},
			{context.Canceled, func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(background)
				time.AfterFunc(300*time.Millisecond, cancel)
				return ctx, cancel
			}},
		} {
			ctx, cancel := test.cancel()
			defer cancel()
			begin := time.Now()
			_, err := n.Attach(ctx, p.target("late"), mbit(1, 1))
			took := time.Since(begin)
			if !errors.Is(err, test.want) || !errors.Is(err, syscall.ECANCELED) ||
				!strings.Contains(err.Error(), "/netns_") {
				t.Errorf("%v", err)
			}
			if took < 250*time.Millisecond || took > 2*time.Second {
				t.Errorf("took %v", took)
			}
			// One that has ended before is not begun.
			if _, err := n.Attach(ctx, p.target("late"), mbit(1, 1)); !errors.Is(err, test.want) {
				t.Error(err)
			}
		}
		if after := state(t); after != before {
			t.Errorf("changed:\n%s\nwas:\n%s", after, before)
		}
		// Without a context's end the call waits, and succeeds.
		unlocked := make(chan bool)
		time.AfterFunc(300*time.Millisecond, func() {
			syscall.Flock(int(lock.Fd()), syscall.LOCK_UN)
			close(unlocked)
		})
		defer func() { <-unlocked }()
		ctx, cancel := context.WithTimeout(background, 20*time.Second)
		defer cancel()
		if _, err := n.Attach(ctx, p.target("late"), mbit(1, 1)); err != nil {
			t.Error(err)
		}
		if _, err := n.Detach(ctx, p.target("late")); err != nil {
			t.Error(err)
		}
	})
}

func TestNamespaceOfTheThread(t *testing.T) {
	p := newPod(t)
	each(t, func(t *testing.T, n *natra.Handle) {
		file := open(p.path)
		defer file.Close()
		attach(t, n, natra.Target{ID: "file", Ifname: "eth0", NetnsFile: file}, mbit(1, 1))
		id := make(chan string)
		go func() {
			// The thread ends with the goroutine, because it is not unlocked.
			runtime.LockOSThread()
			setns := map[string]uintptr{"amd64": 308, "arm64": 268}[runtime.GOARCH]
			syscall.RawSyscall(setns, file.Fd(), syscall.CLONE_NEWNET, 0)
			found, err := n.Find(background, natra.Target{Ifname: "eth0"})
			id <- fmt.Sprintf("%s %v", found, err)
		}()
		if got := <-id; got != "file <nil>" {
			t.Error(got)
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	pods := make([]pod, 6)
	for i := range pods {
		pods[i] = newPod(t)
	}
	each(t, func(t *testing.T, n *natra.Handle) {
		var group sync.WaitGroup
		for i, p := range pods {
			group.Add(2)
			id := fmt.Sprintf("many-%d", i)
			go func() {
				defer group.Done()
				for range 3 {
					if _, err := n.Attach(background, p.target(id), mbit(1, 2)); err != nil {
						t.Error(err)
					}
				}
				if _, err := n.Detach(background, natra.Target{ID: id}); err != nil {
					t.Error(err)
				}
			}()
			go func() {
				defer group.Done()
				for range 3 {
					if _, err := n.Attachments(background); err != nil {
						t.Error(err)
					}
					if err := n.CheckPolicy(natra.Policy{AttachMode: 9}); err == nil {
						t.Error("mode 9")
					}
				}
			}()
		}
		group.Wait()
	})
}

func TestLog(t *testing.T) {
	p := newPod(t)
	for _, b := range backends() {
		t.Run(b.name, func(t *testing.T) {
			var mu sync.Mutex
			var lines []string
			b.options.Log = func(level natra.Level, line string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, level.String()+": "+line)
			}
			n := b.open(t)
			attach(t, n, p.target("log"), mbit(1, 1))
			mu.Lock()
			defer mu.Unlock()
			if len(lines) == 0 || strings.Contains(strings.Join(lines, ""), "unknown") {
				t.Error(lines)
			}
		})
	}
}

// The state of a bpffs of its own is not that of others.
func TestBPFFS(t *testing.T) {
	p := newPod(t)
	path := filepath.Join(t.TempDir(), "bpf")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	sh(t, "mount -t bpf bpf %s", path)
	defer sh(t, "umount %s", path)
	for _, b := range backends() {
		b.options.BPFFSPath = path
		n := b.open(t)
		info := attach(t, n, p.target("elsewhere"), mbit(1, 1))
		if !strings.HasPrefix(info.PinPath, path) {
			t.Error(info.PinPath)
		}
		if all, err := backends()[0].open(t).Attachments(background); len(all) != 0 || err != nil {
			t.Error(all, err)
		}
		n.Detach(background, natra.Target{ID: "elsewhere"})
	}
}
