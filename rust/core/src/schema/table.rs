//! Which keyword holds what, by draft.
//!
//! One table serves the check of types, the search for identifiers and the walk over reachable subschemas.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use smallvec::{smallvec, SmallVec};

use super::document::{Document, Json, JsonNodeId};

/// The drafts, by year or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Draft {
    D3 = 3,
    D4 = 4,
    D6 = 6,
    D7 = 7,
    D2019 = 2019,
    D2020 = 2020,
}

impl Draft {
    pub(super) fn of(uri: &str) -> Option<Draft> {
        let known = [
            ("draft-03", Draft::D3),
            ("draft-04", Draft::D4),
            ("draft-06", Draft::D6),
            ("draft-07", Draft::D7),
            ("2019-09", Draft::D2019),
            ("2020-12", Draft::D2020),
        ];
        known.iter().find(|(name, _)| uri.contains(name)).map(|k| k.1)
    }
}

/// What stands behind a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
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

use ValueKind::*;

/// Keyword, what it holds, first and last draft that knows it.
pub(super) type KeywordRow = (&'static str, ValueKind, u32, u32);

pub(super) const TABLE: &[KeywordRow] = &[
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
pub fn holds(keyword: &str, draft: Draft) -> Option<ValueKind> {
    let year = draft as u32;
    // draft 3 is read as the next one, with what only it has
    row(keyword).filter(|row| row.2 <= year.max(4) && year <= row.3).map(|row| row.1)
}

/// Whether some draft knows the keyword.
pub fn is_known(keyword: &str) -> bool {
    row(keyword).is_some()
}

fn row(keyword: &str) -> Option<&'static KeywordRow> {
    static ROWS: OnceLock<FxHashMap<&'static str, &'static KeywordRow>> = OnceLock::new();
    ROWS.get_or_init(|| TABLE.iter().map(|row| (row.0, row)).collect()).get(keyword).copied()
}

/// The subschemas that stand directly behind a keyword.
pub fn subschemas(doc: &Document, what: ValueKind, value: JsonNodeId) -> SmallVec<[JsonNodeId; 16]> {
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

/// Key patterns from which on it is seen at once whether they overlap in too many ways.
pub(super) const SOME_PATTERNS: usize = 8;

/// The names that `type` may have.
pub const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];
