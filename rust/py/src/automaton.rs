//! `TokenAutomaton`: states as numbers, masks as rows of 32-bit words.

use std::sync::Arc;

use numpy::npyffi::flags::NPY_ARRAY_BEHAVED;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use tokenform_core::mask::automaton::FAR;
use tokenform_core::mask::batch::{self, Answer, Asked, Row};
use tokenform_core::mask::{store, State as CoreState, TokenAutomaton as Core};
use tokenform_core::vocab::TokenId;
use tokenform_core::{Error, Kind};

use crate::arguments::{maybe_named, shown, Text, Whole};
use crate::batch::wrong;
use crate::errors::raise;
use crate::grammar::Grammar;
use crate::host::{in_python, unlocked};
use crate::limits::Limits;
use crate::state::State;
use crate::vocabulary::Vocabulary;

/// What may be left of a value, and whether its last byte ends it.
type LeftBytes = (Py<PyBytes>, bool);

type Edge = (usize, String, isize);

/// Steps of work that masks ahead may take: some milliseconds.
const PREPARING: u64 = 400_000;

/// A grammar over the tokens of a vocabulary: for each state the mask of the tokens that may come next.
///
/// Made by `Grammar.compile(vocabulary)`. States are values: `start` is the first, `advance(state, token)` gives the
/// next, and a state that is kept can be gone back to. What is found about a state (mask, edges, distance) is kept
/// within `Limits.memory` and made again when it was dropped; many threads may use one automaton, and known states
/// are read without a lock. `Matcher` is the same for callers who want one object that owns its sequence.
///
/// >>> import tokenform as tf
/// >>> vocabulary = tf.Vocabulary([b"a", b"b", b"ab", b"</s>"], eos=[3], special=[3])
/// >>> automaton = tf.regex("(ab)+").compile(vocabulary)
/// >>> automaton.mask(automaton.start)  # uint32, bit i of word i // 32 is token i
/// array([5], dtype=uint32)
/// >>> state = automaton.advance(automaton.start, 2)
/// >>> automaton.allowed_tokens(state).tolist(), automaton.is_accepting(state), automaton.distance(state)
/// ([0, 2, 3], True, 0)
#[pyclass(frozen, module = "tokenform._core", weakref)]
pub struct TokenAutomaton {
    pub core: Arc<Core>,
    grammar: Py<Grammar>,
    pub vocabulary: Py<Vocabulary>,
    words: usize,
}

impl TokenAutomaton {
    pub fn new(core: Arc<Core>, grammar: Py<Grammar>, vocabulary: Py<Vocabulary>) -> Self {
        let words = core.vocabulary().mask_words();
        TokenAutomaton { core, grammar, vocabulary, words }
    }

    fn own(&self, inner: CoreState) -> State {
        State { inner, automaton: self.core.clone() }
    }

    fn row_error(&self, out: &Bound<'_, PyAny>, rows: usize) -> PyErr {
        wrong(format!(
            "out must be a writable, aligned, C-contiguous uint32 or int32 array of shape ({rows}, {}); {}",
            self.words,
            shown(out)
        ))
    }
}

/// The memory of a C-contiguous array of 32-bit words that may be written.
#[allow(unsafe_code)]
pub fn words_of<'a>(out: &'a Bound<'_, PyAny>) -> PyResult<Option<(&'a mut [u32], [usize; 2])>> {
    fn view<'a, T: numpy::Element>(array: &Bound<'_, PyArray2<T>>) -> Option<(&'a mut [u32], [usize; 2])> {
        // SAFETY: the array is alive, and the GIL is held
        let flags = unsafe { (*array.as_array_ptr()).flags };
        if !array.is_c_contiguous() || flags & NPY_ARRAY_BEHAVED != NPY_ARRAY_BEHAVED {
            return None;
        }
        let (data, len) = (array.data().cast::<u32>(), array.len());
        // SAFETY: the array is C-contiguous, aligned and writable and holds `len` elements of four bytes; the
        // caller keeps it alive and the GIL (or the caller's promise not to touch a buffer that is being filled)
        // keeps it unaliased
        Some((unsafe { std::slice::from_raw_parts_mut(data, len) }, [array.shape()[0], array.shape()[1]]))
    }
    if let Ok(array) = out.downcast::<PyArray2<u32>>() {
        return Ok(view(array));
    }
    if let Ok(array) = out.downcast::<PyArray2<i32>>() {
        return Ok(view(array));
    }
    Ok(None)
}

/// Tokens of a text, as the vocabulary's own tokenizer writes them where it is known (`Vocabulary.encode`), else the
/// longest first.
pub fn spelled(py: Python<'_>, vocab: &Bound<'_, Vocabulary>, text: &str) -> PyResult<Vec<u32>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let encoded = in_python(py, || match vocab.hasattr("encode")? {
        true => vocab.call_method1("encode", (PyBytes::new(py, text.as_bytes()),))?.extract(),
        false => Ok(None),
    });
    if let Some(ids) = encoded? {
        return Ok(ids);
    }
    let ids = vocab.get().inner.greedy_tokens(text.as_bytes()).unwrap_or_default();
    Ok(ids.into_iter().map(|t| t.0).collect())
}

#[pymethods]
impl TokenAutomaton {
    /// By its grammar and vocabulary: compiled again wherever it is unpickled.
    #[allow(clippy::type_complexity)]
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Py<Vocabulary>, Limits))> {
        let compile = self.grammar.bind(py).getattr("compile")?;
        Ok((compile, (self.vocabulary.clone_ref(py), Limits::of(self.core.limits()))))
    }

    /// Makes masks ahead that the first texts are likely to ask for, of up to so many states; how many were met.
    ///
    /// For a host that has time before a text begins, in a thread of its own. What is made is kept as if it had been
    /// asked for.
    #[pyo3(signature = (states = 128))]
    fn prepare(&self, py: Python<'_>, states: usize) -> PyResult<usize> {
        unlocked(py, || self.core.prepare(states, PREPARING)).map_err(raise)
    }

    /// The state before the first token.
    #[getter]
    fn start(&self) -> State {
        self.own(self.core.start())
    }

    #[getter]
    fn vocabulary(&self, py: Python<'_>) -> Py<Vocabulary> {
        self.vocabulary.clone_ref(py)
    }

    /// Words of a mask row: ceil(V / 32).
    #[getter]
    fn mask_words(&self) -> usize {
        self.words
    }

    /// The allowed tokens, as uint32[ceil(V/32)]; bit t % 32 of word t // 32.
    fn mask<'py>(&self, py: Python<'py>, s: &Bound<'_, State>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let s = &s.get().inner;
        let mask = unlocked(py, || self.core.mask(s)).map_err(raise)?;
        let mut row = vec![0u32; self.words];
        mask.write(&mut row);
        let array = PyArray1::from_vec(py, row);
        array.call_method1("setflags", (false,))?;
        Ok(array)
    }

    /// Writes one row a state into `out`, without the GIL.
    #[pyo3(signature = (states, out, threads = Whole::of(1)), text_signature = "($self, states, out, threads=1)")]
    fn fill_masks(
        &self,
        py: Python<'_>,
        states: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        threads: Whole<usize>,
    ) -> PyResult<()> {
        let threads = threads.named("threads")?;
        if let (Some((row, shape)), Ok(list)) = (words_of(out)?, states.downcast_exact::<PyList>()) {
            // the loop of a user: one state, one row
            if list.len() == 1 && shape == [1, self.words] {
                let s = list.get_item(0)?;
                let s = &s.downcast::<State>()?.get().inner;
                self.core.check_state(s).map_err(raise)?;
                match s.known_mask() {
                    Some(mask) => mask.write(row),
                    None => unlocked(py, || self.core.mask(s)).map_err(raise)?.write(row),
                }
                return Ok(());
            }
        }
        let held;
        let out = if words_of(out)?.is_none() && out.hasattr("numpy")? {
            held = out.call_method0("numpy")?;
            &held
        } else {
            out
        };
        let list: Vec<CoreState> = states
            .try_iter()?
            .map(|s| Ok(s?.downcast::<State>()?.get().inner.clone()))
            .collect::<PyResult<_>>()?;
        let Some((words, shape)) = words_of(out)? else {
            return Err(self.row_error(out, list.len()));
        };
        if shape[0] < list.len() || shape[1] != self.words {
            return Err(self.row_error(out, list.len()));
        }
        let mut rows: Vec<Row<'_>> = words
            .chunks_mut(self.words)
            .zip(&list)
            .map(|(out, state)| Row {
                automaton: &self.core,
                state,
                budget: None,
                out,
                answer: Ok(Answer::default()),
            })
            .collect();
        unlocked(py, || batch::fill(&mut rows, Asked::default(), threads));
        rows.into_iter().try_for_each(|row| row.answer.map(|_| ())).map_err(raise)
    }

    /// Whether a token is allowed, without the whole mask.
    fn allows(&self, py: Python<'_>, s: &Bound<'_, State>, token: Whole<u32>) -> PyResult<bool> {
        let (s, token) = (&s.get().inner, token.named("token")?);
        match s.known_mask() {
            Some(mask) => Ok((token as usize) < self.core.vocabulary().size() && mask.has(token)),
            None => unlocked(py, || self.core.allows(s, TokenId(token))).map_err(raise),
        }
    }

    /// The state after a token; raises TokenRejected.
    fn advance(&self, py: Python<'_>, s: &Bound<'_, State>, token: Whole<u32>) -> PyResult<State> {
        let (s, token) = (&s.get().inner, TokenId(token.named("token")?));
        self.core.check_state(s).map_err(raise)?;
        let inner = match s.known_next(self.core.vocabulary(), token) {
            Some(to) => to,
            None => unlocked(py, || self.core.advance(s, token)).map_err(raise)?,
        };
        Ok(self.own(inner))
    }

    /// Whether the text may end here; end-of-text ids are in the mask exactly then.
    fn is_accepting(&self, py: Python<'_>, s: &Bound<'_, State>) -> PyResult<bool> {
        let s = &s.get().inner;
        match s.known_accepting() {
            Some(known) => self.core.check_state(s).map(|()| known).map_err(raise),
            None => unlocked(py, || self.core.accepting(s)).map_err(raise),
        }
    }

    /// Whether an end-of-text token was taken.
    fn is_finished(&self, s: &Bound<'_, State>) -> PyResult<bool> {
        let s = &s.get().inner;
        self.core.check_state(s).map_err(raise)?;
        Ok(self.core.is_finished(s))
    }

    /// Sorted ids of the allowed tokens, as int32.
    fn allowed_tokens<'py>(
        &self,
        py: Python<'py>,
        s: &Bound<'_, State>,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let s = &s.get().inner;
        let ids = unlocked(py, || self.core.mask(s).map(|m| m.ids(self.words))).map_err(raise)?;
        Ok(PyArray1::from_vec(py, ids.into_iter().map(|i| i as i32).collect()))
    }

    /// The bytes that every accepted continuation shares.
    fn forced_bytes<'py>(&self, py: Python<'py>, s: &Bound<'_, State>) -> PyResult<Bound<'py, PyBytes>> {
        let s = &s.get().inner;
        let bytes = unlocked(py, || self.core.forced_bytes(s)).map_err(raise)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Tokens of the bytes that every accepted continuation shares, as the vocabulary's own tokenizer writes
    /// them where it is known (`Vocabulary.encode`), else the longest first.
    fn forced(&self, py: Python<'_>, s: &Bound<'_, State>) -> PyResult<Vec<u32>> {
        let s = &s.get().inner;
        let bytes = unlocked(py, || self.core.forced_bytes(s)).map_err(raise)?;
        // a character that is cut short is not text yet
        let whole = std::str::from_utf8(&bytes).map_or_else(|cut| cut.valid_up_to(), str::len);
        spelled(py, self.vocabulary.bind(py), std::str::from_utf8(&bytes[..whole])?)
    }

    /// A number of tokens within which an accepted end can be reached; None when none is known, or when it is
    /// plainly more than `within`: no end is sought beyond that.
    #[pyo3(signature = (s, within = None))]
    fn distance(
        &self,
        py: Python<'_>,
        s: &Bound<'_, State>,
        within: Option<Whole<u32>>,
    ) -> PyResult<Option<u32>> {
        let (s, within) = (&s.get().inner, maybe_named(within, "within")?.unwrap_or(FAR));
        let d = unlocked(py, || self.core.distance(s, within)).map_err(raise)?;
        Ok((d != FAR).then_some(d))
    }

    /// Whether some text is known to end within `budget` tokens, the end-of-text token not counted.
    fn fits(&self, py: Python<'_>, s: &Bound<'_, State>, budget: Whole<u32>) -> PyResult<bool> {
        let (s, budget) = (&s.get().inner, budget.named("budget")?);
        unlocked(py, || self.core.fits(s, budget)).map_err(raise)
    }

    /// The mask of the tokens after which an accepted end can be reached within `budget` tokens in all, the
    /// end-of-text token not counted.
    fn mask_within<'py>(
        &self,
        py: Python<'py>,
        s: &Bound<'_, State>,
        budget: Whole<u32>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let (s, budget) = (&s.get().inner, budget.named("budget")?);
        let row = unlocked(py, || self.core.mask_within(s, budget)).map_err(raise)?;
        Ok(PyArray1::from_vec(py, row))
    }

    /// The state after bytes that need not be whole tokens; raises TokenRejected.
    fn step_bytes(&self, py: Python<'_>, s: &Bound<'_, State>, text: &[u8]) -> PyResult<State> {
        let s = &s.get().inner;
        match unlocked(py, || self.core.step_bytes(s, text)).map_err(raise)? {
            Some(inner) => Ok(self.own(inner)),
            None => Err(raise(Error::new(
                Kind::TokenRejected,
                format!("{:?} is not allowed here", String::from_utf8_lossy(text)),
            ))),
        }
    }

    /// Whether the whole text is accepted.
    fn matches(&self, py: Python<'_>, text: Text) -> PyResult<bool> {
        Ok(unlocked(py, || self.core.check(text.bytes())).map_err(raise)?.is_none())
    }

    /// None when the text is accepted; else the offset of the first byte that is refused, what was expected
    /// there, and the JSON Pointer of the schema that says so.
    #[allow(clippy::type_complexity)]
    fn check(&self, py: Python<'_>, text: Text) -> PyResult<Option<(usize, Vec<String>, Option<String>)>> {
        unlocked(py, || self.core.check(text.bytes())).map_err(raise)
    }

    /// What may come next, in words, and where the schema says so.
    fn expected(&self, py: Python<'_>, s: &Bound<'_, State>) -> PyResult<(Vec<String>, Option<String>)> {
        let s = &s.get().inner;
        unlocked(py, || self.core.describe(s)).map_err(raise)
    }

    /// All that may be left of the value that stands or begins at a state, where it is one of at most `most`:
    /// (bytes, whether the last of them ends it), spelled as writers do; whitespace before it is not counted.
    /// None: there are more, or nobody knows.
    fn left(
        &self,
        py: Python<'_>,
        s: &Bound<'_, State>,
        most: Whole<usize>,
    ) -> PyResult<Option<Vec<LeftBytes>>> {
        let (s, most) = (&s.get().inner, most.named("most")?);
        let found = unlocked(py, || self.core.left(s, most)).map_err(raise)?;
        let bytes =
            |one: &tokenform_core::automaton::Left| (PyBytes::new(py, &one.bytes).unbind(), one.closed);
        Ok(found.map(|all| all.iter().map(bytes).collect()))
    }

    /// Code points that are left at most of the JSON string that is read at a state; None: none is read, or nobody
    /// knows.
    fn longest_left(&self, py: Python<'_>, s: &Bound<'_, State>) -> PyResult<Option<u32>> {
        let s = &s.get().inner;
        unlocked(py, || self.core.longest_left(s)).map_err(raise)
    }

    /// A state in words, for people who look inside.
    fn describe(&self, py: Python<'_>, s: &Bound<'_, State>) -> PyResult<String> {
        let s = &s.get().inner;
        let (expected, pointer) = unlocked(py, || self.core.describe(s)).map_err(raise)?;
        let place = match pointer.as_deref() {
            None => String::new(),
            Some("") => " (schema at the root)".into(),
            Some(p) if p.starts_with('/') => format!(" (schema at {p})"),
            Some(name) => format!(" ({name})"),
        };
        Ok(format!("expects {}{place}", expected.join(" or ")))
    }

    /// What a drawing shows: the first states from one on, and (number, text, number or -1) of the edges.
    fn drawn(
        &self,
        py: Python<'_>,
        s: &Bound<'_, State>,
        most: Whole<usize>,
    ) -> PyResult<(Vec<State>, Vec<Edge>)> {
        let (s, most) = (&s.get().inner, most.named("most")?);
        let drawn = unlocked(py, || self.core.drawn(s, most)).map_err(raise)?;
        let edges =
            drawn.edges.into_iter().map(|(from, text, to)| (from, text, to.map_or(-1, |to| to as isize)));
        Ok((drawn.states.into_iter().map(|inner| self.own(inner)).collect(), edges.collect()))
    }

    /// The allowed tokens by the slow way: token by token, byte by byte. For tests.
    fn oracle(&self, py: Python<'_>, s: &Bound<'_, State>) -> PyResult<Vec<u32>> {
        let s = &s.get().inner;
        unlocked(py, || self.core.oracle(s)).map_err(raise)
    }

    /// States that the automaton holds now; those that are let go and asked for again are counted anew.
    #[getter]
    fn state_count(&self) -> usize {
        self.core.stats().states
    }

    /// What the automaton holds, why earlier epochs of it ended, and the work of its calls so far.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let s = self.core.stats();
        let out = PyDict::new(py);
        out.set_item("states", s.states)?;
        out.set_item("bytes", s.bytes)?;
        out.set_item("bytes_of_live_texts", s.moved)?;
        out.set_item("lanes", s.shards)?;
        out.set_item("generations", s.epochs)?;
        out.set_item("ended_full", s.full)?;
        out.set_item("ended_by_errors", s.failed)?;
        out.set_item("ended_cleared", s.cleared)?;
        out.set_item("work", s.work)?;
        Ok(out)
    }

    /// Lets go of everything but the states that are held; these are made again when they are asked for.
    fn clear(&self, py: Python<'_>) {
        unlocked(py, || self.core.clear());
    }
}

/// Entries, bytes, hits and misses of the table of lexical masks that all automata share.
#[pyfunction]
pub fn store_figures() -> (usize, usize, u64, u64) {
    let f = store::figures();
    (f.entries, f.bytes, f.hits, f.misses)
}
