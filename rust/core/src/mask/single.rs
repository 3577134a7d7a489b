//! One language against the rest of some tokens: which of them stay inside, and where the others leave.
//!
//! A lexeme is read by several languages side by side, in ever new combinations; what each does alone is found
//! once, and combinations are made of that ([`super::lexemes`]).
//!
//! A language without some words (names that are no keywords) differs from the language without the exception on
//! the paths of those words alone: it shares what leaves the other ([`differ`]).
//! Complexity: the nodes of the trie that the language reads; of a difference, those where the two are not the
//! same yet.

use std::sync::Arc;

use super::charwalk::CharWalk;
use super::rest::{RestId, TokenSuffixSet, TokenSuffixSets};
use super::within::Within;
use crate::held;
use crate::lexical::spell::ByteSet;
use crate::lexical::term::Term;
use crate::lexical::{LexId, Lexicon, Spelling, Step, TermId};
use crate::vocab::{NodeId, TokenId, TokenSet, Trie, Vocabulary};

/// What one language does with the rest of some tokens.
pub struct Single {
    /// The tokens that it reads to their end.
    pub within: Within,
    /// The tokens that it reads a part of and ends in: what follows that part.
    pub exits: Arc<[RestId]>,
    /// Tokens of those that it does not end in.
    pub removed: Arc<[u32]>,
}

impl Single {
    pub(super) fn bytes(&self) -> usize {
        96 + self.within.bytes() + held::slice(&self.exits) + held::slice(&self.removed)
    }
}

/// Nodes from which on what follows an end stays a subtree of the vocabulary's trie.
const SUBTREE: usize = 2048;
/// Nodes from which on a walk by characters pays.
const TEXTS: usize = 2048;
/// Children from which on a node is read by a table of all bytes.
const TABLE: usize = 16;

struct Ends<'a> {
    lexicon: &'a mut Lexicon,
    trie: &'a Trie,
    ids: Vec<u32>,
    ends: Vec<(NodeId, ByteSet)>,
    tables: Vec<(LexId, Box<[Step; 256]>)>,
}

/// Walks a rest with one language alone. Where it ends before the first byte is not told.
pub fn build(
    lexicon: &mut Lexicon,
    vocab: &Vocabulary,
    rests: &mut TokenSuffixSets,
    rest: TokenSuffixSet,
    term: TermId,
) -> Single {
    let lex = lexicon.at(Spelling::Raw, term);
    let trie = rests.trie(rest, vocab);
    let texts = std::ptr::eq(trie, vocab.trie()) && rest.size >= TEXTS;
    let mut begun: Vec<(NodeId, LexId)> = Vec::new();
    let mut walk = CharWalk::of_texts(lexicon, vocab);
    // where the language ends before the first byte is not told
    let all = texts && rest.is_whole && walk.add(rest.node, lex);
    if !all {
        for byte in walk.lexicon.starts(lex).and(&rest.bytes).iter() {
            let next = walk.lexicon.step(lex, byte);
            if let (Some(child), Step::Stay(next)) = (trie.child(rest.node, byte), next) {
                begun.push((child, next));
            }
        }
    }
    let mut ids: Vec<u32> = begun.iter().flat_map(|b| trie.tokens(b.0)).map(|t| t.0).collect();
    begun.retain(|&(node, lex)| !(texts && trie.subtree_size(node) >= TEXTS && walk.add(node, lex)));
    let (mut words, mut ends) = walk.finish_texts();
    ends.remove(&rest.node);
    let mut walk =
        Ends { lexicon, trie, ids: Vec::new(), ends: ends.into_iter().collect(), tables: Vec::new() };
    begun.iter().for_each(|&(node, lex)| walk.visit(node, lex));
    ids.extend(walk.ids);
    let ends = walk.ends;
    let exits = exits_of(vocab, rests, rest, ends, &[]);
    let within = match words.is_empty() {
        true => Within::of(ids, vocab),
        false => {
            words.allow_all(ids);
            Within::of_words(words)
        }
    };
    Single { within, exits, removed: Arc::new([]) }
}

impl Ends<'_> {
    fn visit(&mut self, node: NodeId, lex: LexId) {
        let (bytes, nodes) = self.trie.children(node);
        if bytes.is_empty() {
            return;
        }
        let table = (bytes.len() >= TABLE).then(|| self.table(lex)).flatten();
        let mut beyond = ByteSet::default();
        for (&byte, &child) in bytes.iter().zip(nodes) {
            let step = match table {
                Some(at) => self.tables[at].1[byte as usize],
                None => self.lexicon.step(lex, byte),
            };
            match step {
                Step::Stay(next) => {
                    self.ids.extend(self.trie.tokens(child).iter().map(|t| t.0));
                    self.visit(child, next);
                }
                _ => beyond.insert(byte),
            }
        }
        if !beyond.is_empty() && self.lexicon.outcome(lex) != Lexicon::NONE {
            self.ends.push((node, beyond));
        }
    }

    fn table(&mut self, lex: LexId) -> Option<usize> {
        if let Some(known) = self.tables.iter().position(|t| t.0 == lex) {
            return Some(known);
        }
        if self.tables.len() >= 16 {
            return None;
        }
        let table = Box::new(std::array::from_fn(|byte| self.lexicon.step(lex, byte as u8)));
        self.tables.push((lex, table));
        Some(self.tables.len() - 1)
    }
}

/// What follows some ends, without the tokens `lost` (sorted).
fn exits_of(
    vocab: &Vocabulary,
    rests: &mut TokenSuffixSets,
    rest: TokenSuffixSet,
    mut ends: Vec<(NodeId, ByteSet)>,
    lost: &[u32],
) -> Arc<[RestId]> {
    let trie = rests.trie(rest, vocab);
    let whole = std::ptr::eq(trie, vocab.trie()) && lost.is_empty();
    let (mut subtrees, mut tails) = (Vec::new(), Vec::new());
    ends.sort_unstable_by_key(|e| e.0);
    for (node, beyond) in ends {
        let (bytes, nodes) = trie.children(node);
        let own = || bytes.iter().zip(nodes).filter(|k| beyond.has(*k.0));
        if whole && own().map(|k| trie.subtree_size(*k.1)).sum::<usize>() >= SUBTREE {
            subtrees.push((node, beyond));
            continue;
        }
        for (&byte, &child) in own() {
            collect(trie, child, &mut vec![byte], lost, &mut tails);
        }
    }
    let mut out: Vec<RestId> = Vec::new();
    if !tails.is_empty() {
        out.push(rests.merged(vocab, &tails));
    }
    for (node, beyond) in subtrees {
        let below = rests.below(vocab, node);
        out.push(rests.limited(vocab, below, &beyond));
    }
    out.into()
}

fn collect(trie: &Trie, node: NodeId, path: &mut Vec<u8>, lost: &[u32], out: &mut Vec<(Box<[u8]>, TokenId)>) {
    let own = trie.tokens(node).iter().filter(|t| lost.binary_search(&t.0).is_err());
    out.extend(own.map(|&t| (path.as_slice().into(), t)));
    let (bytes, nodes) = trie.children(node);
    for (&byte, &child) in bytes.iter().zip(nodes) {
        path.push(byte);
        collect(trie, child, path, lost, out);
        path.pop();
    }
}

/// The exits of a language without the tokens that others take from it.
pub fn exits_without(
    lexicon: &mut Lexicon,
    vocab: &Vocabulary,
    rests: &mut TokenSuffixSets,
    rest: TokenSuffixSet,
    term: TermId,
    lost: &[u32],
) -> Arc<[RestId]> {
    let lex = lexicon.at(Spelling::Raw, term);
    let trie = rests.trie(rest, vocab);
    let mut walk = Ends { lexicon, trie, ids: Vec::new(), ends: Vec::new(), tables: Vec::new() };
    for byte in walk.lexicon.starts(lex).and(&rest.bytes).iter() {
        if let (Some(child), Step::Stay(next)) = (trie.child(rest.node, byte), walk.lexicon.step(lex, byte)) {
            walk.visit(child, next);
        }
    }
    let ends = walk.ends;
    exits_of(vocab, rests, rest, ends, lost)
}

/// The language without its exceptions, where it has some.
pub fn without_exceptions(lexicon: &mut Lexicon, term: TermId) -> Option<TermId> {
    let Term::And(parts) = lexicon.terms.get(term) else { return None };
    let parts = parts.clone();
    let kept: Vec<TermId> =
        parts.iter().copied().filter(|&p| !matches!(lexicon.terms.get(p), Term::Not(_))).collect();
    (!kept.is_empty() && kept.len() < parts.len()).then(|| lexicon.terms.and(&kept))
}

/// The same from a language that reads more; `None` where the smaller one ends in tokens that the other reads on.
pub fn differ(
    lexicon: &mut Lexicon,
    vocab: &Vocabulary,
    rests: &TokenSuffixSets,
    rest: TokenSuffixSet,
    terms: (TermId, TermId),
    base: &Single,
) -> Option<Single> {
    let trie = rests.trie(rest, vocab);
    let (lex, under) = (lexicon.at(Spelling::Raw, terms.0), lexicon.at(Spelling::Raw, terms.1));
    let mut walk = Differ { lexicon, trie, dead: Vec::new(), lost: Vec::new(), early: false };
    walk.visit(rest.node, lex, under, Some(&rest.bytes));
    if walk.early {
        return None;
    }
    let Differ { dead, mut lost, .. } = walk;
    lost.extend(base.removed.iter().copied());
    lost.sort_unstable();
    lost.dedup();
    Some(Single { within: base.within.minus_tokens(dead), exits: base.exits.clone(), removed: lost.into() })
}

struct Differ<'a> {
    lexicon: &'a mut Lexicon,
    trie: &'a Trie,
    /// Tokens that the other language reads to their end and this one does not.
    dead: Vec<u32>,
    /// Tokens that the other language ends in and this one does not.
    lost: Vec<u32>,
    early: bool,
}

impl Differ<'_> {
    fn visit(&mut self, node: NodeId, lex: LexId, under: LexId, first: Option<&ByteSet>) {
        let (bytes, nodes) = self.trie.children(node);
        let ends = first.is_none() && self.lexicon.outcome(lex) != Lexicon::NONE;
        let base_ends = first.is_none() && self.lexicon.outcome(under) != Lexicon::NONE;
        for (&byte, &child) in bytes.iter().zip(nodes) {
            if first.is_some_and(|f| !f.has(byte)) {
                continue;
            }
            let below = || self.trie.subtree_tokens(child).iter().map(|t| t.0);
            match (self.lexicon.step(lex, byte), self.lexicon.step(under, byte)) {
                (Step::Stay(next), Step::Stay(base)) if next != base => {
                    self.visit(child, next, base, None);
                }
                (Step::Stay(_), Step::Stay(_)) => {}
                (_, Step::Stay(_)) => {
                    self.early |= ends;
                    self.dead.extend(below());
                    self.lost.extend(below());
                }
                (Step::Stay(_), _) => self.early = true,
                _ if base_ends && !ends => self.lost.extend(below()),
                _ => self.early |= ends && !base_ends,
            }
        }
    }
}

/// The tokens that one language ends in and loses to another: the other reads on, or ends there too and is chosen.
pub fn beaten(
    lexicon: &mut Lexicon,
    trie: &Trie,
    rest: TokenSuffixSet,
    terms: (TermId, TermId),
    chosen: bool,
) -> Vec<u32> {
    let lexes = (lexicon.at(Spelling::Raw, terms.0), lexicon.at(Spelling::Raw, terms.1));
    let mut out = Vec::new();
    for byte in lexicon.starts(lexes.0).and(&lexicon.starts(lexes.1)).and(&rest.bytes).iter() {
        let Some(child) = trie.child(rest.node, byte) else { continue };
        let (Step::Stay(a), Step::Stay(b)) = (lexicon.step(lexes.0, byte), lexicon.step(lexes.1, byte))
        else {
            continue;
        };
        lose(lexicon, trie, child, (a, b), chosen, &mut out);
    }
    out.sort_unstable();
    out
}

fn lose(
    lexicon: &mut Lexicon,
    trie: &Trie,
    node: NodeId,
    at: (LexId, LexId),
    chosen: bool,
    out: &mut Vec<u32>,
) {
    let (bytes, nodes) = trie.children(node);
    let ends = lexicon.outcome(at.0) != Lexicon::NONE;
    let both = chosen && ends && lexicon.outcome(at.1) != Lexicon::NONE;
    for (&byte, &child) in bytes.iter().zip(nodes) {
        match (lexicon.step(at.0, byte), lexicon.step(at.1, byte)) {
            (Step::Stay(a), Step::Stay(b)) => lose(lexicon, trie, child, (a, b), chosen, out),
            (Step::Stay(_), _) => {}
            (_, Step::Stay(_)) if ends => out.extend(trie.subtree_tokens(child).iter().map(|t| t.0)),
            (_, Step::Stay(_)) => {}
            _ if both => out.extend(trie.subtree_tokens(child).iter().map(|t| t.0)),
            _ => {}
        }
    }
}
