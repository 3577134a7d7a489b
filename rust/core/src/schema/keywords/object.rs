//! `properties`, `patternProperties`, `additionalProperties`, `propertyNames`, `required`, counts, dependencies.

use super::{KeywordSite, Parts};
use crate::error::Result;
use crate::lexical::number::Decimal;
use crate::lexical::{TermId, Terms};
use crate::schema::document::{Json, JsonNodeId};
use crate::schema::object::{Obj, ObjId};
use crate::schema::options::Order;
use crate::schema::table::{Draft, SOME_PATTERNS};
use crate::schema::value::ExprId;
use crate::schema::{NameId, Schema};

/// Named keys, patterns, and the schema of the others, of one schema.
pub(super) struct KeySchemas {
    pub props: Vec<(NameId, ExprId)>,
    pub patterns: Vec<(TermId, ExprId)>,
    pub rest: Option<ExprId>,
}

pub(super) fn layout(schema: &mut Schema, node: JsonNodeId) -> Result<KeySchemas> {
    let entries = |schema: &Schema, key: &str| {
        schema.doc.key(node, key).map_or(Vec::new(), |at| schema.doc.entries(at).to_vec())
    };
    let mut props = Vec::new();
    for (key, at) in entries(schema, "properties") {
        let name = schema.name(&key);
        props.push((name, schema.node_sub(at)));
    }
    let mut patterns = Vec::new();
    for (pattern, at) in entries(schema, "patternProperties") {
        if let Some(term) = schema.pattern(node, &pattern)? {
            patterns.push((term, schema.node_sub(at)));
        }
    }
    let rest = schema.doc.key(node, "additionalProperties").map(|at| schema.node_sub(at));
    Ok(KeySchemas { props, patterns, rest })
}

pub(super) fn shape(schema: &mut Schema, site: &KeywordSite, parts: &mut Parts) -> Result<()> {
    let KeySchemas { mut props, patterns, rest } = layout(schema, site.node)?;
    let declared = props.len();
    let patterns = name_finite(schema, &mut props, patterns);
    if patterns.len() > SOME_PATTERNS {
        // refused here, and not where a text has begun
        let mut terms: Vec<TermId> = patterns.iter().map(|p| p.0).collect();
        crate::lists::sort_unique(&mut terms);
        schema.cells_of(&terms);
    }
    let names = schema.options.order == Order::Declared;
    // `"properties": {}` declares that there are none
    let declares = schema.doc.key(site.node, "properties").is_some();
    let forbid = schema.options.forbid_additional && declares && rest.is_none();
    let rest = if forbid { ExprId::FALSE } else { rest.unwrap_or(ExprId::TRUE) };
    let atom = schema.shape_atom(props, patterns, rest, names.then_some(declared), site.node);
    parts.objects.push(atom);
    if site.draft == Draft::D3 {
        let names = required_by_flags(schema, site.node);
        parts.objects.push(schema.required(names));
    }
    Ok(())
}

/// The properties that say themselves that they are required, as those of draft 3 do.
fn required_by_flags(schema: &mut Schema, node: JsonNodeId) -> Vec<NameId> {
    let Some(properties) = schema.doc.key(node, "properties") else { return Vec::new() };
    let flagged = |schema: &Schema, at| {
        schema.doc.key(at, "required").is_some_and(|flag| matches!(schema.doc.get(flag), Json::Bool(true)))
    };
    let mut names = Vec::new();
    for (key, at) in schema.doc.entries(properties).to_vec() {
        if flagged(schema, at) {
            names.push(schema.name(&key));
        }
    }
    names
}

/// Patterns that match a few keys only (`^id$`) become names: keys are told apart by their text then.
fn name_finite(
    schema: &mut Schema,
    props: &mut Vec<(NameId, ExprId)>,
    patterns: Vec<(TermId, ExprId)>,
) -> Vec<(TermId, ExprId)> {
    let mut left = Vec::new();
    for (pattern, sub) in patterns {
        let words = schema.lexicon.terms.finite_words(pattern).filter(|w| w.len() <= 64);
        let Some(words) = words else {
            left.push((pattern, sub));
            continue;
        };
        for word in words {
            let name = schema.name(&word);
            match props.iter_mut().find(|p| p.0 == name) {
                Some(known) => known.1 = schema.and(&[known.1, sub]),
                None => props.push((name, sub)),
            }
        }
    }
    left
}

pub(super) fn apply(schema: &mut Schema, site: &KeywordSite, parts: &mut Parts) -> Result<()> {
    let KeywordSite { keyword, at, .. } = *site;
    let atom = match keyword {
        "required" => {
            let names = names_of(schema, at);
            schema.required(names)
        }
        "minProperties" | "maxProperties" => {
            let Json::Number(n) = schema.doc.get(at) else { return Ok(()) };
            let count = Decimal::parse(n).and_then(|d| d.to_count()).expect("checked before");
            match keyword {
                "minProperties" => schema.count(count, u32::MAX),
                _ => schema.count(0, count),
            }
        }
        "propertyNames" => {
            let allowed = schema.names_allowed(at)?;
            let refused = schema.lexicon.terms.not(allowed);
            let refused = schema.lexicon.terms.prune(refused);
            if refused == Terms::EMPTY {
                return Ok(());
            }
            schema.shape_atom(Vec::new(), vec![(refused, ExprId::FALSE)], ExprId::TRUE, None, site.node)
        }
        "dependentRequired" => each(schema, at, |schema, value| {
            let names = names_of(schema, value);
            Ok(schema.required(names))
        })?,
        _ => return dependencies(schema, parts, at),
    };
    parts.objects.push(atom);
    Ok(())
}

/// `dependentSchemas`, and `dependencies` with schemas or lists of names.
fn dependencies(schema: &mut Schema, parts: &mut Parts, at: JsonNodeId) -> Result<()> {
    let atom = each(schema, at, |schema, value| {
        if matches!(schema.doc.get(value), Json::Array(_)) {
            let names = names_of(schema, value);
            return Ok(schema.required(names));
        }
        let sub = schema.node_sub(value);
        let value = schema.compile(sub)?;
        Ok(schema.value(value).obj)
    })?;
    parts.objects.push(atom);
    Ok(())
}

/// For each key: the key is absent, or the formula holds.
fn each(
    schema: &mut Schema,
    at: JsonNodeId,
    mut formula: impl FnMut(&mut Schema, JsonNodeId) -> Result<ObjId>,
) -> Result<ObjId> {
    let mut all = Vec::new();
    for (key, value) in schema.doc.entries(at).to_vec() {
        let name = schema.name(&key);
        let satisfied = formula(schema, value)?;
        let absent = schema.obj(Obj::Absent(name));
        let name_there = schema.required(vec![name]);
        let both = schema.and(&[name_there, satisfied]);
        // "absent, or there and held": the branches exclude each other, so frames decide early
        all.push(schema.or(&[absent, both]));
    }
    Ok(schema.and(&all))
}

fn names_of(schema: &mut Schema, at: JsonNodeId) -> Vec<NameId> {
    let items = schema.doc.items(at).to_vec();
    let texts: Vec<Box<str>> = items.into_iter().filter_map(|i| schema.doc.str(i).map(Into::into)).collect();
    texts.iter().map(|text| schema.name(text)).collect()
}

impl Schema {
    /// The strings that a schema admits, as names of properties: its other keywords are not looked at, so that a
    /// schema whose names satisfy the schema itself means something.
    fn names_allowed(&mut self, at: JsonNodeId) -> Result<TermId> {
        let sub = self.node_sub(at);
        let whole = std::mem::replace(&mut self.compiled.names_only, true);
        if !whole {
            std::mem::swap(&mut self.compiled.of, &mut self.compiled.names);
        }
        let compiling = std::mem::take(&mut self.compiled.under_way);
        let names = self.compile(sub);
        self.compiled.under_way = compiling;
        if !whole {
            std::mem::swap(&mut self.compiled.of, &mut self.compiled.names);
        }
        self.compiled.names_only = whole;
        let names = self.value(names?).str;
        self.without_holes(names).map_err(|e| e.at(&self.doc.pointer(at)))
    }
}
