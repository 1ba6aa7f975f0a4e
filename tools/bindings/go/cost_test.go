// SPDX-License-Identifier: BSD-2-Clause

package natra_test

import (
	"context"
	"testing"

	"natra.io/go/natra"
)

// BenchmarkAttach measures an attach and a detach. tests/bindings/cost.py compares it with C.
func BenchmarkAttach(b *testing.B) {
	for _, one := range backends() {
		b.Run(one.name, func(b *testing.B) {
			p := newPod(b)
			one.options.KeepPrograms = true
			n := one.open(b)
			policy := mbit(10, 10)
			policy.EDT = natra.EDTOff
			for range b.N {
				if _, err := n.Attach(context.Background(), p.target("cost"), policy); err != nil {
					b.Fatal(err)
				}
				if err := n.Detach(context.Background(), p.target("cost")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
