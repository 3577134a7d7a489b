//! Atoms, groups, bars and quantifiers -> [`Node`], without recursion.
//!
//! Invariant: one frame for each open group, at most [`MAX_NESTING`] of them; each holds its finished alternatives and
//! the parts of the one being read.  Linear.

use std::collections::HashSet;

use super::node::Node;
use super::MAX_NESTING;
use crate::regex::charset::CharSet;
use crate::regex::error::RegexError;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Group,
    Look { behind: bool, negative: bool },
}

struct Frame {
    kind: Kind,
    column: usize,
    alternatives: Vec<Node>,
    parts: Vec<Node>,
    /// Names of groups in the alternative being read, and in those before it.
    names: HashSet<String>,
    names_before: HashSet<String>,
}

impl Frame {
    fn new(kind: Kind, column: usize) -> Self {
        let names = HashSet::new();
        Self { kind, column, alternatives: Vec::new(), parts: Vec::new(), names_before: names.clone(), names }
    }

    fn bar(&mut self) {
        let parts = std::mem::take(&mut self.parts);
        self.alternatives.push(Node::concat(parts));
        self.names_before.extend(self.names.drain());
    }

    fn finish(mut self) -> Node {
        if self.alternatives.is_empty() {
            return Node::concat(self.parts);
        }
        self.bar();
        Node::alt(self.alternatives)
    }
}

pub(super) struct Tree {
    frames: Vec<Frame>,
    /// Characters that were read last; a run of them is one node.
    run: String,
    /// Whether lazy quantifiers are distinguished from greedy ones.
    ordered: bool,
}

impl Tree {
    pub fn new(ordered: bool) -> Self {
        Self { frames: vec![Frame::new(Kind::Group, 1)], run: String::new(), ordered }
    }

    /// Whether nothing was read yet but flags.
    pub fn is_empty(&self) -> bool {
        let root = &self.frames[0];
        self.frames.len() == 1 && root.parts.is_empty() && root.alternatives.is_empty() && self.run.is_empty()
    }

    /// A character; nothing matches a lone surrogate.
    pub fn char(&mut self, c: u32) {
        match char::from_u32(c) {
            Some(c) => self.run.push(c),
            None => self.atom(Node::Set(CharSet::empty())),
        }
    }

    pub fn atom(&mut self, node: Node) {
        self.flush();
        self.top().parts.push(node);
    }

    fn flush(&mut self) {
        if !self.run.is_empty() {
            let run = std::mem::take(&mut self.run);
            self.top().parts.push(Node::Text(run));
        }
    }

    fn top(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the root frame stays until finish")
    }

    pub fn open(&mut self, kind: Kind, column: usize) -> Result<(), RegexError> {
        self.flush();
        if self.frames.len() > MAX_NESTING {
            return Err(RegexError::limit(column, format!("groups are nested deeper than {MAX_NESTING}")));
        }
        self.frames.push(Frame::new(kind, column));
        Ok(())
    }

    /// Names the group that is opened next; `apart`: alternatives may have groups of one name.
    pub fn name(&mut self, column: usize, name: String, apart: bool) -> Result<(), RegexError> {
        let taken =
            |frame: &Frame| frame.names.contains(&name) || (!apart && frame.names_before.contains(&name));
        if self.frames.iter().any(taken) {
            return Err(RegexError::invalid(column, format!("two groups are named `{name}`")));
        }
        self.top().names.insert(name);
        Ok(())
    }

    /// Ends the innermost group; says which kind it was.
    pub fn close(&mut self, column: usize) -> Result<Kind, RegexError> {
        self.flush();
        if self.frames.len() == 1 {
            return Err(RegexError::invalid(column, "this `)` closes no group"));
        }
        let mut frame = self.frames.pop().expect("more than the root frame");
        let (kind, opened) = (frame.kind, frame.column);
        frame.names_before.extend(frame.names.drain());
        let names = std::mem::take(&mut frame.names_before);
        let inner = frame.finish();
        let node = match kind {
            Kind::Group => inner,
            Kind::Look { behind, negative } => Node::look(behind, negative, inner, opened),
        };
        let top = self.top();
        top.names.extend(names);
        top.parts.push(node);
        Ok(kind)
    }

    pub fn bar(&mut self) {
        self.flush();
        self.top().bar();
    }

    /// Repeats the last character, atom or group.
    pub fn repeat(&mut self, low: u32, high: Option<u32>, lazy: bool) {
        let last = match self.run.pop() {
            Some(last) => {
                self.flush();
                Node::Text(last.into())
            }
            None => self.top().parts.pop().expect("something to repeat"),
        };
        let rounds = Node::Repeat(Box::new(last), low, high);
        let node = if lazy && self.ordered { Node::Lazy(Box::new(rounds)) } else { rounds };
        self.top().parts.push(node);
    }

    pub fn finish(&mut self) -> Result<Node, RegexError> {
        self.flush();
        let frame = self.frames.pop().expect("the root frame");
        if !self.frames.is_empty() {
            return Err(RegexError::invalid(frame.column, "this `(` is never closed"));
        }
        Ok(frame.finish())
    }
}
