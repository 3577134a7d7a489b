//! Short completions of a grammar's positions, as terminals and as text.
//!
//! The plan through the open items is a shortest path: an item costs the shortest texts of the symbols that are
//! left of it, then goes on in one of the items that wait for it (Dijkstra over the item sets of the stack; Knuth
//! 1977 for the costs of rules).  The terminals of the plan are spelled one by one and every byte is checked
//! against the structure, with an ignored text between two lexemes that would run together.
//! Complexity: the items on the stack, times their logarithm, down to one from which a plan was found before.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};

use super::chart::{Chart, Continuation, Item, ItemSetId, Return};
use super::grammar::{together, Symbol, NEVER};
use super::scanned::Scanned;
use crate::automaton::byte_automaton::{step, ByteAutomaton, CtxId, Piece, Pos};
use crate::lexical::{shortest_lexeme, LexId, Lexicon, Spelling, Step, TermId, Terms};
use crate::regex::context::END;
use crate::work;

/// Items that a search may settle, terminals that a way may have, words that are tried for a terminal, positions
/// that a way is looked for through.
const SEARCH: usize = 400_000;
const TERMINALS: usize = 100_000;
const WORDS: usize = 40;
const POSITIONS: usize = 2_000;
/// Lexical states that a search for words may meet.
const LEXICAL: usize = 20_000;

/// The terminals of a shortest way from a set to the end of the start rule; `None` where it has more than `most`
/// characters.
pub(crate) fn plan(chart: &mut Chart, set: ItemSetId, most: usize) -> Option<Vec<u32>> {
    if chart.accepts(set) {
        return Some(Vec::new());
    }
    let mut search = Search::default();
    // what the set predicts begins one of these, and a rule costs as much as its shortest text
    for &item in chart.kernel(set) {
        search.offer(chart, item, 0, None);
    }
    while let Some(Reverse((cost, item, way))) = search.queue.pop() {
        if search.best.len() > SEARCH || cost > most as u64 {
            return None;
        }
        if let Some(back) = way {
            return search.plan_through(chart, item, back, cost);
        }
        if search.best[&item].0 < cost {
            continue;
        }
        for k in 0..chart.returns(item.returns).len() {
            let back = chart.returns(item.returns)[k];
            if Chart::is_end(back) {
                return search.plan_through(chart, item, back, cost);
            }
            work::spend(2);
            if let Some(known) = chart.continuations.get(&back) {
                search.queue.push(Reverse((together(cost, known.cost), item, Some(back))));
                continue;
            }
            let mut found = Vec::new();
            chart.waiting(back.set, Symbol::Rule(back.rule), &mut found);
            for waiting in found {
                search.offer(chart, Item { dot: waiting.dot + 1, ..waiting }, cost, Some((item, back)));
            }
        }
    }
    None
}

/// A search for a shortest way through the items of a stack.
#[derive(Default)]
struct Search {
    /// By the item: what the way costs up to its end, and the item before it with the return that joins them.
    best: FxHashMap<Item, (u64, Option<(Item, Return)>)>,
    /// An item, or the whole way where the one behind its return is known.
    queue: BinaryHeap<Reverse<(u64, Item, Option<Return>)>>,
}

impl Search {
    /// An item that may be gone through next, after a way that costs `before`.
    fn offer(&mut self, chart: &Chart, item: Item, before: u64, from: Option<(Item, Return)>) {
        let symbols = &chart.grammar.expansions[item.expansion as usize].symbols[item.dot as usize..];
        work::spend(2 + symbols.len() as u64 / 8);
        let total = symbols.iter().fold(before, |sum, &s| together(sum, chart.grammar.cost(s)));
        if total < NEVER && self.best.get(&item).is_none_or(|known| total < known.0) {
            self.best.insert(item, (total, from));
            self.queue.push(Reverse((total, item, None)));
        }
    }

    /// The terminals of the way that ends with an item and goes on behind its return; each part of a shortest way is
    /// one, and is kept.
    fn plan_through(&self, chart: &mut Chart, last: Item, then: Return, total: u64) -> Option<Vec<u32>> {
        let (mut items, mut behind) = (vec![last], then);
        let (mut item, mut back) = (last, then);
        while let (_, Some((before, joined))) = self.best[&item] {
            let cost = total - self.best[&before].0;
            chart.continuations.insert(joined, Continuation { cost, item, then: back });
            items.push(before);
            (item, back) = (before, joined);
        }
        items.reverse();
        while !Chart::is_end(behind) {
            let continuations = chart.continuations[&behind];
            items.push(continuations.item);
            behind = continuations.then;
        }
        work::spend(items.len() as u64);
        spell_out(chart, &items)
    }
}

/// The terminals that complete some items, one after the other, rules replaced by their shortest texts.
fn spell_out(chart: &Chart, items: &[Item]) -> Option<Vec<u32>> {
    let (mut out, mut stack): (Vec<u32>, Vec<Symbol>) = Default::default();
    for item in items {
        let symbols = &chart.grammar.expansions[item.expansion as usize].symbols;
        stack.extend(symbols[item.dot as usize..].iter().rev());
        while let Some(symbol) = stack.pop() {
            work::spend(1);
            match symbol {
                Symbol::Terminal(t) => out.push(t),
                Symbol::Rule(r) => stack.extend(chart.grammar.shortest_of(r).iter().rev()),
            }
            if out.len() > TERMINALS {
                return None;
            }
        }
    }
    Some(out)
}

/// Pieces from a position to an accepted end.
pub(crate) fn complete(machine: &mut Scanned, mut pos: Pos, most: usize) -> Option<Vec<Piece>> {
    let (mut out, here) = (Vec::new(), pos);
    if machine.accepting(pos, &[]) {
        return Some(out);
    }
    if !is_between_lexemes(machine, pos) {
        let begun = machine.unguarded(pos);
        let (bytes, lex) = match machine.chart.grammar.looks_around {
            false => shortest_lexeme(&mut machine.lexicon, begun.lex, most)?,
            true => shortest_end(machine, begun.lex)?,
        };
        if begun == pos {
            pos.lex = lex;
        } else {
            // the shortest end may be one that leads nowhere
            let Some(end) = walk(machine, pos, &bytes) else { return search_positions(machine, here, most) };
            pos = end;
        }
        push(&mut out, bytes);
    }
    if let Some(rest) = follow_plan(machine, pos, most) {
        return Some(joined(out, rest));
    }
    // the lexeme ends only with a line break, which is a lexeme of its own
    if let Some(broken) = walk(machine, pos, b"\n") {
        if let Some(rest) = follow_plan(machine, broken, most) {
            push(&mut out, b"\n".to_vec());
            return Some(joined(out, rest));
        }
    }
    search_positions(machine, here, most)
}

/// Pieces from a context, before the next lexeme, to an accepted end.
pub(crate) fn complete_from(machine: &mut Scanned, ctx: CtxId, most: usize) -> Option<Vec<Piece>> {
    let pos = Pos { ctx, lex: machine.begin(ctx) };
    follow_plan(machine, pos, most).or_else(|| search_positions(machine, pos, most))
}

/// A shortest way through the positions themselves, for plans whose lexemes can't be told apart one by one: after
/// the `a` of `"a" c | "acc"` a `c` begins no lexeme yet.
fn search_positions(machine: &mut Scanned, pos: Pos, most: usize) -> Option<Vec<Piece>> {
    let mut known: FxHashMap<Pos, (Pos, u8)> = FxHashMap::default();
    let mut queue = VecDeque::from([(pos, 0)]);
    while let Some((at, length)) = queue.pop_front() {
        if known.len() > POSITIONS || length >= most {
            return None;
        }
        work::spend(64); // each byte is tried
        for byte in 0..=255 {
            let Some(next) = step(machine, at, &mut Vec::new(), byte) else { continue };
            if next == pos || known.contains_key(&next) {
                continue;
            }
            known.insert(next, (at, byte));
            if machine.accepting(next, &[]) {
                let (mut text, mut back) = (Vec::new(), next);
                while back != pos {
                    let (before, byte) = known[&back];
                    text.push(byte);
                    back = before;
                }
                text.reverse();
                return Some(vec![Piece::Bytes(text)]);
            }
            queue.push_back((next, length + 1));
        }
    }
    None
}

/// Whether no lexeme has begun.
fn is_between_lexemes(machine: &mut Scanned, pos: Pos) -> bool {
    let real = machine.unguarded(pos);
    machine.is_start(pos) || machine.begin_unguarded(real.ctx) == real.lex
}

fn push(out: &mut Vec<Piece>, bytes: Vec<u8>) {
    match out.last_mut() {
        _ if bytes.is_empty() => {}
        Some(Piece::Bytes(text)) => text.extend(bytes),
        _ => out.push(Piece::Bytes(bytes)),
    }
}

/// Two ways, one after the other; neighbouring texts become one.
pub(crate) fn joined(mut first: Vec<Piece>, second: Vec<Piece>) -> Vec<Piece> {
    for piece in second {
        match piece {
            Piece::Bytes(text) => push(&mut first, text),
            token => first.push(token),
        }
    }
    first
}

/// The plan from the end of a lexeme (or from before one), spelled.
fn follow_plan(machine: &mut Scanned, mut pos: Pos, most: usize) -> Option<Vec<Piece>> {
    let mut out = Vec::new();
    if machine.accepting(pos, &[]) {
        return Some(out);
    }
    let begun = machine.unguarded(pos);
    let mut expected = if is_between_lexemes(machine, pos) { begun.ctx } else { after(machine, begun)? };
    let context = machine.context(expected);
    if machine.ends(context) {
        return Some(out);
    }
    let terminals = plan(&mut machine.chart, context.set, most)?;
    let mut at = 0;
    while at < terminals.len() {
        if machine.chart.grammar.terminals[terminals[at] as usize].part.is_some() {
            spell_part(machine, pos, terminals[at], &mut out)?;
            expected = machine.after(expected, terminals[at])?;
            pos = Pos { ctx: expected, lex: machine.begin(expected) };
            at += 1;
        } else {
            let (place, term, read) = machine.next_place(expected, &terminals[at..])?;
            let (word, next) = spell_terminal(machine, pos, expected, place, term)?;
            push(&mut out, word);
            pos = next;
            at += read;
            let begun = machine.unguarded(pos);
            let grammar = &machine.chart.grammar;
            let place = match grammar.following.is_empty() && !grammar.ambiguous {
                true => place,
                false => machine.terminal_at_end(begun.lex)?,
            };
            expected = machine.after(begun.ctx, place)?;
        }
        let context = machine.context(expected);
        if machine.ends(context) {
            return Some(out);
        }
    }
    None
}

/// A short text of a constraint that stands for a terminal, apart from the lexeme before it.
fn spell_part(machine: &mut Scanned, pos: Pos, terminal: u32, out: &mut Vec<Piece>) -> Option<()> {
    let word = machine.parts.get(&terminal)?.word.clone()?;
    let first = match word.first() {
        Some(Piece::Bytes(text)) => text.first().copied(),
        _ => None,
    };
    if !is_between_lexemes(machine, pos) {
        let gap = ignored_texts(machine).into_iter().find(|gap| {
            let Some(end) = walk(machine, pos, gap) else { return false };
            let ended = machine.after_lexeme(end).is_some();
            ended && first.is_none_or(|b| machine.lexicon.step(end.lex, b) == Step::Dead)
        })?;
        push(out, gap);
    }
    *out = joined(std::mem::take(out), word);
    Some(())
}

/// Texts that may stand between two lexemes.
fn ignored_texts(machine: &mut Scanned) -> Vec<Vec<u8>> {
    // a line break ends comments that a blank does not
    let mut ignored_texts: Vec<Vec<u8>> = vec![Vec::new(), b" ".to_vec(), b"\n".to_vec()];
    for term in machine.ignored_terms() {
        let lex = machine.lexicon.at(Spelling::Raw, term);
        ignored_texts.extend(words(&mut machine.lexicon, lex, 3));
    }
    ignored_texts
}

/// A word of a terminal that the lexer reads as that terminal, and the position at its end.
fn spell_terminal(
    machine: &mut Scanned,
    pos: Pos,
    expected: CtxId,
    place: u32,
    term: TermId,
) -> Option<(Vec<u8>, Pos)> {
    let ignored_texts = ignored_texts(machine);
    let mut spelled = Vec::new();
    for term in machine.spelled_as(expected, place, term) {
        let begin = machine.lexicon.at(Spelling::Raw, term);
        spelled.extend(words(&mut machine.lexicon, begin, WORDS));
    }
    for gap in &ignored_texts {
        let Some(from) = walk(machine, pos, gap) else { continue };
        for word in &spelled {
            let Some(next) = walk(machine, from, word) else { continue };
            let begun = machine.unguarded(next);
            if machine.is_alike(begun.ctx, expected) && machine.may_be_terminal(begun.lex, place) {
                return Some(([gap.as_slice(), word].concat(), next));
            }
        }
    }
    None
}

/// The context behind a lexeme as far as it was read.
fn after(machine: &mut Scanned, pos: Pos) -> Option<CtxId> {
    let place = machine.terminal_at_end(pos.lex)?;
    machine.after(pos.ctx, place)
}

/// The shortest way to where a lexeme may end, before some character or none.
fn shortest_end(machine: &mut Scanned, begin: LexId) -> Option<(Vec<u8>, LexId)> {
    let mut ways = LexicalQueue::from(begin);
    while let Some((lex, text)) = ways.next(&mut machine.lexicon) {
        if machine.terminal_at_end(lex).is_some() {
            return Some((text.into_bytes(), lex));
        }
    }
    None
}

/// Lexical states and the ways to them, the nearest first.
struct LexicalQueue {
    seen: FxHashSet<LexId>,
    queue: VecDeque<(LexId, String)>,
}

impl LexicalQueue {
    fn from(begin: LexId) -> Self {
        LexicalQueue { seen: FxHashSet::from_iter([begin]), queue: VecDeque::from([(begin, String::new())]) }
    }

    fn next(&mut self, lexicon: &mut Lexicon) -> Option<(LexId, String)> {
        let (lex, text) = self.queue.pop_front()?;
        work::spend(1 + text.len() as u64 / 16);
        for (c, next) in lexicon.representatives(lex) {
            if self.seen.len() < LEXICAL && self.seen.insert(next) {
                self.queue.push_back((next, format!("{text}{c}")));
            }
        }
        Some((lex, text))
    }
}

/// Whether a language with what may follow its words has one here.
fn ends_before_some(lexicon: &mut Lexicon, lex: LexId) -> bool {
    lexicon.term(lex).is_some_and(|(_, term)| lexicon.terms.derive(term, END) != Terms::EMPTY)
}

fn walk(machine: &mut Scanned, mut pos: Pos, bytes: &[u8]) -> Option<Pos> {
    for &byte in bytes {
        pos = step(machine, pos, &mut Vec::new(), byte)?;
    }
    Some(pos)
}

/// Some words of a language, shortest first, one for each state at which a word ends.
fn words(lexicon: &mut Lexicon, begin: LexId, most: usize) -> Vec<Vec<u8>> {
    let (mut out, mut ways) = (Vec::new(), LexicalQueue::from(begin));
    while let Some((lex, text)) = ways.next(lexicon).filter(|_| out.len() < most) {
        if lexicon.outcome(lex) != Lexicon::NONE || ends_before_some(lexicon, lex) {
            out.push(text.into_bytes());
        }
    }
    out
}
