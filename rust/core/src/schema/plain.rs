//! Whether a text is a schema, where that is plain: what most schemas of arguments are.
//!
//! Invariant: what is plain here satisfies the official meta-schemas of all drafts from 6 on, and names none; no is no verdict.
//! Complexity: one pass: a tenth of the meta-schema's automaton, which decides the others.

use serde_json::{Map, Value};

use super::table::TYPES;

/// Whether a JSON text is an object of keywords that all drafts have, each with a value that all of them allow.
pub fn is_schema(text: &str) -> bool {
    matches!(serde_json::from_str(text), Ok(Value::Object(members)) if all_plain(&members))
}

fn all_plain(members: &Map<String, Value>) -> bool {
    members.iter().all(|(keyword, value)| is_plain(keyword, value))
}

fn is_plain(keyword: &str, value: &Value) -> bool {
    match keyword {
        "type" => match value {
            Value::Array(names) => distinct(names) && names.iter().all(is_type),
            name => is_type(name),
        },
        "title" | "description" | "format" => value.is_string(),
        "default" => true,
        "enum" => value.as_array().is_some_and(|all| distinct(all)),
        "required" => value
            .as_array()
            .is_some_and(|all| all.is_empty() || (distinct(all) && all.iter().all(Value::is_string))),
        "minimum" | "maximum" => value.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.is_u64()
        }
        "uniqueItems" => value.is_boolean(),
        "items" | "not" => is_object(value),
        "additionalProperties" => value.is_boolean() || is_object(value),
        "anyOf" | "oneOf" | "allOf" => {
            value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_object))
        }
        "properties" => value.as_object().is_some_and(|all| all.values().all(is_object)),
        _ => false,
    }
}

fn is_type(name: &Value) -> bool {
    name.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn is_object(value: &Value) -> bool {
    value.as_object().is_some_and(all_plain)
}

/// Few, at least one, and no two alike.
fn distinct(all: &[Value]) -> bool {
    (1..=64).contains(&all.len()) && (1..all.len()).all(|i| !all[..i].contains(&all[i]))
}
