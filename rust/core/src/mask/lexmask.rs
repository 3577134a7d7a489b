//! What the lexical state alone decides about the tokens below a node of the trie.
//!
//! A token either stays inside the lexeme (`within`: a function of the lexical state, whatever the grammar) or
//! leaves it at some node (`exits`); only from there on does the structure layer matter.  In a free string of a
//! 131,072-token vocabulary 98.3 % of the tokens stay, and 496 leave.

use std::sync::{Arc, OnceLock};

use crate::lexical::base::Base;
use crate::lexical::spell::OutcomeId;
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::{NodeId, TokenId, Trie, Vocabulary};

/// The tokens that stay inside.
#[derive(Clone)]
pub enum Within {
    /// Sorted ids.
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
    /// Code points of the path.
    pub length: u32,
    /// The languages that accept there.
    pub outcome: Box<[u32]>,
    /// The closing byte was read: the structure goes on below `node`.
    pub closed: bool,
    /// Otherwise: the children of `node` that the lexeme can't read, which the structure reads.
    pub beyond: Box<[(u8, NodeId)]>,
    /// The exit is part of a [`Group`].
    pub grouped: bool,
}

/// The part of a mask that belongs to (node, lexical state).
pub struct LexMask {
    pub within: Within,
    pub exits: Arc<Exits>,
    /// Exits of the set that this state does not have, or has with another outcome; sorted.
    pub missing: Box<[NodeId]>,
    /// The outcome of the shared exits, where it is not their own.
    pub outcome: Option<Box<[u32]>>,
    /// Exits with another outcome than the shared ones.
    pub odd: Box<[Exit]>,
    /// Tokens within, by their length in code points; kept with masks that others are told from.
    pub lengths: OnceLock<Arc<Lengths>>,
}

/// Code points of every token of the vocabulary, spelled in a JSON string; 0 for those that are not whole.
pub struct Lengths {
    of: Vec<u16>,
    /// Masks of the tokens of at most n code points.
    upto: Vec<OnceLock<Box<[u32]>>>,
}

/// A set of exits; states that differ in few of them share it.
pub struct Exits {
    pub list: Vec<Exit>,
    /// Exits with one outcome and a closing byte: the tokens' remainders, merged into one trie.
    pub remainders: Option<Remainders>,
    /// Exits without a closing byte, by their outcome: what follows the lexeme in the tokens, merged.
    pub groups: Vec<Remainders>,
    /// Tells exit sets apart in memo tables.
    pub id: u64,
}

/// A trie of what follows the lexeme (its closing byte, where it has one) in the tokens that hold its end.
pub struct Remainders {
    pub trie: Trie,
    pub outcome: Box<[u32]>,
}

/// Tokens from which on a list is kept as a mask.
const MANY: usize = 4096;

/// Exits from which on a group is merged, and nodes of the trie that a merged group may have.
const GROUP: usize = 4;
const GROUP_NODES: usize = 30_000;

/// Missing exits up to which a state shares the set of its base.
const FEW_MISSING: usize = 24;

impl LexMask {
    /// Walks the whole subtree: the slow part, done once for a (node, state).
    pub fn build(lexicon: &mut Lexicon, vocab: &Vocabulary, node: NodeId, lex: LexId) -> Self {
        let mut walk = Walk::new(lexicon, vocab);
        walk.visit(node, lex);
        let Walk { ids, exits, .. } = walk;
        Self::new(Within::of(ids, vocab), Arc::new(Exits::new(exits, vocab)))
    }

    fn new(within: Within, exits: Arc<Exits>) -> Self {
        LexMask {
            within,
            exits,
            missing: Box::new([]),
            outcome: None,
            odd: Box::new([]),
            lengths: OnceLock::new(),
        }
    }

    /// The mask of a state that allows no more than a base does. What stays inside is told by the lengths of the
    /// tokens, or known to be the same, or found by a walk that leaves out every subtree within whose height the
    /// state lives as long as the base does. `at` are the lexical states of the two.
    pub fn differ(
        lexicon: &mut Lexicon,
        vocab: &Vocabulary,
        node: NodeId,
        at: (LexId, LexId),
        base: &LexMask,
        how: Base,
        lengths: &Lengths,
    ) -> Self {
        let mut exits = ExitsOf::Unknown;
        let within = match how.bounds {
            _ if how.alive => base.within.clone(),
            Some((_, most)) if node == Trie::ROOT => {
                base.within.bounded(lexicon, vocab, at.0, lengths, most, how.reach)
            }
            _ => {
                let mut walk = Difference::new(lexicon, vocab, how.reach);
                walk.visit(node, at.0, at.1);
                let Difference { dead, closed, unsure, .. } = walk;
                let within = base.within.minus(vocab, &dead);
                if !unsure {
                    exits = ExitsOf::Missing { dead, closed };
                }
                within
            }
        };
        let single = lexicon.is_single(at.0);
        let mut this = Self::new(within, base.exits.clone());
        match exits {
            ExitsOf::Missing { dead, closed } if single => {
                let trie = vocab.trie();
                let gone = |exit: &&Exit| {
                    closed.binary_search(&exit.node).is_ok()
                        || dead.iter().any(|&d| trie.is_below(exit.node, d))
                };
                this.missing = base.exits.list.iter().filter(gone).map(|e| e.node).collect();
            }
            _ => this.compare_exits(lexicon, at.0, base, how),
        }
        this.missing = {
            let mut all: Vec<NodeId> = this.missing.iter().chain(base.missing.iter()).copied().collect();
            all.sort_unstable();
            all.dedup();
            all.into()
        };
        let renamed = this.outcome.is_some() && base.exits.remainders.is_none();
        if renamed || this.missing.len() > FEW_MISSING && this.missing.len() * 2 > base.exits.list.len() {
            this.own_exits(vocab);
        }
        this
    }

    /// Runs the paths of the base's exits: those that the state has with its most frequent outcome are shared.
    fn compare_exits(&mut self, lexicon: &mut Lexicon, lex: LexId, base: &LexMask, how: Base) {
        let plain = how.reach == 0 && lexicon.is_single(lex);
        if let (Some((least, most)), true) = (how.bounds, plain) {
            let out = |e: &&Exit| e.length < least || e.length > most;
            self.missing = self.exits.list.iter().filter(out).map(|e| e.node).collect();
            return;
        }
        let mut found: Vec<(NodeId, Option<Box<[u32]>>)> = Vec::with_capacity(base.exits.list.len());
        let mut counts: rustc_hash::FxHashMap<Box<[u32]>, usize> = Default::default();
        for exit in &base.exits.list {
            let outcome = outcome_after(lexicon, lex, &exit.path);
            if let Some(outcome) = &outcome {
                *counts.entry(outcome.clone()).or_default() += 1;
            }
            found.push((exit.node, outcome));
        }
        let usual = counts.into_iter().max_by_key(|(list, n)| (*n, list.len())).map(|c| c.0);
        self.missing = found.iter().filter(|f| f.1 != usual || usual.is_none()).map(|f| f.0).collect();
        self.odd = base
            .exits
            .list
            .iter()
            .zip(&found)
            .filter(|(_, f)| f.1.is_some() && f.1 != usual)
            .map(|(exit, f)| Exit { outcome: f.1.clone().unwrap_or_default(), ..exit.clone() })
            .collect();
        self.outcome = usual;
    }

    /// Takes leave of the shared exits where most of them are missing.
    fn own_exits(&mut self, vocab: &Vocabulary) {
        let kept = self.exits.list.iter().filter(|e| self.missing.binary_search(&e.node).is_err());
        let mut list: Vec<Exit> = kept.cloned().collect();
        if let Some(outcome) = self.outcome.take() {
            list.iter_mut().for_each(|e| e.outcome = outcome.clone());
        }
        list.extend(std::mem::take(&mut self.odd).into_vec());
        self.exits = Arc::new(Exits::new(list, vocab));
        self.missing = Box::new([]);
    }

    /// Lengths of the vocabulary's tokens, from the mask of the free string.
    pub fn lengths(&self, vocab: &Vocabulary, lexicon: &mut Lexicon, lex: LexId) -> Arc<Lengths> {
        self.lengths.get_or_init(|| Arc::new(Lengths::measure(vocab, lexicon, lex))).clone()
    }

    pub fn bytes(&self) -> usize {
        let within = match &self.within {
            Within::Few(ids) => ids.len() * 4,
            Within::Many(words, _) => words.len() * 4,
        };
        within + self.missing.len() * 4 + self.exits.bytes() + 64
    }
}

/// What is known of a state's exits beside the walk of what stays inside.
enum ExitsOf {
    Unknown,
    Missing { dead: Vec<NodeId>, closed: Vec<NodeId> },
}

/// The languages that accept when the lexeme is closed after these bytes.
fn outcome_after(lexicon: &mut Lexicon, mut lex: LexId, path: &[u8]) -> Option<Box<[u32]>> {
    for &byte in path {
        match lexicon.step(lex, byte) {
            Step::Stay(next) => lex = next,
            _ => return None,
        }
    }
    match lexicon.step(lex, b'"') {
        Step::Close => {
            let outcome = lexicon.outcome(lex);
            Some(lexicon.outcome_list(outcome).into())
        }
        _ => None,
    }
}

impl Lengths {
    /// Walks the trie once from the state of the free string: a code point is whole when that state returns.
    fn measure(vocab: &Vocabulary, lexicon: &mut Lexicon, free: LexId) -> Self {
        let mut of = vec![0u16; vocab.size()];
        let mut stack = vec![(Trie::ROOT, free, 0u16)];
        while let Some((node, lex, length)) = stack.pop() {
            let (bytes, nodes) = vocab.trie().children(node);
            for (&byte, &child) in bytes.iter().zip(nodes) {
                if let Step::Stay(next) = lexicon.step(lex, byte) {
                    // a code point that was begun counts: it will need its place
                    let longer = length + (lex == free) as u16;
                    for token in vocab.trie().tokens(child) {
                        of[token.0 as usize] = longer;
                    }
                    stack.push((child, next, longer));
                }
            }
        }
        let longest = of.iter().copied().max().unwrap_or(0) as usize;
        Lengths { of, upto: (0..=longest).map(|_| OnceLock::new()).collect() }
    }

    /// The tokens of at most `most` code points; `None`: all.
    fn upto(&self, most: u32) -> Option<&[u32]> {
        if most as usize + 1 >= self.upto.len() {
            return None;
        }
        let mask = self.upto[most as usize].get_or_init(|| {
            let mut words = vec![0u32; self.of.len().div_ceil(32)];
            for (id, &length) in self.of.iter().enumerate() {
                words[id >> 5] |= ((length as u32 <= most) as u32) << (id & 31);
            }
            words.into()
        });
        Some(mask)
    }

    /// The tokens of these lengths.
    fn between(&self, above: u32, most: u32) -> Vec<u32> {
        let fits = |&(_, &length): &(usize, &u16)| length as u32 > above && length as u32 <= most;
        self.of.iter().enumerate().filter(fits).map(|(id, _)| id as u32).collect()
    }
}

impl Within {
    fn of(mut ids: Vec<u32>, vocab: &Vocabulary) -> Self {
        if ids.len() <= MANY {
            ids.sort_unstable();
            return Within::Few(ids.into());
        }
        let mut words = vec![0u32; vocab.mask_words()];
        for &id in &ids {
            words[id as usize >> 5] |= 1 << (id & 31);
        }
        Within::Many(words.into(), ids.len())
    }

    /// The tokens of at most `most` code points; those that come within `reach` of the bound are tried.
    fn bounded(
        &self,
        lexicon: &mut Lexicon,
        vocab: &Vocabulary,
        lex: LexId,
        lengths: &Lengths,
        most: u32,
        reach: u32,
    ) -> Self {
        let sure = most.saturating_sub(reach);
        let has = |id: u32| match self {
            Within::Few(ids) => ids.binary_search(&id).is_ok(),
            Within::Many(words, _) => words[id as usize >> 5] >> (id & 31) & 1 == 1,
        };
        let near: Vec<u32> = if reach == 0 || lengths.upto(sure).is_none() {
            Vec::new()
        } else {
            let near = lengths.between(sure, most).into_iter();
            near.filter(|&id| has(id) && stays(lexicon, lex, vocab.token(TokenId(id)))).collect()
        };
        let Some(upto) = lengths.upto(sure) else { return self.clone() };
        let mut words = match self {
            Within::Few(ids) => {
                let short = |&id: &u32| upto[id as usize >> 5] >> (id & 31) & 1 == 1;
                let mut ids: Vec<u32> = ids.iter().copied().filter(short).collect();
                ids.extend(near);
                ids.sort_unstable();
                return Within::Few(ids.into());
            }
            Within::Many(words, _) => words.iter().zip(upto).map(|(a, b)| a & b).collect::<Vec<u32>>(),
        };
        for id in near {
            words[id as usize >> 5] |= 1 << (id & 31);
        }
        Self::of_words(words, vocab)
    }

    fn of_words(words: Vec<u32>, vocab: &Vocabulary) -> Self {
        let count = words.iter().map(|w| w.count_ones() as usize).sum();
        if count > MANY {
            return Within::Many(words.into(), count);
        }
        Within::Few(super::row::Mask::Dense(words.into()).ids(vocab.mask_words()).into())
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
                Self::of_words(words, vocab)
            }
        }
    }
}

/// Whether all bytes stay inside the lexeme.
fn stays(lexicon: &mut Lexicon, mut lex: LexId, bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| match lexicon.step(lex, byte) {
        Step::Stay(next) => {
            lex = next;
            true
        }
        _ => false,
    })
}

impl Exits {
    fn new(list: Vec<Exit>, vocab: &Vocabulary) -> Self {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let remainders = Remainders::merge(vocab, &list);
        let mut list = list;
        let groups = Remainders::group(vocab, &mut list);
        Exits { list, remainders, groups, id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    fn bytes(&self) -> usize {
        let merged: usize = self.remainders.iter().chain(&self.groups).map(|r| r.trie.len() * 24).sum();
        merged + self.list.iter().map(|e| 96 + e.path.len() + e.beyond.len() * 8).sum::<usize>() + 64
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

impl<'a> Difference<'a> {
    fn new(lexicon: &'a mut Lexicon, vocab: &'a Vocabulary, reach: u32) -> Self {
        Difference { lexicon, vocab, reach, dead: Vec::new(), closed: Vec::new(), unsure: false }
    }

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
        let alive = terms.keeps_alive(t, b, self.reach, height);
        self.unsure |= alive;
        alive
    }
}

/// A state of a walk, taken apart for nodes that are visited often.
struct Known {
    lex: LexId,
    string: bool,
    /// At the border of a code point.
    whole: bool,
    table: Box<[Step; 256]>,
}

struct Walk<'a> {
    lexicon: &'a mut Lexicon,
    vocab: &'a Vocabulary,
    ids: Vec<u32>,
    exits: Vec<Exit>,
    path: Vec<u8>,
    length: u32,
    known: Vec<Known>,
    /// Place of a state in `known`; the one used last is tried first, since most nodes of a walk share it.
    places: rustc_hash::FxHashMap<LexId, usize>,
    last: usize,
}

impl<'a> Walk<'a> {
    fn new(lexicon: &'a mut Lexicon, vocab: &'a Vocabulary) -> Self {
        Walk {
            lexicon,
            vocab,
            ids: Vec::new(),
            exits: Vec::new(),
            path: Vec::new(),
            length: 0,
            known: Vec::new(),
            places: Default::default(),
            last: usize::MAX,
        }
    }

    fn place(&mut self, lex: LexId, children: usize) -> Option<usize> {
        if self.known.get(self.last).is_some_and(|k| k.lex == lex) {
            return Some(self.last);
        }
        if let Some(&at) = self.places.get(&lex) {
            self.last = at;
            return Some(at);
        }
        if children < 16 || self.known.len() > 256 {
            return None;
        }
        let mut table = Box::new([Step::Dead; 256]);
        for (byte, slot) in (0u8..=255).zip(table.iter_mut()) {
            *slot = self.lexicon.step(lex, byte);
        }
        let (string, whole) = (self.lexicon.is_string(lex), self.lexicon.term(lex).is_some());
        self.known.push(Known { lex, string, whole, table });
        self.last = self.known.len() - 1;
        self.places.insert(lex, self.last);
        Some(self.last)
    }

    fn visit(&mut self, node: NodeId, lex: LexId) {
        let trie = self.vocab.trie();
        let (bytes, nodes) = trie.children(node);
        if bytes.is_empty() {
            return;
        }
        let place = self.place(lex, bytes.len());
        let (string, whole) = match place {
            Some(at) => (self.known[at].string, self.known[at].whole),
            None => (self.lexicon.is_string(lex), self.lexicon.term(lex).is_some()),
        };
        let mut beyond: Vec<(u8, NodeId)> = Vec::new();
        for (&byte, &child) in bytes.iter().zip(nodes) {
            let step = match place {
                Some(at) => self.known[at].table[byte as usize],
                None => self.lexicon.step(lex, byte),
            };
            match step {
                Step::Dead => beyond.push((byte, child)),
                Step::Close => {
                    let outcome = self.lexicon.outcome(lex);
                    self.exit(child, outcome, true, Vec::new());
                }
                Step::Stay(next) => {
                    self.ids.extend(trie.tokens(child).iter().map(|t| t.0));
                    self.path.push(byte);
                    self.length += whole as u32;
                    self.visit(child, next);
                    self.length -= whole as u32;
                    self.path.pop();
                }
            }
        }
        if !beyond.is_empty() && !string {
            let outcome = self.lexicon.outcome(lex);
            if outcome != Lexicon::NONE {
                self.exit(node, outcome, false, beyond);
            }
        }
    }

    fn exit(&mut self, node: NodeId, outcome: OutcomeId, closed: bool, beyond: Vec<(u8, NodeId)>) {
        let outcome = self.lexicon.outcome_list(outcome).into();
        let path = self.path.as_slice().into();
        let exit =
            Exit { node, path, length: self.length, outcome, closed, beyond: beyond.into(), grouped: false };
        self.exits.push(exit);
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

    /// Merges the exits without a closing byte that share their outcome.
    fn group(vocab: &Vocabulary, exits: &mut [Exit]) -> Vec<Self> {
        let trie = vocab.trie();
        let mut by_outcome: rustc_hash::FxHashMap<Box<[u32]>, (usize, usize)> = Default::default();
        for exit in exits.iter_mut().filter(|e| !e.closed) {
            exit.grouped = false;
            let size: usize = exit.beyond.iter().map(|&(_, n)| trie.subtree_size(n)).sum();
            let entry = by_outcome.entry(exit.outcome.clone()).or_default();
            *entry = (entry.0 + 1, entry.1 + size);
        }
        by_outcome.retain(|_, &mut (count, size)| count >= GROUP && size <= GROUP_NODES);
        let mut tails: rustc_hash::FxHashMap<Box<[u32]>, Vec<(Box<[u8]>, TokenId)>> = Default::default();
        for exit in exits.iter_mut().filter(|e| !e.closed && by_outcome.contains_key(&e.outcome)) {
            exit.grouped = true;
            let out = tails.entry(exit.outcome.clone()).or_default();
            for &(byte, node) in exit.beyond.iter() {
                collect(trie, node, &mut vec![byte], out);
            }
        }
        let merged = tails.into_iter().map(|(outcome, tails)| Remainders {
            trie: Trie::new(tails.iter().map(|(bytes, id)| (id.0, bytes))),
            outcome,
        });
        merged.collect()
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
