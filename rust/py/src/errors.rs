//! Engine errors become exceptions of `tokenform.errors`, by name.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use tokenform_core::{Error, Kind};

use crate::allocator;
use crate::host::{in_python, take_raised, unlocked};

pub fn names() -> Vec<&'static str> {
    Kind::ALL.iter().map(|k| k.name()).collect()
}

/// The exception for an engine error.
pub fn raise(error: Error) -> PyErr {
    if error.kind == Kind::Interrupted {
        if let Some(raised) = take_raised() {
            return raised;
        }
    }
    Python::with_gil(|py| {
        if error.kind == Kind::LimitExceeded {
            // the call may have held hundreds of megabytes, which must not stand beside what the next one holds
            unlocked(py, allocator::give_back_now);
        }
        in_python(py, || build(py, &error).unwrap_or_else(|e| e))
    })
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let module = py.import("tokenform.errors")?;
    let class = module.getattr(error.kind.name())?.downcast_into::<PyType>()?;
    let details = PyDict::new(py);
    details.set_item("pointer", &error.pointer)?;
    details.set_item("keyword", &error.keyword)?;
    details.set_item("line", error.line)?;
    details.set_item("column", error.column)?;
    let value = class.call((error.to_string(),), Some(&details))?;
    if let Some(least) = error.least {
        value.setattr("least", least)?;
    }
    Ok(PyErr::from_value(value))
}
