//! Completions: the tokens of a short path to an accepting state, and what the masks of budgets found about a
//! state.
//!
//! Invariant: a completion is a list of tokens that needs no builder; the records of the states that depend on it keep it
//! ([`CachedDistance`]).  Memory: completions share their tails; the ends after a state's tokens, for the last few states.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::engine::{DistanceClass, StateId};
use super::row::Mask;
use crate::automaton::byte_automaton::Piece;
use crate::heap_size;
use crate::vocab::{TokenId, Vocabulary};

/// Distance of a state for which no end is known.
pub const FAR: u32 = u32::MAX;

/// The tokens to an end, shared by all completions that join here; `None`: the text may end.
pub(super) type Completion = Option<Arc<Link>>;

/// A token of a completion, and those after it.
pub(super) struct Link {
    pub token: TokenId,
    /// The number of tokens from this one on.
    pub left: u32,
    pub next: Completion,
}

impl Drop for Link {
    /// Without recursion: a completion may be too long for the machine's stack.
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(link) = next {
            next = Arc::into_inner(link).and_then(|mut link| link.next.take());
        }
    }
}

/// The number of tokens of a completion.
pub(super) fn length(completion: &Completion) -> u32 {
    completion.as_ref().map_or(0, |link| link.left)
}

/// The completions after the tokens that a state allows: each with the tokens that share it.
pub(super) struct CompletionEnds {
    pub groups: Vec<(Completion, Arc<Mask>)>,
    pub accepting: bool,
    pub farthest: u32,
}

impl CompletionEnds {
    pub fn bytes(&self) -> usize {
        // many are shared
        self.groups.iter().map(|(_, ids)| ids.bytes() / Arc::strong_count(ids) + 64).sum()
    }
}

/// What the masks of budgets found about a state, for as long as it lives.
#[derive(Default)]
pub(super) struct CachedDistance {
    completion: Option<Completion>,
    /// With the number of tokens beyond which no end was sought.
    pub ends: Option<(u32, Arc<CompletionEnds>)>,
}

impl CachedDistance {
    /// Keeps the shorter of the known completion and another; returns it.
    pub fn shorter(&mut self, found: Option<Completion>) -> Option<Completion> {
        let better = |completion: &Completion| {
            self.completion.as_ref().is_none_or(|known| length(completion) < length(known))
        };
        if let Some(completion) = found.filter(better) {
            self.completion = Some(completion);
        }
        self.completion.clone()
    }

    /// The shortest known completion.
    pub fn own(&self) -> Option<Completion> {
        self.completion.clone()
    }

    /// The shortest known completion after a token.
    pub fn after(&self, token: TokenId) -> Option<Completion> {
        let own =
            self.completion.iter().flatten().find(|link| link.token == token).map(|link| link.next.clone());
        let mut groups = self.ends.iter().flat_map(|(_, ends)| &ends.groups);
        let found = groups.find(|(_, ids)| ids.has(token.0)).map(|(completion, _)| completion.clone());
        [own, found].into_iter().flatten().min_by_key(length)
    }
}

/// Known completions; `None`: no end is known.
#[derive(Default)]
pub(super) struct Completions {
    pub known: FxHashMap<DistanceClass, Option<Completion>>,
    pub ends: VecDeque<((StateId, u32), Arc<CompletionEnds>)>,
    /// Links that were made.
    pub links: usize,
}

heap_size::tables!(Completions: known; this => {
    let ends: usize = this.ends.iter().map(|(_, ends)| ends.bytes()).sum();
    this.links * (std::mem::size_of::<Link>() + 16) + ends
});

/// Tokens by the completion that they share.
#[derive(Default)]
pub(super) struct TokenGroups {
    large: Vec<(Completion, Arc<Mask>)>,
    small: Vec<(Completion, Vec<u32>)>,
    places: FxHashMap<usize, usize>,
    farthest: u32,
}

impl TokenGroups {
    pub fn add(&mut self, completion: Option<Completion>, tokens: Arc<Mask>) {
        let Some(completion) = completion else {
            self.farthest = FAR;
            return;
        };
        self.farthest = self.farthest.max(length(&completion));
        let Mask::Sparse(ids) = &*tokens else { return self.large.push((completion, tokens)) };
        let key = completion.as_ref().map_or(0, |link| Arc::as_ptr(link) as usize);
        let place = *self.places.entry(key).or_insert(self.small.len());
        if place == self.small.len() {
            self.small.push((completion, Vec::new()));
        }
        self.small[place].1.extend_from_slice(ids);
    }

    pub fn all(self, size: usize) -> (Vec<(Completion, Arc<Mask>)>, u32) {
        let small =
            self.small.into_iter().map(|(completion, ids)| (completion, Arc::new(Mask::from_ids(ids, size))));
        (self.large.into_iter().chain(small).collect(), self.farthest)
    }
}

/// The tokens of a completion: each text in the fewest tokens.
pub(super) fn tokens_of(vocab: &Vocabulary, completion: &[Piece]) -> Option<Vec<TokenId>> {
    let mut out = Vec::new();
    for piece in completion {
        match piece {
            Piece::Bytes(text) => out.extend(vocab.fewest_tokens(text)?),
            Piece::Token(token) => out.push(*token),
        }
    }
    Some(out)
}
