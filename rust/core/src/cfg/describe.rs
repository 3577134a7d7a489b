//! What may come at a position of a grammar, for messages: texts where they are few, kinds of characters, names.

use super::grammar::Grammar;
use super::scanned::Scanned;
use crate::automaton::{ByteAutomaton, Pos};
use crate::lexical::in_words::{shortened, SHOWN};
use crate::lexical::{Lexicon, Spelling, TermId, Terms};

/// Kinds of characters that are listed beside the name of a terminal.
const KINDS: usize = 3;

/// Words for terminals and what is left of their texts, and for the end.
pub(super) fn in_words(
    grammar: &Grammar,
    lexicon: &mut Lexicon,
    left: &[(u32, Option<TermId>)],
    ends: bool,
) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for &(terminal, rest) in left {
        for word in terminal_in_words(grammar, lexicon, terminal, rest) {
            if !out.contains(&word) {
                out.push(word);
            }
        }
    }
    let mut out = shortened(out, "other things");
    if ends {
        out.push("the end of the text".into());
    }
    out
}

fn terminal_in_words(
    grammar: &Grammar,
    lexicon: &mut Lexicon,
    terminal: u32,
    rest: Option<TermId>,
) -> Vec<String> {
    let Some(terminal) = grammar.terminals.get(terminal as usize) else { return Vec::new() };
    let Some(rest) = rest.or(terminal.term) else {
        // a constraint of its own, or a change of the indentation
        return vec![if terminal.name.starts_with("JSON_SCHEMA_") {
            "JSON".into()
        } else {
            terminal.name.clone()
        }];
    };
    let few = lexicon.terms.few_words(rest).is_some();
    let lex = lexicon.at(Spelling::Raw, rest);
    let words = lexicon.in_words(lex);
    let start = grammar.names.get(grammar.start as usize);
    let named = !terminal.name.starts_with("__") && Some(&terminal.name) != start;
    match (few || !named, words.len()) {
        (true, _) => words,
        (_, 0) => Vec::new(),
        (_, 1..=KINDS) => vec![format!("{} ({})", words.join(" or "), terminal.name)],
        _ => vec![terminal.name.clone()],
    }
}

/// What the lexeme goes on with, and what may follow where it can end.
pub(super) fn describe(machine: &mut Scanned, here: Pos) -> (Vec<String>, Option<String>) {
    let pos = machine.unguarded(here);
    let begun = machine.lexicon.term(pos.lex).map(|(_, term)| term);
    let mut left: Vec<(u32, Option<TermId>)> = Vec::new();
    if !machine.is_start(here) {
        if let Some(ctx) = machine.after_lexeme(pos) {
            let set = machine.context(ctx).set;
            left.extend(machine.chart.lr0(set).terminals.iter().map(|&t| (t, None)));
        }
    }
    let read = machine.code_points(here);
    if let (None, Some(tuple)) = (&read, begun) {
        let places = machine.places_of(tuple);
        left.extend(machine.parts_of(tuple, &places));
    }
    let ignored = |t: u32| machine.chart.grammar.terminals.get(t as usize).is_some_and(|t| t.ignored);
    left.retain(|l| !ignored(l.0));
    left.truncate(4 * SHOWN);
    let ends = machine.accepting(here, &[]);
    let mut words = in_words(&machine.chart.grammar, &mut machine.lexicon, &left, ends);
    for term in read.into_iter().flatten() {
        let lex = machine.lexicon.at(Spelling::Raw, term);
        words.extend(machine.lexicon.in_words(lex));
    }
    (words, None)
}

impl Scanned {
    /// What is left of the terminals at these places of a tuple.
    fn parts_of(&self, tuple: TermId, places: &[u32]) -> Vec<(u32, Option<TermId>)> {
        let crate::lexical::term::Term::Tuple(terms) = self.lexicon.terms.get(tuple) else {
            return Vec::new();
        };
        let left = places.iter().map(|&place| (place, terms[place as usize]));
        left.filter(|l| l.1 != Terms::EPS).map(|(place, term)| (place, Some(term))).collect()
    }
}
