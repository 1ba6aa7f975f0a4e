// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"golang.org/x/sys/unix"

	natra "github.com/OWNER/natra/tools/bindings/go"
)

const (
	ingressAnnotation = "kubernetes.io/ingress-bandwidth"
	limited           = `{"ingress_rate_bits_per_sec": 10000000}`
)

// gets is natractl's answer of what a pod gets: all that it asks for, and its rates alone.
func gets(policy, rates string) string {
	return `{"errno": 0, "result": {"policy": ` + policy + `, "rates": ` + rates + `, "note": ""}}`
}

// rig is a plugin with a natractl that says what a test wants, and writes down what it was
// asked.
type rig struct {
	*plugin
	natractl, asked, netns string
}

// newRig takes cases of sh, which come before those of a node without attachments.
func newRig(t *testing.T, cases ...string) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{natractl: dir + "/natractl", asked: dir + "/asked", netns: dir + "/netns"}
	script := "#!/bin/sh\necho '{\"version\": \"99.0.0\"}'\nwhile read -r line; do\n" +
		"printf '%s\\n' \"$line\" >>" + r.asked + "\ncase $line in\n" + strings.Join(cases, "\n") + `
		*'"'` + ingressAnnotation + `'":"10M"'*) echo '` + gets(limited, limited) + `';;
		*'"'` + ingressAnnotation + `'":"'*) echo '{"errno": 22, "error": "annotation x: is wrong"}';;
		*'"find"'* | *'"query"'*) echo '{"errno": 2, "error": "nothing"}';;
		*'"find_leftovers"'*) echo '{"errno": 0, "result": {"host_ifname": "veth1"}}';;
		*) echo '{"errno": 0, "result": {}}';;
		esac
		done
		`
	for path, text := range map[string]string{r.natractl: script, r.netns: "", r.asked: ""} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n, err := natra.New(natra.Options{Natractl: r.natractl})
	if err != nil {
		t.Fatal(err)
	}
	r.plugin = newPlugin(n, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	r.results = dir
	r.kindOnNode = func(name string) string {
		return map[string]string{"veth1": "veth", "veth2": "veth", "nk1": "netkit", "br0": "bridge"}[name]
	}
	r.links = func(string) ([]link, error) { return []link{{name: standard, kind: "veth"}}, nil }
	return r
}

// pod has one annotation, and no address.
func (r *rig) pod(rate string) *api.PodSandbox {
	return &api.PodSandbox{Id: "1", Name: "web", Namespace: "shop",
		Annotations: map[string]string{ingressAnnotation: rate},
		Linux: &api.LinuxPodSandbox{Namespaces: []*api.LinuxNamespace{
			{Type: "network", Path: r.netns}}}}
}

// ends runs the work on a pod until it ends, and returns the first error.
func (r *rig) ends(t *testing.T, pod *api.PodSandbox) error {
	t.Helper()
	first, done := make(chan error, 1), make(chan bool)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		r.work(ctx, pod, false, first)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(5 * again):
		t.Fatal("the work does not end")
	}
	return <-first
}

// was returns the last line that natractl was asked for a call.
func (r *rig) was(t *testing.T, call string) (last string) {
	t.Helper()
	text, err := os.ReadFile(r.asked)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"call":"`+call+`"`) {
			last = line
		}
	}
	return last
}

// A natractl that is missing for a moment, as during an update, is tried again.
func TestMissingNatractl(t *testing.T) {
	r := newRig(t)
	away := filepath.Join(filepath.Dir(r.natractl), "away")
	if err := os.Rename(r.natractl, away); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(again/2, func() { os.Rename(away, r.natractl) })
	if err := r.ends(t, r.pod("10M")); !errors.Is(err, syscall.ENOENT) {
		t.Error(err)
	}
	if asked := r.was(t, "attach"); !strings.Contains(asked, `"ingress_rate_bits_per_sec":"10000000"`) {
		t.Errorf("attach: %q", asked)
	}
}

// The work on a pod that has gone ends, whatever the error is.
func TestPodGone(t *testing.T) {
	r := newRig(t, `*'"attach"'*) echo '{"errno": 19, "error": "no eth0"}';;`)
	time.AfterFunc(again/2, func() { os.Remove(r.netns) })
	if err := r.ends(t, r.pod("10M")); !errors.Is(err, syscall.ENODEV) {
		t.Error(err)
	}
	if asked := r.was(t, "record_unshaped"); !strings.Contains(asked, `"reason":"no eth0"`) {
		t.Errorf("record_unshaped: %q", asked)
	}
}

// A pod that can never be limited is tried ever less often.
func TestAgain(t *testing.T) {
	r := newRig(t, `*'"attach"'*) echo '{"errno": 5, "error": "no"}';;`)
	ctx, cancel := context.WithCancel(context.Background())
	waits, at := []time.Duration{}, make(chan time.Time)
	close(at)
	r.after = func(wait time.Duration) <-chan time.Time {
		if waits = append(waits, wait/time.Second); len(waits) == 7 {
			cancel()
		}
		return at
	}
	first := make(chan error, 1)
	r.work(ctx, r.pod("10M"), false, first)
	if !slices.Equal(waits[:7], []time.Duration{2, 4, 8, 16, 32, 60, 60}) {
		t.Error(waits)
	}
}

// A FIFO in a place of the runtime's keeps nobody waiting.
func TestFIFO(t *testing.T) {
	r := newRig(t)
	path := filepath.Join(r.results, "net-1-eth0")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := linksOf(path); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
	if found := r.resultsOf("1"); len(found) != 0 {
		t.Error(found)
	}
}

// What others have attached stays, whatever the name of its network.
func TestLeftoversOfOthers(t *testing.T) {
	attached := func(id, network string) string {
		return `{"id": "` + id + `", "network": "` + network + `", "interface_gone": true}`
	}
	r := newRig(t, `*'"foreach_attachment"'*) echo '{"errno": 0, "result": [`+strings.Join([]string{
		attached("nri/c1/eth0", "nri"), attached("nri:1", "nri:"), attached("mine", "nri:"),
		attached("nri:2", "")}, ", ")+`]}';;`)
	if _, err := r.Synchronize(context.Background(), nil, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one is removed", func() bool { return r.was(t, "detach") != "" })
	r.remove(func(natra.Info) bool { return true })
	text, err := os.ReadFile(r.asked)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"call":"detach"`) && !strings.Contains(line, `"id":"nri:1"`) {
			t.Error(line)
		}
	}
	if err := r.ends(t, r.pod("10M")); err != nil || !strings.Contains(r.was(t, "attach"), `"network":"nri:"`) {
		t.Errorf("%v: %q", err, r.was(t, "attach"))
	}
}

// An annotation that is no rate is recorded, and not tried for ever.
func TestAnnotationIsNoRate(t *testing.T) {
	r := newRig(t)
	err := r.ends(t, r.pod("ten"))
	if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), "is wrong") {
		t.Error(err)
	}
	asked := r.was(t, "record_unshaped")
	if !strings.Contains(asked, `"reason":"annotation x: is wrong"`) ||
		!strings.Contains(asked, `"policy":{}`) ||
		!strings.Contains(asked, `"id":"nri:1"`) {
		t.Errorf("record_unshaped: %q", asked)
	}
	if asked := r.was(t, "attach"); asked != "" {
		t.Errorf("attach: %q", asked)
	}
}

// What natra's CNI plugin could not limit is limited, and what it has limited is not.
func TestOtherAttachment(t *testing.T) {
	for unshaped, wantsAttach := range map[string]bool{"true": true, "false": false} {
		r := newRig(t, `*'"find"'*) echo '{"errno": 0, "result": {"id": "cni"}}';;`,
			`*'"query"'*) echo '{"errno": 0, "result": {"id": "cni", "unshaped": `+unshaped+`}}';;`)
		if err := r.ends(t, r.pod("10M")); err != nil {
			t.Error(err)
		}
		if asked := r.was(t, "attach"); (asked != "") != wantsAttach {
			t.Errorf("unshaped %s: attach: %q", unshaped, asked)
		}
	}
}

// A limit that needs a rate can be configured without one, since the pods have theirs.
func TestConfiguration(t *testing.T) {
	r := newRig(t)
	if err := r.configure(`{"policy": {"group": "team", "group_floor_bits_per_sec": 1000000}}`); err != nil {
		t.Fatal(err)
	}
	asked := r.was(t, "policy_annotate_pod")
	if !strings.Contains(asked, `"group_floor_bits_per_sec":"1000000"`) ||
		strings.Contains(asked, "rate_bits_per_sec\"") {
		t.Errorf("policy_annotate_pod: %q", asked)
	}
}

const asks = `{"onError": "continue", "allowAnnotations": ["classes"]}`

// What a pod asks for by an annotation that it may use is attached, also if it has no rate
// for the rest.
func TestAllowedAnnotation(t *testing.T) {
	r := newRig(t, `*'"policy_annotate_pod"'*) echo '`+gets(`{"fast_pass": "off", "classes": [{"name": "lan", `+
		`"ingress_rate_bits_per_sec": 5, "dscps": [], "subnets": ["10.0.0.0/8"]}]}`, limited)+`';;`)
	if err := r.configure(asks); err != nil {
		t.Fatal(err)
	}
	if err := r.ends(t, r.pod("10M")); err != nil {
		t.Fatal(err)
	}
	asked := r.was(t, "policy_annotate_pod")
	for _, want := range []string{`"skip_bad":true`, `"allowed":["classes"]`,
		`"annotations":{"` + ingressAnnotation + `":"10M"}`, `"policy":{}`, `"pod":"shop/web"`,
		`"namespaces":"/var/lib/natra/namespaces.json"`, `"require_namespaces":false`} {
		if !strings.Contains(asked, want) {
			t.Errorf("policy_annotate_pod lacks %s: %s", want, asked)
		}
	}
	asked = r.was(t, "attach")
	for _, want := range []string{`"fast_pass":"2"`, `"classes":[{"ingress_rate_bits_per_sec":"5",` +
		`"name":"lan","subnets":["10.0.0.0/8"]}]`} {
		if !strings.Contains(asked, want) {
			t.Errorf("attach lacks %s: %s", want, asked)
		}
	}
}

// A pod whose annotations do not go together, or not with this kernel, keeps its rates.
func TestAnnotationsDoNotGoTogether(t *testing.T) {
	r := newRig(t, `*'"policy_annotate_pod"'*) echo '`+
		gets(`{"fast_pass": "off", "ingress_rate_bits_per_sec": 10000000}`, limited)+`';;`,
		`*'"attach"'*'"fast_pass":"2"'*) echo '{"errno": 34, "error": "too much"}';;`)
	for _, c := range []struct {
		onError    string
		mayHaveRun bool
		want       error
	}{{"continue", false, nil}, {"continue", true, nil}, {"fail", true, nil}, {"fail", false, syscall.ERANGE}} {
		if err := r.configure(`{"onError": "` + c.onError + `", "allowAnnotations": ["classes"]}`); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		r.after = func(time.Duration) <-chan time.Time { cancel(); return nil }
		first := make(chan error, 1)
		r.work(ctx, r.pod("10M"), c.mayHaveRun, first)
		cancel()
		if err := <-first; !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		last := r.was(t, "attach")
		if isPlain := !strings.Contains(last, "fast_pass"); !strings.Contains(last, `"10000000"`) ||
			isPlain != (c.want == nil) {
			t.Errorf("%+v: asked last: %s", c, last)
		}
	}
}

// An annotation of a tenant's that is not natra's is no way around a maximum, whatever is in it.
func TestUnfitAnnotation(t *testing.T) {
	r := newRig(t)
	if err := r.configure(""); err != nil {
		t.Fatal(err)
	}
	pod := r.pod("10M")
	pod.Annotations["x"], pod.Annotations["y\x00"], pod.Annotations["\xff"] = "\x00", "", "\xff"
	if err := r.ends(t, pod); err != nil {
		t.Error(err)
	}
	if asked := r.was(t, "attach"); !strings.Contains(asked, `"10000000"`) {
		t.Errorf("attach: %q", asked)
	}
}

// natractl list has the reason also of a natractl that fails before an attach, and a note that was
// logged is not followed by an empty line.
func TestAnnotateFails(t *testing.T) {
	r := newRig(t, `*'"policy_annotate_pod"'*) if [ -e $0.noted ]; then echo '{"errno": 5, "error": "breaks"}';
		else >$0.noted; echo '{"errno": 0, "result": {"policy": `+limited+`, "rates": `+limited+`, "note": "lowered"}}'; fi;;`,
		`*'"attach"'*) echo '{"errno": 34, "error": "too much"}';;`)
	ctx, cancel := context.WithCancel(context.Background())
	waits, at := 0, make(chan time.Time)
	close(at)
	r.after = func(time.Duration) <-chan time.Time {
		if waits++; waits == 2 {
			cancel()
		}
		return at
	}
	var lines strings.Builder
	r.log = slog.New(slog.NewTextHandler(&lines, nil))
	r.work(ctx, r.pod("10M"), false, make(chan error, 1))
	if asked := r.was(t, "record_unshaped"); !strings.Contains(asked, `"reason":"breaks"`) {
		t.Errorf("record_unshaped: %q", asked)
	}
	if text := lines.String(); !strings.Contains(text, "msg=lowered") || strings.Contains(text, `msg=""`) {
		t.Error(text)
	}
}

// An annotation that is wrong is recorded with natra's text, and not tried for ever.
func TestAnnotationIsWrong(t *testing.T) {
	r := newRig(t, `*'"allowed":["classes"],"annotations":{'*) echo '{"errno": 22, "error": "annotation x: is wrong"}';;`)
	if err := r.configure(`{"onError": "fail", "allowAnnotations": ["classes"]}`); err != nil {
		t.Fatal(err)
	}
	if err := r.ends(t, r.pod("10M")); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
	if asked := r.was(t, "policy_annotate_pod"); !strings.Contains(asked, `"skip_bad":false`) {
		t.Errorf("policy_annotate_pod: %q", asked)
	}
	if asked := r.was(t, "record_unshaped"); !strings.Contains(asked, `"reason":"annotation x: is wrong"`) {
		t.Errorf("record_unshaped: %q", asked)
	}
}

// A pod that runs already cannot be refused, so a wrong annotation is left out: it would be a way
// around the maximum of the pod's namespace.
func TestAnnotationOfRunningPodIsWrong(t *testing.T) {
	r := newRig(t, `*'"skip_bad":false'*) echo '{"errno": 22, "error": "annotation x: is wrong"}';;`)
	r.config.Store(&config{OnError: "fail"})
	first := make(chan error, 1)
	r.work(context.Background(), r.pod("10M"), true, first)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if asked := r.was(t, "attach"); !strings.Contains(asked, `"10000000"`) {
		t.Errorf("attach: %q", asked)
	}
}

// A file of namespaces that has to be there keeps a pod from starting with "fail". One that runs
// already gets its limits when the file is there.
func TestNoNamespaces(t *testing.T) {
	const says = "namespaces.json: is not there"
	r := newRig(t, `*'"require_namespaces":true'*) if [ -e $0.namespaces ]; then echo '`+gets(limited, limited)+`';
		else echo '{"errno": 74, "error": "`+says+`"}'; fi;;`)
	if err := r.configure(`{"onError": "fail", "requireNamespaces": true}`); err != nil {
		t.Fatal(err)
	}
	err := r.RunPodSandbox(context.Background(), r.pod("10M"))
	if !errors.Is(err, syscall.EBADMSG) || !strings.Contains(err.Error(), says) {
		t.Error(err)
	}
	time.AfterFunc(again/2, func() { os.WriteFile(r.natractl+".namespaces", nil, 0o600) })
	first := make(chan error, 1)
	r.work(context.Background(), r.pod("10M"), true, first)
	if err = <-first; !errors.Is(err, syscall.EBADMSG) {
		t.Error(err)
	}
	if asked := r.was(t, "record_unshaped"); !strings.Contains(asked, says) {
		t.Errorf("record_unshaped: %q", asked)
	}
	if asked := r.was(t, "attach"); !strings.Contains(asked, `"10000000"`) {
		t.Errorf("attach: %q", asked)
	}
}

// A pod that could not be read, and turns out to ask for nothing, is not recorded any longer.
func TestRecordOfNothingGoes(t *testing.T) {
	r := newRig(t, `*'"policy_annotate_pod"'*) if [ -e $0.namespaces ]; then echo '`+gets("{}", "{}")+`';
		else echo '{"errno": 74, "error": "namespaces.json: is not there"}'; fi;;`,
		`*'"query"'*) echo '{"errno": 0, "result": {"id": "nri:1", "unshaped": true}}';;`)
	time.AfterFunc(again/2, func() { os.WriteFile(r.natractl+".namespaces", nil, 0o600) })
	first := make(chan error, 1)
	r.work(context.Background(), r.pod("10M"), true, first)
	if r.was(t, "record_unshaped") == "" || !strings.Contains(r.was(t, "detach"), `"id":"nri:1"`) {
		t.Errorf("record_unshaped: %q, detach: %q", r.was(t, "record_unshaped"), r.was(t, "detach"))
	}
}

// Of pods that have ended without a word nothing stays, and the works on others go on.
func TestEndedWithoutAWord(t *testing.T) {
	r := newRig(t)
	gone, stays := r.pod("10M"), r.pod("10M")
	gone.Id, stays.Id = "1", "2"
	for _, pod := range []*api.PodSandbox{gone, stays} {
		<-r.begin(pod, false)
		eventually(t, "the work does not end", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			select {
			case <-r.works[id(pod)].ended:
				return true
			default:
				return false
			}
		})
	}
	r.forget([]*api.PodSandbox{stays})
	if len(r.works) != 1 || r.works[id(stays)] == nil {
		t.Error(r.works)
	}
}

// An annotation that natra does not know would never be read, so it is refused at once.
func TestUnknownAnnotationIsNotAllowed(t *testing.T) {
	r := newRig(t, `*'"policy_annotate_pod"'*) echo '{"errno": 22, "error": "allowAnnotations: no"}';;`)
	err := r.configure(asks)
	if err == nil || err.Error() != "configuration: allowAnnotations: no" {
		t.Error(err)
	}
}

// A natractl that is older than the Go package is refused in one line, before any pod.
func TestOlderNatractl(t *testing.T) {
	r := newRig(t)
	if err := os.WriteFile(r.natractl, []byte("#!/bin/sh\necho '{\"version\": \"0.0.9\"}'\nread -r line\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	err := r.configure("")
	want := r.natractl + " 0.0.9 is older than this package, which needs " + natra.Needs
	if !errors.Is(err, syscall.EOPNOTSUPP) || !strings.HasSuffix(err.Error(), want) ||
		strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}

// The interface of a pod that may have run is the one that leads to the node by what libcni
// says, and not the one that has the address by now.
func TestInterfaceOfRunningPod(t *testing.T) {
	const address = "10.0.0.7"
	at := func(kind, name string, addresses ...net.IP) link {
		return link{name: name, kind: kind, addresses: addresses}
	}
	node := func(kind, name string, addresses ...net.IP) link {
		l := at(kind, name, addresses...)
		l.leaves, l.device, l.mac = kind != "", kind == "", net.HardwareAddr{2, 0, 0, 0, 0, 7}
		return l
	}
	const net1 = `{"containerId": "1", "ifName": "net1", "result": {"interfaces": [{"name": "net1",
		"mac": "02:00:00:00:00:07", "sandbox": "/"}]}}`
	own := net.ParseIP(address)
	const bare1 = `{"containerId": "1", "ifName": "net1", "result": {"interfaces": [
		{"name": "other", "sandbox": "/"}]}}`
	for what, c := range map[string]struct {
		links      []link
		hosts      string // of libcni's result
		mayHaveRun bool
		want, says string
		results    []string // of other networks
	}{
		"not run yet":         {[]link{at("dummy", "decoy", own), at("veth", "eth0")}, "veth1", false, "decoy", "", nil},
		"address has moved":   {[]link{at("dummy", "decoy", own), at("veth", "eth0")}, "veth1", true, "eth0", "", nil},
		"renamed, two lead":   {[]link{at("veth", "eth0", own), at("veth", "wan0")}, "veth2", true, "wan0", "", nil},
		"has moved away":      {[]link{at("dummy", "eth0", own)}, "veth1", true, "", "other end of \"veth1\"", nil},
		"no result":           {[]link{at("dummy", "eth0"), at("veth", "wan0", own)}, "", true, "wan0", "", nil},
		"no end on the node":  {[]link{at("dummy", "eth0"), at("veth", "wan0", own)}, "br0", true, "wan0", "", nil},
		"no result, a decoy":  {[]link{at("dummy", "eth0", own), at("veth", "wan0")}, "", true, "", "may not be its own", nil},
		"no result, two lead": {[]link{at("veth", "eth0", own), at("veth", "wan0")}, "", true, "", "may not be its own", nil},
		"no pair":             {[]link{node("macvlan", "eth0", own)}, "", true, "eth0", "", nil},
		"no pair, two lead":   {[]link{node("macvlan", "eth0", own), node("macvlan", "net1")}, "", true, "", "[eth0 net1]", nil},
		"beside a veth":       {[]link{node("macvlan", "eth0", own), at("veth", "wan0")}, "", true, "", "[eth0 wan0]", nil},
		"Multus":              {[]link{node("macvlan", "eth0", own), node("macvlan", "net1")}, "", true, "eth0", "", []string{net1}},
		"Multus, another MAC": {[]link{node("macvlan", "eth0", own), {name: "net1", kind: "vlan", leaves: true}}, "", true, "", "[eth0 net1]", []string{net1}},
		"a device":            {[]link{node("", "eth0", own)}, "", true, "eth0", "", nil},
		"no device":           {[]link{at("", "eth0", own)}, "", true, "", "may not be its own", nil},
		"above the pod's own": {[]link{node("", "wan0"), at("macvlan", "eth0", own)}, "", true, "", "may not be its own", nil},
		"netkit":              {[]link{at("dummy", "eth0", own), at("netkit", "wan1")}, "nk1", true, "wan1", "", nil},
		"netkit has moved":    {[]link{node("netkit", "eth0", own)}, "nk1", true, "", "other end of \"nk1\"", nil},
		"netkit, no result":   {[]link{at("netkit", "wan1", own)}, "", true, "wan1", "", nil},
		"netkit of the pod's": {[]link{at("netkit", "inner", own)}, "", true, "", "may not be its own", nil},
		"two results":         {[]link{node("macvlan", "eth0", own), node("macvlan", "net1")}, "", true, "eth0", "", []string{net1, bare1}},
		"a tunnel":            {[]link{node("", "wan0"), at("vxlan", "eth0", own)}, "", true, "", "may not be its own", nil},
		"loopback":            {[]link{node("", "wan0"), at("", "lo", own)}, "", true, "", "may not be its own", nil},
		"a pair of the pod's": {[]link{at("veth", "inner", own)}, "", true, "", "may not be its own", nil},
	} {
		r := newRig(t, `*'"find_leftovers"'*'"inner"'*) echo '{"errno": 0, "result": {"host_ifname": ""}}';;`,
			`*'"find_leftovers"'*'"wan0"'*) echo '{"errno": 0, "result": {"host_ifname": "veth2"}}';;`,
			`*'"find_leftovers"'*'"wan1"'*) echo '{"errno": 0, "result": {"host_ifname": "nk1"}}';;`)
		r.links = func(string) ([]link, error) { return c.links, nil }
		pod := r.pod("10M")
		pod.Ips = []string{address}
		if c.hosts != "" {
			c.results = append(c.results, `{"containerId": "1", "ifName": "eth0", "result": {"interfaces": [
				{"name": "`+c.hosts+`"}, {"name": "eth0", "sandbox": "/"}]}}`)
		}
		for i, text := range c.results {
			if err := os.WriteFile(fmt.Sprintf("%s/net-1-%d", r.results, i), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := r.interfaceOf(context.Background(), pod, c.mayHaveRun)
		if got != c.want || (err != nil) != (c.says != "") ||
			err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}
