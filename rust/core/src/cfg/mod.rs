//! Context-free grammars: Earley items over lexemes, contexts as numbers.
//!
//! Reading order: [`structure`] the neutral form of the frontends; [`grammar`] symbols and rules, read from it
//! ([`productive`] which derive a text); [`fold`] regular parts as terminals, where a lexer finds all cuts
//! ([`cuts`], [`circles`]); [`chart`] item sets, interned, with their stacks shared ([`skeleton`] what they
//! predict); [`orders`] members in any order; [`layout`] line breaks as INDENT and DEDENT; [`scanned`] the structure with a contextual lexer ([`lines`]
//! its line breaks, [`literals`] those in a row; longest
//! match; [`lexemes`] as masks see it); [`segmented`] the structure without one (every segmentation counts);
//! [`finish`] short ways to an accepted end.

pub mod chart;
mod circles;
mod cuts;
mod describe;
pub mod finish;
mod fold;
pub mod grammar;
pub mod layout;
mod lexemes;
mod lines;
mod literals;
mod orders;
pub mod productive;
pub mod scanned;
pub mod segmented;
pub mod skeleton;
pub mod structure;

use crate::error::{Error, Kind, Result};
use structure::Structure;

/// A context-free constraint.
pub enum Machine {
    Scanned(Box<scanned::Scanned>),
    Segmented(Box<segmented::Segmented>),
}

/// The automaton of a grammar in the frontends' neutral form.
pub fn machine(structure: Structure) -> Result<Machine> {
    let (grammar, mut lexicon) = grammar::read(structure)?;
    let grammar = fold::fold(grammar, &mut lexicon);
    Ok(if grammar.segmented {
        Machine::Segmented(Box::new(segmented::Segmented::new(grammar, lexicon)))
    } else {
        Machine::Scanned(Box::new(scanned::Scanned::new(grammar, lexicon)?))
    })
}

/// The same, from JSON text.
pub fn machine_of_text(text: &str) -> Result<Machine> {
    let value = serde_json::from_str(text)
        .map_err(|e| Error::new(Kind::InvalidGrammar, format!("not a grammar structure: {e}")))?;
    machine(Structure::from_value(&value))
}
