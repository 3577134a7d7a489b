//! Context-free grammars: Earley items over lexemes, contexts as numbers.
//!
//! Reading order: [`grammar`] symbols and rules, read from the neutral form of the frontends; [`fold`] regular
//! parts as terminals, where a lexer finds all cuts ([`cuts`], [`circles`]); [`chart`] item sets, interned, with their stacks shared ([`skeleton`] what they predict); [`layout`] line breaks as INDENT and DEDENT; [`scanned`] the structure with
//! a contextual lexer (longest match; [`lexemes`] as masks see it); [`segmented`] the structure without one (every segmentation counts);
//! [`finish`] short ways to an accepted end.

pub mod chart;
mod circles;
mod cuts;
pub mod finish;
mod fold;
pub mod grammar;
pub mod layout;
mod lexemes;
pub mod scanned;
pub mod segmented;
pub mod skeleton;

use crate::error::Result;

/// A context-free constraint.
pub enum Machine {
    Scanned(Box<scanned::Scanned>),
    Segmented(Box<segmented::Segmented>),
}

/// The structure of a grammar in the frontends' neutral form (JSON text).
pub fn machine(text: &str) -> Result<Machine> {
    let (grammar, mut lexicon) = grammar::read(text)?;
    let grammar = fold::fold(grammar, &mut lexicon);
    Ok(if grammar.segmented {
        Machine::Segmented(Box::new(segmented::Segmented::new(grammar, lexicon)))
    } else {
        Machine::Scanned(Box::new(scanned::Scanned::new(grammar, lexicon)?))
    })
}
