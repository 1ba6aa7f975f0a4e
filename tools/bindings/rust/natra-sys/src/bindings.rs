// SPDX-License-Identifier: BSD-2-Clause
// Made by natra-sys/bindgen from include/natra/natra.h.
pub const NATRA_HISTOGRAM_BUCKETS: u32 = 31;
pub const NATRA_FLOWS_MAX: u32 = 576;
pub const NATRA_ID_MAX: u32 = 255;
pub const NATRA_NAME_MAX: u32 = 255;
pub const NATRA_SUBNETS_MAX: u32 = 1024;
pub const NATRA_CLASSES_MAX: u32 = 8;
pub const NATRA_CLASS_NAME_MAX: u32 = 31;
pub const NATRA_GROUPS_MAX: u32 = 256;
pub const NATRA_GROUP_NAME_MAX: u32 = 127;
pub const NATRA_WEIGHT_MAX: u32 = 64;
pub const NATRA_RATE_MIN_BITS_PER_SEC: u32 = 1;
pub const NATRA_RATE_MAX_BITS_PER_SEC: u64 = 1000000000000000;
pub type __uint8_t = ::std::os::raw::c_uchar;
pub type __uint16_t = ::std::os::raw::c_ushort;
pub type __uint32_t = ::std::os::raw::c_uint;
pub type __uint64_t = ::std::os::raw::c_ulong;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct natra {
    _unused: [u8; 0],
}
pub const NATRA_CODE_NONE: natra_code = 0;
pub const NATRA_CODE_NOT_ATTACHED: natra_code = 1;
pub const NATRA_CODE_NO_NETNS: natra_code = 2;
pub const NATRA_CODE_NO_GROUP: natra_code = 3;
pub const NATRA_CODE_NO_CLASS: natra_code = 4;
pub const NATRA_CODE_LOCKED: natra_code = 5;
pub const NATRA_CODE_OTHER_ID: natra_code = 6;
pub const NATRA_CODE_OTHER_QDISC: natra_code = 7;
pub const NATRA_CODE_LEFTOVERS: natra_code = 8;
pub const NATRA_CODE_FIXED: natra_code = 9;
pub const NATRA_CODE_UNSHAPED: natra_code = 10;
pub const NATRA_CODE_POD_FQ: natra_code = 11;
pub const NATRA_CODE_HOST_FQ: natra_code = 12;
pub const NATRA_CODE_LIMITS_DIFFER: natra_code = 13;
pub const NATRA_CODE_CLASSES_DIFFER: natra_code = 14;
pub const NATRA_CODE_ANNOTATION: natra_code = 15;
pub const NATRA_CODE_OTHER_INTERFACE: natra_code = 16;
pub const NATRA_CODE_BYPASSED: natra_code = 17;
pub const NATRA_CODE_FIELD: natra_code = 18;
pub const NATRA_CODE_MAX: natra_code = 19;
pub type natra_code = ::std::os::raw::c_uint;
extern "C" {
    pub fn natra_error(n: *const natra) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn natra_error_code(n: *const natra) -> natra_code;
}
extern "C" {
    pub fn natra_error_about(n: *const natra) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn natra_code_name(code: natra_code) -> *const ::std::os::raw::c_char;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct natra_leftovers {
    pub sz: usize,
    pub host_ifname: [::std::os::raw::c_char; 16usize],
    pub ifb_ifname: [::std::os::raw::c_char; 16usize],
    pub waiting_ns: u64,
    pub limits_ingress: bool,
    pub limits_egress: bool,
    pub is_htb: bool,
    pub reserved: [u8; 5usize],
}
extern "C" {
    pub fn natra_find_leftovers(
        n: *mut natra,
        target: *const natra_target,
        ret_leftovers: *mut natra_leftovers,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_drain_leftovers(
        n: *mut natra,
        target: *const natra_target,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_remove_leftovers(
        n: *mut natra,
        target: *const natra_target,
    ) -> ::std::os::raw::c_int;
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct natra_count {
    pub packets: u64,
    pub bytes: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct natra_histogram {
    pub sum_ns: u64,
    pub count: [u64; 31usize],
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct natra_direction_stats {
    pub mice: natra_count,
    pub admitted: natra_count,
    pub paced: natra_count,
    pub marked: natra_count,
    pub dropped_rate: natra_count,
    pub dropped_horizon: natra_count,
    pub unlimited: natra_count,
    pub over_packets: natra_count,
    pub over_connections: natra_count,
    pub other: natra_count,
    pub delay_sum_ns: u64,
    pub events_reported: u64,
    pub events_suppressed: u64,
    pub over_limit_time_ns: u64,
    pub over_limit_percent: u64,
    pub room: [u64; 15usize],
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct natra_connect_stats {
    pub begun: u64,
    pub repeated: u64,
    pub refused: u64,
    pub forgotten: u64,
    pub accepted: natra_histogram,
    pub room: [u64; 12usize],
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct natra_stats {
    pub sz: usize,
    pub ingress: natra_direction_stats,
    pub egress: natra_direction_stats,
    pub backstop: natra_direction_stats,
    pub ingress_heavy_flows: u32,
    pub egress_heavy_flows: u32,
    pub ingress_delays: natra_histogram,
    pub egress_delays: natra_histogram,
    pub ingress_connects: natra_connect_stats,
    pub egress_connects: natra_connect_stats,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone, PartialEq, Eq)]
pub struct natra_flow {
    pub saddr: [u8; 16usize],
    pub daddr: [u8; 16usize],
    pub sport: u16,
    pub dport: u16,
    pub ip_version: u8,
    pub protocol: u8,
    pub bytes: u64,
    pub packets: u64,
    pub idle_ns: u64,
    pub room: [u64; 8usize],
}
pub const NATRA_ATTACH_MODE_AUTO: natra_attach_mode = 0;
pub const NATRA_ATTACH_MODE_TCX_PODSIDE: natra_attach_mode = 1;
pub const NATRA_ATTACH_MODE_CLSACT_PODSIDE: natra_attach_mode = 2;
pub const NATRA_ATTACH_MODE_TCX_HOSTSIDE: natra_attach_mode = 3;
pub const NATRA_ATTACH_MODE_CLSACT_HOSTSIDE: natra_attach_mode = 4;
pub const NATRA_ATTACH_MODE_MAX: natra_attach_mode = 5;
pub type natra_attach_mode = ::std::os::raw::c_uint;
pub const NATRA_EDT_PACING_AUTO: natra_edt_pacing = 0;
pub const NATRA_EDT_PACING_ON: natra_edt_pacing = 1;
pub const NATRA_EDT_PACING_OFF: natra_edt_pacing = 2;
pub const NATRA_EDT_PACING_MAX: natra_edt_pacing = 3;
pub type natra_edt_pacing = ::std::os::raw::c_uint;
pub const NATRA_FAST_PASS_FREE: natra_fast_pass = 0;
pub const NATRA_FAST_PASS_STRICT: natra_fast_pass = 1;
pub const NATRA_FAST_PASS_OFF: natra_fast_pass = 2;
pub const NATRA_FAST_PASS_MAX: natra_fast_pass = 3;
pub type natra_fast_pass = ::std::os::raw::c_uint;
pub const NATRA_INGRESS_MODE_POLICE: natra_ingress_mode = 0;
pub const NATRA_INGRESS_MODE_PACE: natra_ingress_mode = 1;
pub const NATRA_INGRESS_MODE_MAX: natra_ingress_mode = 2;
pub type natra_ingress_mode = ::std::os::raw::c_uint;
pub const NATRA_SLI_OFF: natra_sli = 0;
pub const NATRA_SLI_ON: natra_sli = 1;
pub const NATRA_SLI_MAX: natra_sli = 2;
pub type natra_sli = ::std::os::raw::c_uint;
pub const NATRA_DIRECTION_INGRESS: natra_direction = 0;
pub const NATRA_DIRECTION_EGRESS: natra_direction = 1;
pub const NATRA_DIRECTION_MAX: natra_direction = 2;
pub const NATRA_DIRECTION_NONE: natra_direction = 255;
pub type natra_direction = ::std::os::raw::c_uint;
pub const NATRA_LOG_ERROR: natra_log_level = 0;
pub const NATRA_LOG_WARN: natra_log_level = 1;
pub const NATRA_LOG_INFO: natra_log_level = 2;
pub const NATRA_LOG_DEBUG: natra_log_level = 3;
pub const NATRA_LOG_MAX: natra_log_level = 4;
pub type natra_log_level = ::std::os::raw::c_uint;
pub type natra_log_fn = ::std::option::Option<
    unsafe extern "C" fn(
        arg: *mut ::std::os::raw::c_void,
        level: natra_log_level,
        line: *const ::std::os::raw::c_char,
    ),
>;
pub type natra_cancelled_fn =
    ::std::option::Option<unsafe extern "C" fn(arg: *mut ::std::os::raw::c_void) -> bool>;
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct natra_open_opts {
    pub sz: usize,
    pub bpffs_path: *const ::std::os::raw::c_char,
    pub log_fn: natra_log_fn,
    pub log_arg: *mut ::std::os::raw::c_void,
    pub keep_programs: bool,
    pub cancelled_fn: natra_cancelled_fn,
    pub cancelled_arg: *mut ::std::os::raw::c_void,
    pub refuse_other_abi: bool,
    pub reserved: [u8; 7usize],
}
impl Default for natra_open_opts {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct natra_target {
    pub sz: usize,
    pub id: *const ::std::os::raw::c_char,
    pub ifname: *const ::std::os::raw::c_char,
    pub netns: *const ::std::os::raw::c_char,
    pub netns_fd: ::std::os::raw::c_int,
    pub network: *const ::std::os::raw::c_char,
    pub label: *const ::std::os::raw::c_char,
}
impl Default for natra_target {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct natra_class {
    pub sz: usize,
    pub name: *const ::std::os::raw::c_char,
    pub ingress_rate_bits_per_sec: u64,
    pub egress_rate_bits_per_sec: u64,
    pub dscps: u64,
    pub subnets: *const *const ::std::os::raw::c_char,
    pub subnets_len: usize,
    pub room: [u64; 9usize],
}
impl Default for natra_class {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct natra_policy {
    pub sz: usize,
    pub ingress_rate_bits_per_sec: u64,
    pub egress_rate_bits_per_sec: u64,
    pub ingress_burst_bits: u64,
    pub egress_burst_bits: u64,
    pub heavy_hitter_threshold_bytes: u64,
    pub horizon_ns: u64,
    pub pace_limit_ns: u64,
    pub fast_pass_share_percent: u32,
    pub fast_pass: natra_fast_pass,
    pub ingress_packet_rate_per_sec: u64,
    pub egress_packet_rate_per_sec: u64,
    pub ingress_connection_rate_per_sec: u64,
    pub egress_connection_rate_per_sec: u64,
    pub group: [::std::os::raw::c_char; 128usize],
    pub group_is_automatic: bool,
    pub group_weight: u32,
    pub group_floor_bits_per_sec: u64,
    pub automatic_group: *const natra_group_info,
    pub ingress_mode: natra_ingress_mode,
    pub attach_mode: natra_attach_mode,
    pub edt_pacing: natra_edt_pacing,
    pub sli: natra_sli,
    pub shaped_subnets: *const *const ::std::os::raw::c_char,
    pub shaped_subnets_len: usize,
    pub unshaped_subnets: *const *const ::std::os::raw::c_char,
    pub unshaped_subnets_len: usize,
    pub classes: *const natra_class,
    pub classes_len: usize,
    pub room: [u64; 32usize],
}
impl Default for natra_policy {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct natra_annotation {
    pub name: *const ::std::os::raw::c_char,
    pub value: *const ::std::os::raw::c_char,
}
impl Default for natra_annotation {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct natra_annotations {
    pub sz: usize,
    pub annotations: *const natra_annotation,
    pub annotations_len: usize,
    pub allowed: *const *const ::std::os::raw::c_char,
    pub allowed_len: usize,
    pub allow_all: bool,
    pub skip_bad: bool,
    pub reserved: [u8; 6usize],
}
impl Default for natra_annotations {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct natra_info {
    pub sz: usize,
    pub id: [::std::os::raw::c_char; 256usize],
    pub ifname: [::std::os::raw::c_char; 16usize],
    pub network: [::std::os::raw::c_char; 256usize],
    pub label: [::std::os::raw::c_char; 256usize],
    pub reason: [::std::os::raw::c_char; 256usize],
    pub policy: natra_policy,
    pub effective: natra_policy,
    pub mode: natra_attach_mode,
    pub edt_active: bool,
    pub pace_active: bool,
    pub fq_is_ours: bool,
    pub host_fq_is_ours: bool,
    pub interface_gone: bool,
    pub unshaped: bool,
    pub ifindex: u32,
    pub host_ifname: [::std::os::raw::c_char; 16usize],
    pub host_ifindex: u32,
    pub netns_inode: u64,
    pub abi: u32,
    pub ingress_prog_id: u32,
    pub egress_prog_id: u32,
    pub host_prog_id: u32,
    pub pin_path: [::std::os::raw::c_char; 512usize],
    pub program_is_current: bool,
    pub other_abi: bool,
    pub ingress_bypassed_percent: u32,
    pub egress_bypassed_percent: u32,
    pub upgrade_is_in_place: bool,
    pub reserved: [u8; 11usize],
}
impl Default for natra_info {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub const NATRA_EVENT_HEAVY: natra_event_reason = 0;
pub const NATRA_EVENT_DROPPED_RATE: natra_event_reason = 1;
pub const NATRA_EVENT_DROPPED_HORIZON: natra_event_reason = 2;
pub const NATRA_EVENT_MICE_OVER_SHARE: natra_event_reason = 3;
pub const NATRA_EVENT_OVER_LIMIT: natra_event_reason = 4;
pub const NATRA_EVENT_MAX: natra_event_reason = 5;
pub type natra_event_reason = ::std::os::raw::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct natra_event {
    pub sz: usize,
    pub id: [::std::os::raw::c_char; 256usize],
    pub label: [::std::os::raw::c_char; 256usize],
    pub direction: natra_direction,
    pub reason: natra_event_reason,
    pub backstop: bool,
    pub time_ns: u64,
    pub lost: u64,
    pub flow: natra_flow,
    pub class_name: [::std::os::raw::c_char; 32usize],
    pub over_limit_percent: u32,
    pub group: [::std::os::raw::c_char; 128usize],
    pub reserved: [u8; 4usize],
}
impl Default for natra_event {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct natra_group_info {
    pub sz: usize,
    pub name: *const ::std::os::raw::c_char,
    pub ingress_rate_bits_per_sec: u64,
    pub egress_rate_bits_per_sec: u64,
    pub ingress_burst_bits: u64,
    pub egress_burst_bits: u64,
    pub parent: *const ::std::os::raw::c_char,
    pub floor_bits_per_sec: u64,
    pub weight: u32,
    pub room: [u64; 8usize],
    pub members: u32,
    pub automatic: bool,
    pub ingress_charged: natra_count,
    pub egress_charged: natra_count,
    pub over_limit_time_ns: [u64; 2usize],
    pub over_limit_percent: [u64; 2usize],
    pub free_bytes: [u64; 2usize],
}
impl Default for natra_group_info {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct natra_neighbour {
    pub sz: usize,
    pub direction: natra_direction,
    pub ifname: *const ::std::os::raw::c_char,
    pub hook: *const ::std::os::raw::c_char,
    pub hook_is_ingress: bool,
    pub position: u32,
    pub prog_id: u32,
    pub prog_name: *const ::std::os::raw::c_char,
    pub priority: u32,
    pub handle: u32,
    pub is_ours: bool,
    pub is_before_ours: bool,
    pub is_on_host: bool,
    pub reserved: [u8; 5usize],
}
impl Default for natra_neighbour {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
pub type natra_attachment_fn = ::std::option::Option<
    unsafe extern "C" fn(
        arg: *mut ::std::os::raw::c_void,
        info: *const natra_info,
    ) -> ::std::os::raw::c_int,
>;
pub type natra_neighbour_fn = ::std::option::Option<
    unsafe extern "C" fn(
        arg: *mut ::std::os::raw::c_void,
        neighbour: *const natra_neighbour,
    ) -> ::std::os::raw::c_int,
>;
pub type natra_subnet_fn = ::std::option::Option<
    unsafe extern "C" fn(
        arg: *mut ::std::os::raw::c_void,
        cidr: *const ::std::os::raw::c_char,
    ) -> ::std::os::raw::c_int,
>;
pub type natra_class_fn = ::std::option::Option<
    unsafe extern "C" fn(
        arg: *mut ::std::os::raw::c_void,
        class_: *const natra_class,
    ) -> ::std::os::raw::c_int,
>;
pub type natra_class_stats_fn = ::std::option::Option<
    unsafe extern "C" fn(
        arg: *mut ::std::os::raw::c_void,
        class_: *const natra_class,
        stats: *const natra_stats,
    ) -> ::std::os::raw::c_int,
>;
pub type natra_group_fn = ::std::option::Option<
    unsafe extern "C" fn(
        arg: *mut ::std::os::raw::c_void,
        group: *const natra_group_info,
    ) -> ::std::os::raw::c_int,
>;
pub type natra_stats_fn = ::std::option::Option<
    unsafe extern "C" fn(
        arg: *mut ::std::os::raw::c_void,
        info: *const natra_info,
        stats: *const natra_stats,
    ) -> ::std::os::raw::c_int,
>;
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub struct natra_features {
    pub sz: usize,
    pub kernel: [::std::os::raw::c_char; 65usize],
    pub kernel_ok: bool,
    pub bpf: bool,
    pub bpffs: bool,
    pub tcx: bool,
    pub clsact: bool,
    pub fq: bool,
    pub auto_mode: natra_attach_mode,
    pub auto_edt: bool,
    pub reason: [::std::os::raw::c_char; 256usize],
    pub coarse_clock: bool,
    pub atomics: bool,
    pub netns_cookie: bool,
    pub set_tstamp: bool,
    pub abi: u32,
    pub reserved: [u8; 8usize],
}
impl Default for natra_features {
    fn default() -> Self {
        let mut s = ::std::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::std::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn natra_parse_rate(
        text: *const ::std::os::raw::c_char,
        ret_bits_per_sec: *mut u64,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_parse_size(
        text: *const ::std::os::raw::c_char,
        ret_bytes: *mut u64,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_parse_time(
        text: *const ::std::os::raw::c_char,
        ret_ns: *mut u64,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_parse_class(
        text: *const ::std::os::raw::c_char,
        base: *const natra_class,
        ret_class: *mut *mut natra_class,
        ret_item: *mut *const ::std::os::raw::c_char,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_attach_mode_name(attach_mode: natra_attach_mode) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn natra_edt_pacing_name(edt_pacing: natra_edt_pacing) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn natra_fast_pass_name(fast_pass: natra_fast_pass) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn natra_ingress_mode_name(
        ingress_mode: natra_ingress_mode,
    ) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn natra_sli_name(sli: natra_sli) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn natra_direction_name(direction: natra_direction) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn natra_event_reason_name(reason: natra_event_reason) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn natra_log_level_name(level: natra_log_level) -> *const ::std::os::raw::c_char;
}
extern "C" {
    pub fn natra_parse_attach_mode(
        text: *const ::std::os::raw::c_char,
        ret_attach_mode: *mut natra_attach_mode,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_parse_edt_pacing(
        text: *const ::std::os::raw::c_char,
        ret_edt_pacing: *mut natra_edt_pacing,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_parse_fast_pass(
        text: *const ::std::os::raw::c_char,
        ret_fast_pass: *mut natra_fast_pass,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_parse_ingress_mode(
        text: *const ::std::os::raw::c_char,
        ret_ingress_mode: *mut natra_ingress_mode,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_parse_sli(
        text: *const ::std::os::raw::c_char,
        ret_sli: *mut natra_sli,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_open(
        ret_n: *mut *mut natra,
        opts: *const natra_open_opts,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_close(n: *mut natra);
}
extern "C" {
    pub fn natra_probe(n: *mut natra, ret_features: *mut natra_features) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_status(n: *mut natra) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_policy_check(n: *mut natra, policy: *const natra_policy) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_policy_annotate(
        n: *mut natra,
        policy: *mut natra_policy,
        annotations: *const natra_annotations,
        ret_classes: *mut *mut natra_class,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_attach(
        n: *mut natra,
        target: *const natra_target,
        policy: *const natra_policy,
        ret_info: *mut natra_info,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_preload(
        n: *mut natra,
        target: *const natra_target,
        policy: *const natra_policy,
        ret_info: *mut natra_info,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_configure(
        n: *mut natra,
        id: *const ::std::os::raw::c_char,
        policy: *const natra_policy,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_upgrade(n: *mut natra, id: *const ::std::os::raw::c_char)
        -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_detach(n: *mut natra, target: *const natra_target) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_check(
        n: *mut natra,
        id: *const ::std::os::raw::c_char,
        policy: *const natra_policy,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_query(
        n: *mut natra,
        id: *const ::std::os::raw::c_char,
        ret_info: *mut natra_info,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_foreach_subnet(
        n: *mut natra,
        id: *const ::std::os::raw::c_char,
        fn_: natra_subnet_fn,
        arg: *mut ::std::os::raw::c_void,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_foreach_class(
        n: *mut natra,
        id: *const ::std::os::raw::c_char,
        fn_: natra_class_fn,
        arg: *mut ::std::os::raw::c_void,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_find(
        n: *mut natra,
        target: *const natra_target,
        ret_id: *mut ::std::os::raw::c_char,
        size: usize,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_stats(
        n: *mut natra,
        id: *const ::std::os::raw::c_char,
        ret_stats: *mut natra_stats,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_class_stats(
        n: *mut natra,
        id: *const ::std::os::raw::c_char,
        name: *const ::std::os::raw::c_char,
        ret_stats: *mut natra_stats,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_foreach_class_stats(
        n: *mut natra,
        id: *const ::std::os::raw::c_char,
        fn_: natra_class_stats_fn,
        arg: *mut ::std::os::raw::c_void,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_foreach_stats(
        n: *mut natra,
        fn_: natra_stats_fn,
        arg: *mut ::std::os::raw::c_void,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_top(
        n: *mut natra,
        id: *const ::std::os::raw::c_char,
        direction: natra_direction,
        ret_flows: *mut natra_flow,
        inout_len: *mut usize,
    ) -> ::std::os::raw::c_int;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct natra_events {
    _unused: [u8; 0],
}
extern "C" {
    pub fn natra_events_open(
        n: *mut natra,
        ret_events: *mut *mut natra_events,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_events_read(
        events: *mut natra_events,
        ret_event: *mut natra_event,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_events_fd(events: *const natra_events) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_events_close(events: *mut natra_events);
}
extern "C" {
    pub fn natra_foreach_neighbour(
        n: *mut natra,
        id: *const ::std::os::raw::c_char,
        fn_: natra_neighbour_fn,
        arg: *mut ::std::os::raw::c_void,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_record_unshaped(
        n: *mut natra,
        target: *const natra_target,
        policy: *const natra_policy,
        reason: *const ::std::os::raw::c_char,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_foreach_attachment(
        n: *mut natra,
        fn_: natra_attachment_fn,
        arg: *mut ::std::os::raw::c_void,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_gc(
        n: *mut natra,
        network: *const ::std::os::raw::c_char,
        keep: *const *const ::std::os::raw::c_char,
        keep_len: usize,
        ret_removed: *mut usize,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_group_set(n: *mut natra, group: *const natra_group_info) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_group_remove(
        n: *mut natra,
        name: *const ::std::os::raw::c_char,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_foreach_group(
        n: *mut natra,
        fn_: natra_group_fn,
        arg: *mut ::std::os::raw::c_void,
    ) -> ::std::os::raw::c_int;
}
extern "C" {
    pub fn natra_version() -> *const ::std::os::raw::c_char;
}
