//! Lazy quantifiers, expressed by lookaheads: a match goes on only where nothing ends it earlier.
//!
//! `".*?"` is matched up to the first quote: a round is read only where the rest of the pattern does not
//! match, so that `R*?B` is `((?!B)R)*B`. For a whole string laziness has no effect; for a terminal, which is
//! matched in a text, it determines where the match ends.
//! Invariant: exact where the rounds before a position can be read in one way only, as rounds of one length
//! can. (In `(a|ab)*?c` all ways to read the rounds count, not just the first.)
//! Complexity: each lazy quantifier copies the rest of its pattern, up to [`MOST`] nodes in all.

use super::error::RegexError;
use super::syntax::Node;

/// Nodes that are copied for one pattern, and rounds of a counted repetition that are written out for lazy ones inside.
const MOST: usize = 100_000;
const ROUNDS: u32 = 16;

/// The tree without lazy quantifiers.
pub(super) fn resolve(node: Node) -> Result<Node, RegexError> {
    if !holds_lazy(&node) {
        return Ok(node);
    }
    LazyResolver { left: MOST }.node(&node, &Node::empty())
}

fn holds_lazy(node: &Node) -> bool {
    match node {
        Node::Set(_) | Node::Text(_) => false,
        Node::Concat(parts) | Node::Alt(parts) => parts.iter().any(holds_lazy),
        Node::Repeat(inner, ..) => holds_lazy(inner),
        Node::Look(look) => holds_lazy(&look.body),
        Node::Lazy(_) => true,
    }
}

fn size(node: &Node) -> usize {
    match node {
        Node::Set(_) | Node::Text(_) => 1,
        Node::Concat(parts) | Node::Alt(parts) => 1 + parts.iter().map(size).sum::<usize>(),
        Node::Repeat(inner, ..) | Node::Lazy(inner) => 1 + size(inner),
        Node::Look(look) => 1 + size(&look.body),
    }
}

/// The same tree with greedy quantifiers: it matches the same whole strings; only the end of a match in a
/// text differs.
fn greedy(node: &Node) -> Node {
    match node {
        Node::Set(_) | Node::Text(_) => node.clone(),
        Node::Concat(parts) => Node::Concat(parts.iter().map(greedy).collect()),
        Node::Alt(parts) => Node::Alt(parts.iter().map(greedy).collect()),
        Node::Repeat(inner, low, high) => Node::Repeat(Box::new(greedy(inner)), *low, *high),
        Node::Lazy(inner) => greedy(inner),
        Node::Look(look) => Node::look(look.behind, look.negative, greedy(&look.body), look.column),
    }
}

struct LazyResolver {
    left: usize,
}

impl LazyResolver {
    /// Resolves the node; `rest` is what the pattern reads after it.
    fn node(&mut self, node: &Node, rest: &Node) -> Result<Node, RegexError> {
        if !holds_lazy(node) {
            return Ok(node.clone());
        }
        match node {
            Node::Set(_) | Node::Text(_) => Ok(node.clone()),
            Node::Concat(parts) => {
                let mut out = Vec::with_capacity(parts.len());
                for (at, part) in parts.iter().enumerate() {
                    let rest = match holds_lazy(part) {
                        true => self.chain(parts[at + 1..].iter().map(greedy), rest)?,
                        false => Node::empty(),
                    };
                    out.push(self.node(part, &rest)?);
                }
                Ok(Node::concat(out))
            }
            Node::Alt(parts) => {
                let parts = parts.iter().map(|part| self.node(part, rest)).collect::<Result<_, _>>()?;
                Ok(Node::alt(parts))
            }
            Node::Repeat(inner, low, high) => self.rounds(inner, *low, *high, rest, false),
            Node::Lazy(inner) => match &**inner {
                Node::Repeat(inner, low, high) => self.rounds(inner, *low, *high, rest, true),
                other => self.node(other, rest),
            },
            Node::Look(_) => Ok(greedy(node)),
        }
    }

    /// Rounds of a repetition; of a lazy one those beyond `low` are read only where `rest` does not match.
    fn rounds(
        &mut self,
        inner: &Node,
        low: u32,
        high: Option<u32>,
        rest: &Node,
        lazy: bool,
    ) -> Result<Node, RegexError> {
        let written = if holds_lazy(inner) { low } else { 0 };
        if written > ROUNDS {
            let message =
                "a lazy quantifier stands in a repetition of too many rounds; say what it must not read";
            return Err(RegexError::unsupported(1, message));
        }
        let more = |rounds: u32| Node::Repeat(Box::new(greedy(inner)), 0, high.map(|high| high - rounds));
        let mut out = Vec::new();
        for round in 0..written {
            let others = (round + 1..low).map(|_| greedy(inner)).chain([more(low)]);
            let rest = self.chain(others, rest)?;
            out.push(self.node(inner, &rest)?);
        }
        let fixed = low - written;
        if fixed > 0 {
            out.push(Node::Repeat(Box::new(inner.clone()), fixed, Some(fixed)));
        }
        if high != Some(low) {
            // then one round fewer is left; this matters only to lazy quantifiers inside
            let behind = self.chain([more(low + 1)], rest)?;
            let mut round = vec![self.node(inner, &behind)?];
            if lazy {
                round.insert(0, Node::look(false, true, self.chain([], rest)?, 1));
            }
            out.push(Node::Repeat(Box::new(Node::concat(round)), 0, high.map(|high| high - low)));
        }
        Ok(Node::concat(out))
    }

    fn chain(&mut self, parts: impl IntoIterator<Item = Node>, rest: &Node) -> Result<Node, RegexError> {
        let chained = Node::concat(parts.into_iter().chain([rest.clone()]).collect());
        match self.left.checked_sub(size(&chained)) {
            Some(left) => {
                self.left = left;
                Ok(chained)
            }
            None => {
                Err(RegexError::limit(1, "the lazy quantifiers of the pattern multiply it beyond the limit"))
            }
        }
    }
}
