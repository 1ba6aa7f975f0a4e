// SPDX-License-Identifier: BSD-2-Clause

package natra_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	natra "github.com/OWNER/natra/tools/bindings/go"
)

func TestOtherNatractl(t *testing.T) {
	for _, test := range []struct {
		name   string
		errno  syscall.Errno
		want   string
		script []string
	}{
		{"older", syscall.EOPNOTSUPP, " 0.0.9 is older than this package, which needs " + natra.Needs,
			[]string{`echo '{"version": "0.0.9"}'`, "read line"}},
		{"without call", syscall.EOPNOTSUPP, " 0.0.8 is older than this package, which needs " + natra.Needs,
			[]string{`case $* in *version) echo '{"version": "0.0.8"}';;`,
				`*) echo "natractl: COMMAND: 'call' is not known" >&2; exit 2;; esac`}},
		{"something else", syscall.EIO, "is no natractl: what is it?",
			[]string{"echo 'what is it?' >&2", "exit 1"}},
		{"no answer", syscall.EIO, "natractl did not answer (EOF): killed",
			[]string{`echo '{"version": "99.0.0"}'`, "read line", "echo killed >&2"}},
		{"bad answer", syscall.EIO, "the answer of natractl 99.0.0: ",
			[]string{`echo '{"version": "99.0.0"}'`, "read line", `echo '{"errno": 0}'`, "read line",
				`echo '{"errno": 0, "result": "soon"}'`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, err := natra.New(natra.Options{Natractl: fake(t, test.script...)})
			if err != nil {
				t.Fatal(err)
			}
			_, err = n.Attachments(context.Background())
			if !errors.Is(err, test.errno) || !strings.Contains(err.Error(), test.want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("%v (%d)", err, err)
			}
		})
	}
	if _, err := natra.New(natra.Options{Natractl: "/nonexistent/natractl"}); !errors.Is(err, syscall.ENOENT) {
		t.Error(err)
	}
}

// A natractl that hangs is not waited for when the context has ended.
func TestHangingNatractl(t *testing.T) {
	n, err := natra.New(natra.Options{Natractl: fake(t, `echo '{"version": "99.0.0"}'`, "exec sleep 60")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err = n.Attachments(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

// tests/bindings/go.py runs this with a library that says it is older.
func TestOlderLibrary(t *testing.T) {
	want := os.Getenv("NATRA_TEST_OLDER")
	if want == "" || !natra.HasLibrary() {
		t.Skip("no older library")
	}
	_, err := natra.New(natra.Options{})
	if !errors.Is(err, syscall.EOPNOTSUPP) || err.Error() !=
		"libnatra "+want+" is older than this package, which needs "+natra.Needs {
		t.Error(err)
	}
}

// tests/bindings/go.py runs this with a library whose walks fail when they have told of "told".
func TestBrokenWalk(t *testing.T) {
	if os.Getenv("NATRA_TEST_BROKEN_WALK") == "" || !natra.HasLibrary() {
		t.Skip("no library that is broken")
	}
	n, err := natra.New(natra.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.Attachments(context.Background())
	_, ofStats := n.AllStats(context.Background())
	for _, err := range []error{err, ofStats} {
		var e *natra.Error
		if !errors.As(err, &e) || e.Code != natra.CodeNotAttached || e.Text != "'broken' is not attached" {
			t.Errorf("%+v", err)
		}
	}
}

func TestHistogram(t *testing.T) {
	var h natra.Histogram
	err := h.UnmarshalJSON([]byte(`{"count": 6, "sum_ns": 5000, "buckets": [
		{"up_to_ns": 1024, "count": 1}, {"up_to_ns": 4096, "count": 2}, {"count": 3}]}`))
	if err != nil || h.Sum != 5000 || h.Count[0] != 1 || h.Count[2] != 2 ||
		h.Count[natra.HistogramBuckets-1] != 3 || h.Total() != 6 {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestEventOverTheLimit(t *testing.T) {
	var e natra.Event
	err := e.UnmarshalJSON([]byte(`{"direction": "egress", "reason": "over_limit",
		"over_limit_percent": 250}`))
	if err != nil || e.Reason != natra.EventOverLimit || e.OverLimitPercent != 250 {
		t.Errorf("%+v, %v", e, err)
	}
}
