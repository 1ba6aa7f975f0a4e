// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Attributes are read as the kernel writes them.
func TestAttributes(t *testing.T) {
	info := native.AppendUint16(nil, 4) // without a value
	info = native.AppendUint16(info, 9)
	info = native.AppendUint16(info, 9)
	info = native.AppendUint16(info, unix.IFLA_INFO_KIND)
	info = append(info, "veth\x00\x00\x00\x00"...)
	if got := attribute(info, unix.IFLA_INFO_KIND); string(got) != "veth\x00" {
		t.Errorf("%q", got)
	}
	for size := range info {
		attribute(info[:size], unix.IFLA_INFO_KIND) // it is cut, which no kernel does
	}
}

// A message that is too short for what it says it is ends the answer, not the process.
func TestShortMessages(t *testing.T) {
	for kind, size := range map[uint16]int{
		unix.RTM_NEWLINK: unix.SizeofIfInfomsg, unix.RTM_NEWADDR: unix.SizeofIfAddrmsg,
		unix.RTM_NEWNSID: sizeofRtgenmsg, unix.NLMSG_ERROR: 4,
	} {
		for length := range size {
			datagram := native.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+length))
			datagram = native.AppendUint16(datagram, kind)
			datagram = append(datagram, make([]byte, 10+(length+3)&^3)...)
			_, err := readAnswer(datagram, size, func(_, _ []byte) error { return nil })
			if !errors.Is(err, errShort) {
				t.Errorf("type %d, %d bytes: %v", kind, length, err)
			}
		}
	}
}

// Nobody but the kernel answers, though a process in the namespace knows the ports of all sockets.
func TestForgedAnswers(t *testing.T) {
	var forged atomic.Int64
	ended, stop := make(chan struct{}), make(chan struct{})
	path := ownNetns(t, func() error {
		// The kernel gives the first socket of a process the same port each time.
		first, _ := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		defer unix.Close(first)
		if err := unix.Connect(first, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return err
		}
		to, err := unix.Getsockname(first)
		if err != nil {
			return err
		}
		s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		if err = unix.Bind(s, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return err
		}
		go func() {
			defer close(ended)
			defer unix.Close(s)
			forge(s, to, stop, &forged)
		}()
		return nil
	})
	defer func() { close(stop); <-ended }()
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		if links, err := linksOf(path); err != nil || len(links) == 0 || links[0].name != "lo" {
			t.Fatalf("%v, %v", links, err)
		}
	}
	if forged.Load() < 100 {
		t.Errorf("only %d messages were tried", forged.Load())
	}
}

// forge sends messages without a body to a port.
func forge(s int, to unix.Sockaddr, stop chan struct{}, tried *atomic.Int64) {
	datagram := native.AppendUint32(nil, unix.NLMSG_HDRLEN)
	datagram = native.AppendUint16(datagram, unix.RTM_NEWLINK)
	datagram = append(native.AppendUint16(datagram, unix.NLM_F_MULTI), make([]byte, 8)...)
	for {
		select {
		case <-stop:
			return
		default:
		}
		// To a socket of nobody, and to one that is connected to the kernel, it is refused.
		_ = unix.Sendto(s, datagram, unix.MSG_DONTWAIT, to)
		tried.Add(1)
	}
}

// ownNetns returns a network namespace in which prepare has run.
func ownNetns(t *testing.T, prepare func() error) string {
	t.Helper()
	made := make(chan *os.File)
	go func() {
		defer close(made)
		runtime.LockOSThread()
		if unix.Unshare(unix.CLONE_NEWNET) == nil && prepare() == nil {
			file, _ := os.Open("/proc/thread-self/ns/net")
			made <- file
		}
	}()
	netns := <-made
	if netns == nil {
		t.Skip("needs root")
	}
	t.Cleanup(func() { netns.Close() })
	return fmt.Sprintf("/proc/self/fd/%d", netns.Fd())
}

// The interfaces of another namespace are looked at, one above an interface of this one is told
// from others, and the process stays in its own namespace.
func TestLinksOfPod(t *testing.T) {
	path := ownNetns(t, func() error { return nil })
	before, _ := os.Readlink("/proc/self/ns/net")
	for range 20 {
		links, err := linksOf(path)
		if err != nil || len(links) == 0 || links[0].name != "lo" || links[0].leaves {
			t.Fatalf("%v, %v", links, err)
		}
	}
	if after, _ := os.Readlink("/proc/self/ns/net"); after != before {
		t.Errorf("%s has become %s", before, after)
	}
}

// What a pod makes without bound is not read without bound, and addresses are read once for all
// interfaces.
func TestLinksOfPodWithMany(t *testing.T) {
	add := func(number int) error {
		peer := put(unix.IFLA_INFO_DATA, nil)
		info := put(unix.IFLA_LINKINFO, append(put(unix.IFLA_INFO_KIND, []byte("veth")), peer...))
		for range number {
			if err := ask(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK,
				unix.SizeofIfInfomsg, info, func(_, _ []byte) error { return nil }); err != nil {
				return err
			}
		}
		return nil
	}
	links, err := linksOf(ownNetns(t, func() error { return add(200) }))
	if err != nil || len(links) < 401 || links[1].kind != "veth" || links[1].mac == nil || links[1].device {
		t.Errorf("%d links, %v", len(links), err)
	}
	if _, err = linksOf(ownNetns(t, func() error { return add(600) })); !errors.Is(err, syscall.E2BIG) {
		t.Error(err)
	}
}
