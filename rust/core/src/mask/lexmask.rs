//! The mask of a lexical state: what it alone decides about the tokens below a node of the trie.
//!
//! A token either stays inside the lexeme (`within`: a function of the lexical state, whatever the grammar) or leaves it
//! at some node (`exits`); only from there on does the structure layer matter.  In a free string, with a vocabulary of
//! 131,072 tokens, 98.3 % of the tokens stay and 496 leave.
//! Invariant: two states of equal content ([`crate::lexical::content`]) have one such mask.
//! Complexity: the nodes below, or the differences from a state that is nearly the same.
//!
//! Finite sets of strings (keys, enumerations) and the trie are walked together, byte by byte: the cost is the number of
//! nodes that the two share, a tenth of the general walk's.  Where escapes may be written, those of the next characters
//! are walked beside them.

use std::sync::{Arc, OnceLock};

use super::any_text::AnyTextTable;
use super::charwalk::CharWalk;
use super::exits::{Exit, Exits};
use super::walk::{DifferenceWalk, Walk};
use super::within::Lengths;
use super::within::{SubtreeReading, Within};
use crate::lexical::comparison::Comparison;
use crate::lexical::term::Term;
use crate::lexical::{LexId, Lexicon, Spelling, Step};
use crate::vocab::{NodeId, Trie, Vocabulary};
use crate::work;

/// The part of a mask that belongs to (node, lexical state).
pub struct LexMask {
    pub within: Within,
    pub exits: Arc<Exits>,
    /// Exits of the set that this state does not have, or has with another outcome; sorted.
    pub missing: Box<[NodeId]>,
    /// The outcome of the shared exits in this state, if it is not their own.
    pub outcome: Option<Box<[u32]>>,
    /// Exits with another outcome than the shared ones.
    pub odd: Box<[Exit]>,
    /// Tokens within, by their length in code points; kept with masks that others are made from by differences.
    pub lengths: OnceLock<Arc<Lengths>>,
    /// What the tokens do in a string of any text; kept with that string's mask.
    plain: OnceLock<Arc<AnyTextTable>>,
}

/// Missing exits up to which a state shares the set of its base.
const FEW_MISSING: usize = 24;

impl LexMask {
    /// Walks the whole subtree: the slow part, done once for a (node, state).
    pub fn build(lexicon: &mut Lexicon, vocab: &Vocabulary, node: NodeId, lex: LexId) -> Self {
        let mut walk = Walk::new(lexicon, vocab, node);
        walk.visit(node, lex);
        let Walk { ids, exits, .. } = walk;
        Self::new(Within::of(ids, vocab), Arc::new(Exits::new(exits, vocab)))
    }

    /// The same by code points, for a state inside a string; `None` in the middle of a code point. `free` is
    /// the mask of the free string below the node.
    pub fn by_chars(at: SubtreeReading, free: Option<&LexMask>) -> Option<Self> {
        let SubtreeReading { lexicon, vocab, node, lex } = at;
        let words = free.and_then(|f| match &f.within {
            Within::Many(words) => Some(&words[..]),
            Within::Few(_) => None,
        });
        let (within, exits) = CharWalk::run(lexicon, vocab, node, lex, words)?.finish();
        if let (Some(free), Some(first)) = (free, exits.first()) {
            if free.exits.remainders.is_some() && exits.iter().all(|e| e.outcome == first.outcome) {
                let mut this = Self::new(within, free.exits.clone());
                this.outcome = Some(first.outcome.clone());
                let mut has = exits.iter().map(|e| e.node).peekable();
                let missing = free.exits.list.iter().map(|e| e.node);
                this.missing = missing.filter(|&n| has.next_if_eq(&n).is_none()).collect();
                if this.missing.len() <= FEW_MISSING || this.missing.len() * 2 <= free.exits.list.len() {
                    return Some(this);
                }
                let within = this.within;
                return Some(Self::new(within, Arc::new(Exits::new(exits, vocab))));
            }
        }
        Some(Self::new(within, Arc::new(Exits::new(exits, vocab))))
    }

    pub(super) fn new(within: Within, exits: Arc<Exits>) -> Self {
        LexMask {
            within,
            exits,
            missing: Box::new([]),
            outcome: None,
            odd: Box::new([]),
            lengths: OnceLock::new(),
            plain: OnceLock::new(),
        }
    }

    /// The mask of a state that allows no more than a base does. What stays inside follows from the lengths
    /// of the tokens, or is the same, or is found by a walk that skips every subtree within whose height the
    /// state is alive wherever the base is. `at.lex` and `under` are the two lexical states.
    pub fn differ(
        at: &mut SubtreeReading,
        under: LexId,
        base: &LexMask,
        how: Comparison,
        lengths: &Lengths,
    ) -> Self {
        let (vocab, node, lex) = (at.vocab, at.node, at.lex);
        let mut exits = KnownExits::Unknown;
        let within = match how.bounds {
            _ if how.alive => base.within.clone(),
            None if how.upto.is_some() && node == Trie::ROOT => {
                let upto = how.upto.expect("just looked at");
                return Self::endless(at, base, upto, lengths);
            }
            // every token comes near the bound: a walk of the state itself skips what dies at once
            Some((_, most)) if node == Trie::ROOT && most <= how.eccentricity => {
                let walk = CharWalk::run(at.lexicon, vocab, node, lex, None);
                walk.expect("no code point is begun at the root").finish().0
            }
            Some((_, most)) if node == Trie::ROOT => base.within.bounded(at, lengths, most, how.eccentricity),
            _ => {
                let mut walk = DifferenceWalk::new(at.lexicon, vocab, how.eccentricity);
                walk.visit(node, lex, under);
                let DifferenceWalk { dead, closed, unsure, .. } = walk;
                let within = base.within.minus(vocab, &dead);
                if !unsure {
                    exits = KnownExits::Missing { dead, closed };
                }
                within
            }
        };
        let single = at.lexicon.is_single(lex);
        let mut this = Self::new(within, base.exits.clone());
        match exits {
            KnownExits::Missing { dead, closed } if single => {
                let trie = vocab.trie();
                let gone = |exit: &&Exit| {
                    closed.binary_search(&exit.node).is_ok()
                        || dead.iter().any(|&d| trie.is_below(exit.node, d))
                };
                this.missing = base.exits.list.iter().filter(gone).map(|e| e.node).collect();
            }
            _ => match how.alive.then(|| missing_words(at)).flatten() {
                Some(ends) => this.miss_words(at, ends),
                None => this.compare_exits(at, base, how),
            },
        }
        this.missing = {
            let mut all: Vec<NodeId> = this.missing.iter().chain(base.missing.iter()).copied().collect();
            crate::lists::sort_unique(&mut all);
            all.into()
        };
        let renamed = this.outcome.is_some() && base.exits.remainders.is_none();
        if renamed || this.missing.len() > FEW_MISSING && this.missing.len() * 2 > base.exits.list.len() {
            this.own_exits(vocab);
        }
        this
    }

    /// The mask of a state that differs from the base only for texts longer than `upto`: longer tokens are
    /// tried.
    fn endless(at: &mut SubtreeReading, base: &LexMask, upto: u32, lengths: &Lengths) -> Self {
        let within = base.within.bounded(at, lengths, u32::MAX, u32::MAX - upto);
        let mut this = Self::new(within, base.exits.clone());
        this.outcome = base.outcome.clone();
        let (mut missing, mut odd) = (base.missing.to_vec(), Vec::new());
        for (exit, outcome) in base.all_exits() {
            let is_odd = base.odd.iter().any(|o| o.node == exit.node);
            if exit.length <= upto {
                odd.extend(is_odd.then(|| exit.clone()));
                continue;
            }
            let found = outcome_after(at, &exit.path(at.vocab.trie(), Trie::ROOT));
            if found.as_deref() == Some(outcome) {
                odd.extend(is_odd.then(|| exit.clone()));
                continue;
            }
            missing.extend((!is_odd).then_some(exit.node));
            odd.extend(found.map(|outcome| Exit { outcome, ..exit.clone() }));
        }
        missing.sort_unstable();
        this.missing = missing.into();
        this.odd = odd.into();
        this
    }

    /// Every string but some words: only their ends are missing. Exits with an escape are run.
    fn miss_words(&mut self, at: &mut SubtreeReading, mut missing: Vec<NodeId>) {
        let trie = at.vocab.trie();
        let mut escaped = self.exits.list.iter().filter(|e| e.escaped);
        missing.extend(
            escaped.by_ref().filter_map(|exit| {
                outcome_after(at, &exit.path(trie, at.node)).is_none().then_some(exit.node)
            }),
        );
        missing.retain(|n| self.exits.list.binary_search_by_key(n, |e| e.node).is_ok());
        self.missing = missing.into();
    }

    /// Runs the paths of the base's exits: those that the state has with its most frequent outcome are shared.
    fn compare_exits(&mut self, at: &mut SubtreeReading, base: &LexMask, how: Comparison) {
        let plain = how.eccentricity == 0 && at.lexicon.is_single(at.lex);
        if let (Some((least, most)), true) = (how.bounds, plain) {
            let out = |e: &&Exit| e.length < least || e.length > most;
            self.missing = self.exits.list.iter().filter(out).map(|e| e.node).collect();
            return;
        }
        let mut found: Vec<(NodeId, Option<Box<[u32]>>)> = Vec::with_capacity(base.exits.list.len());
        let mut counts: rustc_hash::FxHashMap<Box<[u32]>, usize> = Default::default();
        for exit in &base.exits.list {
            let outcome = outcome_after(at, &exit.path(at.vocab.trie(), at.node));
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

    /// Replaces the shared exits by the state's own, where most of them are missing.
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

    /// The exits of the state, each with the languages that accept there.
    pub fn all_exits(&self) -> impl Iterator<Item = (&Exit, &[u32])> {
        let own = |e: &&Exit| self.missing.binary_search(&e.node).is_err();
        let shared = self.exits.list.iter().filter(own);

        shared
            .map(|e| (e, self.outcome.as_deref().unwrap_or(&e.outcome)))
            .chain(self.odd.iter().map(|e| (e, &*e.outcome)))
    }

    /// Lengths of the vocabulary's tokens, from the mask of the free string.
    pub fn lengths(&self, vocab: &Vocabulary, lexicon: &mut Lexicon, lex: LexId) -> Arc<Lengths> {
        self.lengths.get_or_init(|| Arc::new(Lengths::measure(vocab, lexicon, lex))).clone()
    }

    /// What the tokens do in a string of any text of a spelling, from the mask of that.
    pub(super) fn plain(&self, vocab: &Vocabulary, spelling: Spelling) -> Arc<AnyTextTable> {
        self.plain.get_or_init(|| Arc::new(AnyTextTable::new(vocab, spelling))).clone()
    }

    /// The mask's bytes; of what it shares with others, its part.
    pub fn bytes(&self) -> usize {
        let odd = self.odd.iter().map(Exit::bytes).sum::<usize>();
        self.within.bytes()
            + self.missing.len() * 4
            + odd
            + self.exits.bytes() / Arc::strong_count(&self.exits)
            + self.lengths.get().map_or(0, |lengths| lengths.bytes() / Arc::strong_count(lengths))
            + self.plain.get().map_or(0, |plain| plain.bytes() / Arc::strong_count(plain))
            + 192
    }
}

/// What the walk of what stays inside shows of a state's exits.
enum KnownExits {
    Unknown,
    Missing { dead: Vec<NodeId>, closed: Vec<NodeId> },
}

/// The ends of the words that a state lacks, where it is every string but some words.
fn missing_words(at: &mut SubtreeReading) -> Option<Vec<NodeId>> {
    let (trie, node) = (at.vocab.trie(), at.node);
    let (_, term) = at.lexicon.term(at.lex)?;
    let words = at.lexicon.terms.missing_words(term, &mut |begun| trie.spells(node, begun).is_some())?;
    let ends = words.iter().filter_map(|word| trie.child(trie.spells(node, word)?, b'"'));
    Some(ends.collect())
}

/// The languages that accept when the lexeme is closed after these bytes.
fn outcome_after(at: &mut SubtreeReading, path: &[u8]) -> Option<Box<[u32]>> {
    let (lexicon, mut lex) = (&mut *at.lexicon, at.lex);
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

struct WordSetWalk<'a> {
    trie: &'a Trie,
    /// Which characters may be written as escapes.
    spelling: Spelling,
    /// Bytes of the words that were read before the node.
    from: usize,
    outcome: Box<[u32]>,
    ids: Vec<u32>,
    exits: Vec<Exit>,
}

/// The mask of a set of words none of which needs an escape; `None` for other languages.
pub(super) fn of_words(
    lexicon: &mut Lexicon,
    vocab: &Vocabulary,
    node: NodeId,
    lex: LexId,
) -> Option<LexMask> {
    let (spelling, term) = lexicon.term(lex).filter(|known| known.0 != Spelling::Raw)?;
    let Term::Words(set) = *lexicon.terms.get(term) else { return None };
    if !lexicon.terms.words_are_plain(set) {
        return None;
    }
    let mut shared = WordSetWalk {
        trie: vocab.trie(),
        spelling,
        from: set.depth as usize,
        outcome: lexicon.outcome_list(Lexicon::FIRST).into(),
        ids: Vec::new(),
        exits: Vec::new(),
    };
    shared.visit(lexicon.terms.word_slice(set), set.depth as usize, node, false);
    let WordSetWalk { mut ids, mut exits, .. } = shared;
    // a partly read escape may be one of several characters
    crate::lists::sort_unique(&mut ids);
    exits.sort_unstable_by_key(|e| e.node);
    Some(LexMask::new(Within::of(ids, vocab), Arc::new(Exits::new(exits, vocab))))
}

/// A character as its escape, without the first backslash, and the length of that.
fn escaped(c: char) -> ([u8; 11], usize) {
    let mut text = *b"u0000\\u0000";
    let mut units = [0; 2];
    let units = c.encode_utf16(&mut units);
    for (&unit, digits) in units.iter().zip([1, 7]) {
        for (i, digit) in text[digits..digits + 4].iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[unit as usize >> (12 - 4 * i) & 15];
        }
    }
    (text, 6 * units.len() - 1)
}

impl WordSetWalk<'_> {
    /// `words` share the first `depth` bytes, and `node` is where those lead; `escaped`: some of them are
    /// written as an escape.
    fn visit(&mut self, mut words: &[Box<str>], depth: usize, node: NodeId, escaped: bool) {
        work::spend(2);
        let first = &words[0];
        if first.len() == depth {
            if let Some(node) = self.trie.child(node, b'"') {
                self.exits.push(Exit {
                    node,
                    length: first[self.from..].chars().count() as u32,
                    escaped,
                    outcome: self.outcome.clone(),
                    closed: true,
                    beyond: [].into(),
                    grouped: false,
                });
            }
            words = &words[1..];
        }
        if self.spelling != Spelling::Json && words.first().is_some_and(|w| w.is_char_boundary(depth)) {
            if let Some(slash) = self.trie.child(node, b'\\') {
                self.escape(words, depth, slash);
            }
        }
        while let Some(word) = words.first() {
            let byte = word.as_bytes()[depth];
            let same = words.partition_point(|w| w.as_bytes()[depth] <= byte);
            let (same, others) = words.split_at(same);
            if let Some(child) = self.trie.child(node, byte) {
                self.ids.extend(self.trie.tokens(child).iter().map(|t| t.0));
                self.visit(same, depth + 1, child, escaped);
            }
            words = others;
        }
    }

    /// The next character as an escape; `node` is where the backslash leads.
    fn escape(&mut self, mut words: &[Box<str>], depth: usize, node: NodeId) {
        let spelling = self.spelling;
        let mut begun = false;
        while let Some(c) = words.first().and_then(|word| word[depth..].chars().next()) {
            let same = words.partition_point(|w| w[depth..].starts_with(c));
            let (same, others) = words.split_at(same);
            let depth = depth + c.len_utf8();
            let (digits, slash) = (spelling.has_digits_of(c as u32), c == '/' && spelling.has_slash());
            if digits {
                let (text, length) = escaped(c);
                self.spelled(same, depth, node, &text[..length]);
            }
            if slash {
                self.spelled(same, depth, node, b"/");
            }
            begun |= digits || slash;
            words = others;
        }
        if begun {
            self.ids.extend(self.trie.tokens(node).iter().map(|t| t.0));
        }
    }

    /// The rest of an escape, its digits in either case where the spelling allows capitals.
    fn spelled(&mut self, words: &[Box<str>], depth: usize, node: NodeId, rest: &[u8]) {
        let Some((&byte, rest)) = rest.split_first() else { return self.visit(words, depth, node, true) };
        // the `u` of an escape is no digit
        let capital = byte.to_ascii_uppercase();
        let one = capital == byte || byte == b'u' || !self.spelling.has_capitals();
        let cases = if one { &[byte][..] } else { &[byte, capital] };
        for child in cases.iter().filter_map(|&b| self.trie.child(node, b)) {
            self.ids.extend(self.trie.tokens(child).iter().map(|t| t.0));
            self.spelled(words, depth, child, rest);
        }
    }
}
