//! Parts of a schema that no value satisfies, and why: documents lack them, which a reader of the schema would not expect.
//!
//! Found on demand (`Grammar.report`), since that examines every part, where a mask examines those that a text reaches; or
//! when nothing satisfies the whole. `false` and `{"not": {}}` say what they do, and are not reported.
//! Complexity: one question for each schema that is not plainly satisfiable; an unsatisfiable one is asked again without each
//! of its keywords. Memory: the formulas of what was asked.

use super::document::{Json, JsonNodeId};
use super::object::{Obj, ShapeId};
use super::table::{self, ValueKind};
use super::value::ExprId;
use super::{by_key::Key, NameId, Options, Schema};
use crate::limits::Limits;
use crate::work;

/// Keywords of one schema that are left out in turn.
const MOST_KEYWORDS: usize = 16;
/// Lines of the report.
const MOST_LINES: usize = 50;
/// Of the work that a call may do, the share that explanations may need.
const SHARE: u64 = 4;

/// What the documents lack where a schema at a place is satisfied by nothing.
fn consequence(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "properties" => "that property is never written",
        "patternProperties" | "additionalProperties" | "unevaluatedProperties" => {
            "no such property is written"
        }
        "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" => "no such item is written",
        "anyOf" | "oneOf" => "that alternative is never taken",
        _ => return None,
    })
}

/// Lines for the parts of schemas that nothing satisfies, each with its place, the keywords that clash and a way out.
/// A text that can't be read has none.
pub fn left_out(schemas: &[(String, Options)]) -> Vec<String> {
    let mut lines = Vec::new();
    let looked = work::run(Limits::default().work / SHARE, || {
        for (text, options) in schemas {
            if let Ok(mut schema) = Schema::new(text, options.clone()) {
                schema.report_left_out(&mut lines);
            }
        }
    });
    if looked.is_err() {
        lines.push(
            "unproven: not every part was asked whether something satisfies it; that needs too much work"
                .into(),
        );
    }
    lines
}

impl Schema {
    fn report_left_out(&mut self, lines: &mut Vec<String>) {
        let root = self.resolver.root();
        let mut seen = vec![false; self.doc.node_count()];
        seen[root.0 as usize] = true;
        let mut stack = vec![root];
        while let Some(node) = stack.pop() {
            self.report_clashing_names(node, lines);
            let draft = self.resolver.draft(&self.doc, node);
            for (keyword, value) in self.doc.entries(node).to_vec() {
                let (Some(what), false) = (
                    table::holds(&keyword, draft),
                    ["not", "if", "contains", "propertyNames"].contains(&&*keyword),
                ) else {
                    continue;
                };
                let mut next = table::subschemas(&self.doc, what, value);
                if what == ValueKind::Reference {
                    next.extend(self.reference(node, &keyword, value).ok().flatten());
                }
                for child in next {
                    if std::mem::replace(&mut seen[child.0 as usize], true) || lines.len() >= MOST_LINES {
                        continue;
                    }
                    match consequence(&keyword).filter(|_| self.is_lost(child)) {
                        Some(lost) => lines.push(format!(
                            "unsatisfiable: nothing satisfies the schema at {}, so {lost}; {}",
                            self.doc.pointer(child),
                            self.why(child, "there").0
                        )),
                        None => stack.push(child),
                    }
                }
            }
        }
    }

    /// Whether nothing satisfies a schema that does not say so itself.
    fn is_lost(&mut self, node: JsonNodeId) -> bool {
        let Json::Object(entries) = self.doc.get(node) else { return false };
        let never = match &entries[..] {
            [(keyword, value)] if &**keyword == "not" => match self.doc.get(*value) {
                Json::Object(inner) => inner.is_empty(),
                other => matches!(other, Json::Bool(true)),
            },
            _ => false,
        };
        if never || self.plainly_live(node) {
            return false;
        }
        let sub = self.node_sub(node);
        self.compile(sub).is_ok_and(|value| !self.is_live(value))
    }

    /// Names of which several schemas that hold together ask what no value satisfies, each by itself something.
    fn report_clashing_names(&mut self, node: JsonNodeId, lines: &mut Vec<String>) {
        let joins = |key: &str| self.doc.key(node, key).is_some();
        if !joins("allOf") && !(joins("properties") && (joins("$ref") || joins("$dynamicRef"))) {
            return;
        }
        let sub = self.node_sub(node);
        let Ok(value) = self.compile(sub) else { return };
        let Obj::And(list) = self.object(self.value(value).obj) else { return };
        let shapes: Vec<ShapeId> = list
            .iter()
            .filter_map(|&o| match self.object(o) {
                Obj::Shape(shape) => Some(*shape),
                _ => None,
            })
            .collect();
        let mut told: Vec<NameId> = Vec::new();
        for &shape in &shapes {
            let props = self.shape(shape).props.clone();
            for &(name, own) in props.iter() {
                if told.contains(&name) || !self.names_clash(&shapes, name) {
                    continue;
                }
                told.push(name);
                let place = match self.place_of(own) {
                    Some(place) => self.doc.pointer(place),
                    None => self.doc.pointer(node),
                };
                let mut others: Vec<String> = Vec::new();
                for &other in shapes.iter().filter(|&&other| other != shape) {
                    if self.shape_key(other, &Key::Name(name)) != ExprId::TRUE {
                        let pointer = self.doc.pointer(self.shape(other).node);
                        others.push(if pointer.is_empty() { "the root".into() } else { pointer });
                    }
                }
                lines.push(format!(
                    "unsatisfiable: nothing satisfies the schema at {place} together with what is said at {} of that \
                     property, so that property is never written; relax one of them",
                    others.join(", ")
                ));
            }
        }
    }

    fn names_clash(&mut self, shapes: &[ShapeId], name: NameId) -> bool {
        let said: Vec<ExprId> = shapes.iter().map(|&s| self.shape_key(s, &Key::Name(name))).collect();
        // one that is unsatisfiable by itself is reported at its own place, or meant so
        let declared = |this: &Self, s: ShapeId| this.shape(s).sorted.iter().any(|p| p.0 == name);
        for (&shape, &sub) in shapes.iter().zip(&said) {
            if declared(self, shape) && (sub == ExprId::FALSE || !self.sub_is_live(sub)) {
                return false;
            }
        }
        let both = self.and(&said);
        both == ExprId::FALSE || !self.sub_is_live(both)
    }

    fn place_of(&self, sub: ExprId) -> Option<JsonNodeId> {
        match self.arenas.subs[sub.0 as usize] {
            super::SchemaExpr::Node(node, _) => Some(node),
            _ => None,
        }
    }

    /// Why nothing satisfies a schema: the keywords of the innermost place that are to blame, and the one to name.
    /// The schema's own place is named by a word, since the report has it already.
    pub(super) fn why(&mut self, node: JsonNodeId, own: &str) -> (String, Option<String>) {
        let place = self.blame(node);
        let mut clash = self.clash(place);
        let at = if place == node { own.to_string() } else { format!("at {}", self.doc.pointer(place)) };
        let listed: Vec<String> = clash.iter().map(|keyword| format!("{keyword:?}")).collect();
        let what = match &listed[..] {
            [] => format!("relax what clashes {at}"),
            [one] => format!("{one} {at} leaves nothing: relax it"),
            several => format!("{} {at} exclude each other: relax one of them", several.join(" and ")),
        };
        if self.lives_without_formats(node) {
            let keyword = "format".to_string();
            return (format!("{what}, or formats=\"annotate\" drops every \"format\""), Some(keyword));
        }
        (what, clash.pop())
    }

    /// The keywords of a schema without one of which something would satisfy it; where no single one helps, all.
    fn clash(&mut self, node: JsonNodeId) -> Vec<String> {
        let entries = self.doc.entries(node).to_vec();
        let draft = self.resolver.draft(&self.doc, node);
        let says = |keyword: &str| table::holds(keyword, draft).is_some();
        let keywords: Vec<String> = entries
            .iter()
            .map(|e| e.0.to_string())
            .filter(|keyword| says(keyword))
            .take(MOST_KEYWORDS)
            .collect();
        let mut found = Vec::new();
        for keyword in &keywords {
            let rest = entries.iter().filter(|e| *e.0 != **keyword).cloned().collect();
            let parent = self.doc.parent(node).map(|parent| (parent, 0));
            let Ok(other) = self.doc.add(Json::Object(rest), parent) else { break };
            let sub = self.node_sub(other);
            if self.compile(sub).is_ok_and(|value| self.is_live(value)) {
                found.push(keyword.clone());
            }
        }
        match found.len() {
            0 => keywords,
            // without it values of other types are left
            3.. => found.into_iter().filter(|keyword| keyword != "type").collect(),
            _ => found,
        }
    }

    /// Whether something would satisfy the schema if its formats were annotations.
    fn lives_without_formats(&self, node: JsonNodeId) -> bool {
        if !self.options.formats {
            return false;
        }
        let root = self.resolver.root();
        let options = Options { formats: false, ..self.options.clone() };
        let Ok(mut other) = Schema::new(&self.doc.canonical(root), options) else { return false };
        let Some(same) = other.doc.at_pointer(other.resolver.root(), &self.doc.pointer(node)) else {
            return false;
        };
        let sub = other.node_sub(same);
        other.compile(sub).is_ok_and(|value| other.is_live(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        left_out(&[(text.into(), Options::default())])
    }

    #[test]
    fn what_nothing_satisfies_is_told_with_its_keywords() {
        for (part, keywords, out) in [
            (
                r#"{"type": "string", "format": "time", "pattern": "^\\d\\d:\\d\\d$"}"#,
                r#""format" and "pattern""#,
                true,
            ),
            (r#"{"type": "null", "enum": ["S"]}"#, r#""type" and "enum""#, false),
            (r#"{"type": "integer", "minimum": 5, "maximum": 3}"#, r#""minimum" and "maximum""#, false),
            (r#"{"allOf": [{"type": "string"}, {"type": "number"}]}"#, r#""allOf""#, false),
            (r#"{"enum": ["a", "b"], "minLength": 2}"#, r#""enum" and "minLength""#, false),
            (r#"{"type": "string", "pattern": "[^\\s\\S]"}"#, r#""type" and "pattern""#, false),
        ] {
            let report = told(&format!(r#"{{"properties": {{"a": {part}, "b": {{"type": "null"}}}}}}"#));
            assert_eq!(report.len(), 1, "{part}: {report:?}");
            assert!(report[0].starts_with("unsatisfiable: nothing satisfies the schema at /properties/a, so"));
            assert!(report[0].contains(keywords), "{report:?}");
            assert_eq!(report[0].contains("formats=\"annotate\""), out, "{report:?}");
        }
    }

    #[test]
    fn the_place_may_be_anywhere() {
        let dead = r#"{"type": "null", "enum": ["S"]}"#;
        for (schema, place) in [
            (format!(r#"{{"items": {{"properties": {{"a": {dead}}}}}}}"#), "/items/properties/a"),
            (format!(r#"{{"items": {dead}}}"#), "/items"),
            (format!(r#"{{"anyOf": [{{"type": "string"}}, {dead}]}}"#), "/anyOf/1"),
            (format!(r##"{{"$ref": "#/$defs/d", "$defs": {{"d": {{"properties": {{"a": {dead}}}}}}}}}"##), "/$defs/d/properties/a"),
            (
                r#"{"allOf": [{"properties": {"a": {"type": "null"}}, "additionalProperties": false},
                    {"properties": {"b": {"type": "null"}}}]}"#.into(),
                "/allOf/1/properties/b",
            ),
            (
                r#"{"properties": {"a": {"type": "null"}}, "allOf": [{"properties": {"a": {"type": "string"}}}]}"#.into(),
                "/properties/a",
            ),
        ] {
            let report = told(&schema);
            assert_eq!(report.len(), 1, "{schema}: {report:?}");
            assert!(report[0].contains(&format!("at {place}")), "{report:?}");
        }
    }

    #[test]
    fn what_is_meant_is_not_told() {
        for schema in [
            r#"{"properties": {"a": false, "b": {"not": {}}, "c": {"type": "string", "format": "date"}}}"#,
            r#"{"items": false, "prefixItems": [{"type": "null"}]}"#,
            r##"{"properties": {"next": {"$ref": "#"}, "n": {"type": "integer", "minimum": 1, "maximum": 1}}}"##,
            r#"{"properties": {"a": {"not": {"type": "null", "enum": ["S"]}}}}"#,
            r#"{"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"maxLength": 3}}}]}"#,
            r#"{"allOf": [{"properties": {"a": false}}, {"properties": {"a": {"type": "null"}}}]}"#,
        ] {
            assert!(told(schema).is_empty(), "{schema}: {:?}", told(schema));
        }
    }
}
