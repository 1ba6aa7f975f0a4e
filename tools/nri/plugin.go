// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	natra "github.com/OWNER/natra/tools/bindings/go"
)

const (
	// The attachments of this plugin have this network, and ids that begin with it. No network of
	// CNI can have such a name: natra's CNI plugin uses the names of those in the same way.
	network = "nri:"
	// natra-agent writes what namespaces may have there.
	namespacesFile = "/var/lib/natra/namespaces.json"
	// An attach that failed or took too long is tried again after this time, and after twice
	// as long each time up to the longest one, until the pod is gone.
	again     = 2 * time.Second
	againMost = time.Minute
	// See sweep.
	sweepEvery = 10 * time.Second
	// Of pods that run already so many are worked on at once, each for this long: there may be
	// hundreds when the plugin starts, and one that starts does not wait for them.
	turnsAtOnce = 4
	turnMost    = 10 * time.Second
)

// config is the plugin's file among the runtime's, such as /etc/nri/conf.d/natra.conf.
type config struct {
	// Policy is for all pods; the rates are the pods' own if they have annotations.
	Policy natra.Policy `json:"policy"`
	// OnError says what becomes of a pod that cannot be limited: "continue", the
	// default, or "fail".
	OnError string `json:"onError"`
	// AllowAnnotations names those of natra's annotations that pods may use, as the key
	// of the CNI plugin does.
	AllowAnnotations []string `json:"allowAnnotations"`
	// RequireNamespaces is the plugin's key, too: a pod cannot do without the file of namespaces.
	RequireNamespaces bool `json:"requireNamespaces"`
}

// work is what is done on a pod: it gets limits, or loses them.
type work struct {
	cancel context.CancelFunc
	ended  chan struct{}
	isLast bool // the pod has stopped
}

type plugin struct {
	n            *natra.Handle
	log          *slog.Logger
	isConfigured bool
	// The runtime configures the plugin whenever it connects, while pods are worked on. timeout
	// is the time.Duration after which the plugin answers, whatever is done by then.
	config  atomic.Pointer[config]
	timeout atomic.Int64
	// heard has something when the runtime has begun to configure the plugin.
	heard chan struct{}
	turns chan struct{}
	// links returns the interfaces of a network namespace, kindOnNode the kind of one on the
	// node, results is libcni's directory, and namespaces natra-agent's file.
	links      func(netns string) ([]link, error)
	kindOnNode func(name string) string
	results    string
	namespaces string
	after      func(time.Duration) <-chan time.Time

	mu      sync.Mutex
	refused error
	// requestTimeout returns how long the runtime that is connected waits for an answer.
	requestTimeout func() time.Duration
	// works has the newest work on each pod that has started and not stopped, or whose limits
	// still go, by the id of its attachment.
	works map[string]*work
}

func newPlugin(n *natra.Handle, log *slog.Logger) *plugin {
	p := &plugin{n: n, log: log, heard: make(chan struct{}, 1), turns: make(chan struct{}, turnsAtOnce),
		links: linksOf, kindOnNode: kindOf, results: resultsDir, namespaces: namespacesFile,
		after: time.After, works: map[string]*work{},
		requestTimeout: func() time.Duration { return stub.DefaultRequestTimeout }}
	p.config.Store(&config{})
	p.readTimeout()
	return p
}

// readTimeout takes half of what the runtime says, so that there is time for the answer. A runtime
// may say nothing.
func (p *plugin) readTimeout() {
	p.mu.Lock()
	defer p.mu.Unlock()
	timeout := p.requestTimeout()
	if timeout <= 0 {
		timeout = stub.DefaultRequestTimeout
	}
	p.timeout.Store(int64(timeout / 2))
}

// configure reads a configuration; "" is the default.
func (p *plugin) configure(text string) error {
	c := config{OnError: "continue"}
	if text != "" {
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
	}
	if c.OnError != "continue" && c.OnError != "fail" {
		return fmt.Errorf("configuration: onError: %q is neither \"continue\" nor \"fail\"", c.OnError)
	}
	// The pods' own rates come later. A limit without one is left out until then, but
	// its value has to be a possible one.
	// Also with the library this asks natractl, as each pod's start does: one that is missing
	// or too old is told now.
	now, err := p.n.AnnotatePod(context.Background(), c.Policy,
		natra.Annotations{Allowed: c.AllowAnnotations}, natra.Pod{Name: "/"})
	if err == nil {
		err = p.n.CheckPolicy(now.Policy)
	}
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	p.config.Store(&c)
	return nil
}

// Configure is called by the runtime when it has accepted the plugin.
func (p *plugin) Configure(_ context.Context, text, runtime, version string) (api.EventMask, error) {
	select {
	case p.heard <- struct{}{}:
	default:
	}
	p.readTimeout()
	if !p.isConfigured {
		if err := p.configure(text); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.refused = err
			return 0, err
		}
	}
	p.log.Info("configured", "runtime", runtime, "version", version)
	return api.ParseEventMask("RunPodSandbox,StopPodSandbox,RemovePodSandbox")
}

// Synchronize is called with the pods that run already. Those without their limits get
// them, and what is left of pods that have gone is removed. The runtime waits for the
// answer, so this happens afterwards.
func (p *plugin) Synchronize(_ context.Context, pods []*api.PodSandbox, _ []*api.Container) ([]*api.ContainerUpdate, error) {
	p.forget(pods)
	for _, pod := range pods {
		p.begin(pod, true)
	}
	go p.remove(func(one natra.Info) bool {
		// One that is listed belongs to a pod that began before, so it is present
		// unless it has ended.
		p.mu.Lock()
		defer p.mu.Unlock()
		w := p.works[one.ID]
		return w == nil || w.isLast
	})
	return nil, nil
}

// forget lets go of the works on pods that are not listed: they have ended without a word, as
// sweep says.
func (p *plugin) forget(listed []*api.PodSandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.works, func(one string, w *work) bool {
		select {
		case <-w.ended:
			return !slices.ContainsFunc(listed, func(pod *api.PodSandbox) bool { return id(pod) == one })
		default:
			return false
		}
	})
}

// sweep removes the attachments of pods whose interface is gone, again and again:
// containerd does not tell of the end of pods that it has started before it was started
// anew itself.
func (p *plugin) sweep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(sweepEvery):
		}
		p.remove(func(one natra.Info) bool { return one.InterfaceGone })
	}
}

// remove removes those of this plugin's attachments that are to go.
func (p *plugin) remove(isToGo func(natra.Info) bool) {
	all, err := p.n.Attachments(context.Background())
	if err != nil {
		p.log.Error("looking for what earlier pods have left", "error", err)
	}
	for _, one := range all {
		if one.Network != network || !strings.HasPrefix(one.ID, network) || !isToGo(one) {
			continue
		}
		_, err := p.n.Detach(context.Background(), natra.Target{ID: one.ID})
		if err != nil {
			p.log.Error("removing what an earlier pod has left", "id", one.ID, "error", err)
		}
	}
}

// RunPodSandbox is called when a pod has its interface, and none of its containers runs.
func (p *plugin) RunPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	done := p.begin(pod, false)
	timeout := time.Duration(p.timeout.Load())
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var err error
	select {
	case err = <-done:
	case <-timer.C:
		err = fmt.Errorf("no answer in %v", timeout)
		p.log.Warn("not limited yet", "pod", name(pod), "error", err)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil && p.config.Load().OnError == "fail" {
		// The answer must not wait for that: after its own time the runtime starts the pod.
		p.end(pod)
		return fmt.Errorf("natra: %w", err)
	}
	return nil
}

// StopPodSandbox is called when a pod ends. If its limits go too slowly, the runtime does not wait for
// that.
func (p *plugin) StopPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	select {
	case <-p.end(pod):
	case <-time.After(time.Duration(p.timeout.Load())):
	}
	return nil
}

// RemovePodSandbox is called after StopPodSandbox, or in its place if the plugin was not
// there when the pod stopped.
func (p *plugin) RemovePodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return p.StopPodSandbox(ctx, pod)
}

// follow begins a work on a pod, which ends the one before and comes behind it: what that still
// attaches would stay if it was detached before.
func (p *plugin) follow(id string, isLast bool, do func(context.Context)) *work {
	ctx, cancel := context.WithCancel(context.Background())
	w := &work{cancel, make(chan struct{}), isLast}
	p.mu.Lock()
	before := p.works[id]
	p.works[id] = w
	p.mu.Unlock()
	if before != nil {
		before.cancel()
	}
	go func() {
		defer close(w.ended)
		if before != nil {
			<-before.ended
		}
		do(ctx)
		if !isLast {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.works[id] == w {
			delete(p.works, id)
		}
	}()
	return w
}

// begin limits a pod, and tries again until that has succeeded or the pod is gone. What its
// annotations say cannot change, so they are not read again if they are wrong. The result
// has the error of the first time. `mayHaveRun` says that processes of the pod may have changed
// its interfaces already.
func (p *plugin) begin(pod *api.PodSandbox, mayHaveRun bool) <-chan error {
	first := make(chan error, 1)
	if namespace(pod) == "" { // it is in the node's
		first <- nil
		return first
	}
	p.follow(id(pod), false, func(ctx context.Context) { p.work(ctx, pod, mayHaveRun, first) })
	return first
}

// turn waits until few works on pods that run are at it, and returns what ends the turn. So does its
// time, since there may be pods that take long.
func (p *plugin) turn(ctx context.Context) (func(), error) {
	select {
	case p.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	give := sync.OnceFunc(func() { <-p.turns })
	late := time.AfterFunc(turnMost, give)
	return func() {
		late.Stop()
		give()
	}, nil
}

// try limits a pod once. It returns whether that has failed because of an annotation.
func (p *plugin) try(ctx context.Context, pod *api.PodSandbox, mayHaveRun, waitsForTurn bool, noted *string) (isWrong bool, err error) {
	if waitsForTurn {
		end, err := p.turn(ctx)
		if err != nil {
			return false, err
		}
		defer end()
	}
	wanted, err := p.wanted(ctx, pod, mayHaveRun)
	if wanted.Note != "" && wanted.Note != *noted {
		*noted = wanted.Note
		p.log.Warn(*noted, "pod", name(pod))
	}
	if err == nil {
		return false, p.limit(ctx, pod, mayHaveRun, wanted)
	}
	policy := p.config.Load().Policy
	p.record(ctx, pod, mayHaveRun, natra.Policy{
		IngressRateBitsPerSec: policy.IngressRateBitsPerSec,
		EgressRateBitsPerSec:  policy.EgressRateBitsPerSec}, err)
	return isWrongText(err), err
}

func (p *plugin) work(ctx context.Context, pod *api.PodSandbox, mayHaveRun bool, first chan<- error) {
	said, noted, wait := "", "", again
	// A pod that has just started does not wait for those that ran already, later either.
	waitsForTurn := mayHaveRun
	// The pod starts when the first time is over.
	for ; ; mayHaveRun, wait = true, min(2*wait, againMost) {
		isWrong, err := p.try(ctx, pod, mayHaveRun, waitsForTurn, &noted)
		select {
		case first <- err:
		default:
		}
		if err == nil || ctx.Err() != nil || hasGone(pod) {
			return
		}
		if err.Error() != said {
			said = err.Error()
			p.log.Error("not limited", "pod", name(pod), "error", err)
		}
		if isWrong {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-p.after(wait):
		}
	}
}

// limit attaches limits to a pod, unless it has them.
func (p *plugin) limit(ctx context.Context, pod *api.PodSandbox, mayHaveRun bool, wanted natra.PodPolicy) error {
	policy, plain := wanted.Policy, wanted.Rates
	if !limits(policy) { // it asks for nothing
		if !mayHaveRun {
			return nil
		}
		return p.takeBack(ctx, pod)
	}
	// This plugin may have been here before it was started anew: what it has attached can
	// have been changed since.
	if p.hasLimits(ctx, pod, id(pod)) {
		return nil
	}
	target, err := p.targetOf(ctx, pod, mayHaveRun)
	if err != nil {
		return err
	}
	// So may natra's CNI plugin.
	found, err := p.n.Find(ctx, target)
	if err == nil && p.hasLimits(ctx, pod, found) {
		return nil
	}
	_, err = p.n.Attach(ctx, target, policy)
	goesOn := p.config.Load().OnError == "continue" || mayHaveRun // such a pod cannot be refused
	if err != nil && goesOn && !reflect.DeepEqual(policy, plain) && limits(plain) &&
		!errors.Is(err, syscall.EBUSY) && !errors.Is(err, syscall.EBADE) {
		// Values that are possible by themselves may not go together: the pod is not
		// to get rid of its limits by that.
		if _, wrong := p.n.Attach(ctx, target, plain); wrong == nil {
			p.log.Error("annotations do not count", "pod", name(pod), "error", err)
			policy, err = plain, nil
		}
	}
	if err == nil {
		p.log.Info("limited", "pod", name(pod), "interface", target.Ifname,
			"ingress_bits_per_sec", policy.IngressRateBitsPerSec,
			"egress_bits_per_sec", policy.EgressRateBitsPerSec)
		return nil
	}
	p.record(ctx, pod, mayHaveRun, policy, err)
	return err
}

// hasLimits returns whether an attachment limits a pod.
func (p *plugin) hasLimits(ctx context.Context, pod *api.PodSandbox, id string) bool {
	info, err := p.n.Query(ctx, id)
	if err != nil || info.Unshaped || info.InterfaceGone {
		return false
	}
	p.log.Info("has limits already", "pod", name(pod), "id", id)
	return true
}

// record records why a pod has no limits.
func (p *plugin) record(ctx context.Context, pod *api.PodSandbox, mayHaveRun bool, policy natra.Policy, reason error) {
	if ctx.Err() != nil {
		return
	}
	target, err := p.targetOf(ctx, pod, mayHaveRun)
	if err == nil {
		err = p.n.RecordUnshaped(ctx, target, policy, reason.Error())
	}
	if err != nil {
		p.log.Warn("the reason cannot be recorded", "pod", name(pod), "error", err)
	}
}

// takeBack removes what an earlier try has recorded of a pod.
func (p *plugin) takeBack(ctx context.Context, pod *api.PodSandbox) error {
	info, err := p.n.Query(ctx, id(pod))
	if err != nil || !info.Unshaped {
		return nil
	}
	_, err = p.n.Detach(ctx, natra.Target{ID: id(pod)})
	return err
}

// end ends the work on a pod, and removes its limits. The result is closed when they have gone.
func (p *plugin) end(pod *api.PodSandbox) <-chan struct{} {
	return p.follow(id(pod), true, func(context.Context) {
		p.log.Info("has ended", "pod", name(pod))
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		_, err := p.n.Detach(ctx, natra.Target{ID: id(pod)})
		if err != nil {
			p.log.Warn("the limits stay until the next start", "pod", name(pod), "error", err)
		}
	}).ended
}

// limits returns whether a policy limits anything.
func limits(policy natra.Policy) bool {
	for _, c := range policy.Classes {
		if c.IngressRateBitsPerSec != 0 || c.EgressRateBitsPerSec != 0 {
			return true
		}
	}
	return policy.IngressRateBitsPerSec != 0 || policy.EgressRateBitsPerSec != 0 ||
		policy.Group != ""
}

// wanted returns what a pod gets by its annotations and its namespace. One that may have run cannot
// be kept from starting, so no wrong annotation keeps it from what its namespace has.
func (p *plugin) wanted(ctx context.Context, pod *api.PodSandbox, mayHaveRun bool) (natra.PodPolicy, error) {
	c := p.config.Load()
	asks := natra.Annotations{Of: pod.GetAnnotations(), Allowed: c.AllowAnnotations,
		SkipBad: c.OnError == "continue"}
	of := natra.Pod{Name: name(pod), Namespaces: p.namespaces, RequireNamespaces: c.RequireNamespaces}
	wanted, err := p.n.AnnotatePod(ctx, c.Policy, asks, of)
	if mayHaveRun && !asks.SkipBad && isWrongText(err) {
		asks.SkipBad = true
		wanted, err = p.n.AnnotatePod(ctx, c.Policy, asks, of)
	}
	return wanted, err
}

// isWrongText returns whether AnnotatePod has failed because of an annotation.
func isWrongText(err error) bool { return errors.Is(err, syscall.EINVAL) }

// hasGone returns whether a pod's network namespace is gone. ENOENT alone does not say so:
// natractl may be missing while another version of it is installed.
func hasGone(pod *api.PodSandbox) bool {
	_, err := os.Stat(namespace(pod))
	return errors.Is(err, os.ErrNotExist)
}

// targetOf returns a pod's interface.
func (p *plugin) targetOf(ctx context.Context, pod *api.PodSandbox, mayHaveRun bool) (natra.Target, error) {
	ifname, err := p.interfaceOf(ctx, pod, mayHaveRun)
	return natra.Target{ID: id(pod), Ifname: ifname, Netns: namespace(pod), Network: network,
		Label: name(pod)}, err
}

func id(pod *api.PodSandbox) string { return network + pod.GetId() }

func name(pod *api.PodSandbox) string { return pod.GetNamespace() + "/" + pod.GetName() }

// namespace returns the path of the pod's network namespace; "": it is the node's.
func namespace(pod *api.PodSandbox) string {
	for _, n := range pod.GetLinux().GetNamespaces() {
		if n.GetType() == "network" {
			return n.GetPath()
		}
	}
	return ""
}
