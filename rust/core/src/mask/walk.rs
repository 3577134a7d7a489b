//! Walks of the trie by bytes: what a lexical state does with every token below a node.
//!
//! Invariant: every token is followed byte by byte: tests compare the faster walks with this one.
//! Complexity: the nodes that are alive. Memory: the result; no table outlives the walk.

use super::exits::Exit;
use crate::lexical::spell::OutcomeId;
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::{NodeId, Vocabulary};
use crate::work;

/// The walk of [`super::lexmask::LexMask::differ`].
pub(super) struct DifferenceWalk<'a> {
    lexicon: &'a mut Lexicon,
    vocab: &'a Vocabulary,
    reach: u32,
    /// Nodes whose tokens the base allows and the state does not.
    pub(super) dead: Vec<NodeId>,
    /// Nodes of closing quotes at which the state may not end, in ascending order.
    pub(super) closed: Vec<NodeId>,
    /// A subtree was skipped in which the two may end at different places.
    pub(super) unsure: bool,
}

impl<'a> DifferenceWalk<'a> {
    pub(super) fn new(lexicon: &'a mut Lexicon, vocab: &'a Vocabulary, reach: u32) -> Self {
        DifferenceWalk { lexicon, vocab, reach, dead: Vec::new(), closed: Vec::new(), unsure: false }
    }

    pub(super) fn visit(&mut self, node: NodeId, lex: LexId, base: LexId) {
        let trie = self.vocab.trie();
        let (bytes, nodes) = trie.children(node);
        work::spend(1 + bytes.len() as u64 / 4);
        for (&byte, &child) in bytes.iter().zip(nodes) {
            let Step::Stay(under) = self.lexicon.step(base, byte) else {
                if byte == b'"' && self.lexicon.step(lex, byte) == Step::Dead {
                    self.closed.push(child);
                }
                continue;
            };
            match self.lexicon.step(lex, byte) {
                Step::Dead => self.dead.push(child),
                Step::Close => {}
                Step::Stay(next) => {
                    if next != under && !self.same_below(next, under, trie.height(child)) {
                        self.visit(child, next, under);
                    }
                }
            }
        }
    }

    fn same_below(&mut self, lex: LexId, base: LexId, height: u32) -> bool {
        let (Some((_, t)), Some((_, b))) = (self.lexicon.term(lex), self.lexicon.term(base)) else {
            return height == 0;
        };
        let terms = &self.lexicon.terms;
        if height == 0 || terms.equals_up_to(t, b, height) || self.lexicon.terms.agrees_up_to(t, b, height) {
            return true;
        }
        let terms = &self.lexicon.terms;
        let alive = terms.keeps_alive(t, b, self.reach, height);
        self.unsure |= alive;
        alive
    }
}

/// A state's transitions by bytes, for nodes with many children.
struct ByteTable {
    lex: LexId,
    string: bool,
    /// Between code points.
    whole: bool,
    /// As far as computed.
    table: Box<[Option<Step>; 256]>,
}

/// The tables of a walk's states.
#[derive(Default)]
pub(super) struct ByteTables {
    known: Vec<ByteTable>,
    /// Place of a state in `known`; the one used last is tried first, since most nodes of a walk share it.
    places: rustc_hash::FxHashMap<LexId, usize>,
    last: usize,
}

/// Children of a node from which on its state gets a table, and most tables.
const CHILDREN: usize = 16;
const TABLES: usize = 256;

impl ByteTables {
    /// The index of a state's table; `wide`: one is made where there is none.
    pub(super) fn place(&mut self, lexicon: &Lexicon, lex: LexId, wide: bool) -> Option<usize> {
        if self.known.get(self.last).is_some_and(|k| k.lex == lex) {
            return Some(self.last);
        }
        if let Some(&at) = self.places.get(&lex) {
            self.last = at;
            return Some(at);
        }
        if !wide || self.known.len() > TABLES {
            return None;
        }
        let (string, whole) = (lexicon.is_string(lex), lexicon.term(lex).is_some());
        self.known.push(ByteTable { lex, string, whole, table: Box::new([None; 256]) });
        self.last = self.known.len() - 1;
        self.places.insert(lex, self.last);
        Some(self.last)
    }

    /// A state's transitions by bytes, as far as computed.
    pub(super) fn steps(&self, place: usize) -> &[Option<Step>; 256] {
        &self.known[place].table
    }

    #[inline]
    pub(super) fn step(&mut self, lexicon: &mut Lexicon, place: usize, byte: u8) -> Step {
        let ByteTable { lex, table, .. } = &mut self.known[place];
        *table[byte as usize].get_or_insert_with(|| lexicon.step(*lex, byte))
    }
}

pub(super) struct Walk<'a> {
    lexicon: &'a mut Lexicon,
    vocab: &'a Vocabulary,
    pub(super) ids: Vec<u32>,
    pub(super) exits: Vec<Exit>,
    top: NodeId,
    /// Code points from `top`.
    pub(super) length: u32,
    pub(super) tables: ByteTables,
}

impl<'a> Walk<'a> {
    pub(super) fn new(lexicon: &'a mut Lexicon, vocab: &'a Vocabulary, top: NodeId) -> Self {
        let tables = ByteTables::default();
        Walk { lexicon, vocab, ids: Vec::new(), exits: Vec::new(), top, length: 0, tables }
    }

    pub(super) fn visit(&mut self, node: NodeId, lex: LexId) {
        let trie = self.vocab.trie();
        let (bytes, nodes) = trie.children(node);
        if bytes.is_empty() {
            return;
        }
        if let Some(few) = self.lexicon.escape_bytes(lex) {
            return self.visit_escape(node, lex, few);
        }
        work::spend(1 + bytes.len() as u64 / 8);
        let place = self.tables.place(self.lexicon, lex, bytes.len() >= CHILDREN);
        let (string, whole) = match place {
            Some(at) => (self.tables.known[at].string, self.tables.known[at].whole),
            None => (self.lexicon.is_string(lex), self.lexicon.term(lex).is_some()),
        };
        let mut beyond: Vec<(u8, NodeId)> = Vec::new();
        for (&byte, &child) in bytes.iter().zip(nodes) {
            let step = match place {
                Some(at) => self.tables.step(self.lexicon, at, byte),
                None => self.lexicon.step(lex, byte),
            };
            match step {
                Step::Dead => beyond.push((byte, child)),
                Step::Close => {
                    let outcome = self.lexicon.outcome(lex);
                    self.exit(child, outcome, true, Vec::new());
                }
                Step::Stay(next) => self.inside(child, next, whole as u32),
            }
        }
        if !beyond.is_empty() && !string {
            let outcome = self.lexicon.outcome(lex);
            if outcome != Lexicon::NONE {
                self.exit(node, outcome, false, beyond);
            }
        }
    }

    fn inside(&mut self, child: NodeId, next: LexId, whole: u32) {
        self.ids.extend(self.vocab.trie().tokens(child).iter().map(|t| t.0));
        self.length += whole;
        self.visit(child, next);
        self.length -= whole;
    }

    /// In the middle of an escape nothing ends, and few bytes go on.
    fn visit_escape(&mut self, node: NodeId, lex: LexId, few: &[u8]) {
        work::spend(1);
        for &byte in few {
            if let Some(child) = self.vocab.trie().child(node, byte) {
                if let Step::Stay(next) = self.lexicon.step(lex, byte) {
                    self.inside(child, next, 0);
                }
            }
        }
    }

    fn exit(&mut self, node: NodeId, outcome: OutcomeId, closed: bool, beyond: Vec<(u8, NodeId)>) {
        let outcome = self.lexicon.outcome_list(outcome).into();
        let mut exit = Exit {
            node,
            length: self.length,
            escaped: false,
            outcome,
            closed,
            beyond: beyond.into(),
            grouped: false,
        };
        exit.escaped = closed && exit.path(self.vocab.trie(), self.top).contains(&b'\\');
        self.exits.push(exit);
    }
}
