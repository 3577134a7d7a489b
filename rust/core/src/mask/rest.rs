//! Sets of tokens of which a beginning has been read: what is left of each, as a trie.
//!
//! The whole vocabulary is one; so is what follows the names in the tokens that hold the end of a name.  A set is
//! a node of a trie and the bytes that may come first there: large sets are subtrees of the vocabulary's own trie,
//! small ones, from many places, are merged into a trie of their own.

use rustc_hash::FxHashMap;

use super::tails::Tails;
use crate::held;
use crate::lexical::spell::ByteSet;
use crate::vocab::{NodeId, Trie, Vocabulary};

/// The number of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RestId(pub u32);

#[derive(Clone, Copy)]
pub struct TokenSuffixSet {
    /// The trie: that of the vocabulary, or one of [`TokenSuffixSets::tries`].
    trie: Option<u32>,
    pub node: NodeId,
    /// The bytes that the tokens go on with.
    pub bytes: ByteSet,
    /// The same tokens and those that go on otherwise.
    pub whole: RestId,
    pub is_whole: bool,
    /// Nodes of the trie, at most.
    pub size: usize,
}

#[derive(Default)]
pub struct TokenSuffixSets {
    all: Vec<TokenSuffixSet>,
    known: FxHashMap<(Option<u32>, NodeId, ByteSet), RestId>,
    tries: Vec<Trie>,
}

impl TokenSuffixSets {
    /// Bytes that the sets and their own tries hold.
    pub fn bytes(&self) -> usize {
        held::bytes!(self: all, known) + self.tries.iter().map(Trie::bytes).sum::<usize>()
    }

    pub fn get(&self, id: RestId) -> TokenSuffixSet {
        self.all[id.0 as usize]
    }

    pub fn trie<'a>(&'a self, rest: TokenSuffixSet, vocab: &'a Vocabulary) -> &'a Trie {
        rest.trie.map_or(vocab.trie(), |i| &self.tries[i as usize])
    }

    /// The tokens below a node of the vocabulary's trie.
    pub fn below(&mut self, vocab: &Vocabulary, node: NodeId) -> RestId {
        self.intern(vocab, None, node, ByteSet::ALL)
    }

    /// The tokens of a set that go on with certain bytes.
    pub fn limited(&mut self, vocab: &Vocabulary, id: RestId, bytes: &ByteSet) -> RestId {
        let TokenSuffixSet { trie, node, bytes: own, .. } = self.get(id);
        self.intern(vocab, trie, node, own.and(bytes))
    }

    /// What is left of some tokens.
    pub fn merged(&mut self, vocab: &Vocabulary, tails: &Tails) -> RestId {
        self.tries.push(tails.trie());
        self.intern(vocab, Some(self.tries.len() as u32 - 1), Trie::ROOT, ByteSet::ALL)
    }

    fn intern(&mut self, vocab: &Vocabulary, at: Option<u32>, node: NodeId, bytes: ByteSet) -> RestId {
        let trie = at.map_or(vocab.trie(), |i| &self.tries[i as usize]);
        let (kids, nodes) = trie.children(node);
        let all = ByteSet::of(kids);
        let bytes = all.and(&bytes);
        memo!(self.known, (at, node, bytes), {
            let own = kids.iter().zip(nodes).filter(|k| bytes.has(*k.0));
            let size = own.map(|k| trie.subtree_size(*k.1)).sum();
            let whole = match bytes == all {
                true => RestId(self.all.len() as u32),
                false => self.intern(vocab, at, node, all),
            };
            let id = RestId(self.all.len() as u32);
            self.all.push(TokenSuffixSet { trie: at, node, bytes, whole, is_whole: bytes == all, size });
            id
        })
    }
}
