//! `Grammar`: a constraint, checked when it is made, compiled for a vocabulary when it is used.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokenform_core::cfg::productive;
use tokenform_core::grammar::Source;
use tokenform_core::regex::Dialect;
use tokenform_core::schema::options::{Options, CHOICES};
use tokenform_core::{gbnf, Error, Grammar as Core, Kind, Limits, Result};

use crate::automaton::TokenAutomaton;
use crate::errors::raise;
use crate::host::unlocked;
use crate::limits::Limits as PyLimits;
use crate::vocabulary::Vocabulary;

#[pyclass(frozen, module = "tokenform._core")]
pub struct Grammar {
    core: Core,
}

fn grammar(py: Python<'_>, source: Source) -> PyResult<Grammar> {
    Ok(Grammar { core: unlocked(py, || Core::new(source)).map_err(raise)? })
}

#[pymethods]
impl Grammar {
    /// The automaton over the tokens of a vocabulary; lazy, so this is quick.
    #[pyo3(signature = (vocab, limits = None))]
    fn compile(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        vocab: &Bound<'_, Vocabulary>,
        limits: Option<&Bound<'_, PyLimits>>,
    ) -> PyResult<TokenAutomaton> {
        let limits = limits.map_or_else(Limits::default, |l| l.get().core());
        let (inner, this) = (vocab.get().inner.clone(), slf.get());
        let core = unlocked(py, || this.core.compile(inner, limits));
        Ok(TokenAutomaton::new(core.map_err(raise)?, slf.clone().unbind(), vocab.clone().unbind()))
    }

    /// By its source: made again, from plain data, wherever it is unpickled.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        Ok((py.import("tokenform._core")?.getattr("grammar_again")?, parts(self.core.source())))
    }

    /// What was ignored, loosened or not proven.
    #[getter]
    fn report(&self) -> Vec<String> {
        self.core.report().to_vec()
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
    // what is no text is no known value either
    let chosen: Vec<_> =
        options.into_iter().flatten().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    grammar(py, schema_source(text, registry, &chosen).map_err(raise)?)
}

fn schema_source(
    text: String,
    registry: Vec<(String, String)>,
    chosen: &[(String, String)],
) -> Result<Source> {
    let mut options = Options { registry, ..Options::default() };
    chosen.iter().try_for_each(|(name, value)| options.set(name, value))?;
    Ok(Source::Schema { text, options })
}

/// A source as plain data: its kind, texts, and pairs of texts.
type Parts = (&'static str, Vec<String>, Vec<(String, String)>, Vec<(String, String)>);

fn parts(source: &Source) -> Parts {
    let plain = |kind, texts: &[&String]| (kind, texts.iter().map(|t| t.to_string()).collect());
    let (kind, texts) = match source {
        Source::Schema { text, options } => {
            let owned = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
            let chosen = options.names().into_iter().map(owned).collect();
            return ("schema", vec![text.clone()], chosen, options.registry.clone());
        }
        Source::Regex { pattern, dialect: Dialect::Ecma } => plain("ecma", &[pattern]),
        Source::Regex { pattern, .. } => plain("python", &[pattern]),
        Source::Choice(words) => ("choice", words.clone()),
        Source::ContextFree(text) => plain("context_free", &[text]),
        Source::Gbnf(text, start) => plain("gbnf", &[text, start]),
        Source::Composite(text, name) => plain("composite", &[text, name]),
    };
    (kind, texts, Vec::new(), Vec::new())
}

/// The grammar of a source as plain data, for `pickle`.
#[pyfunction]
pub fn grammar_again(
    py: Python<'_>,
    kind: &str,
    mut texts: Vec<String>,
    chosen: Vec<(String, String)>,
    registry: Vec<(String, String)>,
) -> PyResult<Grammar> {
    if kind == "choice" {
        return grammar(py, Source::Choice(texts));
    }
    let second = if texts.len() == 2 { texts.pop() } else { None }.unwrap_or_default();
    let first = texts.pop().unwrap_or_default();
    let source = match kind {
        "schema" => schema_source(first, registry, &chosen).map_err(raise)?,
        "ecma" => Source::Regex { pattern: first, dialect: Dialect::Ecma },
        "python" => Source::Regex { pattern: first, dialect: Dialect::Python },
        "context_free" => Source::ContextFree(first),
        "gbnf" => Source::Gbnf(first, second),
        "composite" => Source::Composite(first, second),
        _ => {
            let message = format!("{kind:?} is no kind of grammar");
            return Err(raise(Error::new(Kind::InvalidGrammar, message)));
        }
    };
    grammar(py, source)
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
    let dialect = option("dialect", dialect, &[("python", Dialect::Python), ("ecma", Dialect::Ecma)])?;
    grammar(py, Source::Regex { pattern, dialect })
}

/// A constraint that admits just these texts.
#[pyfunction]
pub fn choice(py: Python<'_>, texts: Vec<String>) -> PyResult<Grammar> {
    grammar(py, Source::Choice(texts))
}

/// A constraint from a context-free grammar: the neutral form of the frontends, as JSON text.
#[pyfunction]
pub fn context_free(py: Python<'_>, structure: String) -> PyResult<Grammar> {
    grammar(py, Source::ContextFree(structure))
}

/// A constraint made of others: a form of the frontends, as JSON text; `name` is what messages call it.
#[pyfunction]
pub fn composite(py: Python<'_>, form: String, name: String) -> PyResult<Grammar> {
    grammar(py, Source::Composite(form, name))
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
pub fn endless_rule(rules: Vec<(String, Vec<String>)>, terminals: Vec<String>) -> Option<String> {
    let rules = rules.iter().map(|(name, body)| (name.as_str(), body.iter().map(String::as_str)));
    productive::endless(rules, terminals.iter().map(String::as_str)).map(String::from)
}
