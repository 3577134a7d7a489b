//! The tokens that stay inside a lexeme.
//!
//! A bounded repeat differs from the unbounded one by length alone: its tokens are those of at most so many code
//! points, one `and` of two masks.
//! Invariant: listed or as words, the same set.  Memory: four bytes a token, or a bit for each of the vocabulary.

use std::sync::Arc;

use super::lengths::Lengths;
use crate::held;
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::{NodeId, TokenId, TokenSet, Vocabulary};

/// A lexical state that reads the tokens below a node.
pub struct Reading<'a> {
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
    /// As a mask, and how many there are.
    Many(Arc<[u32]>, usize),
}

/// Tokens from which on a list is kept as a mask.
const MANY: usize = 4096;
/// Tokens up to which they are brought into the order of their bytes before they are read: long tokens are runs of few
/// characters. Many are short, and read faster as they lie in memory.
const SORTED: usize = 256;

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
    pub(super) fn bounded(&self, at: &mut Reading, lengths: &Lengths, most: u32, reach: u32) -> Self {
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
            staying(at.lexicon, at.vocab, at.lex, near.filter(|&id| has(id)).collect())
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
