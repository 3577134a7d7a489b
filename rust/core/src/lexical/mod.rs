//! Regular languages over code points, and how they are spelled in bytes.
//!
//! In: the tree of a pattern ([`crate::regex::Lang`]), words, tables of states.  Out: states over bytes ([`spell`]), of
//! which each says whether a lexeme may end here and which languages hold then.
//! Data: a term ([`term`]): a hash-consed boolean regular expression; equal terms are one number.
//! Invariant: a term that no word is in is `Empty` wherever a state is made of it, so that no state is dead.
//! Papers: Brzozowski 1964; Owens, Reppy, Turon 2009 (derivatives by classes); Moseley et al. 2023 (in .NET).
//! Start: [`term`], [`delta`] (derivatives), [`spell`].
//!
//! | question | files |
//! |---|---|
//! | simplification | `boolean`, `cover`, `resolve`, `merge`, `clamp` |
//! | leaves that are tables | [`words`], `branch`, [`spans`], `find`, [`table`], [`number`] |
//! | does a term accept anything; how long are its words | [`live`], `lengths`, `remains`, `shortest` |
//! | which states share masks | [`base`], [`content`] |
//! | bytes of a state | [`spell`], [`ways`], `escapes`, `rows`, `byteset` |
//!
//! Circle: a derivative makes terms, and making a term asks for facts that derivatives tell (`term`, `delta`, the leaves).

pub mod base;
mod boolean;
mod branch;
mod byteset;
mod clamp;
pub mod content;
mod cover;
pub mod delta;
pub(crate) mod escapes;
mod find;
pub(crate) mod in_words;
mod lengths;
pub mod live;
pub mod lower;
mod merge;
pub mod number;
mod outcomes;
pub(crate) mod remains;
mod resolve;
mod rows;
mod shortest;
pub mod spans;
pub mod spell;
pub mod table;
pub mod term;
pub mod ways;
pub mod words;

pub use shortest::{shortest_lexeme, LONGEST};
pub use spell::{LexId, Lexicon, Spelling, Step};
pub use term::{TermId, Terms};
