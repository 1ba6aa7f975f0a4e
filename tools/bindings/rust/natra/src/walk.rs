// SPDX-License-Identifier: BSD-2-Clause
//! The functions of libnatra that call back. A closure that panics ends the walk, and the
//! panic goes on when C has returned.

use std::any::Any;
use std::ops::ControlFlow;
use std::os::raw::{c_char, c_int, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use natra_sys as sys;

use crate::counters::FromC;
use crate::error::{c_string, Result, ECANCELED};
use crate::types::text_at;
use crate::{Class, Info, Natra, Stats};

/// A closure on its way through C, and the panic that ended it.
struct Walk<F> {
    each: F,
    is_ended: bool,
    panic: Option<Box<dyn Any + Send>>,
}

impl<F> Walk<F> {
    fn new(each: F) -> Walk<F> {
        Walk {
            each,
            is_ended: false,
            panic: None,
        }
    }

    fn arg(&mut self) -> *mut c_void {
        self as *mut Walk<F> as *mut c_void
    }

    /// Calls the closure. What it returns other than 0 ends the walk.
    fn step(&mut self, call: impl FnOnce(&mut F) -> ControlFlow<()>) -> c_int {
        match catch_unwind(AssertUnwindSafe(|| call(&mut self.each))) {
            Ok(ControlFlow::Continue(())) => return 0,
            Ok(ControlFlow::Break(())) => {}
            Err(panic) => self.panic = Some(panic),
        }
        self.is_ended = true;
        -ECANCELED
    }

    fn end(self, natra: &Natra, r: c_int) -> Result<()> {
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
        if self.is_ended {
            return Ok(());
        }
        natra.done(r)
    }
}

unsafe extern "C" fn on_attachment<F: FnMut(Info) -> ControlFlow<()>>(
    arg: *mut c_void,
    info: *const sys::natra_info,
) -> c_int {
    let walk = &mut *(arg as *mut Walk<F>);

    walk.step(|each| each(Info::from_c(&*info)))
}

unsafe extern "C" fn on_stats<F: FnMut(Info, Option<&Stats>) -> ControlFlow<()>>(
    arg: *mut c_void,
    info: *const sys::natra_info,
    stats: *const sys::natra_stats,
) -> c_int {
    let walk = &mut *(arg as *mut Walk<F>);

    let stats = stats.as_ref().map(Stats::from_c);

    walk.step(|each| each(Info::from_c(&*info), stats.as_ref()))
}

unsafe extern "C" fn on_subnet<F: FnMut(String) -> ControlFlow<()>>(
    arg: *mut c_void,
    cidr: *const c_char,
) -> c_int {
    let walk = &mut *(arg as *mut Walk<F>);

    walk.step(|each| each(text_at(cidr)))
}

unsafe extern "C" fn on_class<F: FnMut(Class) -> ControlFlow<()>>(
    arg: *mut c_void,
    class: *const sys::natra_class,
) -> c_int {
    let walk = &mut *(arg as *mut Walk<F>);

    walk.step(|each| each(Class::from_c(&*class)))
}

/// The function that C calls for this closure; the argument only names its type.
fn attachment_fn<F: FnMut(Info) -> ControlFlow<()>>(_: &Walk<F>) -> sys::natra_attachment_fn {
    Some(on_attachment::<F>)
}

fn stats_fn<F: FnMut(Info, Option<&Stats>) -> ControlFlow<()>>(_: &Walk<F>) -> sys::natra_stats_fn {
    Some(on_stats::<F>)
}

fn subnet_fn<F: FnMut(String) -> ControlFlow<()>>(_: &Walk<F>) -> sys::natra_subnet_fn {
    Some(on_subnet::<F>)
}

fn class_fn<F: FnMut(Class) -> ControlFlow<()>>(_: &Walk<F>) -> sys::natra_class_fn {
    Some(on_class::<F>)
}

impl Natra {
    /// Walks all attachments, in the order of their ids, until `each` breaks. The subnets
    /// and classes of their policies are left out; [`Natra::subnets`] and
    /// [`Natra::classes`] read them.
    pub fn foreach_attachment(&mut self, each: impl FnMut(Info) -> ControlFlow<()>) -> Result<()> {
        let mut walk = Walk::new(each);
        let call = attachment_fn(&walk);
        let r = unsafe { sys::natra_foreach_attachment(self.handle.as_ptr(), call, walk.arg()) };

        walk.end(self, r)
    }

    /// Returns all attachments, as [`Natra::foreach_attachment`] reports them.
    pub fn attachments(&mut self) -> Result<Vec<Info>> {
        let mut found = Vec::new();

        self.foreach_attachment(|info| {
            found.push(info);
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Walks all attachments with their counters, in no particular order. There are no
    /// counters where nothing is limited, or where they cannot be read.
    pub fn foreach_stats(
        &mut self,
        each: impl FnMut(Info, Option<&Stats>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut walk = Walk::new(each);
        let call = stats_fn(&walk);
        let r = unsafe { sys::natra_foreach_stats(self.handle.as_ptr(), call, walk.arg()) };

        walk.end(self, r)
    }

    /// Returns the subnets of an attachment, in ascending order.
    pub fn subnets(&mut self, id: &str) -> Result<Vec<String>> {
        let id = c_string("id", id)?;
        let mut found = Vec::new();
        let mut walk = Walk::new(|cidr| {
            found.push(cidr);
            ControlFlow::Continue(())
        });
        let call = subnet_fn(&walk);
        let r = unsafe {
            sys::natra_foreach_subnet(self.handle.as_ptr(), id.as_ptr(), call, walk.arg())
        };

        walk.end(self, r)?;
        Ok(found)
    }

    /// Returns the classes of an attachment, in the order in which they were given.
    pub fn classes(&mut self, id: &str) -> Result<Vec<Class>> {
        let id = c_string("id", id)?;
        let mut found = Vec::new();
        let mut walk = Walk::new(|class| {
            found.push(class);
            ControlFlow::Continue(())
        });
        let call = class_fn(&walk);
        let r = unsafe {
            sys::natra_foreach_class(self.handle.as_ptr(), id.as_ptr(), call, walk.arg())
        };

        walk.end(self, r)?;
        Ok(found)
    }

    /// Adds the lists to the policies of an attachment, of which C has told the lengths.
    pub(crate) fn with_lists(&mut self, mut info: Info, c: &sys::natra_info) -> Result<Info> {
        if c.policy.classes_len > 0 {
            info.policy.classes = self.classes(&info.id)?;
            info.effective.classes = info.policy.classes.clone();
        }
        if c.policy.shaped_subnets_len + c.policy.unshaped_subnets_len == 0 {
            return Ok(info);
        }
        let subnets = self.subnets(&info.id)?;

        for policy in [&mut info.policy, &mut info.effective] {
            if c.policy.shaped_subnets_len > 0 {
                policy.shaped_subnets = subnets.clone();
            } else {
                policy.unshaped_subnets = subnets.clone();
            }
        }
        Ok(info)
    }
}
