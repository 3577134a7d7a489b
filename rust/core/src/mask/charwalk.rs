//! The walk of a vocabulary by whole code points, for states inside a JSON string.
//!
//! Purpose: tell in a fraction of a millisecond what a state of a pattern does with 131,072 tokens.  Most states
//! lead back to themselves under a large class of characters: below such a state, tokens made of the class are
//! read off by a scan of one array, and where nearly all characters are of the class, only the places of the
//! others are looked at, in a copy of the free string's mask.
//! Invariant: the same tokens and exits as [`super::walk::Walk`] finds, in the same order.
//! Complexity: nodes inside the class, or places outside of it; the byte walk takes 20 times as long.
//! Escapes are left to the byte walk: how they are spelled is known to the lexicon alone.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::exits::Exit;
use super::walk::{Tables, Walk};
use super::within::Within;
use crate::lexical::spell::OutcomeId;
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::chars::{CharId, Tail, NO_TOKEN, SEVERAL};
use crate::vocab::{Chars, NodeId, TokenId, TokenSet, Vocabulary};
use crate::work;

/// Nodes from which on it pays to make a bit set of a state's loop.
const LOOP_NODES: u32 = 48;
/// Nodes below which it does not even pay to look for one that was made.
const FEW_NODES: u32 = 4;
/// Levels of a walk after which it is asked how much of the machine's stack is left.
const LEVELS: u32 = 8;
/// The free string's mask is corrected where at most one node in so many lies outside of the loop.
const RARE: usize = 4;

pub(super) struct CharWalk<'a> {
    lexicon: &'a mut Lexicon,
    vocab: &'a Vocabulary,
    top: NodeId,
    depth: u32,
    /// The tokens that stay inside: a corrected mask, or their ids.
    words: Option<Vec<u32>>,
    ids: Vec<u32>,
    exits: Vec<Exit>,
    known: FxHashMap<LexId, Rc<Known>>,
    loops: FxHashMap<LexId, Option<Rc<Loop>>>,
    /// Of the walks by bytes.
    tables: Tables,
}

/// A state, taken apart.
struct Known {
    row: Arc<[(u32, LexId)]>,
    outcome: OutcomeId,
}

/// The characters under which a state stays what it is, and the tails under which it lives.
struct Loop {
    bits: Box<[u64]>,
    /// The others, as ranges, and whether few nodes are theirs.
    others: Vec<(CharId, CharId)>,
    rare: bool,
    /// Those nodes, in preorder; found when first asked for.
    places: OnceCell<Vec<u32>>,
}

impl Loop {
    #[inline]
    fn has(&self, c: CharId) -> bool {
        self.bits[c as usize >> 6] >> (c & 63) & 1 == 1
    }

    fn places(&self, chars: &Chars, from: u32, to: u32) -> &[u32] {
        let all = self.places.get_or_init(|| {
            let mut all: Vec<u32> =
                self.others.iter().flat_map(|&(a, b)| chars.places(a, b)).copied().collect();
            all.sort_unstable();
            all
        });
        &all[all.partition_point(|&at| at < from)..all.partition_point(|&at| at < to)]
    }
}

enum Target {
    Dead,
    Live(LexId),
    /// A tail, and whether some code point that begins so is allowed.
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
        let chars = vocab.chars();
        let at = chars.place(top)?;
        let mut this = CharWalk {
            lexicon,
            vocab,
            top,
            depth: chars.depth(at),
            words: None,
            ids: Vec::new(),
            exits: Vec::new(),
            known: FxHashMap::default(),
            loops: FxHashMap::default(),
            tables: Tables::default(),
        };
        match free.filter(|_| this.is_wide(lex)) {
            Some(free) => {
                this.words = Some(free.to_vec());
                this.below(at, lex, true);
            }
            None => this.below(at, lex, false),
        }
        Some(this)
    }

    /// The tokens that stay inside.
    pub(super) fn finish(self) -> (Within, Vec<Exit>) {
        let within = match self.words {
            Some(words) => Within::of_words(words),
            None => Within::of(self.ids, self.vocab),
        };
        (within, self.exits)
    }

    /// The nodes below one at which the state stands. `preset`: the mask holds what the free string allows there.
    fn below(&mut self, at: u32, lex: LexId, preset: bool) {
        let chars: &'a Chars = self.vocab.chars();
        let (from, to) = (at + 1, chars.end(at));
        if from == to {
            return;
        }
        let lone = self.lone(lex, to - from);
        match chars.kids(at) {
            _ if preset && lone.as_ref().is_some_and(|l| l.rare) => {
                let lone = lone.expect("just looked at");
                let known = self.known(lex);
                let mut next = from;
                for &at in lone.places(chars, from, to) {
                    if at >= next {
                        self.other(at, lex, &known, true);
                        next = chars.end(at);
                    }
                }
            }
            Some(kids) if !preset => {
                for at in self.live_kids(kids, lex) {
                    self.sweep(at, chars.end(at), lex, lone.as_deref(), false);
                }
            }
            _ => self.sweep(from, to, lex, lone.as_deref(), preset),
        }
    }

    /// The children that a state can read, in preorder.
    fn live_kids(&mut self, kids: &[(CharId, u32)], lex: LexId) -> Vec<u32> {
        let chars: &'a Chars = self.vocab.chars();
        let known = self.known(lex);
        let upto = |c: CharId| kids.partition_point(|k| k.0 < c);
        let mut places: Vec<u32> = Vec::new();
        let mut from = upto(chars.upto(0x1F));
        for &(end, to) in known.row.iter() {
            let next = upto(chars.upto(end)).max(from);
            if to != Lexicon::DEAD {
                places.extend(kids[from..next].iter().map(|k| k.1));
            }
            from = next;
        }
        let special = [0x22, 0x5C].map(|point| chars.upto(point).wrapping_sub(1));
        for c in special {
            places.extend(kids[upto(c)..].first().filter(|k| k.0 == c).map(|k| k.1));
        }
        if known.row.iter().any(|r| r.0 >= 0x80 && r.1 != Lexicon::DEAD) {
            let tails = &kids[upto(chars.points().len() as u32)..];
            places.extend(tails.iter().map(|k| k.1));
        }
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The nodes from..to, all of which the state reads after its own loop.
    fn sweep(&mut self, from: u32, to: u32, lex: LexId, lone: Option<&Loop>, preset: bool) {
        let chars: &'a Chars = self.vocab.chars();
        let known = self.known(lex);
        // a node of the loop is one look at an array
        work::spend(1 + u64::from(to - from) / 16);
        let mut at = from;
        while at < to {
            let c = chars.char_of(at);
            if lone.is_some_and(|l| l.has(c)) {
                if !preset {
                    self.set(at);
                }
                at += 1;
            } else {
                self.other(at, lex, &known, preset);
                at = chars.end(at);
            }
        }
    }

    /// A node whose character leads the state elsewhere, with all that is below.
    fn other(&mut self, at: u32, lex: LexId, known: &Known, preset: bool) {
        let chars: &'a Chars = self.vocab.chars();
        let (c, node) = (chars.char_of(at), chars.node(at));
        match self.target(known, c) {
            Target::Dead if preset => self.clear_below(node),
            Target::Dead => {}
            Target::Tail(alive) if alive != preset => match alive {
                true => self.set(at),
                false => self.clear(node),
            },
            Target::Tail(_) => {}
            Target::Live(next) => {
                if !preset {
                    self.set(at);
                }
                if chars.end(at) == at + 1 {
                    return;
                }
                // the stack is looked at now and then: most nodes are not deep
                match chars.depth(at) % LEVELS {
                    0 => stacker::maybe_grow(64 << 10, 1 << 20, || self.below(at, next, preset)),
                    _ => self.below(at, next, preset),
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

    fn target(&self, known: &Known, c: CharId) -> Target {
        let chars = self.vocab.chars();
        let Some(&point) = chars.points().get(c as usize) else {
            let tail = chars.tails()[c as usize - chars.points().len()];
            return Target::Tail(begins(&known.row, tail));
        };
        match point {
            0x22 => Target::Quote,
            0x5C => Target::Backslash,
            0..=0x1F => Target::Dead,
            _ => match known.row[known.row.partition_point(|r| r.0 < point)].1 {
                Lexicon::DEAD => Target::Dead,
                next => Target::Live(next),
            },
        }
    }

    fn close(&mut self, node: NodeId, known: &Known, depth: u32) {
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

    fn known(&mut self, lex: LexId) -> Rc<Known> {
        if let Some(known) = self.known.get(&lex) {
            return known.clone();
        }
        let known = Rc::new(Known { row: self.lexicon.row(lex), outcome: self.lexicon.outcome(lex) });
        self.known.insert(lex, known.clone());
        known
    }

    /// Whether a state lives under most of the characters that tokens are made of.
    fn is_wide(&mut self, lex: LexId) -> bool {
        let known = self.known(lex);
        let live = |c: &u32| known.row[known.row.partition_point(|r| r.0 < *c)].1 != Lexicon::DEAD;
        (0x20..0x7F).filter(live).count() > 48
    }

    /// The loop of a state with so many nodes below: looked for only where they are many.
    fn lone(&mut self, lex: LexId, nodes: u32) -> Option<Rc<Loop>> {
        if nodes < FEW_NODES {
            return None;
        }
        if let Some(known) = self.loops.get(&lex) {
            return known.clone();
        }
        if nodes < LOOP_NODES {
            return None;
        }
        let row = self.known(lex).row.clone();
        let lone = row.iter().any(|r| r.1 == lex).then(|| Rc::new(self.find_loop(lex, &row)));
        self.loops.insert(lex, lone.clone());
        lone
    }

    fn find_loop(&mut self, lex: LexId, row: &[(u32, LexId)]) -> Loop {
        let chars = self.vocab.chars();
        let points = chars.points().len() as u32;
        work::spend((row.len() + chars.tails().len()) as u64 + u64::from(points) / 64);
        let mut bits = vec![0u64; (points as usize + chars.tails().len()).div_ceil(64)].into_boxed_slice();
        let mut from = chars.upto(0x1F);
        for &(end, to) in row {
            let next = chars.upto(end).max(from);
            if to == lex {
                fill(&mut bits, from, next);
            }
            from = next;
        }
        for special in [0x22u32, 0x5C] {
            if let Ok(c) = chars.points().binary_search(&special) {
                bits[c >> 6] &= !(1 << (c & 63));
            }
        }
        for (c, &tail) in (points..).zip(chars.tails()) {
            bits[c as usize >> 6] |= (begins(row, tail) as u64) << (c & 63);
        }
        let others = gaps(&bits, points + chars.tails().len() as u32);
        let count: usize = others.iter().map(|&(a, b)| chars.places(a, b).len()).sum();
        let rare = count * RARE < chars.len();
        Loop { bits, others, rare, places: OnceCell::new() }
    }

    #[inline]
    fn set(&mut self, at: u32) {
        match self.vocab.chars().token(at) {
            NO_TOKEN => {}
            SEVERAL => self.set_all(at),
            id => match &mut self.words {
                Some(words) => words.allow(id),
                None => self.ids.push(id),
            },
        }
    }

    fn set_all(&mut self, at: u32) {
        let tokens = self.vocab.trie().tokens(self.vocab.chars().node(at));
        match &mut self.words {
            Some(words) => words.allow_all(tokens.iter().map(|t| t.0)),
            None => self.ids.extend(tokens.iter().map(|t| t.0)),
        }
    }

    fn clear(&mut self, node: NodeId) {
        self.take_out(self.vocab.trie().tokens(node));
    }

    fn clear_below(&mut self, node: NodeId) {
        self.take_out(self.vocab.trie().subtree_tokens(node));
    }

    fn take_out(&mut self, tokens: &[TokenId]) {
        let words = self.words.as_mut().expect("only a mask that was preset is corrected");
        words.forbid_all(tokens.iter().map(|t| t.0));
    }
}

/// Whether a state lives under a code point that begins so.
fn begins(row: &[(u32, LexId)], tail: Tail) -> bool {
    let runs = &row[row.partition_point(|r| r.0 < tail.first)..];
    let over = runs.partition_point(|r| r.0 < tail.last);
    runs[..=over].iter().any(|r| r.1 != Lexicon::DEAD)
}

fn fill(bits: &mut [u64], from: u32, to: u32) {
    for word in from >> 6..=to >> 6 {
        let (lo, hi) = (from.max(word << 6), to.min((word + 1) << 6));
        if lo < hi {
            bits[word as usize] |= (u64::MAX >> (64 - (hi - lo))) << (lo & 63);
        }
    }
}

/// The ranges of zero bits.
fn gaps(bits: &[u64], count: u32) -> Vec<(u32, u32)> {
    let mut out: Vec<(u32, u32)> = Vec::new();
    let mut at = 0;
    while at < count {
        let word = bits[at as usize >> 6] >> (at & 63);
        if word & 1 == 1 {
            at += word.trailing_ones().min(64 - (at & 63));
            continue;
        }
        let run = if word == 0 { 64 - (at & 63) } else { word.trailing_zeros() };
        let to = (at + run).min(count);
        match out.last_mut() {
            Some(last) if last.1 == at => last.1 = to,
            _ => out.push((at, to)),
        }
        at += run;
    }
    out
}
