//! `Canvas`: what may stand at the open positions of a sequence; `tokenform.engine.canvas` is its face.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use tokenform_core::canvas::{Canvas as Core, Filling, Weights};
use tokenform_core::vocab::TokenId;
use tokenform_core::Result;

use crate::arguments::{maybe_named, Whole};
use crate::automaton::TokenAutomaton;
use crate::batch::wrong;
use crate::errors::raise;
use crate::host::unlocked;

type Tokens<'py> = Bound<'py, PyArray1<i32>>;

/// Positions that are known tokens or open; see `tokenform.Canvas`.
#[pyclass(frozen, module = "tokenform._core", weakref)]
pub struct Canvas {
    inner: Mutex<Core>,
    automaton: Py<TokenAutomaton>,
}

impl Canvas {
    fn lock(&self) -> MutexGuard<'_, Core> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call that may build.
    fn call<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&mut Core) -> Result<T> + Send) -> PyResult<T> {
        unlocked(py, || call(&mut self.lock())).map_err(raise)
    }
}

fn tokens_of<'py>(py: Python<'py>, filling: &Filling) -> Tokens<'py> {
    PyArray1::from_iter(py, filling.tokens.iter().map(|&token| token as i32))
}

#[pymethods]
impl Canvas {
    #[new]
    fn new(py: Python<'_>, automaton: Py<TokenAutomaton>, length: Whole<usize>) -> PyResult<Self> {
        let (core, length) = (automaton.get().core.clone(), length.named("length")?);
        let inner = unlocked(py, || Core::new(core, length)).map_err(raise)?;
        Ok(Canvas { inner: Mutex::new(inner), automaton })
    }

    #[getter]
    fn automaton(&self, py: Python<'_>) -> Py<TokenAutomaton> {
        self.automaton.clone_ref(py)
    }

    #[getter]
    fn tokens(&self, py: Python<'_>) -> PyResult<Vec<Option<u32>>> {
        self.call(py, |canvas| Ok(canvas.cells().iter().map(|cell| cell.map(|token| token.0)).collect()))
    }

    /// Makes tokens known at positions, or opens them (None).
    fn set(&self, py: Python<'_>, places: Vec<(Whole<usize>, Option<Whole<u32>>)>) -> PyResult<()> {
        let places: Vec<(usize, Option<TokenId>)> = places
            .into_iter()
            .map(|(at, token)| Ok((at.named("position")?, maybe_named(token, "token")?.map(TokenId))))
            .collect::<PyResult<_>>()?;
        self.call(py, |canvas| places.into_iter().try_for_each(|(at, token)| canvas.fill(at, token)))
    }

    fn fork(&self, py: Python<'_>) -> PyResult<Self> {
        let inner = self.call(py, |canvas| Ok(canvas.clone()))?;
        Ok(Canvas { inner: Mutex::new(inner), automaton: self.automaton.clone_ref(py) })
    }

    fn feasible(&self, py: Python<'_>) -> PyResult<bool> {
        self.call(py, |canvas| canvas.feasible())
    }

    /// uint32 [P, ceil(V/32)]: the masks of positions.
    fn masks<'py>(
        &self,
        py: Python<'py>,
        positions: Vec<Whole<usize>>,
    ) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let positions =
            positions.into_iter().map(|at| at.named("position")).collect::<PyResult<Vec<usize>>>()?;
        let words = self.automaton.get().core.vocabulary().mask_words();
        let rows = self.call(py, |canvas| {
            let mut rows = vec![0u32; positions.len() * words];
            for (row, &at) in rows.chunks_mut(words.max(1)).zip(&positions) {
                canvas.mask(at, row)?;
            }
            Ok(rows)
        })?;
        PyArray1::from_vec(py, rows).reshape([positions.len(), words])
    }

    /// (tokens, the sum of their logits); None: nothing accepted has a weight.
    fn best<'py>(
        &self,
        py: Python<'py>,
        logits: PyReadonlyArray2<'py, f32>,
        temperature: f64,
    ) -> PyResult<Option<(Tokens<'py>, f64)>> {
        let (rows, width) = rows_of(&logits)?;
        let found = self.call(py, |canvas| canvas.best(&Weights::new(rows, width, temperature)))?;
        Ok(found.map(|filling| (tokens_of(py, &filling), filling.weight)))
    }

    /// ([(tokens, the sum of their logits)], log Z, the sum of the positions' log totals), a filling for each row of numbers.
    #[allow(clippy::type_complexity)]
    fn draw<'py>(
        &self,
        py: Python<'py>,
        logits: PyReadonlyArray2<'py, f32>,
        temperature: f64,
        numbers: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Option<(Vec<(Tokens<'py>, f64)>, f64, f64)>> {
        let ((rows, width), numbers) = (rows_of(&logits)?, numbers.as_slice()?);
        let found = self.call(py, |canvas| {
            let weights = Weights::new(rows, width, temperature);
            let found = canvas.draw(&weights, numbers)?;
            Ok(found.map(|(fillings, sum)| (fillings, sum, canvas.total(&weights))))
        })?;
        Ok(found.map(|(fillings, sum, total)| {
            let fillings = fillings.iter().map(|filling| (tokens_of(py, filling), filling.weight)).collect();
            (fillings, sum, total)
        }))
    }

    /// (float64 [P, V], log Z, the sum of the positions' log totals).
    #[allow(clippy::type_complexity)]
    fn marginals<'py>(
        &self,
        py: Python<'py>,
        logits: PyReadonlyArray2<'py, f32>,
        temperature: f64,
        positions: Vec<usize>,
    ) -> PyResult<Option<(Bound<'py, PyArray2<f64>>, f64, f64)>> {
        let (rows, width) = rows_of(&logits)?;
        let found = self.call(py, |canvas| {
            let weights = Weights::new(rows, width, temperature);
            let mut out = vec![0.0; positions.len() * width];
            let sum = canvas.marginals(&weights, &positions, &mut out)?;
            Ok(sum.map(|sum| (out, sum, canvas.total(&weights))))
        })?;
        let shaped = |(out, sum, total)| {
            Ok((PyArray1::from_vec(py, out).reshape([positions.len(), width])?, sum, total))
        };
        found.map(shaped).transpose()
    }

    /// States of the automaton that were met, the largest layer, bytes held.
    fn size(&self, py: Python<'_>) -> PyResult<(usize, usize, usize)> {
        self.call(py, |canvas| Ok(canvas.size()))
    }
}

fn rows_of<'a>(logits: &'a PyReadonlyArray2<'_, f32>) -> PyResult<(&'a [f32], usize)> {
    let rows = logits.as_slice().map_err(|_| wrong("logits must be C-contiguous".into()))?;
    Ok((rows, logits.shape()[1]))
}
