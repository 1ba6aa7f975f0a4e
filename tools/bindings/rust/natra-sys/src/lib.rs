// SPDX-License-Identifier: BSD-2-Clause
//! The functions, structs and constants of `natra.h`, as C has them. That header is their
//! documentation; the crate `natra` is the safe way to call them.
//!
//! Structs that begin with `sz` must have their own size there:
//!
//! ```
//! let mut features = natra_sys::natra_features {
//!     sz: std::mem::size_of::<natra_sys::natra_features>(),
//!     ..Default::default()
//! };
//! let mut n = std::ptr::null_mut();
//!
//! unsafe {
//!     assert_eq!(natra_sys::natra_open(&mut n, std::ptr::null()), 0);
//!     natra_sys::natra_probe(n, &mut features);
//!     natra_sys::natra_close(n);
//! }
//! ```

#[allow(non_camel_case_types, non_upper_case_globals)]
#[allow(deref_nullptr, clippy::all)]
mod bindings;

pub use bindings::*;
