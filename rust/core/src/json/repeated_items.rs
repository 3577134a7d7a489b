//! Items that would repeat an earlier one: what the message about a refused byte says of `uniqueItems`.
//!
//! The language of an item leaves the equal values out.  So the byte that would complete one (or, where values are few,
//! begin one) is refused like any other; the text that was read says whether that was the reason.
//! Invariant: what is said is true of the text; a repetition may be spelled so that it is not recognised.
//! Complexity: linear in the text read and in the items that must differ, at a refusal alone.

use super::{Context, JsonMachine, ParserPhase, ReturnFrame};
use crate::automaton::byte_automaton::Seen;
use crate::schema::array::Arr;
use crate::schema::document::JsonNodeId;
use crate::schema::{ArrId, NameId, SchemaExpr, ValId};
use crate::work;

/// What may stand where an item would repeat another.
pub(super) const UNLIKE: &str = "a value that no item before it has (uniqueItems)";

/// Where the values begin that are open at the end of a text, the innermost last.
fn open_values(read: &[u8]) -> Vec<usize> {
    let (mut open, mut at) = (vec![0], 0);
    while at < read.len() {
        match read[at] {
            b'"' => {
                at += 1;
                while at < read.len() && read[at] != b'"' {
                    at += 1 + (read[at] == b'\\') as usize;
                }
            }
            b'{' | b'[' => open.push(at + 1),
            b'}' | b']' => drop(open.pop()),
            b',' | b':' => drop(open.last_mut().map(|begin| *begin = at + 1)),
            _ => {}
        }
        at += 1;
    }
    open
}

impl JsonMachine {
    /// The place of an array whose item would repeat one before it: the refused byte would end it, or be a part of it.
    pub(super) fn pointer_of_repeated(&mut self, mut context: Context, seen: Seen) -> Option<Option<String>> {
        let refused = seen.refused?;
        let open = open_values(seen.read);
        let mut values = open.iter().enumerate().rev();
        // positions between the values of a container stand in it, those of scalars and keys below it
        let own = matches!(
            context.phase,
            ParserPhase::ObjectStart | ParserPhase::ObjectNext | ParserPhase::ObjectAfter
        ) || matches!(
            context.phase,
            ParserPhase::ArrayStart | ParserPhase::ArrayAfter | ParserPhase::Key | ParserPhase::Colon
        );
        if own {
            values.next();
        }
        for (depth, &begin) in values {
            context = self.context(context.parent);
            if context.phase != ParserPhase::ReturnArray {
                continue;
            }
            let return_frame = self.frames[context.return_frame()].clone();
            if return_frame.start == 0 {
                continue;
            }
            let item = std::str::from_utf8(&seen.read[begin..]).ok()?.trim_start();
            let ended = format!("{item}{}", refused as char);
            let closes = matches!(refused, b'"' | b'}' | b']');
            let value = match self.schema.constant_of_text(&ended).filter(|_| closes) {
                Some(value) => Some(value),
                None if matches!(refused, b',' | b']' | b' ' | b'\t' | b'\n' | b'\r') => {
                    self.schema.constant_of_text(item)
                }
                None => None,
            };
            let repeats = match value {
                Some(value) => return_frame.items().iter().any(|&(_, (_, rest))| self.is_seen(rest, value)),
                None => self.begins_seen(&return_frame, item, refused),
            };
            if repeats {
                let goals = self.goals_of_scalar(context).unwrap_or_default();
                let read = &seen.read[..open[depth.saturating_sub(1)]];
                return Some(self.place_of(&goals, Seen { read, ..seen }));
            }
        }
        None
    }

    /// Whether a formula lets no item have the value since one had it.
    fn is_seen(&self, a: ArrId, value: JsonNodeId) -> bool {
        match self.schema.array(a) {
            Arr::Unique(seen) => self.schema.key_sets.contains(*seen, NameId(value.0)),
            Arr::And(list) => list.iter().any(|&one| self.is_seen(one, value)),
            _ => false,
        }
    }

    /// Whether a text and the byte after it begin an item that is forbidden because one had it, and for nothing else;
    /// not asked of arrays and objects, which may be spelled in many ways.
    fn begins_seen(&mut self, return_frame: &ReturnFrame, item: &str, refused: u8) -> bool {
        let begun = [item.as_bytes(), &[refused]].concat();
        if matches!(begun[0], b'[' | b'{') {
            return false;
        }
        let mut values = Vec::new();
        for &(_, (_, rest)) in return_frame.items() {
            for part in self.schema.conjuncts(rest) {
                if let Arr::Unique(seen) = *self.schema.array(part) {
                    values.extend(self.schema.seen_values(seen));
                }
            }
        }
        work::spend(1 + values.len() as u64);
        values.retain(|&value| self.schema.doc.canonical(value).as_bytes().starts_with(&begun));
        values.iter().any(|&value| return_frame.goals.iter().any(|&goal| self.is_item(goal, value)))
    }

    /// Whether the schema of an item allows a value, whatever came before it.
    fn is_item(&mut self, goal: ValId, value: JsonNodeId) -> bool {
        let Some(&node) = self.schema.compiled.origin.get(&goal) else { return true };
        let parts = [self.schema.node_sub(node), self.schema.sub(SchemaExpr::Const(value))];
        let both = self.schema.and(&parts);
        self.schema.sub_is_live(both)
    }
}

#[cfg(test)]
mod tests {
    use super::open_values;

    #[test]
    fn values_begin_behind_what_opens_or_parts_them() {
        let open = |text: &'static str| -> Vec<&str> {
            open_values(text.as_bytes()).into_iter().map(|at| &text[at..]).collect()
        };
        assert_eq!(
            open(r#"[1, {"a": [2,"],{", 3"#),
            [r#"[1, {"a": [2,"],{", 3"#, r#" {"a": [2,"],{", 3"#, r#" [2,"],{", 3"#, " 3"]
        );
        assert_eq!(open("[[1],"), ["[[1],", ""]);
    }
}
