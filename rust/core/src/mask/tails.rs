//! What follows some places in the tokens, collected for a trie of its own.
//!
//! Memory: the bytes of each tail, one after the other; most are short.

use crate::vocab::{NodeId, TokenId, Trie};

#[derive(Default)]
pub(super) struct Tails {
    bytes: Vec<u8>,
    /// Where each begins, how long it is, and its token.
    list: Vec<(u32, u32, TokenId)>,
}

impl Tails {
    /// Adds the tokens at and below a node, with what is read from a place above it on: `path` leads from there to the
    /// node, and is left as it was.
    pub(super) fn add(&mut self, trie: &Trie, node: NodeId, path: &mut Vec<u8>) {
        for &token in trie.tokens(node) {
            self.list.push((self.bytes.len() as u32, path.len() as u32, token));
            self.bytes.extend_from_slice(path);
        }
        let (bytes, nodes) = trie.children(node);
        for (&byte, &child) in bytes.iter().zip(nodes) {
            path.push(byte);
            self.add(trie, child, path);
            path.pop();
        }
    }

    /// Leaves the tokens out that are in a sorted list.
    pub(super) fn forget(&mut self, tokens: &[u32]) {
        if !tokens.is_empty() {
            self.list.retain(|tail| tokens.binary_search(&tail.2 .0).is_err());
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
