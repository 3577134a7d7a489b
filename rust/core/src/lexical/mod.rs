//! The lexical layer: regular languages over code points, their derivatives, and how they are spelled in bytes.
//!
//! [`term`] hash-consed boolean regexes, `boolean` their simplification; [`delta`] derivatives, all classes of code
//! points at once; [`live`] which terms still accept something; [`words`] finite sets of strings as one term;
//! `branch` those that grow; `cover` which unions say more than they need; [`spans`] those of a document; `find` texts up to a word, [`table`] languages given by states; `merge` what operands come to
//! together; `lengths` bounds on length that a term's form tells; [`base`] what a state differs little from;
//! [`content`] states as keys of shared masks; [`lower`] from the parsed tree of a pattern; [`spell`] states over
//! bytes, [`ways`] where they lead, with `escapes` of JSON strings, `rows` of code points, `byteset`; `shortest` the least that completes a lexeme, `remains` a bound on it;
//! [`number`] exact decimals, sets of them, and the texts that spell a number of a set.

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
