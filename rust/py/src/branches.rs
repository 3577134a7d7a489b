//! Constraints that begin with texts of their own, each read once: see `tokenform_core::compose::branches`.

use std::sync::Arc;

use pyo3::prelude::*;
use tokenform_core::compose::branches::{Branch as Core, Rest as CoreRest};

use crate::errors::raise;
use crate::host::unlocked;

/// What follows the texts of branches.
#[pyclass(frozen, module = "tokenform._core")]
pub struct Rest {
    core: Arc<CoreRest>,
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

/// A text, and what follows it.
#[pyclass(frozen, module = "tokenform._core")]
pub struct Branch {
    pub core: Arc<Core>,
}

#[pymethods]
impl Branch {
    /// What was ignored or loosened.
    #[getter]
    fn report(&self) -> Vec<String> {
        self.core.report().to_vec()
    }

    /// The special tokens in what follows its text.
    #[getter]
    fn specials(&self) -> Vec<&str> {
        self.core.specials().iter().map(|text| &**text).collect()
    }
}

/// Branches that go on alike: (text, the schema in the slot as JSON text) each.
#[pyfunction]
pub fn branches(
    py: Python<'_>,
    rest: &Bound<'_, Rest>,
    all: Vec<(String, Option<String>)>,
) -> PyResult<Vec<Branch>> {
    let rest = &rest.get().core;
    let read = unlocked(py, || Core::read(rest, all)).map_err(raise)?;
    Ok(read.into_iter().map(|core| Branch { core }).collect())
}

/// Branches that go on each in its own way: (text, the rule of the table, a grammar as JSON text, with which what follows it
/// begins) each.  None for those after whose text nothing may follow.
#[pyfunction]
pub fn branches_of(py: Python<'_>, table: &str, all: Vec<(String, String)>) -> PyResult<Vec<Option<Branch>>> {
    let read = unlocked(py, || Core::read_each(table, all)).map_err(raise)?;
    Ok(read.into_iter().map(|core| core.map(|core| Branch { core })).collect())
}
