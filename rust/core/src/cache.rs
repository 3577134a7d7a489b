//! The cache of compiled grammars: the same source, vocabulary and limits cost a hash and a lookup.
//!
//! A key is a whole source, so that no two sources are ever taken for one.  An entry holds what reading the source reported
//! and cost, and its automata.  A source that another reader made (of a grammar in Lark's language) is also found by that
//! text, its name, without that reader.  The table bounds what it keeps itself, texts and fixed parts; what automata build
//! is bounded with that of all others ([`crate::mask::reclaim`]) and made again on demand.
//! Invariant: an automaton of the table allows what a fresh one allows; what was refused or cut short is never kept.
//! Complexity: a lookup is one hash of the source; past the bound the least recently used half goes.
//! Rejected: keys that are hashes alone (an attacker who finds a collision is served another's constraint); entries
//! that live as long as somebody uses them (a server compiles the same schema for one request after the other).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::hash::KeyedMap;
use crate::limits::Limits;
use crate::lists;
use crate::mask::TokenAutomaton;
use crate::process::{PerProcess, Process};
use crate::source::Source;

/// The default bound on bytes per process: some ten thousand schemas.
pub const BYTES: usize = 16 << 20;
/// Bytes of an entry, and of an automaton, beside the texts of the source.
const FIXED: usize = 512;

static CACHE: PerProcess<Cache> = PerProcess::new();
static LIMIT: AtomicUsize = AtomicUsize::new(BYTES);

/// The hashes have keys of their own, which no caller knows.
#[derive(Default)]
struct CacheTables {
    entries: KeyedMap<Arc<Source>, Entry>,
    names: Names,
}

/// Each is a name of one entry, and gone with it.
type Names = KeyedMap<Arc<str>, Arc<Source>>;

impl CacheTables {
    fn bytes(&self) -> usize {
        self.entries.iter().map(|(source, entry)| entry.bytes(source)).sum()
    }

    /// Takes out what the question says yes to.
    fn take(&mut self, gone: impl FnMut(&Arc<Source>, &mut Entry) -> bool) -> Vec<(Arc<Source>, Entry)> {
        let taken: Vec<_> = self.entries.extract_if(gone).collect();
        for name in taken.iter().flat_map(|(_, entry)| &entry.names) {
            self.names.remove(name);
        }
        taken
    }
}

/// The table of a process.
#[derive(Default)]
pub(crate) struct Cache {
    table: RwLock<CacheTables>,
    bytes: AtomicUsize,
    clock: AtomicU64,
}

/// What reading a source gave beside its automata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// What was ignored, loosened or not proven.
    pub report: Arc<[String]>,
    /// Steps of work that it took.
    pub work: u64,
}

#[derive(Default)]
struct Entry {
    reading: Reading,
    automata: Vec<Arc<TokenAutomaton>>,
    names: Vec<Arc<str>>,
    used: AtomicU64,
}

impl Entry {
    fn bytes(&self, source: &Source) -> usize {
        let names: usize = self.names.iter().map(|name| name.len() + FIXED).sum();
        source.bytes() + FIXED * (1 + self.automata.len()) + names
    }
}

/// Whether a lookup may wait for a thread that writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Until the thread is done.
    Wait,
    /// Nothing is found rather than waited for.
    None,
}

impl Cache {
    fn read(&self, patience: Patience) -> Option<RwLockReadGuard<'_, CacheTables>> {
        match patience {
            Patience::Wait => Some(self.table.read().unwrap_or_else(PoisonError::into_inner)),
            Patience::None => self.table.try_read().ok(),
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, CacheTables> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn look<T>(
        &self,
        source: &Source,
        patience: Patience,
        take: impl FnOnce(&Arc<Source>, &Entry) -> Option<T>,
    ) -> Option<T> {
        if source.bytes() + FIXED > limit() {
            return None; // it was never kept, and its hash would take long
        }
        let table = self.read(patience)?;
        let (source, entry) = table.entries.get_key_value(source)?;
        entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        take(source, entry)
    }

    /// Changes the entry of a source, which is made where there is none, and keeps within the bound.
    fn change<T>(&self, source: &Arc<Source>, change: impl FnOnce(&mut Entry, &mut Names) -> T) -> T {
        let mut locked = self.write();
        let table = &mut *locked;
        let used = self.clock.fetch_add(1, Ordering::Relaxed);
        let known = table.entries.get(source).map_or(0, |entry| entry.bytes(source));
        let fresh = || Entry { used: AtomicU64::new(used), ..Entry::default() };
        let entry = table.entries.entry(source.clone()).or_insert_with(fresh);
        let answer = change(entry, &mut table.names);
        let added = entry.bytes(source) - known;
        let gone = match self.bytes.fetch_add(added, Ordering::Relaxed) + added > limit() {
            true => self.older_half(table),
            false => Vec::new(),
        };
        drop(locked);
        drop_later(gone);
        answer
    }

    /// Takes out the half that was not asked for longest: linear, and rare.
    fn older_half(&self, table: &mut CacheTables) -> Vec<(Arc<Source>, Entry)> {
        let ages = table.entries.values().map(|e| e.used.load(Ordering::Relaxed)).collect();
        let Some(median) = lists::median(ages) else { return Vec::new() };
        let gone = table.take(|_, e| e.used.load(Ordering::Relaxed) <= median);
        self.recount(table);
        gone
    }

    fn recount(&self, table: &CacheTables) {
        self.bytes.store(table.bytes(), Ordering::Relaxed);
    }
}

/// What falls out of the table may hold megabytes, whose return no call should wait for.
fn drop_later(gone: Vec<(Arc<Source>, Entry)>) {
    if !gone.is_empty() {
        Process::current().drop_later(Box::new(gone));
    }
}

/// A source that was read before, and what reading it gave.
pub(crate) fn read(source: &Source, patience: Patience) -> Option<(Arc<Source>, Reading)> {
    let both = |source: &Arc<Source>, entry: &Entry| Some((source.clone(), entry.reading.clone()));
    CACHE.current().look(source, patience, both)
}

/// A source was read.
pub(crate) fn add_reading(source: &Arc<Source>, reading: &Reading) {
    if source.bytes() + FIXED <= limit() {
        CACHE.current().change(source, |entry, _| entry.reading = reading.clone());
    }
}

/// The source that another reader made of a text, which is its name.
pub(crate) fn named(name: &str, patience: Patience) -> Option<(Arc<Source>, Reading)> {
    let source = CACHE.current().read(patience)?.names.get(name)?.clone();
    read(&source, patience)
}

/// What a source was made of; nothing happens where the source is not remembered.
pub(crate) fn add_name(source: &Arc<Source>, name: &str) {
    let cache = CACHE.current();
    let fits = source.bytes() + name.len() + 2 * FIXED <= limit();
    if fits && cache.look(source, Patience::Wait, |_, _| Some(())).is_some() {
        cache.change(source, |entry, names| {
            if !names.contains_key(name) {
                let name: Arc<str> = name.into();
                entry.names.push(name.clone());
                names.insert(name, source.clone());
            }
        });
    }
}

fn find(entry: &Entry, vocabulary: u64, limits: &Limits) -> Option<Arc<TokenAutomaton>> {
    let fits = |a: &&Arc<TokenAutomaton>| a.vocabulary().key() == vocabulary && a.limits() == limits;
    entry.automata.iter().find(fits).cloned()
}

/// The automaton of a source over a vocabulary, which is named by its key.
pub(crate) fn automaton(
    source: &Source,
    vocabulary: u64,
    limits: &Limits,
    patience: Patience,
) -> Option<Arc<TokenAutomaton>> {
    CACHE.current().look(source, patience, |_, entry| find(entry, vocabulary, limits))
}

/// Keeps an automaton of a source that was read; the one that stays is returned, where another thread was first.
pub(crate) fn add_automaton(source: &Arc<Source>, automaton: Arc<TokenAutomaton>) -> Arc<TokenAutomaton> {
    let cache = CACHE.current();
    if cache.look(source, Patience::Wait, |_, _| Some(())).is_none() {
        return automaton;
    }
    cache.change(source, |entry, _| {
        find(entry, automaton.vocabulary().key(), automaton.limits()).unwrap_or_else(|| {
            entry.automata.push(automaton.clone());
            automaton
        })
    })
}

/// A vocabulary is gone: its automata are let go.
pub fn forget(vocabulary: u64) {
    let cache = CACHE.current();
    let mut table = cache.write();
    let of_it = |a: &mut Arc<TokenAutomaton>| a.vocabulary().key() == vocabulary;
    let gone: Vec<_> =
        table.entries.values_mut().flat_map(|entry| entry.automata.extract_if(.., of_it)).collect();
    if !gone.is_empty() {
        cache.recount(&table);
        drop(table);
        Process::current().drop_later(Box::new(gone));
    }
}

/// Empties the table.
pub fn clear() {
    let cache = CACHE.current();
    let mut table = cache.write();
    let gone = table.take(|_, _| true);
    cache.recount(&table);
    drop(table);
    drop_later(gone);
}

/// Bytes that the table holds.
pub fn held() -> usize {
    CACHE.current().bytes.load(Ordering::Relaxed)
}

/// The bound on [`held`].
pub fn limit() -> usize {
    LIMIT.load(Ordering::Relaxed)
}

/// Sets the bound, at once; 0: nothing is kept.
pub fn set_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
    let cache = CACHE.current();
    while held() > bytes {
        let gone = cache.older_half(&mut cache.write());
        drop_later(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, since the table is the process's: what is kept, for whom, and what goes first.
    #[test]
    fn the_table_keeps_what_was_asked_for_last() {
        let source = |text: &str| Arc::new(Source::Choice(vec![format!("{text:1000}")]));
        let known = |text: &str| read(&source(text), Patience::Wait).map(|(_, reading)| reading);
        let reading = Reading { report: Arc::from(["said".to_string()]), work: 7 };
        let one = source("a").bytes() + FIXED;
        let before = limit();
        clear();
        add_reading(&source("a"), &reading);
        add_reading(&source("b"), &reading);
        assert_eq!((known("a"), known("c")), (Some(reading.clone()), None));
        assert_eq!(held(), 2 * one);
        set_limit(4 * one);
        for name in ["c", "d", "e"] {
            add_reading(&source(name), &reading);
            assert!(known("a").is_some(), "asked for last");
        }
        assert!(held() <= limit());
        assert_eq!(known("b"), None);
        set_limit(0);
        add_reading(&source("a"), &reading);
        assert_eq!((held(), known("a")), (0, None));
        set_limit(before);
        add_reading(&source("a"), &reading);
        let found = |name: &str| named(name, Patience::Wait).map(|(source, _)| source);
        add_name(&source("a"), "a's text");
        add_name(&source("a"), "a's text");
        add_name(&source("b"), "forgotten");
        assert_eq!((found("a's text"), found("forgotten")), (Some(source("a")), None));
        assert_eq!(held(), one + FIXED + "a's text".len());
        clear();
        assert_eq!((held(), found("a's text")), (0, None));
    }
}
