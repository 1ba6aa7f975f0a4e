// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
)

// has returns whether natractl, or a test in its place, has made a file.
func (r *rig) has(name string) bool {
	_, err := os.Stat(r.natractl + name)
	return err == nil
}

// make makes a file for natractl, and returns what removes it.
func (r *rig) make(t *testing.T, name string) func() {
	t.Helper()
	if err := os.WriteFile(r.natractl+name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() { os.Remove(r.natractl + name) }
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// isIdle returns whether nothing is done any more on a pod that has ended.
func (r *rig) isIdle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.works) == 0
}

// slowAttach is an attach that goes on for as long as there is a file, whatever ends the call.
const slowAttach = `*'"attach"'*) trap '' TERM; while [ -e $0.hold ]; do sleep 0.02; done
	touch $0.attached; echo '{"errno": 0, "result": {}}';;
	*'"detach"'*) rm -f $0.attached; echo '{"errno": 0, "result": {"removed": true}}';;`

// A pod that is refused because its limits take too long is refused before the runtime's time is over,
// and nothing of them stays.
func TestSlowAttachIsRefused(t *testing.T) {
	r := newRig(t, slowAttach)
	if err := r.configure(`{"onError": "fail"}`); err != nil {
		t.Fatal(err)
	}
	release, begin := r.make(t, ".hold"), time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Duration(r.timeout.Load()))
	defer cancel()
	if err := r.RunPodSandbox(ctx, r.pod("10M")); err == nil || !strings.Contains(err.Error(), "no answer in 1s") {
		t.Error(err)
	}
	if took := time.Since(begin); took > 1800*time.Millisecond {
		t.Error(took)
	}
	// The runtime may say that the pod has stopped, and it does not wait for the attach either.
	if err := r.StopPodSandbox(context.Background(), r.pod("10M")); err != nil {
		t.Error(err)
	}
	if asked := r.was(t, "detach"); asked != "" {
		t.Errorf("detach: %q", asked)
	}
	release()
	eventually(t, "the limits do not go", r.isIdle)
	if r.has(".attached") || r.was(t, "attach") == "" {
		t.Error("the limits have stayed")
	}
}

// A pod that is begun again after it was refused keeps the limits that it gets then.
func TestBegunAfterAnEnd(t *testing.T) {
	r := newRig(t, slowAttach)
	release := r.make(t, ".hold")
	r.begin(r.pod("10M"), false)
	eventually(t, "no attach", func() bool { return r.was(t, "attach") != "" })
	r.end(r.pod("10M"))
	first := r.begin(r.pod("10M"), false)
	release()
	if err := <-first; err != nil {
		t.Error(err)
	}
	if !r.has(".attached") || r.was(t, "detach") == "" {
		t.Error("the limits were removed after they were made")
	}
}

// Pods that run already are limited a few at once, and none that starts waits for them.
func TestManyRunningPods(t *testing.T) {
	r := newRig(t, `*'"policy_annotate_pod"'*'"pod":"shop/old"'*) echo >>$0.began
		while [ -e $0.hold ]; do sleep 0.02; done; echo '`+gets(limited, limited)+`';;`,
		`*'"attach"'*'"shop/old"'*) echo >>$0.done; echo '{"errno": 0, "result": {}}';;`)
	count := func(name string) int {
		text, _ := os.ReadFile(r.natractl + name)
		return len(text)
	}
	release, pods := r.make(t, ".hold"), []*api.PodSandbox{}
	for i := range 3 * turnsAtOnce {
		pod := r.pod("10M")
		pod.Id, pod.Name = fmt.Sprint("old", i), "old"
		pods = append(pods, pod)
	}
	if _, err := r.Synchronize(context.Background(), pods, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "none begins", func() bool { return count(".began") == turnsAtOnce })
	if err := r.RunPodSandbox(context.Background(), r.pod("10M")); err != nil {
		t.Error(err)
	}
	eventually(t, "a new pod waits", func() bool { return strings.Contains(r.was(t, "attach"), `"nri:1"`) })
	if began := count(".began"); began != turnsAtOnce {
		t.Errorf("%d at once", began)
	}
	release()
	eventually(t, "not all are limited", func() bool { return count(".done") == len(pods) })
}
