//! An upper bound on the bytes that a document still needs after any one more token, from its form.
//!
//! The open frames need what they lack (a token takes nothing from that except by writing it), and the token may begin one
//! more key, item or value, and open others inside it.
//! Invariant: the completion that [`super::completion`] finds after any allowed token has no more bytes.
//! Complexity: the contexts and formulas that are new.
//! Rejected: a constant of the schema: formulas meet in ever new combinations.

use super::frames::ReturnFrameId;
use super::{Context, JsonMachine, ParserPhase};
use crate::automaton::{CtxId, Pos};
use crate::lexical::Terms;
use crate::schema::live::remaining_bound::OpenBound;
use crate::schema::options::Whitespace;
use crate::schema::ValId;
use crate::vocab::Openings;

/// Bytes that end whitespace that was begun, and the punctuation after it.
const EDGE: usize = 16;

impl JsonMachine {
    /// Bytes that are enough for an end after any token; `None` where that is not known.
    pub(super) fn most_remaining(&mut self, pos: Pos, opens: Openings) -> Option<usize> {
        let context = self.context(pos.ctx);
        let levels = context.depth + opens.levels() + 1;
        if self.schema.patterns.guard != Terms::ALL || levels >= self.levels.deepest || !opens.is_exact() {
            return None;
        }
        let bytes = self.remaining(context, opens)?.saturating_add(EDGE);
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

    fn remaining(&mut self, context: Context, opens: Openings) -> Option<usize> {
        let (above, own) = match context.phase {
            ParserPhase::Done => return Some(0),
            ParserPhase::Root | ParserPhase::Value | ParserPhase::Item => {
                let goals = self.frames[context.goals()].clone();
                (self.above(context.parent, opens)?, self.values(&goals, opens)?)
            }
            ParserPhase::Scalar => (self.above(context.parent, opens)?, OpenBound::default()),
            ParserPhase::Colon => {
                let return_frame = self.remaining_in_frame(context.return_frame(), opens)?;
                (self.above(context.parent, opens)?, return_frame)
            }
            ParserPhase::ObjectStart
            | ParserPhase::Key
            | ParserPhase::ObjectNext
            | ParserPhase::ObjectAfter => {
                let frame = self.frames[context.object()].clone();
                let mut own = OpenBound::default();
                for a in frame.alternatives.iter() {
                    own = own.or(self.schema.object_remains(a.formula, opens)?);
                }
                (self.above(context.parent, opens)?, own)
            }
            ParserPhase::ArrayStart | ParserPhase::ArrayAfter => {
                let frame = self.frames[context.array()].clone();
                let mut own = OpenBound::default();
                for &(_, formula) in frame.iter() {
                    own = own.or(self.schema.array_remains(formula, opens)?);
                }
                (self.above(context.parent, opens)?, own)
            }
            ParserPhase::ReturnRoot | ParserPhase::ReturnObject | ParserPhase::ReturnArray => return None,
        };
        let begun = above.begun.max(own.begun);
        Some(above.rest.saturating_add(own.rest).saturating_add(begun))
    }

    fn values(&mut self, goals: &[ValId], opens: Openings) -> Option<OpenBound> {
        let mut open = OpenBound::default();
        for &v in goals {
            open.begun = open.begun.max(self.schema.value_remains(v, opens)?);
        }
        Some(open)
    }

    /// What the frames need that a value returns to.
    fn above(&mut self, parent: CtxId, opens: Openings) -> Option<OpenBound> {
        memo!(
            self.memos.above,
            parent,
            stacker::maybe_grow(64 << 10, 1 << 20, || self.find_above(parent, opens))
        )
    }

    fn find_above(&mut self, parent: CtxId, opens: Openings) -> Option<OpenBound> {
        let context = self.context(parent);
        if context.phase == ParserPhase::ReturnRoot {
            let root = self.root;
            return self.values(&[root], opens);
        }
        let above = self.above(context.parent, opens)?;
        let own = self.remaining_in_frame(context.return_frame(), opens)?;
        Some(OpenBound { rest: above.rest.saturating_add(own.rest), begun: above.begun.max(own.begun) })
    }

    /// What a frame needs after the value that is read, and what may be left of that value.
    fn remaining_in_frame(&mut self, return_frame: ReturnFrameId, opens: Openings) -> Option<OpenBound> {
        let return_frame = self.frames[return_frame].clone();
        let mut own = self.values(&return_frame.goals, opens)?;
        for (_, next) in return_frame.properties() {
            own = own.or(self.schema.object_remains(next.formula, opens)?);
        }
        for &(_, (_, rest)) in return_frame.items() {
            own = own.or(self.schema.array_remains(rest, opens)?);
        }
        Some(own)
    }
}
