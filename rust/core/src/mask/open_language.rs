//! Masks of positions in a language that may go on where what follows it begins, as free text before a tag.
//!
//! Invariant: the tokens are those of a walk of the trie from the position.
//! Complexity: the shared mask of the lexical state, and the bytes of the tokens that do not stay in the language.

use std::sync::Arc;

use super::core::{Core, StateKey};
use super::within::Within;
use crate::automaton::byte_automaton::{ByteAutomaton, Pos};
use crate::vocab::{TokenId, TokenSet, Trie};
use crate::work;

/// Tokens outside of an open language up to which each is read by itself; where there are more, the trie is walked.
const MOST_OTHERS: usize = 4096;

impl<S: ByteAutomaton> Core<S> {
    /// The tokens of a language that may go on where what follows it begins.  Most tokens stay in such a language, as those
    /// of free text do; the others are read one by one.  `None`: the position is no such.
    pub(super) fn collect_open(&mut self, pos: Pos, out: &mut Vec<u32>) -> Option<Arc<[u32]>> {
        let lex = self.structure.open_language(pos)?;
        let mask = self.lexmask(Trie::ROOT, lex);
        let Within::Many(words) = &mask.within else { return None };
        let vocab = self.vocab.clone();
        let others =
            (0..vocab.size() as u32).map(TokenId).filter(|t| !words.allows(t.0) && !vocab.is_special(*t));
        let others: Vec<TokenId> = others.take(MOST_OTHERS + 1).collect();
        if others.len() > MOST_OTHERS {
            return None;
        }
        work::spend(vocab.mask_words() as u64);
        let start = StateKey { pos, text: 0 };
        for token in others.into_iter().filter(|&t| !vocab.text_of(t).is_empty()) {
            if self.run(start, vocab.text_of(token)).0.is_none() {
                out.push(token.0);
            }
        }
        Some(words.clone())
    }
}
