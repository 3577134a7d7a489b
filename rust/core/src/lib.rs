//! The engine: constraints as lazily built deterministic automata over tokens.
//!
//! Reading order, one folder a stage of the pipeline:
//! [`regex`] patterns to languages over code points; [`lexical`] terms, derivatives and byte states;
//! [`number`] exact decimals and sets of them; [`schema`] JSON Schema as formulas over values;
//! [`json`] the pushdown part: frames of objects and arrays; [`gbnf`] a language of grammars;
//! [`cfg`] the pushdown part of context-free grammars; [`compose`] constraints made of others;
//! [`vocab`] the vocabulary and its trie; [`mask`] the token automaton; [`grammar`] the face of all these, `saved` its
//! form as bytes. [`work`] and [`limits`] say how much a call may do, [`held`] how much memory tables hold, [`cache`]
//! keeps what was compiled.
//! Nothing here knows Python.

pub mod cache;
pub mod cfg;
pub mod compose;
pub mod error;
pub mod gbnf;
pub mod grammar;
mod hash;
pub mod held;
pub mod json;
pub mod lexical;
pub mod limits;
pub mod mask;
pub mod number;
pub mod process;
pub mod regex;
mod saved;
pub mod schema;
pub mod vocab;
pub mod work;

pub use error::{Error, Kind, Result};
pub use grammar::Grammar;
pub use limits::Limits;
pub use mask::{Mask, Matcher, State, TokenAutomaton};
pub use schema::options::Options;
pub use vocab::{TokenId, Vocabulary};
