//! The interface between builders and a core, whatever the structure behind it.
//!
//! Invariant: an id means one state as long as the engine lives.

use std::sync::Arc;

use super::row::Mask;
use super::successors::SuccessorClass;
use crate::automaton::byte_automaton::{Left, Piece, Pos, Seen};
use crate::error::Result;
use crate::vocab::TokenId;

/// The id of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u32);

/// A position, and the number of the lexeme's text where that matters to the completions.
pub type DistanceClass = (Pos, u32);

/// What a [`super::builder::Builder`] asks of a core, whatever the structure.  After an error that
/// [`crate::error::Error::spoils`], or a panic, a core is to be dropped.
pub trait Engine: Send {
    fn start(&mut self) -> Result<StateId>;
    /// The mask, and whether the text may end.
    fn mask(&mut self, s: StateId) -> (Arc<Mask>, bool);
    fn advance_bytes(&mut self, s: StateId, bytes: &[u8]) -> Option<StateId>;
    fn accepting(&mut self, s: StateId) -> bool;
    /// The state with the same mask and the same completions that was counted no tokens to
    /// ([`crate::automaton::byte_automaton::ByteAutomaton::counts_tokens`]).
    fn uncounted(&mut self, s: StateId) -> StateId;
    /// Whether tokens of plain text ([`crate::vocab::Vocabulary::is_whole_text`]) lead from the state to itself.
    fn is_kept_by_text(&mut self, s: StateId) -> bool;
    /// Whether all tokens of as many digits ([`crate::vocab::Vocabulary::numeral`]) lead from the state to one.
    fn counts_digits(&mut self, s: StateId) -> bool;
    /// A short completion of at most so many bytes.
    fn completion(&mut self, s: StateId, most: usize) -> Option<Vec<Piece>>;
    /// Tokens that are enough for an end after any token that is allowed; `None` where no such bound is known.
    fn remaining_bound(&mut self, s: StateId) -> Option<u32>;
    /// The special tokens that may come.
    fn specials(&mut self, s: StateId) -> Vec<TokenId>;
    /// The state after a special token.
    fn take_special(&mut self, s: StateId, token: TokenId) -> Option<StateId>;
    fn forced(&mut self, s: StateId, limit: usize) -> Vec<u8>;
    fn describe(&mut self, s: StateId, seen: Seen) -> (Vec<String>, Option<String>);
    /// The possible rests of a value, if there are at most so many
    /// ([`crate::automaton::byte_automaton::ByteAutomaton::left`]).
    fn left(&mut self, s: StateId, most: usize) -> Option<Vec<Left>>;
    /// Most code points that may be left of the JSON string that is read here.
    fn longest_left(&mut self, s: StateId) -> Option<u32>;
    /// Offset of the first byte that is refused, and the state before it; the length when none is.
    fn walk(&mut self, s: StateId, bytes: &[u8]) -> (usize, StateId);
    /// Calls `visit` with the number of bytes read and the class of the position after each byte of a text,
    /// until it returns false; no class where the lexeme's own text matters and is long. No state is made.
    fn follow(
        &mut self,
        s: StateId,
        bytes: &[u8],
        visit: &mut dyn FnMut(usize, Option<DistanceClass>) -> bool,
    );
    fn state_count(&self) -> usize;
    /// Bytes that it holds.
    fn bytes(&mut self) -> usize;
    /// States with the same class have the same completions: the text of a key that no schema names makes no
    /// difference to them.
    fn class(&mut self, s: StateId) -> DistanceClass;
    /// The tokens of the text that may come, by the class of the state after them; no state is made.
    fn classes_after(&mut self, s: StateId) -> Vec<SuccessorClass>;
    /// The states that a token of the text leads to, the least of its tokens, and all of them; `None`: more than `most`.
    fn followers(&mut self, s: StateId, most: usize) -> Option<Vec<(StateId, TokenId, Arc<Mask>)>>;
    /// Lexical terms so far, which measure what a search for a completion costs.
    fn terms(&mut self) -> usize;
}
