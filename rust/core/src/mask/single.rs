//! One language against the rest of some tokens: which of them stay inside, and where the others leave.
//!
//! A lexeme is read by several languages side by side, in ever new combinations; what each does alone is found
//! once, and combinations are made of that ([`super::lexemes`]).
//!
//! A language without some words (names that are no keywords) differs from the language without the exception on
//! the paths of those words alone: it shares what leaves the other ([`differ`]).
//! Complexity: the nodes of the trie that the language reads; of a difference, those where the two are not the
//! same yet.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

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
/// Nodes below one from which on it is read by a table of all bytes.
const TABLE: usize = 64;

/// What a state does with each byte.
type Table = Rc<[Step; 256]>;

struct Ends<'a> {
    lexicon: &'a mut Lexicon,
    trie: &'a Trie,
    ids: Vec<u32>,
    ends: Vec<(NodeId, ByteSet)>,
    tables: FxHashMap<LexId, Table>,
}

/// Walks a rest with one language alone. Where it ends before the first byte is not told.
pub fn build(
    lexicon: &mut Lexicon,
    vocab: &Vocabulary,
    rests: &mut TokenSuffixSets,
    rest: TokenSuffixSet,
    term: TermId,
) -> Single {
    let Walked { mut words, ids, ends } = walk(lexicon, vocab, rests, rest, term);
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

/// What a walk finds: the tokens that stay inside, as a mask (or an empty one) and ids, and where others leave.
struct Walked {
    words: Vec<u32>,
    ids: Vec<u32>,
    ends: Vec<(NodeId, ByteSet)>,
}

fn walk(
    lexicon: &mut Lexicon,
    vocab: &Vocabulary,
    rests: &TokenSuffixSets,
    rest: TokenSuffixSet,
    term: TermId,
) -> Walked {
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
    let (words, mut ends) = walk.finish_texts();
    ends.remove(&rest.node);
    let mut walk = Ends {
        lexicon,
        trie,
        ids: Vec::new(),
        ends: ends.into_iter().collect(),
        tables: FxHashMap::default(),
    };
    begun.iter().for_each(|&(node, lex)| walk.visit(node, lex, None));
    ids.extend(walk.ids);
    Walked { words, ids, ends: walk.ends }
}

impl Ends<'_> {
    /// `table`: that of the state, where its parent's node had it.
    fn visit(&mut self, node: NodeId, lex: LexId, table: Option<Table>) {
        let (bytes, nodes) = self.trie.children(node);
        if bytes.is_empty() {
            return;
        }
        let table = table.or_else(|| self.table(lex, node));
        let mut beyond = ByteSet::default();
        for (&byte, &child) in bytes.iter().zip(nodes) {
            let step = match &table {
                Some(table) => table[byte as usize],
                None => self.lexicon.step(lex, byte),
            };
            match step {
                Step::Stay(next) => {
                    self.ids.extend(self.trie.tokens(child).iter().map(|t| t.0));
                    self.visit(child, next, table.as_ref().filter(|_| next == lex).cloned());
                }
                _ => beyond.insert(byte),
            }
        }
        if !beyond.is_empty() && self.lexicon.outcome(lex) != Lexicon::NONE {
            self.ends.push((node, beyond));
        }
    }

    /// All steps of a state that stands above many nodes.
    fn table(&mut self, lex: LexId, node: NodeId) -> Option<Table> {
        if self.trie.subtree_size(node) < TABLE {
            return None;
        }
        if let Some(known) = self.tables.get(&lex) {
            return Some(known.clone());
        }
        let table: Table = Rc::new(std::array::from_fn(|byte| self.lexicon.step(lex, byte as u8)));
        self.tables.insert(lex, table.clone());
        Some(table)
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
    let Walked { ends, .. } = walk(lexicon, vocab, rests, rest, term);
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
