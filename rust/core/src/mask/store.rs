//! The cache of lexical masks: one table per process, in parts, bounded in bytes; the host sets its size and clears it.
//!
//! The key is the vocabulary, the node of its trie and the *content* of the lexical state, so that "inside a
//! JSON string" is computed once for ten thousand schemas although each automaton numbers its own states.
//! Rejected: an arena shared by all automata (one lock for all, and it could never be freed).
//! Entries are reference counted; an evicted entry lives on while an automaton holds it.
//! Masks that were never requested a second time take at most half of the bound: texts with states of their
//! own (new keys, new numbers) neither fill the table to its bound nor evict what many schemas share.
//! Memory: the bound that `set_limits(shared=)` names.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::lexmask::LexMask;
use super::within::SubtreeReading;
use crate::lexical::content::Content;
use crate::lexical::{Lexicon, Spelling, Terms};
use crate::lists;
use crate::process::{PerProcess, Process};
use crate::vocab::{Trie, Vocabulary};

/// Bytes that an entry takes beside its mask.
const ENTRY: usize = 64;

/// Vocabulary, node, and the state's content.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub vocabulary: u64,
    pub node: u32,
    pub content: Content,
}

struct Entry {
    mask: Arc<LexMask>,
    /// Bytes that it is counted as.
    size: usize,
    used: AtomicU64,
    /// Whether it was requested since it was put here.
    served: AtomicBool,
}

type EntryTable = FxHashMap<Key, Entry>;

/// Parts of the table, each behind a lock of its own: what is dropped at once, and what a part moves as it grows, is
/// then small enough that no mask waits for it.
const PARTS: usize = 64;

/// The table; see [`figures`], [`set_limit`], [`clear`].
pub(crate) struct Store {
    parts: [RwLock<EntryTable>; PARTS],
    /// The part that evicts next.
    turn: AtomicUsize,
    /// Bytes of all entries, and of those that were not requested again: changed under their part's lock.
    bytes: AtomicUsize,
    unserved: AtomicUsize,
    clock: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// What the table holds and how often it served.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Masks.
    pub entries: usize,
    /// Bytes that they take.
    pub bytes: usize,
    /// How often one was found ...
    pub hits: u64,
    /// ... and how often none was.
    pub misses: u64,
}

/// The default bound on bytes: enough for some ten thousand lexical states.
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

/// Sets the limit, at once.
pub fn set_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
    let store = STORE.current();
    while store.bytes.load(Ordering::Relaxed) > bytes {
        (0..PARTS).for_each(|_| store.evict(|_| true));
    }
}

/// Empties the process's table.
pub fn clear() {
    let store = STORE.current();
    let old: Vec<EntryTable> = store
        .parts
        .iter()
        .map(|part| {
            let mut table = part.write().unwrap_or_else(PoisonError::into_inner);
            let old = std::mem::take(&mut *table);
            old.values().for_each(|entry| store.discount(entry));
            old
        })
        .collect();
    drop(old);
}

/// Nodes from which on a vocabulary's free string is prepared.
const PREPARED: usize = 4096;

/// Makes the mask of the free string for a vocabulary, so that no schema pays for what nearly all need. In
/// small vocabularies a walk is as fast as a look-up.
pub fn prepare(vocab: &Vocabulary) {
    if vocab.trie().len() < PREPARED {
        return;
    }
    crate::regex::format::prepare();
    vocab.add_texts_below(Trie::ROOT, &mut Vec::new());
    for spelling in [Spelling::JsonNatural, Spelling::Json, Spelling::JsonAny] {
        let mut lexicon = Lexicon::default();
        let free = lexicon.at(spelling, Terms::ALL);
        let content = lexicon.content(free, vocab.longest_in_trie() as u32);
        let at = SubtreeReading { lexicon: &mut lexicon, vocab, node: Trie::ROOT, lex: free };
        let mask = LexMask::by_chars(at, None);
        let (Some(content), Some(mask)) = (content, mask) else { continue };
        mask.lengths(vocab, &mut lexicon, free);
        if spelling == Spelling::JsonNatural {
            mask.plain(vocab, spelling);
        }
        let key = Key { vocabulary: vocab.key(), node: Trie::ROOT.0, content };
        STORE.current().put(key, Arc::new(mask));
    }
}

impl Default for Store {
    fn default() -> Self {
        Store {
            parts: std::array::from_fn(|_| RwLock::default()),
            turn: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            unserved: AtomicUsize::new(0),
            clock: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }
}

impl Store {
    /// The part of a key. The table inside uses the lowest bits of the same hash for places, and the highest
    /// ones to distinguish entries.
    fn part(&self, key: &Key) -> &RwLock<EntryTable> {
        let hash = FxBuildHasher.hash_one(key);
        &self.parts[(hash >> 40) as usize % PARTS]
    }

    pub fn get(&self, key: &Key) -> Option<Arc<LexMask>> {
        let table = self.part(key).read().unwrap_or_else(PoisonError::into_inner);
        match table.get(key) {
            Some(entry) => {
                self.hits.fetch_add(1, Ordering::Relaxed);
                entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
                if !entry.is_served() && !entry.served.swap(true, Ordering::Relaxed) {
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
        let mut table = self.part(&key).write().unwrap_or_else(PoisonError::into_inner);
        table.entry(key).or_insert_with(|| {
            self.bytes.fetch_add(size, Ordering::Relaxed);
            self.unserved.fetch_add(size, Ordering::Relaxed);
            Entry { mask, size, used, served: AtomicBool::new(false) }
        });
        drop(table); // no thread locks two parts
        let mut turns = 0..PARTS;
        while self.bytes.load(Ordering::Relaxed) > limit() && turns.next().is_some() {
            self.evict(|_| true);
        }
        while self.unserved.load(Ordering::Relaxed) > limit() / 2 && turns.next().is_some() {
            self.evict(|entry| !entry.is_served());
        }
    }

    /// Evicts, of the next part's entries that `may_go`, the least recently used half.
    fn evict(&self, may_go: impl Fn(&Entry) -> bool) {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % PARTS;
        let mut table = self.parts[turn].write().unwrap_or_else(PoisonError::into_inner);
        let ages = table.values().filter(|e| may_go(e)).map(|e| e.used.load(Ordering::Relaxed)).collect();
        let Some(median) = lists::median(ages) else { return };
        table.values().for_each(|entry| self.discount(entry));
        // the masks alone: the rest of an entry would be moved for nothing
        let old = table.extract_if(|_, e| may_go(e) && e.used.load(Ordering::Relaxed) <= median);
        let gone: Vec<Arc<LexMask>> = old.map(|(_, entry)| entry.mask).collect();
        for entry in table.values_mut() {
            entry.size = entry.mask.bytes() + ENTRY; // evicted masks shared parts with it: its share grew
            self.bytes.fetch_add(entry.size, Ordering::Relaxed);
            self.unserved.fetch_add(if entry.is_served() { 0 } else { entry.size }, Ordering::Relaxed);
        }
        drop(table);
        // giving it back takes longer than finding it, and no mask should wait for that
        Process::current().drop_later(Box::new(gone));
    }

    /// Subtracts an entry from the counts; its part is locked for writing.
    fn discount(&self, entry: &Entry) {
        self.bytes.fetch_sub(entry.size, Ordering::Relaxed);
        self.unserved.fetch_sub(if entry.is_served() { 0 } else { entry.size }, Ordering::Relaxed);
    }

    pub fn figures(&self) -> Figures {
        let entries = |part: &RwLock<EntryTable>| part.read().unwrap_or_else(PoisonError::into_inner).len();
        Figures {
            entries: self.parts.iter().map(entries).sum(),
            bytes: self.bytes.load(Ordering::Relaxed),
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }
}

impl Entry {
    fn is_served(&self) -> bool {
        self.served.load(Ordering::Relaxed)
    }
}
