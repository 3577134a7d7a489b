//! One call a step: rows of any automata, filled and advanced together.

use std::sync::Arc;

use numpy::{Element, PyArray1, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use tokenform_core::mask::automaton::FAR;
use tokenform_core::mask::batch::{self, Answer, Asked, Row, Step};
use tokenform_core::mask::{State as CoreState, TokenAutomaton};
use tokenform_core::vocab::TokenId;
use tokenform_core::{Error, Kind, Result};

use crate::arguments::{all_named, maybe_named, shown, Whole};
use crate::automaton::words_of;
use crate::errors::raise;
use crate::host::{take_raised, unlocked};
use crate::matcher::Matcher;
use crate::state::State;

pub fn wrong(message: String) -> PyErr {
    raise(Error::new(Kind::OptionError, message))
}

/// Whether errors come back as values.
pub fn returned(errors: &str) -> PyResult<bool> {
    match errors {
        "raise" => Ok(false),
        "return" => Ok(true),
        _ => Err(wrong(format!("errors={errors:?} is not known; choose \"raise\" or \"return\""))),
    }
}

fn states_of<'py>(states: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, State>>> {
    states.try_iter()?.map(|s| Ok(s?.downcast_into::<State>()?)).collect()
}

/// Where a text is, and the tokens that it may still have.
pub struct Place {
    pub automaton: Arc<TokenAutomaton>,
    pub state: CoreState,
    pub budget: Option<u32>,
}

impl Place {
    fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(matcher) = value.downcast::<Matcher>() {
            return Ok(matcher.get().place(value.py()));
        }
        let s = value.downcast::<State>()?.get();
        Ok(Place { automaton: s.automaton.clone(), state: s.inner.clone(), budget: None })
    }

    pub fn row<'a>(&'a self, out: &'a mut [u32]) -> Row<'a> {
        let (automaton, state, budget) = (&*self.automaton, &self.state, self.budget);
        Row { automaton, state, budget, out, answer: Ok(Answer::default()) }
    }
}

/// The errors of rows by their number, or the first of them raised.
pub fn failed_or<'py>(
    py: Python<'py>,
    answers: impl Iterator<Item = Result<()>>,
    return_errors: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let failed = PyDict::new(py);
    for (at, answer) in answers.enumerate() {
        match answer {
            Ok(()) => {}
            Err(error) if return_errors => failed.set_item(at, raise(error).into_value(py))?,
            Err(error) => return Err(raise(error)),
        }
    }
    Ok(failed)
}

/// Raises what a signal's handler has raised: that is no error of a row, and rows may have ended before they knew.
fn check_interrupt<T>(answers: &[Result<T>]) -> PyResult<()> {
    if let Some(raised) = take_raised() {
        return Err(raised);
    }
    let interrupted = answers.iter().filter_map(|a| a.as_ref().err()).find(|e| e.kind == Kind::Interrupted);
    interrupted.map_or(Ok(()), |error| Err(raise(error.clone())))
}

/// Writes one value a row into an array of the caller's.
fn write<T: Element + Copy>(
    name: &str,
    array: Option<&Bound<'_, PyArray1<T>>>,
    values: impl ExactSizeIterator<Item = T>,
) -> PyResult<()> {
    let Some(array) = array else { return Ok(()) };
    let Some(mut array) = array.try_readwrite().ok().filter(|a| a.len() >= values.len()) else {
        return Err(wrong(format!("{name} must be a writable array with a place for each of the rows")));
    };
    array.as_array_mut().iter_mut().zip(values).for_each(|(place, value)| *place = value);
    Ok(())
}

fn named_budgets(given: Vec<Option<Whole<u32>>>) -> PyResult<Vec<Option<u32>>> {
    given.into_iter().map(|budget| maybe_named(budget, "budgets")).collect()
}

/// Masks of states or matchers, which may be of different automata over vocabularies of one size: one row each.
///
/// out: C-contiguous uint32 or int32 [B, ceil(V/32)], numpy or a CPU tensor. budgets: tokens left in each row, None
/// for as many as there may be; a matcher keeps its own within that. accepting, finished: bool [B]; distances: int32
/// [B], tokens to an accepted end, -1 where none is known; forced: a list, which gets the bytes that every
/// continuation of a row begins with; each is written where it is given. A row that fails is all zeros; its error is
/// raised when the others are done, or returned by the row's number with errors="return".
#[pyfunction]
#[pyo3(signature = (states, out, *, budgets = None, accepting = None, finished = None, distances = None,
    forced = None, threads = Whole::of(1), errors = "raise"),
    text_signature = "(states, out, *, budgets=None, accepting=None, finished=None, distances=None, forced=None, \
    threads=1, errors='raise')")]
#[allow(clippy::too_many_arguments)]
pub fn fill_masks<'py>(
    py: Python<'py>,
    states: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
    budgets: Option<Vec<Option<Whole<u32>>>>,
    accepting: Option<&Bound<'py, PyArray1<bool>>>,
    finished: Option<&Bound<'py, PyArray1<bool>>>,
    distances: Option<&Bound<'py, PyArray1<i32>>>,
    forced: Option<&Bound<'py, PyList>>,
    threads: Whole<usize>,
    errors: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let (return_errors, threads) = (returned(errors)?, threads.named("threads")?);
    let budgets = budgets.map(named_budgets).transpose()?;
    let mut states: Vec<Place> = states.try_iter()?.map(|s| Place::of(&s?)).collect::<PyResult<_>>()?;
    let held = if out.hasattr("numpy")? { out.call_method0("numpy")? } else { out.clone() };
    let found = words_of(&held)?;
    let width = found.as_ref().map_or(0, |f| f.1[1]);
    let fits = |s: &Place| s.automaton.vocabulary().mask_words() == width;
    let Some((words, _)) = found.filter(|f| f.1[0] >= states.len() && states.iter().all(fits)) else {
        return Err(wrong(format!(
            "out must be a writable, aligned, C-contiguous uint32 or int32 array of {} rows with a bit for each \
             token of the states' vocabularies; {}",
            states.len(),
            shown(&held)
        )));
    };
    if budgets.as_ref().is_some_and(|b| b.len() != states.len()) {
        return Err(wrong(format!("budgets must have one entry for each of the {} states", states.len())));
    }
    for (place, given) in states.iter_mut().zip(budgets.into_iter().flatten()) {
        place.budget = place.budget.into_iter().chain(given).min();
    }
    let mut rows: Vec<Row<'_>> =
        words.chunks_mut(width.max(1)).zip(&states).map(|(out, place)| place.row(out)).collect();
    let asked = Asked { distance: distances.is_some(), forced: forced.is_some() };
    unlocked(py, || batch::fill(&mut rows, asked, threads));
    let answers: Vec<Result<Answer>> = rows.into_iter().map(|row| row.answer).collect();
    check_interrupt(&answers)?;
    let none = Answer::default();
    let known = || answers.iter().map(|a| a.as_ref().unwrap_or(&none));
    write("accepting", accepting, known().map(|a| a.accepting))?;
    write("finished", finished, known().map(|a| a.finished))?;
    let signed = |a: &Answer| if a.distance == FAR { -1 } else { a.distance.min(i32::MAX as u32) as i32 };
    write("distances", distances, known().map(signed))?;
    if let Some(forced) = forced {
        let bytes = known().map(|a| PyBytes::new(py, &a.forced));
        forced.set_slice(0, forced.len(), PyList::new(py, bytes)?.as_any())?;
    }
    failed_or(py, answers.into_iter().map(|answer| answer.map(|_| ())), return_errors)
}

/// The states after one token in each row. A row that fails raises when the others are done, or its error stands in
/// its place with errors="return".
#[pyfunction]
#[pyo3(signature = (states, tokens, *, threads = Whole::of(1), errors = "raise"),
    text_signature = "(states, tokens, *, threads=1, errors='raise')")]
pub fn advance<'py>(
    py: Python<'py>,
    states: &Bound<'py, PyAny>,
    tokens: Vec<Whole<u32>>,
    threads: Whole<usize>,
    errors: &str,
) -> PyResult<Bound<'py, PyList>> {
    let (return_errors, threads) = (returned(errors)?, threads.named("threads")?);
    let tokens = all_named(tokens, "tokens")?;
    let states = states_of(states)?;
    if states.len() != tokens.len() {
        return Err(wrong(format!("{} states need as many tokens, not {}", states.len(), tokens.len())));
    }
    let mut steps: Vec<Step<'_>> = states
        .iter()
        .zip(tokens)
        .map(|(s, token)| Step {
            automaton: &s.get().automaton,
            state: &s.get().inner,
            token: TokenId(token),
            next: None,
        })
        .collect();
    unlocked(py, || batch::advance(&mut steps, threads));
    let taken: Vec<Result<CoreState>> =
        steps.into_iter().map(|step| step.next.expect("each step is taken")).collect();
    check_interrupt(&taken)?;
    let out = PyList::empty(py);
    for (next, s) in taken.into_iter().zip(&states) {
        match next {
            Ok(inner) => out.append(State { inner, automaton: s.get().automaton.clone() })?,
            Err(error) if return_errors => out.append(raise(error).into_value(py))?,
            Err(error) => return Err(raise(error)),
        }
    }
    Ok(out)
}
