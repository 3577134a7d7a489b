//! Short values that satisfy a formula.
//!
//! Invariant: a value names the formulas of its members instead of holding their texts, so that one of 2^30 items is
//! thirty entries; it is spelled out only where it is short enough to be written.
//! Complexity: one entry a formula.

use std::sync::Arc;

use super::Keys;
use crate::lexical::{Lexicon, Spelling, TermId, Terms, LONGEST};
use crate::schema::options::Strings;
use crate::schema::value::{ValId, FALSE, NULL, TRUE};
use crate::schema::{ArrId, NameId, ObjId, Schema};

/// A short value: how many bytes it has as compact JSON, and what it is made of.
#[derive(Clone, Debug)]
pub struct Witness {
    pub length: usize,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Text(Box<str>),
    Array(Box<[ValId]>),
    Object(Box<[(NameId, ValId)]>),
}

impl Witness {
    fn text(text: impl Into<Box<str>>) -> Self {
        let text = text.into();
        Witness { length: text.len(), form: Form::Text(text) }
    }

    /// The text of a scalar, or the bracket with which an array or object opens.
    pub fn opening(&self) -> &str {
        match &self.form {
            Form::Text(text) => text,
            Form::Array(_) => "[",
            Form::Object(_) => "{",
        }
    }
}

impl Schema {
    /// A short value that satisfies the formula.
    pub fn witness(&mut self, v: ValId) -> Option<Arc<Witness>> {
        if let Some(known) = self.answers.witnesses.get(&v) {
            return known.clone();
        }
        if !self.is_live(v) {
            return None;
        }
        // a formula met inside itself has no shortest value through itself
        self.answers.witnesses.insert(v, None);
        let found = stacker::maybe_grow(256 << 10, 4 << 20, || self.find_witness(v)).map(Arc::new);
        match &found {
            Some(found) => self.answers.witnesses.insert(v, Some(found.clone())),
            None => self.answers.witnesses.remove(&v),
        };
        found
    }

    fn find_witness(&mut self, v: ValId) -> Option<Witness> {
        let value = self.value(v).clone();
        for (bit, word) in [(NULL, "null"), (TRUE, "true"), (FALSE, "false")] {
            if value.consts & bit != 0 {
                return Some(Witness::text(word));
            }
        }
        if value.num {
            let set = self.numbers(&value);
            let term = self.lexicon.terms.numbers_in(set, self.options.numbers);
            if let Some(text) = self.shortest(Spelling::Raw, term) {
                return Some(Witness::text(text));
            }
        }
        let mut best: Option<Witness> = None;
        if value.str != Terms::EMPTY {
            let spelling = self.string_spelling();
            best = self.shortest(spelling, value.str).map(|text| Witness::text(format!("\"{text}\"")));
        }
        if best.as_ref().is_none_or(|b| b.length > 2) {
            if value.arr != ArrId::FALSE {
                let items = self.array_rest_witness(value.arr);
                let array = items.map(|items| self.array_of(items));
                best = shorter(best, array);
            }
            if value.obj != ObjId::FALSE {
                let object = self.object_witness(value.obj, &Keys::all());
                best = shorter(best, object);
            }
        }
        best
    }

    /// Bytes of the items of an array, each with the comma or the bracket after it.
    pub(crate) fn length_of_items(&mut self, items: &[ValId]) -> usize {
        let mut last = (None, 0);
        items.iter().fold(0, |sum: usize, &item| {
            // items are mostly alike
            if last.0 != Some(item) {
                last = (Some(item), self.witness(item).map_or(0, |w| w.length));
            }
            sum.saturating_add(last.1).saturating_add(1)
        })
    }

    fn array_of(&mut self, items: Vec<ValId>) -> Witness {
        let length = self.length_of_items(&items).saturating_add(1).max(2);
        Witness { length, form: Form::Array(items.into()) }
    }

    pub(super) fn object_of(&mut self, members: Vec<(NameId, ValId)>) -> Option<Witness> {
        let mut length = 1usize.max(2 - members.len().min(1));
        for &(name, value) in &members {
            let key = serde_json::to_string(self.name_text(name)).expect("a string").len();
            length = length.saturating_add(key + 2).saturating_add(self.witness(value)?.length);
        }
        Some(Witness { length, form: Form::Object(members.into()) })
    }

    /// A value of at most `most` bytes as compact JSON.
    pub(crate) fn spelled(&mut self, witness: &Witness, most: usize) -> Option<String> {
        enum Part {
            Text(&'static str),
            Key(NameId),
            Value(ValId),
        }
        if witness.length > most {
            return None;
        }
        let (mut out, mut todo) = (String::new(), Vec::new());
        let mut at = Some(Arc::new(witness.clone()));
        loop {
            if let Some(value) = at.take() {
                out.push_str(value.opening());
                match &value.form {
                    Form::Text(_) => {}
                    Form::Array(items) => {
                        todo.push(Part::Text("]"));
                        for (i, &item) in items.iter().enumerate().rev() {
                            todo.push(Part::Value(item));
                            todo.extend((i > 0).then_some(Part::Text(",")));
                        }
                    }
                    Form::Object(members) => {
                        todo.push(Part::Text("}"));
                        for (i, &(name, value)) in members.iter().enumerate().rev() {
                            todo.extend([Part::Value(value), Part::Text(":"), Part::Key(name)]);
                            todo.extend((i > 0).then_some(Part::Text(",")));
                        }
                    }
                }
            }
            match todo.pop() {
                None => return Some(out),
                Some(Part::Text(text)) => out.push_str(text),
                Some(Part::Key(name)) => {
                    out.push_str(&serde_json::to_string(self.name_text(name)).expect("a string"))
                }
                Some(Part::Value(v)) => at = Some(self.witness(v)?),
            }
        }
    }

    pub(crate) fn string_spelling(&self) -> Spelling {
        match self.options.strings {
            Strings::Natural => Spelling::JsonNatural,
            Strings::Any => Spelling::JsonAny,
            Strings::Canonical => Spelling::Json,
        }
    }

    pub(crate) fn shortest(&mut self, spelling: Spelling, term: TermId) -> Option<String> {
        let lex = self.lexicon.at(spelling, term);
        if lex == Lexicon::DEAD {
            return None;
        }
        let (bytes, _) = crate::lexical::shortest_lexeme(&mut self.lexicon, lex, LONGEST)?;
        String::from_utf8(bytes).ok()
    }
}

fn shorter(a: Option<Witness>, b: Option<Witness>) -> Option<Witness> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.length < a.length { b } else { a }),
        (a, b) => a.or(b),
    }
}
