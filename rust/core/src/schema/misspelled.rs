//! Misspelled keywords: those that JSON Schema does not know, but nearly.
//!
//! JSON Schema ignores keywords that it does not know, so `propertys` accepts everything.  Such keys are reported with their
//! place, and refused where the caller asked for that (`strict`).
//! A key is near a keyword if it differs in case, in `_`, `-` or `$`, or by one slip of the pen (two in a long word),
//! *and* what it holds could be that keyword's: `"note": "..."` is no `not`.
//! Formats likewise: `"datetime"` demands nothing where `"date-time"` was meant.
//! Two more mistakes are told alike: members of an object outside of `properties`, and a document, or a request's wrapper
//! of a schema, in the place of a schema: none of its keys is a keyword.
//! Complexity: unknown keys times keywords, of which those with other letters are passed over; words longer than any
//! keyword are not compared.

use std::sync::OnceLock;

use super::document::{Json, JsonNodeId};
use super::table::{is_known, ValueKind, DEFINITIONS, TABLE, TYPES};
use super::Schema;
use crate::error::{Error, Kind, Result};
use crate::regex::format::NAMES;

/// What a schema may say beside the keywords of the table, in some draft or in OpenAPI.
const SILENT: &str =
    "$schema $id id $anchor $dynamicAnchor $recursiveAnchor $vocabulary $comment $defs definitions title \
    description default examples example deprecated readOnly writeOnly contentEncoding contentMediaType \
    contentSchema discriminator xml externalDocs";
/// Keys that others read: what they hold there, and what says the same here.
const FOREIGN: [(&str, ValueKind, &str); 16] = [
    ("x-guidance", ValueKind::Anything, "give whitespace, order and spelling as options instead"),
    // OpenAPI 3.0
    ("nullable", ValueKind::Flag, "write \"type\": [..., \"null\"], or {\"type\": \"null\"} in an \"anyOf\""),
    (
        "x-nullable",
        ValueKind::Flag,
        "write \"type\": [..., \"null\"], or {\"type\": \"null\"} in an \"anyOf\"",
    ),
    // draft 3
    ("divisibleBy", ValueKind::Number, "write \"multipleOf\", or say by \"$schema\" that this is draft 3"),
    ("disallow", ValueKind::Anything, "write \"not\""),
    ("extends", ValueKind::SchemaOrList, "write \"allOf\""),
    ("optional", ValueKind::Flag, "list what must be there in \"required\""),
    // Ajv's plugins
    ("formatMinimum", ValueKind::Anything, "write a \"pattern\""),
    ("formatMaximum", ValueKind::Anything, "write a \"pattern\""),
    ("formatExclusiveMinimum", ValueKind::Anything, "write a \"pattern\""),
    ("formatExclusiveMaximum", ValueKind::Anything, "write a \"pattern\""),
    ("regexp", ValueKind::Anything, "write a \"pattern\""),
    ("range", ValueKind::List, "write \"minimum\" and \"maximum\""),
    ("uniqueItemProperties", ValueKind::Names, "judge the finished document"),
    ("allRequired", ValueKind::Flag, "list the properties in \"required\""),
    ("anyRequired", ValueKind::Names, "write an \"anyOf\" of \"required\""),
];
/// Names whose nearest keyword means the opposite.
const MEANT: [(&str, &str); 2] = [("inclusiveMinimum", "minimum"), ("inclusiveMaximum", "maximum")];
/// Formats by names that others give them.
const FORMATS: [(&str, &str); 5] =
    [("url", "uri"), ("guid", "uuid"), ("timestamp", "date-time"), ("ip", "ipv4"), ("mail", "email")];
/// Lengths from which on one slip counts, and two.
const SLIPS: [usize; 2] = [4, 7];
/// Places that are reported.
const MOST: usize = 100;

impl Schema {
    /// Looks at one key of a schema that the draft in force does not read.
    pub(super) fn check_unknown(&mut self, node: JsonNodeId, key: &str, value: JsonNodeId) -> Result<()> {
        // `_format` and `//pattern` are keywords that somebody put out of force
        if SILENT.split(' ').any(|known| known == key) || key.len() > 32 || key.starts_with(['_', '/']) {
            return Ok(());
        }
        let foreign = FOREIGN.iter().find(|f| f.0 == key && self.could_be(f.1, value));
        let hint = match foreign {
            // the way it is read here
            Some((_, ValueKind::Flag, _)) if matches!(self.doc.get(value), Json::Bool(false)) => {
                return Ok(())
            }
            Some((_, _, hint)) => Some(hint.to_string()),
            None => self
                .nearest(key, value)
                .map(|near| format!("did you mean {near:?}?"))
                .or_else(|| self.misplaced(node, key, value)),
        };
        let Some(hint) = hint else { return Ok(()) };
        let place = self.doc.pointer(value);
        if self.options.strict {
            let message = format!("{key:?} is not a keyword of JSON Schema; {hint}");
            return Err(Error::new(Kind::InvalidSchema, message).at(&place).keyword(key));
        }
        if self.report.len() < MOST {
            self.note(format!("unknown: {key:?} at {place} says nothing in JSON Schema; {hint}"));
        }
        Ok(())
    }

    /// What to write where the key names a member of an object.
    fn misplaced(&self, node: JsonNodeId, key: &str, value: JsonNodeId) -> Option<String> {
        if key.starts_with("x-") || self.doc.key(node, "properties").is_some() {
            return None;
        }
        let named = |at, names: &[&str]| {
            let name = self.doc.key(at, "type").and_then(|kind| self.doc.str(kind));
            name.is_some_and(|name| names.contains(&name))
        };
        let member = named(node, &["object"]) && named(value, &TYPES);
        member.then(|| "members of an object stand in \"properties\"".to_string())
    }

    /// Looks at a whole schema text: whether it is something else, all of whose keys say nothing.
    pub(super) fn check_says_nothing(&mut self, root: JsonNodeId) -> Result<()> {
        let keys: Vec<_> = self.doc.entries(root).iter().map(|(key, _)| key.clone()).collect();
        let is_silent = |key: &str| SILENT.split(' ').any(|known| known == key);
        let wrapped =
            self.doc.key(root, "schema").is_some_and(|at| matches!(self.doc.get(at), Json::Object(_)));
        let unknown: Vec<_> = keys.iter().filter(|key| !is_silent(key)).collect();
        // beside a title or the like, other keys may well be somebody's annotations
        let annotated = unknown.len() < keys.len() && !wrapped;
        let known = |key: &str| is_known(key) || key.starts_with(['_', '/', '$']) || key.starts_with("x-");
        if annotated || unknown.is_empty() || unknown.iter().any(|key| known(key)) || !self.report.is_empty()
        {
            return Ok(());
        }
        let hint = match wrapped {
            true => "give what stands in \"schema\"",
            false => "members of an object stand in \"properties\"; {} is the schema of any document",
        };
        let shown: Vec<_> = unknown.iter().take(3).map(|key| format!("{key:?}")).collect();
        let dots = if unknown.len() > shown.len() { ", ..." } else { "" };
        let message = format!(
            "the schema says nothing: none of its keys ({}{dots}) is a keyword of JSON Schema; {hint}",
            shown.join(", ")
        );
        if self.options.strict {
            return Err(Error::new(Kind::InvalidSchema, message).at(""));
        }
        self.note(format!("unknown: {message}"));
        Ok(())
    }

    /// Looks at the name of a format that is not read here; whether one is near, and told.
    pub(super) fn check_unknown_format(&mut self, name: &str, at: JsonNodeId) -> Result<bool> {
        let same = FORMATS.iter().find(|f| f.0 == name).map(|f| f.1);
        let Some(near) = same.or_else(|| nearest_format(name)) else { return Ok(false) };
        let place = self.doc.pointer(at);
        let message = format!("no format {name:?} is read here; did you mean {near:?}?");
        if self.options.strict {
            return Err(Error::new(Kind::InvalidSchema, message).at(&place).keyword("format"));
        }
        if self.report.len() < MOST {
            self.note(format!("unknown: {place}: {message}"));
        }
        Ok(true)
    }

    /// The keyword that was probably meant.
    fn nearest(&self, key: &str, value: JsonNodeId) -> Option<&'static str> {
        if is_known(key) {
            return None; // of another draft
        }
        if let Some(known) = MEANT.iter().find(|m| m.0 == key) {
            return Some(known.1);
        }
        let written = plain(key);
        let most = SLIPS.iter().filter(|&&least| written.len() >= least).count();
        let letters = letters(&written);
        // a slip takes one letter away and adds one at most: what differs in more is not compared
        let near = |k: &&Keyword| (k.letters ^ letters).count_ones() as usize <= 2 * most;
        keywords()
            .iter()
            .filter(near)
            .filter(|k| self.could_be(k.holds, value))
            .map(|k| (slips(&written, &k.plain, most), k.name))
            .filter(|(count, _)| *count <= most)
            .min_by_key(|(count, _)| *count)
            .map(|(_, name)| name)
    }

    /// Whether a value has the kind that a keyword holds.
    fn could_be(&self, what: ValueKind, value: JsonNodeId) -> bool {
        let doc = &self.doc;
        match (what, doc.get(value)) {
            (ValueKind::Anything, _) => true,
            (ValueKind::Type, Json::String(name)) => TYPES.contains(&&**name),
            (ValueKind::Text | ValueKind::Pattern | ValueKind::Reference, Json::String(_)) => true,
            (
                ValueKind::Number | ValueKind::PositiveNumber | ValueKind::Count | ValueKind::ExclusiveBound,
                node,
            ) => {
                matches!(node, Json::Number(_))
            }
            (
                ValueKind::Schema | ValueKind::SchemaOrList | ValueKind::Flag | ValueKind::Names,
                Json::Bool(_),
            ) => true,
            (ValueKind::Schemas | ValueKind::SchemaOrList, Json::Array(items)) => {
                items.iter().all(|&i| matches!(doc.get(i), Json::Object(_) | Json::Bool(_)))
            }
            (ValueKind::Names, Json::Array(items)) => items.iter().all(|&i| doc.str(i).is_some()),
            (ValueKind::List | ValueKind::Type, Json::Array(_)) => true,
            (
                ValueKind::Schema
                | ValueKind::SchemaOrList
                | ValueKind::SchemaMap
                | ValueKind::PatternMap
                | ValueKind::Dependencies
                | ValueKind::NamesMap,
                Json::Object(_),
            ) => true,
            _ => false,
        }
    }
}

/// A keyword as keys are compared with it.
struct Keyword {
    name: &'static str,
    holds: ValueKind,
    plain: String,
    letters: u64,
}

fn keywords() -> &'static [Keyword] {
    static KEYWORDS: OnceLock<Vec<Keyword>> = OnceLock::new();
    KEYWORDS.get_or_init(|| {
        let definitions = DEFINITIONS.iter().map(|&name| (name, ValueKind::SchemaMap));
        let all = TABLE.iter().map(|row| (row.0, row.1)).chain(definitions);
        let keyword = |(name, holds): (&'static str, ValueKind)| {
            let plain = plain(name);
            Keyword { name, holds, letters: letters(&plain), plain }
        };
        all.map(keyword).collect()
    })
}

/// Of short names a slip is another word: `MIME` is no `time`.
fn nearest_format(name: &str) -> Option<&'static str> {
    let written = plain(name);
    let most = SLIPS.iter().filter(|&&least| written.len() > least).count();
    let near =
        NAMES.iter().filter(|_| name.len() <= 32).map(|known| (slips(&written, &plain(known), most), *known));
    near.filter(|(count, _)| *count <= most).min_by_key(|(count, _)| *count).map(|(_, known)| known)
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !"_-$".contains(*c)).collect::<String>().to_lowercase()
}

/// The set of a text's bytes, modulo 64.
fn letters(text: &str) -> u64 {
    text.bytes().fold(0, |set, b| set | 1 << (b & 63))
}

/// Letters left out, put in, changed or swapped with their neighbour; more than `most` for all that is further.
fn slips(a: &str, b: &str, most: usize) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > most {
        return most + 1;
    }
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, _) | (_, 0) => i + j,
                _ => {
                    let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                    let swap = if swapped { rows[i - 2][j - 2] + 1 } else { usize::MAX };
                    changed.min(swap).min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1)
                }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Options;

    fn told(text: &str) -> Vec<String> {
        Schema::new(text, Options::default()).expect(text).report
    }

    #[test]
    fn members_and_documents_in_the_place_of_schemas_are_told() {
        for (text, said) in [
            (r#"{"type": "object", "name": {"type": "string"}}"#, "\"name\" at /name says nothing"),
            (
                r#"{"name": "string", "age": "integer"}"#,
                "the schema says nothing: none of its keys (\"name\", \"age\") is",
            ),
            (r#"{"name": "x", "schema": {"type": "string"}}"#, "give what stands in \"schema\""),
        ] {
            let report = told(text);
            assert!(report.len() == 1 && report[0].contains(said), "{report:?}");
            let strict = Options { strict: true, ..Options::default() };
            assert_eq!(Schema::new(text, strict).err().map(|error| error.kind), Some(Kind::InvalidSchema));
        }
        for text in [
            "{}",
            r#"{"title": "any", "description": "all"}"#,
            r#"{"$comment": "", "x-order": 1}"#,
            r#"{"type": "object", "properties": {}, "size": {"type": "string"}}"#,
            r#"{"type": "object", "x-size": {"type": "string"}}"#,
        ] {
            assert_eq!(told(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn formats_that_are_nearly_known_are_told() {
        for (name, meant) in [
            ("datetime", "date-time"),
            ("dateTime", "date-time"),
            ("url", "uri"),
            ("URI", "uri"),
            ("e-mail", "email"),
            ("host-name", "hostname"),
            ("uuid4", "uuid"),
        ] {
            let text = format!(r#"{{"type": "string", "format": "{name}"}}"#);
            let line = format!("unknown: /format: no format {name:?} is read here; did you mean {meant:?}?");
            assert_eq!(told(&text), [line], "{name}");
            let strict = Options { strict: true, ..Options::default() };
            assert_eq!(Schema::new(&text, strict).err().map(|e| e.kind), Some(Kind::InvalidSchema), "{name}");
        }
        for name in ["int32", "double", "password", "phone", "MIME", "float", "binary", "markdown"] {
            let text = format!(r#"{{"type": "string", "format": "{name}"}}"#);
            assert_eq!(told(&text), [format!("ignored: format {name:?} at /format")]);
        }
    }

    #[test]
    fn slips_are_told_with_their_place() {
        for (key, value, meant) in [
            ("propertys", "{}", "properties"),
            ("requird", r#"["a"]"#, "required"),
            ("require", "true", "required"),
            ("additional_properties", "false", "additionalProperties"),
            ("minlength", "1", "minLength"),
            ("ref", r##""#""##, "$ref"),
            ("tpye", r#""string""#, "type"),
            ("item", "{}", "items"),
            ("enums", "[1]", "enum"),
            ("anyof", "[{}]", "anyOf"),
            ("$definition", "{}", "definitions"),
        ] {
            let schema = format!(r#"{{"properties": {{"a": {{"{key}": {value}}}}}}}"#);
            let line = format!(
                "unknown: {key:?} at /properties/a/{key} says nothing in JSON Schema; did you mean {meant:?}?"
            );
            assert_eq!(told(&schema), [line], "{schema}");
            let strict = Options { strict: true, ..Options::default() };
            let error = Schema::new(&schema, strict).err().expect("refused");
            assert_eq!(error.pointer.as_deref(), Some(&*format!("/properties/a/{key}")));
            assert_eq!((error.kind, error.keyword.as_deref()), (Kind::InvalidSchema, Some(key)));
        }
    }

    #[test]
    fn annotations_and_data_are_left_alone() {
        for schema in [
            r#"{"title": "t", "description": "d", "example": [1], "x-order": 3, "note": "n", "name": "n"}"#,
            r#"{"properties": {"propertys": {}, "requird": {}}, "enum": [{"requird": 1}], "default": {"tpye": 1}}"#,
            r#"{"format": "date", "unit": "cm", "label": "l", "label2": {"propertys": {}}, "if_": "text", "_format": "date", "//pattern": "a"}"#,
        ] {
            assert!(told(schema).is_empty(), "{schema}: {:?}", told(schema));
        }
    }

    #[test]
    fn the_keys_of_other_engines_are_told() {
        let report = told(r#"{"x-guidance": {"whitespace_flexible": false}}"#);
        assert!(report[0].starts_with("unknown: \"x-guidance\" at /x-guidance says nothing"), "{report:?}");
        for (key, value, hint) in [
            ("nullable", "true", r#""type": [..., "null"]"#),
            ("divisibleBy", "5", "multipleOf"),
            ("disallow", r#""string""#, "\"not\""),
            ("formatMinimum", r#""2024-01-01""#, "pattern"),
        ] {
            let report = told(&format!(r#"{{"properties": {{"a": {{"{key}": {value}}}}}}}"#));
            assert_eq!(report.len(), 1, "{key}");
            assert!(report[0].starts_with(&format!("unknown: {key:?} at /properties/a/{key}")), "{report:?}");
            assert!(report[0].contains(hint), "{report:?}");
        }
        assert!(
            told(r#"{"nullable": false, "properties": {"nullable": {}}, "extends": "base.json"}"#).is_empty()
        );
    }

    #[test]
    fn draft_3_is_read_as_it_was_meant() {
        let of = |text: &str| {
            Schema::new(
                &format!(r#"{{"$schema": "http://json-schema.org/draft-03/schema#", {text}}}"#),
                Options::default(),
            )
        };
        assert!(of(r#""divisibleBy": 5, "properties": {"a": {"required": true}}"#)
            .unwrap()
            .report
            .is_empty());
        for text in [r#""disallow": "string""#, r#""extends": {}"#] {
            assert_eq!(of(text).err().expect("refused").kind, Kind::UnsupportedSchema);
        }
    }

    #[test]
    fn slips_are_counted() {
        for (a, b, count) in
            [("ab", "ba", 1), ("abc", "abd", 1), ("abc", "ac", 1), ("abc", "abcd", 1), ("a", "a", 0)]
        {
            assert_eq!(slips(a, b, 2), count, "{a} {b}");
        }
        assert_eq!(slips("abc", "abcdefgh", 2), 3);
    }
}
