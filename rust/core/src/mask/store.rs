//! Where lexical masks are kept: one table for the process, bounded in bytes; the host sizes and empties it.
//!
//! The key is the vocabulary, the node of its trie and the *content* of the lexical state, so that "inside a
//! JSON string" is computed once for ten thousand schemas although each automaton numbers its own states.
//! An arena shared by all automata was rejected: its lock would be one for all, and it could never be freed.
//! Entries are reference counted; what is evicted lives on while an automaton holds it.
//! Memory: the bound that `set_limits(shared=)` names.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashMap;

use super::lexmask::LexMask;
use crate::lexical::content::Content;
use crate::process::{PerProcess, Process};

/// Bytes that an entry takes beside its mask.
const ENTRY: usize = 64;

/// Vocabulary, node, and the state's content.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    pub vocabulary: u64,
    pub node: u32,
    pub content: Content,
}

struct Entry {
    mask: Arc<LexMask>,
    used: AtomicU64,
}

/// The table; see [`figures`], [`set_limit`], [`clear`].
pub struct Store {
    table: RwLock<FxHashMap<Key, Entry>>,
    bytes: AtomicUsize,
    clock: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// What the table holds and how often it served.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub entries: usize,
    pub bytes: usize,
    pub hits: u64,
    pub misses: u64,
}

/// Bytes of masks that a process keeps unless told otherwise: enough for some ten thousand lexical states.
pub const BYTES: usize = 32 << 20;

pub(super) static STORE: PerProcess<Store> = PerProcess::new();
static LIMIT: AtomicUsize = AtomicUsize::new(BYTES);

/// What the process's table holds and how often it served.
pub fn figures() -> Figures {
    STORE.current().figures()
}

/// The bytes that the process's table may hold.
pub fn limit() -> usize {
    LIMIT.load(Ordering::Relaxed)
}

/// Sets them, at once.
pub fn set_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
    let store = STORE.current();
    while store.bytes.load(Ordering::Relaxed) > bytes {
        store.evict();
    }
}

/// Empties the process's table.
pub fn clear() {
    let store = STORE.current();
    let old = std::mem::take(&mut *store.table.write().unwrap_or_else(PoisonError::into_inner));
    store.bytes.store(0, Ordering::Relaxed);
    drop(old);
}

impl Default for Store {
    fn default() -> Self {
        Store {
            table: RwLock::default(),
            bytes: AtomicUsize::new(0),
            clock: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }
}

impl Store {
    pub fn get(&self, key: &Key) -> Option<Arc<LexMask>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        match table.get(key) {
            Some(entry) => {
                self.hits.fetch_add(1, Ordering::Relaxed);
                entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
                Some(entry.mask.clone())
            }
            None => {
                self.misses.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    pub fn put(&self, key: Key, mask: Arc<LexMask>) {
        let size = mask.bytes() + ENTRY;
        if self.bytes.fetch_add(size, Ordering::Relaxed) + size > limit() {
            self.evict();
        }
        let used = AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed));
        self.table.write().unwrap_or_else(PoisonError::into_inner).insert(key, Entry { mask, used });
    }

    /// Drops the half that was not used for longest: linear, and rare. A mask from which an automaton tells others is
    /// used with each of them, without being asked for here.
    fn evict(&self) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let mut ages: Vec<u64> = table.values().map(|e| e.used.load(Ordering::Relaxed)).collect();
        if ages.is_empty() {
            return self.bytes.store(0, Ordering::Relaxed);
        }
        let middle = ages.len() / 2;
        let (_, &mut median, _) = ages.select_nth_unstable(middle);
        let is_base = |e: &Entry| e.mask.lengths.get().is_some() && Arc::strong_count(&e.mask) > 1;
        let old = table.extract_if(|_, e| e.used.load(Ordering::Relaxed) <= median && !is_base(e));
        let gone: Vec<(Key, Entry)> = old.collect();
        let left = table.values().map(|e| e.mask.bytes() + ENTRY).sum();
        self.bytes.store(left, Ordering::Relaxed);
        drop(table);
        // giving megabytes back takes milliseconds, which no mask should wait for
        Process::current().drop_later(Box::new(gone));
    }

    pub fn figures(&self) -> Figures {
        Figures {
            entries: self.table.read().unwrap_or_else(PoisonError::into_inner).len(),
            bytes: self.bytes.load(Ordering::Relaxed),
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }
}
