//! Context-free grammars: Earley items over lexemes, contexts as numbers.
//!
//! Reading order: [`spec`] the neutral form of the frontends; [`grammar`] symbols and rules ([`terminals`] their languages), read from it
//! ([`productive`] which derive a text, [`neighbours`] which a lexer can't read); [`fold`] regular parts as terminals, where a lexer finds all cuts ([`cuts`],
//! [`circles`]); [`chart`] item sets, interned, with their stacks shared ([`skeleton`] what they predict); [`orders`]
//! members in any order; [`layout`] line breaks as INDENT and DEDENT; [`scanned`] the structure with a contextual
//! lexer ([`lines`] its line breaks, [`literals`] those in a row; longest match; [`ends`] whether one can end,
//! [`guarded`] where some beginnings can't, [`around`] what hangs on the text around it ([`survey`] tells where), [`forms`] what only on the next character, [`separate`] which never need that question; [`lexemes`] as masks see it); [`scannerless`] the structure without one (every segmentation counts); [`finish`]
//! short ways to an accepted end.

mod around;
#[cfg(test)]
mod charges_tests;
pub mod chart;
mod circles;
mod cuts;
mod describe;
mod ends;
pub mod finish;
mod fold;
mod forms;
pub mod grammar;
mod guarded;
pub mod layout;
mod lexemes;
mod lines;
mod literals;
mod neighbours;
mod orders;
pub mod productive;
pub mod scanned;
pub mod scannerless;
mod separate;
pub mod skeleton;
pub mod spec;
mod survey;
pub mod terminals;

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
    let grammar = fold::fold(grammar, &mut lexicon);
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
