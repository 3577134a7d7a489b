//! `unevaluatedProperties`, `unevaluatedItems`.
//!
//! What is evaluated depends on which applicators hold.  Each subschema that may evaluate something is an
//! *evaluation*: where its condition holds, these properties or items are evaluated.  A property must satisfy the
//! keyword's schema unless an evaluation that holds has its key: one conjunct for each set of evaluations that some
//! key is in, "all such keys' values satisfy the schema, or one of these conditions holds".
//! Complexity: linear in the subschemas that evaluate and the keys that they name, with patterns in their product.
//! Rejected: a case for each set of applicators that may hold together, a million for an `anyOf` of twenty.

use rustc_hash::{FxHashMap, FxHashSet};

use super::array as arrays;
use super::object as objects;
use super::Parts;
use crate::error::{Error, Kind, Result};
use crate::lexical::TermId;
use crate::schema::document::{Json, JsonNodeId};
use crate::schema::live::object::Cell;
use crate::schema::table::Draft;
use crate::schema::value::{ExprId, ValId, Value};
use crate::schema::{NameId, Schema};
use crate::work;

/// `contains` below applicators that may or may not hold: each set of them is a case.
const MAX_CONTAINS: usize = 8;
/// Levels of applicators inside each other; more are taken for a circle.
const MAX_DEPTH: usize = 64;

/// What is evaluated where a condition holds.
#[derive(Clone)]
struct Evaluation {
    condition: ValId,
    names: Vec<NameId>,
    patterns: Vec<TermId>,
    /// Every property is evaluated.
    all: bool,
    /// Items evaluated from the start; `u32::MAX`: all.
    items: u32,
    contains: Option<ExprId>,
}

pub(super) fn apply(
    schema: &mut Schema,
    (node, draft): (JsonNodeId, Draft),
    parts: &mut Parts,
) -> Result<()> {
    if draft < Draft::D2019 {
        return Ok(());
    }
    for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
        let Some(at) = schema.doc.key(node, keyword) else { continue };
        let sub = schema.node_sub(at);
        let mut found = Vec::new();
        evaluations(schema, node, ValId::TRUE, 0, &mut found)
            .and_then(|()| match keyword {
                "unevaluatedProperties" => properties(schema, &found, sub, node),
                _ => items(schema, &found, sub),
            })
            .map(|value| parts.add(schema, value))
            .map_err(|e| e.at(&schema.doc.pointer(at)).keyword(keyword))?;
    }
    Ok(())
}

/// Sets of evaluations, by number, with the keys or items that are in just these.
type EvaluationSets<T> = indexmap::IndexMap<Vec<usize>, T>;

fn properties(schema: &mut Schema, found: &[Evaluation], sub: ExprId, node: JsonNodeId) -> Result<ValId> {
    let mut names: Vec<NameId> = found.iter().flat_map(|e| e.names.iter().copied()).collect();
    crate::lists::dedup(&mut names);
    let mut patterns: Vec<TermId> = found.iter().flat_map(|e| e.patterns.iter().copied()).collect();
    crate::lists::sort_unique(&mut patterns);
    // keys that are named, keys of each combination of patterns
    let mut groups: EvaluationSets<(Vec<NameId>, Vec<Cell>)> = EvaluationSets::new();
    for (set, name) in evaluated_names(schema, found, &names).into_iter().zip(&names) {
        groups.entry(set).or_default().0.push(*name);
    }
    for cell in schema.cells_of(&patterns).iter() {
        let matched = |e: &Evaluation| {
            work::spend(1 + (e.patterns.len() * cell.0.len() / 8) as u64);
            e.patterns.iter().any(|p| cell.0.contains(&(*p, true)))
        };
        let set = (0..found.len()).filter(|&i| found[i].all || matched(&found[i])).collect();
        groups.entry(set).or_default().1.push(cell.clone());
    }
    let mut all = Vec::with_capacity(groups.len());
    for (set, (own, cells)) in groups {
        if set.iter().any(|&i| found[i].condition == ValId::TRUE) {
            continue;
        }
        let mut props: Vec<(NameId, ExprId)> = own.iter().map(|&name| (name, sub)).collect();
        let (patterns, rest) = match &cells[..] {
            [] => (Vec::new(), ExprId::TRUE),
            // keys that no pattern matches are what a shape calls the rest; those that are named are not of them
            [(satisfied, _)] if satisfied.iter().all(|p| !p.1) => {
                let own: FxHashSet<NameId> = own.into_iter().collect();
                let sub_of = |name| if own.contains(&name) { sub } else { ExprId::TRUE };
                props = names.iter().map(|&name| (name, sub_of(name))).collect();
                (patterns.iter().map(|&p| (p, ExprId::TRUE)).collect(), sub)
            }
            cells => (vec![(keys_of(schema, cells, &names), sub)], ExprId::TRUE),
        };
        let mut v = schema.value(ValId::TRUE).clone();
        v.obj = schema.shape_atom(props, patterns, rest, None, node);
        all.push(unless(schema, v, &set, found));
    }
    Ok(schema.and_all(&all))
}

/// The evaluations that each of the names (in order) is in.
fn evaluated_names(schema: &mut Schema, found: &[Evaluation], names: &[NameId]) -> Vec<Vec<usize>> {
    let places: FxHashMap<NameId, usize> = names.iter().enumerate().map(|(at, &name)| (name, at)).collect();
    let mut sets: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
    for (i, e) in found.iter().enumerate() {
        let mut own: Vec<usize> = e.names.iter().map(|name| places[name]).collect();
        work::spend(1 + own.len() as u64);
        if e.all || !e.patterns.is_empty() {
            work::spend((names.len() * (1 + e.patterns.len())) as u64);
            let matched = |&at: &usize| e.all || e.patterns.iter().any(|&p| schema.key_matches(p, names[at]));
            own.extend((0..names.len()).filter(matched));
        }
        crate::lists::dedup(&mut own);
        own.into_iter().for_each(|at| sets[at].push(i));
    }
    sets
}

/// The keys of some cells that are not named.
fn keys_of(schema: &mut Schema, cells: &[Cell], names: &[NameId]) -> TermId {
    let words = names.iter().map(|&n| schema.arenas.names[n.0 as usize].clone()).collect();
    let terms = &mut schema.lexicon.terms;
    let keys: Vec<TermId> = cells.iter().map(|cell| cell.1).collect();
    let (keys, words) = (terms.or(&keys), terms.words(words));
    let other = terms.not(words);
    let keys = terms.and(&[keys, other]);
    terms.prune(keys)
}

fn items(schema: &mut Schema, found: &[Evaluation], sub: ExprId) -> Result<ValId> {
    let (sure, maybe): (Vec<&Evaluation>, Vec<&Evaluation>) =
        found.iter().filter(|e| e.contains.is_some()).partition(|e| e.condition == ValId::TRUE);
    if maybe.len() > MAX_CONTAINS {
        return Err(Error::limit(format!(
            "more than {MAX_CONTAINS} \"contains\" may or may not evaluate items here; simplify the schema"
        )));
    }
    let mut borders: Vec<u32> = found.iter().map(|e| e.items).filter(|&n| n < u32::MAX).collect();
    borders.extend([0]);
    crate::lists::sort_unique(&mut borders);
    let mut any = Vec::new();
    for chosen in 0u32..1 << maybe.len() {
        let satisfied: Vec<&Evaluation> =
            (0..maybe.len()).filter(|i| chosen >> i & 1 == 1).map(|i| maybe[i]).collect();
        let mut ways = vec![sub];
        ways.extend(sure.iter().chain(&satisfied).filter_map(|e| e.contains));
        let item = schema.or(&ways);
        let mut all: Vec<ValId> = satisfied.iter().map(|e| e.condition).collect();
        for (i, &from) in borders.iter().enumerate() {
            let set: Vec<usize> = (0..found.len()).filter(|&j| found[j].items > from).collect();
            if set.iter().any(|&j| found[j].condition == ValId::TRUE) {
                continue;
            }
            // the items from here to the next border, or to the end
            let mut list = vec![ExprId::TRUE; from as usize];
            let rest = match borders.get(i + 1) {
                Some(&to) => {
                    list.resize(to as usize, item);
                    ExprId::TRUE
                }
                None => item,
            };
            let list = schema.list(list);
            let mut v = schema.value(ValId::TRUE).clone();
            v.arr = schema.items(list, 0, rest);
            all.push(unless(schema, v, &set, found));
        }
        any.push(schema.and_all(&all));
    }
    Ok(schema.or_all(&any))
}

/// The value, or one of the conditions.
fn unless(schema: &mut Schema, value: Value, set: &[usize], found: &[Evaluation]) -> ValId {
    let mut ways = vec![schema.value_of(value)];
    ways.extend(set.iter().map(|&i| found[i].condition));
    schema.or_all(&ways)
}

/// What a schema evaluates where it holds, which it does under the condition.
fn evaluations(
    schema: &mut Schema,
    node: JsonNodeId,
    condition: ValId,
    depth: usize,
    out: &mut Vec<Evaluation>,
) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(Error::new(
            Kind::UnsupportedSchema,
            "the schemas that evaluate properties or items here are recursive",
        ));
    }
    let Json::Object(entries) = schema.doc.get(node).clone() else { return Ok(()) };
    if condition == ValId::FALSE {
        return Ok(());
    }
    let draft = schema.resolver.draft(&schema.doc, node);
    own_evaluation(schema, node, draft, condition, depth == 0, out)?;
    for (keyword, value) in entries.iter() {
        if crate::schema::table::holds(keyword, draft).is_none() {
            continue;
        }
        let mut below = |schema: &mut Schema, node: JsonNodeId, condition: ValId| {
            evaluations(schema, node, condition, depth + 1, out)
        };
        match &**keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                if let Some(target) = schema.reference(node, keyword, *value)? {
                    below(schema, target, condition)?;
                }
            }
            "allOf" => {
                for part in schema.doc.items(*value).to_vec() {
                    below(schema, part, condition)?;
                }
            }
            "anyOf" | "oneOf" => {
                for branch in schema.doc.items(*value).to_vec() {
                    let satisfied = both(schema, condition, branch)?;
                    below(schema, branch, satisfied)?;
                }
            }
            "if" => {
                let satisfied = both(schema, condition, *value)?;
                below(schema, *value, satisfied)?;
                if let Some(then) = schema.doc.key(node, "then") {
                    below(schema, then, satisfied)?;
                }
                if let Some(other) = schema.doc.key(node, "else") {
                    let sub = schema.node_sub(*value);
                    let failed = schema.compile(sub)?;
                    let failed = schema.not_value(failed);
                    let failed = schema.and_values(condition, failed);
                    below(schema, other, failed)?;
                }
            }
            "dependentSchemas" => {
                for (key, part) in schema.doc.entries(*value).to_vec() {
                    let name = schema.name(&key);
                    let mut there = schema.value(ValId::FALSE).clone();
                    there.obj = schema.required(vec![name]);
                    let there = schema.value_of(there);
                    let satisfied = schema.and_values(condition, there);
                    below(schema, part, satisfied)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn both(schema: &mut Schema, condition: ValId, branch: JsonNodeId) -> Result<ValId> {
    let sub = schema.node_sub(branch);
    let satisfied = schema.compile(sub)?;
    Ok(schema.and_values(condition, satisfied))
}

/// What the schema's own keywords evaluate.
fn own_evaluation(
    schema: &mut Schema,
    node: JsonNodeId,
    draft: Draft,
    condition: ValId,
    top: bool,
    out: &mut Vec<Evaluation>,
) -> Result<()> {
    let layout = objects::layout(schema, node)?;
    let later = |schema: &Schema, key: &str| !top && schema.doc.key(node, key).is_some();
    let (prefix, rest) = arrays::layout(schema, node, draft);
    let all_items = rest.is_some() || later(schema, "unevaluatedItems");
    let contains = schema.doc.key(node, "contains").filter(|_| draft >= Draft::D2020);
    let own = Evaluation {
        condition,
        names: layout.props.iter().map(|p| p.0).collect(),
        patterns: layout.patterns.iter().map(|p| p.0).collect(),
        all: layout.rest.is_some() || later(schema, "unevaluatedProperties"),
        items: if all_items { u32::MAX } else { prefix.len() as u32 },
        contains: contains.map(|at| schema.node_sub(at)),
    };
    let nothing = own.names.is_empty() && own.patterns.is_empty() && !own.all;
    if !nothing || own.items > 0 || own.contains.is_some() {
        out.push(own);
    }
    Ok(())
}
