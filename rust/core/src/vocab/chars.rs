//! The trie of a vocabulary by whole code points.
//!
//! Purpose: a language over code points asks one question a character, not one a byte, and most states of a
//! pattern lead back to themselves under a large class of characters.  With the nodes in preorder and the
//! characters numbered in order of their code points, "all tokens made of this class" is a scan of one array
//! against a bit set, and "all tokens but those with these characters" is a look at the places of the few.
//! Invariant: a node stands for valid UTF-8 from the root on; tokens that are no such text are left out, except
//! those that end within a code point, whose last bytes count as a character of their own (a tail).
//! Complexity: built once for a vocabulary, O(nodes); 131,072 tokens give 250,000 nodes and 8 MB.

use rustc_hash::FxHashMap;

use super::{NodeId, Trie};

/// The number of a character: code points in ascending order, then tails.
pub type CharId = u32;

/// The code points that begin with the bytes of an unfinished one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tail {
    pub first: u32,
    pub last: u32,
}

impl Tail {
    /// Of one to three bytes that can still become a code point (Unicode 15, table 3-7).
    fn new(bytes: &[u8]) -> Self {
        let (size, lead) = match bytes[0] {
            b @ 0..=0xDF => (2, b & 0x1F),
            b @ 0xE0..=0xEF => (3, b & 0x0F),
            b => (4, b & 0x07),
        };
        let rest = 6 * (size - bytes.len() as u32);
        let read = bytes[1..].iter().fold(lead as u32, |point, b| point << 6 | (b & 0x3F) as u32);
        let least = [0, 0, 0x80, 0x800, 0x10000][size as usize];
        let mut last = (read << rest | ((1 << rest) - 1)).min(0x10_FFFF);
        if (0xD800..0xE000).contains(&last) {
            last = 0xD7FF;
        }
        Tail { first: (read << rest).max(least), last }
    }
}

pub struct Chars {
    points: Vec<u32>,
    tails: Vec<Tail>,
    /// The character that leads to a node; of no meaning for the root, which is node 0.
    char_of: Vec<CharId>,
    node: Vec<NodeId>,
    /// The tokens of all nodes in their order, and where those of each begin.
    tokens: Vec<u32>,
    tokens_start: Vec<u32>,
    /// One past the last node of the subtree.
    end: Vec<u32>,
    /// Code points from the root.
    depth: Vec<u16>,
    /// The children of nodes that have many, by character.
    children: FxHashMap<u32, Box<[(CharId, u32)]>>,
    /// Nodes by their character.
    nodes_start: Vec<u32>,
    by_char: Vec<u32>,
}

struct Builder<'a> {
    trie: &'a Trie,
    found: FxHashMap<Tail, u32>,
    tails: Vec<Tail>,
    /// Code points, and tails above [`TAILS`], until all are known and can be numbered.
    char_of: Vec<u32>,
    node: Vec<NodeId>,
    end: Vec<u32>,
    depth: Vec<u16>,
}

/// Children from which on they are listed.
const MANY: usize = 24;

const TAILS: u32 = 1 << 24;

impl Chars {
    pub fn new(trie: &Trie) -> Self {
        let mut builder = Builder {
            trie,
            found: FxHashMap::default(),
            tails: Vec::new(),
            char_of: vec![0],
            node: vec![Trie::ROOT],
            end: vec![0],
            depth: vec![0],
        };
        builder.children(Trie::ROOT, 1);
        builder.end[0] = builder.node.len() as u32;
        builder.finish()
    }

    pub fn len(&self) -> usize {
        self.node.len()
    }

    /// Code points of all characters that aren't tails, ascending: the place is the [`CharId`].
    pub fn points(&self) -> &[u32] {
        &self.points
    }

    pub fn tails(&self) -> &[Tail] {
        &self.tails
    }

    #[inline]
    pub fn char_of(&self, at: u32) -> CharId {
        self.char_of[at as usize]
    }

    #[inline]
    pub fn node(&self, at: u32) -> NodeId {
        self.node[at as usize]
    }

    /// The tokens that end at the nodes from..to.
    #[inline]
    pub fn tokens(&self, from: u32, to: u32) -> &[u32] {
        &self.tokens[self.tokens_start[from as usize] as usize..self.tokens_start[to as usize] as usize]
    }

    #[inline]
    pub fn end(&self, at: u32) -> u32 {
        self.end[at as usize]
    }

    #[inline]
    pub fn depth(&self, at: u32) -> u32 {
        self.depth[at as usize] as u32
    }

    /// The place of a node of the byte trie that stands at the border of a code point.
    pub fn index_of(&self, node: NodeId) -> Option<u32> {
        self.node.binary_search(&node).ok().map(|i| i as u32)
    }

    /// The children of a node in the order of their characters, where they are many.
    pub fn children(&self, at: u32) -> Option<&[(CharId, u32)]> {
        // most nodes have too few below them: no need to look
        if self.end(at) - at <= MANY as u32 {
            return None;
        }
        self.children.get(&at).map(|children| &**children)
    }

    /// The characters with code points up to the bound.
    pub fn chars_up_to(&self, point: u32) -> CharId {
        self.points.partition_point(|&p| p <= point) as u32
    }

    /// The nodes of a range of characters.
    pub fn nodes_of(&self, from: CharId, to: CharId) -> &[u32] {
        &self.by_char[self.nodes_start[from as usize] as usize..self.nodes_start[to as usize] as usize]
    }
}

impl Builder<'_> {
    fn add(&mut self, char_of: u32, node: NodeId, depth: u16) -> usize {
        self.char_of.push(char_of);
        self.node.push(node);
        self.end.push(self.node.len() as u32);
        self.depth.push(depth);
        self.node.len() - 1
    }

    /// The characters that follow a node at the border of a code point.
    fn children(&mut self, node: NodeId, depth: u16) {
        let (bytes, nodes) = self.trie.children(node);
        for (&byte, &child) in bytes.iter().zip(nodes) {
            match byte {
                0..=0x7F => self.add_char(byte as u32, child, depth),
                0xC2..=0xF4 => self.add_partial(&mut vec![byte], child, depth),
                _ => {}
            }
        }
    }

    fn add_char(&mut self, point: u32, node: NodeId, depth: u16) {
        let at = self.add(point, node, depth);
        stacker::maybe_grow(64 << 10, 1 << 20, || self.children(node, depth + 1));
        self.end[at] = self.node.len() as u32;
    }

    fn add_partial(&mut self, read: &mut Vec<u8>, node: NodeId, depth: u16) {
        match std::str::from_utf8(read) {
            Ok(text) => {
                let point = text.chars().next().map_or(0, |c| c as u32);
                return self.add_char(point, node, depth);
            }
            // an error without a length: more bytes may still make it whole
            Err(error) if error.error_len().is_some() => return,
            Err(_) => {}
        }
        if !self.trie.tokens(node).is_empty() {
            let tail = Tail::new(read);
            let next = self.tails.len() as u32;
            let number = *self.found.entry(tail).or_insert(next);
            if number == next {
                self.tails.push(tail);
            }
            self.add(TAILS + number, node, depth);
        }
        let (bytes, nodes) = self.trie.children(node);
        for (&byte, &child) in bytes.iter().zip(nodes) {
            read.push(byte);
            self.add_partial(read, child, depth);
            read.pop();
        }
    }

    fn finish(self) -> Chars {
        let mut points: Vec<u32> = self.char_of[1..].iter().copied().filter(|&c| c < TAILS).collect();
        crate::lists::sort_unique(&mut points);
        let number = |c: &u32| match c.checked_sub(TAILS) {
            Some(tail) => points.len() as u32 + tail,
            None => points.partition_point(|p| p < c) as u32,
        };
        let char_of: Vec<CharId> = self.char_of.iter().map(number).collect();
        let count = points.len() + self.tails.len();
        let mut nodes_start = vec![0u32; count + 1];
        for &c in &char_of[1..] {
            nodes_start[c as usize + 1] += 1;
        }
        for i in 0..count {
            nodes_start[i + 1] += nodes_start[i];
        }
        let mut next = nodes_start.clone();
        let mut by_char = vec![0u32; char_of.len() - 1];
        for (at, &c) in (0u32..).zip(&char_of).skip(1) {
            by_char[next[c as usize] as usize] = at;
            next[c as usize] += 1;
        }
        let Builder { trie, tails, node, end, depth, .. } = self;
        let (mut tokens, mut tokens_start) = (Vec::new(), Vec::with_capacity(node.len() + 1));
        tokens_start.push(0);
        for &node in &node {
            tokens.extend(trie.tokens(node).iter().map(|t| t.0));
            tokens_start.push(tokens.len() as u32);
        }
        let mut children = FxHashMap::default();
        for at in 0..node.len() as u32 {
            // fewer nodes than this have no room for many children
            if (end[at as usize] - at) as usize > MANY {
                let mut list: Vec<(CharId, u32)> = Vec::new();
                let mut child = at + 1;
                while child < end[at as usize] {
                    list.push((char_of[child as usize], child));
                    child = end[child as usize];
                }
                if list.len() >= MANY {
                    list.sort_unstable();
                    children.insert(at, list.into());
                }
            }
        }
        Chars {
            points,
            tails,
            char_of,
            node,
            tokens,
            tokens_start,
            end,
            depth,
            children,
            nodes_start,
            by_char,
        }
    }
}
