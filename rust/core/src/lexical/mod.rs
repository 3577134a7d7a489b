//! The lexical layer: regular languages over code points, their derivatives, and how they are spelled in bytes.
//!
//! [`term`] hash-consed boolean regexes and their simplification; [`delta`] derivatives, all classes of code
//! points at once; [`live`] which terms still accept something; [`words`] finite sets of strings as one term;
//! `branch` those that grow; [`spans`] those of a document; `lengths` bounds on length that a term's form tells; [`base`] what a state
//! differs little from; [`content`] states as keys of shared masks; [`lower`] from the parsed tree of a pattern;
//! [`spell`] states over bytes.

pub mod base;
mod branch;
mod clamp;
pub mod content;
pub mod delta;
pub(crate) mod in_words;
mod lengths;
pub mod live;
pub mod lower;
pub mod spans;
pub mod spell;
pub mod term;
pub mod words;

pub use spell::{LexId, Lexicon, Spelling, Step};
pub use term::{TermId, Terms};
