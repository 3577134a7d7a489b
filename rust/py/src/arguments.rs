//! Arguments as callers give them: whole numbers, texts, arrays; what is wrong with them is said in their own terms.

use std::borrow::Cow;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};

use crate::batch::wrong;

/// A whole number of at least 0 (a token id, a budget, a limit), or one that is none: where a value is read nobody
/// knows yet which argument it is, and Python's own error for `-1` says neither that nor what is asked for.
pub struct Whole<T>(Result<T, String>);

impl<'py, T: FromPyObject<'py>> FromPyObject<'py> for Whole<T> {
    fn extract_bound(given: &Bound<'py, PyAny>) -> PyResult<Self> {
        match given.extract() {
            Ok(number) => Ok(Whole(Ok(number))),
            Err(error) if error.is_instance_of::<PyOverflowError>(given.py()) => {
                Ok(Whole(Err(given.to_string())))
            }
            Err(error) => Err(error),
        }
    }
}

impl<T> Whole<T> {
    /// The default of an argument.
    pub fn of(number: T) -> Self {
        Whole(Ok(number))
    }

    /// The number that was given for an argument.
    pub fn named(self, argument: &str) -> PyResult<T> {
        self.0.map_err(|given| {
            wrong(format!("{argument}: {given} is out of range; give a whole number of at least 0"))
        })
    }
}

/// The numbers that were given for an argument that takes several.
pub fn all_named<T>(given: Vec<Whole<T>>, argument: &str) -> PyResult<Vec<T>> {
    given.into_iter().map(|number| number.named(argument)).collect()
}

/// The number that was given for an argument that may be left out.
pub fn maybe_named<T>(given: Option<Whole<T>>, argument: &str) -> PyResult<Option<T>> {
    given.map(|number| number.named(argument)).transpose()
}

/// A text, or its bytes.
#[derive(FromPyObject)]
pub enum Text {
    Bytes(PyBackedBytes),
    Str(PyBackedStr),
}

impl Text {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Text::Bytes(bytes) => bytes,
            Text::Str(text) => text.as_bytes(),
        }
    }
}

/// What an array is, for a caller who gave another than was asked for.
pub fn shown(out: &Bound<'_, PyAny>) -> String {
    let part = |name: &str| out.getattr(name).and_then(|part| Ok(part.str()?.to_string())).ok();
    let (Some(dtype), Some(shape)) = (part("dtype"), part("shape")) else {
        return out.get_type().name().map_or("this is none".into(), |name| format!("this is a {name}"));
    };
    let flag = |name: &str| out.getattr("flags").and_then(|f| f.getattr(name)?.extract()).unwrap_or(true);
    let but: Cow<'_, str> = match (flag("writeable"), flag("c_contiguous")) {
        (true, true) => "".into(),
        (false, _) => ", and can't be written to".into(),
        (true, false) => ", and not contiguous".into(),
    };
    format!("this one has the dtype {dtype} and the shape {shape}{but}")
}
