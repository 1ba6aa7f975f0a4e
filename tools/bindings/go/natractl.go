// SPDX-License-Identifier: BSD-2-Clause

package natra

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"syscall"
)

// natractl is the back end that runs `natractl call`.
type natractl struct {
	path    string
	options Options
}

// The directories of administrators, which are not always in $PATH.
var natractlPaths = []string{"/usr/local/sbin/natractl", "/usr/sbin/natractl"}

func findNatractl(name string) (string, error) {
	if name != "" {
		return exec.LookPath(name)
	}
	path, err := exec.LookPath("natractl")
	for i := 0; err != nil && i < len(natractlPaths); i++ {
		if found, other := exec.LookPath(natractlPaths[i]); other == nil {
			return found, nil
		}
	}
	return path, err
}

func openNatractl(options Options) (backend, error) {
	path, err := findNatractl(options.Natractl)
	if err != nil {
		return nil, &Error{Call: "open", Errno: syscall.ENOENT, Text: err.Error()}
	}
	return &natractl{path, options}, nil
}

// args are the members of a request.
type args map[string]any

func (n *natractl) open() args {
	open := args{"call": "open", "keep_programs": n.options.KeepPrograms,
		"refuse_other_abi": n.options.RefuseOtherABI, "log": n.options.Log != nil}
	if n.options.BPFFSPath != "" {
		open["bpffs_path"] = n.options.BPFFSPath
	}
	return open
}

// call runs natractl for one call. If result is not nil, it gets the result.
func (n *natractl) call(ctx context.Context, name string, a args, result any) error {
	return n.callWith(ctx, name, a, nil, result)
}

func (n *natractl) callWith(ctx context.Context, name string, a args, file *os.File, result any) error {
	if err := ended(ctx, name); err != nil {
		return err
	}
	p, err := n.start(ctx, name, file)
	if err != nil {
		return err
	}
	defer p.end()
	if err := p.ask(ctx, "open", n.open(), nil); err != nil {
		return err
	}
	return p.ask(ctx, name, a, result)
}

// target has the members of a target that are given, and the file that goes with them.
func (t *Target) args() (args, *os.File) {
	a := args{}
	for key, text := range map[string]string{"id": t.ID, "ifname": t.Ifname,
		"netns": t.Netns, "network": t.Network, "label": t.Label} {
		if text != "" {
			a[key] = text
		}
	}
	if t.NetnsFile != nil {
		a["netns_fd"] = strconv.FormatUint(uint64(t.NetnsFile.Fd()), 10)
	}
	return a, t.NetnsFile
}

// args has the fields that are not zero: an older natractl does not know the newest.
// Numbers are texts, because those of JSON are not exact everywhere.
func (p *Policy) args() args { return fields(reflect.ValueOf(*p)) }

func fields(v reflect.Value) args {
	a := args{}
	for i := range v.NumField() {
		field, f := v.Type().Field(i), v.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case f.IsZero():
		case f.CanUint():
			a[name] = strconv.FormatUint(f.Uint(), 10)
		case f.CanInt():
			a[name] = strconv.FormatUint(uint64(f.Int()), 10)
		case name == "classes":
			classes := make([]args, f.Len())
			for i := range classes {
				classes[i] = fields(f.Index(i))
			}
			a[name] = classes
		default:
			a[name] = f.Interface()
		}
	}
	return a
}

func (n *natractl) target(ctx context.Context, name string, t *Target, more args, result any) error {
	target, file := t.args()
	a := args{"target": target}
	for key, value := range more {
		a[key] = value
	}
	return n.callWith(ctx, name, a, file, result)
}

func (n *natractl) attach(ctx context.Context, t *Target, p *Policy) (info Info, err error) {
	err = n.target(ctx, "attach", t, args{"policy": p.args()}, &info)
	return info, err
}

func (n *natractl) configure(ctx context.Context, id string, p *Policy) error {
	return n.call(ctx, "configure", args{"id": id, "policy": p.args()}, nil)
}

func (n *natractl) upgrade(ctx context.Context, id string) error {
	return n.call(ctx, "upgrade", args{"id": id}, nil)
}

func (n *natractl) detach(ctx context.Context, t *Target) (bool, error) {
	var result struct{ Removed bool }
	err := n.target(ctx, "detach", t, nil, &result)
	return result.Removed, err
}

func (n *natractl) check(ctx context.Context, id string, p *Policy) error {
	a := args{"id": id}
	if p != nil {
		a["policy"] = p.args()
	}
	return n.call(ctx, "check", a, nil)
}

func (n *natractl) query(ctx context.Context, id string) (info Info, err error) {
	err = n.call(ctx, "query", args{"id": id}, &info)
	return info, err
}

func (n *natractl) find(ctx context.Context, t *Target) (string, error) {
	var result struct {
		ID string `json:"id"`
	}
	err := n.target(ctx, "find", t, nil, &result)
	return result.ID, err
}

func (n *natractl) stats(ctx context.Context, id string) (stats Stats, err error) {
	err = n.call(ctx, "stats", args{"id": id}, &stats)
	return stats, err
}

func (n *natractl) foreachStats(ctx context.Context) (all []InfoStats, err error) {
	err = n.call(ctx, "foreach_stats", nil, &all)
	return all, err
}

func (n *natractl) foreachAttachment(ctx context.Context) (all []Info, err error) {
	err = n.call(ctx, "foreach_attachment", nil, &all)
	return all, err
}

func (n *natractl) foreachNeighbour(ctx context.Context, id string) (all []Neighbour, err error) {
	err = n.call(ctx, "foreach_neighbour", args{"id": id}, &all)
	return all, err
}

func (n *natractl) foreachSubnet(ctx context.Context, id string) (all []string, err error) {
	err = n.call(ctx, "foreach_subnet", args{"id": id}, &all)
	return all, err
}

func (n *natractl) top(ctx context.Context, id string, d Direction) (all []Flow, err error) {
	err = n.call(ctx, "top", args{"id": id, "direction": uint32(d)}, &all)
	return all, err
}

func (n *natractl) recordUnshaped(ctx context.Context, t *Target, p *Policy, reason string) error {
	return n.target(ctx, "record_unshaped", t,
		args{"policy": p.args(), "reason": reason}, nil)
}

func (n *natractl) findLeftovers(ctx context.Context, t *Target) (found Leftovers, err error) {
	err = n.target(ctx, "find_leftovers", t, nil, &found)
	return found, err
}

func (n *natractl) drainLeftovers(ctx context.Context, t *Target) error {
	return n.target(ctx, "drain_leftovers", t, nil, nil)
}

func (n *natractl) removeLeftovers(ctx context.Context, t *Target) error {
	return n.target(ctx, "remove_leftovers", t, nil, nil)
}

func (n *natractl) gc(ctx context.Context, network *string, keep []string) (int, error) {
	var result struct {
		Removed int `json:"removed"`
	}
	a := args{}
	if network != nil {
		a["network"] = *network
	}
	if len(keep) > 0 {
		a["keep"] = keep
	}
	err := n.call(ctx, "gc", a, &result)
	return result.Removed, err
}

func (n *natractl) probe(ctx context.Context) (features Features, err error) {
	err = n.call(ctx, "probe", nil, &features)
	return features, err
}

func (n *natractl) status(ctx context.Context) error { return n.call(ctx, "status", nil, nil) }

func (n *natractl) policyCheck(p *Policy) error {
	return n.call(context.Background(), "policy_check", args{"policy": p.args()}, nil)
}

func (n *natractl) policyAnnotate(ctx context.Context, p *Policy, a Annotations) (policy Policy, err error) {
	err = n.call(ctx, "policy_annotate", args{"policy": p.args(), "annotations": a.Of,
		"allowed": a.Allowed, "allow_all": a.AllowAll, "skip_bad": a.SkipBad}, &policy)
	return policy, err
}

func (n *natractl) policyAnnotatePod(ctx context.Context, p *Policy, a Annotations, pod Pod) (got PodPolicy, err error) {
	asked := args{"policy": p.args(), "annotations": a.Of, "allowed": a.Allowed, "skip_bad": a.SkipBad,
		"pod": pod.Name, "require_namespaces": pod.RequireNamespaces}
	if pod.Namespaces != "" {
		asked["namespaces"] = pod.Namespaces
	}
	err = n.call(ctx, "policy_annotate_pod", asked, &got)
	return got, err
}

func (n *natractl) parse(what, text string) (uint64, error) {
	var result struct {
		Value json.Number `json:"value"`
	}
	err := n.call(context.Background(), "parse_"+what, args{"text": text}, &result)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(result.Value.String(), 10, 64)
}

func (n *natractl) version() (string, error) {
	p, err := n.start(context.Background(), "version", nil)
	if err != nil {
		return "", err
	}
	p.end()
	return p.version, nil
}

// natractlEvents is a natractl that reads events.
type natractlEvents struct{ *process }

func (n *natractl) openEvents(ctx context.Context) (eventReader, error) {
	if err := ended(ctx, "events_open"); err != nil {
		return nil, err
	}
	// The process lives until the reader is closed.
	p, err := n.start(context.Background(), "events_open", nil)
	if err != nil {
		return nil, err
	}
	err = p.ask(ctx, "open", n.open(), nil)
	if err == nil {
		err = p.ask(ctx, "events_open", nil, nil)
	}
	if err != nil {
		p.end()
		return nil, err
	}
	return natractlEvents{p}, nil
}

func (e natractlEvents) read() (events []Event, err error) {
	err = e.ask(context.Background(), "events_read", nil, &events)
	return events, err
}

func (e natractlEvents) close() { e.end() }
