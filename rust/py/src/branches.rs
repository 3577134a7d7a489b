//! Constraints that begin with texts of their own, each read once: see `tokenform_core::compose::branches`.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::PyFrozenSet;
use tokenform_core::compose::branches::{Branch, Branches as CoreBranches, Rest as CoreRest};

use crate::errors::raise;
use crate::host::{lock, unlocked};

/// What follows the texts of branches.
#[pyclass(frozen, module = "tokenform._core")]
pub struct Rest {
    pub core: Arc<CoreRest>,
}

#[pymethods]
impl Rest {
    /// From a form as JSON text; `options`, as JSON text: how documents are written in its slot, if it has one.
    #[new]
    #[pyo3(signature = (form, options = None))]
    fn new(py: Python<'_>, form: &str, options: Option<&str>) -> PyResult<Self> {
        Ok(Rest { core: unlocked(py, || CoreRest::read(form, options)).map_err(raise)? })
    }
}

/// The name of a tool, and its branch in each way of calling it, by the numbers of these.
#[pyclass(frozen, module = "tokenform._core")]
pub struct OfTool {
    pub name: Box<str>,
    made: Mutex<Vec<(u64, Arc<Branch>)>>,
}

impl OfTool {
    pub fn get(&self, way: u64) -> Option<Arc<Branch>> {
        lock(&self.made).iter().find(|made| made.0 == way).map(|made| made.1.clone())
    }

    pub fn has(&self, way: u64) -> bool {
        lock(&self.made).iter().any(|made| made.0 == way)
    }

    /// Keeps a branch, unless another thread was first.
    pub fn put(&self, way: u64, branch: Arc<Branch>) {
        let mut made = lock(&self.made);
        if !made.iter().any(|made| made.0 == way) {
            made.push((way, branch));
        }
    }
}

#[pymethods]
impl OfTool {
    #[new]
    fn new(name: &str) -> Self {
        OfTool { name: name.into(), made: Mutex::default() }
    }

    /// What was ignored or loosened when its schema was read; None: it was not read by itself.
    #[getter]
    fn report(&self) -> Option<Vec<String>> {
        let made = lock(&self.made);
        made.iter().find(|made| made.1.has_schema()).map(|made| made.1.report().to_vec())
    }
}

/// A list of branches, which a form names by its number.
#[pyclass(frozen, module = "tokenform._core")]
pub struct Branches {
    pub core: Arc<CoreBranches>,
}

#[pymethods]
impl Branches {
    /// The special tokens in what follows their texts.
    #[getter]
    fn specials<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFrozenSet>> {
        PyFrozenSet::new(py, self.core.specials().iter().map(|text| &**text))
    }
}
