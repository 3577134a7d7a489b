//! `type`, `enum`, `const`.

use super::{KeywordSite, Parts};
use crate::error::Result;
use crate::lexical::number::piece::Piece;
use crate::lexical::number::set::NumSet;
use crate::lexical::number::Decimal;
use crate::lexical::Terms;
use crate::schema::array::ArrId;
use crate::schema::document::{Json, JsonNodeId};
use crate::schema::object::ObjId;
use crate::schema::table::Draft;
use crate::schema::value::{ExprId, SchemaExpr, ValId, Value, FALSE, NULL, TRUE};
use crate::schema::Schema;
use crate::work;

pub(super) fn types(schema: &mut Schema, site: &KeywordSite, parts: &mut Parts) {
    let at = site.at;
    let names: Vec<JsonNodeId> = match schema.doc.get(at) {
        Json::Array(items) => items.to_vec(),
        _ => vec![at],
    };
    let mut consts = 0;
    let mut numbers = NumSet::empty();
    let (mut strings, mut arrays, mut objects) = (false, false, false);
    for name in names {
        match schema.doc.str(name) {
            Some("null") => consts |= NULL,
            Some("boolean") => consts |= TRUE | FALSE,
            Some("number") => numbers = NumSet::all(),
            // from draft 6 on 1.0 is an integer; in draft 4 an integer has no fraction and no exponent
            Some("integer") => {
                numbers = numbers.union(&match site.draft {
                    Draft::D3 | Draft::D4 => NumSet::of(Piece::integers_without_mark()),
                    _ => NumSet::multiples(Decimal::one()),
                });
            }
            Some("string") => strings = true,
            Some("array") => arrays = true,
            _ => objects = true,
        }
    }
    parts.consts.push(consts);
    parts.numbers.push(numbers);
    parts.strings.push(if strings { Terms::ALL } else { Terms::EMPTY });
    parts.arrays.push(if arrays { ArrId::TRUE } else { ArrId::FALSE });
    parts.objects.push(if objects { ObjId::TRUE } else { ObjId::FALSE });
}

pub(super) fn enumeration(schema: &mut Schema, parts: &mut Parts, at: JsonNodeId) -> Result<()> {
    let items = schema.doc.items(at).to_vec();
    let value = schema.one_of_constants(&items)?;
    parts.add(schema, value);
    Ok(())
}

impl Schema {
    /// "Equal to one of these JSON values": strings and numbers as one set each, not one by one.
    pub(crate) fn one_of_constants(&mut self, items: &[JsonNodeId]) -> Result<ValId> {
        let mut consts = 0;
        let mut numbers: Vec<Decimal> = Vec::new();
        let mut strings: Vec<Box<str>> = Vec::new();
        let mut nested = ValId::FALSE;
        work::spend(4 * items.len() as u64);
        for &item in items {
            match self.doc.get(item) {
                Json::Null => consts |= NULL,
                Json::Bool(true) => consts |= TRUE,
                Json::Bool(false) => consts |= FALSE,
                Json::String(s) => strings.push((**s).into()),
                Json::Number(n) => numbers.extend(Decimal::parse(n)),
                Json::Array(_) | Json::Object(_) => {
                    let one = self.constant(item)?;
                    nested = self.or_values(nested, one);
                }
            }
        }
        let nested = self.value(nested).clone();
        let words = self.lexicon.terms.words(strings);
        let words = self.lifted(words);
        let v = Value { consts, str: words, arr: nested.arr, obj: nested.obj, ..Value::none() };
        let v = self.with_numbers(v, NumSet::points(numbers));
        Ok(self.value_of(v))
    }

    /// "Equal to this JSON value", by JSON Schema's equality.
    pub(crate) fn constant(&mut self, at: JsonNodeId) -> Result<ValId> {
        let mut v = Value::none();
        match self.doc.get(at).clone() {
            Json::Null => v.consts = NULL,
            Json::Bool(b) => v.consts = if b { TRUE } else { FALSE },
            Json::String(s) => {
                let word = self.lexicon.terms.words(vec![(*s).into()]);
                v.str = self.lifted(word);
            }
            Json::Number(n) => match Decimal::parse(&n) {
                Some(d) => v = self.with_numbers(v, NumSet::points(vec![d])),
                None => {
                    return Err(crate::Error::limit("a number with an exponent beyond what is exact here")
                        .at(&self.doc.pointer(at)))
                }
            },
            Json::Array(items) => {
                let subs: Vec<ExprId> = items.iter().map(|&i| self.constant_sub(i)).collect();
                let count = subs.len() as u32;
                let list = self.list(subs);
                let items = self.items(list, 0, ExprId::FALSE);
                let length = self.length(count, count);
                v.arr = self.and(&[items, length]);
            }
            Json::Object(entries) => {
                let mut props = Vec::new();
                for (key, value) in entries.iter() {
                    let name = self.name(key);
                    props.push((name, self.constant_sub(*value)));
                }
                let names = props.iter().map(|p| p.0).collect();
                let declared = props.len();
                let shape = self.shape_atom(props, Vec::new(), ExprId::FALSE, Some(declared), at);
                let required = self.required(names);
                v.obj = self.and(&[shape, required]);
            }
        }
        Ok(self.value_of(v))
    }

    pub(crate) fn constant_sub(&mut self, at: JsonNodeId) -> ExprId {
        let same = self.unique_constant(at);
        self.sub(SchemaExpr::Const(same))
    }
}
