//! `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`, and `divisibleBy` as draft 3 called it.

use super::{KeywordSite, Parts};
use crate::lexical::number::piece::{Bound, Piece};
use crate::lexical::number::set::NumSet;
use crate::lexical::number::Decimal;
use crate::schema::document::Json;
use crate::schema::Schema;

pub(super) fn apply(schema: &mut Schema, site: &KeywordSite, parts: &mut Parts) {
    let KeywordSite { keyword, at, .. } = *site;
    let Json::Number(text) = schema.doc.get(at) else { return };
    let value = Decimal::parse(text).expect("checked before");
    // draft 4 and OpenAPI 3.0: a flag beside the bound makes it open
    let flag = |name: &str| {
        schema.doc.key(site.node, name).is_some_and(|f| matches!(schema.doc.get(f), Json::Bool(true)))
    };
    let set = match keyword {
        "multipleOf" | "divisibleBy" => NumSet::multiples(value),
        "minimum" => at_least(value, flag("exclusiveMinimum")),
        "exclusiveMinimum" => at_least(value, true),
        "maximum" => at_most(value, flag("exclusiveMaximum")),
        _ => at_most(value, true),
    };
    parts.numbers.push(set);
}

fn at_least(at: Decimal, open: bool) -> NumSet {
    NumSet::of(Piece { lo: Some(Bound { at, open }), ..Piece::all() })
}

fn at_most(at: Decimal, open: bool) -> NumSet {
    NumSet::of(Piece { hi: Some(Bound { at, open }), ..Piece::all() })
}
