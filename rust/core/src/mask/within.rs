//! The tokens that stay inside a lexeme, and how many code points of a JSON string each token has.
//!
//! A bounded repeat differs from the unbounded one by length alone: its tokens are those of at most so many code
//! points, one `and` of two masks.
//! Invariant: listed or as words, the same set. Lengths are those that a byte walk counts; a cut-off code
//! point counts as one, since it will be completed.
//! Complexity: lengths cost the nodes of the trie of characters, and by bytes what follows a backslash, once per vocabulary
//! and spelling.
//! Memory: four bytes per token, or a bit for each of the vocabulary; ten bytes per token for the lengths, and a mask for
//! each length that was a bound.

use std::sync::{Arc, OnceLock};

use crate::heap_size;
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::{NodeId, TokenId, TokenSet, Vocabulary};

/// A lexical state that reads the tokens below a node.
pub struct SubtreeReading<'a> {
    pub lexicon: &'a mut Lexicon,
    pub vocab: &'a Vocabulary,
    pub node: NodeId,
    pub lex: LexId,
}

/// The tokens that stay inside.
#[derive(Clone)]
pub enum Within {
    /// Sorted ids.
    Few(Arc<[u32]>),
    /// As a mask.
    Many(Arc<[u32]>),
}

/// Tokens from which on a list is kept as a mask.
const MANY: usize = 4096;
/// Fewer tokens are sorted by their bytes before they are read: they are long, runs of few characters. Many
/// are short, and faster to read in memory order.
const SORTED: usize = 256;

impl Within {
    /// Bytes of the list or mask, divided among its owners.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Within::Few(ids) => heap_size::slice(ids) / Arc::strong_count(ids),
            Within::Many(words) => heap_size::slice(words) / Arc::strong_count(words),
        }
    }

    pub(super) fn of(mut ids: Vec<u32>, vocab: &Vocabulary) -> Self {
        if ids.len() <= MANY {
            ids.sort_unstable();
            return Within::Few(ids.into());
        }
        let mut words = vec![0u32; vocab.mask_words()];
        words.allow_all(ids.iter().copied());
        Within::Many(words.into())
    }

    /// The tokens of at most `most` code points; those that come within `reach` of the bound are tried.
    pub(super) fn bounded(&self, at: &mut SubtreeReading, lengths: &Lengths, most: u32, reach: u32) -> Self {
        let sure = most.saturating_sub(reach);
        if lengths.reaches(sure) {
            return self.clone();
        }
        let has = |id: u32| match self {
            Within::Few(ids) => ids.binary_search(&id).is_ok(),
            Within::Many(words) => words.allows(id),
        };
        let near: Vec<u32> = if reach == 0 {
            Vec::new()
        } else {
            let near = lengths.between(sure, most).iter().copied();
            staying(at.lexicon, at.vocab, at.lex, near.filter(|&id| has(id)).collect())
        };
        let mut words = match self {
            Within::Few(ids) => {
                // listed one by one: a mask of the vocabulary for each length costs more than a short list
                let mut ids: Vec<u32> = ids.iter().copied().filter(|&id| lengths.of(id) <= sure).collect();
                ids.extend(near);
                ids.sort_unstable();
                return Within::Few(ids.into());
            }
            Within::Many(words) => {
                words.iter().zip(lengths.upto(sure)).map(|(a, b)| a & b).collect::<Vec<u32>>()
            }
        };
        words.allow_all(near);
        Self::of_words(words)
    }

    pub(super) fn of_words(words: Vec<u32>) -> Self {
        match words.count_allowed() > MANY {
            true => Within::Many(words.into()),
            false => Within::Few(words.ids().into()),
        }
    }

    /// Without the tokens below some nodes.
    pub(super) fn minus(&self, vocab: &Vocabulary, dead: &[NodeId]) -> Self {
        let gone = dead.iter().flat_map(|&d| vocab.trie().subtree_tokens(d)).map(|t| t.0);
        self.minus_tokens(gone.collect())
    }

    /// Without some tokens.
    pub(super) fn minus_tokens(&self, gone: Vec<u32>) -> Self {
        match self {
            _ if gone.is_empty() => self.clone(),
            Within::Few(ids) => {
                let gone: rustc_hash::FxHashSet<u32> = gone.into_iter().collect();
                Within::Few(ids.iter().copied().filter(|id| !gone.contains(id)).collect())
            }
            Within::Many(words) => {
                let mut words = words.to_vec();
                words.forbid_all(gone);
                Self::of_words(words)
            }
        }
    }
}

/// Those of the tokens whose bytes all stay inside the lexeme; common prefixes of neighbours are read once.
fn staying(lexicon: &mut Lexicon, vocab: &Vocabulary, lex: LexId, mut ids: Vec<u32>) -> Vec<u32> {
    if ids.len() < SORTED {
        ids.sort_unstable_by_key(|&id| vocab.text_of(TokenId(id)));
    }
    // the states after the bytes of the token before, as far as it stays inside
    let mut path = vec![lex];
    let mut last: &[u8] = &[];
    ids.retain(|&id| {
        let token = vocab.text_of(TokenId(id));
        let shared = last.iter().zip(token).take_while(|(a, b)| a == b).count();
        last = token;
        if path.len() <= shared {
            return false;
        }
        path.truncate(shared + 1);
        token[shared..].iter().all(|&byte| match lexicon.step(path[path.len() - 1], byte) {
            Step::Stay(next) => {
                path.push(next);
                true
            }
            _ => false,
        })
    });
    ids
}

/// Code points of every token of the vocabulary, spelled in a JSON string; 0 for those that do not stay
/// inside.
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
        let masks =
            self.upto.iter().filter_map(OnceLock::get).map(|mask| heap_size::slice(mask)).sum::<usize>();
        let lists = heap_size::bytes!(self: of, sorted, begins);
        lists + heap_size::list(&self.upto) + masks
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

    /// The tokens longer than `above`, of at most `most` code points.
    pub(super) fn between(&self, above: u32, most: u32) -> &[u32] {
        let begin = |length: u32| self.begins[(length as usize).min(self.begins.len() - 1)] as usize;
        let (from, to) = (begin(above.saturating_add(1)), begin(most.saturating_add(1)));
        &self.sorted[from..to.max(from)]
    }
}

/// Sets the lengths of the tokens below a node; `from`: the node, the state there, and the code points so
/// far.
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
