// SPDX-License-Identifier: BSD-2-Clause

package natra_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	natra "github.com/OWNER/natra/tools/bindings/go"
)

func TestClassesComeBack(t *testing.T) {
	p := newPod(t)
	each(t, func(t *testing.T, n *natra.Handle) {
		policy := mbit(10, 10)
		policy.Classes = []natra.Class{
			{Name: "cluster", IngressRateBitsPerSec: 1e9, EgressRateBitsPerSec: 2e9,
				Subnets: []string{"10.0.0.0/8", "fd00::/8"}},
			{Name: "voice", DSCPs: []int{0, 46, 63}}}
		info := attach(t, n, p.target("classes"), policy)
		if !reflect.DeepEqual(info.Policy, policy) {
			t.Errorf("attached %+v\nwanted %+v", info.Policy, policy)
		}
		for what, list := range map[string]func(n *natra.Handle) ([]natra.Info, error){
			"query": func(n *natra.Handle) ([]natra.Info, error) {
				one, err := n.Query(background, "classes")
				return []natra.Info{one}, err
			},
			"list": func(n *natra.Handle) ([]natra.Info, error) { return n.Attachments(background) },
		} {
			if got := same(t, what, list); len(got) != 1 || !reflect.DeepEqual(got[0].Policy, policy) {
				t.Errorf("%s: %+v", what, got)
			}
		}
		// Configure changes a list, and what Query reports can be attached again.
		policy.Classes = []natra.Class{policy.Classes[0], {Name: "voice", DSCPs: []int{5}}}
		if err := n.Configure(background, "classes", policy); err != nil {
			t.Fatal(err)
		}
		if err := n.Check(background, "classes", &policy); err != nil {
			t.Error(err)
		}
		got, err := n.Query(background, "classes")
		if err == nil {
			got, err = n.Attach(background, p.target("classes"), got.Policy)
		}
		if err != nil || !reflect.DeepEqual(got.Policy, policy) {
			t.Errorf("%+v, %v", got.Policy, err)
		}
		if _, err := n.Detach(background, natra.Target{ID: "classes"}); err != nil {
			t.Error(err)
		}
	})
}

func TestAnnotatePolicy(t *testing.T) {
	const packets = "qos.projectcalico.org/egressPacketRate"
	const slow = "annotation natra.io/fast-pass: 'slow': is not free, strict or off"
	for _, b := range backends() {
		var lines []string
		options := b.options
		options.Log = func(_ natra.Level, line string) { lines = append(lines, line) }
		n, err := natra.New(options)
		if err != nil {
			t.Fatal(err)
		}
		asks := natra.Annotations{
			Allowed: []string{"classes", "natra.io/fast-pass", "egress-packet-rate",
				"kubernetes.io/egress-bandwidth"},
			Of: map[string]string{"natra.io/classes": "lan=10.0.0.0/8,ingress-rate=1G; v=dscp=46",
				"natra.io/fast-pass": "slow", "natra.io/horizon": "1s", packets: "10k",
				"kubernetes.io/egress-bandwidth": "20M"}}
		_, err = n.AnnotatePolicy(background, mbit(10, 0), asks)
		if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), slow) {
			t.Error(b.name, err)
		}
		asks.SkipBad, lines = true, nil
		want := mbit(10, 20)
		want.EgressPacketRatePerSec = 10000
		want.Classes = []natra.Class{
			{Name: "lan", IngressRateBitsPerSec: 1e9, Subnets: []string{"10.0.0.0/8"}},
			{Name: "v", DSCPs: []int{46}}}
		got, err := n.AnnotatePolicy(background, mbit(10, 0), asks)
		if len(got.ShapedSubnets)+len(got.UnshapedSubnets) == 0 {
			got.ShapedSubnets, got.UnshapedSubnets = nil, nil
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", b.name, got, err)
		}
		slices.Sort(lines)
		if !slices.Equal(lines, []string{slow + ": ignored",
			"annotation natra.io/horizon is not in allowAnnotations: ignored"}) {
			t.Errorf("%s: %q", b.name, lines)
		}
	}
}

// Annotations change what they speak of, and all else comes back.
func TestAnnotateKeepsThePolicy(t *testing.T) {
	asks := natra.Annotations{AllowAll: true, Of: map[string]string{"kubernetes.io/egress-bandwidth": "30M"}}
	for _, group := range []*natra.AutomaticGroup{nil, {IngressRateBitsPerSec: 1e8, EgressRateBitsPerSec: 2e8,
		IngressBurstBits: 70001, EgressBurstBits: 70002, Parent: "rack", FloorBitsPerSec: 1e6, Weight: 3}} {
		want := full()
		want.AutomaticGroup = group
		given := want
		want.EgressRateBitsPerSec = 30e6
		each(t, func(t *testing.T, n *natra.Handle) {
			got, err := n.AnnotatePolicy(background, given, asks)
			// natractl writes lists of nothing as such.
			if len(got.ShapedSubnets)+len(got.Classes) == 0 {
				got.ShapedSubnets, got.Classes = nil, nil
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%+v\nwanted %+v, %v", got, want, err)
			}
		})
	}
}

// What can be no text of C or JSON is no name of natra's, and a wrong value only under one that counts.
func TestUnfitAnnotations(t *testing.T) {
	const out, fast = "kubernetes.io/egress-bandwidth", "natra.io/fast-pass"
	t.Setenv("PATH", filepath.Dir(os.Getenv("NATRACTL"))+":"+os.Getenv("PATH"))
	pod := natra.Pod{Name: "shop/web", Namespaces: filepath.Join(t.TempDir(), "namespaces.json")}
	if err := os.WriteFile(pod.Namespaces, []byte(`{"shop": {"max": {"egressRate": "20M"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, n *natra.Handle) {
		for _, c := range []struct{ name, value, wrong string }{
			{"x", "\x00", ""}, {"x", "\xff", ""}, {"x\x00", "y", ""}, {"\xff", "", ""}, {fast + "\x00", "off", ""},
			{"natra.io/horizon", "1s\x00", ""}, {"x", strings.Repeat("\x00", 1<<18), ""},
			{fast, "off\x00", `annotation natra.io/fast-pass: '"off\x00"': is not free, strict or off`},
			{fast, "off\xff", `annotation natra.io/fast-pass: '"off\xff"': is not free, strict or off`},
			{"natra.io/classes", "a=10.0.0.0/8;\x00", `annotation natra.io/classes: '"a=10.0.0.0/8;`},
			{out, "1G\x00", `annotation kubernetes.io/egress-bandwidth: '"1G\x00"': is not a rate`},
		} {
			asks := natra.Annotations{Of: map[string]string{c.name: c.value},
				Allowed: []string{"fast-pass", "classes", out}}
			for _, asks.SkipBad = range []bool{false, true} {
				_, err := n.AnnotatePolicy(background, natra.Policy{}, asks)
				got, podErr := n.AnnotatePod(background, natra.Policy{}, asks, pod)
				for _, err := range []error{err, podErr} {
					if isWrong := c.wrong != "" && !asks.SkipBad; isWrong != errors.Is(err, syscall.EINVAL) ||
						isWrong && !strings.Contains(err.Error(), c.wrong) {
						t.Errorf("%.20q: %.20q, %t: %v", c.name, c.value, asks.SkipBad, err)
					}
				}
				if podErr == nil && (got.Policy.EgressRateBitsPerSec != 20e6 || got.Policy.FastPass != 0 ||
					len(got.Policy.Classes) != 0) {
					t.Errorf("%.20q: %.20q: %+v", c.name, c.value, got.Policy)
				}
			}
			if c.value != asks.Of[c.name] {
				t.Errorf("the caller's map has changed: %.20q", asks.Of)
			}
		}
		// More than Kubernetes takes.
		many := natra.Annotations{Of: map[string]string{}, SkipBad: true}
		for i := range 100000 {
			many.Of["x"+strconv.Itoa(i)] = "\x00"
		}
		got, err := n.AnnotatePod(background, natra.Policy{}, many, pod)
		if err != nil || got.Policy.EgressRateBitsPerSec != 20e6 {
			t.Errorf("%+v, %v", got.Policy, err)
		}
	})
}

// With each back end a pod has at most the maximum of its namespace, by natractl's code.
func TestAnnotatePod(t *testing.T) {
	const out = "kubernetes.io/egress-bandwidth"
	t.Setenv("PATH", filepath.Dir(os.Getenv("NATRACTL"))+":"+os.Getenv("PATH"))
	pod := natra.Pod{Name: "shop/web", Namespaces: filepath.Join(t.TempDir(), "namespaces.json"),
		RequireNamespaces: true}
	asks := natra.Annotations{Of: map[string]string{out: "1G"}}
	each(t, func(t *testing.T, n *natra.Handle) {
		if err := os.RemoveAll(pod.Namespaces); err != nil {
			t.Fatal(err)
		}
		_, err := n.AnnotatePod(background, natra.Policy{}, asks, pod)
		if !errors.Is(err, syscall.EBADMSG) || !strings.Contains(err.Error(), "is not there") {
			t.Error(err)
		}
		err = os.WriteFile(pod.Namespaces, []byte(`{"sh*": {"max": {"egressRate": "20M"},
			"default": {"ingressRate": "10M"}}}`), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		got, err := n.AnnotatePod(background, natra.Policy{}, asks, pod)
		for _, policy := range []natra.Policy{got.Policy, got.Rates} {
			if policy.IngressRateBitsPerSec != 10e6 || policy.EgressRateBitsPerSec != 20e6 {
				t.Errorf("%+v", policy)
			}
		}
		if err != nil || !strings.Contains(got.Note, "is over the maximum") {
			t.Errorf("%q, %v", got.Note, err)
		}
	})
}
