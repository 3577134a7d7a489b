//! Context-free grammars as automata over bytes: Earley items over lexemes.
//!
//! In: rules in the neutral form of the frontends ([`spec`]).  Out: a [`crate::automaton::ByteAutomaton`], with a lexer
//! ([`scanned`], longest match) or without ([`scannerless`], where every way to cut the text counts).
//! Data: an item set of [`chart`], interned; it holds the sets that it returns to, so that a stack is one number.
//! Invariant: a context accepts just what the rules derive from there; what no lexer reads rightly is refused when it is read.
//! Papers: Earley 1970; Leo 1991 (right recursion); Tomita 1985 (shared stacks); Nawrocki 1991 (conflicts of longest match).
//! Start: [`grammar`] with [`terminals`]; then [`chart`] and `lr0` (what a set predicts); then [`scanned`].
//!
//! | question | files |
//! |---|---|
//! | which rules become terminals | `fold`, `cuts`, `cycles` |
//! | which terminals clash | `adjacency`, `separation`, `literals`, `context_dependence` |
//! | terminals that all count, lazy ones | `joints` |
//! | assertions at the ends of a terminal | `trailing_context`, `split_terminals`, `lookahead`, `lexeme_ends` |
//! | indentation; members in any order | `layout`, `lines`; `orders` |
//! | short ways to an end; words for people | `completion`; `describe` |
//!
//! Circle: a scanned grammar asks its parts (`trailing_context`, `lookahead`, `lexeme_ends`, ...) about contexts, and they it about lexemes.

mod adjacency;
#[cfg(test)]
mod charges_tests;
pub mod chart;
pub mod completion;
mod context_dependence;
mod contextual;
mod cuts;
mod cycles;
mod describe;
pub mod fold;
pub mod grammar;
mod joints;
pub mod layout;
mod lexeme_ends;
mod lexemes;
mod lines;
mod literals;
mod lookahead;
pub mod lr0;
mod orders;
pub mod productive;
pub mod scanned;
pub mod scannerless;
mod separation;
pub mod spec;
mod split_terminals;
pub mod terminals;
mod trailing_context;

use crate::error::{Error, Kind, Result};
use spec::GrammarSpec;

/// A context-free constraint.
pub enum Machine {
    Scanned(Box<scanned::Scanned>),
    Scannerless(Box<scannerless::Scannerless>),
}

/// The automaton of a grammar in the frontends' neutral form.
pub fn machine(structure: GrammarSpec) -> Result<Machine> {
    let (grammar, mut lexicon) = grammar::read(structure)?;
    let grammar = fold::fold(grammar, &mut lexicon, |_| false);
    Ok(if grammar.segmented {
        Machine::Scannerless(Box::new(scannerless::Scannerless::new(grammar, lexicon)))
    } else {
        Machine::Scanned(Box::new(scanned::Scanned::new(grammar, lexicon)?))
    })
}

/// The same, from JSON text.
pub fn machine_of_text(text: &str) -> Result<Machine> {
    let value = serde_json::from_str(text)
        .map_err(|e| Error::new(Kind::InvalidGrammar, format!("not a grammar structure: {e}")))?;
    machine(GrammarSpec::from_value(&value))
}
