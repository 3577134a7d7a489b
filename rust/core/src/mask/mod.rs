//! The token layer: whole tokens against an automaton over bytes.
//!
//! [`structure`] what the layers below offer; [`lexmask`] the part of a mask that the lexical state alone decides,
//! shared by all grammars of the process ([`within`] the tokens that stay inside the lexeme, [`exits`] where the
//! others leave it, [`walk`], [`charwalk`] and [`wordmask`] how both are found); [`store`] where it is kept; [`collect`] how a
//! mask is put together; [`lexemes`] how it is for grammars with a lexer ([`rest`] what is left of tokens, [`single`]
//! and [`textwalk`] what one language does with that); [`core`] states, edges, and what is asked of them; [`automaton`] the face that threads
//! share; [`idle`] what becomes of those that nobody asks; [`oracle`] the slow, right version.

pub mod automaton;
mod charwalk;
mod collect;
pub mod core;
pub mod exits;
pub mod idle;
pub mod lexemes;
pub mod lexmask;
pub mod oracle;
pub mod pattern;
mod rest;
pub mod row;
mod single;
pub mod store;
pub mod structure;
mod textwalk;
mod walk;
pub mod within;
mod wordmask;

pub use automaton::TokenAutomaton;
pub use row::Mask;
pub use structure::{CtxId, Piece, Pos, Structure};
