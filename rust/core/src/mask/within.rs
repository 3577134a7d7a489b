//! The tokens that stay inside a lexeme, and their lengths in code points.
//!
//! A bounded repeat differs from the unbounded one by length alone: its tokens are those of at most so many code
//! points, one `and` of two masks.
//! Invariant: listed or as words, the same set.  Memory: four bytes a token, or a bit for each of the vocabulary.

use std::sync::{Arc, OnceLock};

use crate::held;
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::{NodeId, TokenId, TokenSet, Trie, Vocabulary};

/// The tokens that stay inside.
#[derive(Clone)]
pub enum Within {
    /// Sorted ids.
    Few(Arc<[u32]>),
    /// As a mask, and how many there are.
    Many(Arc<[u32]>, usize),
}

/// Code points of every token of the vocabulary, spelled in a JSON string; 0 for those that are not whole.
pub struct Lengths {
    of: Vec<u16>,
    /// The tokens by length, and where each length begins.
    sorted: Vec<u32>,
    begins: Vec<u32>,
    /// Masks of the tokens of at most n code points.
    upto: Vec<OnceLock<Box<[u32]>>>,
}

/// Tokens from which on a list is kept as a mask.
const MANY: usize = 4096;
/// Tokens up to which they are brought into the order of their bytes before they are read: long tokens are runs of few
/// characters. Many are short, and read faster as they lie in memory.
const SORTED: usize = 256;

impl Lengths {
    /// Walks the trie once from the state of the free string: a code point is whole when that state returns.
    pub(super) fn measure(vocab: &Vocabulary, lexicon: &mut Lexicon, free: LexId) -> Self {
        let mut of = vec![0u16; vocab.size()];
        let mut stack = vec![(Trie::ROOT, free, 0u16)];
        while let Some((node, lex, length)) = stack.pop() {
            let (bytes, nodes) = vocab.trie().children(node);
            for (&byte, &child) in bytes.iter().zip(nodes) {
                if let Step::Stay(next) = lexicon.step(lex, byte) {
                    // a code point that was begun counts: it will need its place
                    let longer = length + (lex == free) as u16;
                    for token in vocab.trie().tokens(child) {
                        of[token.0 as usize] = longer;
                    }
                    stack.push((child, next, longer));
                }
            }
        }
        let longest = of.iter().copied().max().unwrap_or(0) as usize;
        let mut sorted: Vec<u32> = (0..of.len() as u32).collect();
        sorted.sort_by_key(|&id| of[id as usize]);
        let begin = |length: usize| sorted.partition_point(|&id| (of[id as usize] as usize) < length) as u32;
        let begins = (0..=longest + 1).map(begin).collect();
        Lengths { of, sorted, begins, upto: (0..=longest).map(|_| OnceLock::new()).collect() }
    }

    /// Bytes that the table holds.
    pub fn bytes(&self) -> usize {
        let masks = self.upto.iter().filter_map(OnceLock::get).map(|mask| held::slice(mask)).sum::<usize>();
        let lists = held::list(&self.of) + held::list(&self.sorted) + held::list(&self.begins);
        lists + held::list(&self.upto) + masks
    }

    /// Whether every token has at most `most` code points.
    fn reaches(&self, most: u32) -> bool {
        most as usize + 1 >= self.upto.len()
    }

    fn of(&self, id: u32) -> u32 {
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

impl Within {
    /// Bytes of the list or mask, by those who share it.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Within::Few(ids) => held::slice(ids) / Arc::strong_count(ids),
            Within::Many(words, _) => held::slice(words) / Arc::strong_count(words),
        }
    }

    pub(super) fn of(mut ids: Vec<u32>, vocab: &Vocabulary) -> Self {
        if ids.len() <= MANY {
            ids.sort_unstable();
            return Within::Few(ids.into());
        }
        let mut words = vec![0u32; vocab.mask_words()];
        words.allow_all(ids.iter().copied());
        Within::Many(words.into(), ids.len())
    }

    /// The tokens of at most `most` code points; those that come within `reach` of the bound are tried.
    pub(super) fn bounded(
        &self,
        lexicon: &mut Lexicon,
        vocab: &Vocabulary,
        lex: LexId,
        lengths: &Lengths,
        most: u32,
        reach: u32,
    ) -> Self {
        let sure = most.saturating_sub(reach);
        if lengths.reaches(sure) {
            return self.clone();
        }
        let has = |id: u32| match self {
            Within::Few(ids) => ids.binary_search(&id).is_ok(),
            Within::Many(words, _) => words.allows(id),
        };
        let near: Vec<u32> = if reach == 0 {
            Vec::new()
        } else {
            let near = lengths.between(sure, most).iter().copied();
            staying(lexicon, vocab, lex, near.filter(|&id| has(id)).collect())
        };
        let mut words = match self {
            Within::Few(ids) => {
                // told one by one: a mask of the vocabulary for each length costs more than a short list
                let mut ids: Vec<u32> = ids.iter().copied().filter(|&id| lengths.of(id) <= sure).collect();
                ids.extend(near);
                ids.sort_unstable();
                return Within::Few(ids.into());
            }
            Within::Many(words, _) => {
                words.iter().zip(lengths.upto(sure)).map(|(a, b)| a & b).collect::<Vec<u32>>()
            }
        };
        words.allow_all(near);
        Self::of_words(words)
    }

    pub(super) fn of_words(words: Vec<u32>) -> Self {
        let count = words.count_allowed();
        if count > MANY {
            return Within::Many(words.into(), count);
        }
        Within::Few(words.ids().into())
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
            Within::Many(words, _) => {
                let mut words = words.to_vec();
                words.forbid_all(gone);
                Self::of_words(words)
            }
        }
    }
}

/// Those of the tokens whose bytes all stay inside the lexeme; what neighbours begin with is read once.
fn staying(lexicon: &mut Lexicon, vocab: &Vocabulary, lex: LexId, mut ids: Vec<u32>) -> Vec<u32> {
    if ids.len() < SORTED {
        ids.sort_unstable_by_key(|&id| vocab.token(TokenId(id)));
    }
    // the states after the bytes of the token before, as far as it stays inside
    let mut path = vec![lex];
    let mut last: &[u8] = &[];
    ids.retain(|&id| {
        let token = vocab.token(TokenId(id));
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
