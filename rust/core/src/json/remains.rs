//! What a document that was begun may still need, whatever one more token reads of it: an upper bound, by its form.
//!
//! The frames that are open need what they lack (a token takes nothing from it but by giving it), and the token may
//! begin one key, item or value more, and open others inside it.
//! Invariant: the way out that [`super::finish`] finds after any token that is allowed has no more bytes.
//! Complexity: the contexts and formulas that are new.
//! Rejected: a constant of the schema: formulas meet in ever new combinations.

use super::frames::ReturnFrameId;
use super::{JsonMachine, Node, ParserPhase};
use crate::automaton::{CtxId, Pos};
use crate::lexical::Terms;
use crate::schema::live::remains::Open;
use crate::schema::options::Whitespace;
use crate::schema::ValId;
use crate::vocab::Openings;

/// Bytes that end whitespace that was begun, and the punctuation after it.
const EDGE: usize = 16;

impl JsonMachine {
    /// Bytes that are enough for an end after any token; `None` where that is not known.
    pub(super) fn most_remaining(&mut self, pos: Pos, opens: Openings) -> Option<usize> {
        let node = self.node(pos.ctx);
        let levels = node.depth + opens.levels() + 1;
        if self.schema.patterns.guard != Terms::ALL || levels >= self.levels.deepest || !opens.is_exact() {
            return None;
        }
        let bytes = self.remaining(node, opens)?.saturating_add(EDGE);
        match self.schema.options.whitespace {
            Whitespace::Compact | Whitespace::Natural | Whitespace::Any | Whitespace::AtMost(_) => {
                Some(bytes)
            }
            // a space before each of them at most
            Whitespace::Spaced => Some(bytes.saturating_mul(2)),
            // after a line break the way out may not be the one that was counted
            Whitespace::Indent => None,
        }
    }

    fn remaining(&mut self, node: Node, opens: Openings) -> Option<usize> {
        let (above, own) = match node.place {
            ParserPhase::Done => return Some(0),
            ParserPhase::Root | ParserPhase::Value | ParserPhase::Item => {
                let goals = self.frames[node.goals()].clone();
                (self.above(node.up, opens)?, self.values(&goals, opens)?)
            }
            ParserPhase::Scalar => (self.above(node.up, opens)?, Open::default()),
            ParserPhase::Colon => {
                let pending = self.pending_remains(node.pending(), opens)?;
                (self.above(node.up, opens)?, pending)
            }
            ParserPhase::ObjectStart
            | ParserPhase::Key
            | ParserPhase::ObjectNext
            | ParserPhase::ObjectAfter => {
                let frame = self.frames[node.object()].clone();
                let mut own = Open::default();
                for a in frame.alternatives.iter() {
                    own = own.or(self.schema.object_remains(a.formula, opens)?);
                }
                (self.above(node.up, opens)?, own)
            }
            ParserPhase::ArrayStart | ParserPhase::ArrayAfter => {
                let frame = self.frames[node.array()].clone();
                let mut own = Open::default();
                for &(_, formula) in frame.iter() {
                    own = own.or(self.schema.array_remains(formula, opens)?);
                }
                (self.above(node.up, opens)?, own)
            }
            ParserPhase::ReturnRoot | ParserPhase::ReturnObject | ParserPhase::ReturnArray => return None,
        };
        let begun = above.begun.max(own.begun);
        Some(above.rest.saturating_add(own.rest).saturating_add(begun))
    }

    fn values(&mut self, goals: &[ValId], opens: Openings) -> Option<Open> {
        let mut open = Open::default();
        for &v in goals {
            open.begun = open.begun.max(self.schema.value_remains(v, opens)?);
        }
        Some(open)
    }

    /// What the frames need that a value returns to.
    fn above(&mut self, up: CtxId, opens: Openings) -> Option<Open> {
        memo!(self.answers.above, up, stacker::maybe_grow(64 << 10, 1 << 20, || self.find_above(up, opens)))
    }

    fn find_above(&mut self, up: CtxId, opens: Openings) -> Option<Open> {
        let node = self.node(up);
        if node.place == ParserPhase::ReturnRoot {
            let root = self.root;
            return self.values(&[root], opens);
        }
        let above = self.above(node.up, opens)?;
        let own = self.pending_remains(node.pending(), opens)?;
        Some(Open { rest: above.rest.saturating_add(own.rest), begun: above.begun.max(own.begun) })
    }

    /// What a frame needs after the value that is read, and what may be left of that value.
    fn pending_remains(&mut self, pending: ReturnFrameId, opens: Openings) -> Option<Open> {
        let pending = self.frames[pending].clone();
        let mut own = self.values(&pending.goals, opens)?;
        for (_, next) in pending.properties() {
            own = own.or(self.schema.object_remains(next.formula, opens)?);
        }
        for &(_, (_, rest)) in pending.items() {
            own = own.or(self.schema.array_remains(rest, opens)?);
        }
        Some(own)
    }
}
