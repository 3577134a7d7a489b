//! Tokens with a code point of several bytes before which a lexeme ends, though it can read the code point's
//! first bytes.
//!
//! Lists of languages decide a token byte by byte, each language alone. At such a code point none of them
//! ends: its first bytes are read, its last one is refused. The few tokens that contain one are walked as a
//! trie, where the lexeme does not read them whole.
//!
//! Complexity: the vocabulary, once per automaton whose terminals have such code points; those tokens, once per lexical
//! state; those that leave its lexeme, for each mask.
//! Memory: a trie of at most [`MOST`] tokens per lexical state; equal tries are one.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::core::{Core, StateKey};
use super::row::Mask;
use crate::automaton::byte_automaton::ByteAutomaton;
use crate::heap_size;
use crate::lexical::segments::lead;
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::{Chars, TokenId, TokenSet, Trie, Vocabulary};

/// With more tokens, masks are made by the walk byte by byte, which handles such ends.
const MOST: usize = 2048;

/// Code points, as ranges.
pub type Ranges = Arc<[(u32, u32)]>;

pub struct Crossing {
    ranges: Ranges,
    tokens: Box<[TokenId]>,
    left: FxHashMap<LexId, Arc<Trie>>,
    tries: FxHashMap<Box<[TokenId]>, Arc<Trie>>,
}

impl Crossing {
    pub fn new(vocab: &Vocabulary, ranges: Ranges) -> Self {
        let mut tokens = Vec::new();
        if !ranges.is_empty() {
            add_texts(vocab.chars(), &ranges, &mut tokens);
            let mut texts = Vec::new();
            vocab.add_texts_below(Trie::ROOT, &mut texts);
            let others = (0..vocab.size() as u32).filter(|&id| !texts.allows(id)).map(TokenId);
            let fits =
                |id: &TokenId| !vocab.is_special(*id) && vocab.text_of(*id).len() <= vocab.longest_in_trie();
            tokens.extend(others.filter(fits).filter(|&id| holds(vocab.text_of(id), &ranges)));
            crate::lists::sort_unique(&mut tokens);
        }
        let tokens = tokens.into();
        Crossing { ranges, tokens, left: FxHashMap::default(), tries: FxHashMap::default() }
    }

    pub fn too_many(&self) -> bool {
        self.tokens.len() > MOST
    }

    pub fn bytes(&self) -> usize {
        let tries = self.tries.iter().map(|(list, trie)| heap_size::slice(list) + trie.bytes());
        let tables = heap_size::bytes!(self: left, tries) + tries.sum::<usize>();
        heap_size::slice(&self.ranges) + heap_size::slice(&self.tokens) + tables
    }

    /// The tokens that lists of languages do not decide from a lexical state on.
    pub fn left(&mut self, lexicon: &mut Lexicon, vocab: &Vocabulary, lex: LexId) -> Arc<Trie> {
        memo!(self.left, lex, {
            let untold =
                |id: &&TokenId| !is_decided_by_languages(lexicon, lex, vocab.text_of(**id), &self.ranges);
            let list: Box<[TokenId]> = self.tokens.iter().filter(untold).copied().collect();
            match self.tries.get(&list) {
                Some(known) => known.clone(),
                None => {
                    let trie = Arc::new(vocab.trie_of(&list));
                    self.tries.insert(list, trie.clone());
                    trie
                }
            }
        })
    }
}

/// Adds the tokens with such a code point, among those that are texts or end within a code point.
fn add_texts(chars: &Chars, ranges: &[(u32, u32)], tokens: &mut Vec<TokenId>) {
    for &(first, last) in ranges {
        for &at in chars.nodes_of(chars.chars_up_to(first - 1), chars.chars_up_to(last)) {
            tokens.extend(chars.tokens(at, chars.end(at)).iter().map(|&id| TokenId(id)));
        }
    }
    for (c, tail) in (chars.points().len() as u32..).zip(chars.tails()) {
        if meets(ranges, (tail.first, tail.last)) {
            let ends = chars.nodes_of(c, c + 1).iter();
            tokens.extend(ends.flat_map(|&at| chars.tokens(at, at + 1)).map(|&id| TokenId(id)));
        }
    }
}

/// Whether a lexeme reads a token whole, or can't end where it stops, or ends before text without such a code point.
fn is_decided_by_languages(
    lexicon: &mut Lexicon,
    mut lex: LexId,
    token: &[u8],
    ranges: &[(u32, u32)],
) -> bool {
    for (i, &byte) in token.iter().enumerate() {
        match lexicon.step(lex, byte) {
            Step::Stay(next) => lex = next,
            _ => {
                let outcome = lexicon.outcome(lex);
                return outcome == Lexicon::NONE
                    || !lexicon.is_behind(outcome) && !holds(&token[i..], ranges);
            }
        }
    }
    true
}

/// Whether a text has a code point of these ranges, or one that is cut off and may become one.
fn holds(text: &[u8], ranges: &[(u32, u32)]) -> bool {
    points(text).any(|points| meets(ranges, points))
}

fn meets(ranges: &[(u32, u32)], (first, last): (u32, u32)) -> bool {
    ranges.get(ranges.partition_point(|r| r.1 < first)).is_some_and(|r| r.0 <= last)
}

/// The code points of several bytes, as ranges of what they may become.
fn points(text: &[u8]) -> impl Iterator<Item = (u32, u32)> + '_ {
    text.utf8_chunks().flat_map(|chunk| {
        let whole = chunk.valid().chars().filter(|c| !c.is_ascii()).map(|c| (c as u32, c as u32));
        whole.chain(cut(chunk.invalid()))
    })
}

/// The code points that a cut-off one may become; `None` for bytes that begin none.
fn cut(bytes: &[u8]) -> Option<(u32, u32)> {
    let (&first, more) = bytes.split_first()?;
    let (left, bits, _) = lead(first)?;
    let open = 6 * (left - more.len() as u32);
    let point = more.iter().fold(bits, |point, b| point << 6 | u32::from(b & 0x3F));
    Some((point << open, ((point + 1) << open) - 1))
}

impl<S: ByteAutomaton> Core<S> {
    /// The tokens that lists of languages do not decide at a position ([`crossing`](super::crossing));
    /// `None`: too many.
    fn crossing(&mut self, lex: LexId) -> Option<Arc<Trie>> {
        if self.crossing.is_none() {
            let ranges = self.structure.scanner().map(|scanner| scanner.shared_beginnings());
            self.crossing = Some(Crossing::new(&self.vocab, ranges.unwrap_or_default()));
        }
        let crossing = self.crossing.as_mut().filter(|crossing| !crossing.too_many())?;
        Some(crossing.left(self.structure.lexicon(), &self.vocab, lex))
    }

    /// The mask where lists of languages decide it, with the ids that were found before.
    pub(super) fn mask_of_lexemes(&mut self, state_key: StateKey, ids: &mut Vec<u32>) -> Option<Mask> {
        let alive = self.structure.scanner()?.alive(state_key.pos.lex)?;
        let crossing = self.crossing(state_key.pos.lex)?;
        let found = self.lexemes.tokens(self.structure.scanner()?, &self.vocab, state_key.pos.ctx, &alive);
        ids.extend(found.ids);
        let text = self.text(state_key);
        self.walk_trie(&crossing, Trie::ROOT, state_key.pos, &text, ids);
        Some(self.joined(&found.words, std::mem::take(ids)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_by_their_characters() {
        let texts: [&[u8]; 12] = [
            b"a",
            "é".as_bytes(),
            "aéb".as_bytes(),
            b"\xC3",
            b"a\xC3",
            "中".as_bytes(),
            b"\xE4\xB8",
            b"\xB8",
            b"\xB8a",
            b"\x80\xC3\xA9",
            b"\xC3\xA9\xFF",
            b"\xFF",
        ];
        let tokens = texts.iter().map(|t| Box::from(*t)).chain([Box::from(*b"</s>")]).collect();
        let vocab = Vocabulary::new(tokens, vec![12], &[12]).expect("a vocabulary");
        for ranges in
            [vec![(0xE9, 0xE9)], vec![(0xC0, 0xE8), (0x4E00, 0x4E00)], vec![(0x4E2D, 0x9FFF)], vec![]]
        {
            let found = Crossing::new(&vocab, ranges.clone().into());
            let by_text: Vec<TokenId> =
                (0..12).map(TokenId).filter(|&id| holds(vocab.text_of(id), &ranges)).collect();
            assert_eq!(&*found.tokens, &by_text[..], "{ranges:?}");
        }
    }

    #[test]
    fn a_code_point_that_is_cut_off_is_a_range() {
        assert_eq!(cut(b"\xE3"), Some((0x3000, 0x3FFF)));
        assert_eq!(cut(b"\xE3\x80"), Some((0x3000, 0x303F)));
        assert_eq!(cut(b"\xF0\x9F\x98"), Some((0x1F600, 0x1F63F)));
        assert_eq!(cut(b"\x80"), None);
    }
}
