// SPDX-License-Identifier: BSD-2-Clause
//! The words of a policy, as the command line and the CNI configuration write them.

use std::ffi::CStr;
use std::fmt;
use std::str::FromStr;

use natra_sys as sys;

use crate::error::{c_string, Error, Result};

/// Makes an enum whose values are C's, with the names that libnatra has for them.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $of:ident, $name_of:ident,
     $first:ident = $first_value:ident, $($(#[$word_doc:meta])* $word:ident = $value:ident,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            /// The default.
            $first,
            $($(#[$word_doc])* $word,)*
            /// A word of a libnatra that is newer than this crate.
            Unknown(u32),
        }

        impl $name {
            pub(crate) fn from_c(value: sys::$of) -> $name {
                match value {
                    sys::$first_value => $name::$first,
                    $(sys::$value => $name::$word,)*
                    other => $name::Unknown(other),
                }
            }

            pub(crate) fn to_c(self) -> sys::$of {
                match self {
                    $name::$first => sys::$first_value,
                    $($name::$word => sys::$value,)*
                    $name::Unknown(value) => value,
                }
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name::$first
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // The text is static, or NULL for a value that is out of range.
                let name = unsafe { sys::$name_of(self.to_c()) };

                if name.is_null() {
                    return write!(f, "{}", self.to_c());
                }
                f.write_str(&unsafe { CStr::from_ptr(name) }.to_string_lossy())
            }
        }
    };
}

/// Lets an enum be read from its words, by the function that libnatra has for it.
macro_rules! reads {
    ($name:ident, $parse:ident, $what:literal) => {
        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<$name> {
                let c = c_string($what, text)?;
                let mut value = 0;

                if unsafe { sys::$parse(c.as_ptr(), &mut value) } < 0 {
                    return Err(Error::of_field($what, format!("'{text}' is unknown")));
                }
                Ok($name::from_c(value))
            }
        }
    };
}

words! {
    /// Where the programs are.
    AttachMode, natra_attach_mode, natra_attach_mode_name,
    Auto = NATRA_ATTACH_MODE_AUTO,
    /// TCX on the pod's interface.
    TcxPodside = NATRA_ATTACH_MODE_TCX_PODSIDE,
    /// clsact on the pod's interface.
    ClsactPodside = NATRA_ATTACH_MODE_CLSACT_PODSIDE,
    /// TCX on the host-side veth.
    TcxHostside = NATRA_ATTACH_MODE_TCX_HOSTSIDE,
    /// clsact on the host-side veth.
    ClsactHostside = NATRA_ATTACH_MODE_CLSACT_HOSTSIDE,
}

words! {
    /// Whether egress is paced by departure times, which needs fq.
    EdtPacing, natra_edt_pacing, natra_edt_pacing_name,
    Auto = NATRA_EDT_PACING_AUTO,
    /// Fail without it.
    On = NATRA_EDT_PACING_ON,
    /// Never touch a qdisc.
    Off = NATRA_EDT_PACING_OFF,
}

words! {
    /// How flows under the heavy-hitter threshold are treated.
    FastPass, natra_fast_pass, natra_fast_pass_name,
    Free = NATRA_FAST_PASS_FREE,
    /// They pass first and are charged: a strict cap.
    Strict = NATRA_FAST_PASS_STRICT,
    /// Every flow is treated as heavy.
    Off = NATRA_FAST_PASS_OFF,
}

words! {
    /// How ingress is held to its rate.
    IngressMode, natra_ingress_mode, natra_ingress_mode_name,
    Police = NATRA_INGRESS_MODE_POLICE,
    /// Hold packets in fq on the host-side veth.
    Pace = NATRA_INGRESS_MODE_PACE,
}

words! {
    /// Whether TCP connections are measured.
    Sli, natra_sli, natra_sli_name,
    Off = NATRA_SLI_OFF,
    /// Measure them, in both directions.
    On = NATRA_SLI_ON,
}

reads!(AttachMode, natra_parse_attach_mode, "attach_mode");
reads!(EdtPacing, natra_parse_edt_pacing, "edt_pacing");
reads!(FastPass, natra_parse_fast_pass, "fast_pass");
reads!(IngressMode, natra_parse_ingress_mode, "ingress_mode");
reads!(Sli, natra_parse_sli, "sli");

words! {
    /// What tells apart errors that have the same errno; `natra/errors.h` says more about
    /// each, and with which errno it comes.
    Code, natra_code, natra_code_name,
    None = NATRA_CODE_NONE,
    /// No such id, or nothing on this interface.
    NotAttached = NATRA_CODE_NOT_ATTACHED,
    /// The path or name leads to no network namespace.
    NoNetns = NATRA_CODE_NO_NETNS,
    /// There is no such group.
    NoGroup = NATRA_CODE_NO_GROUP,
    /// The attachment has no such class.
    NoClass = NATRA_CODE_NO_CLASS,
    /// Another process holds a lock: try it again.
    Locked = NATRA_CODE_LOCKED,
    /// Another id has limits on the interface.
    OtherId = NATRA_CODE_OTHER_ID,
    /// Another owner's qdisc is where natra's would be.
    OtherQdisc = NATRA_CODE_OTHER_QDISC,
    /// The same, and it is one that the bandwidth plugin left.
    Leftovers = NATRA_CODE_LEFTOVERS,
    /// `attach` can change this, `configure` cannot.
    Fixed = NATRA_CODE_FIXED,
    /// It is recorded that the interface runs without limits.
    Unshaped = NATRA_CODE_UNSHAPED,
    /// natra's fq on the pod's interface is not as it was put there.
    PodFq = NATRA_CODE_POD_FQ,
    /// The same on the host-side veth.
    HostFq = NATRA_CODE_HOST_FQ,
    /// What was set is not what is in the policy of `check`.
    LimitsDiffer = NATRA_CODE_LIMITS_DIFFER,
    /// The same of the classes alone.
    ClassesDiffer = NATRA_CODE_CLASSES_DIFFER,
    /// A value of an annotation is wrong.
    Annotation = NATRA_CODE_ANNOTATION,
    /// In the place of the interface that has the limits is another one.
    OtherInterface = NATRA_CODE_OTHER_INTERFACE,
    /// Packets pass natra's program.
    Bypassed = NATRA_CODE_BYPASSED,
    /// A value is not allowed, or is missing.
    Field = NATRA_CODE_FIELD,
}

/// A direction, seen from the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Direction {
    /// Into the pod.
    Ingress,
    /// Out of the pod.
    Egress,
}

impl Direction {
    pub(crate) fn to_c(self) -> sys::natra_direction {
        match self {
            Direction::Ingress => sys::NATRA_DIRECTION_INGRESS,
            Direction::Egress => sys::NATRA_DIRECTION_EGRESS,
        }
    }
}

fn quantity(
    name: &str,
    text: &str,
    parse: unsafe extern "C" fn(*const std::os::raw::c_char, *mut u64) -> std::os::raw::c_int,
) -> Result<u64> {
    let c = c_string(name, text)?;
    let mut value = 0;

    match unsafe { parse(c.as_ptr(), &mut value) } {
        0 => Ok(value),
        r => Err(Error::new(
            -r,
            format!("'{text}' is not a {name}, or outside its limits"),
        )),
    }
}

/// Reads a Kubernetes quantity such as `10M` or `1.5Gi`, in bit/s.
pub fn parse_rate(text: &str) -> Result<u64> {
    quantity("rate", text, sys::natra_parse_rate)
}

/// Reads the same in bytes.
pub fn parse_size(text: &str) -> Result<u64> {
    quantity("size", text, sys::natra_parse_size)
}

/// Reads a time such as `50ms`, in nanoseconds.
pub fn parse_time(text: &str) -> Result<u64> {
    quantity("time", text, sys::natra_parse_time)
}
