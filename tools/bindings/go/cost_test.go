// SPDX-License-Identifier: BSD-2-Clause

package natra_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	natra "github.com/OWNER/natra/tools/bindings/go"
)

// cpu returns the CPU time of this process and of those that it has waited for.
func cpu(t *testing.T) int64 {
	var sum int64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			t.Fatal(err)
		}
		sum += usage.Utime.Nano() + usage.Stime.Nano()
	}
	return sum
}

// TestCost prints the nanoseconds of attach and detach and those of them with a CPU, by
// turns for each back end. tests/bindings/cost.py compares them with those of C.
func TestCost(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv("NATRA_TEST_COST"))
	if err != nil {
		t.Skip("tests/bindings/cost.py runs this")
	}
	p := newPod(t)
	policy := mbit(10, 10)
	policy.EDTPacing = natra.EDTPacingOff
	for range count {
		for _, b := range backends() {
			b.options.KeepPrograms = true
			n := b.open(t)
			begin, before := time.Now(), cpu(t)
			if _, err := n.Attach(context.Background(), p.target("cost"), policy); err != nil {
				t.Fatal(err)
			}
			if _, err := n.Detach(context.Background(), p.target("cost")); err != nil {
				t.Fatal(err)
			}
			fmt.Println("cost", b.name, time.Since(begin).Nanoseconds(), cpu(t)-before)
		}
	}
}
