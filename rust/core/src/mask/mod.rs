//! The token layer: whole tokens against an automaton over bytes.
//!
//! [`crate::automaton`] is what the layers below offer; [`lexmask`] the part of a mask that the lexical state alone decides,
//! shared by all grammars of the process ([`within`] the tokens that stay inside the lexeme, [`exits`] where the
//! others leave it, [`walk`], [`charwalk`] with `loops` and [`wordmask`] how both are found); [`store`] where it is kept; [`collect`] how a
//! mask is put together, `unlike` from that of another position; [`lexemes`] how it is for grammars with a lexer ([`rest`] what is left of tokens, [`single`]
//! and [`textwalk`] what one language does with that); [`core`] numbers of states, and what is asked of them; `builder` a core with the
//! records of its states ([`state`] what everybody reads, `edges`, `ways` how far the end is, `landings`, `inside` and
//! `anytext` where tokens lead); `generation` how threads take turns with it and when it ends, `lanes` how several are used side by side;
//! `plain` states that plain text leaves as they are; [`automaton`] the face that threads share, [`batch`] for many rows at
//! once, [`matcher`] for one text as it grows; [`drawn`] what pictures show, [`reclaim`] the memory of the
//! process; `oracle` the slow, right version.

mod ahead;
mod anytext;
pub mod automaton;
pub mod batch;
mod beaten;
mod builder;
mod charwalk;
mod collect;
pub mod core;
mod crossing;
mod drawn;
mod edges;
pub mod exits;
mod generation;
mod inside;
mod landings;
#[cfg(test)]
mod landings_tests;
mod lanes;
pub mod lengths;
pub mod lexemes;
pub mod lexmask;
mod loops;
pub mod matcher;
mod oracle;
mod plain;
#[cfg(test)]
mod portions_tests;
#[cfg(test)]
mod races;
pub mod reclaim;
mod rest;
pub mod row;
mod single;
pub mod state;
pub mod store;
mod tails;
mod textwalk;
mod unlike;
mod walk;
mod ways;
pub mod within;
mod wordmask;

pub use automaton::TokenAutomaton;
pub use drawn::Drawn;
pub use matcher::Matcher;
pub use row::Mask;
pub use state::State;
