//! States, masks and edges of one automaton; everything here builds, nothing here is shared.
//!
//! A state is (context, lexical state, text of the lexeme where it matters), interned: a number.  A mask is
//! the lexical part (shared, [`super::lexmask`]) and the exits, walked through the structure layer and
//! remembered by the position that follows them, so that every value of a kind pays once.

use std::sync::Arc;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::exits::{Exit, Exits, Remainders};
use super::lexmask::LexMask;
use super::row::Mask;
use super::store::{Key, Store};
use super::structure::{step, CtxId, Piece, Pos, Structure};
use super::within::{Lengths, Within};
use crate::error::{Error, Kind, Result};
use crate::lexical::spell::ByteSet;
use crate::lexical::{LexId, Lexicon};
use crate::vocab::{NodeId, TokenId, Trie, Vocabulary};

/// The number of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u32);

/// Subtrees up to this size are walked directly: cheaper than looking a shared mask up.
const DIRECT: usize = 48;

/// Languages side by side, and nodes below, from which on a walk is split after a byte.
const WIDE: usize = 4;
const WIDE_NODES: usize = 2000;

/// States that one automaton may have.
const MAX_STATES: usize = 8_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stand {
    pub pos: Pos,
    pub text: u32,
}

/// What [`super::TokenAutomaton`] asks of a core, whatever the structure.
pub trait Engine: Send {
    fn start(&mut self) -> Result<StateId>;
    fn mask(&mut self, s: StateId) -> Result<Mask>;
    fn advance_bytes(&mut self, s: StateId, bytes: &[u8]) -> Result<Option<StateId>>;
    fn accepting(&mut self, s: StateId) -> Result<bool>;
    fn way_out(&mut self, s: StateId) -> Option<Vec<Piece>>;
    /// The state after a special token.
    fn take_special(&mut self, s: StateId, token: TokenId) -> Result<Option<StateId>>;
    fn forced(&mut self, s: StateId, limit: usize) -> Vec<u8>;
    fn describe(&mut self, s: StateId) -> (Vec<String>, Option<String>);
    /// Offset of the first byte that can't be, and the state before it; `None` when all can.
    fn walk(&mut self, s: StateId, bytes: &[u8]) -> Result<(usize, StateId)>;
    fn state_count(&self) -> usize;
    /// States with the same class have the same ways out: the text of a key that no schema names makes no
    /// difference to them.
    fn class(&mut self, s: StateId) -> (Pos, u32);
    fn stand_text(&self, s: StateId) -> String;
}

pub struct Core<S> {
    pub structure: S,
    vocab: Arc<Vocabulary>,
    stands: IndexSet<Stand, FxBuildHasher>,
    texts: IndexSet<Box<[u8]>, FxBuildHasher>,
    lexmasks: FxHashMap<(NodeId, LexId), Arc<LexMask>>,
    /// Tokens that leave a lexeme, by the position that follows and the set of exits.
    after: FxHashMap<(Pos, u64), Arc<[u32]>>,
    left: FxHashMap<(CtxId, u64), Arc<[u32]>>,
    failed: Option<Error>,
}

impl<S: Structure> Core<S> {
    pub fn new(mut structure: S, vocab: Arc<Vocabulary>) -> Self {
        structure.bind(&vocab);
        let mut texts: IndexSet<Box<[u8]>, FxBuildHasher> = IndexSet::default();
        texts.insert(Box::new([]));
        Core {
            structure,
            vocab,
            stands: IndexSet::default(),
            texts,
            lexmasks: FxHashMap::default(),
            after: FxHashMap::default(),
            left: FxHashMap::default(),
            failed: None,
        }
    }

    fn intern(&mut self, pos: Pos, text: &[u8]) -> Result<StateId> {
        let text = match self.texts.get_index_of(text) {
            Some(i) => i,
            None => self.texts.insert_full(text.into()).0,
        };
        if self.stands.len() >= MAX_STATES {
            return Err(Error::limit(format!("the automaton has {MAX_STATES} states; start a new one")));
        }
        let (i, _) = self.stands.insert_full(Stand { pos, text: text as u32 });
        Ok(StateId(i as u32))
    }

    fn stand(&self, s: StateId) -> Stand {
        self.stands[s.0 as usize]
    }

    fn text(&self, stand: Stand) -> Vec<u8> {
        self.texts[stand.text as usize].to_vec()
    }

    /// The value, unless a limit was reached on the way. From then on the automaton only repeats the error:
    /// what it remembers may rest on work that was cut short.
    fn check<T>(&mut self, value: T) -> Result<T> {
        if self.failed.is_none() {
            self.failed = self.structure.take_error();
        }
        if self.failed.is_none() && self.structure.lexicon().terms.overflow {
            self.failed = Some(Error::limit(
                "the constraint's patterns need more states than the limit; simplify or bound them",
            ));
        }
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(value),
        }
    }

    fn begin(&mut self) -> Result<()> {
        self.structure.begin();
        self.check(())
    }

    fn lexmask(&mut self, node: NodeId, lex: LexId) -> Arc<LexMask> {
        if let Some(found) = self.lexmasks.get(&(node, lex)) {
            return found.clone();
        }
        let longest = self.vocab.longest() as u32;
        let lexicon = self.structure.lexicon();
        let key = lexicon.content(lex, longest).map(|content| Key {
            vocabulary: self.vocab.key(),
            node: node.0,
            content,
        });
        let found = key.as_ref().and_then(|k| Store::global().get(k));
        let mask = match found {
            Some(mask) => mask,
            None => {
                let mask = Arc::new(self.build_lexmask(node, lex));
                if let (Some(key), false) = (key, self.structure.lexicon().terms.overflow) {
                    Store::global().put(key, mask.clone());
                }
                mask
            }
        };
        self.lexmasks.insert((node, lex), mask.clone());
        mask
    }

    /// Lengths of the tokens in a string of this spelling.
    fn lengths(&mut self, spelling: crate::lexical::Spelling) -> Arc<Lengths> {
        let free = self.structure.lexicon().at(spelling, crate::lexical::Terms::ALL);
        let mask = self.lexmask(Trie::ROOT, free);
        mask.lengths(&self.vocab, self.structure.lexicon(), free)
    }

    /// By differences from a state that is nearly the same, or by a walk of its own.
    fn build_lexmask(&mut self, node: NodeId, lex: LexId) -> LexMask {
        let vocab = self.vocab.clone();
        let lexicon = self.structure.lexicon();
        if lexicon.is_string(lex) {
            if let Some((spelling, term)) = lexicon.term(lex) {
                if let Some(how) = lexicon.terms.base(term) {
                    let under = lexicon.at(spelling, how.term);
                    if under != lex {
                        let base = self.lexmask(node, under);
                        let lengths = self.lengths(spelling);
                        let lexicon = self.structure.lexicon();
                        return LexMask::differ(lexicon, &vocab, node, (lex, under), &base, how, &lengths);
                    }
                }
            }
        }
        LexMask::build(self.structure.lexicon(), &vocab, node, lex)
    }

    /// Collects the tokens below `node` that a position allows. At the root the shared part of the mask is
    /// returned instead of being copied.
    fn collect(
        &mut self,
        node: NodeId,
        pos: Pos,
        text: &mut Vec<u8>,
        out: &mut Vec<u32>,
    ) -> Option<Arc<LexMask>> {
        let vocab = self.vocab.clone();
        if node != Trie::ROOT {
            if let Some(parts) = self.structure.split(pos) {
                for (pos, mut text) in parts {
                    let mask = self.collect(node, pos, &mut text, out);
                    debug_assert!(mask.is_none(), "whole masks are returned at the root alone");
                }
                return None;
            }
        }
        if vocab.trie().subtree_size(node) <= DIRECT {
            self.walk_trie(vocab.trie(), node, pos, text, out);
            return None;
        }
        if vocab.trie().subtree_size(node) > WIDE_NODES
            && !self.structure.records(pos.ctx)
            && self.structure.lexicon().width(pos.lex) > WIDE
        {
            self.collect_split(node, pos, out);
            return None;
        }
        let mask = self.lexmask(node, pos.lex);
        if !self.structure.records(pos.ctx) {
            self.collect_exits(&mask, pos, out);
        } else if !self.collect_generic(&mask, pos, text, out) {
            let held = text.len();
            let shared = mask.exits.list.iter().filter(|e| mask.missing.binary_search(&e.node).is_err());
            for exit in shared.chain(mask.odd.iter()) {
                text.truncate(held);
                text.extend_from_slice(&exit.path);
                self.collect_exit(exit, pos.ctx, text, out);
            }
            text.truncate(held);
        }
        match &mask.within {
            Within::Few(ids) => out.extend_from_slice(ids),
            Within::Many(..) if node == Trie::ROOT => return Some(mask),
            Within::Many(words, _) => {
                let ids = Mask::Dense(words.to_vec().into()).ids(words.len());
                out.extend(ids);
            }
        }
        None
    }

    /// One byte by hand, then by the shared masks of what is left: states in which many lexemes may begin are
    /// many, those one byte on are few.
    fn collect_split(&mut self, node: NodeId, pos: Pos, out: &mut Vec<u32>) {
        let vocab = self.vocab.clone();
        let (bytes, nodes) = vocab.trie().children(node);
        for (&byte, &child) in bytes.iter().zip(nodes) {
            if let Some(next) = step(&mut self.structure, pos, &mut Vec::new(), byte) {
                out.extend(vocab.trie().tokens(child).iter().map(|t| t.0));
                self.collect_below(child, next, out);
            }
        }
    }

    /// The exits of a lexeme whose text does not matter: remembered.
    fn collect_exits(&mut self, mask: &LexMask, pos: Pos, out: &mut Vec<u32>) {
        let exits = &mask.exits;
        if exits.list.is_empty() {
            return;
        }
        if let Some(remainders) = &exits.remainders {
            let shared = mask.outcome.as_ref().unwrap_or(&remainders.outcome);
            let outcome = self.structure.lexicon().intern_outcome(shared);
            if let Some(next) = self.structure.close(pos.ctx, outcome, &[]) {
                let ids = self.tokens_after(exits, next);
                self.without(&ids, &mask.missing, out);
            }
            for exit in &mask.odd {
                self.collect_exit(exit, pos.ctx, &[], out);
            }
            return;
        }
        if let Some(ids) = self.left.get(&(pos.ctx, exits.id)) {
            let ids = ids.clone();
            return self.without(&ids, &mask.missing, out);
        }
        let mut ids = Vec::new();
        for exit in exits.list.iter().filter(|e| !e.grouped) {
            self.collect_exit(exit, pos.ctx, &[], &mut ids);
        }
        for group in &exits.groups {
            self.collect_group(group, pos.ctx, &mut ids);
        }
        let ids: Arc<[u32]> = ids.into();
        self.left.insert((pos.ctx, exits.id), ids.clone());
        self.without(&ids, &mask.missing, out);
    }

    /// The tokens whose remainder after the closing byte a position allows; remembered.
    fn tokens_after(&mut self, exits: &Exits, next: Pos) -> Arc<[u32]> {
        if let Some(ids) = self.after.get(&(next, exits.id)) {
            return ids.clone();
        }
        let trie = &exits.remainders.as_ref().expect("asked before").trie;
        let mut ids: Vec<u32> = trie.tokens(Trie::ROOT).iter().map(|t| t.0).collect();
        self.walk_trie(trie, Trie::ROOT, next, &[], &mut ids);
        let ids: Arc<[u32]> = ids.into();
        self.after.insert((next, exits.id), ids.clone());
        ids
    }

    /// The ids that do not pass one of these exits.
    fn without(&self, ids: &[u32], exits: &[NodeId], out: &mut Vec<u32>) {
        if exits.is_empty() {
            return out.extend_from_slice(ids);
        }
        let trie = self.vocab.trie();
        let mut gone: Vec<u32> = exits.iter().flat_map(|&n| trie.subtree_tokens(n)).map(|t| t.0).collect();
        gone.sort_unstable();
        out.extend(ids.iter().copied().filter(|id| gone.binary_search(id).is_err()));
    }

    /// The exits of a lexeme whose text matters, where nearly all texts mean the same (a key that no schema
    /// names): one walk for those, and one for each of the few others. False where that can't be said.
    fn collect_generic(&mut self, mask: &LexMask, pos: Pos, text: &mut Vec<u8>, out: &mut Vec<u32>) -> bool {
        if mask.exits.remainders.is_none() || !mask.odd.is_empty() || text.contains(&b'\\') {
            return false;
        }
        let Some(next) = self.structure.close_generic(pos.ctx) else { return false };
        let before = self.structure.closings();
        let ids = self.tokens_after(&mask.exits, next);
        if self.structure.closings() != before {
            // a token holds another key as a whole: what it may be depends on this one
            self.after.remove(&(next, mask.exits.id));
            return false;
        }
        let trie = self.vocab.clone();
        let trie = trie.trie();
        let mut single: Vec<NodeId> = Vec::new();
        for rest in self.structure.special(pos.ctx, text) {
            let path = rest.iter().chain(b"\"");
            let mut path = path;
            let node = path.try_fold(Trie::ROOT, |n, &b| trie.child(n, b));
            single.extend(node);
        }
        let escaped = mask.exits.list.iter().filter(|e| e.path.contains(&b'\\')).map(|e| e.node);
        single.extend(escaped);
        single.sort_unstable();
        single.dedup();
        let mut gone = single.clone();
        gone.extend(mask.missing.iter());
        self.without(&ids, &gone, out);
        let held = text.len();
        for exit in &mask.exits.list {
            let own =
                single.binary_search(&exit.node).is_ok() && mask.missing.binary_search(&exit.node).is_err();
            if own {
                text.truncate(held);
                text.extend_from_slice(&exit.path);
                self.collect_exit(exit, pos.ctx, text, out);
            }
        }
        text.truncate(held);
        true
    }

    fn collect_exit(&mut self, exit: &Exit, ctx: CtxId, text: &[u8], out: &mut Vec<u32>) {
        let vocab = self.vocab.clone();
        let outcome = self.structure.lexicon().intern_outcome(&exit.outcome);
        if exit.closed {
            if let Some(next) = self.structure.close(ctx, outcome, text) {
                out.extend(vocab.trie().tokens(exit.node).iter().map(|t| t.0));
                self.collect_below(exit.node, next, out);
            }
            return;
        }
        let allowed = self.structure.leave_bytes(ctx, outcome);
        for &(byte, child) in exit.beyond.iter().filter(|b| allowed.has(b.0)) {
            if let Some(next) = self.structure.leave(ctx, outcome, text, byte) {
                out.extend(vocab.trie().tokens(child).iter().map(|t| t.0));
                self.collect_below(child, next, out);
            }
        }
    }

    /// The exits of a group, through the trie of what follows them.
    fn collect_group(&mut self, group: &Remainders, ctx: CtxId, out: &mut Vec<u32>) {
        let outcome = self.structure.lexicon().intern_outcome(&group.outcome);
        let allowed = self.structure.leave_bytes(ctx, outcome);
        let (bytes, nodes) = group.trie.children(Trie::ROOT);
        for (&byte, &child) in bytes.iter().zip(nodes) {
            if !allowed.has(byte) {
                continue;
            }
            if let Some(next) = self.structure.leave(ctx, outcome, &[], byte) {
                out.extend(group.trie.tokens(child).iter().map(|t| t.0));
                self.walk_trie(&group.trie, child, next, &[], out);
            }
        }
    }

    fn collect_below(&mut self, node: NodeId, pos: Pos, out: &mut Vec<u32>) {
        if let Some(mask) = self.collect(node, pos, &mut Vec::new(), out) {
            if let Within::Many(words, _) = &mask.within {
                out.extend(Mask::Dense(words.to_vec().into()).ids(words.len()));
            }
        }
    }

    /// The tokens of a position inside a JSON string, from those of the text that the string stands for.
    fn collect_quoted(&mut self, pos: Pos, inner: Pos, out: &mut Vec<u32>) {
        let vocab = self.vocab.clone();
        let (plain, others) = vocab.spelled_in_json();
        let parts = self.structure.split(inner).unwrap_or_else(|| vec![(inner, Vec::new())]);
        let mut found = Vec::new();
        for (pos, mut text) in parts {
            let base = self.collect(Trie::ROOT, pos, &mut text, &mut found);
            if let Some(LexMask { within: Within::Many(words, _), .. }) = base.as_deref() {
                found.extend(Mask::based(words.clone(), Vec::new()).ids(words.len()));
            }
        }
        out.extend(found.into_iter().filter(|&id| plain[id as usize >> 5] >> (id & 31) & 1 == 1));
        self.walk_trie(others, Trie::ROOT, pos, &[], out);
    }

    /// The plain walk, byte by byte.
    fn walk_trie(&mut self, trie: &Trie, node: NodeId, pos: Pos, text: &[u8], out: &mut Vec<u32>) {
        let (bytes, nodes) = trie.children(node);
        let allowed = if nodes.len() > 8 { self.next_bytes(pos) } else { ByteSet::ALL };
        for (&byte, &child) in bytes.iter().zip(nodes) {
            if !allowed.has(byte) {
                continue;
            }
            let mut own = text.to_vec();
            if let Some(next) = step(&mut self.structure, pos, &mut own, byte) {
                out.extend(trie.tokens(child).iter().map(|t| t.0));
                self.walk_trie(trie, child, next, &own, out);
            }
        }
    }

    /// A superset of the bytes that a position allows.
    fn next_bytes(&mut self, pos: Pos) -> ByteSet {
        let lexicon = self.structure.lexicon();
        if lexicon.is_string(pos.lex) {
            return ByteSet::ALL;
        }
        let outcome = lexicon.outcome(pos.lex);
        let mut set = lexicon.first_bytes(pos.lex);
        if outcome != Lexicon::NONE {
            set.add(&self.structure.leave_bytes(pos.ctx, outcome));
        }
        set
    }

    fn run(&mut self, s: StateId, bytes: &[u8]) -> (usize, Pos, Vec<u8>) {
        let stand = self.stand(s);
        let (mut pos, mut text) = (stand.pos, self.text(stand));
        for (i, &byte) in bytes.iter().enumerate() {
            let before = text.clone();
            match step(&mut self.structure, pos, &mut text, byte) {
                Some(next) => pos = next,
                None => return (i, pos, before),
            }
        }
        (bytes.len(), pos, text)
    }
}

impl<S: Structure> Engine for Core<S> {
    fn start(&mut self) -> Result<StateId> {
        self.begin()?;
        let start = self.structure.start();
        match self.check(start)? {
            Some(pos) => self.intern(pos, &[]),
            None => Err(Error::new(Kind::UnsatisfiableGrammar, "the constraint accepts no text at all")),
        }
    }

    fn mask(&mut self, s: StateId) -> Result<Mask> {
        self.begin()?;
        let stand = self.stand(s);
        let mut text = self.text(stand);
        let mut ids = Vec::new();
        if self.structure.accepting(stand.pos, &text) {
            ids.extend(self.vocab.eos().iter().map(|t| t.0));
        }
        ids.extend(self.structure.specials(stand.pos, &text).iter().map(|t| t.0));
        let parts =
            self.structure.split(stand.pos).unwrap_or_else(|| vec![(stand.pos, std::mem::take(&mut text))]);
        let mut bases: Vec<Arc<[u32]>> = Vec::new();
        for (pos, mut text) in parts {
            if let Some(inner) = self.structure.unquoted(pos) {
                self.collect_quoted(pos, inner, &mut ids);
                continue;
            }
            let base = self.collect(Trie::ROOT, pos, &mut text, &mut ids);
            if let Some(LexMask { within: Within::Many(words, _), .. }) = base.as_deref() {
                if !bases.iter().any(|b| Arc::ptr_eq(b, words)) {
                    bases.push(words.clone());
                }
            }
        }
        self.check(())?;
        Ok(match &bases[..] {
            [] => Mask::from_ids(ids, self.vocab.size()),
            [one] => Mask::based(one.clone(), ids),
            _ => Mask::joined(&bases, &ids),
        })
    }

    fn advance_bytes(&mut self, s: StateId, bytes: &[u8]) -> Result<Option<StateId>> {
        self.begin()?;
        let (read, pos, text) = self.run(s, bytes);
        self.check(())?;
        if read < bytes.len() {
            return Ok(None);
        }
        self.intern(pos, &text).map(Some)
    }

    fn accepting(&mut self, s: StateId) -> Result<bool> {
        self.begin()?;
        let stand = self.stand(s);
        let text = self.text(stand);
        let accepts = self.structure.accepting(stand.pos, &text);
        self.check(accepts)
    }

    fn way_out(&mut self, s: StateId) -> Option<Vec<Piece>> {
        self.begin().ok()?;
        let stand = self.stand(s);
        let text = self.text(stand);
        self.structure.way_out(stand.pos, &text)
    }

    fn take_special(&mut self, s: StateId, token: TokenId) -> Result<Option<StateId>> {
        self.begin()?;
        let stand = self.stand(s);
        let text = self.text(stand);
        let next = self.structure.take_special(stand.pos, &text, token);
        match self.check(next)? {
            Some(pos) => self.intern(pos, &[]).map(Some),
            None => Ok(None),
        }
    }

    fn forced(&mut self, s: StateId, limit: usize) -> Vec<u8> {
        let stand = self.stand(s);
        let (mut pos, mut text) = (stand.pos, self.text(stand));
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

    fn describe(&mut self, s: StateId) -> (Vec<String>, Option<String>) {
        let stand = self.stand(s);
        self.structure.describe(stand.pos)
    }

    fn walk(&mut self, s: StateId, bytes: &[u8]) -> Result<(usize, StateId)> {
        self.begin()?;
        let (read, pos, text) = self.run(s, bytes);
        self.check(())?;
        Ok((read, self.intern(pos, &text)?))
    }

    fn state_count(&self) -> usize {
        self.stands.len()
    }

    fn class(&mut self, s: StateId) -> (Pos, u32) {
        let stand = self.stand(s);
        if stand.text == 0 || !self.structure.records(stand.pos.ctx) {
            return (stand.pos, stand.text);
        }
        let text = self.text(stand);
        let generic = !text.contains(&b'\\')
            && self.structure.close_generic(stand.pos.ctx).is_some()
            && self.structure.special(stand.pos.ctx, &text).is_empty();
        (stand.pos, if generic { u32::MAX } else { stand.text })
    }

    fn stand_text(&self, s: StateId) -> String {
        let stand = self.stand(s);
        let text = String::from_utf8_lossy(&self.texts[stand.text as usize]).into_owned();
        format!("context {}, lexical state {}, text {text:?}", stand.pos.ctx.0, stand.pos.lex.0)
    }
}

/// Tokens of a way out: each text with the fewest pieces.
pub fn tokens_of(vocab: &Vocabulary, way: &[Piece]) -> Option<Vec<TokenId>> {
    let mut out = Vec::new();
    for piece in way {
        match piece {
            Piece::Bytes(text) => out.extend(fewest_tokens(vocab, text)?),
            Piece::Token(token) => out.push(*token),
        }
    }
    Some(out)
}

/// Tokens of a text with the fewest pieces, by dynamic programming over the trie.
pub fn fewest_tokens(vocab: &Vocabulary, text: &[u8]) -> Option<Vec<TokenId>> {
    let n = text.len();
    let mut best: Vec<Option<(u32, TokenId, usize)>> = vec![None; n + 1];
    best[n] = Some((0, TokenId(0), n));
    for i in (0..n).rev() {
        let mut node = Trie::ROOT;
        for j in i..n {
            match vocab.trie().child(node, text[j]) {
                Some(next) => node = next,
                None => break,
            }
            if let (Some(&id), Some((rest, _, _))) = (vocab.trie().tokens(node).first(), best[j + 1]) {
                if best[i].is_none_or(|b| rest + 1 < b.0) {
                    best[i] = Some((rest + 1, id, j + 1));
                }
            }
        }
    }
    let mut out = Vec::new();
    let mut i = 0;
    while i < n {
        let (_, id, next) = best[i]?;
        out.push(id);
        i = next;
    }
    Some(out)
}
