//! `Vocabulary`: the bytes of every token id.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokenform_core::mask::store;
use tokenform_core::{cache, vocab};

use crate::arguments::{all_named, Whole};
use crate::errors::raise;
use crate::host::unlocked;

#[pyclass(frozen, subclass, module = "tokenform._core")]
pub struct Vocabulary {
    pub inner: Arc<vocab::Vocabulary>,
    special: Vec<u32>,
}

impl Drop for Vocabulary {
    /// Nobody asks for its automata any more.
    fn drop(&mut self) {
        cache::forget(self.inner.key());
    }
}

#[pymethods]
impl Vocabulary {
    #[new]
    #[pyo3(signature = (tokens, eos, special = Vec::new()))]
    fn new(
        py: Python<'_>,
        tokens: Vec<Vec<u8>>,
        eos: Vec<Whole<u32>>,
        special: Vec<Whole<u32>>,
    ) -> PyResult<Self> {
        let (eos, special) = (all_named(eos, "eos")?, all_named(special, "special")?);
        let named = special.clone();
        let made = unlocked(py, move || {
            let tokens = tokens.into_iter().map(Into::into).collect();
            let vocabulary = vocab::Vocabulary::new(tokens, eos, &named)?;
            store::prepare(&vocabulary);
            Ok(vocabulary)
        });
        let inner = made.map_err(raise)?;
        Ok(Vocabulary { inner: Arc::new(inner), special })
    }

    /// Number of ids.
    #[getter]
    fn size(&self) -> usize {
        self.inner.size()
    }

    /// Bytes of every id.
    #[getter]
    fn tokens<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.inner.tokens().iter().map(|t| PyBytes::new(py, t)).collect()
    }

    /// Ids that end a text, sorted.
    #[getter]
    fn eos(&self) -> Vec<u32> {
        self.inner.eos().iter().map(|t| t.0).collect()
    }

    /// Ids that no text spells.
    #[getter]
    fn special(&self) -> Vec<u32> {
        self.special.clone()
    }

    fn token<'py>(&self, py: Python<'py>, id: Whole<u32>) -> PyResult<Bound<'py, PyBytes>> {
        let id = id.named("id")?;
        match self.inner.tokens().get(id as usize) {
            Some(bytes) => Ok(PyBytes::new(py, bytes)),
            None => Err(pyo3::exceptions::PyIndexError::new_err(format!(
                "the vocabulary has {} tokens; {id} is none of them",
                self.inner.size()
            ))),
        }
    }

    /// Ids that spell the bytes, longest first; `None` when the vocabulary can't.
    fn greedy(&self, text: &[u8]) -> Option<Vec<u32>> {
        Some(self.inner.greedy_tokens(text)?.into_iter().map(|t| t.0).collect())
    }

    fn __len__(&self) -> usize {
        self.inner.size()
    }

    fn __repr__(&self) -> String {
        format!("Vocabulary({} tokens, eos={:?})", self.inner.size(), self.eos())
    }
}
