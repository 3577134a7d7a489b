//! A state: one record, written by builders and read by all threads without a lock.
//!
//! Invariant: what a record says is true of its text for ever; each field is published once, by one atomic
//! store. A record says how it was first reached, so that any builder of the automaton can make it again: a
//! state stays valid as long as somebody holds it, even when the memory in which its automaton was built is
//! freed.
//! Memory: a record refers to those before it, back to the start; only the builder refers to those after it.
//!
//! Known edges are a trie by two bits of the token's hash at a time; a node is published once, by one atomic store.  An
//! edge that was added is found by every later reader, in log4 of the number of edges.
//! Rejected: a map behind a lock (a reader waits for a writer that the system has put to sleep); a map for all states
//! of an automaton (it grows by copying, in the middle of a call).

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError, Weak};

use once_cell::race::OnceBox;

use super::completion::{length, CachedDistance, Completion, FAR};
use super::engine::StateId;
use super::row::Mask;
use crate::vocab::{TokenId, Vocabulary};

/// A state of an automaton: cheap to copy, equal and hashed by identity.
///
/// States that are equal allow the same; states that allow the same may differ where memory was freed in
/// between.
#[derive(Clone)]
pub struct State(pub(super) Arc<Record>);

/// How a state was reached from the one before.
#[derive(Clone)]
pub(super) enum ReachedBy {
    Token(TokenId),
    Bytes(Box<[u8]>),
}

/// Attempts to lock before a thread does without what masks of budgets found.
const PATIENCE: usize = 100_000;

/// A number that no distance and no budget has.
const UNKNOWN: u32 = u32::MAX - 1;

pub(super) struct Record {
    /// The automaton and the epoch that it was made in.
    pub owner: u64,
    pub epoch: u32,
    pub id: StateId,
    pub from: Option<(State, ReachedBy)>,
    /// Whether tokens of plain text lead back to it.
    kept_by_text: bool,
    /// Whether all tokens of the same number of digits are known to lead to one state: they share one edge.
    counts_digits: AtomicBool,
    /// For even and for odd shards: the epoch in which it was last made again (upper half), and its id there.
    moved: [AtomicU64; 2],
    mask: OnceLock<Arc<Mask>>,
    accepting: AtomicU8,
    distance: AtomicU32,
    farthest: AtomicU32,
    forced: OnceLock<Box<[u8]>>,
    /// Used under budgets alone; its lock is held for one access.
    cached_distance: OnceLock<Box<Mutex<CachedDistance>>>,
    pub edges: Edges<Record>,
}

/// Bytes of a record with the counts beside it.
pub(super) const RECORD: usize = std::mem::size_of::<Record>() + 16;

impl Record {
    pub fn fresh(
        owner: u64,
        epoch: u32,
        id: StateId,
        from: Option<(State, ReachedBy)>,
        kept_by_text: bool,
    ) -> State {
        State(Arc::new(Record {
            owner,
            epoch,
            id,
            from,
            kept_by_text,
            counts_digits: AtomicBool::new(false),
            moved: Default::default(),
            mask: OnceLock::new(),
            accepting: AtomicU8::new(0),
            distance: AtomicU32::new(UNKNOWN),
            farthest: AtomicU32::new(UNKNOWN),
            forced: OnceLock::new(),
            cached_distance: OnceLock::new(),
            edges: Edges::default(),
        }))
    }

    /// Its id in an epoch, as far as it is known there.
    pub fn place(&self, epoch: u32) -> Option<StateId> {
        if self.epoch == epoch {
            return Some(self.id);
        }
        let moved = self.moved[epoch as usize & 1].load(Ordering::Acquire);
        (moved >> 32 == epoch as u64).then_some(StateId(moved as u32))
    }

    pub fn set_place(&self, epoch: u32, id: StateId) {
        self.moved[epoch as usize & 1].store((epoch as u64) << 32 | id.0 as u64, Ordering::Release);
    }

    pub fn mask(&self) -> Option<&Arc<Mask>> {
        self.mask.get()
    }

    pub fn set_mask(&self, mask: &Arc<Mask>) -> bool {
        self.mask.set(mask.clone()).is_ok()
    }

    pub fn accepting(&self) -> Option<bool> {
        match self.accepting.load(Ordering::Acquire) {
            0 => None,
            known => Some(known == 2),
        }
    }

    pub fn set_accepting(&self, accepting: bool) {
        self.accepting.store(1 + accepting as u8, Ordering::Release);
    }

    pub fn distance(&self) -> Option<u32> {
        Some(self.distance.load(Ordering::Acquire)).filter(|&d| d != UNKNOWN)
    }

    /// Of several distances the shortest counts, and any one replaces [`FAR`].
    pub fn set_distance(&self, distance: u32) {
        match distance {
            FAR => drop(self.distance.compare_exchange(UNKNOWN, FAR, Ordering::AcqRel, Ordering::Acquire)),
            known => drop(self.distance.fetch_min(known, Ordering::AcqRel)),
        }
    }

    /// What masks of budgets found about it; `None` where another thread never unlocks it, as after a `fork`.
    pub fn cached_distance(&self) -> Option<MutexGuard<'_, CachedDistance>> {
        let cached_distance = self.cached_distance.get_or_init(Box::default);
        for _ in 0..PATIENCE {
            match cached_distance.try_lock() {
                Ok(cached_distance) => return Some(cached_distance),
                Err(TryLockError::Poisoned(cached_distance)) => return Some(cached_distance.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }

    /// The completion after a token that a mask of a budget allowed, as far as that is kept.
    pub fn cached_after(&self, token: TokenId) -> Option<Completion> {
        self.cached_distance.get()?;
        self.cached_distance()?.after(token)
    }

    /// The farthest end after one of its tokens.
    pub fn farthest(&self) -> Option<u32> {
        Some(self.farthest.load(Ordering::Acquire)).filter(|&d| d != UNKNOWN)
    }

    pub fn set_farthest(&self, farthest: u32) {
        self.farthest.store(farthest, Ordering::Release);
    }

    pub fn forced(&self) -> Option<&[u8]> {
        self.forced.get().map(|f| &**f)
    }

    pub fn set_forced(&self, bytes: &[u8]) {
        let _ = self.forced.set(bytes.into());
    }

    /// From now on all tokens of the same number of digits share one edge.
    pub fn set_counts_digits(&self) {
        self.counts_digits.store(true, Ordering::Release);
    }

    /// The token whose edge a token takes.
    pub fn edge_token(&self, vocab: &Vocabulary, token: TokenId) -> TokenId {
        match self.counts_digits.load(Ordering::Acquire) {
            true => vocab.numeral(token).unwrap_or(token),
            false => token,
        }
    }
}

impl Drop for Record {
    /// Without recursion: the text before a state may be too long for the machine's stack.
    fn drop(&mut self) {
        let mut before = self.from.take();
        while let Some((State(record), _)) = before {
            before = Arc::into_inner(record).and_then(|mut record| record.from.take());
        }
    }
}

impl State {
    /// The state after a token, if it is known; without a builder.
    pub(super) fn known_edge(&self, vocab: &Vocabulary, token: TokenId) -> Option<State> {
        let edge = self.0.edge_token(vocab, token);
        self.0.edges.get(edge).map(State).inspect(|next| self.keep_cached(token, next))
    }

    /// The same, also for plain text that needs no edge.
    pub fn known_next(&self, vocab: &Vocabulary, token: TokenId) -> Option<State> {
        if self.0.kept_by_text && vocab.is_whole_text(token) {
            self.keep_cached(token, self);
            return Some(self.clone());
        }
        self.known_edge(vocab, token)
    }

    /// Records what a mask of a budget found about a token in the state after it.
    pub(super) fn keep_cached(&self, token: TokenId, next: &State) {
        if let Some(completion) = self.0.cached_after(token) {
            next.keep_completion(completion);
        }
    }

    /// Takes over what was known of the same position in freed memory.
    pub(super) fn inherit(&self, before: &State) {
        let known = before.0.cached_distance.get().and_then(|_| before.0.cached_distance());
        if let Some(completion) = known.and_then(|cached_distance| cached_distance.own()) {
            self.keep_completion(completion);
        }
    }

    fn keep_completion(&self, completion: Completion) {
        self.0.set_distance(length(&completion));
        if let Some(mut cached_distance) = self.0.cached_distance() {
            cached_distance.shorter(Some(completion));
        }
    }

    /// The mask, if it was made.
    pub fn known_mask(&self) -> Option<&Arc<Mask>> {
        self.0.mask()
    }

    /// The mask, if it was made and so many tokens are known to be enough after each that it allows (`None`:
    /// without a limit).
    pub fn known_mask_within(&self, budget: Option<u32>) -> Option<&Arc<Mask>> {
        self.known_mask().filter(|_| budget.is_none_or(|most| self.is_known_far(most)))
    }

    /// Whether the budget is known to be enough after any allowed token.
    pub fn is_known_far(&self, budget: u32) -> bool {
        self.0.farthest().is_some_and(|farthest| budget > farthest)
    }

    /// A number of tokens within which an end can be reached, if one is known.
    pub fn known_distance(&self) -> Option<u32> {
        self.0.distance()
    }

    /// Whether the text may end here, if that is known.
    pub fn known_accepting(&self) -> Option<bool> {
        self.0.accepting()
    }

    /// A text that leads to the state, from the start on; `None` where a special token is a part of it.
    pub(super) fn text(&self, vocab: &Vocabulary) -> Option<Vec<u8>> {
        let (mut parts, mut at): (Vec<&[u8]>, &State) = (Vec::new(), self);
        while let Some((before, via)) = &at.0.from {
            parts.push(match via {
                ReachedBy::Token(token) if vocab.is_special(*token) => return None,
                ReachedBy::Token(token) => vocab.text_of(*token),
                ReachedBy::Bytes(bytes) => bytes,
            });
            at = before;
        }
        parts.reverse();
        Some(parts.concat())
    }

    /// A number that no other state has while this one exists.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for State {}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.address().hash(hasher);
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "State({}.{}.{})", self.0.owner, self.0.epoch, self.0.id.0)
    }
}

/// The edges of a state, which lead to a `T` each.
pub(super) struct Edges<T> {
    root: OnceBox<Edge<T>>,
}

impl<T> Default for Edges<T> {
    fn default() -> Self {
        Edges { root: OnceBox::default() }
    }
}

struct Edge<T> {
    token: TokenId,
    /// Weak: states refer to those before them, never to those after.
    to: Weak<T>,
    below: [OnceBox<Edge<T>>; 4],
}

/// Bytes of an edge.
pub(super) const EDGE: usize = std::mem::size_of::<Edge<()>>() + 16;

/// All bits of a token's number, spread: tokens with equal hashes are equal.
fn hash(token: TokenId) -> u32 {
    let mixed = token.0.wrapping_mul(0x9E37_79B1);
    mixed ^ mixed >> 15
}

impl<T> Edges<T> {
    /// The target of a token's edge, if there is one that is still alive.
    pub fn get(&self, token: TokenId) -> Option<Arc<T>> {
        let (mut at, mut bits) = (&self.root, hash(token));
        while let Some(edge) = at.get() {
            if edge.token == token {
                return edge.to.upgrade();
            }
            at = &edge.below[bits as usize & 3];
            bits >>= 2;
        }
        None
    }

    /// Adds an edge; false where there is one already.
    pub fn add(&self, token: TokenId, to: &Arc<T>) -> bool {
        let (mut at, mut bits) = (&self.root, hash(token));
        let mut new = Box::new(Edge { token, to: Arc::downgrade(to), below: Default::default() });
        loop {
            match at.set(new) {
                Ok(()) => return true,
                Err(back) => new = back,
            }
            let edge = at.get().expect("just seen");
            if edge.token == token {
                return false;
            }
            at = &edge.below[bits as usize & 3];
            bits >>= 2;
        }
    }
}
