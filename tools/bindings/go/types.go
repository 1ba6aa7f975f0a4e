// SPDX-License-Identifier: BSD-2-Clause

package natra

import (
	"encoding/json"
	"net/netip"
	"os"
	"time"
)

// HistogramBuckets is the number of buckets of a [Histogram].
const HistogramBuckets = 31

// Options are those of a [Handle].
type Options struct {
	// BPFFSPath is a bpffs mount point; "": that of pid 1 at /sys/fs/bpf.
	BPFFSPath string
	// KeepPrograms keeps the programs, which all attachments share, when the last
	// attachment is removed: for a caller that will attach again.
	KeepPrograms bool
	// RefuseOtherABI lets calls fail with ESTALE if natra of another ABI has attached
	// something, whose limits are not this library's to change or count.
	RefuseOtherABI bool
	// Log gets the lines of the library's log; nil: no log. It may be called from
	// other goroutines while a call runs.
	Log func(level Level, line string)
	// Natractl is the path of natractl. If it is set, natractl is run also where
	// libnatra is linked. Without cgo "" means the one in $PATH, /usr/local/sbin or
	// /usr/sbin.
	Natractl string
}

// Target is the interface to attach to.
type Target struct {
	// ID is the name of the attachment, at most 255 bytes; "": the default,
	// "<netns inode>-<ifname>".
	ID string
	// Ifname is the name of the pod's interface in the network namespace.
	Ifname string
	// Netns is a path (with a '/') or a name under /run/netns; "": that of the
	// calling thread.
	Netns string
	// NetnsFile is an open network namespace, in place of Netns.
	NetnsFile *os.File
	// Network and Label are kept with the attachment: the CNI network, and free text
	// such as "namespace/pod". At most 255 bytes each.
	Network, Label string
}

// AutomaticGroup is what an automatic group is to be. A rate of 0 means that this direction
// is not limited. Parent is the name of a group that `natractl group` has made, of which
// this one is a member with its weight and its floor.
type AutomaticGroup struct {
	IngressRateBitsPerSec uint64 `json:"ingress_rate_bits_per_sec"`
	EgressRateBitsPerSec  uint64 `json:"egress_rate_bits_per_sec"`
	IngressBurstBits      uint64 `json:"ingress_burst_bits"`
	EgressBurstBits       uint64 `json:"egress_burst_bits"`
	Parent                string `json:"parent"`
	FloorBitsPerSec       uint64 `json:"floor_bits_per_sec"`
	Weight                uint32 `json:"weight"`
}

// Policy has the limits and how they are kept. Zero means the default in each field; a
// rate of 0 means that this direction is not limited. struct natra_policy in
// natra/types.h says more about each.
type Policy struct {
	IngressRateBitsPerSec     uint64 `json:"ingress_rate_bits_per_sec"`
	EgressRateBitsPerSec      uint64 `json:"egress_rate_bits_per_sec"`
	IngressBurstBits          uint64 `json:"ingress_burst_bits"`
	EgressBurstBits           uint64 `json:"egress_burst_bits"`
	HeavyHitterThresholdBytes uint64 `json:"heavy_hitter_threshold_bytes"`
	// Horizon is the longest delay of egress that departure times may give.
	Horizon time.Duration `json:"horizon_ns"`
	// PaceLimit is the longest delay with IngressModePace, and of what is forwarded.
	PaceLimit time.Duration `json:"pace_limit_ns"`
	// FastPassSharePercent is for FastPassStrict.
	FastPassSharePercent uint32   `json:"fast_pass_share_percent"`
	FastPass             FastPass `json:"fast_pass"`
	// Packets and new TCP connections in a second; those of 0.1 s may pass at once.
	IngressPacketRatePerSec     uint64 `json:"ingress_packet_rate_per_sec"`
	EgressPacketRatePerSec      uint64 `json:"egress_packet_rate_per_sec"`
	IngressConnectionRatePerSec uint64 `json:"ingress_connection_rate_per_sec"`
	EgressConnectionRatePerSec  uint64 `json:"egress_connection_rate_per_sec"`
	// Group is the name of the group whose rates it shares, one that `natractl group` has
	// made unless GroupIsAutomatic: such a group comes with its first member and goes with
	// its last, and has a name of its own kind. AutomaticGroup is what that is to be; nil:
	// it has to be there. The weight and the floor are what it has of the group.
	Group                string          `json:"group"`
	GroupIsAutomatic     bool            `json:"group_is_automatic"`
	AutomaticGroup       *AutomaticGroup `json:"automatic_group"`
	GroupWeight          uint32          `json:"group_weight"`
	GroupFloorBitsPerSec uint64          `json:"group_floor_bits_per_sec"`

	// The fields from here on are fixed at attach: Configure takes them as they were
	// attached, or zero.

	IngressMode IngressMode `json:"ingress_mode"`
	AttachMode  AttachMode  `json:"attach_mode"`
	EDTPacing   EDTPacing   `json:"edt_pacing"`
	SLI         SLI         `json:"sli"`
	// Peers whose traffic is limited, or whose traffic is not, as CIDR blocks. At most
	// one of the two lists.
	ShapedSubnets   []string `json:"shaped_subnets,omitempty"`
	UnshapedSubnets []string `json:"unshaped_subnets,omitempty"`
	// Classes are peers with limits of their own, up to 8. Configure changes them and the
	// subnets; without any it keeps what there is.
	Classes []Class `json:"classes,omitempty"`
}

// Class is peers with limits of their own: those of its subnets, of which the longest
// prefix decides, and what has one of its DSCPs. A rate of 0 means that this direction is
// not limited for them.
type Class struct {
	Name                  string   `json:"name"`
	IngressRateBitsPerSec uint64   `json:"ingress_rate_bits_per_sec"`
	EgressRateBitsPerSec  uint64   `json:"egress_rate_bits_per_sec"`
	DSCPs                 []int    `json:"dscps,omitempty"` // 0 to 63
	Subnets               []string `json:"subnets,omitempty"`
}

// Info describes an attachment.
type Info struct {
	ID      string `json:"id"`
	Ifname  string `json:"ifname"`
	Network string `json:"network"`
	Label   string `json:"label"`
	// Reason says why natra chose Mode and EDTActive, or why there is no limit.
	Reason string `json:"reason"`
	// Policy is as it was given, and Effective has the defaults filled in. The subnets
	// are canonical and in ascending order.
	Policy    Policy `json:"policy"`
	Effective Policy `json:"effective"`
	// Mode is the one that is used.
	Mode AttachMode `json:"mode"`
	// EDTActive and PaceActive say whether egress and ingress are paced.
	EDTActive  bool `json:"edt_active"`
	PaceActive bool `json:"pace_active"`
	// FQIsOurs and HostFQIsOurs: natra added this fq, and removes it.
	FQIsOurs     bool `json:"fq_is_ours"`
	HostFQIsOurs bool `json:"host_fq_is_ours"`
	// InterfaceGone: the interface or its namespace does not exist any more.
	InterfaceGone bool `json:"interface_gone"`
	// Unshaped: no limit holds, see [Handle.RecordUnshaped].
	Unshaped    bool   `json:"unshaped"`
	Ifindex     uint32 `json:"ifindex"`
	HostIfname  string `json:"host_ifname"`
	HostIfindex uint32 `json:"host_ifindex"`
	NetnsInode  uint64 `json:"netns_inode"`
	ABI         uint32 `json:"abi"`
	// The kernel's ids of the programs, 0 where there is none.
	IngressProgID uint32 `json:"ingress_prog_id"`
	EgressProgID  uint32 `json:"egress_prog_id"`
	HostProgID    uint32 `json:"host_prog_id"`
	PinPath       string `json:"pin_path"`
	// ProgramIsCurrent: the programs are of this build; else [Handle.Upgrade] replaces
	// them.
	ProgramIsCurrent bool `json:"program_is_current"`
	// OtherABI: a natra of another ABI attached it; Policy and Effective have the rates only.
	OtherABI bool `json:"other_abi"`
	// Percent of the bytes that natra's program did not see; 0: less than 5.
	IngressBypassedPercent uint32 `json:"ingress_bypassed_percent"`
	EgressBypassedPercent  uint32 `json:"egress_bypassed_percent"`
	// UpgradeIsInPlace: [Handle.Upgrade] keeps the counters; else it attaches anew, or
	// says why it cannot.
	UpgradeIsInPlace bool `json:"upgrade_is_in_place"`

	// subnets has the numbers of shaped and unshaped ones until they are read, and
	// classes that of the classes.
	subnets [2]uint
	classes uint
}

// UnmarshalJSON reads what natractl writes, which has the lists beside the policy.
func (i *Info) UnmarshalJSON(data []byte) error {
	type plain Info
	wire := struct {
		*plain
		Shaped   []string `json:"shaped_subnets"`
		Unshaped []string `json:"unshaped_subnets"`
		Classes  []Class  `json:"classes"`
	}{plain: (*plain)(i)}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	i.setSubnets(wire.Shaped, wire.Unshaped)
	i.setClasses(wire.Classes)
	return nil
}

func (i *Info) setClasses(classes []Class) {
	if len(classes) > 0 {
		i.Policy.Classes, i.Effective.Classes = classes, classes
	}
}

func (i *Info) setSubnets(shaped, unshaped []string) {
	for _, p := range []*Policy{&i.Policy, &i.Effective} {
		if len(shaped) > 0 {
			p.ShapedSubnets = shaped
		}
		if len(unshaped) > 0 {
			p.UnshapedSubnets = unshaped
		}
	}
}

// UnmarshalJSON reads what natractl writes, where lists that are empty are there as well.
func (c *Class) UnmarshalJSON(data []byte) error {
	type plain Class
	if err := json.Unmarshal(data, (*plain)(c)); err != nil {
		return err
	}
	if len(c.DSCPs) == 0 {
		c.DSCPs = nil
	}
	if len(c.Subnets) == 0 {
		c.Subnets = nil
	}
	return nil
}

// Count is a number of packets and the bytes that they take on the wire.
type Count struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// Histogram counts durations, each in one bucket. [HistogramUpTo] has the bounds.
type Histogram struct {
	Sum   time.Duration
	Count [HistogramBuckets]uint64
}

// HistogramUpTo returns the longest duration that a bucket counts. The last one counts
// all that is longer than the one before it does.
func HistogramUpTo(bucket int) time.Duration { return 1024 << bucket }

// Total returns the number of durations.
func (h *Histogram) Total() (total uint64) {
	for _, count := range h.Count {
		total += count
	}
	return total
}

// UnmarshalJSON reads what natractl writes: the buckets that have counted something.
func (h *Histogram) UnmarshalJSON(data []byte) error {
	var wire struct {
		Sum     time.Duration `json:"sum_ns"`
		Buckets []struct {
			UpTo  time.Duration `json:"up_to_ns"`
			Count uint64        `json:"count"`
		} `json:"buckets"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*h = Histogram{Sum: wire.Sum}
	for _, b := range wire.Buckets {
		i := HistogramBuckets - 1 // without a bound
		for j := 0; b.UpTo > 0 && j < i; j++ {
			if HistogramUpTo(j) == b.UpTo {
				i = j
			}
		}
		h.Count[i] += b.Count
	}
	return nil
}

// ConnectStats are the TCP connections that were begun in a direction, with [SLIOn].
type ConnectStats struct {
	Begun     uint64 `json:"begun"`
	Repeated  uint64 `json:"repeated"`
	Refused   uint64 `json:"refused"`
	Forgotten uint64 `json:"forgotten"`
	// Accepted has the time from the first SYN to the SYN-ACK.
	Accepted Histogram `json:"accepted"`
}

// DirectionStats are the counters of a direction since it was attached. Each packet is
// in exactly one of the first eight.
type DirectionStats struct {
	Mice           Count `json:"mice"`
	Admitted       Count `json:"admitted"`
	Paced          Count `json:"paced"`
	Marked         Count `json:"marked"`
	DroppedRate    Count `json:"dropped_rate"`
	DroppedHorizon Count `json:"dropped_horizon"`
	Unlimited      Count `json:"unlimited"`
	Other          Count `json:"other"`

	// These are in one of the others as well.

	OverPackets     Count `json:"over_packets"`
	OverConnections Count `json:"over_connections"`

	// DelaySum is what was asked of all packets paced.
	DelaySum         time.Duration `json:"delay_sum_ns"`
	EventsReported   uint64        `json:"events_reported"`
	EventsSuppressed uint64        `json:"events_suppressed"`

	// OverLimitTime is when small flows that are not charged exceeded the limit last, by
	// CLOCK_MONOTONIC, and OverLimitPercent what passed then, in percent of the limit.
	OverLimitTime    time.Duration `json:"over_limit_time_ns"`
	OverLimitPercent uint64        `json:"over_limit_percent"`

	// The backstop of [Stats] has none of these.

	Delays     Histogram    `json:"delays"`
	Connects   ConnectStats `json:"connections"`
	HeavyFlows uint32       `json:"heavy_flows"`
}

// Stats are the counters of an attachment.
type Stats struct {
	Ingress DirectionStats `json:"ingress"`
	Egress  DirectionStats `json:"egress"`
	// Backstop has the packets that reach the pod, if Ingress is judged on the host side, as
	// it is by default.
	Backstop DirectionStats `json:"backstop"`
}

// InfoStats is an attachment with its counters. Its Info is without InterfaceGone and
// ProgramIsCurrent. Stats is nil if there are none: no limit holds, the state is of another
// ABI, or the counters cannot be read, as when they are gone from bpffs.
type InfoStats struct {
	Info  Info   `json:"info"`
	Stats *Stats `json:"stats"`
}

// Flow is a heavy flow.
type Flow struct {
	// Src and Dst are valid if IPVersion is 4 or 6. A protocol without ports has 0.
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	IPVersion        uint8 // 0: not IP, or unknown
	Protocol         uint8 // IANA's number
	EtherType        uint16
	// Since the flow has been in the table, wire bytes.
	Bytes, Packets uint64
	// Idle is the age of the flow's last packet.
	Idle time.Duration
}

// UnmarshalJSON reads what natractl writes.
func (f *Flow) UnmarshalJSON(data []byte) error {
	var wire struct {
		Saddr     string        `json:"saddr"`
		Daddr     string        `json:"daddr"`
		Sport     uint16        `json:"sport"`
		Dport     uint16        `json:"dport"`
		IPVersion uint8         `json:"ip_version"`
		Protocol  uint8         `json:"ip_protocol"`
		EtherType uint16        `json:"ethertype"`
		Bytes     uint64        `json:"bytes"`
		Packets   uint64        `json:"packets"`
		Idle      time.Duration `json:"idle_ns"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*f = Flow{SrcPort: wire.Sport, DstPort: wire.Dport, IPVersion: wire.IPVersion,
		Protocol: wire.Protocol, EtherType: wire.EtherType, Bytes: wire.Bytes,
		Packets: wire.Packets, Idle: wire.Idle}
	// What is not IP has "-" for both.
	f.Src, _ = netip.ParseAddr(wire.Saddr)
	f.Dst, _ = netip.ParseAddr(wire.Daddr)
	return nil
}

// Event is something that began, see [EventReason].
type Event struct {
	// ID and Label are "" if the attachment does not exist any more.
	ID, Label string
	Direction Direction
	Reason    EventReason
	// Backstop: it is from the program in the pod behind the one on the host side.
	Backstop bool
	// Time is that of CLOCK_MONOTONIC.
	Time time.Duration
	// Lost is how many events were overwritten between the last one and this one.
	Lost uint64
	// Flow is that of the packet, without its counters.
	Flow Flow
	// Class is the class of peers whose limits the packet met; "": those of the attachment,
	// or ID is "".
	Class string
	// OverLimitPercent is with EventOverLimit, which has no flow: what passed in a second, in
	// percent of the limit.
	OverLimitPercent uint32
	// Group is the group whose limit was exceeded with EventOverLimit; "": that of ID.
	Group string
}

// UnmarshalJSON reads what natractl writes.
func (e *Event) UnmarshalJSON(data []byte) error {
	var wire struct {
		ID        string        `json:"id"`
		Label     string        `json:"label"`
		Direction string        `json:"direction"`
		Reason    EventReason   `json:"reason"`
		Time      time.Duration `json:"time_ns"`
		Over      uint32        `json:"over_limit_percent"`
		Group     string        `json:"group"`
		Lost      uint64        `json:"lost"`
		Class     string        `json:"class"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*e = Event{ID: wire.ID, Label: wire.Label, Reason: wire.Reason, Time: wire.Time,
		Lost: wire.Lost, Class: wire.Class, OverLimitPercent: wire.Over, Group: wire.Group,
		Backstop: wire.Direction == "backstop"}
	if err := json.Unmarshal(data, &e.Flow); err != nil || e.Backstop {
		return err
	}
	return e.Direction.UnmarshalText([]byte(wire.Direction))
}

// Neighbour is a program on a hook that an attachment uses.
type Neighbour struct {
	Direction     Direction
	Ifname        string
	Hook          string // "tcx" or "clsact"
	HookIsIngress bool   // of the interface, not of the pod
	Position      uint32 // 0 runs first; tcx runs before clsact
	ProgID        uint32
	ProgName      string
	Priority      uint32 // clsact only
	Handle        uint32 // clsact only
	IsOurs        bool
	// IsBeforeOurs: what it accepts or redirects is not limited.
	IsBeforeOurs bool
	IsOnHost     bool // not in the pod, where Ifname may be the same
}

// UnmarshalJSON reads what natractl writes.
func (n *Neighbour) UnmarshalJSON(data []byte) error {
	var wire struct {
		Direction Direction `json:"direction"`
		Ifname    string    `json:"ifname"`
		Hook      string    `json:"hook"`
		Side      string    `json:"hook_side"`
		Position  uint32    `json:"position"`
		ProgID    uint32    `json:"prog_id"`
		ProgName  string    `json:"prog_name"`
		Priority  uint32    `json:"priority"`
		Handle    uint32    `json:"handle"`
		IsOurs    bool      `json:"is_ours"`
		IsBefore  bool      `json:"is_before_ours"`
		IsOnHost  bool      `json:"is_on_host"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*n = Neighbour{wire.Direction, wire.Ifname, wire.Hook, wire.Side == "ingress",
		wire.Position, wire.ProgID, wire.ProgName, wire.Priority, wire.Handle,
		wire.IsOurs, wire.IsBefore, wire.IsOnHost}
	return nil
}

// Leftovers is what upstream's bandwidth plugin left on the host side of an interface.
type Leftovers struct {
	HostIfname string `json:"host_ifname"`
	IFBIfname  string `json:"ifb_ifname"`
	// Waiting is how long what is in the longer queue takes; 0: less than 100 ms.
	Waiting time.Duration `json:"waiting_ns"`
	// LimitsIngress: a root qdisc does, a tbf or, with IsHTB, an htb. LimitsEgress: a
	// redirect to IFBIfname does.
	LimitsIngress bool `json:"limits_ingress"`
	LimitsEgress  bool `json:"limits_egress"`
	IsHTB         bool `json:"is_htb"`
}

// Features are those of this kernel.
type Features struct {
	Kernel string `json:"kernel"`
	// KernelOK: it has what natra needs; else Reason names what it lacks.
	KernelOK    bool       `json:"kernel_ok"`
	BPF         bool       `json:"bpf"`
	BPFFS       bool       `json:"bpffs"`
	TCX         bool       `json:"tcx"`
	Clsact      bool       `json:"clsact"`
	FQ          bool       `json:"fq"`
	AutoMode    AttachMode `json:"auto_mode"`
	AutoEDT     bool       `json:"auto_edt"`
	Reason      string     `json:"reason"`
	CoarseClock bool       `json:"coarse_clock"`
	Atomics     bool       `json:"atomics"`
	NetnsCookie bool       `json:"netns_cookie"`
	SetTstamp   bool       `json:"set_tstamp"`
	ABI         uint32     `json:"abi"`
}
