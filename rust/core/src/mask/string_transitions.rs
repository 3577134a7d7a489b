//! What the tokens do in a string: the lexical states that they lead to, and where they leave the string.
//!
//! Nearly all states of strings treat every code point alike (any text, a text of bounded length, a key that
//! no schema names). There a token's effect depends only on its number of code points and on how the last one
//! is cut off. That is computed once per vocabulary ([`super::any_text`]) and looked up for each state. Only
//! escapes, and the nodes above such states, are walked.
//! Invariant: the answers are those of a walk of every token, byte by byte.
//! Complexity: the nodes above such states, the escapes, and one step per group.
//! Memory: some 2 MB per vocabulary of 131,072 tokens, kept with the mask of its free string; for a state
//! only its own part.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::any_text::{AnyTextTable, TokenGroup};
use crate::lexical::spell::OutcomeId;
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::{NodeId, TokenId, TokenSet, Trie, Vocabulary};
use crate::{heap_size, work};

/// A lexical state, and beside it that of languages which distinguish the texts ([`Lexicon::DEAD`]: there are
/// none).
pub(super) type StatePair = (LexId, LexId);

/// What the tokens do in one state.
pub(super) struct StringTransitions {
    pub groups: Vec<(StatePair, TokenGroup)>,
    /// After the quotes that close it: the node, the state before the quote, and whether an escape was read.
    pub exits: Vec<(NodeId, StatePair, bool)>,
    /// Quotes without an escape before them, all of which close it in one state.
    pub shared: Option<SharedExits>,
    /// Tokens that stay inside and contain a backslash.
    pub escaped: Vec<TokenId>,
}

/// The exits of [`AnyTextTable`] at one state.
pub(super) struct SharedExits {
    pub kind: StatePair,
    plain: Arc<AnyTextTable>,
    /// Tokens that are excluded, as words of a mask.
    pub excluded: Option<Box<[u32]>>,
}

impl SharedExits {
    /// What follows the quotes in the tokens.
    pub fn tails(&self) -> &Trie {
        &self.plain.tails
    }

    /// The nodes of the quotes.
    pub fn nodes<'a>(&'a self, trie: &'a Trie) -> impl Iterator<Item = NodeId> + 'a {
        let excluded = |node: NodeId| match (&self.excluded, trie.subtree_tokens(node).first()) {
            (Some(excluded), Some(token)) => excluded.allows(token.0),
            _ => false,
        };
        self.plain.exits.iter().map(|e| e.0).filter(move |&node| !excluded(node))
    }

    /// Whether a token after one of the quotes is not excluded.
    pub fn has(&self, id: u32) -> bool {
        self.excluded.as_ref().is_none_or(|excluded| !excluded.allows(id))
    }
}

impl StringTransitions {
    /// `plain`: what the tokens do in a string of any text of the state's spelling.
    pub fn new(
        lexicon: &mut Lexicon,
        vocab: &Vocabulary,
        plain: &Arc<AnyTextTable>,
        kind: StatePair,
    ) -> Self {
        // the same work whatever is known already
        work::spend((plain.escapes.len() + plain.by_length.len()) as u64);
        let mut walk = TransitionWalk {
            lexicon,
            vocab,
            plain,
            places: FxHashMap::default(),
            lists: Vec::new(),
            exits: Vec::new(),
            escaped: Vec::new(),
            uniform: None,
            uniform_below: Vec::new(),
            excluded: Vec::new(),
        };
        if let Some(states) = walk.states_of_lengths(kind) {
            return walk.by_length(&states);
        }
        if walk.uniform_successor(kind) == Some(kind) {
            walk.uniform = Some(kind);
            walk.uniform_below.push(Trie::ROOT);
        } else {
            walk.visit(Trie::ROOT, kind, false);
        }
        walk.by_tail()
    }

    pub fn bytes(&self) -> usize {
        let groups: usize = self.groups.iter().map(|g| g.1.bytes()).sum();
        let excluded = self
            .shared
            .iter()
            .flat_map(|s| &s.excluded)
            .map(|excluded| heap_size::slice(excluded))
            .sum::<usize>();
        groups + excluded + heap_size::slice(&self.exits) + heap_size::slice(&self.escaped)
    }
}

struct TransitionWalk<'a> {
    lexicon: &'a mut Lexicon,
    vocab: &'a Vocabulary,
    plain: &'a Arc<AnyTextTable>,
    places: FxHashMap<StatePair, usize>,
    lists: Vec<(StatePair, Vec<u32>)>,
    exits: Vec<(NodeId, StatePair, bool)>,
    escaped: Vec<TokenId>,
    /// A state with a self-loop under every code point, and the nodes that lead to it.
    uniform: Option<StatePair>,
    uniform_below: Vec<NodeId>,
    /// The tokens that are not below those nodes.
    excluded: Vec<u32>,
}

/// Where a byte leads.
enum StringStep {
    Stay(StatePair),
    Close,
    Dead,
}

impl TransitionWalk<'_> {
    fn step(&mut self, (lex, beside): StatePair, byte: u8) -> StringStep {
        match self.lexicon.step(lex, byte) {
            Step::Dead => StringStep::Dead,
            Step::Close => StringStep::Close,
            Step::Stay(lex) if beside == Lexicon::DEAD => StringStep::Stay((lex, beside)),
            Step::Stay(lex) => match self.lexicon.step(beside, byte) {
                Step::Stay(beside) => StringStep::Stay((lex, beside)),
                _ => unreachable!("languages that tell texts apart have all texts"),
            },
        }
    }

    /// The state after bytes that stay inside.
    fn run(&mut self, kind: StatePair, bytes: &[u8]) -> Option<StatePair> {
        bytes.iter().try_fold(kind, |at, &byte| match self.step(at, byte) {
            StringStep::Stay(next) => Some(next),
            _ => None,
        })
    }

    /// The one target of all code points that a string may contain without an escape.
    fn next_of(&mut self, lex: LexId) -> Option<LexId> {
        self.lexicon.term(lex)?;
        let row = self.lexicon.row(lex);
        let (mut from, mut next) = (0, None);
        for &(end, to) in row.iter() {
            let meant = end >= 0x20 && !(from >= 0xD800 && end < 0xE000);
            if meant && next.is_some_and(|next| next != to) {
                return None;
            }
            next = if meant { Some(to) } else { next };
            from = end.saturating_add(1);
        }
        next
    }

    fn uniform_successor(&mut self, kind: StatePair) -> Option<StatePair> {
        let lex = self.next_of(kind.0)?;
        match kind.1 {
            Lexicon::DEAD => Some((lex, kind.1)),
            beside => Some((lex, self.next_of(beside)?)),
        }
    }

    /// The states after 0, 1, 2, ... code points, where their number alone decides; fewer where the text
    /// becomes too long.
    fn states_of_lengths(&mut self, kind: StatePair) -> Option<Vec<StatePair>> {
        let mut states = vec![kind];
        // one more: the last code point may be cut off
        for i in 0..=self.plain.longest as usize {
            let next = self.uniform_successor(states[i])?;
            if next == kind {
                return None;
            }
            if next.0 == Lexicon::DEAD {
                break;
            }
            states.push(next);
        }
        Some(states)
    }

    fn by_length(mut self, states: &[StatePair]) -> StringTransitions {
        let (vocab, plain) = (self.vocab, self.plain.clone());
        let mut groups = Vec::new();
        for group in &plain.by_length {
            if let Some(to) = self.run(states[0], vocab.text_of(group.first)) {
                groups.push((to, group.clone()));
            }
        }
        for &(node, length) in &plain.escapes {
            if let Some(&kind) = states.get(length as usize) {
                self.escape(node, kind);
            }
        }
        // quotes that close it with one outcome are treated together
        let mut ends: Vec<Option<(StatePair, (OutcomeId, OutcomeId))>> = Vec::new();
        for &kind in states {
            let outcome = (self.lexicon.outcome(kind.0), self.lexicon.outcome(kind.1));
            ends.push((outcome.0 != Lexicon::NONE).then_some((kind, outcome)));
        }
        // tokens with escapes are not among the shared quotes
        self.excluded.clear();
        let end = |length: u32| ends.get(length as usize).copied().flatten();
        let mut counts: FxHashMap<(OutcomeId, OutcomeId), usize> = FxHashMap::default();
        for found in plain.exits.iter().filter_map(|e| end(e.1)) {
            *counts.entry(found.1).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|&(outcome, count)| (count, outcome)).map(|c| c.0);
        let kind = ends.iter().flatten().find(|end| Some(end.1) == most).map(|end| end.0);
        for &(node, length) in &plain.exits {
            match end(length) {
                Some((_, outcome)) if Some(outcome) == most => continue,
                Some((kind, _)) => self.exits.push((node, kind, false)),
                None => {}
            }
            self.leave_out(node);
        }
        let excluded = self.excluded_words();
        self.finish(groups, kind, excluded)
    }

    /// Adds the tokens that the walk left to the uniform state.
    fn by_tail(mut self) -> StringTransitions {
        let Some(kind) = self.uniform else { return self.finish(Vec::new(), None, None) };
        let (vocab, plain, excluded) = (self.vocab, self.plain.clone(), self.excluded_words());
        for node in std::mem::take(&mut self.uniform_below) {
            for &(escape, _) in AnyTextTable::below(&plain.escapes, vocab.trie(), node) {
                self.escape(escape, kind);
            }
        }
        let mut groups = Vec::new();
        for group in &plain.by_tail {
            let to = self.run(kind, vocab.text_of(group.first));
            let left = match &excluded {
                Some(excluded) => group.without(excluded, vocab.size()),
                None => Some(group.clone()),
            };
            groups.extend(to.zip(left));
        }
        let closes = self.lexicon.outcome(kind.0) != Lexicon::NONE;
        self.finish(groups, closes.then_some(kind), excluded)
    }

    fn excluded_words(&self) -> Option<Box<[u32]>> {
        if self.excluded.is_empty() {
            return None;
        }
        let mut words = vec![0u32; self.vocab.mask_words()];
        words.allow_all(self.excluded.iter().copied());
        Some(words.into())
    }

    fn finish(
        self,
        mut groups: Vec<(StatePair, TokenGroup)>,
        shared: Option<StatePair>,
        excluded: Option<Box<[u32]>>,
    ) -> StringTransitions {
        let shared = shared.map(|kind| SharedExits { kind, plain: self.plain.clone(), excluded });
        let size = self.vocab.size();
        groups.extend(
            self.lists.into_iter().filter_map(|(kind, ids)| Some((kind, TokenGroup::of(ids, size)?))),
        );
        StringTransitions { groups, exits: self.exits, shared, escaped: self.escaped }
    }

    fn leave_out(&mut self, node: NodeId) {
        self.excluded.extend(self.vocab.trie().subtree_tokens(node).iter().map(|t| t.0));
    }

    fn visit(&mut self, node: NodeId, kind: StatePair, escape: bool) {
        let (bytes, nodes) = self.vocab.trie().children(node);
        work::spend(bytes.len() as u64);
        for (&byte, &child) in bytes.iter().zip(nodes) {
            self.child(child, kind, byte, escape);
        }
    }

    /// Visits the node of a backslash that the state reads.
    fn escape(&mut self, node: NodeId, kind: StatePair) {
        self.child(node, kind, b'\\', false);
    }

    fn child(&mut self, child: NodeId, kind: StatePair, byte: u8, escape: bool) {
        let trie = self.vocab.trie();
        match self.step(kind, byte) {
            StringStep::Stay(next) => {
                let escape = escape || byte == b'\\';
                if !escape && self.is_uniform(next) {
                    return self.uniform_below.push(child);
                }
                let tokens = trie.tokens(child);
                if !tokens.is_empty() {
                    self.excluded.extend(tokens.iter().map(|t| t.0));
                    let place = *self.places.entry(next).or_insert(self.lists.len());
                    if place == self.lists.len() {
                        self.lists.push((next, Vec::new()));
                    }
                    self.lists[place].1.extend(tokens.iter().map(|t| t.0));
                    self.escaped.extend(tokens.iter().filter(|_| escape));
                }
                self.visit(child, next, escape);
            }
            StringStep::Close => {
                self.exits.push((child, kind, escape));
                self.leave_out(child);
            }
            StringStep::Dead => self.leave_out(child),
        }
    }

    /// Whether a state has a self-loop under every code point; only the first such state counts.
    fn is_uniform(&mut self, kind: StatePair) -> bool {
        if self.uniform.is_none() && self.uniform_successor(kind) == Some(kind) {
            self.uniform = Some(kind);
        }
        self.uniform == Some(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexical::{Spelling, Terms};
    use crate::regex::{parse, Dialect};

    fn vocabulary() -> Vocabulary {
        let more = [
            "ab", "abc", "a\"", "b\",", "\",\"", "\"}", "x\\", "\\n", "\\n\"", "\\u00", "\\u0041b", "é",
            "aé\":", "日本",
        ];
        let bytes = (0..=255u8).map(|b| Box::from([b]));
        let cut: [&[u8]; 4] = [b"a\xe6", b"\xe6\x97", b"\xf0\x9f\x98", b"\\ud83d\\ude"];
        let texts = more.iter().map(|t| Box::from(t.as_bytes())).chain(cut.iter().map(|t| Box::from(*t)));
        let tokens: Vec<Box<[u8]>> = bytes.chain(texts).chain([Box::from(*b"</s>")]).collect();
        let end = tokens.len() as u32 - 1;
        Vocabulary::new(tokens, vec![end], &[end]).expect("a vocabulary")
    }

    /// Where each token leads, by itself: the state after it, or the one before the quote.
    fn one_by_one(
        lexicon: &mut Lexicon,
        vocab: &Vocabulary,
        kind: StatePair,
    ) -> Vec<Option<(StatePair, bool)>> {
        let end = vocab.size() - 1;
        let run = |(id, token): (usize, &[u8])| {
            let mut at = kind;
            for &byte in token.iter() {
                match lexicon.step(at.0, byte) {
                    _ if id == end => return None,
                    Step::Dead => return None,
                    Step::Close => return Some((at, true)),
                    Step::Stay(lex) => {
                        at.0 = lex;
                        if at.1 != Lexicon::DEAD {
                            let Step::Stay(beside) = lexicon.step(at.1, byte) else { unreachable!() };
                            at.1 = beside;
                        }
                    }
                }
            }
            Some((at, false))
        };
        vocab.tokens().iter().map(|token| &token[..]).enumerate().map(run).collect()
    }

    #[test]
    fn each_token_leads_where_it_does_by_itself() {
        let vocab = vocabulary();
        let patterns = [
            ".*",
            "(.|\\n)*",
            "(.|\\n){0,3}",
            "(.|\\n){2,5}",
            "abc|x(.|\\n)*",
            "[a-c]{2}",
            "(?!ab$|x$)(.|\\n)*",
            "a.*",
            "é*",
        ];
        for spelling in [Spelling::Json, Spelling::JsonAny, Spelling::JsonNatural] {
            let plain = Arc::new(AnyTextTable::new(&vocab, spelling));
            for (i, pattern) in patterns.iter().enumerate() {
                for beside in [None, Some("x.*"), Some("ab(.|\\n)*"), Some("[a-z]+")] {
                    let mut lexicon = Lexicon::default();
                    let mut term =
                        |p: &str| lexicon.terms.lower(&parse(p, Dialect::Python).expect("a pattern"));
                    let (term, beside) = (term(pattern), beside.map(&mut term));
                    let lex = lexicon.at(spelling, term);
                    let beside = beside.map_or(Lexicon::DEAD, |beside| {
                        let both = lexicon.terms.tuple(&[beside, Terms::ALL]);
                        lexicon.at(spelling, both)
                    });
                    let inside = StringTransitions::new(&mut lexicon, &vocab, &plain, (lex, beside));
                    let expected = one_by_one(&mut lexicon, &vocab, (lex, beside));
                    check(&mut lexicon, &vocab, &inside, &expected, &format!("{i} {spelling:?}"));
                }
            }
        }
    }

    fn check(
        lexicon: &mut Lexicon,
        vocab: &Vocabulary,
        inside: &StringTransitions,
        expected: &[Option<(StatePair, bool)>],
        which: &str,
    ) {
        let mut found: Vec<Option<(StatePair, bool)>> = vec![None; vocab.size()];
        for (kind, group) in &inside.groups {
            let ids = group.tokens.ids(vocab.mask_words());
            assert_eq!(ids.first(), Some(&group.first.0), "{which}");
            for id in ids {
                assert_eq!(found[id as usize].replace((*kind, false)), None, "{which}: {id} twice");
            }
        }
        let mut end = |id: u32, kind: StatePair| {
            assert_eq!(found[id as usize].replace((kind, true)), None, "{which}: {id} twice");
        };
        for &(node, kind, _) in &inside.exits {
            vocab.trie().subtree_tokens(node).iter().for_each(|t| end(t.0, kind));
        }
        if let Some(shared) = &inside.shared {
            let tokens = shared.tails().subtree_tokens(Trie::ROOT);
            tokens.iter().filter(|t| shared.has(t.0)).for_each(|t| end(t.0, shared.kind));
            let nodes: Vec<NodeId> = shared.nodes(vocab.trie()).collect();
            let below = nodes.iter().flat_map(|&node| vocab.trie().subtree_tokens(node));
            assert_eq!(below.count(), tokens.iter().filter(|t| shared.has(t.0)).count(), "{which}");
        }
        for (id, (found, expected)) in found.iter().zip(expected).enumerate() {
            let token = String::from_utf8_lossy(vocab.text_of(TokenId(id as u32)));
            // exits with one outcome are reported with one state for all
            let mut same = |a: &StatePair, b: &StatePair| {
                lexicon.outcome(a.0) == lexicon.outcome(b.0) && lexicon.outcome(a.1) == lexicon.outcome(b.1)
            };
            match (found, expected) {
                (Some((a, true)), Some((b, true))) => assert!(same(a, b), "{which}: {token:?}"),
                _ => assert_eq!(found, expected, "{which}: {token:?}"),
            }
        }
        let escaped: std::collections::HashSet<u32> = inside.escaped.iter().map(|t| t.0).collect();
        for (id, state) in expected.iter().enumerate() {
            let escape = vocab.tokens()[id].contains(&b'\\') && matches!(state, Some((_, false)));
            assert_eq!(escaped.contains(&(id as u32)), escape, "{which}: {id}");
        }
    }
}
