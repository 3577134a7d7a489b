//! What follows the texts that branches begin with, each read once.
//!
//! In: a form by itself, or one table of rules with a start for each of many branches, whose parts are read once for all of
//! them: the members of five hundred tools are strings, numbers and words of few kinds.
//! Invariant: a rest has the rules and parts reachable from its start and nothing else, so that it lives as
//! long as the branch and not as long as the table; a part counts as much work for each branch as it took to
//! read.
//! Complexity: linear in the rules reachable from a start.
//! Memory: the branches of a table share its rules and parts.
//! Rejected: a form for each branch (common parts were read again for each); one grammar with all starts (a
//! list of a single tool would keep all).

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::{json, Map, Value};

use super::text::value_of;
use super::{Bound, CompositeAutomaton, Part, TokenSpelling};
use crate::cfg::grammar::{self, Parts};
use crate::cfg::spec::GrammarSpec;
use crate::error::{Error, Kind, Result};
use crate::hash::{KeyedMap, KeyedSet};
use crate::limits::Limits;
use crate::schema::Options;
use crate::work;

/// An arena of languages with more bytes is replaced by a new one.
pub(super) const ARENA: usize = 4 << 20;

/// What follows the text that a branch begins with; where it has a `{"slot": true}`, a schema of the branch's own stands there.
pub struct Rest {
    body: Body,
    /// How documents are written in the slot.
    pub(super) options: Option<Options>,
    /// The special tokens in it.
    pub(super) specials: Vec<Box<str>>,
    pub(super) report: Vec<String>,
    pub(super) work: u64,
}

#[derive(PartialEq, Eq)]
enum Body {
    Form(Box<str>, Value),
    RuleSlice(RuleSlice),
}

/// The rules of a table reachable from a start, and their parts; compact, since of many kept few are ever
/// used.
#[derive(PartialEq, Eq)]
struct RuleSlice {
    start: Arc<str>,
    rules: Box<[Arc<Rule>]>,
    orders: Box<[Arc<Value>]>,
    parts: Box<[Arc<NamedPart>]>,
}

/// An expansion, behind the name of its rule.
type Rule = (Arc<str>, Box<[Arc<str>]>);
/// A part's form as JSON text, behind its name.
type NamedPart = (Arc<str>, Box<str>);

impl PartialEq for Rest {
    fn eq(&self, other: &Self) -> bool {
        self.body == other.body && self.options == other.options
    }
}

impl Hash for Rest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.body {
            Body::Form(text, _) => text.hash(state),
            Body::RuleSlice(slice) => {
                slice.start.hash(state);
                slice.parts.iter().for_each(|part| part.0.hash(state));
                slice.rules.len().hash(state);
            }
        }
    }
}

impl Rest {
    /// Reads a form.
    ///
    /// # Errors
    /// It may be empty, or names tokens by number; or it is no form.
    pub fn read(text: &str, options: Option<&str>) -> Result<Arc<Rest>> {
        let options = options.map(|text| Options::read(&value_of(text)?)).transpose()?;
        let read = work::run(Limits::default().work, || {
            let form = value_of(text)?;
            let mut joint = CompositeAutomaton::empty(Box::default());
            let part = joint.part(&filled(&form, "{}", options.as_ref()), "what follows")?;
            if joint.may_be_empty(part) {
                return Err(Error::new(Kind::InvalidGrammar, "what follows a branch's text is never empty"));
            }
            let specials = specials_of(&joint.parts)?;
            Ok((form, specials, std::mem::take(&mut joint.report), work::spent()))
        });
        let (form, specials, report, work) = read.map_err(Error::from).and_then(|read| read)?;
        Ok(Arc::new(Rest { body: Body::Form(text.into(), form), options, specials, report, work }))
    }

    /// Reads the rests of branches with different rests: a grammar without a lexer as the frontends write it,
    /// and the rule with which each begins. None for those that may be empty.
    ///
    /// # Errors
    /// Those of the first that can't be read; it names tokens by number.
    pub fn read_each(table: &str, starts: &[String]) -> Result<Vec<Option<Arc<Rest>>>> {
        let mut table = RuleTable::new(value_of(table)?)?;
        starts.iter().map(|start| table.read(start)).collect()
    }

    /// The form, with a schema in its slot.
    pub(super) fn form(&self, schema: Option<&str>) -> Value {
        match (&self.body, schema) {
            (Body::Form(_, form), Some(schema)) => filled(form, schema, self.options.as_ref()),
            (Body::Form(_, form), None) => form.clone(),
            (Body::RuleSlice(slice), _) => slice.form(),
        }
    }
}

impl RuleSlice {
    fn form(&self) -> Value {
        let rule = |rule: &Arc<Rule>| json!({ "origin": *rule.0, "expansion": words(&rule.1) });
        let part = |part: &Arc<NamedPart>| (part.0.to_string(), value_of(&part.1).unwrap_or_default());
        json!({ "grammar": {
            "terminals": [], "rules": self.rules.iter().map(rule).collect::<Vec<_>>(),
            "orders": self.orders.iter().map(|order| Value::clone(order)).collect::<Vec<_>>(), "ignore": [],
            "declare": self.parts.iter().map(|part| &*part.0).collect::<Vec<_>>(), "start": *self.start,
            "lexer": "dynamic", "indenter": null, "parts": self.parts.iter().map(part).collect::<Map<_, _>>(),
        }})
    }
}

fn words(names: &[Arc<str>]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

/// What a symbol of a table is.
enum SymbolMeaning {
    Rule(Vec<u32>),
    Order(u32),
    Part(u32),
}

/// What was read of a part.
struct ReadPart {
    bound: Bound,
    specials: Vec<Box<str>>,
    report: Vec<String>,
    work: u64,
}

struct RuleTable {
    rules: Vec<Arc<Rule>>,
    orders: Vec<Arc<Value>>,
    parts: Vec<Arc<NamedPart>>,
    forms: Vec<Value>,
    symbols: KeyedMap<Arc<str>, SymbolMeaning>,
    /// The automaton in which the parts are read.
    joint: CompositeAutomaton,
    /// By part.
    known: Vec<Option<ReadPart>>,
}

fn wrong() -> Error {
    Error::new(Kind::InvalidGrammar, "not the table of what follows branches")
}

impl RuleTable {
    fn new(mut form: Value) -> Result<RuleTable> {
        let structure = form.get_mut("grammar").and_then(Value::as_object_mut).ok_or_else(wrong)?;
        let mut taken = |key: &str| structure.get_mut(key).map(Value::take).unwrap_or_default();
        let mut table = RuleTable {
            rules: Vec::new(),
            orders: Vec::new(),
            parts: Vec::new(),
            forms: Vec::new(),
            symbols: KeyedMap::default(),
            joint: CompositeAutomaton::empty(Box::default()),
            known: Vec::new(),
        };
        if let Value::Object(parts) = taken("parts") {
            for (at, (name, form)) in (0..).zip(parts) {
                let name: Arc<str> = name.into();
                table.symbols.insert(name.clone(), SymbolMeaning::Part(at));
                table.parts.push(Arc::new((name, form.to_string().into())));
                table.forms.push(form);
                table.known.push(None);
            }
        }
        let mut names: KeyedMap<String, Arc<str>> = KeyedMap::default();
        let mut name =
            |name: String| names.entry(name).or_insert_with_key(|name| name.as_str().into()).clone();
        if let Value::Array(orders) = taken("orders") {
            for (at, order) in (0..).zip(orders) {
                let origin = order["origin"].as_str().ok_or_else(wrong)?;
                table.symbols.insert(name(origin.into()), SymbolMeaning::Order(at));
                table.orders.push(Arc::new(order));
            }
        }
        if let Value::Array(rules) = taken("rules") {
            for (at, rule) in (0..).zip(rules) {
                let (origin, body) = GrammarSpec::rule(&rule);
                let (origin, body) = (name(origin), body.into_iter().map(&mut name).collect());
                match table.symbols.entry(origin.clone()).or_insert(SymbolMeaning::Rule(Vec::new())) {
                    SymbolMeaning::Rule(all) => all.push(at),
                    _ => return Err(wrong()),
                }
                table.rules.push(Arc::new((origin, body)));
            }
        }
        Ok(table)
    }

    /// The rules and parts reachable from a start.
    fn slice(&self, start: &str) -> Result<(RuleSlice, Vec<u32>)> {
        let (mut rules, mut orders, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        let mut seen: KeyedSet<&str> = KeyedSet::default();
        let mut waiting: Vec<&str> = vec![start];
        while let Some(name) = waiting.pop() {
            if !seen.insert(name) {
                continue;
            }
            match self.symbols.get(name) {
                Some(SymbolMeaning::Part(at)) => parts.push(*at),
                Some(SymbolMeaning::Order(at)) => {
                    orders.push(*at);
                    let order = &self.orders[*at as usize];
                    let members = order["members"].as_array().into_iter().flatten().map(|member| &member[0]);
                    let others = [&order["others"], &order["separator"]];
                    waiting.extend(members.chain(others).filter_map(Value::as_str));
                }
                Some(SymbolMeaning::Rule(all)) => {
                    rules.extend(all);
                    waiting.extend(
                        all.iter().flat_map(|&at| self.rules[at as usize].1.iter().map(|name| &**name)),
                    );
                }
                None => {
                    let message = format!("The symbol '{name}' is not defined");
                    return Err(Error::new(Kind::InvalidGrammar, message));
                }
            }
        }
        rules.sort_unstable();
        orders.sort_unstable();
        parts.sort_unstable();
        let slice = RuleSlice {
            start: start.into(),
            rules: rules.into_iter().map(|at: u32| self.rules[at as usize].clone()).collect(),
            orders: orders.into_iter().map(|at: u32| self.orders[at as usize].clone()).collect(),
            parts: parts.iter().map(|&at: &u32| self.parts[at as usize].clone()).collect(),
        };
        Ok((slice, parts))
    }

    /// Reads the rest that begins with a rule; None: it may be empty.
    fn read(&mut self, start: &str) -> Result<Option<Arc<Rest>>> {
        let (slice, parts) = self.slice(start)?;
        if self.joint.lexicon.bytes() > ARENA {
            self.joint = CompositeAutomaton::empty(Box::default());
            self.known.iter_mut().for_each(|known| *known = None);
        }
        let read = work::run(Limits::default().work, || {
            parts.iter().try_for_each(|&at| self.part(at))?;
            Ok((self.may_be_empty(&slice, &parts)?, work::spent()))
        });
        let (empty, work) = read.map_err(Error::from).and_then(|read| read)?;
        let all = || parts.iter().filter_map(|&at| self.known[at as usize].as_ref());
        let mut specials: Vec<Box<str>> = all().flat_map(|known| known.specials.iter().cloned()).collect();
        crate::lists::sort_unique(&mut specials);
        let report = all().flat_map(|known| known.report.iter().cloned()).collect();
        let rest = Rest { body: Body::RuleSlice(slice), options: None, specials, report, work };
        Ok((!empty).then(|| Arc::new(rest)))
    }

    /// Reads a part, unless it is known.
    fn part(&mut self, at: u32) -> Result<()> {
        if let Some(known) = &self.known[at as usize] {
            work::spend(known.work);
            return Ok(());
        }
        let (before, first) = (work::spent(), self.joint.parts.len());
        let bound = self.joint.bound_part(&self.forms[at as usize], &self.parts[at as usize].0)?;
        let specials = specials_of(&self.joint.parts[first..])?;
        let (report, work) = (std::mem::take(&mut self.joint.report), work::spent().saturating_sub(before));
        self.known[at as usize] = Some(ReadPart { bound, specials, report, work });
        Ok(())
    }

    /// Whether the grammar of a slice has the empty text.
    fn may_be_empty(&mut self, slice: &RuleSlice, parts: &[u32]) -> Result<bool> {
        let (mut known, mut empty) = (Parts::default(), Vec::new());
        for (&at, part) in parts.iter().zip(&slice.parts) {
            let bound = &self.known[at as usize].as_ref().expect("its parts were read").bound;
            known.known.insert(part.0.to_string(), (bound.part, bound.cost));
            if bound.empty {
                empty.push(&*part.0);
            }
        }
        let mut spec = GrammarSpec::from_value(&json!({ "lexer": "dynamic", "start": *slice.start }));
        spec.rules = slice.rules.iter().map(|rule| (rule.0.to_string(), words(&rule.1))).collect();
        spec.orders = slice.orders.iter().map(|order| GrammarSpec::order(order)).collect();
        spec.declare = slice.parts.iter().map(|part| part.0.to_string()).collect();
        spec.optional(&empty, &[]);
        let grammar = grammar::read_with(spec, &mut self.joint.lexicon, &known)?;
        Ok(grammar.nullable[grammar.start as usize])
    }
}

/// The special tokens of parts.
fn specials_of(parts: &[Part]) -> Result<Vec<Box<str>>> {
    let mut specials = Vec::new();
    for part in parts {
        match part {
            Part::Special { text, spelled: TokenSpelling::Never | TokenSpelling::WhereNoToken, .. } => {
                specials.push(text.clone())
            }
            Part::TokenText { token, .. } => specials.push(token.clone()),
            Part::Special { .. } | Part::Tokens { .. } | Part::Branches(_) => {
                return Err(Error::new(Kind::InvalidGrammar, "no branch holds such tokens or branches"))
            }
            _ => {}
        }
    }
    crate::lists::sort_unique(&mut specials);
    Ok(specials)
}

/// The form with a schema in its slot.
fn filled(form: &Value, schema: &str, options: Option<&Options>) -> Value {
    match form {
        Value::Object(members) if members.contains_key("slot") => {
            let names = options.map(|o| o.names()).into_iter().flatten();
            let mut told: Map<String, Value> =
                names.map(|(name, value)| (name.to_string(), value.into())).collect();
            told.insert("without".into(), json!(options.map_or(&[][..], |o| &o.without)));
            json!({ "schema": schema, "options": told })
        }
        Value::Object(members) => Value::Object(
            members.iter().map(|(key, value)| (key.clone(), filled(value, schema, options))).collect(),
        ),
        Value::Array(items) => items.iter().map(|item| filled(item, schema, options)).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> String {
        let rule = |origin: &str, body: &[&str]| json!({ "origin": origin, "expansion": body });
        let text = |text: &str| json!({ "language": { "literal": text } });
        json!({ "grammar": {
            "rules": [
                rule("one", &["a", "both"]), rule("two", &["both", "b"]), rule("nothing", &[]), rule("both", &["c"]),
                rule("none", &["nothing"]), rule("again", &["a", "maybe", "again"]), rule("again", &["a"]),
            ],
            "orders": [],
            "parts": { "a": text("a"), "b": text("b"), "c": text("c"), "maybe": { "language": { "words": ["", "m"] } } },
        }})
        .to_string()
    }

    fn starts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn what_follows_a_branch_holds_its_own_rules_and_shares_them() {
        let read = Rest::read_each(&table(), &starts(&["one", "two", "none", "again"])).unwrap();
        assert!(read[2].is_none(), "it may be empty");
        let forms: Vec<Value> = read.iter().flatten().map(|rest| rest.form(None)).collect();
        let parts =
            |form: &Value| form["grammar"]["parts"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(
            forms.iter().map(parts).collect::<Vec<_>>(),
            [vec!["a", "c"], vec!["b", "c"], vec!["a", "maybe"]]
        );
        assert_eq!(forms[0]["grammar"]["rules"].as_array().unwrap().len(), 2);
        let slices: Vec<&RuleSlice> = read
            .iter()
            .flatten()
            .map(|rest| match &rest.body {
                Body::RuleSlice(slice) => slice,
                Body::Form(..) => unreachable!("they were read out of a table"),
            })
            .collect();
        assert!(Arc::ptr_eq(&slices[0].parts[1], &slices[1].parts[1]), "a part is held once");
        let alone = Rest::read_each(&table(), &starts(&["two"])).unwrap();
        assert!(alone[0] == read[1] && alone[0] != read[0]);
    }

    #[test]
    fn a_part_counts_for_each_that_has_it() {
        let read = Rest::read_each(&table(), &starts(&["two", "two"])).unwrap();
        let work = |at: usize| read[at].as_ref().unwrap().work;
        assert!(work(1) > 0 && work(1) <= work(0));
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        assert!(Rest::read_each(&table(), &starts(&["three"])).is_err());
        assert!(Rest::read_each("{}", &starts(&["one"])).is_err());
    }
}
