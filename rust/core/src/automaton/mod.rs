//! The contract between what a constraint says and the tokens that spell it: an automaton over bytes.
//!
//! [`byte_automaton`] the trait that JSON, grammars and compositions are, and that masks are made of; [`pattern`] the
//! simplest of them, one regular language.

pub mod byte_automaton;
pub mod pattern;

pub use byte_automaton::{ByteAutomaton, CtxId, Left, Piece, Pos};
