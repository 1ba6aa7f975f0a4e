// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// standard is the name that runtimes give to a pod's interface.
const standard = "eth0"

// interfaceOf returns the interface that has the first of a pod's addresses. Without an
// address it is the one of the standard name.
func interfaceOf(netns string, addresses []string) (name string, err error) {
	if len(addresses) == 0 {
		return standard, nil
	}
	want := net.ParseIP(addresses[0])
	if want == nil {
		return "", fmt.Errorf("address %q is no IP address", addresses[0])
	}
	file, err := os.Open(netns)
	if err != nil {
		return "", err
	}
	defer file.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread is not unlocked, so it ends with the goroutine: it must not
		// run others in the pod's namespace.
		runtime.LockOSThread()
		if err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err == nil {
			name, err = withAddress(want)
		}
	}()
	<-done
	return name, err
}

// withAddress returns the interface of this namespace that has an address.
func withAddress(want net.IP) (string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, one := range all {
		addresses, err := one.Addrs()
		if err != nil {
			continue // it is gone
		}
		for _, a := range addresses {
			if block, ok := a.(*net.IPNet); ok && block.IP.Equal(want) {
				return one.Name, nil
			}
		}
	}
	return "", fmt.Errorf("no interface has %v: %w", want, syscall.ENODEV)
}
