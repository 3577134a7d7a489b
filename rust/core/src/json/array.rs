//! Frames of arrays.

use super::object::place_of;
use super::{Alternative, JsonMachine, Node, Pending, Place, FREE};
use crate::automaton::{CtxId, Pos};
use crate::schema::used::KeySet;
use crate::schema::{ArrId, ObjId, ValId};

impl JsonMachine {
    /// The frame of an array that begins under these goals.
    pub(super) fn open_array(&mut self, goals: u32) -> Option<u32> {
        if let Some(&known) = self.answers.opened.get(&(goals, false)) {
            return known;
        }
        let list = self.frames.goals[goals as usize].clone();
        let mut ways = Vec::new();
        for (goal, &v) in list.iter().enumerate() {
            let formula = self.schema.value(v).arr;
            if self.schema.array_is_live(formula) {
                ways.push((goal as u32, formula));
            }
        }
        let frame = self.array_frame(ways);
        self.answers.opened.insert((goals, false), frame);
        frame
    }

    fn array_frame(&mut self, list: Vec<(u32, ArrId)>) -> Option<u32> {
        if list.is_empty() {
            return None;
        }
        let mut by_goal: indexmap::IndexMap<u32, Vec<ArrId>> = Default::default();
        for (goal, formula) in list {
            by_goal.entry(goal).or_default().push(formula);
        }
        let merged: Box<[(u32, ArrId)]> =
            by_goal.into_iter().map(|(goal, list)| (goal, self.schema.or_arrays(&list))).collect();
        Some(self.frames.arrays.insert_full(merged).0 as u32)
    }

    /// The next item of a frame: its goals and what they lead to; `None` when no item may come.
    pub(super) fn item(&mut self, node: Node) -> Option<(u32, CtxId)> {
        let frame = self.frames.arrays[node.frame as usize].clone();
        let mut goals: Vec<ValId> = Vec::new();
        let mut branches = Vec::new();
        let mut remembers = false;
        for &(goal, formula) in frame.iter() {
            remembers |= self.schema.remembers(formula);
            for (sub, rest) in self.schema.next_items(formula) {
                let v = self.schema.compile_or_none(sub);
                // frames of arrays and objects share the shape of a branch; the formula's number is an array's
                let next = Alternative { goal, formula: ObjId(rest.0), order: FREE, from: 0 };
                branches.push((place_of(&mut goals, v), next));
            }
        }
        if branches.is_empty() {
            return None;
        }
        let start = if remembers { self.frames.records[node.record as usize].len() as u32 + 1 } else { 0 };
        let pending =
            Pending { goals: goals.clone().into(), branches: branches.into(), used: KeySet::EMPTY, start };
        let pending = self.frames.pendings.insert_full(pending).0 as u32;
        let up = self.ctx(Place::ReturnArray, node.up, pending, (node.record != 0) as u32, node.depth);
        Some((self.goal_list(&goals), up))
    }

    pub(super) fn resume_array(&mut self, node: Node, held: &[u32], record: u32) -> Option<Pos> {
        let pending = self.frames.pendings[node.frame as usize].clone();
        // an item whose text is like no other is not remembered; where several would be, the exact way is taken
        let other = record == Self::OTHER;
        self.alike.texts_closed += (pending.start != 0 && !(other && node.record == 0)) as u64;
        let value = match pending.start {
            0 => None,
            _ if other => None,
            start => {
                let text = self.frames.records[record as usize][start as usize - 1..].to_vec();
                let text = std::str::from_utf8(&text).ok()?;
                self.schema.constant_of_text(text)
            }
        };
        let mut list = Vec::new();
        for (goal, next) in pending.branches.iter() {
            if held.binary_search(goal).is_err() {
                continue;
            }
            let mut rest = ArrId(next.formula.0);
            if let Some(value) = value {
                self.recall(value);
                rest = self.schema.remember(rest, value);
                if !self.schema.array_is_live(rest) {
                    continue;
                }
            }
            list.push((next.goal, rest));
        }
        let frame = self.array_frame(list)?;
        // the record is dropped where no array further out needs it
        let record = if node.record == 0 { 0 } else { record };
        let ctx = self.ctx(Place::ArrayAfter, node.up, frame, record, node.depth);
        Some(self.pos(ctx))
    }

    pub(super) fn array_goals(&self, frame: u32) -> Vec<u32> {
        let frame = &self.frames.arrays[frame as usize];
        let ended = frame.iter().filter(|(_, formula)| self.schema.may_end_array(*formula));
        let mut goals: Vec<u32> = ended.map(|w| w.0).collect();
        goals.sort_unstable();
        goals
    }
}
