//! What was compiled before: the same source, vocabulary and limits cost a hash and a look.
//!
//! A key is a source as bytes, whole, so that no two sources are ever taken for one. Under it: what reading it
//! reported, and its automata. The table bounds what it keeps by itself, texts and fixed parts; what automata build is
//! bounded with that of all others (see [`crate::mask::reclaim`]) and made again when it is asked for.
//! Invariant: an automaton of the table allows what a fresh one allows; what was refused or cut short is never kept.
//! Complexity: a look is one hash of the source; past the bound the half that was not asked for longest goes.
//! Rejected: keys that are hashes alone (an attacker who finds a collision is served another's constraint); entries
//! that live as long as somebody uses them (a server compiles the same schema for one request after the other).

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::limits::Limits;
use crate::mask::TokenAutomaton;
use crate::process::Process;

/// A source as bytes: equal for equal sources alone.
pub type Key = Arc<[u8]>;

/// Bytes that a process keeps unless told otherwise: some five thousand schemas.
pub const BYTES: usize = 16 << 20;
/// Bytes of an entry and of an automaton beside the text that each of them holds.
const FIXED: usize = 512;

static LIMIT: AtomicUsize = AtomicUsize::new(BYTES);

/// The table of a process; its hash has a key of its own, which no caller knows.
#[derive(Default)]
pub(crate) struct Cache {
    table: RwLock<HashMap<Key, Entry, RandomState>>,
    bytes: AtomicUsize,
    clock: AtomicU64,
}

struct Entry {
    report: Arc<[String]>,
    automata: Vec<Arc<TokenAutomaton>>,
    used: AtomicU64,
}

impl Entry {
    fn bytes(&self, key: &Key) -> usize {
        (key.len() + FIXED) * (1 + self.automata.len())
    }
}

/// Whether whoever looks may wait for a thread that writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    Wait,
    /// Nothing is found rather than waited for.
    None,
}

type Table = HashMap<Key, Entry, RandomState>;

impl Cache {
    fn read(&self, patience: Patience) -> Option<RwLockReadGuard<'_, Table>> {
        match patience {
            Patience::Wait => Some(self.table.read().unwrap_or_else(PoisonError::into_inner)),
            Patience::None => self.table.try_read().ok(),
        }
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn look<T>(&self, key: &[u8], patience: Patience, take: impl FnOnce(&Entry) -> Option<T>) -> Option<T> {
        let table = self.read(patience)?;
        let entry = table.get(key)?;
        entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        take(entry)
    }

    /// Changes the entry of a key, which is made where there is none, and keeps within the bound.
    fn change<T>(&self, key: &Key, change: impl FnOnce(&mut Entry) -> T) -> T {
        let mut table = self.write();
        let used = self.clock.fetch_add(1, Ordering::Relaxed);
        let fresh = || Entry { report: Arc::new([]), automata: Vec::new(), used: AtomicU64::new(used) };
        let known = table.get(key).map_or(0, |entry| entry.bytes(key));
        let entry = table.entry(key.clone()).or_insert_with(fresh);
        let answer = change(entry);
        let added = entry.bytes(key) - known;
        let gone = match self.bytes.fetch_add(added, Ordering::Relaxed) + added > limit() {
            true => self.older_half(&mut table),
            false => Vec::new(),
        };
        drop(table);
        drop_later(gone);
        answer
    }

    /// Takes out the half that was not asked for longest: linear, and rare.
    fn older_half(&self, table: &mut Table) -> Vec<(Key, Entry)> {
        let mut ages: Vec<u64> = table.values().map(|e| e.used.load(Ordering::Relaxed)).collect();
        if ages.is_empty() {
            return Vec::new();
        }
        let middle = (ages.len() - 1) / 2;
        let (_, &mut median, _) = ages.select_nth_unstable(middle);
        let gone = table.extract_if(|_, e| e.used.load(Ordering::Relaxed) <= median).collect();
        self.recount(table);
        gone
    }

    fn recount(&self, table: &Table) {
        self.bytes.store(table.iter().map(|(key, entry)| entry.bytes(key)).sum(), Ordering::Relaxed);
    }
}

/// What falls out of the table may hold megabytes, whose return no call should wait for.
fn drop_later(gone: Vec<(Key, Entry)>) {
    if !gone.is_empty() {
        Process::current().drop_later(Box::new(gone));
    }
}

/// What reading a source reported, where that was read before.
pub fn report(key: &[u8], patience: Patience) -> Option<Arc<[String]>> {
    Process::current().cache.look(key, patience, |entry| Some(entry.report.clone()))
}

/// A source was read.
pub fn add_report(key: &Key, report: &Arc<[String]>) {
    if key.len() + FIXED <= limit() {
        Process::current().cache.change(key, |entry| entry.report = report.clone());
    }
}

/// The automaton of a source over a vocabulary, which is named by its key.
pub fn automaton(
    key: &[u8],
    vocabulary: u64,
    limits: &Limits,
    patience: Patience,
) -> Option<Arc<TokenAutomaton>> {
    let fits = |a: &&Arc<TokenAutomaton>| a.vocabulary().key() == vocabulary && a.limits() == limits;
    Process::current().cache.look(key, patience, |entry| entry.automata.iter().find(fits).cloned())
}

/// Keeps an automaton of a source that was read; the one that stays is returned, where another thread was first.
pub fn add_automaton(key: &Key, automaton: Arc<TokenAutomaton>) -> Arc<TokenAutomaton> {
    let process = Process::current();
    if process.cache.look(key, Patience::Wait, |_| Some(())).is_none() {
        return automaton;
    }
    process.cache.change(key, |entry| {
        let (vocabulary, limits) = (automaton.vocabulary().key(), automaton.limits());
        let same = |a: &&Arc<TokenAutomaton>| a.vocabulary().key() == vocabulary && a.limits() == limits;
        if let Some(first) = entry.automata.iter().find(same) {
            return first.clone();
        }
        entry.automata.push(automaton.clone());
        automaton
    })
}

/// A vocabulary is gone: its automata are let go.
pub fn forget(vocabulary: u64) {
    let process = Process::current();
    let mut table = process.cache.write();
    let of_it = |a: &mut Arc<TokenAutomaton>| a.vocabulary().key() == vocabulary;
    let gone: Vec<_> = table.values_mut().flat_map(|entry| entry.automata.extract_if(.., of_it)).collect();
    if !gone.is_empty() {
        process.cache.recount(&table);
        drop(table);
        process.drop_later(Box::new(gone));
    }
}

/// Empties the table.
pub fn clear() {
    let process = Process::current();
    let mut table = process.cache.write();
    let gone = table.drain().collect();
    process.cache.bytes.store(0, Ordering::Relaxed);
    drop(table);
    drop_later(gone);
}

/// Bytes that the table holds.
pub fn held() -> usize {
    Process::current().cache.bytes.load(Ordering::Relaxed)
}

/// The bound on [`held`].
pub fn limit() -> usize {
    LIMIT.load(Ordering::Relaxed)
}

/// Sets the bound, at once; 0: nothing is kept.
pub fn set_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
    let process = Process::current();
    while held() > bytes {
        let gone = process.cache.older_half(&mut process.cache.write());
        drop_later(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, since the table is the process's: what is kept, for whom, and what goes first.
    #[test]
    fn the_table_keeps_what_was_asked_for_last() {
        let key = |text: &str| -> Key { Arc::from(format!("{text:1000}").into_bytes()) };
        let report: Arc<[String]> = Arc::from(["said".to_string()]);
        add_report(&key("a"), &report);
        add_report(&key("b"), &report);
        assert_eq!(super::report(&key("a"), Patience::Wait), Some(report.clone()));
        assert_eq!(super::report(&key("c"), Patience::Wait), None);
        assert_eq!(held(), 2 * (1000 + FIXED));
        let before = limit();
        set_limit(4 * (1000 + FIXED));
        for name in ["c", "d", "e"] {
            add_report(&key(name), &report);
            assert!(super::report(&key("a"), Patience::Wait).is_some(), "asked for last");
        }
        assert!(held() <= limit());
        assert_eq!(super::report(&key("b"), Patience::Wait), None);
        set_limit(0);
        assert_eq!(held(), 0);
        add_report(&key("a"), &report);
        assert_eq!((held(), super::report(&key("a"), Patience::Wait)), (0, None));
        set_limit(before);
        add_report(&key("a"), &report);
        clear();
        assert_eq!(held(), 0);
    }
}
