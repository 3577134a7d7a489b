//! The trie of a vocabulary, flat.
//!
//! Nodes are numbered in preorder, so a subtree is a range of numbers; the children of a node stand side by
//! side in two arrays (bytes, nodes), so that choosing among 256 of them touches a few cache lines.  A
//! 130,000-token vocabulary has about 266,000 nodes and takes 7 MB.
//! Invariant: the children of a node are in ascending order of their bytes.

use super::TokenId;

/// The number of a node; 0 is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

pub struct Trie {
    kids_start: Vec<u32>,
    kids_byte: Vec<u8>,
    kids_node: Vec<NodeId>,
    tokens_start: Vec<u32>,
    tokens: Vec<TokenId>,
    /// The node above, and the byte that leads from there; of no meaning for the root.
    parent: Vec<NodeId>,
    byte: Vec<u8>,
    /// One past the last node of the subtree.
    end: Vec<u32>,
    /// Bytes of the longest path down from the node.
    height: Vec<u16>,
}

/// The first bytes as a number: it orders most texts, and is compared at once.
fn begin(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => (0..8).fold(0, |number, at| number << 8 | u64::from(bytes.get(at).copied().unwrap_or(0))),
    }
}

impl Trie {
    pub const ROOT: NodeId = NodeId(0);

    /// Builds the trie; several tokens may have the same bytes.
    pub fn new<'a>(tokens: impl Iterator<Item = (u32, &'a [u8])>) -> Self {
        let mut sorted: Vec<(u64, &[u8], TokenId)> =
            tokens.map(|(i, bytes)| (begin(bytes), bytes, TokenId(i))).collect();
        sorted.sort_unstable();
        // nodes in preorder: parent and byte of each, tokens of each
        let mut parent: Vec<u32> = vec![0];
        let mut byte: Vec<u8> = vec![0];
        let mut own: Vec<(u32, TokenId)> = Vec::with_capacity(sorted.len());
        let mut path: Vec<u32> = vec![0];
        let mut last: &[u8] = &[];
        for (_, bytes, id) in sorted {
            let shared = last.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            path.truncate(shared + 1);
            for &b in &bytes[shared..] {
                parent.push(path[path.len() - 1]);
                byte.push(b);
                path.push(parent.len() as u32 - 1);
            }
            own.push((path[path.len() - 1], id));
            last = bytes;
        }
        Self::flatten(parent, byte, &own)
    }

    fn flatten(parent: Vec<u32>, byte: Vec<u8>, own: &[(u32, TokenId)]) -> Self {
        let n = parent.len();
        let mut kids_start = vec![0u32; n + 1];
        for &p in &parent[1..] {
            kids_start[p as usize + 1] += 1;
        }
        for i in 0..n {
            kids_start[i + 1] += kids_start[i];
        }
        let mut next = kids_start.clone();
        let mut kids_byte = vec![0u8; n - 1];
        let mut kids_node = vec![NodeId(0); n - 1];
        for i in 1..n {
            let slot = &mut next[parent[i] as usize];
            kids_byte[*slot as usize] = byte[i];
            kids_node[*slot as usize] = NodeId(i as u32);
            *slot += 1;
        }
        // tokens arrive in preorder of their nodes already
        let mut tokens_start = vec![0u32; n + 1];
        for &(node, _) in own {
            tokens_start[node as usize + 1] += 1;
        }
        for i in 0..n {
            tokens_start[i + 1] += tokens_start[i];
        }
        let tokens = own.iter().map(|&(_, id)| id).collect();
        let mut end: Vec<u32> = (1..=n as u32).collect();
        let mut height = vec![0u16; n];
        for i in (1..n).rev() {
            let p = parent[i] as usize;
            end[p] = end[p].max(end[i]);
            height[p] = height[p].max(height[i].saturating_add(1));
        }
        let parent = parent.into_iter().map(NodeId).collect();
        Trie { kids_start, kids_byte, kids_node, tokens_start, tokens, parent, byte, end, height }
    }

    /// Bytes that the trie holds: some twenty a node.
    pub fn bytes(&self) -> usize {
        self.len() * 24 + self.tokens.len() * 4
    }

    pub fn len(&self) -> usize {
        self.kids_start.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// Bytes and nodes of the children, in ascending order of bytes.
    #[inline]
    pub fn children(&self, node: NodeId) -> (&[u8], &[NodeId]) {
        let range = self.kids_start[node.0 as usize] as usize..self.kids_start[node.0 as usize + 1] as usize;
        (&self.kids_byte[range.clone()], &self.kids_node[range])
    }

    /// The tokens that end at the node.
    #[inline]
    pub fn tokens(&self, node: NodeId) -> &[TokenId] {
        let range =
            self.tokens_start[node.0 as usize] as usize..self.tokens_start[node.0 as usize + 1] as usize;
        &self.tokens[range]
    }

    /// The nodes below a node, in preorder.
    #[inline]
    pub fn below(&self, node: NodeId) -> std::ops::Range<u32> {
        node.0 + 1..self.end[node.0 as usize]
    }

    /// The bytes that lead to nodes, in their order.
    #[inline]
    pub fn bytes_of(&self, nodes: std::ops::Range<u32>) -> &[u8] {
        &self.byte[nodes.start as usize..nodes.end as usize]
    }

    /// The tokens that end at nodes, in their order.
    #[inline]
    pub fn tokens_of(&self, nodes: std::ops::Range<u32>) -> &[TokenId] {
        let start = |node: u32| self.tokens_start[node as usize] as usize;
        &self.tokens[start(nodes.start)..start(nodes.end)]
    }

    /// Nodes of the subtree, the node itself included.
    pub fn subtree_size(&self, node: NodeId) -> usize {
        (self.end[node.0 as usize] - node.0) as usize
    }

    /// The bytes that lead from a node down to another.
    pub fn path(&self, top: NodeId, mut node: NodeId) -> Vec<u8> {
        let mut bytes = Vec::new();
        while node != top {
            bytes.push(self.byte[node.0 as usize]);
            node = self.parent[node.0 as usize];
        }
        bytes.reverse();
        bytes
    }

    /// The node above; of no meaning for the root.
    pub fn parent(&self, node: NodeId) -> NodeId {
        self.parent[node.0 as usize]
    }

    /// The byte that leads to the node; of no meaning for the root.
    pub fn byte(&self, node: NodeId) -> u8 {
        self.byte[node.0 as usize]
    }

    /// Whether a node lies at or below another.
    pub fn is_below(&self, node: NodeId, top: NodeId) -> bool {
        top <= node && node.0 < self.end[top.0 as usize]
    }

    /// Every token at or below the node.
    pub fn subtree_tokens(&self, node: NodeId) -> &[TokenId] {
        let from = self.tokens_start[node.0 as usize] as usize;
        let to = self.tokens_start[self.end[node.0 as usize] as usize] as usize;
        &self.tokens[from..to]
    }

    /// Bytes of the longest path down from the node.
    pub fn height(&self, node: NodeId) -> u32 {
        self.height[node.0 as usize] as u32
    }

    pub fn child(&self, node: NodeId, byte: u8) -> Option<NodeId> {
        let (bytes, nodes) = self.children(node);
        bytes.binary_search(&byte).ok().map(|i| nodes[i])
    }

    /// Where the text of a JSON string leads, if it is spelled without escapes.
    pub fn spells(&self, node: NodeId, text: &str) -> Option<NodeId> {
        let plain = |b: &u8| *b >= b' ' && *b != b'"' && *b != b'\\';
        text.as_bytes().iter().try_fold(node, |at, b| if plain(b) { self.child(at, *b) } else { None })
    }

    pub fn longest_match(&self, text: &[u8]) -> Option<(usize, TokenId)> {
        let mut best = None;
        let mut node = Self::ROOT;
        for (i, &b) in text.iter().enumerate() {
            match self.child(node, b) {
                Some(next) => node = next,
                None => break,
            }
            if let Some(&id) = self.tokens(node).first() {
                best = Some((i + 1, id));
            }
        }
        best
    }
}
