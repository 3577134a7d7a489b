//! `Limits`: what a caller may bound.

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use tokenform_core::mask::{reclaim, store};
use tokenform_core::{cache, Limits as Core};

use crate::arguments::{maybe_named, Whole};

/// Limits of an automaton, or, by `set_limits`, of whatever says nothing else in this process.
#[pyclass(frozen, eq, hash, get_all, module = "tokenform._core")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Steps of work that one call may need, making a constraint included.
    work: u64,
    /// Bytes that an automaton keeps beside what live texts need.
    memory: usize,
    /// Nesting of arrays and objects in a document.
    depth: u32,
}

impl Limits {
    pub fn of(limits: &Core) -> Self {
        Limits { work: limits.work, memory: limits.memory, depth: limits.depth }
    }

    pub fn core(&self) -> Core {
        Core { work: self.work, memory: self.memory, depth: self.depth }
    }
}

#[pymethods]
impl Limits {
    /// What is not said is as it is for the process.
    #[new]
    #[pyo3(signature = (*, work = None, memory = None, depth = None))]
    fn new(
        work: Option<Whole<u64>>,
        memory: Option<Whole<usize>>,
        depth: Option<Whole<u32>>,
    ) -> PyResult<Self> {
        let usual = Core::default();
        Ok(Limits {
            work: maybe_named(work, "work")?.unwrap_or(usual.work),
            memory: maybe_named(memory, "memory")?.unwrap_or(usual.memory),
            depth: maybe_named(depth, "depth")?.unwrap_or(usual.depth),
        })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (u64, usize, u32))> {
        Ok((py.import("tokenform._core")?.getattr("limits_again")?, (self.work, self.memory, self.depth)))
    }

    fn __repr__(&self) -> String {
        format!("Limits(work={}, memory={}, depth={})", self.work, self.memory, self.depth)
    }
}

/// Limits from plain data, for `pickle`.
#[pyfunction]
pub fn limits_again(work: u64, memory: usize, depth: u32) -> Limits {
    Limits { work, memory, depth }
}

/// Sets limits of this process: those of automata that are made from now on and say nothing else, the bytes that all
/// automata keep together, those of the lexical masks that they share, and those of the table of what was compiled.
#[pyfunction]
#[pyo3(signature = (limits = None, *, memory = None, shared = None, compiled = None))]
pub fn set_limits(
    py: Python<'_>,
    limits: Option<Limits>,
    memory: Option<Whole<usize>>,
    shared: Option<Whole<usize>>,
    compiled: Option<Whole<usize>>,
) -> PyResult<()> {
    let memory = maybe_named(memory, "memory")?;
    let shared = maybe_named(shared, "shared")?;
    let compiled = maybe_named(compiled, "compiled")?;
    crate::host::unlocked(py, || {
        if let Some(limits) = limits {
            limits.core().make_default();
        }
        if let Some(bytes) = memory {
            reclaim::set_bound(bytes);
        }
        if let Some(bytes) = shared {
            store::set_limit(bytes);
        }
        if let Some(bytes) = compiled {
            cache::set_limit(bytes);
        }
    });
    Ok(())
}

/// Bytes held and the bound on them: of all automata ("automata"), of the masks they share ("shared") and of the table
/// of what was compiled ("compiled").
#[pyfunction]
pub fn memory_held(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    [
        ("automata", (reclaim::held(), reclaim::bound())),
        ("shared", (store::figures().bytes, store::limit())),
        ("compiled", (cache::held(), cache::limit())),
    ]
    .into_py_dict(py)
}

/// Forgets what was compiled and the masks that automata share; automata that are in use stay as they are.
#[pyfunction]
pub fn clear_cache(py: Python<'_>) {
    crate::host::unlocked(py, || {
        cache::clear();
        store::clear();
    });
}
