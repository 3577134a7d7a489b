//! States, masks and edges of one automaton.  This is what a builder works on; no thread shares it.
//!
//! A state is (context, lexical state, text of the lexeme where it matters), interned as an id. Its mask is
//! the shared mask of the lexical state ([`super::lexmask`]) and the exits, which are walked through the
//! structure layer and memoised by the position that follows them, so that all values of a kind pay once.
//! Invariant: an id means one state as long as the core lives, and equal states have equal ids.
//! Complexity: a hash per state; a mask costs what [`super::collect`] says.
//! Memory: all that is interned, until the epoch ends; [`Engine::bytes`] counts it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::collect::{unfinished, without_escapes};
use super::crossing::Crossing;
use super::engine::{DistanceClass, Engine, StateId};
use super::lexemes::LexerMaskBuilder;
use super::lexmask::LexMask;
use super::row::Mask;
use super::string_transitions::{StatePair, StringTransitions};
use super::successors::{SuccessorClass, TokensByClass};
use super::within::Within;
use crate::automaton::byte_automaton::{step, ByteAutomaton, CtxId, Left, Piece, Pos, Seen};
use crate::error::{Error, Kind, Result};
use crate::hash::Keyed;
use crate::heap_size::{self, Interner};
use crate::lexical::content::Content;
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::{NodeId, TokenId, Trie, Vocabulary};
use crate::work;

/// Bytes of a lexeme's text from which on no distance is kept for the positions inside it: there is a
/// position for each byte, and each would store the text.
const LONG_TEXT: usize = 256;

/// Tokens that a position usually allows beside those of a shared mask: a list is allocated for so many.
const USUAL: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StateKey {
    pub pos: Pos,
    pub text: u32,
}

heap_size::plain!(StateKey, Content);

pub struct Core<S> {
    pub structure: S,
    pub(super) vocab: Arc<Vocabulary>,
    states: Interner<StateKey>,
    texts: Interner<Box<[u8]>, Keyed>,
    pub(super) lexmasks: FxHashMap<(NodeId, LexId), Arc<LexMask>>,
    /// Tokens that leave a lexeme, by the position that follows and the set of exits.
    pub(super) after: FxHashMap<(Pos, u64), Arc<[u32]>>,
    pub(super) left: FxHashMap<(CtxId, u64), Arc<[u32]>>,
    /// Masks of deep positions, by what a token can reach of the levels above.
    truncated_masks: FxHashMap<(u32, u32, u32), (Arc<Mask>, bool)>,
    /// Masks of positions in which tokens are counted, by those in which none were.
    uncounted_masks: FxHashMap<StateId, (Arc<Mask>, bool)>,
    /// The keys under which masks of lexical states are shared.
    contents: Interner<Content>,
    content_ids: FxHashMap<LexId, Option<u32>>,
    pub(super) crossing: Option<Crossing>,
    /// What tokens do in strings, where a budget was near.
    pub(super) string_transitions_of: FxHashMap<StatePair, Arc<StringTransitions>>,
    /// Whether characters leave a lexical state as it is.
    pub(super) keeps_characters_memo: FxHashMap<LexId, bool>,
    pub(super) lexemes: LexerMaskBuilder,
    /// If set, classes are states: see [`Core::class_of`]; more than so many are not sought.
    pub(super) states_as_classes: Option<usize>,
    /// Bytes of the lists and masks in the tables.
    pub(super) listed: usize,
}

impl<S: ByteAutomaton> Core<S> {
    pub fn new(mut structure: S, vocab: Arc<Vocabulary>) -> Self {
        structure.lexicon().terms.numbers.reach = vocab.reach();
        let mut texts: Interner<Box<[u8]>, Keyed> = Interner::default();
        texts.intern(Box::new([]));
        Core {
            structure,
            vocab,
            states: Interner::default(),
            texts,
            lexmasks: FxHashMap::default(),
            after: FxHashMap::default(),
            truncated_masks: FxHashMap::default(),
            uncounted_masks: FxHashMap::default(),
            contents: Interner::default(),
            content_ids: FxHashMap::default(),
            crossing: None,
            left: FxHashMap::default(),
            string_transitions_of: FxHashMap::default(),
            keeps_characters_memo: FxHashMap::default(),
            lexemes: LexerMaskBuilder::default(),
            states_as_classes: None,
            listed: 0,
        }
    }

    fn intern(&mut self, pos: Pos, text: &[u8]) -> StateId {
        let text = self.text_number(text);
        StateId(self.states.intern(StateKey { pos, text }))
    }

    fn text_number(&mut self, text: &[u8]) -> u32 {
        match self.texts.get_index_of(text) {
            Some(i) => i as u32,
            None => self.texts.insert_full(text.into()).0 as u32,
        }
    }

    pub(super) fn state_key(&self, s: StateId) -> StateKey {
        self.states[s.0 as usize]
    }

    fn place(&self, s: StateId) -> (StateKey, Vec<u8>) {
        let state_key = self.state_key(s);
        (state_key, self.text(state_key))
    }

    pub(super) fn text(&self, state_key: StateKey) -> Vec<u8> {
        self.texts[state_key.text as usize].to_vec()
    }

    pub(super) fn joined(&self, bases: &[Arc<[u32]>], ids: Vec<u32>) -> Mask {
        match bases {
            [] => Mask::from_ids(ids, self.vocab.size()),
            [one] => Mask::based(one.clone(), ids),
            _ => Mask::joined(bases, &ids),
        }
    }

    fn content_id(&mut self, lex: LexId) -> Option<u32> {
        memo!(self.content_ids, lex, {
            let content = self.structure.lexicon().content(lex, self.vocab.longest() as u32);
            content.map(|content| self.contents.intern(content))
        })
    }

    fn build_mask(&mut self, state_key: StateKey) -> (Mask, bool) {
        let mut text = self.text(state_key);
        let mut ids = Vec::with_capacity(USUAL);
        let accepting = self.structure.accepting(state_key.pos, &text);
        if accepting {
            ids.extend(self.vocab.eos().iter().map(|t| t.0));
        }
        ids.extend(self.structure.specials(state_key.pos, &text).iter().map(|t| t.0));
        for &token in self.vocab.clone().long() {
            if self.run(state_key, self.vocab.clone().text_of(token)).0.is_none() {
                ids.push(token.0);
            }
        }
        if let Some(mask) = self.mask_of_lexemes(state_key, &mut ids) {
            return (mask, accepting);
        }
        let parts = self
            .structure
            .split(state_key.pos)
            .unwrap_or_else(|| vec![(state_key.pos, std::mem::take(&mut text))]);
        let mut bases: Vec<Arc<[u32]>> = Vec::new();
        for (pos, mut text) in parts {
            if let Some(inner) = self.structure.unquoted(pos) {
                self.collect_unquoted(pos, inner, &mut ids);
                continue;
            }
            if let Some(words) = self.collect_open(pos, &mut ids) {
                bases.push(words);
                continue;
            }
            let base = self.collect(Trie::ROOT, pos, &mut text, &mut ids);
            if let Some(LexMask { within: Within::Many(words), .. }) = base.as_deref() {
                if !bases.iter().any(|b| Arc::ptr_eq(b, words)) {
                    bases.push(words.clone());
                }
            }
        }
        (self.joined(&bases, ids), accepting)
    }

    /// The class of the positions with the same completions; with `states_as_classes`, the state itself.
    pub(super) fn class_of(&mut self, pos: Pos, text: &[u8]) -> DistanceClass {
        if self.states_as_classes.is_some() {
            return (pos, self.text_number(text));
        }
        let pos = self.structure.uncounted(pos);
        let same = Pos { ctx: self.structure.equivalent(pos.ctx), ..pos };
        if text.is_empty() || !self.structure.records(pos.ctx) {
            return (same, 0);
        }
        let outcome = self.structure.lexicon().outcome(pos.lex);
        let held = self.structure.lexicon().outcome_list(outcome).to_vec();
        let (whole, begun) = unfinished(text);
        let kinds = self.structure.partition(pos.ctx);
        let usual = (kinds.is_some() || self.structure.close_generic(pos.ctx, &held).is_some())
            && without_escapes(whole).is_some_and(|plain| {
                // a partly read escape may become any character
                let fits =
                    |rest: &String| begun.first() == Some(&b'\\') || rest.as_bytes().starts_with(begun);
                !self.structure.exceptional(pos.ctx, &plain).iter().any(fits)
            });
        match kinds.map(|kinds| self.partition_after(kinds, text)) {
            Some(kind) if usual => Self::class_of_partition((same, kind)),
            None if usual => (same, u32::MAX),
            _ => (same, self.texts.intern(text.into())),
        }
    }

    /// The class of the texts that mean the same at a position, by the state of the languages that
    /// distinguish them.
    pub(super) fn class_of_partition((pos, kind): (Pos, LexId)) -> DistanceClass {
        match kind {
            Lexicon::DEAD => (pos, u32::MAX),
            kind => (pos, u32::MAX - kind.0),
        }
    }

    /// The state of the languages that distinguish texts ([`ByteAutomaton::partition`]) after a text.
    pub(super) fn partition_after(&mut self, kinds: LexId, text: &[u8]) -> LexId {
        let lexicon = self.structure.lexicon();
        work::spend(text.len() as u64);
        text.iter().fold(kinds, |at, &byte| match lexicon.step(at, byte) {
            Step::Stay(next) => next,
            _ => Lexicon::DEAD,
        })
    }

    /// Runs a call that follows one text, not all that may come: see [`Lexicon::one_by_one`].
    fn one_by_one<T>(&mut self, call: impl FnOnce(&mut Self) -> T) -> T {
        self.structure.lexicon().one_by_one = true;
        let found = call(self);
        self.structure.lexicon().one_by_one = false;
        found
    }

    /// Offset of the first byte that is refused (`None`: none is), the position before it, and the text of
    /// its lexeme.
    pub(super) fn run(&mut self, state_key: StateKey, bytes: &[u8]) -> (Option<usize>, Pos, Vec<u8>) {
        let (mut pos, mut text) = (state_key.pos, self.text(state_key));
        for (i, &byte) in bytes.iter().enumerate() {
            work::spend(1);
            let held = text.len();
            match step(&mut self.structure, pos, &mut text, byte) {
                Some(next) => pos = next,
                None => {
                    // a refused byte that closes the lexeme has cleared its text
                    if text.len() < held {
                        text = self.text_after(state_key, &bytes[..i]);
                    }
                    return (Some(i), pos, text);
                }
            }
        }
        (None, pos, text)
    }

    /// The text of the lexeme after bytes that can be read.
    fn text_after(&mut self, state_key: StateKey, bytes: &[u8]) -> Vec<u8> {
        let (mut pos, mut text) = (state_key.pos, self.text(state_key));
        for &byte in bytes {
            match step(&mut self.structure, pos, &mut text, byte) {
                Some(next) => pos = next,
                None => break,
            }
        }
        text
    }
}

impl<S: ByteAutomaton> Engine for Core<S> {
    fn start(&mut self) -> Result<StateId> {
        let start = self.structure.start();
        match start {
            Some(pos) => Ok(self.intern(pos, &[])),
            None => Err(Error::new(
                Kind::UnsatisfiableGrammar,
                "the constraint accepts no text at all; relax what clashes, and in a grammar put something between \
                 terminals that are read as one",
            )),
        }
    }

    fn mask(&mut self, s: StateId) -> (Arc<Mask>, bool) {
        let state_key = self.state_key(s);
        let uncounted = self.uncounted(s);
        if uncounted != s {
            return memo!(self.uncounted_masks, uncounted, {
                let (mask, accepting) = self.build_mask(self.state_key(uncounted));
                let mask = Arc::new(mask);
                self.listed += mask.bytes() + heap_size::BLOCK;
                (mask, accepting)
            });
        }
        let (levels, longest) = (self.vocab.most_closings() + 2, self.vocab.longest() as u32);
        let near = self.structure.truncated_key(state_key.pos.ctx, levels, longest);
        let lexical = near.and_then(|_| self.content_id(state_key.pos.lex));
        let (Some(near), Some(lexical)) = (near, lexical) else {
            let (mask, accepting) = self.build_mask(state_key);
            return (Arc::new(mask), accepting);
        };
        let key = (near, lexical, state_key.text);
        memo!(self.truncated_masks, key, {
            let (mask, accepting) = self.build_mask(state_key);
            let mask = Arc::new(mask);
            self.listed += mask.bytes() + heap_size::BLOCK;
            (mask, accepting)
        })
    }

    fn advance_bytes(&mut self, s: StateId, bytes: &[u8]) -> Option<StateId> {
        let state_key = self.state_key(s);
        let (refused, pos, text) = self.run(state_key, bytes);
        if refused.is_some() {
            return None;
        }
        if self.structure.counts_tokens() {
            let first = self.run(state_key, &bytes[..bytes.len().min(1)]).1;
            let pos = self.structure.after_token(first, pos);
            return Some(self.intern(pos, &text));
        }
        Some(self.intern(pos, &text))
    }

    fn uncounted(&mut self, s: StateId) -> StateId {
        if !self.structure.counts_tokens() {
            return s;
        }
        let state_key = self.state_key(s);
        let pos = self.structure.uncounted(state_key.pos);
        StateId(self.states.intern(StateKey { pos, ..state_key }))
    }

    fn accepting(&mut self, s: StateId) -> bool {
        let (state_key, text) = self.place(s);
        self.structure.accepting(state_key.pos, &text)
    }

    fn is_kept_by_text(&mut self, s: StateId) -> bool {
        Core::is_kept_by_text(self, self.state_key(s))
    }

    fn counts_digits(&mut self, s: StateId) -> bool {
        Core::counts_digits(self, self.state_key(s))
    }

    fn completion(&mut self, s: StateId, most: usize) -> Option<Vec<Piece>> {
        let (state_key, text) = self.place(s);
        self.one_by_one(|this| this.structure.completion(state_key.pos, &text, most))
    }

    fn remaining_bound(&mut self, s: StateId) -> Option<u32> {
        // each byte is a token at worst
        if !self.vocab.spells_every_byte() {
            return None;
        }
        let state_key = self.state_key(s);
        let bytes = self.structure.remaining_bound(state_key.pos, self.vocab.most_openings());
        bytes.and_then(|bytes| u32::try_from(bytes).ok())
    }

    fn specials(&mut self, s: StateId) -> Vec<TokenId> {
        let (state_key, text) = self.place(s);
        self.structure.specials(state_key.pos, &text)
    }

    fn take_special(&mut self, s: StateId, token: TokenId) -> Option<StateId> {
        let (state_key, text) = self.place(s);
        let next = self.structure.take_special(state_key.pos, &text, token);
        next.map(|pos| self.intern(pos, &[]))
    }

    fn forced(&mut self, s: StateId, limit: usize) -> Vec<u8> {
        let (StateKey { mut pos, .. }, mut text) = self.place(s);
        let mut out = Vec::new();
        while out.len() < limit
            && !self.structure.accepting(pos, &text)
            && self.structure.specials(pos, &text).is_empty()
        {
            let likely = self.next_bytes(pos);
            let mut only = None;
            let mut several = false;
            for byte in (0..=255u8).filter(|&b| likely.has(b)) {
                let mut own = text.clone();
                if let Some(next) = step(&mut self.structure, pos, &mut own, byte) {
                    several = only.is_some();
                    if several {
                        break;
                    }
                    only = Some((byte, next, own));
                }
            }
            match only {
                Some((byte, next, own)) if !several => {
                    out.push(byte);
                    (pos, text) = (next, own);
                }
                _ => break,
            }
        }
        out
    }

    fn describe(&mut self, s: StateId, seen: Seen) -> (Vec<String>, Option<String>) {
        let state_key = self.state_key(s);
        self.structure.describe(state_key.pos, seen)
    }

    fn left(&mut self, s: StateId, most: usize) -> Option<Vec<Left>> {
        let state_key = self.state_key(s);
        self.structure.left(state_key.pos, most)
    }

    fn longest_left(&mut self, s: StateId) -> Option<u32> {
        let state_key = self.state_key(s);
        self.structure.longest_left(state_key.pos)
    }

    fn walk(&mut self, s: StateId, bytes: &[u8]) -> (usize, StateId) {
        let state_key = self.state_key(s);
        let (refused, pos, text) = self.run(state_key, bytes);
        (refused.unwrap_or(bytes.len()), self.intern(pos, &text))
    }

    fn follow(
        &mut self,
        s: StateId,
        bytes: &[u8],
        visit: &mut dyn FnMut(usize, Option<DistanceClass>) -> bool,
    ) {
        let (StateKey { mut pos, .. }, mut text) = self.place(s);
        self.one_by_one(|this| {
            for (i, &byte) in bytes.iter().enumerate() {
                work::spend(1);
                let Some(next) = step(&mut this.structure, pos, &mut text, byte) else { break };
                pos = next;
                let class = (text.len() <= LONG_TEXT).then(|| this.class_of(pos, &text));
                if !visit(i + 1, class) {
                    break;
                }
            }
        });
    }

    fn state_count(&self) -> usize {
        self.states.len()
    }

    fn bytes(&mut self) -> usize {
        let tables = heap_size::bytes!(self: states, texts, lexmasks, after, left, truncated_masks, uncounted_masks, contents, content_ids, string_transitions_of, keeps_characters_memo);
        let crossing = self.crossing.as_ref().map_or(0, Crossing::bytes);
        tables + crossing + self.listed + self.lexemes.bytes() + self.structure.bytes()
    }

    fn class(&mut self, s: StateId) -> DistanceClass {
        let (state_key, text) = self.place(s);
        self.class_of(state_key.pos, &text)
    }

    fn classes_after(&mut self, s: StateId) -> Vec<SuccessorClass> {
        let state_key = self.state_key(s);
        let (vocab, mut found) = (self.vocab.clone(), TokensByClass::default());
        if !self.classes_in_string(state_key, &mut found) {
            found = TokensByClass::default();
            let mut text = self.text(state_key);
            self.classes_below(vocab.trie(), Trie::ROOT, state_key.pos, &mut text, &mut found);
        }
        for &token in vocab.long() {
            if let (None, pos, text) = self.run(state_key, vocab.text_of(token)) {
                let class = self.class_of(pos, &text);
                found.add(class, &[token]);
            }
        }
        found.successors(&vocab)
    }

    fn followers(&mut self, s: StateId, most: usize) -> Option<Vec<(StateId, TokenId, Arc<Mask>)>> {
        if self.structure.counts_tokens() {
            return None; // a class has no count
        }
        self.states_as_classes = Some(most);
        let found = self.classes_after(s);
        self.states_as_classes = None;
        if found.len() > most {
            return None;
        }
        let number = |SuccessorClass { class: (pos, text), first, tokens }| {
            (StateId(self.states.intern(StateKey { pos, text })), first, tokens)
        };
        Some(found.into_iter().map(number).collect())
    }

    fn terms(&mut self) -> usize {
        self.structure.lexicon().terms.len()
    }
}
