//! The syntax tree of a pattern, the same for all dialects: sets, sequence, choice, repetition, lookaround.
//!
//! Every zero-width assertion is a [`Look`]: `^` is "no character before", `$` "no character after",
//! `\b` compares the word-ness of both neighbours. Captures do not change the language.

use crate::regex::charset::CharSet;

/// A pattern without a dialect.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    Set(CharSet),
    Text(String),
    Concat(Vec<Node>),
    Alt(Vec<Node>),
    Repeat(Box<Node>, u32, Option<u32>),
    /// A repetition that reads as few rounds as it can; where only whole strings matter, it is greedy.
    Lazy(Box<Node>),
    Look(Box<Look>),
}

/// A zero-width assertion about the text after (or before) a position.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    pub behind: bool,
    pub negative: bool,
    pub body: Node,
    /// Where it stands in the pattern, in characters from 1.
    pub column: usize,
}

impl Node {
    pub fn empty() -> Node {
        Node::Concat(Vec::new())
    }

    pub fn any() -> Node {
        Node::Repeat(Box::new(Node::Set(CharSet::full())), 0, None)
    }

    pub fn look(behind: bool, negative: bool, body: Node, column: usize) -> Node {
        Node::Look(Box::new(Look { behind, negative, body, column }))
    }

    /// The position before the first character.
    pub fn start(column: usize) -> Node {
        Node::look(true, true, Node::Set(CharSet::full()), column)
    }

    /// The position after the last character.
    pub fn end(column: usize) -> Node {
        Node::look(false, true, Node::Set(CharSet::full()), column)
    }

    pub fn is_any(&self) -> bool {
        matches!(self, Node::Repeat(inner, 0, None) if matches!(&**inner, Node::Set(set) if set.is_full()))
    }

    pub fn is_start(&self) -> bool {
        self.is_border(true)
    }

    pub fn is_end(&self) -> bool {
        self.is_border(false)
    }

    fn is_border(&self, behind: bool) -> bool {
        let full = |body: &Node| matches!(body, Node::Set(set) if set.is_full());
        matches!(self, Node::Look(look) if look.behind == behind && look.negative && full(&look.body))
    }

    /// `\b` (or `\B`): exactly one neighbour (or none, or both) is in `word`.
    pub fn boundary(word: &CharSet, negative: bool, column: usize) -> Node {
        let side = |behind, negative| Node::look(behind, negative, Node::Set(word.clone()), column);
        Node::Alt(vec![
            Node::Concat(vec![side(true, false), side(false, !negative)]),
            Node::Concat(vec![side(true, true), side(false, negative)]),
        ])
    }

    /// A sequence, flattened.
    pub fn concat(parts: Vec<Node>) -> Node {
        let mut out = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Node::Concat(inner) => out.extend(inner),
                other => out.push(other),
            }
        }
        if out.len() == 1 {
            return out.remove(0);
        }
        Node::Concat(out)
    }

    /// A choice, flattened; a choice of single characters is one set.
    pub fn alt(parts: Vec<Node>) -> Node {
        let mut out = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Node::Alt(inner) => out.extend(inner),
                other => out.push(other),
            }
        }
        let sets: Option<Vec<(u32, u32)>> =
            out.iter().map(Node::as_set).collect::<Option<Vec<_>>>().map(|sets| sets.concat());
        match sets {
            Some(ranges) => Node::Set(CharSet::from_ranges(&ranges)),
            None if out.len() == 1 => out.remove(0),
            None => Node::Alt(out),
        }
    }

    /// The characters of a tree that reads one.
    pub fn set(&self) -> Option<CharSet> {
        self.as_set().map(|ranges| CharSet::from_ranges(&ranges))
    }

    fn as_set(&self) -> Option<Vec<(u32, u32)>> {
        match self {
            Node::Set(set) => Some(set.0.clone()),
            Node::Text(text) => {
                let mut chars = text.chars();
                let c = chars.next()? as u32;
                chars.next().is_none().then(|| vec![(c, c)])
            }
            _ => None,
        }
    }

    /// No assertion inside.
    pub fn is_plain(&self) -> bool {
        match self {
            Node::Set(_) | Node::Text(_) => true,
            Node::Concat(parts) | Node::Alt(parts) => parts.iter().all(Node::is_plain),
            Node::Repeat(inner, ..) | Node::Lazy(inner) => inner.is_plain(),
            Node::Look(_) => false,
        }
    }

    /// Calls `visit` on every assertion, bodies before the assertion that holds them.
    pub fn each_look<'a>(&'a self, visit: &mut dyn FnMut(&'a Look)) {
        match self {
            Node::Set(_) | Node::Text(_) => {}
            Node::Concat(parts) | Node::Alt(parts) => parts.iter().for_each(|part| part.each_look(visit)),
            Node::Repeat(inner, ..) | Node::Lazy(inner) => inner.each_look(visit),
            Node::Look(look) => {
                look.body.each_look(visit);
                visit(look);
            }
        }
    }
}
