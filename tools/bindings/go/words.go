// SPDX-License-Identifier: BSD-2-Clause

package natra

import "fmt"

// AttachMode is the place where the programs sit.
type AttachMode uint32

// The host-side modes need a veth whose peer is in the caller's network namespace.
const (
	AttachModeAuto AttachMode = iota // the first that this kernel can do
	AttachModeTCXPodside
	AttachModeClsactPodside
	AttachModeTCXHostside
	AttachModeClsactHostside
)

// EDTPacing says whether egress is paced by earliest departure times.
type EDTPacing uint32

// Pacing needs the fq qdisc on the pod's interface.
const (
	EDTPacingAuto EDTPacing = iota // if the kernel can, and no other qdisc is there
	EDTPacingOn                    // fail without it, where egress is limited
	EDTPacingOff                   // leave the root qdisc of the pod's interface alone
)

// FastPass is the treatment of flows under the heavy-hitter threshold.
type FastPass uint32

// Flows over the threshold always share the rate.
const (
	FastPassFree   FastPass = iota // pass at once, not charged
	FastPassStrict                 // pass first, charged: a strict cap
	FastPassOff                    // every flow is treated as heavy
)

// IngressMode is the way in which ingress is held to its rate.
type IngressMode uint32

// Pacing needs a host-side veth.
const (
	IngressModePolice IngressMode = iota // mark ECN, else drop, in front of the pod
	IngressModePace                      // hold in fq on the host-side veth
)

// SLI says whether connections are measured, see [ConnectStats].
type SLI uint32

// Measuring is off unless it is asked for.
const (
	SLIOff SLI = iota
	SLIOn
)

// Direction is the pod's.
type Direction uint32

// DirectionNone is that of an [Event] whose attachment is gone.
const (
	DirectionIngress Direction = 0 // into the pod
	DirectionEgress  Direction = 1 // out of the pod
	DirectionNone    Direction = 255
)

// EventReason says what has begun, see [Event].
type EventReason uint32

// Each but EventHeavy is reported once in about a second for an attachment and
// direction, while it goes on or happens again; EventOverLimit when it begins.
const (
	EventHeavy          EventReason = iota // a small flow has become heavy
	EventDroppedRate                       // packets are dropped as DroppedRate counts
	EventDroppedHorizon                    // the same for DroppedHorizon
	EventMiceOverShare                     // small flows are over their share
	EventOverLimit                         // small flows exceed the limit together
)

// Code tells apart what has the same errno, see [Error].
type Code uint32

// The errnos are those with which these come; natra/errors.h says more about each.
const (
	CodeNone           Code = iota // the errno says it
	CodeNotAttached                // ENOENT: no such id, or not on this interface
	CodeNoNetns                    // ENOENT
	CodeNoGroup                    // ENOENT
	CodeNoClass                    // ENOENT
	CodeLocked                     // EBUSY: try it again
	CodeOtherID                    // EBUSY: another id has limits on the interface
	CodeOtherQdisc                 // EBUSY, EOPNOTSUPP: it is where natra's would be
	CodeLeftovers                  // the same, and RemoveLeftovers removes it
	CodeFixed                      // EINVAL: Attach can change it, Configure cannot
	CodeUnshaped                   // EBADE, EOPNOTSUPP
	CodePodFQ                      // EBADE: natra's fq is not as it was put there
	CodeHostFQ                     // the same on the host-side veth
	CodeLimitsDiffer               // EBADE: from the policy of Check
	CodeClassesDiffer              // EBADE: the classes alone
	CodeAnnotation                 // EINVAL: of AnnotatePolicy
	CodeOtherInterface             // EBADE: the interface with the limits is another one
	CodeBypassed                   // EBADE: packets pass natra's program
	CodeField                      // EINVAL: a value that is not allowed, or is missing
)

// Level is that of a line of the log.
type Level uint32

// The library logs little at the first two.
const (
	LevelError Level = iota
	LevelWarn
	LevelInfo
	LevelDebug
)

// The words are those of natractl and the CNI configuration.
var (
	modeWords = []string{"auto", "tcx-podside", "clsact-podside", "tcx-hostside",
		"clsact-hostside"}
	edtWords         = []string{"auto", "on", "off"}
	fastPassWords    = []string{"free", "strict", "off"}
	ingressModeWords = []string{"police", "pace"}
	sliWords         = []string{"off", "on"}
	directionWords   = []string{"ingress", "egress"}
	reasonWords      = []string{"heavy", "dropped_rate", "dropped_horizon",
		"mice_over_share", "over_limit"}
	codeWords = []string{"", "not_attached", "no_netns", "no_group", "no_class", "locked",
		"other_id", "other_qdisc", "leftovers", "fixed", "unshaped", "pod_fq", "host_fq", "limits_differ",
		"classes_differ", "annotation", "other_interface", "bypassed", "field"}
	levelWords = []string{"error", "warn", "info", "debug"}
)

// unknown stands for a value that a newer library has.
const unknown = "unknown"

func word(words []string, value uint32) string {
	if uint64(value) < uint64(len(words)) {
		return words[value]
	}
	return unknown
}

func value[T ~uint32](kind string, words []string, text []byte, to *T) error {
	for i, w := range words {
		if w == string(text) {
			*to = T(i)
			return nil
		}
	}
	if string(text) == unknown {
		*to = ^T(0)
		return nil
	}
	return fmt.Errorf("natra: %q is no %s", text, kind)
}

func (m AttachMode) String() string  { return word(modeWords, uint32(m)) }
func (e EDTPacing) String() string   { return word(edtWords, uint32(e)) }
func (f FastPass) String() string    { return word(fastPassWords, uint32(f)) }
func (i IngressMode) String() string { return word(ingressModeWords, uint32(i)) }
func (s SLI) String() string         { return word(sliWords, uint32(s)) }
func (r EventReason) String() string { return word(reasonWords, uint32(r)) }
func (c Code) String() string        { return word(codeWords, uint32(c)) }
func (l Level) String() string       { return word(levelWords, uint32(l)) }

// noDirection is the word for DirectionNone.
const noDirection = "-"

func (d Direction) String() string {
	if d == DirectionNone {
		return noDirection
	}
	return word(directionWords, uint32(d))
}

// MarshalText returns the word.
func (m AttachMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// MarshalText returns the word.
func (e EDTPacing) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// MarshalText returns the word.
func (f FastPass) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// MarshalText returns the word.
func (i IngressMode) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// MarshalText returns the word.
func (s SLI) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalText returns the word.
func (d Direction) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// MarshalText returns the word.
func (r EventReason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the word. "none" is the mode of a kernel that has none.
func (m *AttachMode) UnmarshalText(text []byte) error {
	if string(text) == "none" {
		*m = AttachModeAuto
		return nil
	}
	return value("mode", modeWords, text, m)
}

// UnmarshalText reads the word.
func (e *EDTPacing) UnmarshalText(text []byte) error {
	return value("EDT pacing", edtWords, text, e)
}

// UnmarshalText reads the word.
func (f *FastPass) UnmarshalText(text []byte) error {
	return value("fast pass", fastPassWords, text, f)
}

// UnmarshalText reads the word.
func (i *IngressMode) UnmarshalText(text []byte) error {
	return value("ingress mode", ingressModeWords, text, i)
}

// UnmarshalText reads the word.
func (s *SLI) UnmarshalText(text []byte) error {
	return value("SLI", sliWords, text, s)
}

// UnmarshalText reads the word.
func (d *Direction) UnmarshalText(text []byte) error {
	if string(text) == noDirection {
		*d = DirectionNone
		return nil
	}
	return value("direction", directionWords, text, d)
}

// UnmarshalText reads the word.
func (r *EventReason) UnmarshalText(text []byte) error {
	return value("reason", reasonWords, text, r)
}

// UnmarshalText reads the word. One of a newer natractl is no code of this package.
func (c *Code) UnmarshalText(text []byte) error {
	if value("code", codeWords, text, c) != nil {
		*c = ^Code(0)
	}
	return nil
}
