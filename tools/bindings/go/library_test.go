// SPDX-License-Identifier: BSD-2-Clause

//go:build cgo

package natra

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// A namespace's file stays open while C may use it, also if the caller does not need it any more.
func TestFileIsKeptOpen(t *testing.T) {
	var m memory
	c := m.target(&Target{NetnsFile: open(t)})
	for range 3 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	var stat syscall.Stat_t
	if err := syscall.Fstat(int(c.netns_fd), &stat); err != nil {
		t.Error(err)
	}
	m.free()
}

func open(t *testing.T) *os.File {
	f, err := os.Open("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return f
}
