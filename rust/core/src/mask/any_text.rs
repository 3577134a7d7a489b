//! What the tokens without an escape do in a string of any text, grouped by their number of code points and
//! by how the last one is cut off. Computed once per vocabulary and spelling; states that treat every code
//! point alike take it from here ([`super::string_transitions`]).
//!
//! Invariant: each token without an escape is in one group, or goes on after a quote.
//! Complexity: a walk of the trie, once per vocabulary and spelling.  Memory: 2 MB for 131,072 tokens.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::row::Mask;
use super::suffixes::SuffixList;
use crate::heap_size;
use crate::lexical::{LexId, Lexicon, Spelling, Step, Terms};
use crate::vocab::{NodeId, TokenId, TokenSet, Trie, Vocabulary};

/// Tokens that lead to one state.
#[derive(Clone)]
pub(super) struct TokenGroup {
    /// The least of them.
    pub first: TokenId,
    pub tokens: Arc<Mask>,
}

impl TokenGroup {
    /// `None`: there are no such tokens.
    pub fn of(ids: Vec<u32>, size: usize) -> Option<Self> {
        let first = TokenId(*ids.iter().min()?);
        Some(TokenGroup { first, tokens: Arc::new(Mask::from_ids(ids, size)) })
    }

    /// The group without some tokens, given as words.
    pub fn without(&self, gone: &[u32], size: usize) -> Option<Self> {
        if let Mask::Sparse(ids) = &*self.tokens {
            return Self::of(ids.iter().copied().filter(|&id| !gone.allows(id)).collect(), size);
        }
        let mut row = vec![0u32; gone.len()];
        self.tokens.write(&mut row);
        row.iter_mut().zip(gone).for_each(|(word, gone)| *word &= !gone);
        let at = row.iter().position(|&word| word != 0)?;
        let first = TokenId((at as u32) << 5 | row[at].trailing_zeros());
        Some(TokenGroup { first, tokens: Arc::new(Mask::Dense(row.into())) })
    }

    pub fn bytes(&self) -> usize {
        64 + self.tokens.bytes() / Arc::strong_count(&self.tokens)
    }
}

/// What the tokens without an escape do in a string of any text.
pub(super) struct AnyTextTable {
    /// By how the last code point is cut off.
    pub by_tail: Vec<TokenGroup>,
    /// The same, and by how many code points are whole.
    pub by_length: Vec<TokenGroup>,
    /// Nodes of the closing quotes in ascending order, and the code points before them.
    pub exits: Vec<(NodeId, u32)>,
    /// What follows the quotes in the tokens.
    pub tails: Trie,
    /// Nodes of the first backslash in ascending order, and the code points before them.
    pub escapes: Vec<(NodeId, u32)>,
    /// Code points of the longest token.
    pub longest: u32,
}

struct AnyTextWalk<'a> {
    lexicon: Lexicon,
    trie: &'a Trie,
    free: LexId,
    tokens: BTreeMap<(u32, LexId), Vec<u32>>,
    exits: Vec<(NodeId, u32)>,
    escapes: Vec<(NodeId, u32)>,
}

impl AnyTextWalk<'_> {
    fn visit(&mut self, node: NodeId, lex: LexId, length: u32) {
        let (bytes, nodes) = self.trie.children(node);
        for (&byte, &child) in bytes.iter().zip(nodes) {
            match self.lexicon.step(lex, byte) {
                Step::Stay(_) if byte == b'\\' => self.escapes.push((child, length)),
                Step::Stay(next) => {
                    let length = length + (next == self.free) as u32;
                    let tokens = self.trie.tokens(child);
                    if !tokens.is_empty() {
                        self.tokens.entry((length, next)).or_default().extend(tokens.iter().map(|t| t.0));
                    }
                    self.visit(child, next, length);
                }
                Step::Close => self.exits.push((child, length)),
                Step::Dead => {}
            }
        }
    }
}

impl AnyTextTable {
    pub fn new(vocab: &Vocabulary, spelling: Spelling) -> Self {
        let mut lexicon = Lexicon::default();
        let free = lexicon.at(spelling, Terms::ALL);
        let trie = vocab.trie();
        let (exits, escapes) = Default::default();
        let mut walk = AnyTextWalk { lexicon, trie, free, tokens: BTreeMap::new(), exits, escapes };
        walk.visit(Trie::ROOT, free, 0);
        let longest = walk.tokens.keys().map(|key| key.0).chain(walk.exits.iter().map(|e| e.1)).max();
        let mut tails = SuffixList::default();
        for &(node, _) in &walk.exits {
            tails.add(trie, node, &mut Vec::new());
        }
        let mut by_tail: BTreeMap<LexId, Vec<u32>> = BTreeMap::new();
        for (&(_, tail), ids) in &walk.tokens {
            by_tail.entry(tail).or_default().extend(ids);
        }
        AnyTextTable {
            by_tail: by_tail.into_values().filter_map(|ids| TokenGroup::of(ids, vocab.size())).collect(),
            by_length: walk
                .tokens
                .into_values()
                .filter_map(|ids| TokenGroup::of(ids, vocab.size()))
                .collect(),
            exits: walk.exits,
            tails: tails.trie(),
            escapes: walk.escapes,
            longest: longest.unwrap_or(0),
        }
    }

    /// Bytes that the table holds, some megabytes for a large vocabulary.
    pub fn bytes(&self) -> usize {
        let groups = self.by_tail.iter().chain(&self.by_length).map(TokenGroup::bytes).sum::<usize>();
        groups + heap_size::bytes!(self: exits, escapes) + self.tails.bytes()
    }

    /// Those of a list that lie at or below a node.
    pub fn below<'a>(list: &'a [(NodeId, u32)], trie: &Trie, top: NodeId) -> &'a [(NodeId, u32)] {
        let from = list.partition_point(|e| e.0 < top);
        let count = list[from..].partition_point(|e| trie.is_below(e.0, top));
        &list[from..from + count]
    }
}
