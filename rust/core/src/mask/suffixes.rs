//! Token suffixes: the rests of partly read tokens, as a list, as a trie, and as interned sets.
//!
//! The whole vocabulary is a set; so is what follows the names in the tokens that contain the end of a name.
//! A set is a node of a trie and the bytes that may come first there. Large sets are subtrees of the
//! vocabulary's own trie; small ones, from many nodes, are merged into a trie of their own.
//! Memory: the bytes of each suffix, one after the other; most are short.

use rustc_hash::FxHashMap;

use crate::heap_size;
use crate::lexical::spell::ByteSet;
use crate::vocab::{NodeId, TokenId, TokenSet, Trie, Vocabulary};

/// The id of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SuffixSetId(pub u32);

#[derive(Clone, Copy)]
pub struct TokenSuffixSet {
    /// The trie: that of the vocabulary, or one of [`TokenSuffixSets::tries`].
    trie: Option<u32>,
    pub node: NodeId,
    /// The bytes with which the tokens go on.
    pub bytes: ByteSet,
    /// The set of the same tokens and of those that go on with other bytes.
    pub whole: SuffixSetId,
    pub is_whole: bool,
    /// Nodes of the trie, at most.
    pub size: usize,
}

#[derive(Default)]
pub struct TokenSuffixSets {
    all: Vec<TokenSuffixSet>,
    known: FxHashMap<(Option<u32>, NodeId, ByteSet), SuffixSetId>,
    tries: Vec<Trie>,
}

impl TokenSuffixSets {
    /// Bytes that the sets and their own tries hold.
    pub fn bytes(&self) -> usize {
        heap_size::bytes!(self: all, known) + self.tries.iter().map(Trie::bytes).sum::<usize>()
    }

    pub fn get(&self, id: SuffixSetId) -> TokenSuffixSet {
        self.all[id.0 as usize]
    }

    pub fn trie<'a>(&'a self, suffixes: TokenSuffixSet, vocab: &'a Vocabulary) -> &'a Trie {
        suffixes.trie.map_or(vocab.trie(), |i| &self.tries[i as usize])
    }

    /// The tokens below a node of the vocabulary's trie.
    pub fn below(&mut self, vocab: &Vocabulary, node: NodeId) -> SuffixSetId {
        self.intern(vocab, None, node, ByteSet::ALL)
    }

    /// The tokens of a set that go on with certain bytes.
    pub fn starting_with(&mut self, vocab: &Vocabulary, id: SuffixSetId, bytes: &ByteSet) -> SuffixSetId {
        let TokenSuffixSet { trie, node, bytes: own, .. } = self.get(id);
        self.intern(vocab, trie, node, own.and(bytes))
    }

    /// The set of a list of suffixes.
    pub fn merged(&mut self, vocab: &Vocabulary, tails: &SuffixList) -> SuffixSetId {
        self.tries.push(tails.trie());
        self.intern(vocab, Some(self.tries.len() as u32 - 1), Trie::ROOT, ByteSet::ALL)
    }

    /// What follows a node of a set's trie with certain bytes.
    pub fn after_node(
        &mut self,
        vocab: &Vocabulary,
        suffixes: TokenSuffixSet,
        node: NodeId,
        bytes: &ByteSet,
    ) -> SuffixSetId {
        self.intern(vocab, suffixes.trie, node, *bytes)
    }

    fn intern(&mut self, vocab: &Vocabulary, at: Option<u32>, node: NodeId, bytes: ByteSet) -> SuffixSetId {
        let trie = at.map_or(vocab.trie(), |i| &self.tries[i as usize]);
        let (children, nodes) = trie.children(node);
        let all = ByteSet::of(children);
        let bytes = all.and(&bytes);
        memo!(self.known, (at, node, bytes), {
            let own = children.iter().zip(nodes).filter(|k| bytes.has(*k.0));
            let size = own.map(|k| trie.subtree_size(*k.1)).sum();
            let whole = match bytes == all {
                true => SuffixSetId(self.all.len() as u32),
                false => self.intern(vocab, at, node, all),
            };
            let id = SuffixSetId(self.all.len() as u32);
            self.all.push(TokenSuffixSet { trie: at, node, bytes, whole, is_whole: bytes == all, size });
            id
        })
    }
}

#[derive(Default)]
pub(super) struct SuffixList {
    bytes: Vec<u8>,
    /// Where each begins, how long it is, and its token.
    list: Vec<(u32, u32, TokenId)>,
    /// Tokens that are left out, as bits.
    lost: Vec<u32>,
}

impl SuffixList {
    /// An empty list, which takes no token of `lost`.
    pub(super) fn without(lost: &[u32]) -> Self {
        let mut bits = Vec::new();
        if let Some(most) = lost.iter().max() {
            bits.resize(*most as usize / 32 + 1, 0);
            bits.allow_all(lost.iter().copied());
        }
        SuffixList { lost: bits, ..SuffixList::default() }
    }

    fn is_lost(&self, token: TokenId) -> bool {
        self.lost.get(token.0 as usize / 32).is_some_and(|word| word >> (token.0 % 32) & 1 == 1)
    }

    /// Adds the tokens at and below a node, each with its bytes from a node above on: `path` leads from there
    /// to the node, and does not change.
    pub(super) fn add(&mut self, trie: &Trie, node: NodeId, path: &mut Vec<u8>) {
        // nearly always all or none are lost
        if !self.lost.is_empty() && trie.subtree_tokens(node).iter().all(|&token| self.is_lost(token)) {
            return;
        }
        self.add_subtree(trie, node, path);
    }

    fn add_subtree(&mut self, trie: &Trie, node: NodeId, path: &mut Vec<u8>) {
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
            self.add_subtree(trie, child, path);
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
