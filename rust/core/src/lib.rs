//! The engine: constraints as lazily built deterministic automata over tokens.
//!
//! A [`Grammar`] says which texts are accepted; over a [`Vocabulary`] it becomes a [`TokenAutomaton`], whose masks say
//! which tokens may come next; a [`Matcher`] is one text as it grows.
//!
//! ```
//! use std::sync::Arc;
//! use tokenform_core::{Grammar, Limits, Matcher, Options, TokenId, Vocabulary};
//!
//! // the bytes of every token id, the ids that end a text, those that no text spells
//! let tokens = (0..=255u8).map(|b| Box::from([b])).chain([Box::from(*b"</s>")]).collect();
//! let vocabulary = Arc::new(Vocabulary::new(tokens, vec![256], &[256])?);
//!
//! let grammar = Grammar::json_schema(r#"{"enum": ["yes", "no"]}"#, Options::default())?;
//! let mut matcher = Matcher::new(grammar.compile(vocabulary.clone(), Limits::default())?, Some(10))?;
//! let mut mask = vec![0; vocabulary.mask_words()];
//! while !matcher.is_terminated() {
//!     matcher.fill_mask(&mut mask)?;
//!     // the model's choice among the allowed: here the last one
//!     let token = (0..257).rev().find(|t| mask[t / 32] >> (t % 32) & 1 == 1).unwrap();
//!     matcher.accept_tokens(&[TokenId(token as u32)])?;
//! }
//! # Ok::<(), tokenform_core::Error>(())
//! ```
//!
//! A limit ends one call by unwinding: the interface catches it and returns [`Kind::LimitExceeded`], and the automaton is as it
//! was before the call.  A program built with `panic = "abort"` ends there instead, with the process: build with `unwind`
//! (the default) where constraints come from strangers.
//!
//! Reading order of the code, one folder a stage of the pipeline:
//! [`regex`] patterns to languages over code points; [`lexical`] terms, derivatives and byte states;
//! [`automaton`] the contract between what follows and the tokens; [`schema`] JSON Schema as formulas over values;
//! [`json`] the pushdown part: frames of objects and arrays; [`gbnf`] a language of grammars;
//! [`cfg`] the pushdown part of context-free grammars; [`compose`] constraints made of others;
//! [`vocab`] the vocabulary and its trie; [`mask`] the token automaton; [`canvas`] sequences filled in any order; [`grammar`] the value that they are built from,
//! `saved` its serialized form. [`work`] and [`limits`] say how much a call may do, [`heap_size`] how much memory tables hold, [`cache`]
//! keeps what was compiled.
//! Nothing here knows Python.
//!
//! | where | |
//! |---|---|
//! | a keyword becomes a formula | `schema::keywords`, one family a file |
//! | `uniqueItems` is decided | `schema::array` (of objects `schema::distinct`; which items are left, `schema::live::seen_items`) |
//! | a mask is put together | `mask::collect` (of grammars with a lexer `mask::lexemes`) |
//! | work is counted, and a call cut | [`work`]; what callers may bound, [`limits`] |
//! | memory is counted | [`heap_size`] |
//! | memory is bounded | `mask::epoch` an automaton's, `mask::reclaim` the process's, `mask::store` and [`cache`] what is shared |

#![deny(missing_docs)]
// module headers are maps for whoever reads the code: they name what is private too
#![allow(rustdoc::private_intra_doc_links)]

// The public interface is what is re-exported below.  Modules stay reachable for the boundary, the fuzz targets and the benchmarks
// of this repository; what is hidden may change with every version.
// its macros are those of all that follow
#[doc(hidden)]
#[macro_use]
pub mod heap_size;

#[doc(hidden)]
pub mod automaton;
pub mod cache;
pub mod canvas;
#[doc(hidden)]
pub mod cfg;
#[doc(hidden)]
pub mod compose;
pub mod error;
#[doc(hidden)]
pub mod gbnf;
pub mod grammar;
#[doc(hidden)]
pub mod hash;
#[doc(hidden)]
pub mod json;
#[doc(hidden)]
pub mod lexical;
pub mod limits;
mod lists;
mod lock;
pub mod mask;
pub mod process;
#[doc(hidden)]
pub mod regex;
mod saved;
#[doc(hidden)]
pub mod schema;
mod source;
mod sync;
mod text_memo;
pub mod vocab;
#[doc(hidden)]
pub mod work;

pub use error::{Error, Kind, Result};
pub use grammar::Grammar;
pub use limits::Limits;
pub use mask::{batch, reclaim, store, Mask, Matcher, State, TokenAutomaton};
pub use regex::Dialect;
pub use schema::options::{Numbers, Options, Order, Strings, Whitespace};
pub use source::Source;
pub use vocab::{TokenId, Vocabulary};
