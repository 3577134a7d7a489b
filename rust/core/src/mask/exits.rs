//! Exits: where the tokens below a node leave the lexeme.  Only from there on does the structure layer matter.

use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use super::suffixes::SuffixList;
use crate::heap_size;
use crate::lexical::spell::ByteSet;
use crate::vocab::{NodeId, Trie, Vocabulary};

/// A node at which the lexeme may end.
#[derive(Clone)]
pub struct Exit {
    pub node: NodeId,
    /// Code points of the lexeme between the start of the walk and its end.
    pub length: u32,
    /// There is an escape among them.
    pub escaped: bool,
    /// The languages that accept there.
    pub outcome: Box<[u32]>,
    /// The closing byte was read: the structure goes on below `node`.
    pub closed: bool,
    /// Otherwise: the children of `node` that the lexeme can't read, which the structure reads.
    pub beyond: Box<[(u8, NodeId)]>,
    /// The exit is part of a `TokenGroup`.
    pub grouped: bool,
}

impl Exit {
    pub(super) fn bytes(&self) -> usize {
        80 + self.outcome.len() * 4 + self.beyond.len() * 8
    }

    /// Bytes of the lexeme between the start of the walk and its end (the closing quote not included).
    pub fn path(&self, trie: &Trie, top: NodeId) -> Vec<u8> {
        let mut bytes = trie.path(top, self.node);
        bytes.truncate(bytes.len() - self.closed as usize);
        bytes
    }
}

/// A set of exits; states that differ in few of them share it.
pub struct Exits {
    pub list: Vec<Exit>,
    /// Exits with one outcome and a closing byte: the tokens' remainders, merged into one trie.
    pub remainders: Option<SuffixTrie>,
    /// Exits without a closing byte, by their outcome: what follows the lexeme in the tokens, merged.
    pub groups: Vec<SuffixTrie>,
    onward: Vec<OpenExit>,
    /// Identifies the set in memo tables.
    pub id: u64,
}

/// An exit with a closing byte after which tokens go on.
struct OpenExit {
    /// Its place in the list.
    at: u32,
    /// The bytes after it.
    next: ByteSet,
    /// Bytes from the root of the trie up to the closing one: to climb there again is a walk through memory.
    path: Box<[u8]>,
}

/// A trie of what follows the lexeme (its closing byte, where it has one) in the tokens that contain its end.
pub struct SuffixTrie {
    pub trie: Trie,
    pub outcome: Box<[u32]>,
}

/// Exits from which on a group is merged, nodes of the trie that a merged group may have, and nodes below an
/// exit that stays out of it: half of a vocabulary follows a space, and would prevent a merge of the many
/// exits after line breaks.
const GROUP: usize = 4;
const GROUP_NODES: usize = 30_000;
const EXIT_NODES: usize = 4_000;

impl Exits {
    pub(super) fn new(list: Vec<Exit>, vocab: &Vocabulary) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let remainders = SuffixTrie::merge(vocab, &list);
        let mut list = list;
        let groups = SuffixTrie::group(vocab, &mut list);
        let trie = vocab.trie();
        let closed =
            (0..).zip(&list).filter(|(_, exit)| exit.closed && !trie.children(exit.node).0.is_empty());
        let onward = closed.map(|(at, exit)| OpenExit {
            at,
            next: ByteSet::of(trie.children(exit.node).0),
            path: exit.path(trie, Trie::ROOT).into(),
        });
        let onward = onward.collect();
        Exits { list, remainders, groups, onward, id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// Exits with a closing byte after which tokens go on with one of these bytes, each with the bytes from
    /// the root of the trie up to the closing one.
    pub(super) fn going_on(&self, bytes: ByteSet) -> impl Iterator<Item = (&Exit, &[u8])> {
        let some = move |onward: &&OpenExit| !onward.next.and(&bytes).is_empty();
        self.onward.iter().filter(some).map(|onward| (&self.list[onward.at as usize], &*onward.path))
    }

    pub(super) fn bytes(&self) -> usize {
        let merged: usize = self.remainders.iter().chain(&self.groups).map(|r| r.trie.len() * 24).sum();
        merged
            + self.list.iter().map(Exit::bytes).sum::<usize>()
            + heap_size::list(&self.onward)
            + self.onward.iter().map(|onward| heap_size::slice(&onward.path)).sum::<usize>()
            + 64
    }
}

impl SuffixTrie {
    /// Merges a few exits or more, if all close with the same outcome.
    fn merge(vocab: &Vocabulary, exits: &[Exit]) -> Option<Self> {
        let first = exits.first()?;
        if exits.len() < 4 || exits.iter().any(|e| !e.closed || e.outcome != first.outcome) {
            return None;
        }
        let mut tails = SuffixList::default();
        for exit in exits {
            tails.add(vocab.trie(), exit.node, &mut Vec::new());
        }
        Some(SuffixTrie { trie: tails.trie(), outcome: first.outcome.clone() })
    }

    /// Merges the exits without a closing byte that share their outcome.
    fn group(vocab: &Vocabulary, exits: &mut [Exit]) -> Vec<Self> {
        let trie = vocab.trie();
        let mut by_outcome: FxHashMap<Box<[u32]>, (usize, usize)> = Default::default();
        let size_of = |exit: &Exit| -> usize { exit.beyond.iter().map(|&(_, n)| trie.subtree_size(n)).sum() };
        for exit in exits.iter_mut().filter(|e| !e.closed) {
            exit.grouped = false;
            let size = size_of(exit);
            if size > EXIT_NODES {
                continue;
            }
            let entry = by_outcome.entry(exit.outcome.clone()).or_default();
            *entry = (entry.0 + 1, entry.1 + size);
        }
        by_outcome.retain(|_, &mut (count, size)| count >= GROUP && size <= GROUP_NODES);
        let mut tails: FxHashMap<Box<[u32]>, SuffixList> = Default::default();
        for exit in exits.iter_mut().filter(|e| !e.closed && by_outcome.contains_key(&e.outcome)) {
            if size_of(exit) > EXIT_NODES {
                continue;
            }
            exit.grouped = true;
            let out = tails.entry(exit.outcome.clone()).or_default();
            for &(byte, node) in exit.beyond.iter() {
                out.add(trie, node, &mut vec![byte]);
            }
        }
        tails.into_iter().map(|(outcome, tails)| SuffixTrie { trie: tails.trie(), outcome }).collect()
    }
}
