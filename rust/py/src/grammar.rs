//! `Grammar`: a constraint, checked when it is made, compiled for a vocabulary when it is used.

use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::prelude::*;
use tokenform_core::cfg::{self, productive, Machine};
use tokenform_core::compose::form::Composite;
use tokenform_core::compose::{self, Joint};
use tokenform_core::json::JsonMachine;
use tokenform_core::lexical::Lexicon;
use tokenform_core::mask::pattern::Pattern;
use tokenform_core::mask::TokenAutomaton as Core;
use tokenform_core::regex::{parse, Dialect, RegexErrorKind};
use tokenform_core::schema::options::{Options, Order, Whitespace};
use tokenform_core::schema::Schema;
use tokenform_core::{gbnf, vocab, Error, Kind, Result};

use crate::automaton::TokenAutomaton;
use crate::errors::raise;
use crate::vocabulary::Vocabulary;

/// What a grammar was made of, so that it can be built once more for another vocabulary.
enum Source {
    Schema {
        text: String,
        options: Options,
    },
    Regex {
        pattern: String,
        dialect: Dialect,
    },
    Choice(Vec<String>),
    /// A grammar in the neutral form of the frontends, as JSON text.
    ContextFree(String),
    /// A grammar in GBNF and its start rule.
    Gbnf(String, String),
    /// A constraint made of others, as JSON text, and its name in messages.
    Composite(String, String),
}

/// A structure that was built and not yet used.
enum Built {
    Json(Box<JsonMachine>),
    Pattern(Box<Pattern>),
    ContextFree(Machine),
    Joint(Box<Joint>),
}

#[pyclass(frozen, module = "tokenform._core")]
pub struct Grammar {
    source: Source,
    ready: Mutex<Option<Built>>,
    report: Vec<String>,
}

impl Source {
    fn build(&self) -> Result<(Built, Vec<String>)> {
        match self {
            Source::Schema { text, options } => {
                let machine = JsonMachine::new(Schema::new(text, options.clone())?)?;
                let report = machine.schema.report.clone();
                Ok((Built::Json(Box::new(machine)), report))
            }
            Source::Regex { pattern, dialect } => {
                let lang = parse(pattern, *dialect).map_err(|e| {
                    let kind = match e.kind {
                        RegexErrorKind::Invalid => Kind::InvalidRegex,
                        RegexErrorKind::Unsupported => Kind::UnsupportedRegex,
                        RegexErrorKind::Limit => Kind::LimitExceeded,
                    };
                    Error::new(kind, format!("the pattern {pattern:?} {}", e.message)).column(e.column)
                })?;
                let mut lexicon = Lexicon::default();
                let term = lexicon.terms.lower(&lang);
                Self::pattern(lexicon, term, format!("the pattern {pattern:?}"))
            }
            Source::ContextFree(text) => Ok((Built::ContextFree(cfg::machine_of_text(text)?), Vec::new())),
            Source::Gbnf(text, start) => {
                Ok((Built::ContextFree(cfg::machine(gbnf::read(text, start)?)?), Vec::new()))
            }
            Source::Composite(text, name) => Ok(match compose::form::read(text, name)? {
                Composite::Pattern(pattern) => (Built::Pattern(pattern), Vec::new()),
                Composite::Joint(joint) => {
                    let report = joint.report().to_vec();
                    (Built::Joint(joint), report)
                }
            }),
            Source::Choice(words) => {
                let mut lexicon = Lexicon::default();
                let term = lexicon.terms.words(words.iter().map(|w| w.as_str().into()).collect());
                Self::pattern(lexicon, term, "the choices".into())
            }
        }
    }

    fn pattern(
        mut lexicon: Lexicon,
        term: tokenform_core::lexical::TermId,
        name: String,
    ) -> Result<(Built, Vec<String>)> {
        let live = lexicon.terms.live(term);
        if let Some(limit) = lexicon.terms.limit_error() {
            return Err(Error { message: format!("{name}: {}", limit.message), ..limit });
        }
        if !live {
            return Err(Error::new(Kind::UnsatisfiableGrammar, format!("{name} matches no text at all")));
        }
        Ok((Built::Pattern(Box::new(Pattern::new(lexicon, term, name))), Vec::new()))
    }

    fn grammar(self, py: Python<'_>) -> PyResult<Grammar> {
        let (built, report) = py.allow_threads(|| self.build()).map_err(raise)?;
        Ok(Grammar { source: self, ready: Mutex::new(Some(built)), report })
    }
}

fn automaton(built: Built, vocab: Arc<vocab::Vocabulary>) -> Result<Core> {
    match built {
        Built::Json(machine) => Core::new(*machine, vocab),
        Built::Pattern(pattern) => Core::new(*pattern, vocab),
        Built::Joint(joint) => Core::new(*joint, vocab),
        Built::ContextFree(Machine::Scanned(machine)) => Core::new(*machine, vocab),
        Built::ContextFree(Machine::Segmented(machine)) => Core::new(*machine, vocab),
    }
}

#[pymethods]
impl Grammar {
    /// The automaton over the tokens of a vocabulary; lazy, so this is quick.
    fn compile(&self, py: Python<'_>, vocab: &Bound<'_, Vocabulary>) -> PyResult<TokenAutomaton> {
        let inner = vocab.get().inner.clone();
        let core = py
            .allow_threads(|| {
                let built = match self.ready.lock().take() {
                    Some(built) => built,
                    None => self.source.build()?.0,
                };
                automaton(built, inner)
            })
            .map_err(raise)?;
        Ok(TokenAutomaton::new(core, vocab.clone().unbind()))
    }

    /// What was ignored, loosened or not proven.
    #[getter]
    fn report(&self) -> Vec<String> {
        self.report.clone()
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

/// A constraint from the text of a JSON Schema.
#[pyfunction]
#[pyo3(signature = (text, *, order = "declared", whitespace = "spaced", numbers = "canonical",
    strings = "canonical", formats = "assert", additional = "schema", unsupported = "refuse",
    registry = Vec::new()))]
#[allow(clippy::too_many_arguments)]
pub fn json_schema(
    py: Python<'_>,
    text: String,
    order: &str,
    whitespace: &str,
    numbers: &str,
    strings: &str,
    formats: &str,
    additional: &str,
    unsupported: &str,
    registry: Vec<(String, String)>,
) -> PyResult<Grammar> {
    let spelling = [("canonical", false), ("any", true)];
    let report = option("unsupported", unsupported, &[("refuse", false), ("report", true)])?;
    let options = Options {
        order: option("order", order, &[("declared", Order::Declared), ("any", Order::Any)])?,
        whitespace: option(
            "whitespace",
            whitespace,
            &[
                ("compact", Whitespace::Compact),
                ("spaced", Whitespace::Spaced),
                ("indent", Whitespace::Indent),
                ("any", Whitespace::Any),
            ],
        )?,
        numbers_any: option("numbers", numbers, &spelling)?,
        strings_any: option("strings", strings, &spelling)?,
        formats: option("formats", formats, &[("assert", true), ("annotate", false)])?,
        refuse_unknown_formats: false,
        forbid_additional: option("additional", additional, &[("schema", false), ("forbid", true)])?,
        report_unsupported: report,
        registry,
        without: Vec::new(),
    };
    Source::Schema { text, options }.grammar(py)
}

/// A constraint from a regular expression; `dialect` is "python" (the whole text matches) or "ecma" (a match is
/// found in the text).
#[pyfunction]
#[pyo3(signature = (pattern, *, dialect = "python"))]
pub fn regex(py: Python<'_>, pattern: String, dialect: &str) -> PyResult<Grammar> {
    let dialect = option("dialect", dialect, &[("python", Dialect::Python), ("ecma", Dialect::Ecma)])?;
    Source::Regex { pattern, dialect }.grammar(py)
}

/// A constraint that admits just these texts.
#[pyfunction]
pub fn choice(py: Python<'_>, texts: Vec<String>) -> PyResult<Grammar> {
    Source::Choice(texts).grammar(py)
}

/// A constraint from a context-free grammar: the neutral form of the frontends, as JSON text.
#[pyfunction]
pub fn context_free(py: Python<'_>, structure: String) -> PyResult<Grammar> {
    Source::ContextFree(structure).grammar(py)
}

/// A constraint made of others: a form of the frontends, as JSON text; `name` is what messages call it.
#[pyfunction]
pub fn composite(py: Python<'_>, form: String, name: String) -> PyResult<Grammar> {
    Source::Composite(form, name).grammar(py)
}

/// A constraint from a grammar in llama.cpp's GBNF.
#[pyfunction]
pub fn gbnf_grammar(py: Python<'_>, text: String, start: String) -> PyResult<Grammar> {
    Source::Gbnf(text, start).grammar(py)
}

/// The neutral form of a grammar in GBNF, as JSON text.
#[pyfunction]
pub fn read_gbnf(py: Python<'_>, text: String, start: &str) -> PyResult<String> {
    py.allow_threads(|| gbnf::read(&text, start))
        .map(|structure| structure.to_value().to_string())
        .map_err(raise)
}

/// A rule on a circle of rules that derive no text, or None; `rules` are pairs of a name and an expansion.
#[pyfunction]
pub fn endless_rule(rules: Vec<(String, Vec<String>)>, terminals: Vec<String>) -> Option<String> {
    let rules = rules.iter().map(|(name, body)| (name.as_str(), body.iter().map(String::as_str)));
    productive::endless(rules, terminals.iter().map(String::as_str)).map(String::from)
}
