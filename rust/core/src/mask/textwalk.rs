//! One language against all tokens, where nearly every text stays inside: the bodies of strings and comments.
//!
//! A state of the inside of such a text leads back to itself under nearly all characters, so the tokens that stay are
//! all texts but those that hold one of the few others; only the places of these are looked at.  Where they are many (a
//! text of letters alone), characters are told apart one by one.  The walk is that of [`super::charwalk`].
//! Invariant: the same tokens and ends as the walk byte by byte.
//! Complexity: places of the few characters, and what is below them; the byte walk takes 10 to 20 times as long.
//! Memory: a mask, and the nodes where the language ends.

use rustc_hash::FxHashMap;

use super::charwalk::CharWalk;
use crate::lexical::spell::ByteSet;
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::{NodeId, Trie, Vocabulary};

/// Characters of ASCII that a state must stay under where many others lead elsewhere.
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
        let Some(at) = self.vocab.chars().place(node) else { return false };
        let known = self.known(lex);
        let rare = self.lone(lex, &known, u32::MAX).is_some_and(|lone| lone.rare);
        if !rare && (self.lexicon.outcome(lex) != Lexicon::NONE || !self.is_wide(lex)) {
            return false;
        }
        let words = self.words.get_or_insert_default();
        match rare {
            true => self.vocab.add_texts_below(node, words),
            false => words.resize(self.vocab.mask_words(), 0),
        }
        self.below(at, lex, &known, rare);
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
