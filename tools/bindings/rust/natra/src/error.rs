// SPDX-License-Identifier: BSD-2-Clause
//! What a call of libnatra failed with.

use std::ffi::{CStr, CString};
use std::{fmt, io};

use crate::words::Code;

/// The errno of a call that failed, and libnatra's one line of text about it, which
/// names the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    errno: i32,
    code: Code,
    about: String,
    text: String,
}

/// What calls of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

pub(crate) const ENOMEM: i32 = 12;
const EINVAL: i32 = 22;
pub(crate) const EOPNOTSUPP: i32 = 95;
pub(crate) const ECANCELED: i32 = 125;

impl Error {
    /// The number, such as 2 (`ENOENT`) where nothing is attached.
    pub fn errno(&self) -> i32 {
        self.errno
    }

    /// What tells it apart from what has the same number.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The name of the setting, argument, class or annotation that is wrong or differs; "" if
    /// the code has none.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The kind that the standard library has for the number.
    pub fn kind(&self) -> io::ErrorKind {
        io::Error::from_raw_os_error(self.errno).kind()
    }

    pub(crate) fn new(errno: i32, text: impl Into<String>) -> Error {
        Error {
            errno,
            code: Code::None,
            about: String::new(),
            text: text.into(),
        }
    }

    /// Makes what the library would, of a value that it cannot be given.
    pub(crate) fn of_field(name: &str, why: impl fmt::Display) -> Error {
        Error {
            code: Code::Field,
            about: name.into(),
            ..Error::new(EINVAL, format!("{name}: {why}"))
        }
    }

    /// Makes the error of a call that returned `r`, which is negative. `code`, `about`
    /// and `text` are those of the handle.
    pub(crate) fn of_call(r: i32, code: Code, about: &CStr, text: &CStr) -> Error {
        let text = text.to_string_lossy();

        if text.is_empty() {
            return Error::new(-r, io::Error::from_raw_os_error(-r).to_string());
        }
        Error {
            code,
            about: about.to_string_lossy().into_owned(),
            ..Error::new(-r, text)
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(e: Error) -> io::Error {
        io::Error::new(e.kind(), e)
    }
}

/// Makes a string for C. `name` is that of the field, for the error.
pub(crate) fn c_string(name: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::of_field(name, format!("{text:?} has a NUL byte")))
}
