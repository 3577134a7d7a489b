//! Items that may not end as they are since one before them is equal: what a refused byte is told of `uniqueItems`.
//!
//! The languages of items leave the equal ones out, so that the place where one would be complete is a refusal like any
//! other; here the text that was read says whether it is that.
//! Complexity: linear in the text read, at a refusal alone.

use super::{JsonMachine, Node, Place};
use crate::automaton::structure::Seen;
use crate::schema::array::Arr;
use crate::schema::document::JId;
use crate::schema::{ArrId, NameId};

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
    /// The place of an array whose item the refused byte would end, equal to one before it.
    pub(super) fn place_of_repeated(&mut self, mut node: Node, seen: Seen) -> Option<Option<String>> {
        let refused = seen.refused?;
        let open = open_values(seen.read);
        let mut values = open.iter().enumerate().rev();
        // positions between the values of a container stand in it, those of scalars and keys below it
        let own = matches!(node.place, Place::ObjectStart | Place::ObjectNext | Place::ObjectAfter)
            || matches!(node.place, Place::ArrayStart | Place::ArrayAfter | Place::Key | Place::Colon);
        if own {
            values.next();
        }
        for (depth, &begin) in values {
            node = self.node(node.up);
            if node.place != Place::ReturnArray {
                continue;
            }
            let pending = self.frames.pendings.get_index(node.frame as usize)?.clone();
            if pending.start == 0 {
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
            let Some(value) = value else { continue };
            if pending.branches.iter().any(|(_, next)| self.is_seen(ArrId(next.formula.0), value)) {
                let goals = self.goals_of_scalar(node).unwrap_or_default();
                let read = &seen.read[..open[depth.saturating_sub(1)]];
                return Some(self.place_of(&goals, Seen { read, ..seen }));
            }
        }
        None
    }

    /// Whether a formula lets no item have the value since one had it.
    fn is_seen(&self, a: ArrId, value: JId) -> bool {
        match self.schema.array(a) {
            Arr::Unique(seen) => self.schema.key_sets.contains(*seen, NameId(value.0)),
            Arr::And(list) => list.iter().any(|&one| self.is_seen(one, value)),
            _ => false,
        }
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
