//! Reading what the frontends write: a form is a language, a schema, a grammar with parts, or a special token.
//!
//! `{"language": L}`, `{"counted": L, "tokens": most}` (it ends after so many tokens, see [`super::budget`]),
//! `{"language": {"until": [L, L]}, "ends": [text, ..]}` (each of these texts ends it as the
//! special token of that text, too), `{"schema": text, "options": {..}, "holes": [form, ..]}`,
//! `{"grammar": structure}`, `{"gbnf": text, "start": name}`,
//! `{"branches": [{"head": text, "rest": form}, ..]}` (or the number of a list that comes beside the form),
//! `{"special": text, "spelled": how}`, `{"special": ids}`, `{"but": names}`, `{"other": names}`
//! ([`tokens`]).
//! A structure is the neutral form of a grammar; its `parts` bind declared terminals to forms.  Its lexer is
//! "contextual" (a lexer cuts what lies between the parts), "longest" (the same, and all terminals of the
//! longest match count) or "dynamic" (every segmentation counts).  A terminal with a "language" has that
//! language.

use std::sync::Arc;

use serde_json::{json, Value};

use super::branches::{Branch, Branches};
use super::machines::{self, Machine};
use super::text::value_of;
use super::{
    language, tokens, Bound, CompositeAutomaton, OuterGrammar, Part, ReturnAddress, TokenSpelling, END,
};
use crate::automaton::byte_automaton::Piece;
use crate::automaton::pattern::Pattern;
use crate::cfg::chart::Chart;
use crate::cfg::grammar::{self, Grammar, Parts};
use crate::cfg::scanned::Scanned;
use crate::cfg::spec::GrammarSpec;
use crate::cfg::terminals;
use crate::error::{Error, Kind, Result};
use crate::lexical::{Lexicon, TermId, Terms};
use crate::schema::holes::{Hole, MOST_HOLES};
use crate::schema::Options;
use crate::{gbnf, work};

/// A constraint that was read.
pub enum Composite {
    /// One regular language.
    Pattern(Box<Pattern>),
    /// The documents of one schema, and how they are written.
    Schema(String, Box<Options>),
    CompositeAutomaton(Box<CompositeAutomaton>),
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Kind::InvalidGrammar, message)
}

/// Parts that were read, by their names.
pub(super) type Bounds = Vec<(String, Bound)>;

/// Lists of branches that a form names by their numbers.
pub(crate) type Lists = [Arc<Branches>];

/// Reads a form; `name` is its name in messages.
pub fn read(text: &str, name: &str, lists: &Lists) -> Result<Composite> {
    let mut lexicon: Box<Lexicon> = Box::default();
    if !lists.is_empty() {
        let mut joint = CompositeAutomaton::empty(lexicon);
        joint.given = lists.to_vec();
        joint.root = joint.read_around(text, name)?;
        joint.given.clear();
        joint.open_lexers(0);
        return Ok(Composite::CompositeAutomaton(Box::new(joint)));
    }
    let form = value_of(text)?;
    let form = if form.get("counted").is_some() { within_grammar(&form) } else { form };
    if let (Some(value), None) = (form.get("language"), form.get("ends")) {
        let (term, _) = language::read(&mut lexicon, value)?;
        check(&mut lexicon, term, name)?;
        return Ok(Composite::Pattern(Box::new(Pattern::new(*lexicon, term, name.into()))));
    }
    if let (Some(schema), true) = (form["schema"].as_str(), has_no_holes(&form)) {
        return Ok(Composite::Schema(schema.into(), Box::new(Options::read(&form["options"])?)));
    }
    let mut joint = CompositeAutomaton::empty(lexicon);
    joint.root = joint.part(&form, name)?;
    joint.open_lexers(0);
    Ok(Composite::CompositeAutomaton(Box::new(joint)))
}

/// Whether no string of a schema has a grammar.
fn has_no_holes(form: &Value) -> bool {
    form["holes"].as_array().is_none_or(Vec::is_empty)
}

/// A grammar in GBNF that names tokens.
pub fn with_tokens(structure: GrammarSpec) -> Result<CompositeAutomaton> {
    let mut joint = CompositeAutomaton::empty(Box::default());
    joint.root = joint.gbnf(structure)?;
    Ok(joint)
}

fn check(lexicon: &mut Lexicon, term: TermId, name: &str) -> Result<()> {
    if !work::naming(|| name.into(), || lexicon.terms.live(term)) {
        return Err(Error::new(Kind::UnsatisfiableGrammar, format!("{name} matches no text at all")));
    }
    Ok(())
}

impl CompositeAutomaton {
    pub(super) fn empty(lexicon: Box<Lexicon>) -> Self {
        let mut this = CompositeAutomaton { lexicon, ..CompositeAutomaton::default() };
        this.texts.intern(Box::new([]));
        // the place where the whole text ends
        this.backs.intern(ReturnAddress {
            host: u32::MAX,
            frame: 0,
            terminal: 0,
            up: END,
            depth: 0,
            used: 0,
        });
        this
    }

    pub(super) fn add(&mut self, part: Part) -> u32 {
        self.parts.push(part);
        self.parts.len() as u32 - 1
    }

    pub(super) fn part(&mut self, form: &Value, name: &str) -> Result<u32> {
        stacker::maybe_grow(128 << 10, 1 << 20, || self.part_here(form, name))
    }

    fn part_here(&mut self, form: &Value, name: &str) -> Result<u32> {
        if let Some(value) = form.get("language") {
            let (term, closed) = language::read(&mut self.lexicon, value)?;
            check(&mut self.lexicon, term, name)?;
            if let Some(ends) = form.get("ends") {
                return self.whole_host(&ended(value, ends));
            }
            if let (Some(token), true) = (form["unless"].as_str(), closed) {
                return Ok(self.add(Part::TokenText { token: token.into(), term, absent: false }));
            }
            return Ok(self.add(Part::Language(term, closed)));
        }
        if let (Some(value), Some(most)) = (form.get("counted"), form["tokens"].as_u64()) {
            let (term, _) = language::read(&mut self.lexicon, value)?;
            check(&mut self.lexicon, term, name)?;
            let part = self.add(Part::Language(term, false));
            self.budgets.insert(part, most.clamp(1, u32::MAX.into()) as u32);
            return Ok(part);
        }
        if let Some(text) = form["special"].as_str() {
            let spelled = match &form["spelled"] {
                Value::Bool(false) => TokenSpelling::Never,
                Value::Bool(true) => TokenSpelling::WhereNoToken,
                _ => TokenSpelling::Unknown,
            };
            return Ok(self.add(Part::Special {
                text: text.into(),
                spelled,
                tokens: Vec::new(),
                ends: false,
            }));
        }
        if let Some(part) = tokens::read(form) {
            return Ok(self.add(part));
        }
        if form.get("schema").is_some() {
            return self.schema(form);
        }
        match form.get("branches") {
            Some(Value::Array(all)) => {
                let all = all.iter().map(Branch::of_form).collect::<Result<Vec<_>>>()?;
                return self.branches(Branches::new(all));
            }
            Some(number) => {
                let list = number.as_u64().and_then(|i| self.given.get(i as usize)).cloned();
                return self.branches(list.ok_or_else(|| invalid("no such list of branches is given"))?);
            }
            None => {}
        }
        match form.get("grammar") {
            Some(structure) => self.whole_host(structure),
            None if form["gbnf"].is_string() => {
                let text = |key: &str| form[key].as_str().unwrap_or_default();
                self.gbnf(gbnf::read(text("gbnf"), text("start"))?)
            }
            None => Err(invalid(format!("{name} has no known form"))),
        }
    }

    /// The documents of a schema.
    fn schema(&mut self, form: &Value) -> Result<u32> {
        let text = form["schema"].as_str().unwrap_or_default();
        let options = Options::read(&form["options"])?;
        let alone = has_no_holes(form);
        if let Some(facts) = alone.then(|| machines::facts(text, &options)).flatten() {
            self.report.extend(facts.report.iter().cloned());
            let part = self.add_machine(Machine::later(text, options), Vec::new());
            self.words.insert(part, facts.word.clone().map(|word| vec![Piece::Bytes(word)]));
            return Ok(part);
        }
        let before = work::spent();
        let mut holes = Vec::new();
        for hole in form["holes"].as_array().into_iter().flatten() {
            let before = self.parts.len();
            let hole = match hole.get("language") {
                Some(language) => &json!({ "language": language }), // no token ends text within a string
                None => hole,
            };
            holes.push(self.part(hole, "the grammar of a string")?);
            if self.parts[before..].iter().any(|p| matches!(p, Part::Special { .. } | Part::Tokens { .. })) {
                return Err(invalid(
                    "a JSON string can't hold special tokens; use a grammar without them there",
                ));
            }
            if (before..self.parts.len()).any(|part| self.budgets.contains_key(&(part as u32))) {
                return Err(invalid("tokens can't be counted within a JSON string; bound its characters"));
            }
        }
        let (mut grammars, mut given) = (Vec::new(), Vec::new());
        for part in holes {
            if let Part::Language(term, _) = self.parts[part as usize] {
                given.push(Hole::Language(term));
                continue;
            }
            let word = self.word_of(part).and_then(|way| match &way[..] {
                [] => Some(String::new()),
                [Piece::Bytes(text)] => String::from_utf8(text.clone()).ok(),
                _ => None,
            });
            let word = word.ok_or_else(|| invalid("no short text of the grammar of a string was found"))?;
            given.push(Hole::Grammar(word.into()));
            grammars.push(part);
        }
        if grammars.len() > MOST_HOLES {
            return Err(Error::limit(format!("strings of a schema have at most {MOST_HOLES} grammars")));
        }
        let lexicon = std::mem::take(&mut self.lexicon);
        let mut machine = machines::read(text, options.clone(), lexicon, &given)?;
        self.lexicon = std::mem::take(&mut machine.schema.lexicon);
        let report = machine.schema.report.clone();
        self.report.extend(report.iter().cloned());
        let part = self.add_machine(Machine::Made(Box::new(machine)), grammars);
        if alone {
            let word = self.word_of(part).and_then(|way| match &way[..] {
                [Piece::Bytes(word)] => Some(word.clone()),
                _ => None,
            });
            machines::remember(text, &options, word, report, work::spent().saturating_sub(before));
        }
        Ok(part)
    }

    fn add_machine(&mut self, mut machine: Machine, holes: Vec<u32>) -> u32 {
        if let Some(levels) = self.deepest {
            machine.set_deepest(levels);
        }
        self.machines.push(machine);
        self.holes.push(holes);
        let machine = self.machines.len() as u32 - 1;
        self.add(Part::Json(machine))
    }

    /// A grammar in GBNF, whose declared terminals are tokens.
    fn gbnf(&mut self, structure: GrammarSpec) -> Result<u32> {
        let mut known = Parts::default();
        for name in &structure.declare {
            let part = self.part(&gbnf::part_of(name), name)?;
            known.known.insert(name.clone(), (part, 1));
        }
        self.add_host(structure, &known)
    }

    /// Reads a part of a grammar.
    pub(super) fn bound_part(&mut self, form: &Value, name: &str) -> Result<Bound> {
        let part =
            self.part(form, name).map_err(|e| Error { message: format!("{name}: {}", e.message), ..e })?;
        let empty = self.may_be_empty(part);
        if empty {
            self.without_empty(part);
        }
        let cost = self.word_of(part).map_or(1, |way| super::completion::length(&way) as u64);
        Ok(Bound { part, cost: cost.max(1), empty })
    }

    fn whole_host(&mut self, structure: &Value) -> Result<u32> {
        let bounds = self.bounds(structure)?;
        self.host(structure, bounds)
    }

    /// The parts of a grammar that are no lists of branches.
    pub(super) fn bounds(&mut self, structure: &Value) -> Result<Bounds> {
        let parts = structure["parts"].as_object().into_iter().flatten();
        let others = parts.filter(|(_, form)| form.get("branches").is_none());
        others.map(|(name, form)| Ok((name.clone(), self.bound_part(form, name)?))).collect()
    }

    /// A grammar with parts; those that are no lists of branches were read before.
    pub(super) fn host(&mut self, structure: &Value, mut bounds: Bounds) -> Result<u32> {
        for (name, form) in structure["parts"].as_object().into_iter().flatten() {
            if form.get("branches").is_some() {
                bounds.push((name.clone(), self.bound_part(form, name)?));
            }
        }
        let (mut known, mut at_once) = (Parts::default(), Vec::<&str>::new());
        let mut empty: Vec<&str> =
            bounds.iter().filter(|(_, bound)| bound.empty).map(|(name, _)| &**name).collect();
        for (name, bound) in &bounds {
            known.known.insert(name.clone(), (bound.part, bound.cost));
        }
        let values = structure["terminals"].as_array().map_or(&[][..], Vec::as_slice);
        let mut structure = GrammarSpec::from_value(structure);
        for (entry, value) in structure.terminals.iter_mut().zip(values) {
            let (Some(language), Some(name)) = (value.get("language"), value["name"].as_str()) else {
                continue;
            };
            let (mut term, _) = language::read(&mut self.lexicon, language)
                .map_err(|e| Error { message: format!("The terminal {name}: {}", e.message), ..e })?;
            if self.lexicon.terms.nullable(term) {
                term = self.some_text(term);
                match value["lazy"] == true || term == Terms::EMPTY {
                    true => at_once.push(name), // it ends at once
                    false => empty.push(name),
                }
            }
            entry.term = Some(term);
        }
        structure.terminals.retain(|entry| !at_once.contains(&entry.name.as_str()));
        structure.optional(&empty, &at_once);
        self.add_host(structure, &known)
    }

    fn add_host(&mut self, structure: GrammarSpec, known: &Parts) -> Result<u32> {
        let grammar = grammar::read_with(structure, &mut self.lexicon, known)?;
        let host = self.host_of(grammar)?;
        self.hosts.push(host);
        let host = self.hosts.len() as u32 - 1;
        Ok(self.add(Part::OuterGrammar(host)))
    }

    pub(super) fn host_of(&mut self, grammar: Grammar) -> Result<OuterGrammar> {
        if grammar.segmented {
            return Ok(OuterGrammar::Plain(Box::new(Chart::new(grammar))));
        }
        if let Some(around) = grammar.terminals.iter().find(|t| t.around.is_some() || t.forms.is_some()) {
            return Err(terminals::not_followed(&around.name));
        }
        let lexicon = std::mem::take(&mut self.lexicon);
        let mut scanned = Scanned::new(grammar, lexicon)?;
        self.lexicon = std::mem::take(&mut scanned.lexicon);
        Ok(OuterGrammar::Lexed(Box::new(scanned)))
    }

    /// A language without the empty text.
    fn some_text(&mut self, term: TermId) -> TermId {
        let terms = &mut self.lexicon.terms;
        let some = terms.not(Terms::EPS);
        terms.and(&[term, some])
    }

    /// The empty text is read by a rule instead, so that no part ends where it begins.
    fn without_empty(&mut self, part: u32) {
        if let Part::Language(term, closed) = self.parts[part as usize] {
            let term = self.some_text(term);
            self.parts[part as usize] = Part::Language(term, closed);
        }
    }
}

/// A grammar of one part: the tokens of a part are counted where it returns to.
fn within_grammar(form: &Value) -> Value {
    json!({ "grammar": {
        "terminals": [], "rules": [{ "origin": "start", "expansion": ["text"], "priority": 0, "order": 0 }],
        "orders": [], "ignore": [], "declare": ["text"], "start": "start", "lexer": "dynamic", "indenter": null,
        "parts": { "text": form },
    }})
}

/// The grammar of text that ends where one of the texts `ends` does: spelled, or as the special token of that text.
fn ended(language: &Value, ends: &Value) -> Value {
    let [text, end] = [0, 1].map(|i| &language["until"][i]);
    let any = json!({ "any": true });
    let open = json!({ "language": { "and": [text, { "not": { "concat": [any, end, any] } }] } });
    let mut parts = json!({ "spelled": { "language": language }, "open": open });
    let mut rules = vec![json!({ "origin": "start", "expansion": ["spelled"], "priority": 0, "order": 0 })];
    for (order, end) in (1..).zip(ends.as_array().into_iter().flatten()) {
        let name = format!("the special token {}", end.as_str().unwrap_or_default());
        rules.push(json!({ "origin": "start", "expansion": ["open", name], "priority": 0, "order": order }));
        parts[&name] = json!({ "special": end, "spelled": false });
    }
    let declared: Vec<&String> = parts.as_object().into_iter().flat_map(|parts| parts.keys()).collect();
    json!({
        "terminals": [], "rules": rules, "orders": [], "ignore": [], "declare": declared, "start": "start",
        "lexer": "dynamic", "indenter": null, "parts": parts,
    })
}
