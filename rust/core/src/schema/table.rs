//! Which keyword holds what, by draft; and the check of a whole schema before anything is built.
//!
//! One table serves the check of types, the search for identifiers and the walk over reachable subschemas.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use smallvec::{smallvec, SmallVec};

use super::document::{Json, JsonNodeId};
use super::resolve::Draft;
use super::Schema;
use crate::error::{Error, Kind, Result};
use crate::lexical::number::Decimal;

/// What stands behind a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Schema,
    Schemas,
    SchemaMap,
    /// `items`: a schema, or (before 2020-12) a list of them.
    SchemaOrList,
    /// `dependencies`: a schema or a list of names for each key.
    Dependencies,
    NamesMap,
    Names,
    Number,
    PositiveNumber,
    Count,
    Flag,
    Text,
    Pattern,
    PatternMap,
    Type,
    List,
    Anything,
    Reference,
    /// Before draft 6 a flag beside `minimum`, later a number.
    ExclusiveBound,
    /// Of a draft that is not enforced.
    Gone,
}

use Holds::*;

/// Keyword, what it holds, first and last draft that knows it.
pub(super) type Row = (&'static str, Holds, u32, u32);

pub(super) const TABLE: &[Row] = &[
    ("$ref", Reference, 4, 2020),
    ("$dynamicRef", Reference, 2020, 2020),
    ("$recursiveRef", Reference, 2019, 2019),
    ("type", Type, 4, 2020),
    ("enum", List, 4, 2020),
    ("const", Anything, 6, 2020),
    ("minimum", Number, 4, 2020),
    ("maximum", Number, 4, 2020),
    ("exclusiveMinimum", ExclusiveBound, 4, 2020),
    ("exclusiveMaximum", ExclusiveBound, 4, 2020),
    ("multipleOf", PositiveNumber, 4, 2020),
    ("divisibleBy", PositiveNumber, 3, 3),
    ("disallow", Gone, 3, 3),
    ("extends", Gone, 3, 3),
    ("minLength", Count, 4, 2020),
    ("maxLength", Count, 4, 2020),
    ("pattern", Pattern, 4, 2020),
    ("format", Text, 4, 2020),
    ("items", SchemaOrList, 4, 2020),
    ("prefixItems", Schemas, 2020, 2020),
    ("additionalItems", Schema, 4, 2019),
    ("unevaluatedItems", Schema, 2019, 2020),
    ("contains", Schema, 6, 2020),
    ("minContains", Count, 2019, 2020),
    ("maxContains", Count, 2019, 2020),
    ("minItems", Count, 4, 2020),
    ("maxItems", Count, 4, 2020),
    ("uniqueItems", Flag, 4, 2020),
    ("properties", SchemaMap, 4, 2020),
    ("patternProperties", PatternMap, 4, 2020),
    ("additionalProperties", Schema, 4, 2020),
    ("unevaluatedProperties", Schema, 2019, 2020),
    ("propertyNames", Schema, 6, 2020),
    ("required", Names, 4, 2020),
    ("minProperties", Count, 4, 2020),
    ("maxProperties", Count, 4, 2020),
    ("dependencies", Dependencies, 4, 2020),
    ("dependentRequired", NamesMap, 2019, 2020),
    ("dependentSchemas", SchemaMap, 2019, 2020),
    ("allOf", Schemas, 4, 2020),
    ("anyOf", Schemas, 4, 2020),
    ("oneOf", Schemas, 4, 2020),
    ("not", Schema, 4, 2020),
    ("if", Schema, 7, 2020),
    ("then", Schema, 7, 2020),
    ("else", Schema, 7, 2020),
];

/// Keywords that hold schemas which are only reached by reference.
pub const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// What a keyword of a draft holds; `None` for keywords that assert nothing.
pub fn holds(keyword: &str, draft: Draft) -> Option<Holds> {
    let year = draft as u32;
    // draft 3 is read as the next one, with what only it has
    row(keyword).filter(|row| row.2 <= year.max(4) && year <= row.3).map(|row| row.1)
}

/// Whether some draft knows the keyword.
pub fn is_known(keyword: &str) -> bool {
    row(keyword).is_some()
}

fn row(keyword: &str) -> Option<&'static Row> {
    static ROWS: OnceLock<FxHashMap<&'static str, &'static Row>> = OnceLock::new();
    ROWS.get_or_init(|| TABLE.iter().map(|row| (row.0, row)).collect()).get(keyword).copied()
}

/// The subschemas that stand directly behind a keyword.
pub fn subschemas(schema: &Schema, what: Holds, value: JsonNodeId) -> SmallVec<[JsonNodeId; 16]> {
    let doc = &schema.doc;
    match (what, doc.get(value)) {
        (Schema, _) => smallvec![value],
        (Schemas, Json::Array(items)) => SmallVec::from_slice(items),
        (SchemaMap | PatternMap, Json::Object(entries)) => entries.iter().map(|e| e.1).collect(),
        (SchemaOrList, Json::Array(items)) => SmallVec::from_slice(items),
        (SchemaOrList, _) => smallvec![value],
        (Dependencies, Json::Object(entries)) => {
            entries.iter().map(|e| e.1).filter(|&v| !matches!(doc.get(v), Json::Array(_))).collect()
        }
        _ => SmallVec::new(),
    }
}

/// Checks every schema that can be reached from the root: types of keywords, patterns, references, formats.
pub fn check(schema: &mut Schema, root: JsonNodeId) -> Result<()> {
    let mut seen = vec![false; schema.doc.node_count()];
    seen[root.0 as usize] = true;
    let mut stack = vec![root];
    while let Some(node) = stack.pop() {
        let found = match schema.doc.get(node) {
            Json::Bool(_) => continue,
            Json::Object(entries) => entries.clone(),
            _ => {
                return Err(Error::new(Kind::InvalidSchema, "a schema is an object or a boolean")
                    .at(&schema.doc.pointer(node)))
            }
        };
        let draft = schema.resolver.draft(&schema.doc, node);
        let alone = draft < Draft::D2019 && found.iter().any(|e| &*e.0 == "$ref");
        for (keyword, value) in found.iter().map(|e| (&e.0, e.1)) {
            if alone && &**keyword != "$ref" {
                continue;
            }
            let Some(what) = holds(keyword, draft) else {
                schema.check_unknown(keyword, value)?;
                continue;
            };
            if keyword.starts_with("unevaluated")
                || what == Pattern && looks_around(doc_text(schema, value))
                || what == PatternMap && schema.doc.entries(value).len() > SOME_PATTERNS
            {
                schema.compiled.eager.push(node);
            }
            check_keyword(schema, node, draft, keyword, what, value)
                .map_err(|e| e.at(&schema.doc.pointer(value)).keyword(keyword))?;
            let mut next = subschemas(schema, what, value);
            if what == Reference {
                if let Some(target) = schema.reference(node, keyword, value)? {
                    next.push(target);
                }
                next.extend(schema.dynamic_targets(keyword, value));
            }
            next.retain(|n| !std::mem::replace(&mut seen[n.0 as usize], true));
            stack.extend(next);
        }
    }
    Ok(())
}

/// Key patterns from which on it is seen at once whether they overlap in too many ways.
pub(super) const SOME_PATTERNS: usize = 8;

fn doc_text(schema: &Schema, value: JsonNodeId) -> &str {
    schema.doc.str(value).unwrap_or_default()
}

/// Whether a pattern asks for several languages at once: what may be too much to decide is decided when the schema
/// is read, and not in the middle of a text.
fn looks_around(pattern: &str) -> bool {
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|group| pattern.contains(group))
}

fn check_keyword(
    schema: &mut Schema,
    node: JsonNodeId,
    draft: Draft,
    keyword: &str,
    what: Holds,
    value: JsonNodeId,
) -> Result<()> {
    let wrong =
        |expected: &str| Err(Error::new(Kind::InvalidSchema, format!("{keyword:?} must be {expected}")));
    let doc = &schema.doc;
    let json = doc.get(value).clone();
    let is_schema = |id: JsonNodeId| matches!(doc.get(id), Json::Object(_) | Json::Bool(_));
    let is_names = |id: JsonNodeId| match doc.get(id) {
        Json::Array(items) => items.iter().all(|&i| doc.str(i).is_some()),
        _ => false,
    };
    match what {
        Schema if !is_schema(value) => wrong("a schema"),
        Schemas => match &json {
            Json::Array(items) if items.is_empty() && keyword != "prefixItems" => {
                wrong("a list of at least one schema")
            }
            Json::Array(items) if items.iter().all(|&i| is_schema(i)) => Ok(()),
            _ => wrong("a list of schemas"),
        },
        SchemaMap | PatternMap => match &json {
            Json::Object(entries) if entries.iter().all(|e| is_schema(e.1)) => {
                if what == PatternMap {
                    for (pattern, at) in entries.iter() {
                        schema.check_pattern(node, pattern, *at)?;
                    }
                }
                Ok(())
            }
            _ => wrong("an object of schemas"),
        },
        SchemaOrList => match &json {
            Json::Array(items) if draft < Draft::D2020 && items.iter().all(|&i| is_schema(i)) => Ok(()),
            Json::Array(_) if draft >= Draft::D2020 => {
                wrong("a schema (lists of schemas are \"prefixItems\" from 2020-12 on)")
            }
            Json::Object(_) | Json::Bool(_) => Ok(()),
            _ => wrong("a schema or a list of schemas"),
        },
        Dependencies => match &json {
            Json::Object(e) if e.iter().all(|e| is_schema(e.1) || is_names(e.1)) => Ok(()),
            _ => wrong("an object of schemas or lists of names"),
        },
        NamesMap => match &json {
            Json::Object(entries) if entries.iter().all(|e| is_names(e.1)) => Ok(()),
            _ => wrong("an object of lists of names"),
        },
        Names if draft <= Draft::D4 && matches!(json, Json::Bool(_)) => Ok(()),
        Names if matches!(json, Json::Bool(_)) => wrong(
            "a list of names (a flag beside a property is draft 3: list the property in the \"required\" of its object)",
        ),
        Names if !is_names(value) => wrong("a list of names"),
        Number | PositiveNumber => check_number(&json, keyword, what),
        ExclusiveBound if draft <= Draft::D4 => match json {
            Json::Bool(_) => Ok(()),
            _ => wrong("true or false in draft 4"),
        },
        ExclusiveBound if matches!(json, Json::Bool(_)) => wrong("a number (a flag only in draft 4)"),
        ExclusiveBound => check_number(&json, keyword, Number),
        Count => match &json {
            Json::Number(n) if Decimal::parse(n).is_some_and(|d| d.to_count().is_some()) => Ok(()),
            _ => wrong("a whole number from 0 on"),
        },
        Flag if !matches!(json, Json::Bool(_)) => wrong("true or false"),
        Text | Reference if doc.str(value).is_none() => wrong("a string"),
        Text => schema.check_format(value),
        Pattern => match json {
            Json::String(pattern) => schema.check_pattern(node, &pattern, value),
            _ => wrong("a regular expression"),
        },
        Type => check_type(schema, value),
        Gone => schema.unsupported(format!("{keyword:?} of draft 3 can't be enforced; {}", instead(keyword))),
        List if !matches!(json, Json::Array(_)) => wrong("a list"),
        _ => Ok(()),
    }
}

/// What is written today for a keyword of draft 3.
fn instead(keyword: &str) -> &'static str {
    match keyword {
        "disallow" => "write \"not\"",
        _ => "write \"allOf\"",
    }
}

fn check_number(json: &Json, keyword: &str, what: Holds) -> Result<()> {
    let Json::Number(text) = json else {
        return Err(Error::new(Kind::InvalidSchema, format!("{keyword:?} must be a number")));
    };
    match Decimal::parse(text) {
        None => {
            Err(Error::limit(format!("{keyword:?} has an exponent or a length beyond what is exact here")))
        }
        Some(d) if what == PositiveNumber && !d.is_positive() => {
            Err(Error::new(Kind::InvalidSchema, format!("{keyword:?} must be greater than 0")))
        }
        Some(_) => Ok(()),
    }
}

/// The names that `type` may have.
pub const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];

fn check_type(schema: &Schema, value: JsonNodeId) -> Result<()> {
    let names: Vec<JsonNodeId> = match schema.doc.get(value) {
        Json::Array(items) => items.to_vec(),
        _ => vec![value],
    };
    let bad = names.iter().find(|&&n| !schema.doc.str(n).is_some_and(|s| TYPES.contains(&s)));
    match bad {
        None => Ok(()),
        Some(&n) => Err(Error::new(
            Kind::InvalidSchema,
            format!("{} is not a type; types are {}", schema.doc.canonical(n), TYPES.join(", ")),
        )),
    }
}
