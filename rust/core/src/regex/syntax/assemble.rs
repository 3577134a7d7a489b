//! The skeleton of a pattern, and its reading by `fancy-regex`.
//!
//! The dialects deliver atoms, groups, bars and quantifiers. An atom is written as one private character
//! (its number, above ASCII), so the text that `fancy_regex::Expr::parse_tree` reads consists of
//! `( ) | * + ? {m,n}`, the openings of lookarounds and such characters, and has the same meaning in every
//! dialect. That parser refuses nesting over 64; a group that is higher than [`CHUNK`] is read for itself
//! and goes on as an atom, so [`MAX_NESTING`] is the limit here. Linear but for that.
//! Rejected: handing the pattern itself to the parser: its escapes, classes and flags are Oniguruma's.

use fancy_regex::{Expr, LookAround};

use super::node::Node;
use super::MAX_NESTING;
use crate::regex::charset::CharSet;
use crate::regex::error::RegexError;

/// Height of nested parentheses at which a group is read for itself.
const CHUNK: usize = 40;
/// The atom that matches the empty string: it stands first in each group, so none is empty.
const EPSILON: usize = 0;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Group,
    Look { behind: bool, negative: bool },
}

struct Frame {
    text: String,
    height: usize,
    kind: Kind,
    column: usize,
}

pub(super) struct Assembler {
    frames: Vec<Frame>,
    atoms: Vec<Node>,
    run: String,
    /// Whether lazy quantifiers are told from greedy ones.
    ordered: bool,
}

impl Assembler {
    pub fn new(ordered: bool) -> Self {
        let root = Frame { text: String::new(), height: 0, kind: Kind::Group, column: 1 };
        Self { frames: vec![root], atoms: vec![Node::empty()], run: String::new(), ordered }
    }

    /// A character; runs of them become one atom.
    pub fn char(&mut self, c: u32) -> Result<(), RegexError> {
        match char::from_u32(c) {
            Some(c) => self.run.push(c),
            None => self.atom(Node::Set(CharSet::empty()))?,
        }
        Ok(())
    }

    pub fn atom(&mut self, node: Node) -> Result<(), RegexError> {
        self.flush()?;
        self.place(node)
    }

    fn place(&mut self, node: Node) -> Result<(), RegexError> {
        let letter = letter_of(self.atoms.len())?;
        self.atoms.push(node);
        self.top().text.push(letter);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), RegexError> {
        if self.run.is_empty() {
            return Ok(());
        }
        let run = std::mem::take(&mut self.run);
        self.place(Node::Text(run))
    }

    fn top(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the root frame stays until finish")
    }

    pub fn open(&mut self, kind: Kind, column: usize) -> Result<(), RegexError> {
        self.flush()?;
        if self.frames.len() > MAX_NESTING {
            return Err(RegexError::limit(column, format!("groups are nested deeper than {MAX_NESTING}")));
        }
        self.frames.push(Frame { text: String::new(), height: 0, kind, column });
        Ok(())
    }

    /// Ends the innermost group; says which kind it was.
    pub fn close(&mut self, column: usize) -> Result<Kind, RegexError> {
        self.flush()?;
        if self.frames.len() == 1 {
            return Err(RegexError::invalid(column, "this `)` closes no group"));
        }
        let frame = self.frames.pop().expect("more than the root frame");
        let epsilon = letter_of(EPSILON)?;
        let (piece, height) = match frame.kind {
            Kind::Group => (format!("(?:{epsilon}{})", frame.text), frame.height + 1),
            Kind::Look { behind, negative } => {
                let opening = match (behind, negative) {
                    (false, false) => "(?=",
                    (false, true) => "(?!",
                    (true, false) => "(?<=",
                    (true, true) => "(?<!",
                };
                // The first atom of the body carries the column; the group around makes it repeatable.
                let marker = letter_of(self.atoms.len())?;
                self.atoms.push(Node::look(false, false, Node::empty(), frame.column));
                (format!("(?:{epsilon}{opening}{marker}(?:{epsilon}{})))", frame.text), frame.height + 3)
            }
        };
        if height >= CHUNK {
            let node = self.read(&piece)?;
            self.place(node)?;
        } else {
            let top = self.top();
            top.text.push_str(&piece);
            top.height = top.height.max(height);
        }
        Ok(frame.kind)
    }

    pub fn bar(&mut self) -> Result<(), RegexError> {
        self.flush()?;
        self.top().text.push('|');
        Ok(())
    }

    /// Repeats the last character, atom or group.
    pub fn repeat(&mut self, low: u32, high: Option<u32>, lazy: bool) -> Result<(), RegexError> {
        if let Some(last) = self.run.pop() {
            self.flush()?;
            self.run.push(last);
            self.flush()?;
        }
        let quantifier = match (low, high) {
            (0, None) => "*".to_owned(),
            (low, None) => format!("{{{low},}}"),
            (low, Some(high)) => format!("{{{low},{high}}}"),
        };
        self.top().text.push_str(&quantifier);
        if lazy && self.ordered {
            self.top().text.push('?');
        }
        Ok(())
    }

    pub fn finish(mut self, column: usize) -> Result<Node, RegexError> {
        self.flush()?;
        let frame = self.frames.pop().expect("the root frame");
        if !self.frames.is_empty() {
            return Err(RegexError::invalid(frame.column.min(column), "this `(` is never closed"));
        }
        self.read(&frame.text)
    }

    fn read(&self, text: &str) -> Result<Node, RegexError> {
        let tree = Expr::parse_tree(text)
            .map_err(|error| RegexError::invalid(1, format!("the pattern has no reading: {error}")))?;
        self.node(&tree.expr)
    }

    fn node(&self, expr: &Expr) -> Result<Node, RegexError> {
        let all = |parts: &[Expr]| parts.iter().map(|part| self.node(part)).collect::<Result<Vec<_>, _>>();
        Ok(match expr {
            Expr::Empty => Node::empty(),
            Expr::Literal { val, .. } => {
                Node::concat(val.chars().map(|letter| self.atoms[number_of(letter)].clone()).collect())
            }
            Expr::Concat(parts) => Node::concat(all(parts)?),
            Expr::Alt(parts) => Node::alt(all(parts)?),
            Expr::Repeat { child, lo, hi, greedy } => {
                let high = (*hi != usize::MAX).then_some(*hi as u32);
                let rounds = Node::Repeat(Box::new(self.node(child)?), *lo as u32, high);
                if *greedy {
                    rounds
                } else {
                    Node::Lazy(Box::new(rounds))
                }
            }
            Expr::LookAround(body, look) => {
                let behind = matches!(look, LookAround::LookBehind | LookAround::LookBehindNeg);
                let negative = matches!(look, LookAround::LookAheadNeg | LookAround::LookBehindNeg);
                let mut parts = match self.node(body)? {
                    Node::Concat(parts) => parts,
                    one => vec![one],
                };
                let column = match parts.remove(0) {
                    Node::Look(marker) => marker.column,
                    _ => 1,
                };
                Node::look(behind, negative, Node::concat(parts), column)
            }
            _ => return Err(RegexError::unsupported(1, "the pattern has a part that is not covered")),
        })
    }
}

/// The private character of an atom: from U+0100 on, over the surrogates.
fn letter_of(atom: usize) -> Result<char, RegexError> {
    let code = atom + 0x100;
    let code = if code < 0xD800 { code } else { code + 0x800 };
    u32::try_from(code)
        .ok()
        .and_then(char::from_u32)
        .ok_or_else(|| RegexError::limit(1, "the pattern has more than a million parts; split it"))
}

fn number_of(letter: char) -> usize {
    let code = letter as usize;
    if code < 0xD800 {
        code - 0x100
    } else {
        code - 0x900
    }
}
