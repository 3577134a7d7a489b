//! Frames of arrays: which items may come, what they lead to, when the bracket may close.
//!
//! Invariant: an item that must differ from later ones has its text recorded, and is remembered in the formula when it ends.
//! Complexity: the formulas of the frame.  Memory: each frame once (`frames`).

use super::frames::{ArrayFrameId, GoalsId, RecordId, ReturnFrameId};
use super::object::goal_index;
use super::{Branches, Context, JsonMachine, ParserPhase, ReturnFrame};
use crate::automaton::{CtxId, Pos};
use crate::schema::key_sets::KeySet;
use crate::schema::{ArrId, ValId};

impl JsonMachine {
    /// The frame of an array that begins under these goals.
    pub(super) fn open_array(&mut self, goals: GoalsId) -> Option<ArrayFrameId> {
        memo!(self.memos.arrays, goals, {
            let list = self.frames[goals].clone();
            let mut ways = Vec::new();
            for (goal, &v) in list.iter().enumerate() {
                let formula = self.schema.value(v).arr;
                if self.schema.array_is_live(formula) {
                    ways.push((goal as u32, formula));
                }
            }
            self.array_frame(ways)
        })
    }

    fn array_frame(&mut self, list: Vec<(u32, ArrId)>) -> Option<ArrayFrameId> {
        (!list.is_empty()).then(|| self.frames.array(self.schema.or_by(list).into()))
    }

    /// The next item of a frame: its goals, what they lead to, and the record that it is written to; `None` when no item
    /// may come.
    pub(super) fn item(&mut self, context: Context) -> Option<(GoalsId, CtxId, RecordId)> {
        let frame = context.array();
        let (goals, mut return_frame, remembers) = memo!(self.memos.items, frame, self.find_item(frame))?;
        let mut record = context.record;
        if remembers {
            return_frame = self.recorded_from_end(return_frame, record);
            if record.is_none() {
                // with a byte that is never part of a value, so that none is [`RecordId::NONE`]
                record = self.frames.record(Box::new([b' ']));
            }
        }
        // of the record above it counts only whether there is one
        let above = if context.record.is_none() { RecordId::NONE } else { RecordId::OTHER };
        let parent = self.ctx(ParserPhase::ReturnArray, context.parent, return_frame, above, context.depth);
        Some((goals, parent, record))
    }

    /// The goals of a frame's next item, what they lead to, and whether it is remembered.
    fn find_item(&mut self, frame: ArrayFrameId) -> Option<(GoalsId, ReturnFrameId, bool)> {
        let frame = self.frames[frame].clone();
        let mut goals: Vec<ValId> = Vec::new();
        let mut branches = Vec::new();
        for &(goal, formula) in frame.iter() {
            for (sub, rest) in self.schema.next_items(formula) {
                let v = self.schema.compile_or_refuse(sub);
                branches.push((goal_index(&mut goals, v), (goal, rest)));
            }
        }
        if branches.is_empty() {
            return None;
        }
        let remembers = frame.iter().any(|way| self.schema.remembers(way.1));
        let list = self.goal_list(&goals);
        let branches = Branches::Array(branches.into());
        let return_frame = ReturnFrame { goals: goals.into(), branches, used: KeySet::EMPTY, start: 0 };
        Some((list, self.frames.return_frame(return_frame), remembers))
    }

    pub(super) fn resume_array(
        &mut self,
        context: Context,
        satisfied: &[u32],
        record: RecordId,
    ) -> Option<Pos> {
        let return_frame = self.frames[context.return_frame()].clone();
        // an item whose text is like no other is not remembered; where several would be, the exact way is taken
        let other = record == RecordId::OTHER;
        self.generic.texts_closed += (return_frame.start != 0 && !(other && context.record.is_none())) as u64;
        let value = match return_frame.start {
            0 => None,
            _ if other => None,
            start => {
                let text = self.frames[record][start as usize - 1..].to_vec();
                let text = std::str::from_utf8(&text).ok()?;
                self.schema.constant_of_text(text)
            }
        };
        let mut list = Vec::new();
        for &(goal, (own, mut rest)) in return_frame.items() {
            if satisfied.binary_search(&goal).is_err() {
                continue;
            }
            if let Some(value) = value {
                self.remember_texts(value);
                rest = self.schema.remember(rest, value);
                if !self.schema.array_is_live(rest) {
                    continue;
                }
            }
            list.push((own, rest));
        }
        let frame = self.array_frame(list)?;
        // the record is dropped where no array further out needs it
        let record = if context.record.is_none() { RecordId::NONE } else { record };
        let ctx = self.ctx(ParserPhase::ArrayAfter, context.parent, frame, record, context.depth);
        Some(self.pos(ctx))
    }

    pub(super) fn array_goals(&self, frame: ArrayFrameId) -> Vec<u32> {
        let frame = &self.frames[frame];
        let ended = frame.iter().filter(|(_, formula)| self.schema.may_end(*formula));
        let mut goals: Vec<u32> = ended.map(|w| w.0).collect();
        goals.sort_unstable();
        goals
    }
}
