//! What follows some places in the tokens, collected for a trie of its own.
//!
//! Memory: the bytes of each tail, one after the other; most are short.

use crate::vocab::{NodeId, TokenId, TokenSet, Trie};

#[derive(Default)]
pub(super) struct Tails {
    bytes: Vec<u8>,
    /// Where each begins, how long it is, and its token.
    list: Vec<(u32, u32, TokenId)>,
    /// Tokens that are left out, as bits.
    lost: Vec<u32>,
}

impl Tails {
    /// Without some tokens.
    pub(super) fn without(lost: &[u32]) -> Self {
        let mut bits = Vec::new();
        if let Some(most) = lost.iter().max() {
            bits.resize(*most as usize / 32 + 1, 0);
            bits.allow_all(lost.iter().copied());
        }
        Tails { lost: bits, ..Tails::default() }
    }

    fn is_lost(&self, token: TokenId) -> bool {
        self.lost.get(token.0 as usize / 32).is_some_and(|word| word >> (token.0 % 32) & 1 == 1)
    }

    /// Adds the tokens at and below a node, with what is read from a place above it on: `path` leads from there to the
    /// node, and is left as it was.
    pub(super) fn add(&mut self, trie: &Trie, node: NodeId, path: &mut Vec<u8>) {
        // nearly always all or none
        if !self.lost.is_empty() && trie.subtree_tokens(node).iter().all(|&token| self.is_lost(token)) {
            return;
        }
        self.add_below(trie, node, path);
    }

    fn add_below(&mut self, trie: &Trie, node: NodeId, path: &mut Vec<u8>) {
        for &token in trie.tokens(node) {
            if self.is_lost(token) {
                continue;
            }
            self.list.push((self.bytes.len() as u32, path.len() as u32, token));
            self.bytes.extend_from_slice(path);
        }
        let (bytes, nodes) = trie.children(node);
        for (&byte, &child) in bytes.iter().zip(nodes) {
            path.push(byte);
            self.add_below(trie, child, path);
            path.pop();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn trie(&self) -> Trie {
        let tail = |&(from, length, token): &(u32, u32, TokenId)| {
            (token.0, &self.bytes[from as usize..][..length as usize])
        };
        Trie::new(self.list.iter().map(tail))
    }
}
