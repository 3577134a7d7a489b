//! Satisfiability by a syntactic check: from the text of a schema, without compiling it.
//!
//! Most properties pass, and most are never written; those that are written are compiled then.
//! Invariant: "live" is sure (the value is named beside each keyword); anything else is left to the search. Of
//! keywords that cut the same values two may leave nothing, so one is enough to say no more.
//! Complexity: [`LOOKS`] schemas and values. Memory: none.

use crate::lexical::number::Decimal;
use crate::schema::document::{Json, JsonNodeId};
use crate::schema::object::ObjId;
use crate::schema::table::Draft;
use crate::schema::value::ValId;
use crate::schema::{table, ArrId, Schema};

/// Schemas and values that one question looks at.
const LOOKS: usize = 64;

impl Schema {
    /// Whether no value satisfies both, as far as scalars tell. The tag that tells thirty alternatives apart then stays
    /// the word that it is; "and none of the 29 others" would be a list that grows with each.
    pub(in crate::schema) fn plainly_apart(&self, a: ValId, b: ValId) -> bool {
        let (x, y) = (self.value(a), self.value(b));
        x.consts & y.consts == 0
            && !(x.num && y.num)
            && (x.arr == ArrId::FALSE || y.arr == ArrId::FALSE)
            && (x.obj == ObjId::FALSE || y.obj == ObjId::FALSE)
            && self.lexicon.terms.share_no_word(x.str, y.str)
    }

    pub(in crate::schema) fn plainly_live(&self, node: JsonNodeId) -> bool {
        self.syntactic(node, &mut LOOKS.clone())
    }

    fn syntactic(&self, node: JsonNodeId, looks: &mut usize) -> bool {
        if !spend_look(looks) {
            return false;
        }
        let entries = match self.doc.get(node) {
            Json::Object(entries) => entries,
            other => return matches!(other, Json::Bool(true)),
        };
        let draft = self.resolver.draft(&self.doc, node);
        if draft == Draft::D3 {
            return false; // what an object requires stands in its properties
        }
        let alone = draft < Draft::D2019 && self.doc.key(node, "$ref").is_some();
        let free = self.options.without.is_empty();
        // keywords that cut the values of one type, and those that say all by themselves
        let (mut cuts, mut wholes, mut others) = (0, 0, 0);
        for (keyword, value) in entries.iter().map(|e| (&*e.0, e.1)) {
            if alone && keyword != "$ref" || table::holds(keyword, draft).is_none() {
                continue;
            }
            let (count, some) = match keyword {
                "$ref" => (&mut wholes, self.target_is_live(node, value, looks)),
                "anyOf" => (&mut wholes, self.doc.items(value).iter().any(|&n| self.syntactic(n, looks))),
                "allOf" => {
                    (&mut wholes, matches!(*self.doc.items(value), [only] if self.syntactic(only, looks)))
                }
                // the empty object, the empty array, any value of another type
                "properties"
                | "patternProperties"
                | "additionalProperties"
                | "items"
                | "additionalItems"
                | "prefixItems"
                | "uniqueItems" => (&mut others, true),
                "type" => (&mut others, self.doc.str(value).is_some() || !self.doc.items(value).is_empty()),
                "minLength" | "maxLength" | "minimum" | "maximum" | "maxItems" | "maxProperties" => {
                    (&mut cuts, true)
                }
                "format" => (&mut cuts, free),
                "pattern" => (&mut cuts, free && self.pattern_has_words(node, value)),
                "enum" => (&mut cuts, free && self.texts_are_of_type(node, self.doc.items(value), looks)),
                "const" => (&mut cuts, free && self.texts_are_of_type(node, &[value], looks)),
                "required" => (&mut cuts, self.required_are_live(node, value, looks)),
                "minItems" => (&mut cuts, self.items_are_live(node, value, looks)),
                _ => return false,
            };
            *count += 1;
            if !some {
                return false;
            }
        }
        cuts <= 1 && (wholes == 0 || wholes + cuts + others == 1)
    }

    fn target_is_live(&self, node: JsonNodeId, value: JsonNodeId, looks: &mut usize) -> bool {
        match self.reference(node, "$ref", value) {
            Ok(target) => target.is_none_or(|target| self.syntactic(target, looks)),
            // decided when it is compiled
            Err(_) => false,
        }
    }

    /// Some text, and texts alone: what another value is takes arithmetic.
    fn texts_are_of_type(&self, node: JsonNodeId, texts: &[JsonNodeId], looks: &mut usize) -> bool {
        let strings = self.doc.key(node, "type").is_none_or(|of| {
            let named = |&n: &JsonNodeId| self.doc.str(n) == Some("string");
            named(&of) || self.doc.items(of).iter().any(named)
        });
        strings && !texts.is_empty() && texts.iter().all(|&n| spend_look(looks) && self.doc.str(n).is_some())
    }

    /// The object of the required keys: each is declared, and no pattern says more of it.
    fn required_are_live(&self, node: JsonNodeId, value: JsonNodeId, looks: &mut usize) -> bool {
        let declared = self.doc.key(node, "properties");
        let of = |name| self.doc.key(declared?, self.doc.str(name)?);
        let names = self.doc.items(value);
        names.is_empty()
            || self.doc.key(node, "patternProperties").is_none()
                && names.iter().all(|&name| of(name).is_some_and(|schema| self.syntactic(schema, looks)))
    }

    /// An array of as many equal items: each has one schema, and none must differ from another.
    fn items_are_live(&self, node: JsonNodeId, value: JsonNodeId, looks: &mut usize) -> bool {
        let few = match self.doc.get(value) {
            Json::Number(n) => {
                Decimal::parse(n).and_then(|d| d.to_count()).is_some_and(|n| n <= LOOKS as u32)
            }
            _ => false,
        };
        let more = ["prefixItems", "additionalItems", "uniqueItems"];
        few && more.iter().all(|keyword| self.doc.key(node, keyword).is_none())
            && self.doc.key(node, "items").is_none_or(|items| self.syntactic(items, looks))
    }
}

/// Counts one look; false where there were too many.
fn spend_look(looks: &mut usize) -> bool {
    crate::work::spend(1);
    let left = looks.checked_sub(1);
    *looks = left.unwrap_or(0);
    left.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Options;

    const PARTS: [&str; 32] = [
        r##""type": "string""##,
        r##""type": ["integer", "string"]"##,
        r##""type": "object""##,
        r##""type": "array""##,
        r##""type": []"##,
        r##""enum": ["a", "bb"]"##,
        r##""const": "bb""##,
        r##""const": 1"##,
        r##""enum": []"##,
        r##""enum": [1, "a"]"##,
        r##""pattern": "^b+$""##,
        r##""pattern": "[^\\s\\S]""##,
        r##""pattern": "(?!)""##,
        r##""minLength": 3"##,
        r##""maxLength": 1"##,
        r##""format": "date""##,
        r##""required": ["a"]"##,
        r##""required": ["b", "c"]"##,
        r##""properties": {"a": {"type": "null"}, "b": {"$ref": "#/$defs/d"}, "c": true}"##,
        r##""properties": {"a": false, "b": {"$ref": "#"}, "c": {"$ref": "#/$defs/none"}}"##,
        r##""patternProperties": {"^a": false}"##,
        r##""additionalProperties": false"##,
        r##""maxProperties": 0"##,
        r##""minItems": 2"##,
        r##""maxItems": 1"##,
        r##""items": {"$ref": "#/$defs/none"}"##,
        r##""items": {"type": "boolean"}"##,
        r##""prefixItems": [false]"##,
        r##""uniqueItems": true"##,
        r##""$ref": "#/$defs/d""##,
        r##""anyOf": [false, {"$ref": "#/$defs/none"}, {"$ref": "#"}]"##,
        r##""allOf": [{"$ref": "#/$defs/d"}]"##,
    ];

    fn schema(parts: &[&str]) -> Option<Schema> {
        let defs =
            r##""$defs": {"d": {"required": ["a"], "properties": {"a": {"minLength": 1}}}, "none": false}"##;
        Schema::new(&format!("{{{}, {defs}}}", parts.join(", ")), Options::default()).ok()
    }

    #[test]
    fn what_is_told_at_a_glance_is_what_the_search_finds() {
        let mut seen = 0;
        let mut check = |parts: &[&str]| {
            let Some(mut schema) = schema(parts) else { return };
            let root = schema.resolver.root();
            if schema.plainly_live(root) {
                seen += 1;
                let sub = schema.node_sub(root);
                let value = schema.compile(sub).expect("a formula");
                assert!(schema.is_live(value), "{parts:?}");
            }
        };
        for (i, a) in PARTS.iter().enumerate() {
            check(&[a]);
            for (j, b) in PARTS.iter().enumerate().skip(i + 1) {
                check(&[a, b]);
                PARTS[j + 1..].iter().for_each(|c| check(&[a, b, c]));
            }
        }
        assert!(seen > 500, "{seen}");
    }

    #[test]
    fn what_is_usual_is_told_at_a_glance() {
        let object = r#""type": "object", "additionalProperties": false, "required": ["a"]"#;
        for parts in [
            &[object, r##""properties": {"a": {"$ref": "#/$defs/d"}}"##][..],
            &[r#""type": "array", "minItems": 1, "items": {"type": "string", "pattern": "^a"}"#],
            &[r#""type": "string", "enum": ["a", "b"]"#],
        ] {
            let schema = schema(parts).expect("a schema");
            assert!(schema.plainly_live(schema.resolver.root()), "{parts:?}");
        }
    }
}
