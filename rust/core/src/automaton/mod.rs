//! The contract between a constraint and the tokens that spell it: an automaton over bytes.
//!
//! In: a structure (JSON of a schema, a grammar, a composition, one regular language).  Out: positions; for each, what a
//! byte leads to, whether the text may end, and a short completion.
//! Data: a position [`Pos`]: the number of a context and of a lexical state.
//! Invariant: every position can reach an accepted end; equal positions mean the same for ever.
//! Start: [`byte_automaton`], the trait that masks are made of; [`pattern`] is the simplest structure that implements it.

pub mod byte_automaton;
pub mod pattern;

pub use byte_automaton::{ByteAutomaton, CtxId, Left, Piece, Pos};
