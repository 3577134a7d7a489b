//! Symbols and rules, read from the neutral form that the frontends write.
//!
//! Invariant: every rule that is kept is productive and every terminal has a word, so an item of the chart can
//! always be completed.  Rules that need a terminal without words are left out (Hopcroft, Motwani, Ullman,
//! section 7.1); costs are those of Knuth's generalisation of Dijkstra's algorithm (Information Processing Letters 6,
//! 1977).
//! Complexity: linear in the rules, but for the sorting of their costs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::layout::Layout;
use super::orders::{Order, Orders};
use super::spec::{Entry, GrammarSpec, OrderEntry};
use super::split_terminals::{self, FollowSet, SplitTerminal};
use super::terminals;
use crate::error::{Error, Kind, Result};
use crate::hash::{KeyedMap, KeyedSet};
use crate::lexical::{Lexicon, TermId, Terms};
use crate::regex::context::Pattern;
use crate::regex::CharSet;

/// A symbol of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symbol {
    Terminal(u32),
    Rule(u32),
}

#[derive(Default)]
pub struct Terminal {
    pub name: String,
    /// Its words; `None` for INDENT and DEDENT, which have no text, and for parts.
    pub term: Option<TermId>,
    /// Among matches of one length the least rank wins.
    pub rank: u32,
    pub ignored: bool,
    /// It ends where it first can, whatever longer could be read.
    pub lazy: bool,
    /// The constraint that stands for it, where that is one of its own.
    pub part: Option<u32>,
    /// Its words with what may follow them ([`crate::regex::context`]), where that matters: with nothing before, then by the
    /// sets of the last character; one where it doesn't look there. `term` is what matches alone.
    pub around: Option<Box<[TermId]>>,
    /// Its words by what may follow them ([`super::split_terminals`]), where that is all that they hang on; of each of those, the
    /// terminal that it is a form of, and the number of what may follow it.
    pub forms: Option<SplitTerminal>,
    pub form_of: Option<u32>,
    pub following: u8,
    /// Its one word, where it is a literal without flags.
    pub literal: Option<String>,
    /// Code points of the shortest word.
    pub cost: u64,
}

impl Terminal {
    /// Its words with what may follow them, behind characters of a set.
    pub fn around_after(&self, past: u8) -> Option<TermId> {
        let by_past = self.around.as_ref()?;
        by_past.get(usize::from(past)).or(by_past.last()).copied()
    }

    /// Its words, and those with what may follow them.
    pub fn languages(&self) -> impl Iterator<Item = TermId> + '_ {
        let around = self.around.iter().flat_map(|by_past| by_past.iter().copied());
        self.term.into_iter().chain(around)
    }

    /// Whether it stands for some text.
    pub fn has_text(&self) -> bool {
        self.term.is_some() || self.part.is_some()
    }
}

/// Constraints that stand for declared terminals.
#[derive(Default)]
pub struct Parts {
    /// By name: the number of the constraint, and the bytes of a short text of it.
    pub known: KeyedMap<String, (u32, u64)>,
}

pub struct Expansion {
    pub origin: u32,
    pub symbols: Box<[Symbol]>,
    /// From this place on everything may be empty.
    pub optional_from: u32,
}

#[derive(Default)]
pub struct Grammar {
    pub terminals: Vec<Terminal>,
    pub names: Vec<String>,
    pub expansions: Vec<Expansion>,
    /// Expansions of each rule, without the empty ones.
    pub by_rule: Vec<Vec<u32>>,
    pub nullable: Vec<bool>,
    /// Code points of a shortest text of each rule.
    pub costs: Vec<u64>,
    /// The expansion that gives it.
    pub shortest: Vec<Box<[Symbol]>>,
    /// Members in any order; their rules are made when they are met.
    pub orders: Orders,
    pub start: u32,
    pub segmented: bool,
    /// Every terminal of the longest match counts.
    pub ambiguous: bool,
    /// Nothing that is ignored stands before the first lexeme.
    pub starts_at_once: bool,
    pub layout: Option<Layout>,
    /// Sets of characters that lookbehinds ask for before a terminal; they part all characters, or there are none.
    pub pasts: Box<[CharSet]>,
    /// What may follow lexemes of forms, by their numbers less one.
    pub following: Box<[FollowSet]>,
    /// Whether it hangs on the text around some lexeme what it is.
    pub looks_around: bool,
}

/// The longest run of symbols that may be empty in one expansion.
const RUN: usize = 16;

/// Cost of what derives nothing.
pub const NEVER: u64 = u64::MAX / 4;

/// Cost of what derives only texts that are longer than anybody counts.
pub const ENDLESS: u64 = NEVER - 1;

/// The cost of one thing behind another. However long both are together, they derive a text where each of them does.
pub fn together(one: u64, other: u64) -> u64 {
    match one.max(other) {
        NEVER.. => NEVER,
        _ => (one + other).min(ENDLESS),
    }
}

impl Grammar {
    /// The grammar without rules.
    pub fn nothing() -> Self {
        Grammar { segmented: true, ..Grammar::default() }
    }

    pub fn cost(&self, symbol: Symbol) -> u64 {
        match symbol {
            Symbol::Terminal(t) => self.terminals[t as usize].cost,
            Symbol::Rule(r) => self.costs[r as usize],
        }
    }
}

pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(Kind::InvalidGrammar, message)
}

/// Reads a grammar and the languages of its terminals.
pub fn read(structure: GrammarSpec) -> Result<(Grammar, Box<Lexicon>)> {
    let mut lexicon = Box::default();
    let grammar = read_with(structure, &mut lexicon, &Parts::default())?;
    Ok((grammar, lexicon))
}

/// The same, with some of the declared terminals bound to constraints.
pub fn read_with(structure: GrammarSpec, lexicon: &mut Lexicon, parts: &Parts) -> Result<Grammar> {
    let GrammarSpec { segmented, ambiguous, starts_at_once, .. } = structure;
    let ignored: KeyedSet<&str> = structure.ignore.iter().map(String::as_str).collect();
    let mut terminals = Vec::new();
    let mut order: Vec<Entry> = Vec::new();
    let mut looking: Vec<(usize, Pattern)> = Vec::new();
    for entry in structure.terminals {
        let (term, pattern) = terminals::read(&mut lexicon.terms, &entry, segmented)?;
        looking.extend(pattern.map(|pattern| (terminals.len(), pattern)));
        let ignored = ignored.contains(entry.name.as_str());
        let cost = match term {
            Terms::EMPTY => NEVER,
            _ => lexicon.terms.least_length(term).map_or(1, u64::from),
        };
        terminals.push(Terminal {
            name: entry.name.clone(),
            term: Some(term),
            ignored,
            lazy: entry.lazy,
            literal: entry.literal.clone().filter(|_| entry.flags.is_empty()),
            cost,
            ..Terminal::default()
        });
        order.push(entry);
    }
    rank(&mut lexicon.terms, &mut terminals, &order);
    for name in structure.declare {
        let (part, cost) = parts.known.get(&name).map_or((None, 0), |&(part, cost)| (Some(part), cost));
        terminals.push(Terminal { name, rank: u32::MAX, part, cost, ..Terminal::default() });
    }
    let pasts = terminals::look_around(&mut lexicon.terms, &mut terminals, &looking)?;
    let layout = Layout::read(&structure.indenter, &terminals, &mut lexicon.terms)?;
    for terminal in &terminals {
        let shown = layout.as_ref().is_some_and(|l| l.has(&terminal.name));
        if !terminal.has_text() && !shown {
            return Err(invalid(format!(
                "The terminal {} is declared and has no pattern; give it one, or name it in an indenter line",
                terminal.name
            )));
        }
    }
    let around = terminals.iter().find(|t| t.around.is_some());
    let looks_around = around.is_some();
    if let Some(around) = around {
        let newline = layout.as_ref().is_some_and(|l| terminals[l.newline as usize].around.is_some());
        if newline || layout.is_some() && !pasts.is_empty() {
            return Err(terminals::not_followed(&around.name));
        }
    }
    let mut following = Box::default();
    if looks_around {
        let begins = terminals::begins_of(&mut lexicon.terms, &terminals);
        following =
            split_terminals::split_terminals(&mut lexicon.terms, &mut terminals, &begins).unwrap_or_default();
    }
    let looks_around = terminals.iter().any(|t| t.around.is_some());
    if !segmented && !starts_at_once {
        let newline = layout.as_ref().map(|l| l.newline);
        leave_out_ignored(&mut lexicon.terms, &mut terminals, newline, ambiguous);
    }
    let mut grammar = Grammar {
        terminals,
        segmented,
        ambiguous,
        starts_at_once,
        layout,
        pasts,
        following,
        looks_around,
        ..Grammar::nothing()
    };
    grammar.read_rules(&structure.rules, &structure.orders, &structure.start)?;
    Ok(grammar)
}

/// What decides among matches of one length: the priority, a literal before patterns, the order of the entries.
///
/// As in Lark's lexer, a pattern that is ignored does not give way to a literal: words that both match are ignored, if the
/// pattern comes first or has all flags of the literal.
fn rank(terms: &mut Terms, terminals: &mut [Terminal], entries: &[Entry]) {
    let ignored: Vec<usize> =
        (0..entries.len()).filter(|&at| terminals[at].ignored && entries[at].literal.is_none()).collect();
    let mut order: Vec<(i64, bool, usize, usize)> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let hidden = entry.literal.as_ref().and_then(|word| {
            ignored.iter().copied().rfind(|&other| {
                let flags = entry.flags.chars().all(|flag| entries[other].flags.contains(flag));
                entries[other].priority == entry.priority
                    && (flags || other < at)
                    && terminals[other].term.is_some_and(|term| matches(terms, term, word))
            })
        });
        order.push(match hidden {
            Some(other) => (-entry.priority, true, other, at + 1),
            None => (-entry.priority, entry.literal.is_none(), at, 0),
        });
    }
    let mut ranked: Vec<usize> = (0..entries.len()).collect();
    ranked.sort_unstable_by_key(|&at| order[at]);
    for (rank, at) in ranked.into_iter().enumerate() {
        terminals[at].rank = rank as u32;
    }
}

/// Terminals whose words are all ignored have none for the rules: texts would wait for them without end.
fn leave_out_ignored(
    terms: &mut Terms,
    terminals: &mut [Terminal],
    newline: Option<u32>,
    ignored_outrank: bool,
) {
    let plain = |t: &Terminal| t.around.is_none() && t.forms.is_none() && t.form_of.is_none();
    let rank = |t: &Terminal| if ignored_outrank { 0 } else { t.rank };
    let ignored: Vec<(u32, TermId)> =
        terminals.iter().filter(|t| t.ignored && plain(t)).filter_map(|t| Some((rank(t), t.term?))).collect();
    for (at, terminal) in (0u32..).zip(terminals) {
        let first = ignored.iter().filter(|other| other.0 <= terminal.rank).map(|other| other.1);
        let mut read: Vec<TermId> = first.map(|words| terms.not(words)).collect();
        let Some(term) = terminal.term.filter(|_| plain(terminal) && !read.is_empty()) else { continue };
        read.push(term);
        let read = terms.and(&read);
        let live = crate::work::naming(|| format!("The terminal {}", terminal.name), || terms.live(read));
        if !live && newline != Some(at) {
            terminal.cost = NEVER;
        }
    }
}

fn matches(terms: &mut Terms, term: TermId, word: &str) -> bool {
    let rest = word.chars().fold(term, |term, letter| terms.derive(term, u32::from(letter)));
    terms.nullable(rest)
}

impl Grammar {
    fn read_rules(
        &mut self,
        entries: &[(String, Vec<String>)],
        orders: &[OrderEntry],
        start: &str,
    ) -> Result<()> {
        let mut symbols: KeyedMap<String, Symbol> = KeyedMap::default();
        for (i, terminal) in self.terminals.iter().enumerate().filter(|t| t.1.form_of.is_none()) {
            symbols.insert(terminal.name.clone(), Symbol::Terminal(i as u32));
        }
        for origin in entries.iter().map(|e| &e.0).chain(orders.iter().map(|o| &o.origin)) {
            if !symbols.contains_key(origin) {
                symbols.insert(origin.clone(), Symbol::Rule(self.names.len() as u32));
                self.names.push(origin.clone());
            }
        }
        let symbol = |name: &String| {
            let found = symbols.get(name).copied();
            found.ok_or_else(|| invalid(format!("The symbol '{name}' is not defined")))
        };
        let Some(&Symbol::Rule(start)) = symbols.get(start) else {
            return Err(invalid(format!("The start rule '{start}' is not defined")));
        };
        self.start = start;
        let mut expansions: Vec<(u32, Vec<Symbol>)> = Vec::new();
        for (origin, expansion) in entries {
            let Some(&Symbol::Rule(origin)) = symbols.get(origin) else {
                return Err(invalid(format!("'{origin}' is both a terminal and a rule")));
            };
            expansions.push((origin, expansion.iter().map(symbol).collect::<Result<_>>()?));
        }
        let orders = orders.iter().map(|o| Order::read(o, symbol)).collect::<Result<Vec<_>>>()?;
        expansions.extend(Grammar::shortest_orders(&orders));
        self.settle(expansions);
        self.set_orders(orders);
        if self.costs[start as usize] >= NEVER {
            let name = &self.names[start as usize];
            let empty = self
                .terminals
                .iter()
                .find(|t| t.term == Some(Terms::EMPTY) && t.around.is_none() && t.forms.is_none());
            let used = |t: &&Terminal| entries.iter().any(|entry| entry.1.contains(&t.name));
            let ignored = self.terminals.iter().filter(|t| t.cost >= NEVER).find(used);
            let why = match (empty, ignored) {
                (Some(t), _) => Some(format!(": the terminal {} matches no text at all", t.name)),
                (None, Some(t)) => Some(format!(": all that the terminal {} matches is ignored", t.name)),
                (None, None) => None,
            };
            return Err(Error::new(
                Kind::UnsatisfiableGrammar,
                format!("The start rule '{name}' derives no text{}", why.unwrap_or_default()),
            ));
        }
        Ok(())
    }

    /// Takes the expansions over: what can derive a text is kept.
    pub(super) fn settle(&mut self, mut expansions: Vec<(u32, Vec<Symbol>)>) {
        self.chain(&mut expansions);
        crate::lists::sort_unique(&mut expansions);
        let unknown = vec![NEVER; self.names.len()];
        (self.costs, self.shortest) = shortest(unknown.clone(), self.terminal_costs(), &expansions);
        expansions.retain(|(_, body)| body.iter().all(|&s| self.cost(s) < NEVER));
        let without_text = shortest(unknown, |_| NEVER, &expansions).0;
        self.nullable = without_text.into_iter().map(|cost| cost < NEVER).collect();
        self.share_runs(&mut expansions);
        self.by_rule = vec![Vec::new(); self.names.len()];
        for (origin, body) in expansions.into_iter().filter(|e| !e.1.is_empty()) {
            self.by_rule[origin as usize].push(self.expansions.len() as u32);
            self.expansions.push(self.expansion(origin, body));
        }
    }

    /// `e: e "+" e | x` as `e: t | e "+" t`, `t: x`: the same texts, each read in one way and not in as many as there are
    /// trees over it.
    fn chain(&mut self, expansions: &mut Vec<(u32, Vec<Symbol>)>) {
        let joins = |(origin, body): &(u32, Vec<Symbol>)| {
            let own = Symbol::Rule(*origin);
            body.len() > 1 && body.first() == Some(&own) && body.last() == Some(&own)
        };
        let mut links: KeyedMap<u32, u32> = KeyedMap::default();
        for expansion in expansions.iter().filter(|e| joins(e)) {
            links.entry(expansion.0).or_insert_with(|| {
                self.names.push(self.names[expansion.0 as usize].clone());
                self.names.len() as u32 - 1
            });
        }
        for expansion in expansions.iter_mut() {
            let Some(&link) = links.get(&expansion.0) else { continue };
            if !joins(expansion) {
                expansion.0 = link;
            } else if let Some(last) = expansion.1.last_mut() {
                *last = Symbol::Rule(link);
            }
        }
        expansions.extend(links.into_iter().map(|(origin, link)| (origin, vec![Symbol::Rule(link)])));
    }

    /// The same grammar when the lengths of its parts have changed; what needs a part of the length [`NEVER`] is
    /// left out.
    pub fn with_lengths(mut self, mut length: impl FnMut(u32) -> u64) -> Self {
        self.fold_orders();
        for terminal in &mut self.terminals {
            if let Some(part) = terminal.part {
                terminal.cost = length(part);
            }
        }
        let all: Vec<(u32, Vec<Symbol>)> =
            self.expansions.iter().map(|e| (e.origin, e.symbols.to_vec())).collect();
        let known = self.nullable.iter().map(|&empty| if empty { 0 } else { NEVER }).collect();
        (self.costs, self.shortest) = shortest(known, self.terminal_costs(), &all);
        for list in &mut self.by_rule {
            let live = |&e: &u32| {
                all[e as usize].1.iter().all(|&s| match s {
                    Symbol::Terminal(t) => self.terminals[t as usize].cost < NEVER,
                    Symbol::Rule(r) => self.costs[r as usize] < NEVER,
                })
            };
            list.retain(live);
        }
        self
    }

    /// Gives rules to parts of long runs of symbols that may be empty, so that from each of n places in a run a text
    /// goes on to [`RUN`] places and not to n.
    fn share_runs(&mut self, expansions: &mut Vec<(u32, Vec<Symbol>)>) {
        let mut parts: Vec<(u32, Vec<Symbol>)> = Vec::new();
        for (origin, body) in expansions.iter_mut().filter(|e| e.1.len() > RUN) {
            let empty = |s: &Symbol| matches!(s, Symbol::Rule(r) if self.nullable[*r as usize]);
            let mut runs: Vec<Vec<Symbol>> =
                body.chunk_by(|a, b| empty(a) && empty(b)).map(<[Symbol]>::to_vec).collect();
            for run in &mut runs {
                while run.len() > RUN {
                    let shared = run.chunks(RUN).map(|part| {
                        let rule = self.names.len() as u32;
                        self.names.push(self.names[*origin as usize].clone());
                        self.costs.push(0);
                        self.shortest.push(Box::new([]));
                        self.nullable.push(true);
                        parts.push((rule, part.to_vec()));
                        Symbol::Rule(rule)
                    });
                    *run = shared.collect();
                }
            }
            *body = runs.concat();
        }
        expansions.append(&mut parts);
    }

    pub(super) fn expansion(&self, origin: u32, symbols: Vec<Symbol>) -> Expansion {
        let empty = |s: &Symbol| matches!(s, Symbol::Rule(r) if self.nullable[*r as usize]);
        let optional_from = symbols.iter().rposition(|s| !empty(s)).map_or(0, |i| i + 1) as u32;
        Expansion { origin, symbols: symbols.into(), optional_from }
    }

    fn terminal_costs(&self) -> impl Fn(u32) -> u64 + '_ {
        |terminal| self.terminals[terminal as usize].cost
    }
}

/// Costs of rules whose cost is not known yet, and the expansions that give them: the cheapest first, so each expansion
/// is looked at once for each of its rules.
pub(super) fn shortest(
    mut costs: Vec<u64>,
    terminal: impl Fn(u32) -> u64,
    expansions: &[(u32, Vec<Symbol>)],
) -> (Vec<u64>, Vec<Box<[Symbol]>>) {
    let total = |costs: &[u64], body: &[Symbol]| {
        let cost = |symbol: &Symbol| match *symbol {
            Symbol::Terminal(t) => terminal(t),
            Symbol::Rule(r) => costs[r as usize],
        };
        body.iter().fold(0, |sum, symbol| together(sum, cost(symbol)))
    };
    let mut found: Vec<Box<[Symbol]>> = vec![Box::new([]); costs.len()];
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); costs.len()];
    let mut missing: Vec<usize> = vec![0; expansions.len()];
    let mut queue = BinaryHeap::new();
    for (i, (origin, body)) in (0u32..).zip(expansions) {
        for symbol in body {
            if let Symbol::Rule(rule) = symbol {
                if costs[*rule as usize] >= NEVER {
                    users[*rule as usize].push(i);
                    missing[i as usize] += 1;
                }
            }
        }
        if missing[i as usize] == 0 {
            queue.push(Reverse((total(&costs, body), *origin, i)));
        }
    }
    while let Some(Reverse((cost, origin, i))) = queue.pop() {
        if cost >= costs[origin as usize] {
            continue;
        }
        costs[origin as usize] = cost;
        found[origin as usize] = expansions[i as usize].1.as_slice().into();
        for user in std::mem::take(&mut users[origin as usize]) {
            missing[user as usize] -= 1;
            if missing[user as usize] == 0 {
                let (origin, body) = &expansions[user as usize];
                queue.push(Reverse((total(&costs, body), *origin, user)));
            }
        }
    }
    (costs, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// `a0: a1 a1`, `a1: a2 a2`, ... so many times; the last is a letter, or a terminal without words. `ordered`: the start
    /// has the first rule twice among members in any order.
    fn doubled(times: usize, word: &str, ordered: bool) -> GrammarSpec {
        let rule = |origin: String, expansion: Vec<String>| json!({"origin": origin, "expansion": expansion, "order": 0});
        let mut rules: Vec<_> =
            (0..times).map(|i| rule(format!("a{i}"), vec![format!("a{}", i + 1); 2])).collect();
        rules.push(rule(format!("a{times}"), vec!["X".into()]));
        let members = json!([["a0", true], ["X", true], ["twice", true]]);
        rules.push(rule("twice".into(), vec!["a0".into(), "a0".into()]));
        let orders = match ordered {
            true => json!([{"origin": "all", "members": members, "others": null, "separator": "X"}]),
            false => json!([]),
        };
        GrammarSpec::from_value(
            &json!({"terminals": [{"name": "X", "pattern": word, "kind": "re", "flags": "", "priority": 0}],
            "rules": rules, "orders": orders, "ignore": [], "declare": [], "start": if ordered { "all" } else { "a0" },
            "lexer": "dynamic", "indenter": null}),
        )
    }

    #[test]
    fn texts_too_long_to_count_are_texts() {
        assert_eq!(together(2, 3), 5);
        assert_eq!(together(ENDLESS, ENDLESS), ENDLESS);
        assert_eq!(together(NEVER, 0), NEVER);
        for times in [1, 20, 60, 61, 62, 63, 64, 70, 200] {
            for ordered in [false, true] {
                let (mut grammar, _) = read(doubled(times, "x", ordered)).expect("it derives a text");
                assert_eq!(grammar.costs[0], (1u64 << times.min(63)).min(ENDLESS), "{times}");
                if ordered {
                    let all = grammar.start;
                    grammar.unfold(all);
                    assert_eq!(grammar.by_rule[all as usize].len(), 3, "{times}");
                    let symbols = grammar.by_rule[all as usize]
                        .iter()
                        .flat_map(|&e| &*grammar.expansions[e as usize].symbols);
                    assert!(symbols.copied().all(|symbol| grammar.cost(symbol) < NEVER), "{times}");
                }
                let error = read(doubled(times, "[^\\s\\S]", ordered)).err().expect("it derives none");
                assert_eq!(error.kind, Kind::UnsatisfiableGrammar, "{times}");
            }
        }
    }
}
