//! The contract between what a constraint says and the tokens that spell it: an automaton over bytes.
//!
//! [`structure`] the trait that JSON, grammars and compositions are, and that masks are made of; [`pattern`] the
//! simplest of them, one regular language.

pub mod pattern;
pub mod structure;

pub use structure::{CtxId, Piece, Pos, Structure};
