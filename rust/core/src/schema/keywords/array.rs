//! `items`, `prefixItems`, `additionalItems`, `minItems`, `maxItems`, `uniqueItems`, `contains`.
//!
//! What they mean as atoms of [`Arr`](crate::schema::Arr), where they are decided when items are read.

use super::{KeywordSite, Parts};
use crate::lexical::number::Decimal;
use crate::schema::array::Arr;
use crate::schema::document::{Json, JsonNodeId};
use crate::schema::key_sets::KeySet;
use crate::schema::table::Draft;
use crate::schema::value::ExprId;
use crate::schema::Schema;

/// The items by place, and the others: `prefixItems` and `items`, or the older `items` and `additionalItems`.
pub(super) fn layout(schema: &mut Schema, node: JsonNodeId, draft: Draft) -> (Vec<ExprId>, Option<ExprId>) {
    let key = |schema: &Schema, name: &str| schema.doc.key(node, name);
    let (mut prefix, mut rest) = (Vec::new(), None);
    let items = key(schema, "items");
    if draft >= Draft::D2020 {
        prefix = key(schema, "prefixItems").map_or(Vec::new(), |p| schema.doc.items(p).to_vec());
        rest = items;
    } else if let Some(items) = items {
        match schema.doc.get(items) {
            Json::Array(list) => {
                prefix = list.to_vec();
                rest = key(schema, "additionalItems");
            }
            _ => rest = Some(items),
        }
    }
    let prefix = prefix.into_iter().map(|n| schema.node_sub(n)).collect();
    (prefix, rest.map(|n| schema.node_sub(n)))
}

pub(super) fn items(schema: &mut Schema, site: &KeywordSite, parts: &mut Parts) {
    let (prefix, rest) = layout(schema, site.node, site.draft);
    let list = schema.list(prefix);
    let atom = schema.items(list, 0, rest.unwrap_or(ExprId::TRUE));
    parts.arrays.push(atom);
}

pub(super) fn apply(schema: &mut Schema, site: &KeywordSite, parts: &mut Parts) {
    let KeywordSite { keyword, at, .. } = *site;
    let count = |schema: &Schema, at: JsonNodeId| match schema.doc.get(at) {
        Json::Number(n) => Decimal::parse(n).and_then(|d| d.to_count()),
        _ => None,
    };
    let atom = match keyword {
        "minItems" => {
            let lo = count(schema, at).unwrap_or(0);
            schema.length(lo, u32::MAX)
        }
        "maxItems" => {
            let hi = count(schema, at).unwrap_or(u32::MAX);
            schema.length(0, hi)
        }
        "uniqueItems" => match schema.doc.get(at) {
            Json::Bool(true) => schema.arr(Arr::Unique(KeySet::EMPTY)),
            _ => return,
        },
        _ => {
            let bound = |schema: &Schema, name: &str| {
                let at = schema.doc.key(site.node, name).filter(|_| site.draft >= Draft::D2019);
                at.and_then(|at| count(schema, at))
            };
            let lo = bound(schema, "minContains").unwrap_or(1);
            let hi = bound(schema, "maxContains").unwrap_or(u32::MAX);
            let sub = schema.node_sub(at);
            schema.contains(sub, lo, hi)
        }
    };
    parts.arrays.push(atom);
}
