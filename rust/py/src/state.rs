//! `State`: a place in a text, held by whoever needs it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use pyo3::prelude::*;
use tokenform_core::mask::{State as Core, TokenAutomaton};

/// A state of an automaton: immutable, hashable, valid as long as it is held.
#[pyclass(frozen, module = "tokenform._core")]
pub struct State {
    pub inner: Core,
    pub automaton: Arc<TokenAutomaton>,
}

#[pymethods]
impl State {
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.downcast::<State>().is_ok_and(|other| other.get().inner == self.inner)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.inner.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("<{:?}>", self.inner)
    }
}
