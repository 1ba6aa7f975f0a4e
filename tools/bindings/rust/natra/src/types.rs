// SPDX-License-Identifier: BSD-2-Clause
//! What is passed to libnatra and what it reports, with Rust's strings and lists.

use std::ffi::{CStr, CString};
use std::mem::size_of;
use std::os::raw::c_char;
use std::os::unix::io::RawFd;
use std::ptr;
use std::slice;

use natra_sys as sys;

use crate::error::{c_string, Error, Result};
use crate::words::{AttachMode, EdtPacing, FastPass, IngressMode, Sli};

/// The place of an interface's network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Netns {
    /// The caller's own.
    Own,
    /// A path (with a '/'), or a name under `/run/netns`.
    Path(String),
    /// A descriptor of the network namespace, which the caller still owns.
    Fd(RawFd),
}

impl Default for Netns {
    fn default() -> Netns {
        Netns::Own
    }
}

/// The interface to attach to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Name of the attachment; "" stands for `<netns inode>-<ifname>`.
    pub id: String,
    /// Interface of the pod. While that exists, the name by which it was attached as
    /// `id` means it, even if it was renamed.
    pub ifname: String,
    /// Where the interface is.
    pub netns: Netns,
    /// Kept with the attachment: the CNI network.
    pub network: String,
    /// Kept with the attachment: free text such as `namespace/pod`.
    pub label: String,
}

/// A target for C, which points into its own strings.
pub(crate) struct CTarget {
    pub target: sys::natra_target,
    _texts: Vec<CString>,
}

/// Returns a pointer to the text, which `texts` then has; NULL for "".
fn keep(texts: &mut Vec<CString>, name: &str, text: &str) -> Result<*const c_char> {
    if text.is_empty() {
        return Ok(ptr::null());
    }
    let c = c_string(name, text)?;
    let pointer = c.as_ptr();

    texts.push(c);
    Ok(pointer)
}

impl Target {
    /// The attachment of this id, wherever it is.
    pub fn id(id: impl Into<String>) -> Target {
        Target {
            id: id.into(),
            ..Target::default()
        }
    }

    pub(crate) fn to_c(&self) -> Result<CTarget> {
        let mut texts = Vec::new();
        let mut target = sys::natra_target {
            sz: size_of::<sys::natra_target>(),
            id: keep(&mut texts, "id", &self.id)?,
            ifname: keep(&mut texts, "ifname", &self.ifname)?,
            network: keep(&mut texts, "network", &self.network)?,
            label: keep(&mut texts, "label", &self.label)?,
            ..Default::default()
        };

        match &self.netns {
            Netns::Own => {}
            // An empty path is not the caller's own namespace: C refuses it.
            Netns::Path(path) => {
                let c = c_string("netns", path)?;

                target.netns = c.as_ptr();
                texts.push(c);
            }
            // To C 0 is no descriptor, and it would take the caller's own namespace.
            Netns::Fd(0) => return Err(Error::of_field("netns_fd", "is 0")),
            Netns::Fd(fd) => target.netns_fd = *fd,
        }
        Ok(CTarget {
            target,
            _texts: texts,
        })
    }
}

/// Peers with limits of their own: those of its subnets, of which the longest prefix
/// decides, and those whose packets have one of its DSCPs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// 1 to 31 letters, digits, '.', '_' and '-'.
    pub name: String,
    /// Into the pod, bit/s; 0: not limited.
    pub ingress_rate_bits_per_sec: u64,
    /// Out of the pod, bit/s; 0: not limited.
    pub egress_rate_bits_per_sec: u64,
    /// Bit n stands for DSCP n, 0 to 63.
    pub dscps: u64,
    /// Such as `10.0.0.0/8`.
    pub subnets: Vec<String>,
}

impl Class {
    pub(crate) fn from_c(c: &sys::natra_class) -> Class {
        // C's pointer may be NULL where there are none, which no slice may have.
        let subnets: &[*const c_char] = if c.subnets_len == 0 {
            &[]
        } else {
            unsafe { slice::from_raw_parts(c.subnets, c.subnets_len) }
        };

        Class {
            name: text_at(c.name),
            ingress_rate_bits_per_sec: c.ingress_rate_bits_per_sec,
            egress_rate_bits_per_sec: c.egress_rate_bits_per_sec,
            dscps: c.dscps,
            subnets: subnets.iter().map(|cidr| text_at(*cidr)).collect(),
        }
    }

    /// C's pointer may be NULL where there are none.
    pub(crate) fn list_from_c(list: *const sys::natra_class, len: usize) -> Vec<Class> {
        (0..len)
            .map(|i| Class::from_c(unsafe { &*list.add(i) }))
            .collect()
    }

    /// The class points to its name, which `texts` then has, and into `subnets`.
    fn to_c(
        &self,
        subnets: &[*const c_char],
        texts: &mut Vec<CString>,
    ) -> Result<sys::natra_class> {
        let name = c_string("classes.name", &self.name)?;
        let mut class = sys::natra_class {
            sz: size_of::<sys::natra_class>(),
            name: name.as_ptr(),
            ingress_rate_bits_per_sec: self.ingress_rate_bits_per_sec,
            egress_rate_bits_per_sec: self.egress_rate_bits_per_sec,
            dscps: self.dscps,
            ..Default::default()
        };

        texts.push(name);
        if !subnets.is_empty() {
            class.subnets = subnets.as_ptr();
            class.subnets_len = subnets.len();
        }
        Ok(class)
    }
}

/// Makes the struct and its two conversions, for all members that are as in C, all words,
/// and the lists of subnets.
macro_rules! policy {
    (numbers { $($(#[$doc:meta])* $number:ident: $type:ty,)* }
     words { $($(#[$word_doc:meta])* $word:ident: $enum:ident,)* }) => {
        /// Limits and how they are kept. A 0 means the default, and a rate of 0 that this
        /// direction is not limited; `struct natra_policy` in `natra/types.h` explains
        /// each member.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Policy {
            $($(#[$doc])* pub $number: $type,)*
            $($(#[$word_doc])* pub $word: $enum,)*
            /// Name of the group whose rates it shares, one that `natractl group` has made
            /// unless it is automatic; "": none.
            pub group: String,
            /// An automatic group comes with its first member and goes with its last. Each
            /// kind has names of its own.
            pub group_is_automatic: bool,
            /// What the automatic group is to be; `None`: it has to be there. Not in what is
            /// reported of an attachment.
            pub automatic_group: Option<AutomaticGroup>,
            /// Limit the traffic with these peers only, such as `10.0.0.0/8`.
            pub shaped_subnets: Vec<String>,
            /// Limit the traffic with all but these peers.
            pub unshaped_subnets: Vec<String>,
            /// Peers with limits of their own, up to 8.
            pub classes: Vec<Class>,
        }

        impl Policy {
            fn numbers_to_c(&self) -> sys::natra_policy {
                sys::natra_policy {
                    sz: size_of::<sys::natra_policy>(),
                    $($number: self.$number,)*
                    $($word: self.$word.to_c(),)*
                    ..Default::default()
                }
            }

            /// The lists and the automatic group are not in what C reports.
            pub(crate) fn from_c(c: &sys::natra_policy) -> Policy {
                Policy {
                    $($number: c.$number,)*
                    $($word: $enum::from_c(c.$word),)*
                    group: text_of(&c.group),
                    group_is_automatic: c.group_is_automatic,
                    ..Default::default()
                }
            }
        }
    };
}

policy! {
    numbers {
    /// Into the pod, bit/s.
    ingress_rate_bits_per_sec: u64,
    /// Out of the pod, bit/s.
    egress_rate_bits_per_sec: u64,
    /// Needs a rate.
    ingress_burst_bits: u64,
    /// Needs a rate.
    egress_burst_bits: u64,
    /// From which a flow is heavy.
    heavy_hitter_threshold_bytes: u64,
    /// Longest delay by departure times.
    horizon_ns: u64,
    /// Longest delay into the pod with [`IngressMode::Pace`].
    pace_limit_ns: u64,
    /// Of small flows with [`FastPass::Strict`], in percent.
    fast_pass_share_percent: u32,
    /// For small flows, too.
    ingress_packet_rate_per_sec: u64,
    /// For small flows, too.
    egress_packet_rate_per_sec: u64,
    /// New TCP connections.
    ingress_connection_rate_per_sec: u64,
    /// New TCP connections.
    egress_connection_rate_per_sec: u64,
    /// Its part of what is left in the group. Needs a group.
    group_weight: u32,
    /// What the group never takes from it, bit/s. Needs a group.
    group_floor_bits_per_sec: u64,
    }
    words {
    /// What small flows may do.
    fast_pass: FastPass,
    /// Marks and drops, or delay.
    ingress_mode: IngressMode,
    /// Where the programs are.
    attach_mode: AttachMode,
    /// Departure times.
    edt_pacing: EdtPacing,
    /// Measured connections.
    sli: Sli,
    }
}

/// What an automatic group is to be. A rate of 0 means that this direction is not limited,
/// another 0 the default; `struct natra_group_info` in `natra/types.h` explains each member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AutomaticGroup {
    /// Into the members, bit/s.
    pub ingress_rate_bits_per_sec: u64,
    /// Out of the members, bit/s.
    pub egress_rate_bits_per_sec: u64,
    /// Needs a rate.
    pub ingress_burst_bits: u64,
    /// Needs a rate.
    pub egress_burst_bits: u64,
    /// A group that `natractl group` has made, of which this one is a member; "": none.
    pub parent: String,
    /// What the parent never takes from it, bit/s.
    pub floor_bits_per_sec: u64,
    /// Its part of what is left in the parent.
    pub weight: u32,
}

impl AutomaticGroup {
    fn to_c(&self, texts: &mut Vec<CString>) -> Result<sys::natra_group_info> {
        let parent = c_string("automatic_group.parent", &self.parent)?;
        let group = sys::natra_group_info {
            sz: size_of::<sys::natra_group_info>(),
            ingress_rate_bits_per_sec: self.ingress_rate_bits_per_sec,
            egress_rate_bits_per_sec: self.egress_rate_bits_per_sec,
            ingress_burst_bits: self.ingress_burst_bits,
            egress_burst_bits: self.egress_burst_bits,
            parent: if self.parent.is_empty() {
                ptr::null()
            } else {
                parent.as_ptr()
            },
            floor_bits_per_sec: self.floor_bits_per_sec,
            weight: self.weight,
            ..Default::default()
        };

        texts.push(parent);
        Ok(group)
    }
}

/// A policy for C, which points into its own lists.
pub(crate) struct CPolicy {
    pub policy: sys::natra_policy,
    _group: Option<Box<sys::natra_group_info>>,
    _texts: Vec<CString>,
    _lists: [Vec<*const c_char>; 2],
    _of_classes: Vec<Vec<*const c_char>>,
    _classes: Vec<sys::natra_class>,
}

fn list_to_c(name: &str, list: &[String], texts: &mut Vec<CString>) -> Result<Vec<*const c_char>> {
    list.iter()
        .map(|text| {
            let c = c_string(name, text)?;
            let pointer = c.as_ptr();

            texts.push(c);
            Ok(pointer)
        })
        .collect()
}

impl Policy {
    pub(crate) fn to_c(&self) -> Result<CPolicy> {
        let mut texts = Vec::new();
        let lists = [
            list_to_c("shaped_subnets", &self.shaped_subnets, &mut texts)?,
            list_to_c("unshaped_subnets", &self.unshaped_subnets, &mut texts)?,
        ];
        let of_classes = self
            .classes
            .iter()
            .map(|class| list_to_c("classes.subnets", &class.subnets, &mut texts))
            .collect::<Result<Vec<_>>>()?;
        let classes = self
            .classes
            .iter()
            .zip(&of_classes)
            .map(|(class, subnets)| class.to_c(subnets, &mut texts))
            .collect::<Result<Vec<_>>>()?;
        let mut policy = self.numbers_to_c();
        let group = match &self.automatic_group {
            Some(group) => Some(Box::new(group.to_c(&mut texts)?)),
            None => None,
        };

        // A name that is too long stays without its terminator, which C refuses.
        for (to, from) in policy
            .group
            .iter_mut()
            .zip(c_string("group", &self.group)?.as_bytes())
        {
            *to = *from as c_char;
        }
        policy.group_is_automatic = self.group_is_automatic;
        if let Some(group) = &group {
            policy.automatic_group = &**group;
        }
        if !lists[0].is_empty() {
            policy.shaped_subnets = lists[0].as_ptr();
            policy.shaped_subnets_len = lists[0].len();
        }
        if !lists[1].is_empty() {
            policy.unshaped_subnets = lists[1].as_ptr();
            policy.unshaped_subnets_len = lists[1].len();
        }
        if !classes.is_empty() {
            policy.classes = classes.as_ptr();
            policy.classes_len = classes.len();
        }
        Ok(CPolicy {
            policy,
            _group: group,
            _texts: texts,
            _lists: lists,
            _of_classes: of_classes,
            _classes: classes,
        })
    }
}

/// What a pod asks for by its annotations, and what of it it may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// Names and values of all annotations of the pod.
    pub of: Vec<(String, String)>,
    /// Those that it may use, by either name of a setting; `natra.io/` may be left out.
    pub allowed: Vec<String>,
    /// It may use all.
    pub allow_all: bool,
    /// Log a bad value and ignore it, in place of an error.
    pub skip_bad: bool,
}

/// Annotations for C, which point into their own lists.
pub(crate) struct CAnnotations {
    pub annotations: sys::natra_annotations,
    _texts: Vec<CString>,
    _allowed: Vec<*const c_char>,
    _of: Vec<sys::natra_annotation>,
}

impl Annotations {
    pub(crate) fn to_c(&self) -> Result<CAnnotations> {
        let mut texts = Vec::new();
        let allowed = list_to_c("allowed", &self.allowed, &mut texts)?;
        let mut of = Vec::new();

        for (name, value) in &self.of {
            let pair = (c_string("annotation", name)?, c_string(name, value)?);

            of.push(sys::natra_annotation {
                name: pair.0.as_ptr(),
                value: pair.1.as_ptr(),
            });
            texts.extend([pair.0, pair.1]);
        }
        Ok(CAnnotations {
            annotations: sys::natra_annotations {
                sz: size_of::<sys::natra_annotations>(),
                annotations: of.as_ptr(),
                annotations_len: of.len(),
                allowed: allowed.as_ptr(),
                allowed_len: allowed.len(),
                allow_all: self.allow_all,
                skip_bad: self.skip_bad,
                ..Default::default()
            },
            _texts: texts,
            _allowed: allowed,
            _of: of,
        })
    }
}

/// The text of an array that C has filled, which ends in a NUL byte.
fn text_of(array: &[c_char]) -> String {
    let bytes: Vec<u8> = array
        .iter()
        .take_while(|c| **c != 0)
        .map(|c| *c as u8)
        .collect();

    String::from_utf8_lossy(&bytes).into_owned()
}

/// The description of an attachment; `struct natra_info` in `natra/types.h` explains
/// each member.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct Info {
    pub id: String,
    /// The name by which it was attached.
    pub ifname: String,
    pub network: String,
    pub label: String,
    /// Why natra chose this mode, or why the interface is `unshaped`.
    pub reason: String,
    /// As it was given.
    pub policy: Policy,
    /// With the defaults filled in.
    pub effective: Policy,
    pub mode: AttachMode,
    pub edt_active: bool,
    pub pace_active: bool,
    pub fq_is_ours: bool,
    pub host_fq_is_ours: bool,
    /// The interface or its network namespace does not exist any more.
    pub interface_gone: bool,
    /// No limit holds.
    pub unshaped: bool,
    pub ifindex: u32,
    pub host_ifname: String,
    pub host_ifindex: u32,
    pub netns_inode: u64,
    pub abi: u32,
    pub ingress_prog_id: u32,
    pub egress_prog_id: u32,
    pub host_prog_id: u32,
    pub pin_path: String,
    pub program_is_current: bool,
    /// A natra of another ABI attached it: the policies have the rates only.
    pub other_abi: bool,
    /// Percent of the bytes that natra's program did not see; 0: less than 5.
    pub ingress_bypassed_percent: u32,
    pub egress_bypassed_percent: u32,
    /// An upgrade keeps the counters; else it attaches anew, or says why it cannot.
    pub upgrade_is_in_place: bool,
}

impl Info {
    pub(crate) fn from_c(c: &sys::natra_info) -> Info {
        Info {
            id: text_of(&c.id),
            ifname: text_of(&c.ifname),
            network: text_of(&c.network),
            label: text_of(&c.label),
            reason: text_of(&c.reason),
            policy: Policy::from_c(&c.policy),
            effective: Policy::from_c(&c.effective),
            mode: AttachMode::from_c(c.mode),
            edt_active: c.edt_active,
            pace_active: c.pace_active,
            fq_is_ours: c.fq_is_ours,
            host_fq_is_ours: c.host_fq_is_ours,
            interface_gone: c.interface_gone,
            unshaped: c.unshaped,
            ifindex: c.ifindex,
            host_ifname: text_of(&c.host_ifname),
            host_ifindex: c.host_ifindex,
            netns_inode: c.netns_inode,
            abi: c.abi,
            ingress_prog_id: c.ingress_prog_id,
            egress_prog_id: c.egress_prog_id,
            host_prog_id: c.host_prog_id,
            pin_path: text_of(&c.pin_path),
            program_is_current: c.program_is_current,
            other_abi: c.other_abi,
            ingress_bypassed_percent: c.ingress_bypassed_percent,
            egress_bypassed_percent: c.egress_bypassed_percent,
            upgrade_is_in_place: c.upgrade_is_in_place,
        }
    }
}

/// What this kernel can do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct Features {
    pub kernel: String,
    /// It has what natra needs; else `reason` names what it lacks.
    pub kernel_ok: bool,
    pub bpf: bool,
    pub bpffs: bool,
    pub tcx: bool,
    pub clsact: bool,
    pub fq: bool,
    pub auto_mode: AttachMode,
    pub auto_edt: bool,
    pub reason: String,
    pub coarse_clock: bool,
    pub atomics: bool,
    pub netns_cookie: bool,
    pub set_tstamp: bool,
    pub abi: u32,
}

impl Features {
    pub(crate) fn from_c(c: &sys::natra_features) -> Features {
        Features {
            kernel: text_of(&c.kernel),
            kernel_ok: c.kernel_ok,
            bpf: c.bpf,
            bpffs: c.bpffs,
            tcx: c.tcx,
            clsact: c.clsact,
            fq: c.fq,
            auto_mode: AttachMode::from_c(c.auto_mode),
            auto_edt: c.auto_edt,
            reason: text_of(&c.reason),
            coarse_clock: c.coarse_clock,
            atomics: c.atomics,
            netns_cookie: c.netns_cookie,
            set_tstamp: c.set_tstamp,
            abi: c.abi,
        }
    }
}

/// Reads a text of C's that is valid for now.
pub(crate) fn text_at(pointer: *const c_char) -> String {
    // The callers have checked that it is not NULL.
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}
