//! What the lexical state alone decides about the tokens below a node of the trie.
//!
//! A token either stays inside the lexeme (`within`: a function of the lexical state, whatever the grammar) or
//! leaves it at some node (`exits`); only from there on does the structure layer matter.  In a free string of a
//! 131,072-token vocabulary 98.3 % of the tokens stay, and 496 leave.

use std::sync::Arc;

use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::{NodeId, TokenId, Trie, Vocabulary};

/// The tokens that stay inside.
pub enum Within {
    Few(Box<[u32]>),
    /// As a mask, and how many there are.
    Many(Arc<[u32]>, usize),
}

/// A place where the lexeme may end.
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
    pub exits: Vec<Exit>,
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

impl LexMask {
    /// Walks the whole subtree: the slow part, done once for a (node, state).
    pub fn build(lexicon: &mut Lexicon, vocab: &Vocabulary, node: NodeId, lex: LexId) -> Self {
        let mut walk = Walk { lexicon, vocab, ids: Vec::new(), exits: Vec::new(), path: Vec::new() };
        walk.visit(node, lex);
        let Walk { ids, exits, .. } = walk;
        Self::assemble(vocab, ids, exits)
    }

    fn assemble(vocab: &Vocabulary, ids: Vec<u32>, exits: Vec<Exit>) -> Self {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let within = if ids.len() > MANY {
            let mut words = vec![0u32; vocab.mask_words()];
            for &id in &ids {
                words[id as usize >> 5] |= 1 << (id & 31);
            }
            Within::Many(words.into(), ids.len())
        } else {
            Within::Few(ids.into())
        };
        let remainders = Remainders::merge(vocab, &exits);
        LexMask { within, exits, remainders, id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    pub fn bytes(&self) -> usize {
        let within = match &self.within {
            Within::Few(ids) => ids.len() * 4,
            Within::Many(words, _) => words.len() * 4,
        };
        let merged = self.remainders.as_ref().map_or(0, |r| r.trie.len() * 24);
        within + merged + self.exits.iter().map(|e| 64 + e.path.len()).sum::<usize>() + 128
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
        let string = self.lexicon.is_string(lex);
        let outcome = if string { Lexicon::NONE } else { self.lexicon.outcome(lex) };
        if outcome != Lexicon::NONE {
            self.exit(node, outcome, false);
        }
        let (bytes, nodes) = self.vocab.trie().children(node);
        for (&byte, &child) in bytes.iter().zip(nodes) {
            match self.lexicon.step(lex, byte) {
                Step::Dead => {}
                Step::Close => {
                    let outcome = self.lexicon.outcome(lex);
                    self.exit(child, outcome, true);
                }
                Step::Stay(next) => {
                    self.ids.extend(self.vocab.trie().tokens(child).iter().map(|t| t.0));
                    self.path.push(byte);
                    self.visit(child, next);
                    self.path.pop();
                }
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
