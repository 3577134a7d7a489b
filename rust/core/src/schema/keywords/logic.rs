//! `$ref`, `allOf`, `anyOf`, `oneOf`, `not`, `if`/`then`/`else`.

use super::{KeywordSite, Parts};
use crate::error::Result;
use crate::schema::document::JsonNodeId;
use crate::schema::value::{ExprId, ValId};
use crate::schema::Schema;

/// A reference; chains of them are followed without recursion.
pub(super) fn reference(schema: &mut Schema, site: &KeywordSite, parts: &mut Parts) -> Result<()> {
    let KeywordSite { keyword, at, .. } = *site;
    let Some(mut target) = schema.reference(site.node, keyword, at)? else { return Ok(()) };
    let mut steps = 0;
    let outer = schema.scopes.current;
    while let Some(next) = schema.only_reference(target)? {
        schema.scopes.current = schema.enter(schema.scopes.current, target);
        target = next;
        steps += 1;
        if steps > schema.doc.node_count() {
            return Err(crate::Error::new(
                crate::Kind::InvalidSchema,
                "the references form a circle without a schema in it",
            )
            .at(&schema.doc.pointer(at))
            .keyword(keyword));
        }
    }
    let sub = schema.node_sub(target);
    schema.scopes.current = outer;
    let value = schema.compile(sub)?;
    parts.add(schema, value);
    Ok(())
}

impl Schema {
    /// Where a schema that is nothing but a reference leads.
    fn only_reference(&mut self, node: JsonNodeId) -> Result<Option<JsonNodeId>> {
        match self.doc.entries(node) {
            [(key, at)] if &**key == "$ref" => {
                let at = *at;
                self.reference(node, "$ref", at)
            }
            _ => Ok(None),
        }
    }

    fn compile_nodes(&mut self, at: JsonNodeId) -> Result<Vec<ValId>> {
        let nodes = self.doc.items(at).to_vec();
        nodes
            .into_iter()
            .map(|n| {
                let sub = self.node_sub(n);
                self.compile(sub)
            })
            .collect()
    }
}

pub(super) fn apply(schema: &mut Schema, site: &KeywordSite, parts: &mut Parts) -> Result<()> {
    let KeywordSite { keyword, at, .. } = *site;
    match keyword {
        "allOf" => {
            for value in schema.compile_nodes(at)? {
                parts.add(schema, value);
            }
        }
        "anyOf" => {
            let list = schema.compile_nodes(at)?;
            let any = schema.or_all(&list);
            parts.add(schema, any);
        }
        "oneOf" => {
            let list = schema.compile_nodes(at)?;
            let one = schema.exactly_one(&list);
            parts.add(schema, one);
        }
        "not" => {
            let sub = schema.node_sub(at);
            let value = schema.compile(sub)?;
            let not = schema.not_value(value);
            parts.add(schema, not);
        }
        _ => {
            let branch = |schema: &mut Schema, key: &str| {
                let sub = match schema.doc.key(site.node, key) {
                    Some(node) => schema.node_sub(node),
                    None => ExprId::TRUE,
                };
                schema.compile(sub)
            };
            let condition = schema.node_sub(at);
            let condition = schema.compile(condition)?;
            let not = schema.not_value(condition);
            let (then, other) = (branch(schema, "then")?, branch(schema, "else")?);
            let when_true = schema.and_values(condition, then);
            let when_false = schema.and_values(not, other);
            let both = schema.or_values(when_true, when_false);
            parts.add(schema, both);
        }
    }
    Ok(())
}
