//! `unevaluatedProperties`, `unevaluatedItems`.
//!
//! What is evaluated depends on which applicators hold.  Each way in which they may hold is a case "these
//! subschemas hold, and what they do not evaluate satisfies the schema"; the formula is the disjunction of the
//! cases.  Evaluating more only relaxes the keyword, so a case need not say that the others fail.

use super::array as arrays;
use super::object as objects;
use super::{Parts, Site};
use crate::error::{Error, Kind, Result};
use crate::lexical::TermId;
use crate::schema::document::{JId, Json};
use crate::schema::object::ObjId;
use crate::schema::resolve::Draft;
use crate::schema::value::{SubId, ValId};
use crate::schema::{NameId, Schema};

/// Cases that one keyword may have.
const MAX_CASES: usize = 512;

/// What one way of holding evaluates, and the condition for it.
#[derive(Clone)]
struct Case {
    condition: ValId,
    names: Vec<NameId>,
    patterns: Vec<TermId>,
    /// Items evaluated from the start; `u32::MAX`: all.
    items: u32,
    contains: Vec<SubId>,
    /// Every property is evaluated.
    all: bool,
}

impl Case {
    fn empty() -> Self {
        Case {
            condition: ValId::TRUE,
            names: Vec::new(),
            patterns: Vec::new(),
            items: 0,
            contains: Vec::new(),
            all: false,
        }
    }

    fn join(&self, schema: &mut Schema, other: &Case) -> Case {
        let mut out = self.clone();
        out.condition = schema.and_values(self.condition, other.condition);
        out.names.extend(&other.names);
        out.patterns.extend(&other.patterns);
        out.contains.extend(&other.contains);
        out.items = self.items.max(other.items);
        out.all |= other.all;
        out
    }
}

pub(super) fn apply(schema: &mut Schema, site: &Site, parts: &mut Parts) -> Result<()> {
    if site.draft < Draft::D2019 {
        return Ok(());
    }
    for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
        let Some(at) = schema.doc.key(site.node, keyword) else { continue };
        let sub = schema.node_sub(at);
        let cases =
            cases(schema, site.node, true, 0).map_err(|e| e.at(&schema.doc.pointer(at)).keyword(keyword))?;
        let mut any = ValId::FALSE;
        for case in cases {
            let rest = match keyword {
                "unevaluatedProperties" => properties(schema, &case, sub, site.node),
                _ => items(schema, &case, sub),
            };
            let held = schema.and_values(case.condition, rest);
            any = schema.or_values(any, held);
        }
        parts.add(schema, any);
    }
    Ok(())
}

fn properties(schema: &mut Schema, case: &Case, sub: SubId, node: JId) -> ValId {
    let mut v = schema.value(ValId::TRUE).clone();
    v.obj = if case.all {
        ObjId::TRUE
    } else {
        let mut names = case.names.clone();
        crate::schema::value::dedup(&mut names);
        let props = names.into_iter().map(|n| (n, SubId::TRUE)).collect();
        let patterns = case.patterns.iter().map(|&p| (p, SubId::TRUE)).collect();
        schema.shape_atom(props, patterns, sub, None, node)
    };
    schema.value_of(v)
}

fn items(schema: &mut Schema, case: &Case, sub: SubId) -> ValId {
    let mut v = schema.value(ValId::TRUE).clone();
    if case.items < u32::MAX {
        let mut ways = vec![sub];
        ways.extend(&case.contains);
        let rest = schema.or_subs(&ways);
        let list = schema.list(vec![SubId::TRUE; case.items as usize]);
        v.arr = schema.items(list, 0, rest);
    }
    schema.value_of(v)
}

/// The ways in which a schema may hold; its own assertions are not part of the conditions when `top`.
fn cases(schema: &mut Schema, node: JId, top: bool, depth: usize) -> Result<Vec<Case>> {
    if depth > 64 {
        return Err(Error::new(
            Kind::UnsupportedSchema,
            "the schemas that evaluate properties or items here are recursive",
        ));
    }
    let mut own = Case::empty();
    if !top {
        let sub = schema.node_sub(node);
        own.condition = schema.compile(sub)?;
    }
    let Json::Object(entries) = schema.doc.get(node).clone() else { return Ok(vec![own]) };
    let draft = schema.resolver.draft(&schema.doc, node);
    own_evaluation(schema, node, draft, &mut own, top)?;
    let mut out = vec![own];
    for (keyword, value) in entries.iter() {
        let Some(what) = crate::schema::table::holds(keyword, draft) else { continue };
        let next: Vec<Case> = match &**keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => match schema.reference(node, keyword, *value)? {
                Some(target) => cases(schema, target, false, depth + 1)?,
                None => continue,
            },
            "allOf" => {
                for &part in &schema.doc.items(*value).to_vec() {
                    let more = cases(schema, part, false, depth + 1)?;
                    out = product(schema, &out, &more)?;
                }
                continue;
            }
            "anyOf" | "oneOf" => {
                let branches = schema.doc.items(*value).to_vec();
                if &**keyword == "oneOf" {
                    one_of(schema, &branches, depth)?
                } else {
                    any_of(schema, &branches, depth)?
                }
            }
            "if" => conditional(schema, node, *value, depth)?,
            "dependentSchemas" => {
                for (key, part) in schema.doc.entries(*value).to_vec() {
                    let mut more = cases(schema, part, false, depth + 1)?;
                    let name = schema.name(&key);
                    let there = schema.required(vec![name]);
                    let mut v = schema.value(ValId::FALSE).clone();
                    v.obj = there;
                    let there = schema.value_of(v);
                    for case in &mut more {
                        case.condition = schema.and_values(case.condition, there);
                    }
                    more.push(Case::empty());
                    out = product(schema, &out, &more)?;
                }
                continue;
            }
            _ => continue,
        };
        let _ = what;
        out = product(schema, &out, &next)?;
    }
    Ok(out)
}

/// What the schema's own keywords evaluate.
fn own_evaluation(schema: &mut Schema, node: JId, draft: Draft, own: &mut Case, top: bool) -> Result<()> {
    let layout = objects::layout(schema, node)?;
    own.names.extend(layout.props.iter().map(|p| p.0));
    own.patterns.extend(layout.patterns.iter().map(|p| p.0));
    let later = |schema: &Schema, key: &str| !top && schema.doc.key(node, key).is_some();
    own.all |= layout.rest.is_some() || later(schema, "unevaluatedProperties");
    let (prefix, rest) = arrays::layout(schema, &Site { node, draft });
    let all_items = rest.is_some() || later(schema, "unevaluatedItems");
    own.items = if all_items { u32::MAX } else { prefix.len() as u32 };
    if let (Some(at), true) = (schema.doc.key(node, "contains"), draft >= Draft::D2020) {
        own.contains.push(schema.node_sub(at));
    }
    Ok(())
}

fn product(schema: &mut Schema, a: &[Case], b: &[Case]) -> Result<Vec<Case>> {
    if a.len() * b.len() > MAX_CASES {
        return Err(Error::limit("the schema has too many ways to evaluate properties or items"));
    }
    let mut out = Vec::with_capacity(a.len() * b.len());
    for x in a {
        for y in b {
            out.push(x.join(schema, y));
        }
    }
    Ok(out)
}

/// Every non-empty set of branches that may hold together.
fn any_of(schema: &mut Schema, branches: &[JId], depth: usize) -> Result<Vec<Case>> {
    let mut out: Vec<Case> = Vec::new();
    for &branch in branches {
        let own = cases(schema, branch, false, depth + 1)?;
        let joined = product(schema, &out, &own)?;
        out.extend(own);
        out.extend(joined.into_iter().filter(|c| c.condition != ValId::FALSE));
        if out.len() > MAX_CASES {
            return Err(Error::limit("the schema has too many ways to evaluate properties or items"));
        }
    }
    Ok(out)
}

/// One branch; that the others fail is said by the keyword itself.
fn one_of(schema: &mut Schema, branches: &[JId], depth: usize) -> Result<Vec<Case>> {
    let mut out = Vec::new();
    for &branch in branches {
        out.extend(cases(schema, branch, false, depth + 1)?);
    }
    Ok(out)
}

fn conditional(schema: &mut Schema, node: JId, condition: JId, depth: usize) -> Result<Vec<Case>> {
    let held = cases(schema, condition, false, depth + 1)?;
    let sub = schema.node_sub(condition);
    let value = schema.compile(sub)?;
    let mut failed = Case::empty();
    failed.condition = schema.not_value(value);
    let branch = |schema: &mut Schema, key: &str| match schema.doc.key(node, key) {
        Some(at) => cases(schema, at, false, depth + 1),
        None => Ok(vec![Case::empty()]),
    };
    let then = branch(schema, "then")?;
    let other = branch(schema, "else")?;
    let mut out = product(schema, &held, &then)?;
    out.extend(product(schema, &[failed], &other)?);
    Ok(out)
}
