// SPDX-License-Identifier: BSD-2-Clause

package natra_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"

	natra "github.com/OWNER/natra/tools/bindings/go"
)

const live = "refusals-live"

// refusal is a call that fails, and what its error must say: all of the text, or with
// "..." at its end or beginning that part of it.
type refusal struct {
	name  string
	errno syscall.Errno
	text  string
	call  func(ctx context.Context, n *natra.Handle, p pod) error
}

// policies are refused by every function that takes one. The library's own tests have all
// fields; these are one of each type that Go turns into C's.
var policies = []struct {
	name, text string
	change     func(p *natra.Policy)
}{
	{"highest ingress rate", "ingress_rate_bits_per_sec: 18446744073709551615 is over 1P",
		func(p *natra.Policy) { p.IngressRateBitsPerSec = math.MaxUint64 }},
	{"negative horizon", "horizon_ns: 18446744073709551615 is over 9000000000",
		func(p *natra.Policy) { p.Horizon = -1 }},
	{"highest share", "fast_pass_share_percent: 4294967295 is over 1000",
		func(p *natra.Policy) { p.FastPassSharePercent = math.MaxUint32 }},
	{"group", "group: longer than 127 bytes",
		func(p *natra.Policy) { p.Group = strings.Repeat("g", 128) }},
	{"highest mode", "attach_mode: 4294967295 is over 4",
		func(p *natra.Policy) { p.AttachMode = math.MaxUint32 }},
	{"no block but a line", "unshaped_subnets: '?[1m?' is not a CIDR block",
		func(p *natra.Policy) { p.UnshapedSubnets = []string{"10.0.0.0/8", "\x1b[1m\n"} }},
	{"both lists", "shaped_subnets: 1 beside 2 unshaped_subnets",
		func(p *natra.Policy) {
			p.ShapedSubnets = []string{"10.0.0.0/8"}
			p.UnshapedSubnets = []string{"10.0.0.0/8", "fd00::/8"}
		}},
	{"too many blocks", "shaped_subnets: 1025 are more than 1024",
		func(p *natra.Policy) {
			for range 1025 {
				p.ShapedSubnets = append(p.ShapedSubnets, "10.0.0.0/8")
			}
		}},
}

// policyRefusals has a row for each policy and function.
func policyRefusals() (all []refusal) {
	for _, bad := range policies {
		policy := mbit(10, 10)
		bad.change(&policy)
		for name, call := range map[string]func(context.Context, *natra.Handle, pod) error{
			"check": func(_ context.Context, n *natra.Handle, _ pod) error {
				return n.CheckPolicy(policy)
			},
			"attach": func(ctx context.Context, n *natra.Handle, p pod) error {
				_, err := n.Attach(ctx, p.target("other"), policy)
				return err
			},
			"attach again": func(ctx context.Context, n *natra.Handle, p pod) error {
				_, err := n.Attach(ctx, p.target(live), policy)
				return err
			},
			"configure": func(ctx context.Context, n *natra.Handle, _ pod) error {
				return n.Configure(ctx, live, policy)
			},
			"compare": func(ctx context.Context, n *natra.Handle, _ pod) error {
				return n.Check(ctx, live, &policy)
			},
			"record": func(ctx context.Context, n *natra.Handle, p pod) error {
				return n.RecordUnshaped(ctx, p.target("other"), policy, "a test")
			},
		} {
			all = append(all, refusal{bad.name + ", " + name, syscall.EINVAL, bad.text, call})
		}
	}
	return all
}

// attachTo is a call of Attach with a target that is changed.
func attachTo(change func(*natra.Target)) func(context.Context, *natra.Handle, pod) error {
	return func(ctx context.Context, n *natra.Handle, p pod) error {
		target := p.target("other")
		change(&target)
		_, err := n.Attach(ctx, target, mbit(10, 10))
		return err
	}
}

func open(path string) *os.File {
	f, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	return f
}

// opened returns the same file for the same path, because errors have its number.
func opened(path string) *os.File {
	if openFiles[path] == nil {
		openFiles[path] = open(path)
	}
	return openFiles[path]
}

var openFiles = map[string]*os.File{}

var targetRefusals = []refusal{
	{"long id", syscall.EINVAL, "id: longer than 255 bytes",
		attachTo(func(t *natra.Target) { t.ID = strings.Repeat("x", 256) })},
	{"long network", syscall.EINVAL, "network: longer than 255 bytes",
		attachTo(func(t *natra.Target) { t.Network = strings.Repeat("x", 256) })},
	{"long label", syscall.EINVAL, "label: longer than 255 bytes",
		attachTo(func(t *natra.Target) { t.Label = strings.Repeat("x", 256) })},
	{"no interface", syscall.EINVAL, "ifname: missing",
		attachTo(func(t *natra.Target) { t.Ifname = "" })},
	{"long interface", syscall.EINVAL, "ifname: longer than 15 bytes",
		attachTo(func(t *natra.Target) { t.Ifname = "sixteen-bytes-xx" })},
	{"unknown interface", syscall.ENODEV, "...nosuch0...",
		attachTo(func(t *natra.Target) { t.Ifname = "nosuch0" })},
	{"interface with escapes", syscall.ENODEV, "...a?b?[1m...",
		attachTo(func(t *natra.Target) { t.Ifname = "a\nb\x1b[1m" })},
	{"NUL", syscall.EINVAL, `ifname: "eth0\x00" has a NUL byte`,
		attachTo(func(t *natra.Target) { t.Ifname = "eth0\x00" })},
	{"not UTF-8", syscall.EINVAL, `label: "\xff" is not UTF-8`,
		attachTo(func(t *natra.Target) { t.Label = "\xff" })},
	{"unknown namespace", syscall.ENOENT, "...nosuch...",
		attachTo(func(t *natra.Target) { t.Netns = "nosuch" })},
	{"unknown path", syscall.ENOENT, ".../nonexistent/ns...",
		attachTo(func(t *natra.Target) { t.Netns = "/nonexistent/ns" })},
	{"no namespace", syscall.EINVAL, ".../etc/passwd...",
		attachTo(func(t *natra.Target) { t.Netns = "/etc/passwd" })},
	{"namespace twice", syscall.EINVAL, "netns_fd: ...",
		attachTo(func(t *natra.Target) { t.NetnsFile = opened(t.Netns) })},
	{"file is no namespace", syscall.EINVAL, "netns_fd...",
		attachTo(func(t *natra.Target) { t.Netns, t.NetnsFile = "", opened("/dev/null") })},
	{"other namespace", syscall.EINVAL, "netns_fd...",
		attachTo(func(t *natra.Target) { t.Netns, t.NetnsFile = "", opened("/proc/self/ns/mnt") })},
	{"closed file", syscall.EINVAL, "netns_fd: -1",
		attachTo(func(t *natra.Target) {
			closed := open(t.Netns)
			closed.Close()
			t.Netns, t.NetnsFile = "", closed
		})},
	{"no rate", syscall.EINVAL,
		"ingress_rate_bits_per_sec, egress_rate_bits_per_sec, group: at least one is needed",
		func(ctx context.Context, n *natra.Handle, p pod) error {
			_, err := n.Attach(ctx, p.target("other"), natra.Policy{})
			return err
		}},
	{"unknown group", syscall.ENOENT, "group: there is no 'nobody'",
		func(ctx context.Context, n *natra.Handle, _ pod) error {
			policy := mbit(10, 10)
			policy.Group = "nobody"
			return n.Configure(ctx, live, policy)
		}},
	{"other id", syscall.EBUSY, "interface 'eth0' is attached as 'refusals-live'",
		attachTo(func(*natra.Target) {})},
	{"nothing to detach", syscall.EINVAL, "...ifname...",
		func(ctx context.Context, n *natra.Handle, _ pod) error {
			_, err := n.Detach(ctx, natra.Target{})
			return err
		}},
	{"nothing to find", syscall.ENOENT, "...",
		func(ctx context.Context, n *natra.Handle, _ pod) error {
			_, err := n.Find(ctx, natra.Target{Ifname: "lo"})
			return err
		}},
	{"mode fixed", syscall.EINVAL, "attach_mode: 'refusals-live' has ...",
		func(ctx context.Context, n *natra.Handle, _ pod) error {
			policy := mbit(10, 10)
			policy.AttachMode = natra.AttachModeClsactHostside
			return n.Configure(ctx, live, policy)
		}},
	{"differs", syscall.EBADE, "ingress_rate_bits_per_sec: 'refusals-live' has 10000000, not 11000000",
		func(ctx context.Context, n *natra.Handle, _ pod) error {
			policy := mbit(11, 10)
			return n.Check(ctx, live, &policy)
		}},
	{"top of no direction", syscall.EINVAL, "...",
		func(ctx context.Context, n *natra.Handle, _ pod) error {
			_, err := n.Top(ctx, live, 2)
			return err
		}},
	{"rate", syscall.EINVAL, `rate: "10Q" is not a rate`,
		func(_ context.Context, n *natra.Handle, _ pod) error {
			_, err := n.ParseRate("10Q")
			return err
		}},
	{"low rate", syscall.ERANGE, `"10m" is out of range for a rate`,
		func(_ context.Context, n *natra.Handle, _ pod) error {
			_, err := n.ParseRate("10m")
			return err
		}},
	{"long time", syscall.ERANGE, `"3601s" is out of range for a time`,
		func(_ context.Context, n *natra.Handle, _ pod) error {
			_, err := n.ParseTime("3601s")
			return err
		}},
}

// idRefusals has what each function with an id says to one that is not attached.
func idRefusals() (all []refusal) {
	for name, call := range map[string]func(ctx context.Context, n *natra.Handle, id string) error{
		"configure": func(ctx context.Context, n *natra.Handle, id string) error {
			return n.Configure(ctx, id, mbit(1, 1))
		},
		"upgrade": func(ctx context.Context, n *natra.Handle, id string) error {
			return n.Upgrade(ctx, id)
		},
		"check": func(ctx context.Context, n *natra.Handle, id string) error {
			return n.Check(ctx, id, nil)
		},
		"query": func(ctx context.Context, n *natra.Handle, id string) error {
			_, err := n.Query(ctx, id)
			return err
		},
		"stats": func(ctx context.Context, n *natra.Handle, id string) error {
			_, err := n.Stats(ctx, id)
			return err
		},
		"top": func(ctx context.Context, n *natra.Handle, id string) error {
			_, err := n.Top(ctx, id, natra.DirectionEgress)
			return err
		},
		"neighbours": func(ctx context.Context, n *natra.Handle, id string) error {
			_, err := n.Neighbours(ctx, id)
			return err
		},
		"subnets": func(ctx context.Context, n *natra.Handle, id string) error {
			_, err := n.Subnets(ctx, id)
			return err
		},
		"leftovers": func(ctx context.Context, n *natra.Handle, id string) error {
			_, err := n.FindLeftovers(ctx, natra.Target{ID: id})
			return err
		},
	} {
		for _, bad := range []refusal{
			{"unknown id", syscall.ENOENT, "...nobody...", nil},
			{"long id", syscall.ENOENT, "...xxx' is not attached", nil},
			{"id with NUL", syscall.EINVAL, `id: "a\x00b" has a NUL byte`, nil},
		} {
			id := map[string]string{"unknown id": "nobody",
				"long id": strings.Repeat("x", 256), "id with NUL": "a\x00b"}[bad.name]
			if name == "leftovers" && bad.name == "long id" {
				// It takes a target, whose texts are checked first.
				bad.errno, bad.text = syscall.EINVAL, "id: longer than 255 bytes"
			}
			bad.name += ", " + name
			bad.call = func(ctx context.Context, n *natra.Handle, _ pod) error {
				return call(ctx, n, id)
			}
			all = append(all, bad)
		}
	}
	return all
}

// says returns whether a text is as a row wants it.
func (r refusal) says(text string) bool {
	want := r.text
	before, after := strings.HasPrefix(want, "..."), strings.HasSuffix(want, "...")
	want = strings.Trim(want, ".")
	switch {
	case before:
		return strings.Contains(text, want)
	case after:
		return strings.HasPrefix(text, want)
	}
	return text == want
}

// The codes of those whose errno does not say all.
var refusalCodes = map[string]natra.Code{
	"unknown group":     natra.CodeNoGroup,
	"other id":          natra.CodeOtherID,
	"nothing to find":   natra.CodeNotAttached,
	"mode fixed":        natra.CodeFixed,
	"differs":           natra.CodeLimitsDiffer,
	"unknown namespace": natra.CodeNoNetns,
	"unknown path":      natra.CodeNoNetns,
}

func (r refusal) code() natra.Code {
	if r.errno == syscall.ENOENT && strings.Contains(r.name, " id, ") {
		return natra.CodeNotAttached
	}
	code := refusalCodes[r.name]
	if code == natra.CodeNone && r.errno == syscall.EINVAL {
		return natra.CodeField
	}
	return code
}

// Each back end refuses the same with the same code and text, and changes nothing.
func TestRefusals(t *testing.T) {
	p := newPod(t)
	all := backends()
	handles := make([]*natra.Handle, len(all))
	for i, b := range all {
		handles[i] = b.open(t)
	}
	attach(t, handles[0], p.target(live), mbit(10, 10))
	before := state(t)
	ctx := context.Background()
	rows := append(append(policyRefusals(), idRefusals()...), targetRefusals...)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			first := ""
			for i, b := range all {
				err := row.call(ctx, handles[i], p)
				var e *natra.Error
				if !errors.As(err, &e) {
					t.Fatalf("%s: %v (%T)", b.name, err, err)
				}
				if !errors.Is(err, row.errno) {
					t.Errorf("%s: errno %d, not %d: %s", b.name, e.Errno, row.errno, err)
				}
				if !row.says(e.Error()) || e.Text == "" || strings.ContainsAny(e.Text, "\n\x1b") {
					t.Errorf("%s: %q, not %q", b.name, e.Text, row.text)
				}
				said := fmt.Sprintf("%v: %s", e.Code, e.Text)
				if i > 0 && said != first {
					t.Errorf("%s: %q, and %s: %q", b.name, said, all[0].name, first)
				}
				first = said
				if want := row.code(); e.Code != want {
					t.Errorf("%s: code %v, not %v", b.name, e.Code, want)
				}
				if field, _, _ := strings.Cut(e.Text, ":"); e.Code == natra.CodeField && e.About != field {
					t.Errorf("%s: about %q, not %q", b.name, e.About, field)
				}
			}
		})
	}
	if after := state(t); after != before {
		t.Errorf("changed:\n%s\nwas:\n%s", after, before)
	}
}
