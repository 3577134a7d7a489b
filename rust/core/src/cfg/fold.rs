//! Folding: regular parts of a grammar become terminals, and a grammar without a lexer gets one where that is equivalent.
//!
//! Purpose: a string spelled character by character is as quick as a pattern, and a grammar over characters (GBNF)
//! as one with a lexer.
//! Invariant: the language stays the same. With every segmentation allowed, a rule whose language is regular may be
//! one terminal; longest match may replace all segmentations where it finds the only one (`cuts.rs`).
//! Source: Arden's rule for the equations of a right- or left-linear grammar.
//! Complexity: linear in the grammar, times the states of a rule's language (bounded).
//! Rejected: folding where something is ignored (it may stand between any two characters).

use rustc_hash::FxHashSet;

use super::cuts::is_unambiguous;
use super::cycles::components;
use super::grammar::{Grammar, Symbol, Terminal};
use crate::lexical::{Lexicon, TermId, Terms};

/// States of the language of a rule that becomes a terminal, beside one for each letter that the grammar spells; those
/// visited for all rules before only `STATES` are granted; parts of states that are looked at for one language and for
/// all (a state of 5,000 optional letters in a row has 5,000 parts); and rules that may depend on each other in a
/// circle.
const STATES: usize = 200;
const ALL_STATES: usize = 200_000;
const PARTS: usize = 100_000;
const ALL_PARTS: usize = 1_000_000;
const CIRCLE: usize = 6;

/// The same language with fewer symbols, read by a lexer where that makes no difference. `spelled`: whether a part has texts
/// of its own; one that has none, a special token, is a border that no lexeme crosses.
pub fn fold(grammar: Grammar, lexicon: &mut Lexicon, spelled: impl Fn(u32) -> bool) -> Grammar {
    let plain = grammar.layout.is_none()
        && grammar.orders.is_empty()
        && grammar.terminals.iter().all(|t| t.has_text() && !t.ignored && t.around.is_none())
        && grammar.following.is_empty();
    let with_parts = grammar.terminals.iter().any(|t| t.part.is_some_and(&spelled));
    let letters = grammar.terminals.iter().filter_map(|t| t.literal.as_ref()).map(|word| word.len()).sum();
    if !plain || !(grammar.segmented || is_unambiguous(&grammar, &mut lexicon.terms, letters)) {
        return grammar;
    }
    let mut size = Size { most: STATES + letters, left: ALL_STATES, parts: ALL_PARTS };
    for joined in [true, false] {
        let mut folded = rewrite(&grammar, &mut lexicon.terms, &mut size, joined);
        if with_parts {
            return folded;
        }
        if is_unambiguous(&folded, &mut lexicon.terms, letters) {
            folded.segmented = false;
            return folded;
        }
    }
    grammar
}

/// The grammar with its regular rules as terminals; `joined`: neighbours in one expansion become one.
fn rewrite(grammar: &Grammar, terms: &mut Terms, size: &mut Size, joined: bool) -> Grammar {
    let regular = regular_rules(grammar, terms, size);
    let (names, start, segmented) = (grammar.names.clone(), grammar.start, grammar.segmented);
    let mut made =
        Maker { terms, size, terminals: Vec::new(), known: Default::default(), parts: Default::default() };
    let mut rules: Vec<(u32, Vec<Symbol>)> = Vec::new();
    for (rule, term) in (0u32..).zip(&regular) {
        match term {
            Some(term) => {
                let nonempty = made.nonempty(*term);
                if nonempty != Terms::EMPTY {
                    rules.push((rule, vec![made.terminal(nonempty, &names[rule as usize])]));
                }
            }
            None => {
                for &e in &grammar.by_rule[rule as usize] {
                    let body = &grammar.expansions[e as usize].symbols;
                    rules.push((rule, made.body(grammar, &regular, body, joined)));
                }
            }
        }
        if grammar.nullable[rule as usize] {
            rules.push((rule, Vec::new()));
        }
    }
    let terminals = made.terminals;
    let mut out = Grammar { terminals, names, start, segmented, ..Grammar::nothing() };
    out.settle(rules);
    out
}

/// The language of each rule that has a regular one which is small enough.
fn regular_rules(grammar: &Grammar, terms: &mut Terms, size: &mut Size) -> Vec<Option<TermId>> {
    let mut regular: Vec<Option<TermId>> = vec![None; grammar.names.len()];
    let inner = |rule: u32| -> Vec<u32> {
        let symbols = grammar.by_rule[rule as usize].iter();
        let symbols = symbols.flat_map(|&e| grammar.expansions[e as usize].symbols.iter());
        symbols.filter_map(|s| if let Symbol::Rule(r) = s { Some(*r) } else { None }).collect()
    };
    for circle in components(grammar.names.len(), inner) {
        let Some(found) = solve(grammar, terms, &regular, &circle) else { continue };
        if found.iter().all(|&term| size.is_small(terms, term)) {
            circle.iter().zip(found).for_each(|(&rule, term)| regular[rule as usize] = Some(term));
        }
    }
    regular
}

/// The languages of rules that depend on each other, where all their expansions are right-linear, or all left-linear.
fn solve(
    grammar: &Grammar,
    terms: &mut Terms,
    regular: &[Option<TermId>],
    circle: &[u32],
) -> Option<Vec<TermId>> {
    let n = circle.len();
    if n > CIRCLE {
        return None;
    }
    let own = |s: &Symbol| match s {
        Symbol::Rule(r) => circle.iter().position(|c| c == r),
        Symbol::Terminal(_) => None,
    };
    // row i: the factors of the rules of the circle, and what stands alone
    let mut rows: Vec<Vec<Vec<TermId>>> = vec![vec![Vec::new(); n + 1]; n];
    let (mut left, mut right) = (false, false);
    for (i, &rule) in circle.iter().enumerate() {
        if grammar.nullable[rule as usize] {
            rows[i][n].push(Terms::EPS);
        }
        for &e in &grammar.by_rule[rule as usize] {
            let body = &grammar.expansions[e as usize].symbols;
            let inside: Vec<usize> = (0..body.len()).filter(|&k| own(&body[k]).is_some()).collect();
            let (at, rest) = match inside[..] {
                [] => (n, &body[..]),
                [k] if k + 1 == body.len() => {
                    right |= k > 0;
                    (own(&body[k])?, &body[..k])
                }
                [0] => {
                    left = true;
                    (own(&body[0])?, &body[1..])
                }
                _ => return None,
            };
            let parts: Option<Vec<TermId>> = rest.iter().map(|&s| language(grammar, regular, s)).collect();
            rows[i][at].push(terms.concat_all(&parts?));
        }
    }
    if left && right {
        return None;
    }
    let rows = rows.iter().map(|row| row.iter().map(|parts| terms.or(parts)).collect()).collect();
    Some(eliminate(terms, rows, left))
}

/// Solves the equations: row i is the sum of its factors with the unknowns and of what stands alone.
fn eliminate(terms: &mut Terms, mut rows: Vec<Vec<TermId>>, left: bool) -> Vec<TermId> {
    let n = rows.len();
    let join = |terms: &mut Terms, factor: TermId, x: TermId| match left {
        true => terms.concat(x, factor),
        false => terms.concat(factor, x),
    };
    for i in 0..n {
        // Arden: X = A X + B has the least solution A* B
        let loops = terms.star(rows[i][i]);
        rows[i][i] = Terms::EMPTY;
        let solved: Vec<TermId> = rows[i].iter().map(|&x| join(terms, loops, x)).collect();
        for (j, row) in rows.iter_mut().enumerate() {
            let factor = std::mem::replace(&mut row[i], Terms::EMPTY);
            if j == i || factor == Terms::EMPTY {
                continue;
            }
            for (x, &known) in row.iter_mut().zip(&solved) {
                let more = join(terms, factor, known);
                *x = terms.or(&[*x, more]);
            }
        }
        rows[i] = solved;
    }
    rows.into_iter().map(|row| row[n]).collect()
}

fn language(grammar: &Grammar, regular: &[Option<TermId>], symbol: Symbol) -> Option<TermId> {
    match symbol {
        Symbol::Terminal(t) => grammar.terminals[t as usize].term,
        Symbol::Rule(r) => regular[r as usize],
    }
}

/// How large a language may be that becomes a terminal.
struct Size {
    most: usize,
    left: usize,
    parts: usize,
}

impl Size {
    fn is_small(&mut self, terms: &mut Terms, term: TermId) -> bool {
        let most = self.most.min(self.left).max(STATES);
        let mut seen = FxHashSet::from_iter([term]);
        let mut todo = vec![term];
        let (mut parts, granted) = (0, PARTS.min(self.parts));
        while let Some(at) = todo.pop() {
            for run in terms.delta(at).iter() {
                if run.to != Terms::EMPTY && seen.insert(run.to) {
                    let width = terms.width(run.to);
                    parts += width + width * width / 64; // a derivative of each, each of several
                    todo.push(run.to);
                }
            }
            if seen.len() > most || parts > granted {
                break;
            }
        }
        self.left = self.left.saturating_sub(seen.len());
        self.parts = self.parts.saturating_sub(parts);
        seen.len() <= most && parts <= granted
    }
}

/// New terminals, one for each language.
struct Maker<'a> {
    terms: &'a mut Terms,
    size: &'a mut Size,
    terminals: Vec<Terminal>,
    known: rustc_hash::FxHashMap<TermId, u32>,
    /// The new numbers of terminals that parts stand for.
    parts: rustc_hash::FxHashMap<u32, u32>,
}

impl Maker<'_> {
    fn nonempty(&mut self, term: TermId) -> TermId {
        if !self.terms.nullable(term) {
            return term;
        }
        let some = self.terms.not(Terms::EPS);
        let term = self.terms.and(&[term, some]);
        self.terms.prune(term)
    }

    fn terminal(&mut self, term: TermId, name: &str) -> Symbol {
        Symbol::Terminal(memo!(self.known, term, {
            let number = self.terminals.len() as u32;
            self.terminals.push(Terminal {
                name: name.to_string(),
                term: Some(term),
                rank: number,
                cost: self.terms.least_length(term).map_or(1, u64::from),
                ..Terminal::default()
            });
            number
        }))
    }

    /// A symbol that is not regular: a rule, or a terminal that a part stands for.
    fn irregular(&mut self, grammar: &Grammar, symbol: Symbol) -> Symbol {
        let Symbol::Terminal(old) = symbol else { return symbol };
        Symbol::Terminal(memo!(self.parts, old, {
            let Terminal { name, part, cost, rank, .. } = &grammar.terminals[old as usize];
            let (name, part, cost, rank) = (name.clone(), *part, *cost, *rank);
            self.terminals.push(Terminal { name, part, cost, rank, ..Terminal::default() });
            self.terminals.len() as u32 - 1
        }))
    }

    fn body(
        &mut self,
        grammar: &Grammar,
        regular: &[Option<TermId>],
        body: &[Symbol],
        joined: bool,
    ) -> Vec<Symbol> {
        let mut out = Vec::new();
        let mut run: Vec<(TermId, Symbol)> = Vec::new();
        for &symbol in body.iter().chain([&Symbol::Rule(u32::MAX)]) {
            let known =
                if symbol == Symbol::Rule(u32::MAX) { None } else { language(grammar, regular, symbol) };
            if let Some(term) = known {
                run.push((term, symbol));
                continue;
            }
            self.close(grammar, &mut run, joined, &mut out);
            out.push(self.irregular(grammar, symbol));
        }
        out.pop();
        out
    }

    /// Ends a run of regular symbols.
    fn close(
        &mut self,
        grammar: &Grammar,
        run: &mut Vec<(TermId, Symbol)>,
        joined: bool,
        out: &mut Vec<Symbol>,
    ) {
        let whole: Vec<TermId> = run.iter().map(|r| r.0).collect();
        let whole = self.terms.concat_all(&whole);
        let join =
            joined && run.len() > 1 && !self.terms.nullable(whole) && self.size.is_small(self.terms, whole);
        let symbols = std::mem::take(run);
        if join {
            let name = symbols.iter().map(|s| name_of(grammar, s.1)).collect::<Vec<_>>().join(" ");
            return out.push(self.terminal(whole, &name));
        }
        for (term, symbol) in symbols {
            out.push(match symbol {
                Symbol::Terminal(_) => self.terminal(term, &name_of(grammar, symbol)),
                rule => rule,
            });
        }
    }
}

fn name_of(grammar: &Grammar, symbol: Symbol) -> String {
    match symbol {
        Symbol::Terminal(t) => grammar.terminals[t as usize].name.clone(),
        Symbol::Rule(r) => grammar.names[r as usize].clone(),
    }
}
