//! `Grammar`: a constraint, checked when it is made, compiled for a vocabulary when it is used.
//!
//! Invariant: a grammar never changes; two automata of it accept the same texts. It is its source, which is built once
//! to check it and once more for each further vocabulary or epoch.
//!
//! ```
//! use tokenform_core::Grammar;
//!
//! let grammar = Grammar::json_schema(r#"{"type": "integer"}"#, Default::default())?;
//! assert!(grammar.report().is_empty());
//! assert!(Grammar::regex("a(").is_err());
//! # Ok::<(), tokenform_core::Error>(())
//! ```

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::automaton::pattern::Pattern;
use crate::automaton::ByteAutomaton;
use crate::cache::{self, Patience, Reading};
use crate::cfg::{self, Machine};
use crate::compose::form::Composite;
use crate::compose::{self, CompositeAutomaton};
use crate::error::{Error, Kind, Result};
use crate::json::JsonMachine;
use crate::lexical::{Lexicon, TermId};
use crate::limits::Limits;
use crate::mask::automaton::{engine, First};
use crate::mask::engine::Engine;
use crate::mask::TokenAutomaton;
use crate::regex::{parse_with, Dialect};
use crate::schema::options::Options;
use crate::schema::Schema;
pub use crate::source::Source;
use crate::vocab::Vocabulary;
use crate::{gbnf, work};

/// A structure that was built and not yet used.
enum Built {
    Json(Box<JsonMachine>),
    Pattern(Box<Pattern>),
    ContextFree(Machine),
    CompositeAutomaton(Box<CompositeAutomaton>),
}

/// A constraint on texts, before any vocabulary is known.
pub struct Grammar {
    source: Arc<Source>,
    /// What checking it has built, for the first automaton.
    ready: Mutex<Option<Built>>,
    reading: Reading,
    /// What was found when somebody asked.
    left_out: OnceLock<Vec<String>>,
}

impl Source {
    fn build(&self) -> Result<(Built, Vec<String>)> {
        match self {
            Source::Schema { text, options } => built_schema(text, options.clone()),
            Source::Regex { pattern, dialect } => {
                let anchored = *dialect == Dialect::Python;
                let read = parse_with(pattern, *dialect, anchored);
                let (lang, notes) = read.map_err(|e| e.of_pattern(pattern))?;
                let mut lexicon = Lexicon::default();
                let term = lexicon.terms.lower(&lang);
                let (built, _) = built_pattern(lexicon, term, format!("the pattern {pattern:?}"))?;
                let told = notes.into_iter().map(|n| format!("read: column {}: {}", n.column, n.message));
                Ok((built, told.collect()))
            }
            Source::ContextFree(text) => Ok((Built::ContextFree(cfg::machine_of_text(text)?), Vec::new())),
            Source::Gbnf(text, start) => {
                let structure = gbnf::read(text, start)?;
                Ok(if structure.declare.is_empty() {
                    (Built::ContextFree(cfg::machine(structure)?), Vec::new())
                } else {
                    let joint = compose::form::with_tokens(structure)?;
                    (Built::CompositeAutomaton(Box::new(joint)), Vec::new())
                })
            }
            Source::Composite(text, name) => built_form(compose::form::read(text, name, &[])?),
            Source::Branched { form, name, lists } => built_form(compose::form::read(form, name, lists)?),
            Source::Choice(words) => {
                let mut lexicon = Lexicon::default();
                let term = lexicon.terms.words(words.iter().map(|w| w.as_str().into()).collect());
                built_pattern(lexicon, term, "the choices".into())
            }
        }
    }
}

fn built_form(read: Composite) -> Result<(Built, Vec<String>)> {
    match read {
        Composite::Pattern(pattern) => Ok((Built::Pattern(pattern), Vec::new())),
        Composite::Schema(text, options) => built_schema(&text, *options),
        Composite::CompositeAutomaton(joint) => {
            let report = joint.report().to_vec();
            Ok((Built::CompositeAutomaton(joint), report))
        }
    }
}

fn built_schema(text: &str, options: Options) -> Result<(Built, Vec<String>)> {
    let machine = JsonMachine::new(Schema::new(text, options)?)?;
    let report = machine.schema.report.clone();
    Ok((Built::Json(Box::new(machine)), report))
}

fn built_pattern(mut lexicon: Lexicon, term: TermId, name: String) -> Result<(Built, Vec<String>)> {
    if !work::naming(|| name.clone(), || lexicon.terms.live(term)) {
        return Err(Error::new(Kind::UnsatisfiableGrammar, format!("{name} matches no text at all")));
    }
    Ok((Built::Pattern(Box::new(Pattern::new(lexicon, term, name))), Vec::new()))
}

fn engine_of(built: Built, vocab: &Arc<Vocabulary>, limits: &Limits) -> Box<dyn Engine> {
    match built {
        Built::Json(machine) => engine(*machine, vocab, limits),
        Built::Pattern(pattern) => engine(*pattern, vocab, limits),
        Built::CompositeAutomaton(mut joint) => {
            joint.set_deepest(limits.depth);
            joint.bind(vocab);
            match joint.into_grammar() {
                Ok(grammar) => engine_of(Built::ContextFree(grammar), vocab, limits),
                Err(joint) => engine(*joint, vocab, limits),
            }
        }
        Built::ContextFree(Machine::Scanned(machine)) => engine(*machine, vocab, limits),
        Built::ContextFree(Machine::Scannerless(machine)) => engine(*machine, vocab, limits),
    }
}

impl Grammar {
    /// The grammar of a source; that of one that was read before costs a hash (see [`crate::cache`]).
    ///
    /// # Errors
    /// The kinds that begin with `Invalid`, `Unsupported` and `Unsatisfiable`, with the place in the source;
    /// [`Kind::LimitExceeded`]: reading it needs more work than [`Limits::default`] allows.
    pub fn new(source: Source) -> Result<Self> {
        if let Some(known) = Self::known(&source, Patience::Wait) {
            return Ok(known);
        }
        let read = work::run(Limits::default().work, || source.build().map(|built| (built, work::spent())));
        let ((built, report), work) = read.map_err(Error::from).and_then(|read| read)?;
        let (source, reading) = (Arc::new(source), Reading { report: report.into(), work });
        cache::add_reading(&source, &reading);
        Ok(Grammar { source, ready: Mutex::new(Some(built)), reading, left_out: OnceLock::new() })
    }

    /// The grammar of a source that was read before.
    pub fn known(source: &Source, patience: Patience) -> Option<Self> {
        let (source, reading) = cache::read(source, patience)?;
        Some(Grammar { source, ready: Mutex::new(None), reading, left_out: OnceLock::new() })
    }

    /// The grammar that another reader made of a text and gave to [`Grammar::remember`].
    pub fn named(name: &str, patience: Patience) -> Option<Self> {
        let (source, reading) = cache::named(name, patience)?;
        Some(Grammar { source, ready: Mutex::new(None), reading, left_out: OnceLock::new() })
    }

    /// This is what a reader made of a text: as long as the source is remembered it is found by that name, which says
    /// all that the reader was told.
    pub fn remember(&self, name: &str) {
        cache::add_name(&self.source, name);
    }

    /// The JSON documents that a schema, given as text, accepts.
    pub fn json_schema(text: &str, options: Options) -> Result<Self> {
        Self::new(Source::Schema { text: text.into(), options })
    }

    /// The texts that a regular expression matches from end to end, in Python's dialect.
    pub fn regex(pattern: &str) -> Result<Self> {
        Self::new(Source::Regex { pattern: pattern.into(), dialect: Dialect::Python })
    }

    /// Just these texts.
    pub fn choice<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Result<Self> {
        Self::new(Source::Choice(texts.into_iter().map(Into::into).collect()))
    }

    /// The texts of a grammar in llama.cpp's GBNF, from its rule `start` ("root").
    pub fn gbnf(text: &str, start: &str) -> Result<Self> {
        Self::new(Source::Gbnf(text.into(), start.into()))
    }

    /// What it was made of.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// What was ignored, loosened or not proven; empty: the grammar is exact.
    pub fn report(&self) -> &[String] {
        &self.reading.report
    }

    /// Parts of its schemas that nothing satisfies, so that documents lack them: a line each, found when it is asked
    /// for first.
    pub fn left_out(&self) -> &[String] {
        self.left_out.get_or_init(|| self.source.left_out())
    }

    /// Steps of work that reading it took, wherever it was read first.
    pub fn work(&self) -> u64 {
        self.reading.work
    }

    /// The automaton over the tokens of a vocabulary; lazy, so this is quick.
    ///
    /// # Errors
    /// [`Kind::VocabularyError`]: its tokens spell no text of the grammar.
    pub fn compile(&self, vocab: Arc<Vocabulary>, limits: Limits) -> Result<Arc<TokenAutomaton>> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).take();
        let spent = self.work();
        let first = ready.map(|built| -> First {
            let vocab = vocab.clone();
            // what was read already counts as when it is read again: a limit does not depend on what came before
            Box::new(move || {
                work::spend(spent);
                engine_of(built, &vocab, &limits)
            })
        });
        let (source, own) = (self.source.clone(), vocab.clone());
        let recipe = Box::new(move || Ok(engine_of(source.build()?.0, &own, &limits)));
        TokenAutomaton::new(first, recipe, vocab, limits)
    }

    /// The automaton that all grammars of this source share, as long as it is remembered or used.
    ///
    /// # Errors
    /// As [`Grammar::compile`].
    pub fn compile_shared(&self, vocab: Arc<Vocabulary>, limits: Limits) -> Result<Arc<TokenAutomaton>> {
        match self.known_automaton(&vocab, &limits, Patience::Wait) {
            Some(known) => Ok(known),
            None => Ok(cache::add_automaton(&self.source, self.compile(vocab, limits)?)),
        }
    }

    /// That automaton, where it was made before.
    pub fn known_automaton(
        &self,
        vocab: &Vocabulary,
        limits: &Limits,
        patience: Patience,
    ) -> Option<Arc<TokenAutomaton>> {
        cache::automaton(&self.source, vocab.key(), limits, patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(form: &str) -> Built {
        Source::Composite(form.into(), "the schema".into()).build().expect("a form").0
    }

    /// What a grammar in GBNF that names tokens becomes in a vocabulary of bytes and one special token, 256.
    fn in_bytes(text: &str) -> std::result::Result<Machine, Box<CompositeAutomaton>> {
        let Built::CompositeAutomaton(mut joint) =
            Source::Gbnf(text.into(), "root".into()).build().expect("a grammar").0
        else {
            panic!("it names a token")
        };
        let tokens =
            (0..=255u8).map(|b| Box::from([b])).chain([Box::from(*b"<think>"), Box::from(*b"<end>")]);
        joint.bind(&Vocabulary::new(tokens.collect(), vec![257], &[256, 257]).expect("a vocabulary"));
        joint.into_grammar()
    }

    #[test]
    fn tokens_that_stand_for_their_texts_leave_a_grammar_as_it_is() {
        let scanned = in_bytes("root ::= word+ <[59]>\nword ::= [a-z] [a-z0-9]* \" \" | \"(\" word \")\"");
        assert!(matches!(scanned, Ok(Machine::Scanned(_))));
        let ambiguous = in_bytes("root ::= (\"a\" root)? [a-c]* root? <[59]>?");
        assert!(matches!(ambiguous, Ok(Machine::Scannerless(_))));
        assert!(in_bytes("root ::= [a-z]+ <[256]> [0-9]+").is_err());
    }

    #[test]
    fn a_form_that_is_only_a_schema_is_that_schema() {
        let alone = r#"{"schema": "{\"type\": \"object\"}", "options": {}, "holes": []}"#;
        assert!(matches!(built(alone), Built::Json(_)));
        let filled = r#"{"schema": "{\"const\": \"\\ue000\"}", "options": {}, "holes": [{"language": {"words": ["a"]}}]}"#;
        assert!(matches!(built(filled), Built::CompositeAutomaton(_)));
    }
}
