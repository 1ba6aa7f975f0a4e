// SPDX-License-Identifier: BSD-2-Clause
//! Counters and flows, which have the members of C's structs. `natra/stats.h` says what they
//! count.
#![allow(missing_docs)]

use natra_sys as sys;

/// A value of C as this crate has it.
pub(crate) trait FromC<C> {
    fn from_c(c: &C) -> Self;
}

impl<T: Copy> FromC<T> for T {
    fn from_c(c: &T) -> T {
        *c
    }
}

/// Makes a struct of C's members but for `sz` and `room`, of which later versions take a part.
macro_rules! counters {
    ($(#[$doc:meta])* $name:ident, $of:ident, $($member:ident: $kind:ty,)*) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            $(pub $member: $kind,)*
        }

        impl FromC<sys::$of> for $name {
            fn from_c(c: &sys::$of) -> $name {
                $name {
                    $($member: FromC::from_c(&c.$member),)*
                }
            }
        }
    };
}

counters! {
    /// Packets and the bytes that they take on the wire.
    Count, natra_count,
    packets: u64,
    bytes: u64,
}

counters! {
    /// Durations: bucket `i` counts those of at most `1024 << i` nanoseconds, and the last one
    /// all that are longer.
    Histogram, natra_histogram,
    sum_ns: u64,
    count: [u64; sys::NATRA_HISTOGRAM_BUCKETS as usize],
}

counters! {
    /// The counters of one direction.
    DirectionStats, natra_direction_stats,
    mice: Count,
    admitted: Count,
    paced: Count,
    marked: Count,
    dropped_rate: Count,
    dropped_horizon: Count,
    unlimited: Count,
    over_packets: Count,
    over_connections: Count,
    other: Count,
    delay_sum_ns: u64,
    events_reported: u64,
    events_suppressed: u64,
    over_limit_time_ns: u64,
    over_limit_percent: u64,
}

counters! {
    /// TCP connections that were begun in one direction, with `Sli::On`.
    ConnectStats, natra_connect_stats,
    begun: u64,
    repeated: u64,
    refused: u64,
    forgotten: u64,
    accepted: Histogram,
}

counters! {
    /// The counters of an attachment.
    Stats, natra_stats,
    ingress: DirectionStats,
    egress: DirectionStats,
    backstop: DirectionStats,
    ingress_heavy_flows: u32,
    egress_heavy_flows: u32,
    ingress_delays: Histogram,
    egress_delays: Histogram,
    ingress_connects: ConnectStats,
    egress_connects: ConnectStats,
}

counters! {
    /// One heavy flow; addresses as in C.
    Flow, natra_flow,
    saddr: [u8; 16],
    daddr: [u8; 16],
    sport: u16,
    dport: u16,
    ip_version: u8,
    protocol: u8,
    bytes: u64,
    packets: u64,
    idle_ns: u64,
}
