//! What a finite set of strings does with the tokens below a node: the keys and enumerations of a schema.
//!
//! The sorted words and the trie are walked together, byte by byte, so the cost is the number of nodes that the
//! two share.  The general walk takes ten times as long: it asks for derivatives, and the shared table for keys
//! that no other schema has.  Where escapes may be written, the escapes of the next characters are walked beside them.
//! Invariant: what the general walk finds.  Memory: the mask that it makes.

use std::sync::Arc;

use super::exits::{Exit, Exits};
use super::lexmask::LexMask;
use super::within::Within;
use crate::lexical::term::Term;
use crate::lexical::{LexId, Lexicon, Spelling};
use crate::vocab::{NodeId, Trie, Vocabulary};
use crate::work;

struct Shared<'a> {
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
    let mut shared = Shared {
        trie: vocab.trie(),
        spelling,
        from: set.depth as usize,
        outcome: lexicon.outcome_list(Lexicon::FIRST).into(),
        ids: Vec::new(),
        exits: Vec::new(),
    };
    shared.visit(lexicon.terms.word_slice(set), set.depth as usize, node, false);
    let Shared { mut ids, mut exits, .. } = shared;
    // an escape that was begun may be one of several characters
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

impl Shared<'_> {
    /// `words` share the first `depth` bytes, and `node` is where those lead, some of them written as an escape where
    /// `escaped` says so.
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

    /// What is left of an escape, its digits in either case where the spelling knows capitals.
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
