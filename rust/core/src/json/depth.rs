//! The deepest level of a document: containers there hold no deeper ones.
//!
//! The bound is part of the language, so that a document can be ended wherever it may be read.  At the deepest level a value
//! is read under its goals and "nested at most k levels", for the least k (a power of two) that leaves some value.  Tokens
//! that go deeper are masked.  Only a schema whose values can't be flat goes deeper, by as many levels as its flattest
//! value has.
//! Rejected: an error at the bound (in the middle of a text, for any user that comes there).
//! Not covered: items that must differ, at the deepest level, of which too few are flat.

use rustc_hash::FxHashMap;

use super::frames::GoalsId;
use super::JsonMachine;
use crate::schema::ValId;
use crate::Limits;

/// Levels that a value may need below the deepest one.
const MOST: u32 = 1 << 12;

pub(super) struct Levels {
    /// Nesting that a document may have.
    pub deepest: u32,
    /// Goals of containers at that depth, by those that they have above it.
    flat: FxHashMap<GoalsId, GoalsId>,
}

impl Default for Levels {
    fn default() -> Self {
        Levels { deepest: Limits::default().depth, flat: FxHashMap::default() }
    }
}

impl JsonMachine {
    /// Documents may be nested so deep from now on.
    pub(crate) fn set_deepest(&mut self, levels: u32) {
        self.levels.deepest = levels.max(1);
        self.levels.flat.clear();
    }

    /// The goals of a container that opens below `depth` levels.
    pub(super) fn goals_at(&mut self, goals: GoalsId, depth: u32) -> GoalsId {
        if depth + 1 != self.levels.deepest {
            return goals;
        }
        memo!(self.levels.flat, goals, {
            let list = self.frames[goals].clone();
            let flat: Vec<ValId> = list.iter().map(|&v| self.flattest(v)).collect();
            self.goal_list(&flat)
        })
    }

    fn flattest(&mut self, v: ValId) -> ValId {
        let mut levels = 1;
        while levels <= MOST {
            let sub = self.schema.flat(levels);
            let bound = self.schema.compile_or_refuse(sub);
            let both = self.schema.and_values(v, bound);
            if self.schema.is_live(both) {
                return both;
            }
            levels *= 2;
        }
        v
    }
}
