// SPDX-License-Identifier: BSD-2-Clause

//go:build cgo

package natra

/*
#include <stdlib.h>
#include <natra/natra.h>
*/
import "C"

import (
	"context"
	"net/netip"
	"runtime/cgo"
	"time"
	"unsafe"
)

func (m *memory) target(t *Target) (c C.struct_natra_target) {
	c.sz = C.sizeof_struct_natra_target
	c.id, c.ifname, c.netns = m.given(t.ID), m.given(t.Ifname), m.given(t.Netns)
	c.network, c.label = m.given(t.Network), m.given(t.Label)
	if t.NetnsFile != nil {
		c.netns_fd = C.int(t.NetnsFile.Fd())
		m.files = append(m.files, t.NetnsFile)
	}
	return c
}

func (m *memory) policy(p *Policy) (c C.struct_natra_policy) {
	c.sz = C.sizeof_struct_natra_policy
	c.ingress_rate_bits_per_sec = C.uint64_t(p.IngressRateBitsPerSec)
	c.egress_rate_bits_per_sec = C.uint64_t(p.EgressRateBitsPerSec)
	c.ingress_burst_bits = C.uint64_t(p.IngressBurstBits)
	c.egress_burst_bits = C.uint64_t(p.EgressBurstBits)
	c.heavy_hitter_threshold_bytes = C.uint64_t(p.HeavyHitterThresholdBytes)
	c.horizon_ns = C.uint64_t(p.Horizon)
	c.pace_limit_ns = C.uint64_t(p.PaceLimit)
	c.fast_pass_share_percent = C.uint32_t(p.FastPassSharePercent)
	c.fast_pass = C.enum_natra_fast_pass(p.FastPass)
	c.ingress_packet_rate_per_sec = C.uint64_t(p.IngressPacketRatePerSec)
	c.egress_packet_rate_per_sec = C.uint64_t(p.EgressPacketRatePerSec)
	c.ingress_connection_rate_per_sec = C.uint64_t(p.IngressConnectionRatePerSec)
	c.egress_connection_rate_per_sec = C.uint64_t(p.EgressConnectionRatePerSec)
	// A name that is too long stays without its terminator, which C refuses.
	for i := range min(len(p.Group), len(c.group)) {
		c.group[i] = C.char(p.Group[i])
	}
	c.group_is_automatic = C.bool(p.GroupIsAutomatic)
	c.automatic_group = m.automaticGroup(p.AutomaticGroup)
	c.group_weight = C.uint32_t(p.GroupWeight)
	c.group_floor_bits_per_sec = C.uint64_t(p.GroupFloorBitsPerSec)
	c.ingress_mode = C.enum_natra_ingress_mode(p.IngressMode)
	c.attach_mode = C.enum_natra_attach_mode(p.AttachMode)
	c.edt_pacing = C.enum_natra_edt_pacing(p.EDTPacing)
	c.sli = C.enum_natra_sli(p.SLI)
	c.shaped_subnets = m.list(p.ShapedSubnets)
	c.shaped_subnets_len = C.size_t(len(p.ShapedSubnets))
	c.unshaped_subnets = m.list(p.UnshapedSubnets)
	c.unshaped_subnets_len = C.size_t(len(p.UnshapedSubnets))
	c.classes = m.classes(p.Classes)
	c.classes_len = C.size_t(len(p.Classes))
	return c
}

func (m *memory) annotations(a *Annotations) (c C.struct_natra_annotations) {
	c.sz = C.sizeof_struct_natra_annotations
	c.allow_all, c.skip_bad = C.bool(a.AllowAll), C.bool(a.SkipBad)
	c.allowed, c.allowed_len = m.list(a.Allowed), C.size_t(len(a.Allowed))
	if len(a.Of) == 0 {
		return c
	}
	block := C.calloc(C.size_t(len(a.Of)), C.sizeof_struct_natra_annotation)
	m.blocks = append(m.blocks, block)
	array := unsafe.Slice((*C.struct_natra_annotation)(block), len(a.Of))
	for name, value := range a.Of {
		array[c.annotations_len].name, array[c.annotations_len].value = m.always(name), m.always(value)
		c.annotations_len++
	}
	c.annotations = (*C.struct_natra_annotation)(block)
	return c
}

func (m *memory) automaticGroup(g *AutomaticGroup) *C.struct_natra_group_info {
	if g == nil {
		return nil
	}
	block := C.calloc(1, C.sizeof_struct_natra_group_info)
	m.blocks = append(m.blocks, block)
	c := (*C.struct_natra_group_info)(block)
	c.sz = C.sizeof_struct_natra_group_info
	c.ingress_rate_bits_per_sec = C.uint64_t(g.IngressRateBitsPerSec)
	c.egress_rate_bits_per_sec = C.uint64_t(g.EgressRateBitsPerSec)
	c.ingress_burst_bits = C.uint64_t(g.IngressBurstBits)
	c.egress_burst_bits = C.uint64_t(g.EgressBurstBits)
	c.floor_bits_per_sec = C.uint64_t(g.FloorBitsPerSec)
	c.weight = C.uint32_t(g.Weight)
	if g.Parent != "" {
		c.parent = m.given(g.Parent)
	}
	return c
}

// classes returns NULL for an empty list.
func (m *memory) classes(classes []Class) *C.struct_natra_class {
	if len(classes) == 0 {
		return nil
	}
	block := C.calloc(C.size_t(len(classes)), C.sizeof_struct_natra_class)
	m.blocks = append(m.blocks, block)
	array := unsafe.Slice((*C.struct_natra_class)(block), len(classes))
	for i := range array {
		class, c := &classes[i], &array[i]
		c.sz = C.sizeof_struct_natra_class
		c.name = m.given(class.Name)
		c.ingress_rate_bits_per_sec = C.uint64_t(class.IngressRateBitsPerSec)
		c.egress_rate_bits_per_sec = C.uint64_t(class.EgressRateBitsPerSec)
		for _, dscp := range class.DSCPs {
			c.dscps |= 1 << dscp
		}
		c.subnets = m.list(class.Subnets)
		c.subnets_len = C.size_t(len(class.Subnets))
	}
	return (*C.struct_natra_class)(block)
}

func classOf(c *C.struct_natra_class) Class {
	class := Class{Name: text(c.name), IngressRateBitsPerSec: uint64(c.ingress_rate_bits_per_sec),
		EgressRateBitsPerSec: uint64(c.egress_rate_bits_per_sec)}
	for dscp := range 64 {
		if c.dscps>>dscp&1 != 0 {
			class.DSCPs = append(class.DSCPs, dscp)
		}
	}
	for _, subnet := range unsafe.Slice(c.subnets, c.subnets_len) {
		class.Subnets = append(class.Subnets, text(subnet))
	}
	return class
}

// policyOf leaves the lists out, of which struct natra_info has the lengths only, and the automatic
// group, which it does not have.
func policyOf(c *C.struct_natra_policy) Policy {
	return Policy{
		IngressRateBitsPerSec:       uint64(c.ingress_rate_bits_per_sec),
		EgressRateBitsPerSec:        uint64(c.egress_rate_bits_per_sec),
		IngressBurstBits:            uint64(c.ingress_burst_bits),
		EgressBurstBits:             uint64(c.egress_burst_bits),
		HeavyHitterThresholdBytes:   uint64(c.heavy_hitter_threshold_bytes),
		Horizon:                     time.Duration(c.horizon_ns),
		PaceLimit:                   time.Duration(c.pace_limit_ns),
		FastPassSharePercent:        uint32(c.fast_pass_share_percent),
		FastPass:                    FastPass(c.fast_pass),
		IngressPacketRatePerSec:     uint64(c.ingress_packet_rate_per_sec),
		EgressPacketRatePerSec:      uint64(c.egress_packet_rate_per_sec),
		IngressConnectionRatePerSec: uint64(c.ingress_connection_rate_per_sec),
		EgressConnectionRatePerSec:  uint64(c.egress_connection_rate_per_sec),
		Group:                       text(&c.group[0]),
		GroupIsAutomatic:            bool(c.group_is_automatic),
		GroupWeight:                 uint32(c.group_weight),
		GroupFloorBitsPerSec:        uint64(c.group_floor_bits_per_sec),
		IngressMode:                 IngressMode(c.ingress_mode),
		AttachMode:                  AttachMode(c.attach_mode),
		EDTPacing:                   EDTPacing(c.edt_pacing),
		SLI:                         SLI(c.sli),
	}
}

func newInfo() (c C.struct_natra_info) {
	c.sz = C.sizeof_struct_natra_info
	return c
}

func infoAlone(c *C.struct_natra_info) Info {
	return Info{
		ID:               text(&c.id[0]),
		Ifname:           text(&c.ifname[0]),
		Network:          text(&c.network[0]),
		Label:            text(&c.label[0]),
		Reason:           text(&c.reason[0]),
		Policy:           policyOf(&c.policy),
		Effective:        policyOf(&c.effective),
		Mode:             AttachMode(c.mode),
		EDTActive:        bool(c.edt_active),
		PaceActive:       bool(c.pace_active),
		FQIsOurs:         bool(c.fq_is_ours),
		HostFQIsOurs:     bool(c.host_fq_is_ours),
		InterfaceGone:    bool(c.interface_gone),
		Unshaped:         bool(c.unshaped),
		Ifindex:          uint32(c.ifindex),
		HostIfname:       text(&c.host_ifname[0]),
		HostIfindex:      uint32(c.host_ifindex),
		NetnsInode:       uint64(c.netns_inode),
		ABI:              uint32(c.abi),
		IngressProgID:    uint32(c.ingress_prog_id),
		EgressProgID:     uint32(c.egress_prog_id),
		HostProgID:       uint32(c.host_prog_id),
		PinPath:          text(&c.pin_path[0]),
		ProgramIsCurrent: bool(c.program_is_current),
		OtherABI:         bool(c.other_abi),

		IngressBypassedPercent: uint32(c.ingress_bypassed_percent),
		EgressBypassedPercent:  uint32(c.egress_bypassed_percent),
		UpgradeIsInPlace:       bool(c.upgrade_is_in_place),
		subnets:                [2]uint{uint(c.policy.shaped_subnets_len), uint(c.policy.unshaped_subnets_len)},
		classes:                uint(c.policy.classes_len),
	}
}

// infoOf also reads the lists.
func (l *library) infoOf(n *C.struct_natra, c *C.struct_natra_info) Info {
	info := infoAlone(c)
	l.addLists(n, &info)
	return info
}

// addLists leaves subnets and classes out that cannot be read, as natractl does: the attachment may
// be gone meanwhile.
func (l *library) addLists(n *C.struct_natra, info *Info) {
	l.addClasses(n, info)
	shaped, unshaped := info.subnets[0] > 0, info.subnets[1] > 0
	info.subnets = [2]uint{}
	if !shaped && !unshaped {
		return
	}
	var m memory
	defer m.free()
	var all []string
	h := cgo.NewHandle(func(cidr *C.char) { all = append(all, text(cidr)) })
	defer h.Delete()
	if foreachSubnetOf(n, m.always(info.ID), h) < 0 {
		return
	}
	if shaped {
		info.setSubnets(all, nil)
	} else {
		info.setSubnets(nil, all)
	}
}

func (l *library) addClasses(n *C.struct_natra, info *Info) {
	if info.classes == 0 {
		return
	}
	info.classes = 0
	var m memory
	defer m.free()
	var all []Class
	h := cgo.NewHandle(func(c *C.struct_natra_class) { all = append(all, classOf(c)) })
	defer h.Delete()
	if foreachClassOf(n, m.always(info.ID), h) == 0 {
		info.setClasses(all)
	}
}

func newStats() (c C.struct_natra_stats) {
	c.sz = C.sizeof_struct_natra_stats
	return c
}

func countOf(c C.struct_natra_count) Count {
	return Count{uint64(c.packets), uint64(c.bytes)}
}

func histogramOf(c *C.struct_natra_histogram) (h Histogram) {
	h.Sum = time.Duration(c.sum_ns)
	for i := range h.Count {
		h.Count[i] = uint64(c.count[i])
	}
	return h
}

func connectsOf(c *C.struct_natra_connect_stats) ConnectStats {
	return ConnectStats{uint64(c.begun), uint64(c.repeated), uint64(c.refused),
		uint64(c.forgotten), histogramOf(&c.accepted)}
}

func directionOf(c *C.struct_natra_direction_stats) DirectionStats {
	return DirectionStats{
		Mice:             countOf(c.mice),
		Admitted:         countOf(c.admitted),
		Paced:            countOf(c.paced),
		Marked:           countOf(c.marked),
		DroppedRate:      countOf(c.dropped_rate),
		DroppedHorizon:   countOf(c.dropped_horizon),
		Unlimited:        countOf(c.unlimited),
		Other:            countOf(c.other),
		OverPackets:      countOf(c.over_packets),
		OverConnections:  countOf(c.over_connections),
		DelaySum:         time.Duration(c.delay_sum_ns),
		EventsReported:   uint64(c.events_reported),
		EventsSuppressed: uint64(c.events_suppressed),
		OverLimitTime:    time.Duration(c.over_limit_time_ns),
		OverLimitPercent: uint64(c.over_limit_percent),
	}
}

func statsOf(c *C.struct_natra_stats) (s Stats) {
	s.Ingress, s.Egress = directionOf(&c.ingress), directionOf(&c.egress)
	s.Backstop = directionOf(&c.backstop)
	s.Ingress.Delays, s.Egress.Delays = histogramOf(&c.ingress_delays), histogramOf(&c.egress_delays)
	s.Ingress.Connects = connectsOf(&c.ingress_connects)
	s.Egress.Connects = connectsOf(&c.egress_connects)
	s.Ingress.HeavyFlows = uint32(c.ingress_heavy_flows)
	s.Egress.HeavyFlows = uint32(c.egress_heavy_flows)
	return s
}

func addressOf(version C.uint8_t, bytes *[16]C.uint8_t) netip.Addr {
	a := *(*[16]byte)(unsafe.Pointer(bytes))
	switch version {
	case 4:
		return netip.AddrFrom4([4]byte(a[:4]))
	case 6:
		return netip.AddrFrom16(a)
	}
	return netip.Addr{}
}

func flowOf(c *C.struct_natra_flow) Flow {
	f := Flow{
		Src:       addressOf(c.ip_version, &c.saddr),
		Dst:       addressOf(c.ip_version, &c.daddr),
		SrcPort:   uint16(c.sport),
		DstPort:   uint16(c.dport),
		IPVersion: uint8(c.ip_version),
		Protocol:  uint8(c.protocol),
		Bytes:     uint64(c.bytes),
		Packets:   uint64(c.packets),
		Idle:      time.Duration(c.idle_ns),
	}
	if f.IPVersion == 0 {
		f.EtherType, f.SrcPort = f.SrcPort, 0
	}
	return f
}

func neighbourOf(c *C.struct_natra_neighbour) Neighbour {
	return Neighbour{
		Direction:     Direction(c.direction),
		Ifname:        text(c.ifname),
		Hook:          text(c.hook),
		HookIsIngress: bool(c.hook_is_ingress),
		Position:      uint32(c.position),
		ProgID:        uint32(c.prog_id),
		ProgName:      text(c.prog_name),
		Priority:      uint32(c.priority),
		Handle:        uint32(c.handle),
		IsOurs:        bool(c.is_ours),
		IsBeforeOurs:  bool(c.is_before_ours),
		IsOnHost:      bool(c.is_on_host),
	}
}

func featuresOf(c *C.struct_natra_features) Features {
	return Features{
		Kernel:      text(&c.kernel[0]),
		KernelOK:    bool(c.kernel_ok),
		BPF:         bool(c.bpf),
		BPFFS:       bool(c.bpffs),
		TCX:         bool(c.tcx),
		Clsact:      bool(c.clsact),
		FQ:          bool(c.fq),
		AutoMode:    AttachMode(c.auto_mode),
		AutoEDT:     bool(c.auto_edt),
		Reason:      text(&c.reason[0]),
		CoarseClock: bool(c.coarse_clock),
		Atomics:     bool(c.atomics),
		NetnsCookie: bool(c.netns_cookie),
		SetTstamp:   bool(c.set_tstamp),
		ABI:         uint32(c.abi),
	}
}

// libraryEvents is a reader of the library's, with the handle that it needs.
type libraryEvents struct {
	n      *C.struct_natra
	h      cgo.Handle
	events *C.struct_natra_events
}

func (l *library) openEvents(ctx context.Context) (eventReader, error) {
	if err := ended(ctx, "events_open"); err != nil {
		return nil, err
	}
	// The handle lives until the reader is closed, and reading does not wait.
	n, h, err := l.open(context.Background(), "events_open")
	if err != nil {
		return nil, err
	}
	e := &libraryEvents{n: n, h: h}
	if r := C.natra_events_open(n, &e.events); r < 0 {
		err := failedWith(ctx, n, "events_open", r)
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *libraryEvents) read() (all []Event, err error) {
	var c C.struct_natra_event
	c.sz = C.sizeof_struct_natra_event
	for {
		r := C.natra_events_read(e.events, &c)
		if r < 0 {
			return all, failedWith(context.Background(), e.n, "events_read", r)
		}
		if r == 0 {
			return all, nil
		}
		all = append(all, Event{
			ID: text(&c.id[0]), Label: text(&c.label[0]),
			Direction: Direction(c.direction), Reason: EventReason(c.reason),
			Backstop: bool(c.backstop), Time: time.Duration(c.time_ns),
			Lost: uint64(c.lost), Flow: flowOf(&c.flow), Class: text(&c.class_name[0]),
			OverLimitPercent: uint32(c.over_limit_percent), Group: text(&c.group[0]),
		})
	}
}

func (e *libraryEvents) close() {
	C.natra_events_close(e.events)
	C.natra_close(e.n)
	e.h.Delete()
}
