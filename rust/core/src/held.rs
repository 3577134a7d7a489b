//! How many bytes tables hold: what the limits on memory are counted in.
//!
//! Counted from capacities and sizes, so the same on every machine of one word size; what the allocator adds to each
//! block is taken as [`BLOCK`].
//! What is too much, `mask::epoch` (an automaton) and `mask::reclaim` (the process) decide.
//! Complexity: constant a table; of contents in boxes only those that are new since the last count are looked at.

use std::collections::HashMap;
use std::mem::size_of;

use indexmap::{IndexMap, IndexSet};

/// Bytes that a block of its own costs beside its contents.
pub const BLOCK: usize = 16;

/// An index beside each entry, with its hash.
const INDEX: usize = 16;

pub fn set<T, S>(set: &IndexSet<T, S>) -> usize {
    set.capacity() * (size_of::<T>() + INDEX)
}

pub fn index_map<K, V, S>(map: &IndexMap<K, V, S>) -> usize {
    map.capacity() * (size_of::<(K, V)>() + INDEX)
}

pub fn map<K, V, S>(map: &HashMap<K, V, S>) -> usize {
    map.capacity() * (size_of::<(K, V)>() + 1) / 7 * 8
}

pub fn list<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}

/// A boxed slice's own bytes.
pub fn slice<T>(slice: &[T]) -> usize {
    BLOCK + std::mem::size_of_val(slice)
}

/// Contents in boxes of a table that only grows, counted as far as they were seen.
#[derive(Default)]
pub struct Boxed {
    seen: usize,
    bytes: usize,
}

impl Boxed {
    /// Bytes of the contents; `bytes` says those of one entry. Entries change no more once they are there.
    pub fn count<T, S>(&mut self, set: &IndexSet<T, S>, bytes: impl Fn(&T) -> usize) -> usize {
        self.bytes += (self.seen..set.len()).map(|i| bytes(&set[i])).sum::<usize>();
        self.seen = set.len();
        self.bytes
    }
}
