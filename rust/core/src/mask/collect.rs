//! How the mask of a position is made: the shared mask of its lexical state, and the tokens that leave the
//! lexeme, which are walked through the structure layer and memoised by the position that they lead to. At a
//! leaf of the trie, the walk asks only whether the structure reads the byte, not for the position after it:
//! languages of keys that a text never reaches are not made.
//! Invariant: the tokens that `oracle` finds, whatever was memoised before.
//! Complexity: the tokens that leave the lexeme, once for each position that follows; the others are a copy of the
//! shared mask.  Memory: lists of ids by the position that follows; [`Core`] counts them.

use std::cell::RefCell;
use std::sync::Arc;

use super::core::Core;
use super::exits::{Exit, Exits, SuffixTrie};
use super::lexmask::{of_words, LexMask};
use super::store::{Key, STORE};
use super::within::Lengths;
use super::within::SubtreeReading;
use super::within::Within;
use crate::automaton::byte_automaton::{may_step, step, ByteAutomaton, CtxId, Pos};
use crate::heap_size;
use crate::lexical::spell::ByteSet;
use crate::lexical::{LexId, Lexicon};
use crate::vocab::{NodeId, TokenSet, Trie};

/// Subtrees up to this size are walked directly, which is cheaper than the look-up of a shared mask; those
/// between lexemes, whose shared masks have little but exits, up to the second.
const DIRECT: usize = 48;
const DIRECT_BETWEEN: usize = 256;
/// Up to so many tokens are searched for one by one.
const FEW: usize = 16;
/// Children per allowed byte from which on each allowed byte is searched for, instead of a scan of all
/// children.
const SEARCH: usize = 8;
/// Languages side by side, and nodes below, from which on a walk is split after a byte.
pub(super) const WIDE: usize = 4;
const WIDE_NODES: usize = 2000;

thread_local! {
    /// A mask for tokens that are searched for, empty between calls: to clear one of the whole vocabulary
    /// costs more than to unmark a few.
    static MARKED: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

impl<S: ByteAutomaton> Core<S> {
    pub(super) fn lexmask(&mut self, node: NodeId, lex: LexId) -> Arc<LexMask> {
        memo!(self.lexmasks, (node, lex), self.find_lexmask(node, lex))
    }

    fn find_lexmask(&mut self, node: NodeId, lex: LexId) -> Arc<LexMask> {
        let lexicon = self.structure.lexicon();
        if let Some(mask) = of_words(lexicon, &self.vocab, node, lex) {
            return Arc::new(mask);
        }
        let content = lexicon.content(lex, self.vocab.longest_in_trie() as u32);
        let key = content.map(|content| Key { vocabulary: self.vocab.key(), node: node.0, content });
        if let Some(mask) = key.as_ref().and_then(|k| STORE.current().get(k)) {
            return mask;
        }
        if let Some(same) = self.equivalent_within_token(lex) {
            return self.lexmask(node, same);
        }
        let mask = Arc::new(self.build_lexmask(node, lex));
        self.listed += mask.bytes();
        if let Some(key) = key {
            STORE.current().put(key, mask.clone());
        }
        mask
    }

    /// A state that differs from this one by a bound on the length alone, which no token can reach.
    fn equivalent_within_token(&mut self, lex: LexId) -> Option<LexId> {
        let longest = self.vocab.longest_in_trie() as u32;
        let lexicon = self.structure.lexicon();
        let (spelling, term) =
            lexicon.term(lex).filter(|_| lexicon.is_string(lex) && lexicon.is_single(lex))?;
        let how = lexicon.terms.base(term)?;
        let (least, most) = how.bounds?;
        let same = lexicon.at(spelling, how.term);
        (least == 0 && most >= longest.saturating_add(how.eccentricity) && same != lex).then_some(same)
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
                        let at = &mut SubtreeReading { lexicon, vocab: &vocab, node, lex };
                        return LexMask::differ(at, under, &base, how, &lengths);
                    }
                }
                let free = lexicon.at(spelling, crate::lexical::Terms::ALL);
                let free = (free != lex && node == Trie::ROOT).then(|| self.lexmask(node, free));
                let lexicon = self.structure.lexicon();
                if let Some(mask) =
                    LexMask::by_chars(SubtreeReading { lexicon, vocab: &vocab, node, lex }, free.as_deref())
                {
                    return mask;
                }
            }
        }
        LexMask::build(self.structure.lexicon(), &vocab, node, lex)
    }

    /// Collects the tokens below `node` that a position allows. At the root the shared part of the mask is
    /// returned instead of being copied.
    pub(super) fn collect(
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
        let most = if self.structure.lexicon().is_string(pos.lex) { DIRECT } else { DIRECT_BETWEEN };
        if vocab.trie().subtree_size(node) <= most {
            self.walk_trie(vocab.trie(), node, pos, text, out);
            return None;
        }
        if vocab.trie().subtree_size(node) > WIDE_NODES
            && !self.structure.records(pos.ctx)
            && self.structure.lexicon().width(pos.lex) > WIDE
        {
            return self.collect_split(node, pos, out);
        }
        let mask = self.lexmask(node, pos.lex);
        if !self.structure.records(pos.ctx) {
            self.collect_exits(&mask, pos, out);
        } else if !self.collect_generic(node, &mask, pos, text, out) {
            match self.structure.bytes_after_any_text(pos.ctx) {
                Some(after) => {
                    let on: Vec<NodeId> = mask.exits.going_on(after).map(|(exit, _)| exit.node).collect();
                    let (on, ends): (Vec<_>, Vec<_>) =
                        mask.all_exits().partition(|(e, _)| on.contains(&e.node));
                    out.extend(ends.iter().flat_map(|(exit, _)| vocab.trie().tokens(exit.node)).map(|t| t.0));
                    self.collect_each((node, pos.ctx), on.into_iter(), text, out);
                }
                None => self.collect_each((node, pos.ctx), mask.all_exits(), text, out),
            }
        }
        match &mask.within {
            Within::Few(ids) => out.extend_from_slice(ids),
            Within::Many(..) if node == Trie::ROOT => return Some(mask),
            Within::Many(words) => out.extend(words.ids()),
        }
        None
    }

    /// One byte by a step, then the shared masks of the next states: there are many states in which many
    /// lexemes may begin, but few one byte later.
    fn collect_split(&mut self, node: NodeId, pos: Pos, out: &mut Vec<u32>) -> Option<Arc<LexMask>> {
        let vocab = self.vocab.clone();
        if let Some(usual) = self.usual_target(node, pos) {
            return self.collect_divergent(pos, usual, out);
        }
        let (bytes, nodes) = vocab.trie().children(node);
        for (&byte, &child) in bytes.iter().zip(nodes) {
            if let Some(next) = step(&mut self.structure, pos, &mut Vec::new(), byte) {
                out.extend(vocab.trie().tokens(child).iter().map(|t| t.0));
                self.collect_below(child, next, out);
            }
        }
        None
    }

    /// The exits of a lexeme whose text does not matter: memoised.
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
                self.collect_exit(exit, &exit.outcome, pos.ctx, &[], out);
            }
            return;
        }
        let ids = memo!(self.left, (pos.ctx, exits.id), {
            let mut ids = Vec::new();
            for exit in exits.list.iter().filter(|e| !e.grouped) {
                self.collect_exit(exit, &exit.outcome, pos.ctx, &[], &mut ids);
            }
            for group in &exits.groups {
                self.collect_group(group, pos.ctx, &mut ids);
            }
            self.counted(ids)
        });
        self.without(&ids, &mask.missing, out);
    }

    /// The tokens whose remainder after the closing byte a position allows; memoised.
    fn tokens_after(&mut self, exits: &Exits, next: Pos) -> Arc<[u32]> {
        memo!(self.after, (next, exits.id), {
            let trie = &exits.remainders.as_ref().expect("asked before").trie;
            let mut ids: Vec<u32> = trie.tokens(Trie::ROOT).iter().map(|t| t.0).collect();
            self.walk_trie(trie, Trie::ROOT, next, &[], &mut ids);
            self.counted(ids)
        })
    }

    /// Counts a list that a table keeps.
    fn counted<T>(&mut self, list: Vec<T>) -> Arc<[T]> {
        let list: Arc<[T]> = list.into();
        self.listed += heap_size::slice(&list);
        list
    }

    /// The ids that do not pass one of these exits.
    pub(super) fn without(&self, ids: &[u32], exits: &[NodeId], out: &mut Vec<u32>) {
        if exits.is_empty() {
            return out.extend_from_slice(ids);
        }
        let trie = self.vocab.trie();
        let gone: Vec<u32> = exits.iter().flat_map(|&n| trie.subtree_tokens(n)).map(|t| t.0).collect();
        if gone.len() <= FEW {
            return out.extend(ids.iter().filter(|id| !gone.contains(id)));
        }
        MARKED.with_borrow_mut(|words| {
            words.resize(words.len().max(self.vocab.mask_words()), 0);
            words.allow_all(gone.iter().copied());
            out.extend(ids.iter().copied().filter(|&id| !words.allows(id)));
            words.forbid_all(gone);
        });
    }

    /// The exits of a lexeme whose text matters, where nearly all texts mean the same (a key that no schema
    /// names): one walk for those, and one for each of the few others. False where this does not apply.
    fn collect_generic(
        &mut self,
        node: NodeId,
        mask: &LexMask,
        pos: Pos,
        text: &mut Vec<u8>,
        out: &mut Vec<u32>,
    ) -> bool {
        let Some(remainders) = &mask.exits.remainders else { return false };
        let held = mask.outcome.as_ref().unwrap_or(&remainders.outcome);
        if !mask.odd.is_empty() {
            return false;
        }
        let Some(plain) = without_escapes(text) else { return false };
        let Some(next) = self.structure.close_generic(pos.ctx, held) else { return false };
        let before = self.structure.closings();
        let ids = self.tokens_after(&mask.exits, next);
        if self.structure.closings() != before {
            // a token contains another whole key: whether it is allowed depends on this one
            self.after.remove(&(next, mask.exits.id));
            return false;
        }
        let single = self.exceptional_exits(node, mask, pos.ctx, &plain);
        let mut gone = single.clone();
        gone.extend(mask.missing.iter());
        self.without(&ids, &gone, out);
        let single = mask.all_exits().filter(|e| single.binary_search(&e.0.node).is_ok());
        self.collect_each((node, pos.ctx), single, text, out);
        true
    }

    /// Exits of a lexeme whose text matters, one by one.
    fn collect_each<'e>(
        &mut self,
        (node, ctx): (NodeId, CtxId),
        exits: impl Iterator<Item = (&'e Exit, &'e [u32])>,
        text: &mut Vec<u8>,
        out: &mut Vec<u32>,
    ) {
        let (vocab, held) = (self.vocab.clone(), text.len());
        for (exit, outcome) in exits {
            text.truncate(held);
            text.extend(exit.path(vocab.trie(), node));
            self.collect_exit(exit, outcome, ctx, text, out);
        }
        text.truncate(held);
    }

    /// The exits below a node after texts that are exceptional or have an escape; only those from which a
    /// token goes on, if the structure can close the others after any text.
    fn exceptional_exits(&mut self, node: NodeId, mask: &LexMask, ctx: CtxId, begun: &str) -> Vec<NodeId> {
        let vocab = self.vocab.clone();
        let trie = vocab.trie();
        let mut odd: Vec<NodeId> = match self.structure.bytes_after_any_text(ctx) {
            Some(after) => {
                // before the first byte all exceptional texts would be listed: each path is tested instead
                let suffix_sets = (!begun.is_empty()).then(|| self.structure.exceptional(ctx, begun));
                let above = trie.path(Trie::ROOT, node).len();
                let mut is_odd = |exit: &Exit, path: &[u8]| {
                    exit.escaped
                        || match (&suffix_sets, std::str::from_utf8(&path[above..])) {
                            (Some(suffix_sets), Ok(path)) => suffix_sets.iter().any(|rest| rest == path),
                            (None, Ok(path)) => self.structure.is_exceptional(ctx, path),
                            (_, Err(_)) => true,
                        }
                };
                let on = mask.exits.going_on(after);
                on.filter(|(exit, path)| is_odd(exit, path)).map(|(exit, _)| exit.node).collect()
            }
            None => {
                let suffix_sets = self.structure.exceptional(ctx, begun).into_iter();
                let named = |rest: String| trie.spells(node, &rest).and_then(|at| trie.child(at, b'"'));
                let escaped = mask.exits.list.iter().filter(|exit| exit.escaped).map(|exit| exit.node);
                suffix_sets.filter_map(named).chain(escaped).collect()
            }
        };
        crate::lists::sort_unique(&mut odd);
        odd
    }

    /// `outcome`: the languages that accept there, which may differ between states that share the exit.
    fn collect_exit(&mut self, exit: &Exit, outcome: &[u32], ctx: CtxId, text: &[u8], out: &mut Vec<u32>) {
        let vocab = self.vocab.clone();
        let outcome = self.structure.lexicon().intern_outcome(outcome);
        if exit.closed {
            if let Some(next) = self.structure.close(ctx, outcome, text) {
                out.extend(vocab.trie().tokens(exit.node).iter().map(|t| t.0));
                self.collect_below(exit.node, next, out);
            }
            return;
        }
        let allowed = self.structure.leave_bytes(ctx, outcome);
        let mut leave = |this: &mut Self, byte: u8, child: NodeId| {
            let next = match vocab.trie().subtree_size(child) {
                1 => this.structure.may_leave(ctx, outcome, text, byte).then_some(None),
                _ => this.structure.leave(ctx, outcome, text, byte).map(Some),
            };
            out.extend(next.iter().flat_map(|_| vocab.trie().tokens(child)).map(|t| t.0));
            if let Some(next) = next.flatten() {
                this.collect_below(child, next, out);
            }
        };
        if allowed.len() * SEARCH > exit.beyond.len() {
            exit.beyond.iter().filter(|b| allowed.has(b.0)).for_each(|b| leave(self, b.0, b.1));
            return;
        }
        for byte in allowed.iter() {
            if let Ok(at) = exit.beyond.binary_search_by_key(&byte, |b| b.0) {
                leave(self, byte, exit.beyond[at].1);
            }
        }
    }

    /// The exits of a group, through the trie of what follows them.
    fn collect_group(&mut self, group: &SuffixTrie, ctx: CtxId, out: &mut Vec<u32>) {
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

    pub(super) fn collect_below(&mut self, node: NodeId, pos: Pos, out: &mut Vec<u32>) {
        self.collect_all(node, pos, &mut Vec::new(), out);
    }

    /// [`Core::collect`], the shared part included.
    fn collect_all(&mut self, node: NodeId, pos: Pos, text: &mut Vec<u8>, out: &mut Vec<u32>) {
        let base = self.collect(node, pos, text, out);
        if let Some(LexMask { within: Within::Many(words), .. }) = base.as_deref() {
            out.extend(words.ids());
        }
    }

    /// The tokens of a position inside a JSON string, from those of the text that the string spells.
    pub(super) fn collect_unquoted(&mut self, pos: Pos, inner: Pos, out: &mut Vec<u32>) {
        let vocab = self.vocab.clone();
        let (plain, others) = vocab.spelled_in_json();
        let parts = self.structure.split(inner).unwrap_or_else(|| vec![(inner, Vec::new())]);
        let mut found = Vec::new();
        for (pos, mut text) in parts {
            self.collect_all(Trie::ROOT, pos, &mut text, &mut found);
        }
        out.extend(found.into_iter().filter(|&id| plain.allows(id)));
        self.walk_trie(others, Trie::ROOT, pos, &[], out);
    }

    /// The plain walk, byte by byte.
    pub(super) fn walk_trie(&mut self, trie: &Trie, node: NodeId, pos: Pos, text: &[u8], out: &mut Vec<u32>) {
        let (bytes, nodes) = trie.children(node);
        crate::work::spend(1 + bytes.len() as u64);
        let mut visit = |this: &mut Self, byte: u8, child: NodeId| {
            let mut own = text.to_vec();
            let next = match trie.subtree_size(child) {
                1 => may_step(&mut this.structure, pos, text, byte).then_some(None),
                _ => step(&mut this.structure, pos, &mut own, byte).map(Some),
            };
            out.extend(next.iter().flat_map(|_| trie.tokens(child)).map(|t| t.0));
            if let Some(next) = next.flatten() {
                this.walk_trie(trie, child, next, &own, out);
            }
        };
        if nodes.len() <= SEARCH {
            bytes.iter().zip(nodes).for_each(|(&byte, &child)| visit(self, byte, child));
            return;
        }
        let allowed = self.next_bytes(pos);
        if allowed.len() * SEARCH > nodes.len() {
            let children = bytes.iter().zip(nodes).filter(|(byte, _)| allowed.has(**byte));
            children.for_each(|(&byte, &child)| visit(self, byte, child));
            return;
        }
        for byte in allowed.iter() {
            if let Ok(at) = bytes.binary_search(&byte) {
                visit(self, byte, nodes[at]);
            }
        }
    }

    /// A superset of the bytes that a position allows.
    pub(super) fn next_bytes(&mut self, pos: Pos) -> ByteSet {
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
}

/// The decoded text of a string's lexeme; `None` in the middle of an escape or of a code point.
pub(super) fn without_escapes(text: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    let text = std::str::from_utf8(text).ok()?;
    if !text.contains('\\') {
        return Some(text.into());
    }
    serde_json::from_str::<String>(&format!("\"{text}\"")).ok().map(Into::into)
}

/// Splits a text before an incomplete code point or escape at its end.
pub(super) fn unfinished(text: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    while at < text.len() {
        let width = match text[at..] {
            [b'\\', b'u', b'd' | b'D', b'8'..=b'9' | b'a'..=b'b' | b'A'..=b'B', ..] => 12,
            [b'\\', b'u', ..] => 6,
            [b'\\', ..] => 2,
            [0xF0..=0xFF, ..] => 4,
            [0xE0..=0xEF, ..] => 3,
            [0xC0..=0xDF, ..] => 2,
            _ => 1,
        };
        if at + width > text.len() {
            break;
        }
        at += width;
    }
    text.split_at(at)
}
