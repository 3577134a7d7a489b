//! Plain schemas and tool definitions: a quick check that most of them pass.
//!
//! Invariant: what is plain here satisfies the official meta-schemas of all drafts from 6 on, and names none; "no" is no verdict.
//! Complexity: one pass: a tenth of the meta-schema's automaton, which decides the others.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{from_str, Map, Value};

use super::table::TYPES;

/// What a plain definition of a tool says.
pub struct Definition {
    pub name: String,
    /// Empty where there is none.
    pub description: String,
    /// The schema of the arguments, an object's, as it stands in the text.
    pub parameters: String,
    /// The same with members forbidden that it does not speak of; None: that is no plain matter.
    pub closed: Option<String>,
}

impl Definition {
    /// The definition of a text, in any of the forms that the APIs have; None: it is not plain.
    pub fn read(text: &str) -> Option<Definition> {
        let mut body: BTreeMap<String, &RawValue> = from_str(text).ok()?;
        if let Some(function) = body.get("function") {
            body = from_str(function.get()).ok()?;
        }
        let told = |key: &str| body.get(key).map(|raw| raw.get()).filter(|text| *text != "null");
        let name: String = from_str(told("name")?).ok()?;
        let description = told("description").and_then(|text| from_str(text).ok()).unwrap_or_default();
        let parameters = ["parameters", "input_schema", "inputSchema"].into_iter().find_map(told)?;
        let schema: Map<String, Value> = from_str(parameters).ok()?;
        let plain = !name.is_empty() && all_plain(&schema) && schema.get("type")? == "object";
        plain.then(|| Definition {
            name,
            description,
            parameters: parameters.into(),
            closed: closed(&schema, parameters),
        })
    }
}

/// A plain schema of an object, which has members that speak of what is not declared, or declares all that it speaks of.
fn closed(schema: &Map<String, Value>, text: &str) -> Option<String> {
    if schema.contains_key("additionalProperties") {
        return Some(text.into());
    }
    let declared = schema.get("properties").and_then(Value::as_object);
    let needed =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let plain = ["anyOf", "oneOf", "allOf", "not"].iter().all(|key| !schema.contains_key(*key))
        && needed.into_iter().all(|key| declared.is_some_and(|all| all.contains_key(key)));
    plain.then(|| format!("{}, \"additionalProperties\": false}}", &text[..text.len() - 1]))
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
