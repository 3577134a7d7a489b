//! From the keywords of one schema to a formula; one family a file.
//!
//! Each family adds its conjuncts to [`Parts`], in the order of the text: the declared order of keys is that
//! in which the text first names them, whatever keyword leads there.

mod array;
mod logic;
mod number;
mod object;
mod one_of;
mod string;
mod types;
mod unevaluated;

use super::document::{Json, JsonNodeId};
use super::formula::Op;
use super::table::{self, Draft, ValueKind};
use super::value::{Operands as Parts, ValId};
use super::Schema;
use crate::error::Result;

/// The keyword that is being read: of which schema, and what it holds.
pub(super) struct KeywordSite<'a> {
    node: JsonNodeId,
    draft: Draft,
    keyword: &'a str,
    at: JsonNodeId,
}

/// The formula of a schema node.
pub(super) fn compile(schema: &mut Schema, node: JsonNodeId) -> Result<ValId> {
    let entries = match schema.doc.get(node) {
        Json::Bool(true) => return Ok(ValId::TRUE),
        Json::Bool(false) => return Ok(ValId::FALSE),
        Json::Object(entries) => entries.clone(),
        _ => unreachable!("checked before"),
    };
    let draft = schema.resolver.draft(&schema.doc, node);
    let mut parts = Parts::default();
    parts.strings.push(schema.patterns.guard);
    let alone = draft < Draft::D2019 && entries.iter().any(|e| &*e.0 == "$ref");
    let mut shaped = false;
    let mut listed = false;
    for (keyword, value) in entries.iter() {
        let Some(what) = table::holds(keyword, draft) else { continue };
        if alone && &**keyword != "$ref" {
            continue;
        }
        let site = &KeywordSite { node, draft, keyword, at: *value };
        if schema.compiled.names_only && !says_of_strings(keyword) {
            continue;
        }
        match (&**keyword, what) {
            (_, ValueKind::Reference) => logic::reference(schema, site, &mut parts)?,
            ("type", _) => types::types(schema, site, &mut parts),
            ("enum", _) => types::enumeration(schema, &mut parts, *value)?,
            ("const", _) => {
                let value = schema.constant(*value)?;
                parts.add(schema, value);
            }
            (
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
                | "divisibleBy",
                _,
            ) => number::apply(schema, site, &mut parts),
            ("minLength" | "maxLength" | "pattern" | "format", _) => string::apply(schema, site, &mut parts)?,
            ("items" | "prefixItems" | "additionalItems", _) if !std::mem::replace(&mut listed, true) => {
                array::items(schema, site, &mut parts);
            }
            ("minItems" | "maxItems" | "uniqueItems" | "contains", _) => {
                array::apply(schema, site, &mut parts)
            }
            ("properties" | "patternProperties" | "additionalProperties", _)
                if !std::mem::replace(&mut shaped, true) =>
            {
                object::shape(schema, site, &mut parts)?;
            }
            (
                "required" | "minProperties" | "maxProperties" | "propertyNames" | "dependentRequired"
                | "dependentSchemas" | "dependencies",
                _,
            ) => object::apply(schema, site, &mut parts)?,
            ("allOf" | "anyOf" | "oneOf" | "not" | "if", _) => logic::apply(schema, site, &mut parts)?,
            // read together with the keyword that they belong to
            _ => {}
        }
    }
    if !alone && !schema.compiled.names_only {
        unevaluated::apply(schema, (node, draft), &mut parts)?;
    }
    Ok(parts.join(schema, Op::And))
}

/// Whether a keyword may say something of strings.
fn says_of_strings(keyword: &str) -> bool {
    let strings = ["type", "enum", "const", "minLength", "maxLength", "pattern", "format"];
    let logic = ["allOf", "anyOf", "oneOf", "not", "if"];
    strings.contains(&keyword) || logic.contains(&keyword) || keyword.starts_with('$')
}
