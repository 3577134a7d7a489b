//! What may come at a position, in words, and the schema that says so.

use super::{JsonMachine, Kind, Node, Place};
use crate::mask::Pos;
use crate::schema::object::Obj;
use crate::schema::{ObjId, ShapeId};

/// Keys that a message lists.
const SHOWN: usize = 8;

impl JsonMachine {
    pub(super) fn in_words(&mut self, pos: Pos) -> (Vec<String>, Option<String>) {
        let node = self.node(pos.ctx);
        match node.place {
            Place::Done => (vec!["the end of the text".into()], None),
            Place::Root | Place::Value | Place::Item => {
                (self.values_in_words(node.frame), self.place_of_goals(node.frame))
            }
            Place::Scalar => {
                let goals = self.goals_of_scalar(node);
                (self.scalar_in_words(pos), goals.and_then(|g| self.place_of_goals(g)))
            }
            Place::ObjectStart | Place::ObjectNext | Place::Key | Place::ObjectAfter => {
                let mut words = self.keys_in_words(node);
                let closes = !self.object_goals(node.frame).is_empty();
                if closes && matches!(node.place, Place::ObjectStart | Place::ObjectAfter) {
                    words.push("\"}\"".into());
                }
                (words, self.place_of_object(node.frame))
            }
            Place::Colon => (vec!["\":\"".into()], None),
            Place::ArrayStart | Place::ArrayAfter => {
                let mut words = Vec::new();
                if self.item(node).is_some() {
                    words.push(if node.place == Place::ArrayStart { "an item" } else { "\",\"" }.into());
                }
                if !self.array_goals(node.frame).is_empty() {
                    words.push("\"]\"".into());
                }
                (words, None)
            }
            _ => (Vec::new(), None),
        }
    }

    fn values_in_words(&mut self, goals: u32) -> Vec<String> {
        let mut words = Vec::new();
        if self.scalar(goals, Kind::String).is_some() {
            words.push("a string".to_string());
        }
        if let Some((_, lex)) = self.scalar(goals, Kind::Bare) {
            let set = self.lexicon().first_bytes(lex);
            if (b'0'..=b'9').any(|b| set.has(b)) || set.has(b'-') {
                words.push("a number".into());
            }
            for (byte, word) in [(b't', "true"), (b'f', "false"), (b'n', "null")] {
                if set.has(byte) {
                    words.push(word.into());
                }
            }
        }
        if self.open_object(goals).is_some() {
            words.push("an object".into());
        }
        if self.open_array(goals).is_some() {
            words.push("an array".into());
        }
        words
    }

    fn scalar_in_words(&mut self, pos: Pos) -> Vec<String> {
        let string = self.lexicon().is_string(pos.lex);
        let outcome = self.lexicon().outcome(pos.lex);
        let next = self.lexicon().representatives(pos.lex);
        let mut words: Vec<String> =
            next.iter().take(SHOWN).map(|(c, _)| format!("a character like {c:?}")).collect();
        if outcome != crate::lexical::Lexicon::NONE {
            words.push(if string { "the closing quote" } else { "the end of the value" }.into());
        }
        words
    }

    fn keys_in_words(&mut self, node: Node) -> Vec<String> {
        let term = self.key_term(node.frame);
        match self.terms().finite_words(term) {
            Some(words) => {
                let more = words.len().saturating_sub(SHOWN);
                let mut out: Vec<String> =
                    words.iter().take(SHOWN).map(|w| format!("the key {w:?}")).collect();
                if more > 0 {
                    out.push(format!("{more} other keys"));
                }
                out
            }
            None => vec!["a key that is allowed and was not used".into()],
        }
    }

    fn goals_of_scalar(&self, node: Node) -> Option<u32> {
        let up = self.node(node.up);
        let goals = match up.place {
            Place::ReturnRoot => return self.goals.get_index_of(&[self.root][..]).map(|i| i as u32),
            _ => &self.pendings[up.frame as usize].goals,
        };
        self.goals.get_index_of(goals).map(|i| i as u32)
    }

    fn place_of_goals(&self, goals: u32) -> Option<String> {
        let v = self.goals[goals as usize].first()?;
        let node = self.schema.origin.get(v)?;
        Some(self.schema.doc.pointer(*node))
    }

    fn place_of_object(&self, frame: u32) -> Option<String> {
        let a = self.objects[frame as usize].alternatives.first()?;
        let shape = self.first_shape(a.formula)?;
        Some(self.schema.doc.pointer(self.schema.shape(shape).node))
    }

    fn first_shape(&self, o: ObjId) -> Option<ShapeId> {
        match self.schema.object(o) {
            Obj::Shape(s) | Obj::NotShape(s) => Some(*s),
            Obj::And(list) | Obj::Or(list) => list.iter().find_map(|&x| self.first_shape(x)),
            _ => None,
        }
    }
}
