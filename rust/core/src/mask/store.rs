//! Where lexical masks are kept: one table for the process, bounded in bytes; the host sizes and empties it.
//!
//! The key is the vocabulary, the node of its trie and the *content* of the lexical state, so that "inside a
//! JSON string" is computed once for ten thousand schemas although each automaton numbers its own states.
//! An arena shared by all automata was rejected: its lock would be one for all, and it could never be freed.
//! Entries are reference counted; what is evicted lives on while an automaton holds it.
//! Masks that nobody has asked for again take half of the bound at most: texts that go through states of their own
//! (new keys, new numbers) neither fill the table to its bound nor drive out what many schemas share.
//! Memory: the bound that `set_limits(shared=)` names.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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
    /// Bytes that it is counted as.
    size: usize,
    used: AtomicU64,
    /// Whether it was asked for since it was put here.
    served: AtomicBool,
}

type Table = FxHashMap<Key, Entry>;

/// The table; see [`figures`], [`set_limit`], [`clear`].
pub struct Store {
    table: RwLock<Table>,
    /// Of all entries, and of those that were not asked for again: changed with the table's lock held.
    bytes: AtomicUsize,
    unserved: AtomicUsize,
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
    let mut table = store.table.write().unwrap_or_else(PoisonError::into_inner);
    while store.bytes.load(Ordering::Relaxed) > bytes {
        store.evict(&mut table, |_| true);
    }
}

/// Empties the process's table.
pub fn clear() {
    let store = STORE.current();
    let mut table = store.table.write().unwrap_or_else(PoisonError::into_inner);
    let old = std::mem::take(&mut *table);
    store.count(&table);
    drop(table);
    drop(old);
}

impl Default for Store {
    fn default() -> Self {
        Store {
            table: RwLock::default(),
            bytes: AtomicUsize::new(0),
            unserved: AtomicUsize::new(0),
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
                if !entry.served.load(Ordering::Relaxed) && !entry.served.swap(true, Ordering::Relaxed) {
                    self.unserved.fetch_sub(entry.size, Ordering::Relaxed);
                }
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
        let used = AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed));
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.entry(key).or_insert_with(|| {
            self.bytes.fetch_add(size, Ordering::Relaxed);
            self.unserved.fetch_add(size, Ordering::Relaxed);
            Entry { mask, size, used, served: AtomicBool::new(false) }
        });
        if self.bytes.load(Ordering::Relaxed) > limit() {
            self.evict(&mut table, |_| true);
        } else if self.unserved.load(Ordering::Relaxed) > limit() / 2 {
            self.evict(&mut table, |entry| !entry.served.load(Ordering::Relaxed));
        }
    }

    /// Drops, of those that `may_go`, the half that was not used for longest: linear, and rare.
    fn evict(&self, table: &mut Table, may_go: impl Fn(&Entry) -> bool) {
        let mut ages: Vec<u64> =
            table.values().filter(|e| may_go(e)).map(|e| e.used.load(Ordering::Relaxed)).collect();
        if !ages.is_empty() {
            let middle = ages.len() / 2;
            let (_, &mut median, _) = ages.select_nth_unstable(middle);
            // the masks alone: what else an entry is would be moved for nothing
            let mut gone: Vec<Arc<LexMask>> = Vec::with_capacity(middle + 1);
            let old = table.extract_if(|_, e| may_go(e) && e.used.load(Ordering::Relaxed) <= median);
            gone.extend(old.map(|(_, entry)| entry.mask));
            // giving megabytes back takes milliseconds, which no mask should wait for
            Process::current().drop_later(Box::new(gone));
        }
        for entry in table.values_mut() {
            entry.size = entry.mask.bytes() + ENTRY; // what it shared with those that went is its own now
        }
        self.count(table);
    }

    fn count(&self, table: &Table) {
        let (mut bytes, mut unserved) = (0, 0);
        for entry in table.values() {
            bytes += entry.size;
            unserved += if entry.served.load(Ordering::Relaxed) { 0 } else { entry.size };
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        self.unserved.store(unserved, Ordering::Relaxed);
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
