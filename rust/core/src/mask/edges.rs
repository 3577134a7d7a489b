//! The edges of one state that were met: read by any number of threads while others add to them.
//!
//! A trie by two bits of the token's hash at a time; a node is published once, by one atomic store, and never
//! changes.  Invariant: an edge that was added is found by whoever looks later.  Complexity: log4 of the edges.
//! Rejected: a map behind a lock (a reader waits for a writer that the system has put to sleep); a map for all states
//! of an automaton (it grows by copying, in the middle of a call).

use std::sync::{Arc, Weak};

use once_cell::race::OnceBox;

use crate::vocab::TokenId;

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
    /// Weak: states hold those before them, never those after.
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
    /// Where a token leads, as far as that was met and is still held.
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
