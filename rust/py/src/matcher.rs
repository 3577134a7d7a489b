//! `Matcher`: one text as it grows, as serving engines want it.
//!
//! Its lock is held by threads that do not hold the interpreter, so one that holds it only tries.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tokenform_core::mask::batch::{self, Asked};
use tokenform_core::mask::Matcher as Core;
use tokenform_core::vocab::TokenId;
use tokenform_core::{Error, Kind, Result};

use crate::arguments::{all_named, maybe_named, shown, Whole};
use crate::automaton::{spelled, words_of, TokenAutomaton};
use crate::batch::{failed_or, returned, wrong, Place};
use crate::errors::raise;
use crate::host::{take_raised, unlocked};
use crate::state::State;

/// One text as it grows: takes tokens, takes them back, fills masks.
///
/// What a serving engine keeps for a request. `fill_mask` and the batched `fill_masks` write the tokens that may
/// come next; what they allow is accepted. A call that fails leaves the matcher as it was. Threads may share one.
///
/// Args:
///     automaton: of a grammar and a vocabulary, `grammar.compile(vocabulary)`.
///     max_tokens: every text ends within so many tokens, the one that ends it not counted.
/// Raises:
///     BudgetTooSmall: no text is known to end within `max_tokens`.
///
/// >>> import numpy as np
/// >>> import tokenform as tf
/// >>> vocab = tf.Vocabulary([b"a", b"b", b"ab", b"c", b"</s>"], eos=[4], special=[4])
/// >>> matcher = tf.engine.Matcher(tf.regex("(ab)+c").compile(vocab), max_tokens=3)
/// >>> out = np.zeros((1, 1), np.uint32)
/// >>> matcher.fill_mask(out, 0)
/// >>> matcher.validate_tokens([2, 2, 2, 3]), matcher.validate_tokens([2, 2, 3, 4])
/// (2, 4)
/// >>> matcher.accept_tokens([2, 2])
/// >>> matcher.allowed_tokens().tolist()  # "ab" once more, and no end would be within three tokens
/// [3]
/// >>> matcher.rollback(1)
/// >>> matcher.tokens, matcher.is_accepting(), matcher.is_terminated()
/// ([2], False, False)
#[pyclass(frozen, module = "tokenform._core", weakref)]
pub struct Matcher {
    inner: Mutex<Core>,
    automaton: Py<TokenAutomaton>,
}

/// Tokens of the caller's; a number that no token has is refused where it is taken.
#[derive(Default)]
pub struct Tokens(Vec<TokenId>);

impl<'py> FromPyObject<'py> for Tokens {
    fn extract_bound(given: &Bound<'py, PyAny>) -> PyResult<Self> {
        let token = |t: i64| TokenId(u32::try_from(t).unwrap_or(u32::MAX));
        // engines hand over short lists: an iterator over one costs more than its tokens
        let tokens: PyResult<_> = match given.downcast::<PyList>() {
            Ok(list) => (0..list.len()).map(|i| Ok(token(list.get_item(i)?.extract()?))).collect(),
            Err(_) => Ok(given.extract::<Vec<i64>>()?.into_iter().map(token).collect()),
        };
        tokens.map(Tokens)
    }
}

fn plain(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|t| t.0).collect()
}

impl Matcher {
    fn lock(&self) -> MutexGuard<'_, Core> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call that may build.
    fn call<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&mut Core) -> Result<T> + Send) -> PyResult<T> {
        unlocked(py, || call(&mut self.lock())).map_err(raise)
    }

    /// A call that builds nothing, where nobody else is at it: the interpreter stays with the caller.
    fn quick<T>(&self, call: impl FnOnce(&mut Core) -> Option<T>) -> Option<T> {
        self.inner.try_lock().ok().and_then(|mut core| call(&mut core))
    }

    /// A call that only looks.
    fn look<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&Core) -> T + Send) -> T {
        if let Ok(core) = self.inner.try_lock() {
            return call(&core);
        }
        unlocked(py, || call(&self.lock()))
    }

    /// Where it is now.
    pub fn place(&self, py: Python<'_>) -> Place {
        self.look(py, |core| Place {
            automaton: core.automaton().clone(),
            state: core.state().clone(),
            budget: core.budget(),
        })
    }

    /// Some rows of an array of masks, from one on.
    fn rows_of<'a>(
        &self,
        out: &'a Bound<'_, PyAny>,
        first: usize,
        count: usize,
        width: usize,
    ) -> PyResult<&'a mut [u32]> {
        let found = words_of(out)?;
        let rows = found.and_then(|(words, shape)| {
            let end = first.checked_add(count)?.checked_mul(width)?;
            (shape[1] == width).then(|| words.get_mut(first * width..end))?
        });
        rows.ok_or_else(|| {
            wrong(format!(
                "out must be a writable, aligned, C-contiguous uint32 or int32 array of {width} words a row that has \
                 the rows {first} to {}; {}",
                first.saturating_add(count) - 1,
                shown(out),
            ))
        })
    }
}

/// The array itself, or that of a tensor.
fn array_of<'py>(out: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if words_of(out)?.is_none() && out.hasattr("numpy")? {
        return out.call_method0("numpy");
    }
    Ok(out.clone())
}

#[pymethods]
impl Matcher {
    #[new]
    #[pyo3(signature = (automaton, *, max_tokens = None))]
    fn new(py: Python<'_>, automaton: &Bound<'_, PyAny>, max_tokens: Option<Whole<u32>>) -> PyResult<Self> {
        let Ok(automaton) = automaton.downcast::<TokenAutomaton>() else {
            let message = format!(
                "a matcher is of an automaton, not a {}; compile the grammar first: \
                 tf.Matcher(grammar.compile(vocabulary)).",
                automaton.get_type().name()?
            );
            return Err(raise(Error::new(Kind::OptionError, message)));
        };
        let (core, most) = (automaton.get().core.clone(), maybe_named(max_tokens, "max_tokens")?);
        let inner = unlocked(py, || Core::new(core, most)).map_err(raise)?;
        Ok(Matcher { inner: Mutex::new(inner), automaton: automaton.clone().unbind() })
    }

    /// The automaton whose texts it matches.
    #[getter]
    fn automaton(&self, py: Python<'_>) -> Py<TokenAutomaton> {
        self.automaton.clone_ref(py)
    }

    /// The state after the tokens taken.
    #[getter]
    fn state(&self, py: Python<'_>) -> State {
        let place = self.place(py);
        State { inner: place.state, automaton: place.automaton }
    }

    /// The tokens taken.
    #[getter]
    fn tokens(&self, py: Python<'_>) -> Vec<u32> {
        self.look(py, |core| plain(core.tokens()))
    }

    /// Most tokens of a text, the one that ends it not counted; None: as many as it likes.
    #[getter]
    fn max_tokens(&self, py: Python<'_>) -> Option<u32> {
        self.look(py, Core::max_tokens)
    }

    /// Tokens that the text may still have, the one that ends it not counted.
    #[getter]
    fn budget(&self, py: Python<'_>) -> Option<u32> {
        self.look(py, Core::budget)
    }

    /// Ids that end a text, sorted.
    #[getter]
    fn stop_token_ids(&self, py: Python<'_>) -> Vec<u32> {
        self.look(py, |core| plain(core.stop_token_ids()))
    }

    /// Takes the tokens, all of them or none; raises TokenRejected.
    fn accept_tokens(&self, py: Python<'_>, tokens: Tokens) -> PyResult<()> {
        let Tokens(tokens) = tokens;
        match self.quick(|core| core.accept_known(&tokens).then_some(())) {
            Some(()) => Ok(()),
            None => self.call(py, |core| core.accept_tokens(&tokens)),
        }
    }

    /// How many of the tokens may follow one after the other.
    fn validate_tokens(&self, py: Python<'_>, tokens: Tokens) -> PyResult<usize> {
        let Tokens(tokens) = tokens;
        match self.quick(|core| core.validate_known(&tokens)) {
            Some(count) => Ok(count),
            None => self.call(py, |core| core.validate_tokens(&tokens)),
        }
    }

    /// Takes back the last tokens.
    fn rollback(&self, py: Python<'_>, count: Whole<usize>) -> PyResult<()> {
        let count = count.named("count")?;
        match self.quick(|core| Some(core.rollback(count))) {
            Some(answer) => answer.map_err(raise),
            None => self.call(py, |core| core.rollback(count)),
        }
    }

    /// Takes back every token.
    fn reset(&self, py: Python<'_>) {
        unlocked(py, || self.lock().reset());
    }

    /// A matcher at the same place, which goes on by itself.
    fn fork(&self, py: Python<'_>) -> Self {
        let inner = Mutex::new(self.look(py, Core::fork));
        Matcher { inner, automaton: self.automaton.clone_ref(py) }
    }

    /// Writes the mask into a row of an array [rows, ceil(V/32)].
    #[pyo3(signature = (out, row = Whole::of(0)), text_signature = "($self, out, row=0)")]
    fn fill_mask(&self, py: Python<'_>, out: &Bound<'_, PyAny>, row: Whole<usize>) -> PyResult<()> {
        let row = row.named("row")?;
        let place = self.place(py);
        let held = array_of(out)?;
        let words = self.rows_of(&held, row, 1, place.automaton.vocabulary().mask_words())?;
        match place.state.known_mask_within(place.budget) {
            Some(mask) => mask.write(words),
            None => {
                let mut rows = [place.row(words)];
                unlocked(py, || batch::fill(&mut rows, Asked::default(), 1));
                rows.into_iter().try_for_each(|row| row.answer.map(|_| ())).map_err(raise)?;
            }
        }
        Ok(())
    }

    /// Masks for a draft: `row` is what may come next, the rows after it what may come after each of the tokens.
    #[pyo3(signature = (tokens, out, row = Whole::of(0), *, parents = None, threads = Whole::of(1)),
        text_signature = "($self, tokens, out, row=0, *, parents=None, threads=1)")]
    fn fill_draft_masks<'py>(
        &self,
        py: Python<'py>,
        tokens: Tokens,
        out: &Bound<'py, PyAny>,
        row: Whole<usize>,
        parents: Option<Vec<i64>>,
        threads: Whole<usize>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let (row, threads) = (row.named("row")?, threads.named("threads")?);
        // what is neither a place nor -1 stands behind every child
        let place = |p: i64| (p != -1).then(|| usize::try_from(p).unwrap_or(usize::MAX));
        let parents: Option<Vec<_>> = parents.map(|p| p.into_iter().map(place).collect());
        let Tokens(tokens) = tokens;
        let fork = self.look(py, Core::fork);
        let held = array_of(out)?;
        let width = fork.automaton().vocabulary().mask_words();
        let words = self.rows_of(&held, row, tokens.len() + 1, width)?;
        let fill = || fork.fill_draft_masks(&tokens, parents.as_deref(), words, threads);
        Ok(PyArray1::from_vec(py, unlocked(py, fill).map_err(raise)?))
    }

    /// Whether a token that ends the text was taken.
    fn is_terminated(&self, py: Python<'_>) -> bool {
        self.look(py, Core::is_terminated)
    }

    /// Whether the text may end here.
    fn is_accepting(&self, py: Python<'_>) -> PyResult<bool> {
        match self.place(py).state.known_accepting() {
            Some(known) => Ok(known),
            None => self.call(py, |core| core.is_accepting()),
        }
    }

    /// Sorted ids of the tokens that may come next, as int32.
    fn allowed_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let ids = self.call(py, |core| core.allowed_tokens())?;
        Ok(PyArray1::from_vec(py, ids.into_iter().map(|id| id as i32).collect()))
    }

    /// The text that every accepted continuation begins with.
    fn forced_text(&self, py: Python<'_>) -> PyResult<String> {
        self.call(py, |core| core.forced_text())
    }

    /// Tokens of the forced text, as far as they fit.
    fn forced_tokens(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let fork = self.look(py, Core::fork);
        let text = unlocked(py, || fork.forced_text()).map_err(raise)?;
        let automaton = self.automaton.get();
        let ids = spelled(py, automaton.vocabulary.bind(py), &text)?;
        let taken: Vec<TokenId> = ids.iter().map(|&id| TokenId(id)).collect();
        let fits = unlocked(py, || fork.validate_tokens(&taken)).map_err(raise)?;
        Ok(ids[..fits].to_vec())
    }

    fn __copy__(&self, py: Python<'_>) -> Self {
        self.fork(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> Self {
        self.fork(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.look(py, |core| {
            let most = core.max_tokens().map_or(String::new(), |most| format!(" of at most {most}"));
            format!("<Matcher after {}{most} tokens>", core.tokens().len())
        })
    }
}

/// Takes tokens in each of some matchers: each takes all of its own or none. Errors as in `fill_masks`.
#[pyfunction]
#[pyo3(signature = (matchers, tokens, *, threads = Whole::of(1), errors = "raise"),
    text_signature = "(matchers, tokens, *, threads=1, errors='raise')")]
pub fn accept_tokens<'py>(
    py: Python<'py>,
    matchers: Vec<Bound<'py, Matcher>>,
    tokens: Vec<Tokens>,
    threads: Whole<usize>,
    errors: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let (return_errors, threads) = (returned(errors)?, threads.named("threads")?);
    if matchers.len() != tokens.len() {
        let message =
            format!("{} matchers need as many lists of tokens, not {}", matchers.len(), tokens.len());
        return Err(raise(Error::new(Kind::OptionError, message)));
    }
    let each = matchers.iter().zip(tokens);
    let mut steps: Vec<_> = each.map(|(m, Tokens(tokens))| (m.get(), tokens, Ok(()))).collect();
    unlocked(py, || {
        batch::spread(&mut steps, threads, |(matcher, tokens, answer): &mut (&Matcher, _, _)| {
            *answer = matcher.lock().accept_tokens(tokens);
        });
    });
    take_raised().map_or(Ok(()), Err)?;
    failed_or(py, steps.into_iter().map(|step| step.2), return_errors)
}

/// A matcher's part of a batch of drafts: the rows that it fills, and how many of its tokens may follow.
struct Draft<'a> {
    matcher: &'a Matcher,
    tokens: Vec<TokenId>,
    out: &'a mut [u32],
    answer: Option<Result<usize>>,
}

impl Draft<'_> {
    fn fill(&mut self) {
        let core = self.matcher.lock();
        let filled = core.fill_draft_masks(&self.tokens, None, self.out, 1);
        self.answer = Some(filled.map(|allowed| allowed.iter().filter(|&&one| one).count()));
    }

    /// Opens the rows after the end of the text, where it ends in the draft or has ended.
    fn open_after_end(&mut self, py: Python<'_>, width: usize) {
        let Some(Ok(count)) = self.answer else { return };
        let ended = match self.tokens[..count].last() {
            Some(&last) => self.matcher.automaton.get().core.vocabulary().is_eos(last),
            None => self.matcher.look(py, Core::is_terminated),
        };
        if ended {
            self.out[count * width..].fill(u32::MAX);
        }
    }
}

/// Masks for a batch of matchers with a draft each (None: no drafts): from the row of `rows` on (one block after the
/// other unless told) what may come next, and after each token of the draft. Says of each draft not all of whose tokens
/// may stand where they do how many may; the rows after these are zeros, and those after the end of a text too, or all
/// ones with open_after_end. A draft that fails raises when the others are done, or its error stands in its place with
/// errors="return".
#[pyfunction]
#[pyo3(signature = (matchers, drafts, out, *, rows = None, threads = Whole::of(1), open_after_end = false,
    errors = "raise"), text_signature = "(matchers, drafts, out, *, rows=None, threads=1, open_after_end=False, \
    errors='raise')")]
#[allow(clippy::too_many_arguments)]
pub fn fill_draft_masks<'py>(
    py: Python<'py>,
    matchers: Vec<Bound<'py, Matcher>>,
    drafts: Option<Vec<Tokens>>,
    out: &Bound<'py, PyAny>,
    rows: Option<Vec<Whole<usize>>>,
    threads: Whole<usize>,
    open_after_end: bool,
    errors: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let (return_errors, threads) = (returned(errors)?, threads.named("threads")?);
    let rows = rows.map(|rows| all_named(rows, "rows")).transpose()?;
    let count = matchers.len();
    let drafts = drafts.unwrap_or_else(|| std::iter::repeat_with(Tokens::default).take(count).collect());
    if count != drafts.len() || rows.as_ref().is_some_and(|rows| rows.len() != count) {
        return Err(wrong(format!("{count} matchers need as many drafts, and as many rows")));
    }
    let held = array_of(out)?;
    let Some((mut left, [_, width])) = words_of(&held)? else {
        let what = shown(&held);
        return Err(wrong(format!(
            "out must be a writable, aligned, C-contiguous uint32 or int32 array; {what}"
        )));
    };
    let (mut blocks, mut at) = (Vec::with_capacity(count), 0);
    for (i, (matcher, Tokens(tokens))) in matchers.iter().zip(drafts).enumerate() {
        let matcher = matcher.get();
        let first = rows.as_ref().map_or(at, |rows| rows[i]);
        let fits = matcher.automaton.get().core.vocabulary().mask_words() == width;
        let skipped = first.checked_sub(at).filter(|_| fits).and_then(|rows| rows.checked_mul(width));
        let block = skipped.and_then(|skipped| {
            let (_, rest) = std::mem::take(&mut left).split_at_mut_checked(skipped)?;
            rest.split_at_mut_checked((tokens.len() + 1) * width)
        });
        let Some((block, rest)) = block else {
            return Err(wrong(format!(
                "out must have the rows {first} to {} for matcher {i}, after those of the one before it and each as \
                 wide as its vocabulary",
                first.saturating_add(tokens.len()),
            )));
        };
        (left, at) = (rest, first + tokens.len() + 1);
        let mut draft = Draft { matcher, tokens, out: block, answer: None };
        draft.answer = matcher.quick(|core| core.fill_known_draft_masks(&draft.tokens, draft.out)).map(Ok);
        blocks.push(draft);
    }
    let mut new: Vec<&mut Draft<'_>> = blocks.iter_mut().filter(|draft| draft.answer.is_none()).collect();
    if !new.is_empty() {
        unlocked(py, || batch::spread(&mut new, threads, |draft| draft.fill()));
        take_raised().map_or(Ok(()), Err)?;
    }
    if open_after_end {
        blocks.iter_mut().for_each(|draft| draft.open_after_end(py, width));
    }
    let short = PyDict::new(py);
    for (i, draft) in blocks.into_iter().enumerate() {
        match draft.answer.expect("each is filled") {
            Ok(count) if count == draft.tokens.len() => {}
            Ok(count) => short.set_item(i, count)?,
            Err(error) if return_errors => short.set_item(i, raise(error).into_value(py))?,
            Err(error) => return Err(raise(error)),
        }
    }
    Ok(short)
}
