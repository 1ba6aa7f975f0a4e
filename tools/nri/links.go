// SPDX-License-Identifier: BSD-2-Clause

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// A pod can make any number of interfaces and addresses; no more than these are read.
	linksMax  = 1024
	skipStats = 1 << 3 // RTEXT_FILTER_SKIP_STATS

	sizeofRtgenmsg = 4 // with what aligns the attributes
)

var (
	native   = binary.NativeEndian
	errShort = fmt.Errorf("a message of rtnetlink is too short: %w", syscall.EBADMSG)
)

// link is an interface of a network namespace.
type link struct {
	name, kind string // the kind is "veth", "dummy" and so on; "" of a device and of lo
	leaves     bool   // the interface below it, or its other end, is on the node
	device     bool   // it is on a bus of the machine
	mac        net.HardwareAddr
	addresses  []net.IP
}

// linksOf returns the interfaces of a network namespace.
func linksOf(netns string) (links []link, err error) {
	// Opening a FIFO would wait for its other end.
	file, err := os.OpenFile(netns, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	node, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, err
	}
	defer node.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread is not unlocked, so it ends with the goroutine: it must not
		// run others in the pod's namespace.
		runtime.LockOSThread()
		if err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err == nil {
			links, err = linksHere(node)
		}
	}()
	<-done
	return links, err
}

// linksHere returns those of the thread's namespace.
func linksHere(node *os.File) ([]link, error) {
	var links []link
	var nsids [][]byte
	at := map[uint32]int{} // by their indices
	mask := put(unix.IFLA_EXT_MASK, native.AppendUint32(nil, skipStats))
	err := ask(unix.RTM_GETLINK, unix.NLM_F_DUMP, unix.SizeofIfInfomsg, mask, func(header, attributes []byte) error {
		if len(links) == linksMax {
			return fmt.Errorf("over %d interfaces: %w", linksMax, syscall.E2BIG)
		}
		at[native.Uint32(header[4:])] = len(links)
		nsids = append(nsids, attribute(attributes, unix.IFLA_LINK_NETNSID))
		links = append(links, link{
			name:   unix.ByteSliceToString(attribute(attributes, unix.IFLA_IFNAME)),
			kind:   kindIn(attributes),
			device: attribute(attributes, unix.IFLA_PARENT_DEV_NAME) != nil,
			mac:    attribute(attributes, unix.IFLA_ADDRESS),
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The list has given the node an id, if an interface is above one of the node's.
	id, err := idOf(node)
	if err != nil {
		return nil, err
	}
	for i := range links {
		links[i].leaves = id != nil && bytes.Equal(nsids[i], id)
	}
	count := 0
	err = ask(unix.RTM_GETADDR, unix.NLM_F_DUMP, unix.SizeofIfAddrmsg, nil, func(header, attributes []byte) error {
		if count++; count > linksMax {
			return fmt.Errorf("over %d addresses: %w", linksMax, syscall.E2BIG)
		}
		address := attribute(attributes, unix.IFA_LOCAL)
		if address == nil { // IPv6 has it only where an address has a peer
			address = attribute(attributes, unix.IFA_ADDRESS)
		}
		if i, ok := at[native.Uint32(header[4:])]; ok {
			links[i].addresses = append(links[i].addresses, address)
		}
		return nil
	})
	return links, err
}

// kindOf returns the kind of an interface of the thread's namespace; "": there is none.
func kindOf(name string) (kind string) {
	named := put(unix.IFLA_IFNAME, append([]byte(name), 0))
	_ = ask(unix.RTM_GETLINK, 0, unix.SizeofIfInfomsg, named, func(_, attributes []byte) error {
		kind = kindIn(attributes)
		return nil
	})
	return kind
}

// kindIn reads it from the attributes of an interface.
func kindIn(attributes []byte) string {
	return unix.ByteSliceToString(attribute(attribute(attributes, unix.IFLA_LINKINFO), unix.IFLA_INFO_KIND))
}

// idOf returns the id by which the thread's namespace knows another one; nil: it has none.
func idOf(netns *os.File) (id []byte, err error) {
	opened := put(unix.NETNSA_FD, native.AppendUint32(nil, uint32(netns.Fd())))
	err = ask(unix.RTM_GETNSID, 0, sizeofRtgenmsg, opened, func(_, attributes []byte) error {
		found := attribute(attributes, unix.NETNSA_NSID)
		if len(found) == 4 && int32(native.Uint32(found)) >= 0 {
			id = found
		}
		return nil
	})
	return id, err
}

// ask sends a request in the thread's namespace, with a header of zeros of its family, and calls
// read for the header of the same size and the attributes of each message of the answer, until that
// fails. The rest of a list goes with the socket.
func ask(kind, flags uint16, headerSize int, attributes []byte, read func(header, attributes []byte) error) error {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(s)
	request := native.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+headerSize+len(attributes)))
	request = native.AppendUint16(request, kind)
	request = native.AppendUint16(request, unix.NLM_F_REQUEST|flags)
	request = append(append(request, make([]byte, 8+headerSize)...), attributes...)
	// Who has CAP_NET_ADMIN in the namespace, as a pod may, could send to the socket what looks
	// like the kernel's answer. To one that is connected to the kernel nobody else can send.
	if err = unix.Connect(s, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("connect", err)
	}
	if err = unix.Sendto(s, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 64<<10)
	for {
		n, from, err := unix.Recvfrom(s, answer, 0)
		if err != nil {
			return os.NewSyscallError("recvfrom", err)
		}
		// It came before the socket was connected.
		if sender, ok := from.(*unix.SockaddrNetlink); !ok || sender.Pid != 0 {
			continue
		}
		if end, err := readAnswer(answer[:n], headerSize, read); end || err != nil {
			return err
		}
	}
}

// readAnswer calls read for each message of a datagram, until one ends the answer.
func readAnswer(datagram []byte, headerSize int, read func(header, attributes []byte) error) (end bool, err error) {
	messages, err := syscall.ParseNetlinkMessage(bytes.Clone(datagram))
	if err != nil {
		return false, os.NewSyscallError("netlink", err)
	}
	for _, m := range messages {
		switch {
		case m.Header.Type == unix.NLMSG_DONE:
			return true, nil
		case m.Header.Type == unix.NLMSG_ERROR && len(m.Data) < 4:
			return false, errShort
		case m.Header.Type == unix.NLMSG_ERROR && native.Uint32(m.Data) == 0:
			return true, nil // an acknowledgement
		case m.Header.Type == unix.NLMSG_ERROR:
			return false, os.NewSyscallError("netlink", syscall.Errno(-int32(native.Uint32(m.Data))))
		case len(m.Data) < headerSize:
			return false, errShort
		}
		if err = read(m.Data[:headerSize], m.Data[headerSize:]); err != nil {
			return false, err
		}
		if m.Header.Flags&unix.NLM_F_MULTI == 0 {
			return true, nil
		}
	}
	return false, nil
}

// put returns an attribute of netlink's.
func put(kind uint16, value []byte) []byte {
	all := native.AppendUint16(nil, uint16(unix.SizeofRtAttr+len(value)))
	all = append(native.AppendUint16(all, kind), value...)
	return append(all, make([]byte, -len(all)&3)...)
}

// attribute returns the value of one of netlink's attributes; nil: there is none.
func attribute(all []byte, kind uint16) []byte {
	for len(all) >= unix.SizeofRtAttr {
		size := int(native.Uint16(all))
		if size < unix.SizeofRtAttr || size > len(all) {
			break
		}
		if native.Uint16(all[2:]) == kind {
			return all[unix.SizeofRtAttr:size]
		}
		all = all[min((size+3)&^3, len(all)):]
	}
	return nil
}
