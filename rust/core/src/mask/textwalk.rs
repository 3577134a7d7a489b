//! One language against all tokens, where nearly every text stays inside: the bodies of strings and comments.
//!
//! A state of the inside of such a text leads back to itself under nearly all characters, so the tokens that stay are
//! all texts but those that hold one of the few others; only the places of these are looked at ([`super::loops`]).
//! Where they are many (a text of letters alone), characters are told apart one by one ([`super::charwalk`] does the
//! same for strings of JSON, whose ends and escapes are the lexicon's).
//! Invariant: the same tokens and ends as the walk byte by byte.
//! Complexity: places of the few characters, and what is below them; the byte walk takes 10 to 20 times as long.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::loops::{begins, Loop};
use crate::lexical::spell::ByteSet;
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::{Chars, NodeId, TokenId, TokenSet, Vocabulary};

/// Characters of ASCII that a state must stay under where many others lead elsewhere.
const WIDE: usize = 16;

pub(super) struct TextWalk<'a> {
    pub(super) lexicon: &'a mut Lexicon,
    vocab: &'a Vocabulary,
    words: Vec<u32>,
    ends: FxHashMap<NodeId, ByteSet>,
    loops: FxHashMap<LexId, Rc<Loop>>,
}

impl<'a> TextWalk<'a> {
    pub(super) fn new(lexicon: &'a mut Lexicon, vocab: &'a Vocabulary) -> Self {
        let (words, ends, loops) = Default::default();
        TextWalk { lexicon, vocab, words, ends, loops }
    }

    /// Adds what stays inside below a node; `false` where the walk by bytes is as good.
    pub(super) fn add(&mut self, node: NodeId, lex: LexId) -> bool {
        let Some(at) = self.vocab.chars().place(node) else { return false };
        if self.lone(lex).rare {
            self.vocab.add_texts_below(node, &mut self.words);
            self.below(at, lex);
            return true;
        }
        if self.lexicon.outcome(lex) != Lexicon::NONE || !self.is_wide(lex) {
            return false;
        }
        self.words.resize(self.vocab.mask_words(), 0);
        self.sweep(at, lex);
        true
    }

    /// Whether a state stays what it is under enough characters for a walk by characters.
    fn is_wide(&mut self, lex: LexId) -> bool {
        let row = self.lexicon.row(lex);
        (0x20..0x7F).filter(|c| row[row.partition_point(|r| r.0 < *c)].1 == lex).count() >= WIDE
    }

    /// As `below`, where the mask holds nothing yet.
    fn sweep(&mut self, at: u32, lex: LexId) {
        let chars: &'a Chars = self.vocab.chars();
        let lone = self.lone(lex);
        let ends = self.lexicon.outcome(lex) != Lexicon::NONE;
        let (mut place, to) = (at + 1, chars.end(at));
        while place < to {
            place = self.sweep_run(place, to, &lone);
            if place == to {
                return;
            }
            let c = chars.char_of(place);
            if lone.is_dead(c) {
                if ends {
                    self.end_before(chars.node(place), lex);
                }
            } else {
                self.set(place);
                if let Some(&point) = chars.points().get(c as usize) {
                    let row = self.lexicon.row(lex);
                    let next = row[row.partition_point(|r| r.0 < point)].1;
                    stacker::maybe_grow(64 << 10, 1 << 20, || self.sweep(place, next));
                }
            }
            place = chars.end(place);
        }
    }

    /// The nodes from one on under whose characters a state stays what it is; the first other one.
    fn sweep_run(&mut self, from: u32, to: u32, lone: &Loop) -> u32 {
        let chars: &'a Chars = self.vocab.chars();
        let end = (from..to).find(|&place| !lone.has(chars.char_of(place))).unwrap_or(to);
        self.words.allow_all(chars.tokens(from, end).iter().copied());
        end
    }

    fn lone(&mut self, lex: LexId) -> Rc<Loop> {
        if let Some(known) = self.loops.get(&lex) {
            return known.clone();
        }
        let row = self.lexicon.row(lex);
        let lone = Rc::new(Loop::find(self.vocab.chars(), lex, &row, false));
        self.loops.insert(lex, lone.clone());
        lone
    }

    #[inline]
    fn set(&mut self, at: u32) {
        self.words.allow_all(self.vocab.chars().tokens(at, at + 1).iter().copied());
    }

    /// What stays inside, as a mask (empty where nothing was added), and where the language ends.
    pub(super) fn finish(self) -> (Vec<u32>, FxHashMap<NodeId, ByteSet>) {
        (self.words, self.ends)
    }

    fn below(&mut self, at: u32, lex: LexId) {
        let chars: &'a Chars = self.vocab.chars();
        let (from, to) = (at + 1, chars.end(at));
        if from == to {
            return;
        }
        let lone = self.lone(lex);
        if lone.rare {
            let mut next = from;
            for &place in lone.places(chars, from, to) {
                if place >= next {
                    self.other(place, lex);
                    next = chars.end(place);
                }
            }
            return;
        }
        let mut place = from;
        while place < to {
            self.other(place, lex);
            place = chars.end(place);
        }
    }

    /// A character that leads elsewhere, with all that is below.
    fn other(&mut self, place: u32, lex: LexId) {
        let chars: &'a Chars = self.vocab.chars();
        let (c, node) = (chars.char_of(place), chars.node(place));
        let row = self.lexicon.row(lex);
        if let Some(&point) = chars.points().get(c as usize) {
            let next = row[row.partition_point(|r| r.0 < point)].1;
            if next != Lexicon::DEAD {
                return stacker::maybe_grow(64 << 10, 1 << 20, || self.below(place, next));
            }
            self.take_out(self.vocab.trie().subtree_tokens(node));
        } else {
            let tail = chars.tails()[c as usize - chars.points().len()];
            if begins(&row, tail) {
                return;
            }
            self.take_out(self.vocab.trie().tokens(node));
        }
        self.end_before(node, lex);
    }

    /// The lexeme ends before the character that leads to a node, if its first byte can't be read.
    fn end_before(&mut self, mut node: NodeId, lex: LexId) {
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
            self.ends.entry(trie.parent(node)).or_default().insert(byte);
        }
    }

    fn take_out(&mut self, tokens: &[TokenId]) {
        self.words.forbid_all(tokens.iter().map(|t| t.0));
    }
}
