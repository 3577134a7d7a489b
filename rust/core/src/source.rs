//! The source of a grammar, as plain data.

use std::sync::Arc;

use serde_json::{json, Map, Value};

use crate::compose::branches::Branches;
use crate::compose::text::value_of;
use crate::regex::Dialect;
use crate::schema::left_out::left_out;
use crate::schema::options::Options;

/// What a grammar is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A JSON Schema.
    Schema {
        /// The schema as JSON text.
        text: String,
        /// How documents may be written.
        options: Options,
    },
    /// A regular expression, which texts match from end to end.
    Regex {
        /// Its text.
        pattern: String,
        /// How it is read.
        dialect: Dialect,
    },
    /// Just these texts.
    Choice(Vec<String>),
    /// A context-free grammar in the neutral form of the frontends, as JSON text.
    ContextFree(String),
    /// A grammar in llama.cpp's GBNF, and its start rule.
    Gbnf(String, String),
    /// A constraint made of others in the form of the frontends, as JSON text, and its name in messages.
    Composite(String, String),
    /// The same, where the form names lists of branches by their numbers.
    Branched {
        /// The form as JSON text.
        form: String,
        /// Its name in messages.
        name: String,
        /// The lists.
        lists: Vec<Arc<Branches>>,
    },
}

impl Source {
    /// The same as a form of the frontends, of which other grammars are made (see `compose::form`).
    pub fn to_form(&self) -> Value {
        match self {
            Source::Schema { text, options } => {
                let names = options.names().into_iter().map(|(name, value)| (name.to_string(), value.into()));
                let mut form: Map<String, Value> = names.collect();
                form.insert("registry".into(), json!(options.registry));
                json!({"schema": text, "options": form})
            }
            Source::Regex { pattern, dialect } => {
                json!({"language": {"regex": pattern, "dialect": dialect.name()}})
            }
            Source::Choice(words) => json!({"language": {"words": words}}),
            Source::ContextFree(text) => {
                let mut structure: Value = serde_json::from_str(text).unwrap_or_default();
                structure["parts"] = json!({});
                json!({"grammar": structure})
            }
            Source::Gbnf(text, start) => json!({"gbnf": text, "start": start}),
            Source::Composite(form, _) => value_of(form).unwrap_or_default(),
            Source::Branched { form, lists, .. } => {
                let mut form = value_of(form).unwrap_or_default();
                spell(&mut form, lists);
                form
            }
        }
    }

    /// See [`crate::Grammar::left_out`].
    pub(crate) fn left_out(&self) -> Vec<String> {
        match self {
            Source::Schema { text, options } => left_out(&[(text.clone(), options.clone())]),
            Source::Composite(text, _) if !text.contains("\"schema\"") => Vec::new(),
            Source::Composite(..) | Source::Branched { .. } => {
                let mut schemas: Vec<(String, Options)> = Vec::new();
                let mut stack = vec![self.to_form()];
                while let Some(form) = stack.pop() {
                    if let (Some(text), Ok(options)) =
                        (form["schema"].as_str(), Options::read(&form["options"]))
                    {
                        schemas.push((text.into(), options));
                    }
                    match form {
                        Value::Array(items) => stack.extend(items),
                        Value::Object(members) => stack.extend(members.into_iter().map(|member| member.1)),
                        _ => {}
                    }
                }
                left_out(&schemas)
            }
            _ => Vec::new(),
        }
    }

    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        match self {
            Source::Schema { text, options } => {
                let other = options.registry.iter().map(|(uri, text)| uri.len() + text.len());
                text.len() + other.sum::<usize>()
            }
            Source::Regex { pattern: text, .. } | Source::ContextFree(text) => text.len(),
            Source::Gbnf(text, name) | Source::Composite(text, name) => text.len() + name.len(),
            Source::Choice(texts) => texts.iter().map(|text| text.len() + 24).sum(),
            Source::Branched { form, name, lists } => {
                form.len() + name.len() + lists.iter().map(|list| list.bytes()).sum::<usize>()
            }
        }
    }
}

/// Puts lists of branches where their numbers stand.
fn spell(form: &mut Value, lists: &[Arc<Branches>]) {
    match form {
        Value::Object(members) => {
            let number = members.get("branches").and_then(Value::as_u64);
            if let Some(list) = number.and_then(|i| lists.get(i as usize)) {
                members.insert("branches".into(), list.to_form());
            }
            members.values_mut().for_each(|member| spell(member, lists));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| spell(item, lists)),
        _ => {}
    }
}
