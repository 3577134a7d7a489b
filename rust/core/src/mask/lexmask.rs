//! What the lexical state alone decides about the tokens below a node of the trie.
//!
//! A token either stays inside the lexeme (`within`: a function of the lexical state, whatever the grammar) or
//! leaves it at some node (`exits`); only from there on does the structure layer matter.  In a free string of a
//! 131,072-token vocabulary 98.3 % of the tokens stay, and 496 leave.

use std::sync::Arc;

use crate::lexical::base::Base;
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::{NodeId, TokenId, Trie, Vocabulary};

/// The tokens that stay inside.
#[derive(Clone)]
pub enum Within {
    Few(Arc<[u32]>),
    /// As a mask, and how many there are.
    Many(Arc<[u32]>, usize),
}

/// A place where the lexeme may end.
#[derive(Clone)]
pub struct Exit {
    pub node: NodeId,
    /// Bytes of the lexeme between the start of the walk and its end (the closing quote not included).
    pub path: Box<[u8]>,
    /// The languages that accept there.
    pub outcome: Box<[u32]>,
    /// The closing byte was read: the structure goes on below `node`.
    /// Otherwise it reads those children of `node` that the lexeme can't.
    pub closed: bool,
}

/// The part of a mask that belongs to (node, lexical state).
pub struct LexMask {
    pub within: Within,
    pub exits: Arc<Exits>,
    /// Exits of the set that this state does not have.
    pub missing: Box<[NodeId]>,
}

/// A set of exits; states that differ in few of them share it.
pub struct Exits {
    pub list: Vec<Exit>,
    /// Exits with one outcome and a closing byte: the tokens' remainders, merged into one trie.
    pub remainders: Option<Remainders>,
    /// Tells exit sets apart in memo tables.
    pub id: u64,
}

/// A trie of what follows the closing byte in the tokens that hold it.
pub struct Remainders {
    pub trie: Trie,
    pub outcome: Box<[u32]>,
}

/// Tokens from which on a list is kept as a mask.
const MANY: usize = 4096;

/// Missing exits up to which a state shares the set of its base.
const FEW_MISSING: usize = 24;

impl LexMask {
    /// Walks the whole subtree: the slow part, done once for a (node, state).
    pub fn build(lexicon: &mut Lexicon, vocab: &Vocabulary, node: NodeId, lex: LexId) -> Self {
        let mut walk = Walk { lexicon, vocab, ids: Vec::new(), exits: Vec::new(), path: Vec::new() };
        walk.visit(node, lex);
        let Walk { ids, exits, .. } = walk;
        LexMask {
            within: Within::of(ids, vocab),
            exits: Arc::new(Exits::new(exits, vocab)),
            missing: Box::new([]),
        }
    }

    /// The mask of a state that allows no more than a base does, by walking only where the two differ: below a
    /// node where the state lives as long as the base does, within the height of the node, nothing is looked at.
    /// `at` are the lexical states of the two.
    pub fn differ(
        lexicon: &mut Lexicon,
        vocab: &Vocabulary,
        node: NodeId,
        at: (LexId, LexId),
        base: &LexMask,
        how: Base,
    ) -> Self {
        let mut walk = Difference {
            lexicon,
            vocab,
            reach: how.reach,
            dead: Vec::new(),
            closed: Vec::new(),
            unsure: false,
        };
        walk.visit(node, at.0, at.1);
        let Difference { dead, mut closed, unsure, .. } = walk;
        let trie = vocab.trie();
        if unsure {
            closed =
                base.exits.list.iter().filter(|e| !closes(lexicon, at.0, &e.path)).map(|e| e.node).collect();
        }
        let gone = |exit: NodeId| {
            closed.binary_search(&exit).is_ok() || dead.iter().any(|&d| trie.is_below(exit, d))
        };
        let mut missing: Vec<NodeId> = base.missing.to_vec();
        if unsure {
            missing.extend(&closed);
        } else {
            missing.extend(base.exits.list.iter().map(|e| e.node).filter(|&n| gone(n)));
        }
        missing.sort_unstable();
        missing.dedup();
        let within = base.within.minus(vocab, &dead);
        if missing.len() <= FEW_MISSING {
            return LexMask { within, exits: base.exits.clone(), missing: missing.into() };
        }
        let left = base.exits.list.iter().filter(|e| missing.binary_search(&e.node).is_err());
        let exits = Exits::new(left.cloned().collect(), vocab);
        LexMask { within, exits: Arc::new(exits), missing: Box::new([]) }
    }

    pub fn bytes(&self) -> usize {
        let within = match &self.within {
            Within::Few(ids) => ids.len() * 4,
            Within::Many(words, _) => words.len() * 4,
        };
        within + self.missing.len() * 4 + self.exits.bytes() + 64
    }
}

/// Whether the lexeme may be closed after these bytes.
fn closes(lexicon: &mut Lexicon, mut lex: LexId, path: &[u8]) -> bool {
    for &byte in path {
        match lexicon.step(lex, byte) {
            Step::Stay(next) => lex = next,
            _ => return false,
        }
    }
    lexicon.step(lex, b'"') == Step::Close
}

impl Within {
    fn of(ids: Vec<u32>, vocab: &Vocabulary) -> Self {
        if ids.len() <= MANY {
            return Within::Few(ids.into());
        }
        let mut words = vec![0u32; vocab.mask_words()];
        for &id in &ids {
            words[id as usize >> 5] |= 1 << (id & 31);
        }
        Within::Many(words.into(), ids.len())
    }

    /// Without the tokens below some nodes.
    fn minus(&self, vocab: &Vocabulary, dead: &[NodeId]) -> Self {
        let gone = dead.iter().flat_map(|&d| vocab.trie().subtree_tokens(d)).map(|t| t.0);
        match self {
            _ if dead.is_empty() => self.clone(),
            Within::Few(ids) => {
                let gone: rustc_hash::FxHashSet<u32> = gone.collect();
                Within::Few(ids.iter().copied().filter(|id| !gone.contains(id)).collect())
            }
            Within::Many(words, _) => {
                let mut words = words.to_vec();
                for id in gone {
                    words[id as usize >> 5] &= !(1 << (id & 31));
                }
                let left = words.iter().map(|w| w.count_ones() as usize).sum();
                if left > MANY {
                    return Within::Many(words.into(), left);
                }
                Within::Few(super::row::Mask::Dense(words.into()).ids(vocab.mask_words()).into())
            }
        }
    }
}

impl Exits {
    fn new(list: Vec<Exit>, vocab: &Vocabulary) -> Self {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let remainders = Remainders::merge(vocab, &list);
        Exits { list, remainders, id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    fn bytes(&self) -> usize {
        let merged = self.remainders.as_ref().map_or(0, |r| r.trie.len() * 24);
        merged + self.list.iter().map(|e| 64 + e.path.len()).sum::<usize>() + 64
    }
}

/// The walk of [`LexMask::differ`].
struct Difference<'a> {
    lexicon: &'a mut Lexicon,
    vocab: &'a Vocabulary,
    reach: u32,
    /// Nodes whose tokens the base allows and the state does not.
    dead: Vec<NodeId>,
    /// Nodes of closing quotes at which the state may not end, in ascending order.
    closed: Vec<NodeId>,
    /// A subtree was left out in which the two may end at different places.
    unsure: bool,
}

impl Difference<'_> {
    fn visit(&mut self, node: NodeId, lex: LexId, base: LexId) {
        let trie = self.vocab.trie();
        let (bytes, nodes) = trie.children(node);
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
        if height == 0 || terms.fills(t, b, height) {
            return true;
        }
        let alive = terms.keeps_alive(t, Base { term: b, reach: self.reach }, height);
        self.unsure |= alive;
        alive
    }
}

struct Walk<'a> {
    lexicon: &'a mut Lexicon,
    vocab: &'a Vocabulary,
    ids: Vec<u32>,
    exits: Vec<Exit>,
    path: Vec<u8>,
}

impl Walk<'_> {
    fn visit(&mut self, node: NodeId, lex: LexId) {
        let trie = self.vocab.trie();
        let (bytes, nodes) = trie.children(node);
        if bytes.is_empty() {
            return;
        }
        let string = self.lexicon.is_string(lex);
        let table = if bytes.len() > 16 { self.lexicon.table(lex) } else { None };
        let mut leaves = false;
        for (&byte, &child) in bytes.iter().zip(nodes) {
            let step = match &table {
                Some(table) => table[byte as usize],
                None => self.lexicon.step(lex, byte),
            };
            match step {
                Step::Dead => leaves = true,
                Step::Close => {
                    let outcome = self.lexicon.outcome(lex);
                    self.exit(child, outcome, true);
                }
                Step::Stay(next) => {
                    self.ids.extend(trie.tokens(child).iter().map(|t| t.0));
                    self.path.push(byte);
                    self.visit(child, next);
                    self.path.pop();
                }
            }
        }
        if leaves && !string {
            let outcome = self.lexicon.outcome(lex);
            if outcome != Lexicon::NONE {
                self.exit(node, outcome, false);
            }
        }
    }

    fn exit(&mut self, node: NodeId, outcome: crate::lexical::spell::OutcomeId, closed: bool) {
        let outcome = self.lexicon.outcome_list(outcome).into();
        self.exits.push(Exit { node, path: self.path.as_slice().into(), outcome, closed });
    }
}

impl Remainders {
    /// Worth it from a few exits on, where all close with the same outcome.
    fn merge(vocab: &Vocabulary, exits: &[Exit]) -> Option<Self> {
        let first = exits.first()?;
        if exits.len() < 4 || exits.iter().any(|e| !e.closed || e.outcome != first.outcome) {
            return None;
        }
        let mut tails: Vec<(Box<[u8]>, TokenId)> = Vec::new();
        for exit in exits {
            collect(vocab.trie(), exit.node, &mut Vec::new(), &mut tails);
        }
        let trie = Trie::new(tails.iter().map(|(bytes, id)| (id.0, bytes)));
        Some(Remainders { trie, outcome: first.outcome.clone() })
    }
}

fn collect(trie: &Trie, node: NodeId, path: &mut Vec<u8>, out: &mut Vec<(Box<[u8]>, TokenId)>) {
    out.extend(trie.tokens(node).iter().map(|&t| (path.as_slice().into(), t)));
    let (bytes, nodes) = trie.children(node);
    for (&byte, &child) in bytes.iter().zip(nodes) {
        path.push(byte);
        collect(trie, child, path, out);
        path.pop();
    }
}
