//! Whole tokens against an automaton over bytes: masks, edges, distances.
//!
//! In: a structure ([`crate::automaton`]) and a vocabulary.  Out: [`TokenAutomaton`], for any number of threads, and
//! [`Matcher`], one text as it grows.
//! Data: a state ([`state`]): one record, written once by a builder and read without a lock; the mask of a lexical state
//! ([`lexmask`]): tokens that stay inside the lexeme, and where the others leave it, shared by all grammars of the process.
//! Invariant: a mask is what `oracle` says, token by token; a mask that a caller holds never changes.
//! Papers: Fredkin 1960 (tries); Willard, Louf 2023 (masks by states); Koo et al. 2024 (tokens as transducers).
//! Start: [`automaton`] (the interface), `builder` (its memory), [`core`] (states and masks), `collect` (how one mask is made).
//!
//! | question | files |
//! |---|---|
//! | tokens inside a lexeme | [`lexmask`], `within`, `exits`, `walk`, `charwalk`, `self_loops`, `counted`; kept in [`store`] |
//! | tokens over several lexemes of a grammar | `lexemes`, `plans`, `quotient`, `suffixes`, `conflicts`, `crossing` |
//! | how far the end is; where tokens lead | `completion`, `distance`, `successors`, `followers`, `string_transitions`, `any_text` |
//! | memory, threads | `epoch`, `shards`, [`reclaim`], `races` |
//!
//! Circle: `core` calls `collect`, `crossing` and `successors` for masks, and they call it for positions.

mod any_text;
pub mod automaton;
pub mod batch;
mod builder;
mod charwalk;
mod collect;
mod completion;
mod conflicts;
#[doc(hidden)]
pub mod core;
mod counted;
mod crossing;
mod distance;
mod divergence;
mod drawn;
#[doc(hidden)]
pub mod engine;
mod epoch;
pub(crate) mod exits;
mod followers;
pub(crate) mod lexemes;
#[doc(hidden)]
pub mod lexmask;
pub mod matcher;
mod open_language;
mod oracle;
mod plain;
mod plans;
#[cfg(test)]
mod portions_tests;
mod quotient;
#[cfg(test)]
mod races;
pub mod reclaim;
mod refusal;
pub mod row;
mod self_loops;
mod shards;
pub mod state;
pub mod store;
mod string_transitions;
mod successors;
#[cfg(test)]
mod successors_tests;
mod suffixes;
mod walk;
pub(crate) mod within;

pub use automaton::TokenAutomaton;
pub use drawn::Drawn;
pub use followers::Follower;
pub use matcher::Matcher;
pub use row::Mask;
pub use state::State;
