//! Regular languages over code points, and how they are spelled in bytes.
//!
//! In: the tree of a pattern ([`crate::regex::Lang`]), words, tables of states.  Out: states over bytes
//! ([`spell`]), of which each says whether a lexeme may end here and which languages accept it.
//! Data: a term ([`term`]): a hash-consed boolean regular expression; equal terms are one number.
//! Invariant: a term without a word is `Empty` before a state is made of it, so that no state is dead.
//! Papers: Brzozowski 1964; Owens, Reppy, Turon 2009 (derivatives by classes); Moseley et al. 2023 (in .NET).
//! Start: [`term`], [`delta`] (derivatives), [`spell`].
//!
//! | question | files |
//! |---|---|
//! | simplification | `boolean`, `subsumption`, `resolve`, `merge`, `clamp` |
//! | leaves that are tables | [`words`], `word_trie`, [`spans`], `find`, [`table`], [`number`] |
//! | does a term accept anything; how long are its words | [`live`], `lengths`, `remaining_bound`, `shortest` |
//! | which states share masks | [`comparison`], [`content`] |
//! | bytes of a state | [`spell`], [`segments`], `escapes`, `rows`, `byteset` |
//!
//! Circle: a derivative makes terms, and the constructors of terms need facts that derivatives give (`term`,
//! `delta`, the leaves).

mod boolean;
mod byteset;
mod clamp;
pub mod comparison;
pub mod content;
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
pub(crate) mod remaining_bound;
mod resolve;
mod rows;
pub mod segments;
mod shortest;
pub mod spans;
pub mod spell;
mod subsumption;
pub mod table;
pub mod term;
mod word_trie;
pub mod words;

pub use shortest::{shortest_lexeme, LONGEST};
pub use spell::{LexId, Lexicon, Spelling, Step};
pub use term::{TermId, Terms};
