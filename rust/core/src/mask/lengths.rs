//! Code points of a vocabulary's tokens in a string of JSON.
//!
//! Invariant: as many as a walk by bytes counts, one that was only begun included: it will need its place.
//! Complexity: the nodes of the trie of characters, and by bytes what follows a backslash; once a vocabulary and spelling.
//! Memory: ten bytes a token, and a mask for each length that was a bound.

use std::sync::OnceLock;

use crate::held;
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::{NodeId, TokenSet, Vocabulary};

/// Code points of every token of the vocabulary, spelled in a JSON string; 0 for those that are not whole.
pub struct Lengths {
    of: Vec<u16>,
    /// The tokens by length, and where each length begins.
    sorted: Vec<u32>,
    begins: Vec<u32>,
    /// Masks of the tokens of at most n code points.
    upto: Vec<OnceLock<Box<[u32]>>>,
}

impl Lengths {
    /// Walks the vocabulary once, `free` being the state of the free string.
    pub(super) fn measure(vocab: &Vocabulary, lexicon: &mut Lexicon, free: LexId) -> Self {
        let chars = vocab.chars();
        let mut of = vec![0u16; vocab.size()];
        let mut at = 1;
        while at < chars.len() as u32 {
            let (length, node) = (chars.depth(at) as u16, chars.node(at));
            match chars.points().get(chars.char_of(at) as usize) {
                // no text of the string
                Some(0..0x20 | 0x22) => at = chars.end(at),
                Some(0x5C) => {
                    if let Step::Stay(next) = lexicon.step(free, b'\\') {
                        vocab.trie().tokens(node).iter().for_each(|t| of[t.0 as usize] = length);
                        by_bytes(vocab, lexicon, (node, next, length), free, &mut of);
                    }
                    at = chars.end(at);
                }
                _ => {
                    chars.tokens(at, at + 1).iter().for_each(|&t| of[t as usize] = length);
                    at += 1;
                }
            }
        }
        Self::sorted(of)
    }

    fn sorted(of: Vec<u16>) -> Self {
        let longest = of.iter().copied().max().unwrap_or(0) as usize;
        let mut begins = vec![0u32; longest + 2];
        of.iter().for_each(|&length| begins[length as usize + 1] += 1);
        (1..begins.len()).for_each(|length| begins[length] += begins[length - 1]);
        let (mut next, mut sorted) = (begins.clone(), vec![0u32; of.len()]);
        for (id, &length) in (0..).zip(&of) {
            let place = &mut next[length as usize];
            sorted[*place as usize] = id;
            *place += 1;
        }
        Lengths { of, sorted, begins, upto: (0..=longest).map(|_| OnceLock::new()).collect() }
    }

    /// Bytes that the table holds.
    pub fn bytes(&self) -> usize {
        let masks = self.upto.iter().filter_map(OnceLock::get).map(|mask| held::slice(mask)).sum::<usize>();
        let lists = held::bytes!(self: of, sorted, begins);
        lists + held::list(&self.upto) + masks
    }

    /// Whether every token has at most `most` code points.
    pub(super) fn reaches(&self, most: u32) -> bool {
        most as usize + 1 >= self.upto.len()
    }

    pub(super) fn of(&self, id: u32) -> u32 {
        self.of[id as usize] as u32
    }

    /// The tokens of at most `most` code points, fewer than the longest has.
    pub(super) fn upto(&self, most: u32) -> &[u32] {
        self.upto[most as usize].get_or_init(|| {
            // nearly all tokens are short: the longer ones are taken out
            let mut words = vec![u32::MAX; self.of.len().div_ceil(32)];
            words.forbid_all(self.between(most, u32::MAX - 1).iter().copied());
            words.into()
        })
    }

    /// The tokens of these lengths.
    pub(super) fn between(&self, above: u32, most: u32) -> &[u32] {
        let begin = |length: u32| self.begins[(length as usize).min(self.begins.len() - 1)] as usize;
        let (from, to) = (begin(above.saturating_add(1)), begin(most.saturating_add(1)));
        &self.sorted[from..to.max(from)]
    }
}

/// The lengths of the tokens below a node that is read as far as a state, after so many code points.
fn by_bytes(
    vocab: &Vocabulary,
    lexicon: &mut Lexicon,
    from: (NodeId, LexId, u16),
    free: LexId,
    of: &mut [u16],
) {
    let mut stack = vec![from];
    while let Some((node, lex, length)) = stack.pop() {
        let (bytes, nodes) = vocab.trie().children(node);
        for (&byte, &child) in bytes.iter().zip(nodes) {
            if let Step::Stay(next) = lexicon.step(lex, byte) {
                let longer = length + (lex == free) as u16;
                vocab.trie().tokens(child).iter().for_each(|t| of[t.0 as usize] = longer);
                stack.push((child, next, longer));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lexical::{Spelling, Terms};
    use crate::vocab::Trie;

    proptest! {
        #[test]
        fn lengths_are_those_of_the_bytes(
            pieces in prop::collection::vec(
                prop::collection::vec(prop::sample::select(PIECES), 1..5), 1..40
            ),
            spelling in prop::sample::select(vec![Spelling::Json, Spelling::JsonAny, Spelling::JsonNatural]),
        ) {
            let tokens = pieces.iter().map(|token| token.concat().into()).chain([Box::from(*b"</s>")]);
            let tokens: Vec<Box<[u8]>> = tokens.collect();
            let end = tokens.len() as u32 - 1;
            let vocab = Vocabulary::new(tokens, vec![end], &[end]).expect("a vocabulary");
            let mut lexicon = Lexicon::default();
            let free = lexicon.at(spelling, Terms::ALL);
            let mut of = vec![0u16; vocab.size()];
            by_bytes(&vocab, &mut lexicon, (Trie::ROOT, free, 0), free, &mut of);
            let found = Lengths::measure(&vocab, &mut lexicon, free);
            prop_assert_eq!(&found.of, &of);
            let mut sorted: Vec<u32> = (0..of.len() as u32).collect();
            sorted.sort_by_key(|&id| of[id as usize]);
            prop_assert_eq!(found.between(0, u32::MAX - 1), &sorted[of.iter().filter(|&&n| n == 0).count()..]);
        }
    }

    /// Characters, halves of some, escapes and parts of them, and what no string holds.
    const PIECES: &[&[u8]] = &[
        b"a",
        b"bc",
        b" ",
        b"\x7f",
        "é".as_bytes(),
        "日".as_bytes(),
        "😀".as_bytes(),
        b"\xc3",
        b"\xe6\x97",
        b"\xf0\x9f\x98",
        b"\xa5",
        b"\xed\xa0",
        b"\xe0\x80",
        b"\xff",
        b"\"",
        b"\n",
        b"\\",
        b"\\n",
        b"\\\"",
        b"\\u00",
        b"e9",
        b"\\ud83d",
        b"\\ude00",
        b"\\/",
    ];
}
