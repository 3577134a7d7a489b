//! `Grammar`: a constraint, checked when it is made, compiled for a vocabulary when it is used.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tokenform_core::cache::{self, Patience};
use tokenform_core::cfg::{self, productive, Machine};
use tokenform_core::compose::form::Composite;
use tokenform_core::compose::{self, Joint};
use tokenform_core::json::JsonMachine;
use tokenform_core::lexical::Lexicon;
use tokenform_core::mask::automaton::engine;
use tokenform_core::mask::core::Engine;
use tokenform_core::mask::pattern::Pattern;
use tokenform_core::mask::TokenAutomaton as Core;
use tokenform_core::regex::{parse, Dialect, RegexErrorKind};
use tokenform_core::schema::options::{Options, CHOICES};
use tokenform_core::schema::Schema;
use tokenform_core::{gbnf, vocab, work, Error, Kind, Limits, Result};

use crate::automaton::TokenAutomaton;
use crate::errors::raise;
use crate::host::unlocked;
use crate::limits::Limits as PyLimits;
use crate::vocabulary::Vocabulary;

/// What a grammar was made of, so that it can be built once more for another vocabulary.
enum Source {
    Schema {
        text: String,
        options: Options,
        /// The options by name, as they were chosen.
        chosen: Vec<(String, String)>,
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
    source: Arc<Source>,
    key: cache::Key,
    ready: Mutex<Option<Built>>,
    report: Arc<[String]>,
}

/// Looks into the table of what was compiled; waits for nobody while it holds the interpreter.
fn looked_up<T: Send>(py: Python<'_>, look: impl Fn(Patience) -> Option<T> + Send + Sync) -> Option<T> {
    look(Patience::None).or_else(|| unlocked(py, || look(Patience::Wait)))
}

impl Source {
    fn build(&self) -> Result<(Built, Vec<String>)> {
        match self {
            Source::Schema { text, options, .. } => {
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
        let key = self.key();
        if let Some(report) = looked_up(py, |patience| cache::report(&key, patience)) {
            return Ok(Grammar { source: Arc::new(self), key, ready: Mutex::new(None), report });
        }
        let (built, report) = unlocked(py, || {
            let built = work::run(Limits::default().work, || self.build());
            let (built, report) = built.map_err(Error::from).and_then(|built| built)?;
            let report = Arc::from(report);
            cache::add_report(&key, &report);
            Ok((built, report))
        })
        .map_err(raise)?;
        Ok(Grammar { source: Arc::new(self), key, ready: Mutex::new(Some(built)), report })
    }

    /// The whole source as bytes: its kind, and each text after its length.
    fn key(&self) -> cache::Key {
        let (kind, texts, pairs): (u8, Vec<&str>, [&[(String, String)]; 2]) = match self {
            Source::Schema { text, options, chosen } => (0, vec![text], [chosen, &options.registry]),
            Source::Regex { pattern, dialect: Dialect::Ecma } => (1, vec![pattern], [&[], &[]]),
            Source::Regex { pattern, .. } => (2, vec![pattern], [&[], &[]]),
            Source::Choice(words) => (3, words.iter().map(String::as_str).collect(), [&[], &[]]),
            Source::ContextFree(text) => (4, vec![text], [&[], &[]]),
            Source::Gbnf(text, start) => (5, vec![text, start], [&[], &[]]),
            Source::Composite(text, name) => (6, vec![text, name], [&[], &[]]),
        };
        let mut key = vec![kind, pairs[0].len() as u8];
        let pairs = pairs.iter().flat_map(|pairs| pairs.iter().flat_map(|(a, b)| [a.as_str(), b.as_str()]));
        for text in texts.into_iter().chain(pairs) {
            key.extend((text.len() as u64).to_le_bytes());
            key.extend(text.as_bytes());
        }
        key.into()
    }
}

fn engine_of(built: Built, vocab: &Arc<vocab::Vocabulary>, limits: &Limits) -> Box<dyn Engine> {
    match built {
        Built::Json(machine) => engine(*machine, vocab, limits),
        Built::Pattern(pattern) => engine(*pattern, vocab, limits),
        Built::Joint(joint) => engine(*joint, vocab, limits),
        Built::ContextFree(Machine::Scanned(machine)) => engine(*machine, vocab, limits),
        Built::ContextFree(Machine::Segmented(machine)) => engine(*machine, vocab, limits),
    }
}

#[pymethods]
impl Grammar {
    /// The automaton over the tokens of a vocabulary; lazy, so this is quick. cached: the one that everybody who asks
    /// so for the same source, vocabulary and limits shares, as long as it is remembered.
    #[pyo3(signature = (vocab, limits = None, cached = false))]
    fn compile(
        slf: &Bound<'_, Self>,
        py: Python<'_>,
        vocab: &Bound<'_, Vocabulary>,
        limits: Option<&Bound<'_, PyLimits>>,
        cached: bool,
    ) -> PyResult<TokenAutomaton> {
        let limits = limits.map_or_else(Limits::default, |l| l.get().core());
        let inner = vocab.get().inner.clone();
        let this = slf.get();
        let own = |core| Ok(TokenAutomaton::new(core, slf.clone().unbind(), vocab.clone().unbind()));
        let known = |patience| cache::automaton(&this.key, inner.key(), &limits, patience);
        if let Some(core) = cached.then(|| looked_up(py, known)).flatten() {
            return own(core);
        }
        let first = this.ready.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (source, vocabulary) = (this.source.clone(), inner.clone());
        let recipe = Box::new(move || Ok(engine_of(source.build()?.0, &vocabulary, &limits)));
        let core = unlocked(py, || {
            let first = first.map(|built| engine_of(built, &inner, &limits));
            let core = Core::new(first, recipe, inner, limits)?;
            Ok(if cached { cache::add_automaton(&this.key, core) } else { core })
        });
        own(core.map_err(raise)?)
    }

    /// By its source: made again, from plain data, wherever it is unpickled.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        Ok((py.import("tokenform._core")?.getattr("grammar_again")?, self.source.parts()))
    }

    /// What was ignored, loosened or not proven.
    #[getter]
    fn report(&self) -> Vec<String> {
        self.report.to_vec()
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
    let mut chosen = Vec::new();
    for (name, value) in options.into_iter().flatten() {
        // a flag, and what is no text and so no known value, as Python writes it
        let value = match value.downcast_into_exact::<PyString>() {
            Ok(text) => text,
            Err(other) => other.into_inner().str()?,
        };
        let (name, value) = (name.downcast::<PyString>()?.to_str()?, value.to_str()?);
        if !Options::is_default(name, value) {
            chosen.push((name.to_string(), value.to_string()));
        }
    }
    schema_source(text, registry, chosen).map_err(raise)?.grammar(py)
}

fn schema_source(
    text: String,
    registry: Vec<(String, String)>,
    chosen: Vec<(String, String)>,
) -> Result<Source> {
    let mut options = Options { registry, ..Options::default() };
    for (name, value) in &chosen {
        options.set(name, value)?;
    }
    Ok(Source::Schema { text, options, chosen })
}

/// A source as plain data: its kind, texts, and pairs of texts.
type Parts = (&'static str, Vec<String>, Vec<(String, String)>, Vec<(String, String)>);

impl Source {
    fn parts(&self) -> Parts {
        let plain = |kind, texts: &[&String]| (kind, texts.iter().map(|t| t.to_string()).collect());
        let (kind, texts) = match self {
            Source::Schema { text, options, chosen } => {
                return ("schema", vec![text.clone()], chosen.clone(), options.registry.clone())
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
        return Source::Choice(texts).grammar(py);
    }
    let second = if texts.len() == 2 { texts.pop() } else { None }.unwrap_or_default();
    let first = texts.pop().unwrap_or_default();
    let source = match kind {
        "schema" => schema_source(first, registry, chosen).map_err(raise)?,
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
    source.grammar(py)
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
    unlocked(py, || gbnf::read(&text, start)).map(|structure| structure.to_value().to_string()).map_err(raise)
}

/// A rule on a circle of rules that derive no text, or None; `rules` are pairs of a name and an expansion.
#[pyfunction]
pub fn endless_rule(rules: Vec<(String, Vec<String>)>, terminals: Vec<String>) -> Option<String> {
    let rules = rules.iter().map(|(name, body)| (name.as_str(), body.iter().map(String::as_str)));
    productive::endless(rules, terminals.iter().map(String::as_str)).map(String::from)
}
