// SPDX-License-Identifier: BSD-2-Clause
//! Limits the bandwidth of a pod's interface without hurting its small flows, by libnatra.
//!
//! This is a thin layer over C: each method is the function of the same name in `natra.h`,
//! which documents it, and what C refuses is refused with C's errno and text. All state is
//! pinned in the kernel, so a handle can be dropped at any time.
//!
//! Events, neighbours, leftovers, groups, counters of classes, `natra_record_unshaped`,
//! `natra_parse_class`, `natra_preload` and `cancelled_fn` are in `natra-sys` alone.
//!
//! ```no_run
//! use natra::{Natra, Netns, Policy, Target};
//!
//! fn main() -> natra::Result<()> {
//!     let mut natra = Natra::open()?;
//!     let target = Target {
//!         id: "example".into(),
//!         ifname: "eth0".into(),
//!         netns: Netns::Path("pod1".into()),
//!         ..Target::default()
//!     };
//!     let policy = Policy {
//!         egress_rate_bits_per_sec: natra::parse_rate("10M")?,
//!         ..Policy::default()
//!     };
//!
//!     let info = natra.attach(&target, &policy)?;
//!     println!("{}: {}", info.mode, info.reason);
//!     natra.detach(&Target::id("example"))?;
//!     Ok(())
//! }
//! ```
#![deny(missing_docs)]

mod counters;
mod error;
mod types;
mod walk;
mod words;

use std::ffi::CStr;
use std::mem::size_of;
use std::os::raw::{c_char, c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{self, NonNull};

use natra_sys as sys;

pub use counters::{ConnectStats, Count, DirectionStats, Flow, Histogram, Stats};
pub use error::{Error, Result};
pub use types::{Annotations, AutomaticGroup, Class, Features, Info, Netns, Policy, Target};
pub use words::{
    parse_rate, parse_size, parse_time, AttachMode, Code, Direction, EdtPacing, FastPass,
    IngressMode, Sli,
};

use counters::FromC;
use error::{c_string, ENOMEM, EOPNOTSUPP};

extern "C" {
    // Of the C library, for what libnatra lets the caller free.
    fn free(memory: *mut c_void);
}

/// The level of a line of the library's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

type Log = Box<dyn FnMut(LogLevel, &str) + Send>;

/// How a handle is opened.
#[derive(Default)]
pub struct Options {
    bpffs_path: Option<String>,
    keep_programs: bool,
    refuse_other_abi: bool,
    log: Option<Log>,
}

impl Options {
    /// The defaults: pid 1's `/sys/fs/bpf`, and no log.
    pub fn new() -> Options {
        Options::default()
    }

    /// The path of a bpffs, which is mounted if it is missing.
    pub fn bpffs_path(mut self, path: impl Into<String>) -> Options {
        self.bpffs_path = Some(path.into());
        self
    }

    /// Keep the programs that attachments share when the last one is removed.
    pub fn keep_programs(mut self, keep: bool) -> Options {
        self.keep_programs = keep;
        self
    }

    /// Opening fails with `ESTALE`, and logs what, if natra of another ABI has attached something.
    pub fn refuse_other_abi(mut self, refuse: bool) -> Options {
        self.refuse_other_abi = refuse;
        self
    }

    /// Receives the lines of the log, perhaps on another thread while a call waits.
    pub fn log(mut self, log: impl FnMut(LogLevel, &str) + Send + 'static) -> Options {
        self.log = Some(Box::new(log));
        self
    }

    /// Opens a handle. `EOPNOTSUPP`: the library that is loaded is older than this crate.
    pub fn open(self) -> Result<Natra> {
        check_version(&version(), env!("CARGO_PKG_VERSION"))?;
        let path = self
            .bpffs_path
            .map(|p| c_string("bpffs_path", &p))
            .transpose()?;
        // A box of the box, since a pointer to a closure does not fit into one of C's.
        let mut log = self.log.map(Box::new);
        let opts = sys::natra_open_opts {
            sz: size_of::<sys::natra_open_opts>(),
            bpffs_path: path.as_ref().map_or(ptr::null(), |p| p.as_ptr()),
            log_fn: log.as_ref().map(|_| write_log as _),
            log_arg: log
                .as_mut()
                .map_or(ptr::null_mut(), |l| &mut **l as *mut Log as *mut c_void),
            keep_programs: self.keep_programs,
            refuse_other_abi: self.refuse_other_abi,
            ..Default::default()
        };
        let mut handle = ptr::null_mut();
        // The options are copied.
        let r = unsafe { sys::natra_open(&mut handle, &opts) };

        if r < 0 {
            return Err(Error::of_call(
                r,
                Code::None,
                Default::default(),
                Default::default(),
            ));
        }
        match NonNull::new(handle) {
            Some(handle) => Ok(Natra { handle, _log: log }),
            None => Err(Error::new(ENOMEM, "libnatra made no handle")),
        }
    }
}

unsafe extern "C" fn write_log(arg: *mut c_void, level: sys::natra_log_level, line: *const c_char) {
    let log = &mut *(arg as *mut Log);
    let level = match level {
        sys::NATRA_LOG_ERROR => LogLevel::Error,
        sys::NATRA_LOG_WARN => LogLevel::Warn,
        sys::NATRA_LOG_INFO => LogLevel::Info,
        _ => LogLevel::Debug,
    };
    let line = types::text_at(line);

    // C cannot be unwound; a log that panics has said so itself.
    let _ = catch_unwind(AssertUnwindSafe(|| log(level, &line)));
}

/// The version of the library that is loaded, such as "0.1.0".
pub fn version() -> String {
    // The text is static.
    types::text_at(unsafe { sys::natra_version() })
}

fn check_version(loaded: &str, wanted: &str) -> Result<()> {
    let numbers = |text: &str| -> Vec<u32> {
        text.split(['.', '-'])
            .map_while(|n| n.parse().ok())
            .collect()
    };

    if numbers(loaded) < numbers(wanted) {
        return Err(Error::new(
            EOPNOTSUPP,
            format!("libnatra {loaded} is older than this crate, {wanted}"),
        ));
    }
    Ok(())
}

/// A handle of libnatra. It may move to another thread; each thread that works at the same
/// time needs its own.
pub struct Natra {
    handle: NonNull<sys::natra>,
    // The handle points to it.
    _log: Option<Box<Log>>,
}

// A handle has no thread of its own, and `&mut self` lets one thread at a time use it.
unsafe impl Send for Natra {}

impl Drop for Natra {
    fn drop(&mut self) {
        unsafe { sys::natra_close(self.handle.as_ptr()) }
    }
}

impl Natra {
    /// Opens a handle with the default options.
    pub fn open() -> Result<Natra> {
        Options::new().open()
    }

    /// Turns what a call returned into a result.
    pub(crate) fn done(&self, r: c_int) -> Result<()> {
        if r < 0 {
            // The text lasts until the handle's next call.
            let text = unsafe { CStr::from_ptr(sys::natra_error(self.handle.as_ptr())) };
            let code = unsafe { sys::natra_error_code(self.handle.as_ptr()) };

            let about = unsafe { CStr::from_ptr(sys::natra_error_about(self.handle.as_ptr())) };

            return Err(Error::of_call(r, Code::from_c(code), about, text));
        }
        Ok(())
    }

    /// Reports what the kernel can do, and which mode `auto` would take.
    pub fn probe(&mut self) -> Result<Features> {
        let mut features = sys::natra_features {
            sz: size_of::<sys::natra_features>(),
            ..Default::default()
        };
        let r = unsafe { sys::natra_probe(self.handle.as_ptr(), &mut features) };

        self.done(r)?;
        Ok(Features::from_c(&features))
    }

    /// Checks whether attaching can work here.
    pub fn status(&mut self) -> Result<()> {
        let r = unsafe { sys::natra_status(self.handle.as_ptr()) };

        self.done(r)
    }

    /// Checks a policy without touching the kernel.
    pub fn policy_check(&mut self, policy: &Policy) -> Result<()> {
        let c = policy.to_c()?;
        let r = unsafe { sys::natra_policy_check(self.handle.as_ptr(), &c.policy) };

        self.done(r)
    }

    /// Puts what a pod asks for by its annotations into a policy.
    pub fn policy_annotate(
        &mut self,
        policy: &Policy,
        annotations: &Annotations,
    ) -> Result<Policy> {
        let (mut c, asked) = (policy.to_c()?, annotations.to_c()?);
        let mut classes = ptr::null_mut();
        let r = unsafe {
            sys::natra_policy_annotate(
                self.handle.as_ptr(),
                &mut c.policy,
                &asked.annotations,
                &mut classes,
            )
        };

        self.done(r)?;
        let annotated = Policy {
            shaped_subnets: policy.shaped_subnets.clone(),
            unshaped_subnets: policy.unshaped_subnets.clone(),
            classes: Class::list_from_c(c.policy.classes, c.policy.classes_len),
            automatic_group: if c.policy.automatic_group.is_null() {
                None
            } else {
                policy.automatic_group.clone()
            },
            ..Policy::from_c(&c.policy)
        };

        unsafe { free(classes as *mut c_void) }
        Ok(annotated)
    }

    /// Shapes an interface, or replaces how it is shaped.
    ///
    /// An attachment that has classes loses those that are not in the policy;
    /// [`Natra::configure`] keeps them if the policy has none. If it fails while it reads
    /// back the lists of what it has attached, the limits hold.
    pub fn attach(&mut self, target: &Target, policy: &Policy) -> Result<Info> {
        let (target, policy) = (target.to_c()?, policy.to_c()?);
        let mut info = new_info();
        let r = unsafe {
            sys::natra_attach(
                self.handle.as_ptr(),
                &target.target,
                &policy.policy,
                &mut info,
            )
        };

        self.done(r)?;
        self.with_lists(Info::from_c(&info), &info)
    }

    /// Changes the limits of an attachment.
    pub fn configure(&mut self, id: &str, policy: &Policy) -> Result<()> {
        let (id, policy) = (c_string("id", id)?, policy.to_c()?);
        let r = unsafe { sys::natra_configure(self.handle.as_ptr(), id.as_ptr(), &policy.policy) };

        self.done(r)
    }

    /// Makes an attachment of another build of natra run this library's programs.
    pub fn upgrade(&mut self, id: &str) -> Result<()> {
        let id = c_string("id", id)?;
        let r = unsafe { sys::natra_upgrade(self.handle.as_ptr(), id.as_ptr()) };

        self.done(r)
    }

    /// Removes an attachment. Returns whether there was one.
    pub fn detach(&mut self, target: &Target) -> Result<bool> {
        let target = target.to_c()?;
        let r = unsafe { sys::natra_detach(self.handle.as_ptr(), &target.target) };

        self.done(r)?;
        Ok(r > 0)
    }

    /// Compares the kernel's state with what was last set, and that with `policy`.
    pub fn check(&mut self, id: &str, policy: Option<&Policy>) -> Result<()> {
        let id = c_string("id", id)?;
        let policy = policy.map(Policy::to_c).transpose()?;
        let pointer = policy
            .as_ref()
            .map_or(ptr::null(), |p| &p.policy as *const _);
        let r = unsafe { sys::natra_check(self.handle.as_ptr(), id.as_ptr(), pointer) };

        self.done(r)
    }

    /// Reports one attachment.
    pub fn query(&mut self, id: &str) -> Result<Info> {
        let c = c_string("id", id)?;
        let mut info = new_info();
        let r = unsafe { sys::natra_query(self.handle.as_ptr(), c.as_ptr(), &mut info) };

        self.done(r)?;
        self.with_lists(Info::from_c(&info), &info)
    }

    /// Finds the id of the attachment on an interface.
    pub fn find(&mut self, target: &Target) -> Result<String> {
        let target = target.to_c()?;
        let mut id = [0; sys::NATRA_ID_MAX as usize + 1];
        let r = unsafe {
            sys::natra_find(
                self.handle.as_ptr(),
                &target.target,
                id.as_mut_ptr(),
                id.len(),
            )
        };

        self.done(r)?;
        Ok(types::text_at(id.as_ptr()))
    }

    /// Reads the counters of an attachment.
    pub fn stats(&mut self, id: &str) -> Result<Stats> {
        let id = c_string("id", id)?;
        let mut stats = sys::natra_stats {
            sz: size_of::<sys::natra_stats>(),
            ..Default::default()
        };
        let r = unsafe { sys::natra_stats(self.handle.as_ptr(), id.as_ptr(), &mut stats) };

        self.done(r)?;
        Ok(Stats::from_c(&stats))
    }

    /// Reads the heavy flows of one direction, sorted by bytes, descending.
    pub fn top(&mut self, id: &str, direction: Direction) -> Result<Vec<Flow>> {
        let id = c_string("id", id)?;
        let mut flows = vec![sys::natra_flow::default(); sys::NATRA_FLOWS_MAX as usize];
        let mut len = flows.len();
        let r = unsafe {
            sys::natra_top(
                self.handle.as_ptr(),
                id.as_ptr(),
                direction.to_c(),
                flows.as_mut_ptr(),
                &mut len,
            )
        };

        self.done(r)?;
        Ok(flows[..len].iter().map(Flow::from_c).collect())
    }

    /// Removes attachments whose interface is gone, and, with a network, those of that
    /// network whose id is not in `keep`. The network "" is that of all that were attached
    /// without one. Returns how many.
    pub fn gc(&mut self, network: Option<&str>, keep: &[&str]) -> Result<usize> {
        let network = network.map(|n| c_string("network", n)).transpose()?;
        let keep = keep
            .iter()
            .map(|id| c_string("keep", id))
            .collect::<Result<Vec<_>>>()?;
        let pointers: Vec<_> = keep.iter().map(|id| id.as_ptr()).collect();
        let mut removed = 0;
        let r = unsafe {
            sys::natra_gc(
                self.handle.as_ptr(),
                network.as_ref().map_or(ptr::null(), |n| n.as_ptr()),
                pointers.as_ptr(),
                pointers.len(),
                &mut removed,
            )
        };

        self.done(r)?;
        Ok(removed)
    }
}

fn new_info() -> sys::natra_info {
    sys::natra_info {
        sz: size_of::<sys::natra_info>(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_library_is_named() {
        let e = check_version("0.0.9", "0.1.0").unwrap_err();

        assert_eq!(
            e.to_string(),
            "libnatra 0.0.9 is older than this crate, 0.1.0"
        );
        // As in Go.
        assert_eq!(e.errno(), 95);
        for same_or_newer in ["0.1.0", "0.1.1", "0.10.0", "1.0.0", "0.1.0-3"] {
            assert!(
                check_version(same_or_newer, "0.1.0").is_ok(),
                "{same_or_newer}"
            );
        }
    }
}
