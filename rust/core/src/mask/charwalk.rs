//! The walk of a vocabulary by whole code points, for states inside a JSON string or another text.
//!
//! Purpose: what a state of a pattern does with 131,072 tokens, in a fraction of a millisecond. Most states
//! have a self-loop under a large class of characters. Below such a state, tokens made of the class are found
//! by a scan of one array; where nearly all characters are in the class, only the nodes of the others are
//! visited, on a copy of the free string's mask.
//! Invariant: the same tokens and exits as [`super::walk::Walk`] finds, in the same order.
//! Complexity: nodes inside the class, or nodes outside of it; the byte walk takes 20 times as long.
//! Escapes are left to the byte walk: only the lexicon knows how they are spelled.
//!
//! Texts that are no JSON strings (strings and comments of a grammar) may end anywhere, and no character is
//! special in them. Where nearly all tokens stay inside, only the nodes of the few other characters are
//! visited; where these are many (a text of letters alone), characters are decided one by one.
//! Memory: the result and the visited states, as long as the walk.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::exits::Exit;
use super::self_loops::{begins, SelfLoop};
use super::walk::{ByteTables, Walk};
use super::within::Within;
use crate::lexical::spell::{ByteSet, OutcomeId};
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::chars::CharId;
use crate::vocab::{Chars, NodeId, TokenSet, Trie, Vocabulary};
use crate::work;

/// Nodes from which on it pays to make a bit set of a state's loop.
const LOOP_NODES: u32 = 48;
/// The same of a state without a loop, whose dead characters are then found sooner.
const NO_LOOP_NODES: u32 = 4096;
/// With fewer nodes, not even the look-up of an existing one pays.
const FEW_NODES: u32 = 4;
/// Levels of a walk after which the rest of the machine's stack is checked.
const LEVELS: u32 = 8;
/// With more tokens that begin with a readable character, those that stay inside are collected in a mask.
const MANY: usize = 8192;

pub(super) struct CharWalk<'a> {
    pub(super) lexicon: &'a mut Lexicon,
    pub(super) vocab: &'a Vocabulary,
    top: NodeId,
    depth: u32,
    /// The tokens that stay inside: a mask, or their ids.
    pub(super) words: Option<Vec<u32>>,
    ids: Vec<u32>,
    exits: Vec<Exit>,
    known: FxHashMap<LexId, Rc<CharTable>>,
    /// Tables of the walks by bytes.
    tables: ByteTables,
    /// Where a text that is no string of JSON ends, by the byte that follows.
    pub(super) ends: Option<FxHashMap<NodeId, ByteSet>>,
}

/// A state's transitions by characters.
pub(super) struct CharTable {
    pub(super) row: Arc<[(u32, LexId)]>,
    /// The row's targets for ASCII.
    ascii: [LexId; 128],
    outcome: OutcomeId,
    /// Its loop, once it was computed.
    self_loop: OnceCell<SelfLoop>,
}

impl CharTable {
    fn new(row: Arc<[(u32, LexId)]>, outcome: OutcomeId) -> Self {
        let mut ascii = [Lexicon::DEAD; 128];
        let mut from = 0;
        for &(end, to) in row.iter() {
            let end = end.min(127) as usize;
            ascii[from..=end].fill(to);
            from = end + 1;
            if from == ascii.len() {
                break;
            }
        }
        CharTable { row, ascii, outcome, self_loop: OnceCell::new() }
    }

    #[inline]
    fn next(&self, point: u32) -> LexId {
        match self.ascii.get(point as usize) {
            Some(&next) => next,
            None => self.row[self.row.partition_point(|r| r.0 < point)].1,
        }
    }
}

enum Target {
    Dead,
    Live(LexId),
    /// A tail (a cut-off code point), and whether some code point that begins so is allowed.
    Tail(bool),
    Quote,
    Backslash,
}

impl<'a> CharWalk<'a> {
    /// `free`: the mask of the free string below the same node.
    pub(super) fn run(
        lexicon: &'a mut Lexicon,
        vocab: &'a Vocabulary,
        top: NodeId,
        lex: LexId,
        free: Option<&[u32]>,
    ) -> Option<Self> {
        let at = vocab.chars().index_of(top)?;
        let mut this = CharWalk::new(lexicon, vocab, top);
        this.depth = vocab.chars().depth(at);
        let (begun, all) = (this.count_readable(lex), vocab.trie().subtree_tokens(top).len());
        let free = free.filter(|_| begun * 2 > all);
        this.words = match free {
            Some(free) => Some(free.to_vec()),
            None => (begun > MANY).then(|| vec![0; vocab.mask_words()]),
        };
        let known = this.known(lex);
        this.visit_below(at, lex, &known, free.is_some());
        Some(this)
    }

    pub(super) fn new(lexicon: &'a mut Lexicon, vocab: &'a Vocabulary, top: NodeId) -> Self {
        let (depth, ids, words) = Default::default();
        let (exits, known, tables, ends) = Default::default();
        CharWalk { lexicon, vocab, top, depth, words, ids, exits, known, tables, ends }
    }

    /// The tokens that stay inside.
    pub(super) fn finish(self) -> (Within, Vec<Exit>) {
        let within = match self.words {
            Some(words) => Within::of_words(words),
            None => Within::of(self.ids, self.vocab),
        };
        (within, self.exits)
    }

    /// Visits the nodes below one that leads to the state. `preset`: the mask has what the free string allows
    /// there.
    pub(super) fn visit_below(&mut self, at: u32, lex: LexId, known: &CharTable, preset: bool) {
        let chars: &'a Chars = self.vocab.chars();
        let (from, to) = (at + 1, chars.end(at));
        if from == to {
            return;
        }
        if self.below_counted(at, lex, known, preset) {
            return;
        }
        let self_loop = self.self_loop(lex, known, to - from);
        match (self_loop, chars.children(at)) {
            (Some(self_loop), _) if preset && self_loop.few_outside => {
                let mut next = from;
                for &at in self_loop.outside_nodes(chars, from, to) {
                    if at >= next {
                        self.visit_elsewhere(at, lex, known, true);
                        next = chars.end(at);
                    }
                }
            }
            // a text may end before a child that it can't read
            (_, Some(children)) if !preset && self.ends.is_none() => {
                for at in self.live_children(children, known) {
                    self.sweep((at, chars.end(at)), lex, known, self_loop, false);
                }
            }
            _ => self.sweep((from, to), lex, known, self_loop, preset),
        }
    }

    /// The children that a state can read, in preorder.
    pub(super) fn live_children(&self, children: &[(CharId, u32)], known: &CharTable) -> Vec<u32> {
        let chars: &'a Chars = self.vocab.chars();
        let upto = |c: CharId| children.partition_point(|k| k.0 < c);
        let mut places: Vec<u32> = Vec::new();
        let mut from = upto(chars.chars_up_to(0x1F));
        for &(end, to) in known.row.iter() {
            let next = upto(chars.chars_up_to(end)).max(from);
            if to != Lexicon::DEAD {
                places.extend(children[from..next].iter().map(|k| k.1));
            }
            from = next;
        }
        let special = [0x22, 0x5C].map(|point| chars.chars_up_to(point).wrapping_sub(1));
        for c in special {
            places.extend(children[upto(c)..].first().filter(|k| k.0 == c).map(|k| k.1));
        }
        if known.row.iter().any(|r| r.0 >= 0x80 && r.1 != Lexicon::DEAD) {
            let tails = &children[upto(chars.points().len() as u32)..];
            places.extend(tails.iter().map(|k| k.1));
        }
        crate::lists::sort_unique(&mut places);
        places
    }

    /// Visits the nodes from..to, all reached from the state through its own loop.
    fn sweep(
        &mut self,
        (from, to): (u32, u32),
        lex: LexId,
        known: &CharTable,
        self_loop: Option<&SelfLoop>,
        preset: bool,
    ) {
        let chars: &'a Chars = self.vocab.chars();
        // a node of the loop is one access to an array
        work::spend(1 + u64::from(to - from) / 16);
        let mut at = from;
        while at < to {
            let c = chars.char_of(at);
            match self_loop {
                Some(self_loop) if self_loop.has(c) => {
                    let run = at;
                    at = (at + 1..to).find(|&at| !self_loop.has(chars.char_of(at))).unwrap_or(to);
                    if !preset {
                        self.set(run, at);
                    }
                    continue;
                }
                Some(self_loop) if self_loop.is_dead(c) => {
                    self.visit_dead(chars.node(at), lex, preset);
                }
                _ => self.visit_elsewhere(at, lex, known, preset),
            }
            at = chars.end(at);
        }
    }

    /// A node whose character leads the state elsewhere, with all that is below.
    pub(super) fn visit_elsewhere(&mut self, at: u32, lex: LexId, known: &CharTable, preset: bool) {
        let chars: &'a Chars = self.vocab.chars();
        let (c, node) = (chars.char_of(at), chars.node(at));
        match self.target(known, c) {
            Target::Dead | Target::Tail(false) => self.visit_dead(node, lex, preset),
            Target::Tail(true) if !preset => self.set(at, at + 1),
            Target::Tail(true) => {}
            Target::Live(next) => {
                if !preset {
                    self.set(at, at + 1);
                }
                if chars.end(at) == at + 1 {
                    return;
                }
                // most characters leave a state as it is
                let other = (next != lex).then(|| self.known(next));
                let known = other.as_deref().unwrap_or(known);
                // the stack is checked now and then: most nodes are not deep
                match chars.depth(at) % LEVELS {
                    0 => stacker::maybe_grow(64 << 10, 1 << 20, || self.visit_below(at, next, known, preset)),
                    _ => self.visit_below(at, next, known, preset),
                }
            }
            Target::Quote => self.close(node, known, chars.depth(at)),
            Target::Backslash => {
                if preset {
                    self.clear_below(node);
                }
                self.escape(node, lex, chars.depth(at));
            }
        }
    }

    /// A node that the state can't read.
    pub(super) fn visit_dead(&mut self, node: NodeId, lex: LexId, preset: bool) {
        if preset {
            self.clear_below(node);
        }
        self.end_before(node, lex);
    }

    fn target(&self, known: &CharTable, c: CharId) -> Target {
        let chars = self.vocab.chars();
        let Some(&point) = chars.points().get(c as usize) else {
            let tail = chars.tails()[c as usize - chars.points().len()];
            return Target::Tail(begins(&known.row, tail));
        };
        match point {
            0x22 if self.ends.is_none() => Target::Quote,
            0x5C if self.ends.is_none() => Target::Backslash,
            0..=0x1F if self.ends.is_none() => Target::Dead,
            _ => match known.next(point) {
                Lexicon::DEAD => Target::Dead,
                next => Target::Live(next),
            },
        }
    }

    fn close(&mut self, node: NodeId, known: &CharTable, depth: u32) {
        if known.outcome != Lexicon::NONE {
            let outcome = self.lexicon.outcome_list(known.outcome).into();
            let length = depth - 1 - self.depth;
            let escaped = false;
            self.exits.push(Exit {
                node,
                length,
                escaped,
                outcome,
                closed: true,
                beyond: [].into(),
                grouped: false,
            });
        }
    }

    fn escape(&mut self, node: NodeId, lex: LexId, depth: u32) {
        let Step::Stay(next) = self.lexicon.step(lex, b'\\') else { return };
        let mut walk = Walk::new(self.lexicon, self.vocab, self.top);
        walk.tables = std::mem::take(&mut self.tables);
        walk.length = depth - self.depth;
        walk.ids.extend(self.vocab.trie().tokens(node).iter().map(|t| t.0));
        walk.visit(node, next);
        let Walk { ids, exits, tables, .. } = walk;
        self.tables = tables;
        self.exits.extend(exits);
        match &mut self.words {
            Some(words) => words.allow_all(ids),
            None => self.ids.extend(ids),
        }
    }

    pub(super) fn known(&mut self, lex: LexId) -> Rc<CharTable> {
        memo!(self.known, lex, Rc::new(CharTable::new(self.lexicon.row(lex), self.lexicon.outcome(lex))))
    }

    /// An estimate of the tokens that begin with a character under which a state is alive: the letter é
    /// represents all beyond ASCII.
    fn count_readable(&mut self, lex: LexId) -> usize {
        let known = self.known(lex);
        let trie = self.vocab.trie();
        let (bytes, nodes) = trie.children(self.top);
        let lives = |&(&byte, _): &(&u8, &NodeId)| {
            let point = if byte < 0x80 { byte } else { b'\xE9' };
            known.next(point as u32) != Lexicon::DEAD
        };
        bytes.iter().zip(nodes).filter(lives).map(|(_, &n)| trie.subtree_tokens(n).len()).sum()
    }

    /// The loop of a state with so many nodes below: computed only where they are many.
    pub(super) fn self_loop<'k>(&self, lex: LexId, known: &'k CharTable, nodes: u32) -> Option<&'k SelfLoop> {
        if nodes < FEW_NODES {
            return None;
        }
        if let Some(self_loop) = known.self_loop.get() {
            return Some(self_loop);
        }
        if nodes < LOOP_NODES || nodes < NO_LOOP_NODES && known.row.iter().all(|r| r.1 != lex) {
            return None;
        }
        let lives = |tail| Some(begins(&known.row, tail));
        let find = || SelfLoop::find(self.vocab.chars(), lex, &known.row, self.ends.is_none(), lives);
        Some(known.self_loop.get_or_init(find))
    }

    /// The tokens of nodes from..to stay inside.
    #[inline]
    pub(super) fn set(&mut self, from: u32, to: u32) {
        let tokens = self.vocab.chars().tokens(from, to);
        match &mut self.words {
            Some(words) => words.allow_all(tokens.iter().copied()),
            None => self.ids.extend_from_slice(tokens),
        }
    }

    fn clear_below(&mut self, node: NodeId) {
        let words = self.words.as_mut().expect("only a mask that was preset is corrected");
        words.forbid_all(self.vocab.trie().subtree_tokens(node).iter().map(|t| t.0));
    }
}

/// Fewest ASCII characters that must keep a state, where many others lead elsewhere.
const WIDE: usize = 16;

impl<'a> CharWalk<'a> {
    /// A walk of texts that are no strings of JSON.
    pub(super) fn of_texts(lexicon: &'a mut Lexicon, vocab: &'a Vocabulary) -> Self {
        let mut this = CharWalk::new(lexicon, vocab, Trie::ROOT);
        (this.words, this.ends) = (Some(Vec::new()), Some(FxHashMap::default()));
        this
    }

    /// Adds what stays inside below a node; `false` where the walk by bytes is as good.
    pub(super) fn add(&mut self, node: NodeId, lex: LexId) -> bool {
        let Some(at) = self.vocab.chars().index_of(node) else { return false };
        let known = self.known(lex);
        let few_outside =
            self.self_loop(lex, &known, u32::MAX).is_some_and(|self_loop| self_loop.few_outside);
        if !few_outside && (self.lexicon.outcome(lex) != Lexicon::NONE || !self.is_wide(lex)) {
            return false;
        }
        let words = self.words.get_or_insert_default();
        match few_outside {
            true => self.vocab.add_texts_below(node, words),
            false => words.resize(self.vocab.mask_words(), 0),
        }
        self.visit_below(at, lex, &known, few_outside);
        true
    }

    /// Whether a state stays what it is under enough characters for a walk by characters.
    fn is_wide(&mut self, lex: LexId) -> bool {
        let row = self.lexicon.row(lex);
        (0x20..0x7F).filter(|c| row[row.partition_point(|r| r.0 < *c)].1 == lex).count() >= WIDE
    }

    /// What stays inside, as a mask (empty where nothing was added), and where the language ends.
    pub(super) fn finish_texts(self) -> (Vec<u32>, FxHashMap<NodeId, ByteSet>) {
        (self.words.unwrap_or_default(), self.ends.unwrap_or_default())
    }

    /// A text ends before the character that leads to a node, if its first byte can't be read.
    pub(super) fn end_before(&mut self, mut node: NodeId, lex: LexId) {
        let Some(ends) = &mut self.ends else { return };
        if self.lexicon.outcome(lex) == Lexicon::NONE {
            return;
        }
        let trie = self.vocab.trie();
        let mut byte = trie.byte(node);
        while (0x80..0xC0).contains(&byte) {
            node = trie.parent(node);
            byte = trie.byte(node);
        }
        if self.lexicon.step(lex, byte) == Step::Dead {
            ends.entry(trie.parent(node)).or_default().insert(byte);
        }
    }
}
