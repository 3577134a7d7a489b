//! Spans of a document: the texts of runs of its chunks (characters, words, lines), as one term.
//!
//! A suffix automaton over the chunks (Blumer et al. 1985; the construction of Crochemore 1986) has at most
//! 2n states for n chunks; a term stands for a set of positions in it, since one chunk may be a prefix of
//! another.
//! Complexity: O(n) for n chunks to build (times the logarithm of a state's transitions), each set of
//! positions derived once.
//! Rejected: the n suffixes as words (n squared characters).

use std::collections::BTreeMap;

use crate::hash::Keyed;
use indexmap::IndexSet;

use super::table::{Automaton, State, StateRuns};
use super::term::{TermId, Terms};

/// The work of a chunk beside that for its memory: look-ups and changes in maps that are not in the cache.
const CHUNK: u64 = 12;

/// A state of the automaton, reached (`offset` 0), or on the way to it after so many characters of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct SpanPosition {
    state: u32,
    chunk: u32,
    offset: u32,
}

/// One document.
#[derive(Clone)]
pub(super) struct Spans {
    /// Characters of each distinct chunk.
    chunks: Vec<Vec<char>>,
    next: Vec<BTreeMap<u32, u32>>,
    sets: IndexSet<Box<[SpanPosition]>, Keyed>,
}

impl Spans {
    fn new(chunks: &[&str]) -> Self {
        let mut names: IndexSet<&str, Keyed> = IndexSet::default();
        let sequence: Vec<u32> =
            chunks.iter().filter(|c| !c.is_empty()).map(|&c| names.insert_full(c).0 as u32).collect();
        let mut next: Vec<BTreeMap<u32, u32>> = vec![BTreeMap::new()];
        let mut link: Vec<Option<u32>> = vec![None];
        let mut length = vec![0u32];
        let mut last = 0u32;
        for symbol in sequence {
            crate::work::spend(CHUNK);
            let new = next.len() as u32;
            next.push(BTreeMap::new());
            link.push(Some(0));
            length.push(length[last as usize] + 1);
            let mut at = Some(last);
            while let Some(p) = at.filter(|&p| !next[p as usize].contains_key(&symbol)) {
                next[p as usize].insert(symbol, new);
                at = link[p as usize];
            }
            if let Some(p) = at {
                let q = next[p as usize][&symbol];
                if length[p as usize] + 1 == length[q as usize] {
                    link[new as usize] = Some(q);
                } else {
                    let copy = next.len() as u32;
                    next.push(next[q as usize].clone());
                    link.push(link[q as usize]);
                    length.push(length[p as usize] + 1);
                    let mut at = Some(p);
                    while let Some(p) = at.filter(|&p| next[p as usize].get(&symbol) == Some(&q)) {
                        next[p as usize].insert(symbol, copy);
                        at = link[p as usize];
                    }
                    link[q as usize] = Some(copy);
                    link[new as usize] = Some(copy);
                }
            }
            last = new;
        }
        let chunks = names.iter().map(|c| c.chars().collect()).collect();
        let mut sets: IndexSet<Box<[SpanPosition]>, Keyed> = IndexSet::default();
        sets.insert(Box::new([SpanPosition { state: 0, chunk: 0, offset: 0 }]));
        Spans { chunks, next, sets }
    }
}

impl Automaton for Spans {
    fn copied(&self) -> Box<dyn Automaton> {
        Box::new(self.clone())
    }

    fn ends(&self, set: u32) -> bool {
        self.sets[set as usize].iter().any(|p| p.offset == 0)
    }

    fn runs(&mut self, set: u32) -> StateRuns {
        let mut ways: BTreeMap<char, Vec<SpanPosition>> = BTreeMap::new();
        for place in self.sets[set as usize].clone().iter() {
            let mut read = |state: u32, chunk: u32, offset: u32| {
                let text = &self.chunks[chunk as usize];
                let whole = offset as usize + 1 == text.len();
                let to = SpanPosition {
                    state,
                    chunk: if whole { 0 } else { chunk },
                    offset: if whole { 0 } else { offset + 1 },
                };
                ways.entry(text[offset as usize]).or_default().push(to);
            };
            if place.offset > 0 {
                read(place.state, place.chunk, place.offset);
            } else {
                for (&chunk, &state) in &self.next[place.state as usize] {
                    read(state, chunk, 0);
                }
            }
        }
        let arrows = ways.into_iter().map(|(c, mut places)| {
            crate::lists::sort_unique(&mut places);
            ((c as u32, c as u32), self.sets.insert_full(places.into()).0 as u32)
        });
        State::new(false, arrows.collect()).runs
    }

    fn bytes(&self) -> usize {
        // the document's own states do not grow
        self.sets.len() * 96
    }
}

impl Terms {
    /// The texts of one or more adjacent chunks, and the empty one.
    pub fn spans(&mut self, chunks: &[&str]) -> TermId {
        self.automaton(Spans::new(chunks))
    }
}
