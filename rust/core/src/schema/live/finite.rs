//! All values of a formula, where they are few.
//!
//! Purpose: items that must differ need enough values: a unique array of eight arrays of at most two booleans has
//! none, since there are seven.
//! Invariant: a list is complete; "many" means more than the limit, or endlessly many.
//! Complexity: one step a value, and one for each way that leads to none; charged to the call.

use std::sync::Arc;

use crate::schema::array::ArrId;
use crate::schema::by_key::Key;
use crate::schema::document::JsonNodeId;
use crate::schema::object::ObjId;
use crate::schema::value::{ExprId, SchemaExpr, ValId, FALSE, NULL, TRUE};
use crate::schema::{count_step, NameId, Schema};

/// Items of an array that is listed.
const LONGEST: usize = 4096;

/// Values, as canonical texts, sorted and distinct; `None`: more than were asked for.
type Values = Option<Arc<[String]>>;

/// What is known of an expression: its values, or that there are more than so many.
#[derive(Clone)]
pub(crate) enum KnownValues {
    All(Arc<[String]>),
    MoreThan(usize),
    /// Being listed: a value that holds another one of its kind, without end.
    Open,
}

impl Schema {
    /// All values of an expression, where they are at most `limit`.
    pub(super) fn finite_values(&mut self, s: ExprId, limit: usize) -> Values {
        match self.answers.finite.get(&s) {
            Some(KnownValues::All(values)) => return (values.len() <= limit).then(|| values.clone()),
            Some(KnownValues::MoreThan(n)) if *n >= limit => return None,
            Some(KnownValues::Open) => return None,
            _ => {}
        }
        let v = self.compile_or_refuse(s);
        if !self.is_live(v) {
            return Some(Arc::new([]));
        }
        let before = self.answers.finite.insert(s, KnownValues::Open);
        let found = stacker::maybe_grow(128 << 10, 1 << 20, || self.list_values(v, limit));
        let found: Values = found.filter(|values| values.len() <= limit).map(|mut values| {
            crate::lists::sort_unique(&mut values);
            values.into()
        });
        // inside another question the answer may rest on what that one assumes
        let open =
            self.answers.finite.values().filter(|known| matches!(known, KnownValues::Open)).count() > 1;
        match (&found, open) {
            (Some(values), _) => self.answers.finite.insert(s, KnownValues::All(values.clone())),
            (None, false) => self.answers.finite.insert(s, KnownValues::MoreThan(limit)),
            (None, true) => match before {
                Some(before) => self.answers.finite.insert(s, before),
                None => self.answers.finite.remove(&s),
            },
        };
        found
    }

    fn list_values(&mut self, v: ValId, limit: usize) -> Option<Vec<String>> {
        let value = self.value(v).clone();
        let mut out = Vec::new();
        for (bit, word) in [(NULL, "null"), (TRUE, "true"), (FALSE, "false")] {
            if value.consts & bit != 0 {
                out.push(word.to_string());
            }
        }
        let numbers = self.numbers(&value);
        out.extend(numbers.finite(limit)?.iter().map(|d| d.short()));
        if self.lexicon.terms.live(value.str) {
            let words = self.lexicon.terms.words_up_to(value.str, limit)?;
            out.extend(words.iter().map(|w| serde_json::to_string(w).expect("a string")));
        }
        if out.len() > limit {
            return None;
        }
        if value.arr != ArrId::FALSE {
            let mut arrays = Vec::new();
            self.list_arrays(value.arr, &mut Vec::new(), &mut arrays, limit)?;
            out.append(&mut arrays);
        }
        if value.obj != ObjId::FALSE {
            let mut objects = Vec::new();
            let names = self.names_of(value.obj);
            self.list_objects(value.obj, &names, &mut Vec::new(), &mut objects, limit)?;
            out.append(&mut objects);
        }
        // several ways may lead to one value
        let canonical: Option<Vec<String>> = out.iter().map(|text| self.canonical_text(text)).collect();
        let mut out = canonical?;
        crate::lists::sort_unique(&mut out);
        (out.len() <= limit).then_some(out)
    }

    fn canonical_text(&mut self, text: &str) -> Option<String> {
        let value = self.constant_of_text(text)?;
        Some(self.doc.canonical(value))
    }

    fn names_of(&self, o: ObjId) -> Vec<NameId> {
        let mut names = Vec::new();
        self.all_names(o, &mut names);
        crate::lists::sort_unique(&mut names);
        names
    }

    /// Arrays that begin with these items; `None` when there are too many.
    fn list_arrays(
        &mut self,
        a: ArrId,
        items: &mut Vec<String>,
        out: &mut Vec<String>,
        limit: usize,
    ) -> Option<()> {
        if self.may_end(a) {
            out.push(format!("[{}]", items.join(",")));
        }
        // several ways may lead to one array: more of them than this and they are taken for many
        count_step();
        if out.len() > 8 * limit || items.len() > LONGEST {
            return None;
        }
        for (sub, rest) in self.next_items(a) {
            let mut values = self.finite_values(sub, limit)?.to_vec();
            values.dedup();
            for text in values {
                let after = match self.remembers(rest) {
                    true => {
                        let value = self.constant_of_text(&text)?;
                        self.remember(rest, value)
                    }
                    false => rest,
                };
                if self.array_is_live(after) {
                    items.push(text);
                    let done =
                        stacker::maybe_grow(64 << 10, 1 << 20, || self.list_arrays(after, items, out, limit));
                    items.pop();
                    done?;
                }
            }
        }
        Some(())
    }

    /// Objects with these members and some of these names; `None` when there are too many.
    fn list_objects(
        &mut self,
        o: ObjId,
        names: &[NameId],
        members: &mut Vec<String>,
        out: &mut Vec<String>,
        limit: usize,
    ) -> Option<()> {
        count_step();
        if out.len() > 8 * limit {
            return None;
        }
        let Some((&name, later)) = names.split_first() else {
            // any other key makes endlessly many
            let mut patterns = Vec::new();
            self.all_patterns(o, &mut patterns);
            crate::lists::sort_unique(&mut patterns);
            for (cell, _) in self.cells_of(&patterns).iter() {
                for (sub, rest) in self.read_key(o, &Key::Cell(cell)) {
                    if self.sub_is_live(sub) && self.object_is_live(rest, &super::Keys::all()) {
                        return None;
                    }
                }
            }
            if self.may_end(o) {
                out.push(format!("{{{}}}", members.join(",")));
            }
            return Some(());
        };
        self.list_objects(o, later, members, out, limit)?;
        let key = serde_json::to_string(self.name_text(name)).expect("a string");
        for (sub, rest) in self.read_key(o, &Key::Name(name)) {
            if !self.sub_is_live(sub) || !self.object_is_live(rest, &super::Keys::all()) {
                continue;
            }
            for text in self.finite_values(sub, limit)?.iter() {
                let after = match self.is_decided_by_value(rest) {
                    true => {
                        let value = self.constant_of_text(text)?;
                        self.after_value(rest, Some(value))
                    }
                    false => rest,
                };
                if !self.object_is_live(after, &super::Keys::all()) {
                    continue;
                }
                members.push(format!("{key}:{text}"));
                let done = stacker::maybe_grow(64 << 10, 1 << 20, || {
                    self.list_objects(after, later, members, out, limit)
                });
                members.pop();
                done?;
            }
        }
        Some(())
    }

    /// The few values of an expression, or `None`.
    pub(super) fn listed(&mut self, s: ExprId, limit: usize) -> Option<Vec<JsonNodeId>> {
        if let SchemaExpr::Const(value) = self.arenas.subs[s.0 as usize] {
            return Some(vec![value]);
        }
        let texts = self.finite_values(s, limit)?;
        texts.iter().map(|text| self.constant_of_text(text)).collect()
    }
}
