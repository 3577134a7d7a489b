//! The quotient of a set of token suffixes by one language: which tokens stay inside it, and where the others leave.
//!
//! A lexeme is read by several languages side by side, in ever new combinations. What each does alone is
//! computed once, and combinations are made from that ([`super::lexemes`]).
//!
//! A language without some words (names that are no keywords) differs from the language without the exception on
//! the paths of those words alone: the two share what leaves the larger one ([`differ`]).
//! Complexity: the nodes of the trie that the language reads; of a difference, the nodes at which the two
//! states still differ.

use std::sync::Arc;

use super::charwalk::CharWalk;
use super::suffixes::SuffixList;
use super::suffixes::{SuffixSetId, TokenSuffixSet, TokenSuffixSets};
use super::walk::ByteTables;
use super::within::Within;
use crate::heap_size;
use crate::lexical::spell::ByteSet;
use crate::lexical::term::Term;
use crate::lexical::{LexId, Lexicon, Spelling, Step, TermId};
use crate::vocab::{NodeId, TokenSet, Trie, Vocabulary};

/// Partly read tokens, and what reads on.
pub struct Tokens<'a> {
    pub lexicon: &'a mut Lexicon,
    pub vocab: &'a Vocabulary,
    pub suffix_sets: &'a mut TokenSuffixSets,
    pub suffixes: TokenSuffixSet,
}

/// What one language does with the rest of some tokens.
pub struct Quotient {
    /// The tokens that it reads to their end.
    pub within: Within,
    /// The tokens that it reads a part of and ends in: what follows that part.
    pub exits: Arc<[SuffixSetId]>,
    /// Tokens among the exits that it does not end in.
    pub removed: Arc<[u32]>,
}

impl Quotient {
    pub(super) fn bytes(&self) -> usize {
        96 + self.within.bytes() + heap_size::slice(&self.exits) + heap_size::slice(&self.removed)
    }
}

/// Nodes from which on what follows an end stays a subtree of the vocabulary's trie.
const SUBTREE: usize = 2048;
/// Nodes from which on a walk by characters pays.
const TEXTS: usize = 2048;
/// Nodes below one from which on it pays to make a table of a state's transitions by bytes, and to use one.
const TABLE: usize = 256;
const FEW: usize = 8;

/// A walk by bytes. Most states of a long text (a name, a comment) have a self-loop under most bytes: what is
/// below such a state is found by one scan of the nodes.
struct QuotientWalk<'a> {
    lexicon: &'a mut Lexicon,
    trie: &'a Trie,
    ids: Vec<u32>,
    /// Where the language ends: the node, and a byte that it can't read there.
    ends: Vec<(NodeId, u8)>,
    /// Transitions of states by bytes, as far as computed.
    tables: ByteTables,
}

/// Walks a set of suffixes with one language alone. Its end before the first byte is not reported.
pub fn build(tokens: Tokens, term: TermId) -> Quotient {
    let vocab = tokens.vocab;
    let WalkResult { mut words, ids, ends } =
        walk(tokens.lexicon, vocab, tokens.suffix_sets, tokens.suffixes, term);
    let exits = exits_of(tokens, ends, &[]);
    let within = match words.is_empty() {
        true => Within::of(ids, vocab),
        false => {
            words.allow_all(ids);
            Within::of_words(words)
        }
    };
    Quotient { within, exits, removed: Arc::new([]) }
}

/// What a walk finds: the tokens that stay inside, as a mask (or an empty one) and ids, and where others leave.
struct WalkResult {
    words: Vec<u32>,
    ids: Vec<u32>,
    ends: Vec<(NodeId, ByteSet)>,
}

fn walk(
    lexicon: &mut Lexicon,
    vocab: &Vocabulary,
    suffix_sets: &TokenSuffixSets,
    suffixes: TokenSuffixSet,
    term: TermId,
) -> WalkResult {
    let lex = lexicon.at(Spelling::Raw, term);
    let trie = suffix_sets.trie(suffixes, vocab);
    let texts = std::ptr::eq(trie, vocab.trie()) && suffixes.size >= TEXTS;
    let mut begun: Vec<(NodeId, LexId)> = Vec::new();
    let mut walk = CharWalk::of_texts(lexicon, vocab);
    // an end before the first byte is not reported
    let all = texts && suffixes.is_whole && walk.add(suffixes.node, lex);
    if !all {
        for byte in walk.lexicon.starts(lex).and(&suffixes.bytes).iter() {
            let next = walk.lexicon.step(lex, byte);
            if let (Some(child), Step::Stay(next)) = (trie.child(suffixes.node, byte), next) {
                begun.push((child, next));
            }
        }
    }
    let mut ids: Vec<u32> = begun.iter().flat_map(|b| trie.tokens(b.0)).map(|t| t.0).collect();
    begun.retain(|&(node, lex)| !(texts && trie.subtree_size(node) >= TEXTS && walk.add(node, lex)));
    let (words, mut ends) = walk.finish_texts();
    ends.remove(&suffixes.node);
    let mut walk = QuotientWalk::new(lexicon, trie);
    begun.iter().for_each(|&(node, lex)| walk.visit(node, lex));
    ids.extend(walk.ids);
    WalkResult { words, ids, ends: ends.into_iter().chain(ends_of(walk.ends)).collect() }
}

impl<'a> QuotientWalk<'a> {
    fn new(lexicon: &'a mut Lexicon, trie: &'a Trie) -> Self {
        QuotientWalk { lexicon, trie, ids: Vec::new(), ends: Vec::new(), tables: ByteTables::default() }
    }

    /// Visits the nodes below one that leads to the state.
    fn visit(&mut self, node: NodeId, lex: LexId) {
        if let Some(table) = self.table(node, lex) {
            return self.sweep(node, lex, table);
        }
        let (bytes, nodes) = self.trie.children(node);
        let mut ends = None;
        for (&byte, &child) in bytes.iter().zip(nodes) {
            match self.lexicon.step(lex, byte) {
                Step::Stay(next) => {
                    self.ids.extend(self.trie.tokens(child).iter().map(|t| t.0));
                    self.visit(child, next);
                }
                _ if *ends.get_or_insert_with(|| self.lexicon.outcome(lex) != Lexicon::NONE) => {
                    self.ends.push((node, byte));
                }
                _ => {}
            }
        }
    }

    /// The same with a table of the state's transitions.
    fn sweep(&mut self, node: NodeId, lex: LexId, table: usize) {
        let trie = self.trie;
        let ends = self.lexicon.outcome(lex) != Lexicon::NONE;
        let std::ops::Range { start: mut at, end } = trie.below(node);
        while at < end {
            let own = self.tables.steps(table);
            let bytes = trie.bytes_of(at..end);
            let stays = Some(Step::Stay(lex));
            let run = bytes.iter().position(|&b| own[b as usize] != stays).unwrap_or(bytes.len());
            self.ids.extend(trie.tokens_of(at..at + run as u32).iter().map(|t| t.0));
            let Some(&byte) = bytes.get(run) else { return };
            at += run as u32;
            match own[byte as usize] {
                None => {
                    self.tables.step(self.lexicon, table, byte);
                    continue;
                }
                Some(Step::Stay(next)) => {
                    self.ids.extend(trie.tokens(NodeId(at)).iter().map(|t| t.0));
                    self.visit(NodeId(at), next);
                }
                _ if ends => self.ends.push((trie.parent(NodeId(at)), byte)),
                _ => {}
            }
            at = trie.below(NodeId(at)).end;
        }
    }

    /// The table of a state's transitions, where much is below a node.
    fn table(&mut self, node: NodeId, lex: LexId) -> Option<usize> {
        let size = self.trie.subtree_size(node);
        (size >= FEW).then(|| self.tables.place(self.lexicon, lex, size >= TABLE)).flatten()
    }
}

/// The ends of a walk by their nodes.
fn ends_of(mut found: Vec<(NodeId, u8)>) -> Vec<(NodeId, ByteSet)> {
    found.sort_unstable();
    let mut out: Vec<(NodeId, ByteSet)> = Vec::new();
    for (node, byte) in found {
        match out.last_mut() {
            Some((last, bytes)) if *last == node => bytes.insert(byte),
            _ => out.push((node, ByteSet::of(&[byte]))),
        }
    }
    out
}

/// What follows some ends, without the tokens `lost`.
fn exits_of(tokens: Tokens, mut ends: Vec<(NodeId, ByteSet)>, lost: &[u32]) -> Arc<[SuffixSetId]> {
    let Tokens { vocab, suffix_sets, suffixes, .. } = tokens;
    let trie = suffix_sets.trie(suffixes, vocab);
    let whole = std::ptr::eq(trie, vocab.trie()) && lost.is_empty();
    let (mut subtrees, mut tails) = (Vec::new(), SuffixList::without(lost));
    ends.sort_unstable_by_key(|e| e.0);
    for (node, beyond) in ends {
        let (bytes, nodes) = trie.children(node);
        let own = || bytes.iter().zip(nodes).filter(|k| beyond.has(*k.0));
        if whole && own().map(|k| trie.subtree_size(*k.1)).sum::<usize>() >= SUBTREE {
            subtrees.push((node, beyond));
            continue;
        }
        for (&byte, &child) in own() {
            tails.add(trie, child, &mut vec![byte]);
        }
    }
    let mut out: Vec<SuffixSetId> = Vec::new();
    if !tails.is_empty() {
        out.push(suffix_sets.merged(vocab, &tails));
    }
    for (node, beyond) in subtrees {
        let below = suffix_sets.below(vocab, node);
        out.push(suffix_sets.starting_with(vocab, below, &beyond));
    }
    out.into()
}

/// The exits of a language without the tokens that others take from it.
pub fn exits_without(tokens: Tokens, term: TermId, lost: &[u32]) -> Arc<[SuffixSetId]> {
    let WalkResult { ends, .. } =
        walk(tokens.lexicon, tokens.vocab, tokens.suffix_sets, tokens.suffixes, term);
    exits_of(tokens, ends, lost)
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
pub fn differ(tokens: Tokens, terms: (TermId, TermId), base: &Quotient) -> Option<Quotient> {
    let Tokens { lexicon, vocab, suffix_sets, suffixes } = tokens;
    let trie = suffix_sets.trie(suffixes, vocab);
    let (lex, under) = (lexicon.at(Spelling::Raw, terms.0), lexicon.at(Spelling::Raw, terms.1));
    let mut walk = QuotientDifference { lexicon, trie, dead: Vec::new(), lost: Vec::new(), early: false };
    walk.visit(suffixes.node, lex, under, Some(&suffixes.bytes));
    if walk.early {
        return None;
    }
    let QuotientDifference { dead, mut lost, .. } = walk;
    lost.extend(base.removed.iter().copied());
    crate::lists::sort_unique(&mut lost);
    Some(Quotient { within: base.within.minus_tokens(dead), exits: base.exits.clone(), removed: lost.into() })
}

struct QuotientDifference<'a> {
    lexicon: &'a mut Lexicon,
    trie: &'a Trie,
    /// Tokens that the other language reads to their end and this one does not.
    dead: Vec<u32>,
    /// Tokens that the other language ends in and this one does not.
    lost: Vec<u32>,
    early: bool,
}

impl QuotientDifference<'_> {
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
