//! `Grammar`: a constraint, checked when it is made, compiled for a vocabulary when it is used.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use tokenform_core::cache::Patience;
use tokenform_core::cfg::productive;
use tokenform_core::grammar::Source;
use tokenform_core::regex::DIALECTS;
use tokenform_core::schema::official;
use tokenform_core::schema::options::{Options, CHOICES};
use tokenform_core::{gbnf, Error, Grammar as Core, Kind, Limits};

use crate::automaton::TokenAutomaton;
use crate::branches::Branches;
use crate::errors::raise;
use crate::host::unlocked;
use crate::limits::Limits as PyLimits;
use crate::vocabulary::Vocabulary;

#[pyclass(frozen, module = "tokenform._core")]
pub struct Grammar {
    core: Core,
}

/// Bytes of a source from which on it is not looked up with the interpreter in hand: its hash takes a millisecond.
const LONG: usize = 1 << 20;

/// The grammar of a source; nobody is waited for with the interpreter in hand.
fn grammar(py: Python<'_>, source: Source) -> PyResult<Grammar> {
    let short = source.bytes() < LONG;
    let core = match short.then(|| Core::known(&source, Patience::None)).flatten() {
        Some(known) => known,
        None => unlocked(py, || Core::new(source)).map_err(raise)?,
    };
    Ok(Grammar { core })
}

#[pymethods]
impl Grammar {
    /// The automaton over the tokens of a vocabulary; lazy, so this is quick. shared: the one that everybody who asks so
    /// for the same source, vocabulary and limits gets, as long as it is remembered.
    #[pyo3(signature = (vocab, limits = None, shared = false))]
    fn compile(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        vocab: &Bound<'_, Vocabulary>,
        limits: Option<&Bound<'_, PyLimits>>,
        shared: bool,
    ) -> PyResult<TokenAutomaton> {
        let limits = limits.map_or_else(Limits::default, |l| l.get().core());
        let (inner, this) = (vocab.get().inner.clone(), slf.get());
        let looked = shared && this.core.source().bytes() < LONG;
        let known = looked.then(|| this.core.known_automaton(&inner, &limits, Patience::None)).flatten();
        let core = match (known, shared) {
            (Some(known), _) => Ok(known),
            (None, true) => unlocked(py, || this.core.compile_shared(inner, limits)),
            (None, false) => unlocked(py, || this.core.compile(inner, limits)),
        };
        Ok(TokenAutomaton::new(core.map_err(raise)?, slf.clone().unbind(), vocab.clone().unbind()))
    }

    /// By its bytes: made again wherever it is unpickled.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let load = py.get_type::<Grammar>().getattr("from_bytes")?;
        Ok((load, (self.to_bytes(py),)))
    }

    /// The grammar as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.core.to_bytes())
    }

    /// The grammar whose bytes these are.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        Ok(Grammar { core: unlocked(py, || Core::from_bytes(data)).map_err(raise)? })
    }

    /// The grammar that a frontend made of a text and `remember` was told of, or None.
    #[staticmethod]
    fn named(name: &str) -> Option<Self> {
        Core::named(name, Patience::None).map(|core| Grammar { core })
    }

    /// It is found by this name from now on, as long as what was compiled is remembered.
    fn remember(&self, py: Python<'_>, name: &str) {
        unlocked(py, || self.core.remember(name));
    }

    /// The same as a form of the frontends, as JSON text.
    fn form(&self) -> String {
        self.core.source().to_form().to_string()
    }

    /// What it is made of, in a word: `schema`, `context_free`, ...
    #[getter]
    fn kind(&self) -> &'static str {
        self.core.source().kind()
    }

    /// Steps of work that reading it took.
    #[getter]
    fn work(&self) -> u64 {
        self.core.work()
    }

    /// What was ignored, loosened or not proven, as reading it found.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.core.report().to_vec()
    }

    /// The same, and what of its schemas nothing satisfies: looked for when it is asked for first.
    #[getter]
    fn report(&self, py: Python<'_>) -> Vec<String> {
        unlocked(py, || [self.core.report(), self.core.left_out()].concat())
    }
}

fn option<T: Copy>(name: &str, value: &str, known: &[(&str, T)]) -> PyResult<T> {
    known.iter().find(|k| k.0 == value).map(|k| k.1).ok_or_else(|| {
        let names: Vec<String> = known.iter().map(|k| format!("{:?}", k.0)).collect();
        raise(Error::new(
            Kind::OptionError,
            format!("{name}={value:?} is not known; choose {}", names.join(" or ")),
        ))
    })
}

/// A constraint from the text of a JSON Schema; `options` by the names that [`json_options`] lists.
#[pyfunction]
#[pyo3(signature = (text, *, registry = Vec::new(), **options))]
pub fn json_schema(
    py: Python<'_>,
    text: String,
    registry: Vec<(String, String)>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Grammar> {
    let mut chosen = Options { registry, ..Options::default() };
    for (name, value) in options.into_iter().flatten() {
        // a flag, and what is no text and so no known value, as Python writes it
        let value = match value.downcast_into_exact::<PyString>() {
            Ok(text) => text,
            Err(other) => other.into_inner().str()?,
        };
        chosen.set(name.downcast::<PyString>()?.to_str()?, value.to_str()?).map_err(raise)?;
    }
    grammar(py, Source::Schema { text, options: chosen })
}

/// The URIs of official meta-schemas that the text of a schema refers to, as it spells them.
#[pyfunction]
pub fn official_references(py: Python<'_>, text: &str) -> Vec<String> {
    let found = || official::references(text).into_iter().map(String::from).collect();
    if text.len() < LONG {
        found()
    } else {
        unlocked(py, found)
    }
}

/// The options of JSON by name, each with the names of its values, the default first.
#[pyfunction]
pub fn json_options() -> Vec<(&'static str, Vec<&'static str>)> {
    CHOICES.iter().map(|(name, values)| (*name, values.to_vec())).collect()
}

/// A constraint from a regular expression; `dialect` is "python" (the whole text matches) or "ecma" (a match is
/// found in the text).
#[pyfunction]
#[pyo3(signature = (pattern, *, dialect = "python"))]
pub fn regex(py: Python<'_>, pattern: String, dialect: &str) -> PyResult<Grammar> {
    let dialect = option("dialect", dialect, &DIALECTS)?;
    grammar(py, Source::Regex { pattern, dialect })
}

/// Texts after which other threads have their turn: about a millisecond.
const MANY: usize = 1 << 14;

/// A constraint that admits just these texts.
#[pyfunction]
pub fn choice(py: Python<'_>, texts: &Bound<'_, PyList>) -> PyResult<Grammar> {
    let mut taken: Vec<String> = Vec::with_capacity(texts.len());
    for text in texts {
        taken.push(text.extract()?);
        if taken.len().is_multiple_of(MANY) {
            unlocked(py, || ());
        }
    }
    grammar(py, Source::Choice(taken))
}

/// A constraint from a context-free grammar: the neutral form of the frontends, as JSON text.
#[pyfunction]
pub fn context_free(py: Python<'_>, structure: String) -> PyResult<Grammar> {
    grammar(py, Source::ContextFree(structure))
}

/// A constraint made of others: a form of the frontends, as JSON text; `name` is what messages call it.  lists: the branches
/// that the form names by their numbers.
#[pyfunction]
#[pyo3(signature = (form, name, lists = Vec::new()))]
pub fn composite(
    py: Python<'_>,
    form: String,
    name: String,
    lists: Vec<PyRef<'_, Branches>>,
) -> PyResult<Grammar> {
    if lists.is_empty() {
        return grammar(py, Source::Composite(form, name));
    }
    let lists = lists.iter().map(|list| list.core.clone()).collect();
    grammar(py, Source::Branched { form, name, lists })
}

/// A constraint from a grammar in llama.cpp's GBNF.
#[pyfunction]
pub fn gbnf_grammar(py: Python<'_>, text: String, start: String) -> PyResult<Grammar> {
    grammar(py, Source::Gbnf(text, start))
}

/// The neutral form of a grammar in GBNF, as JSON text.
#[pyfunction]
pub fn read_gbnf(py: Python<'_>, text: String, start: &str) -> PyResult<String> {
    unlocked(py, || gbnf::read(&text, start)).map(|structure| structure.to_value().to_string()).map_err(raise)
}

/// A rule on a circle of rules that derive no text, or None; `rules` are pairs of a name and an expansion.
#[pyfunction]
pub fn endless_rule(
    py: Python<'_>,
    rules: Vec<(String, Vec<String>)>,
    terminals: Vec<String>,
) -> Option<String> {
    unlocked(py, || {
        let rules = rules.iter().map(|(name, body)| (name.as_str(), body.iter().map(String::as_str)));
        productive::endless(rules, terminals.iter().map(String::as_str)).map(String::from)
    })
}
