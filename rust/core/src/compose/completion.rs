//! Short completions of a composition, and what is expected at a position.
//!
//! A completion finishes the part that is being read, then follows the shortest plan of each host around it.
//! Complexity: one plan per host.

use rustc_hash::FxHashMap;

use super::{CompositeAutomaton, OuterGrammar, Part, ReturnId, Thread, ThreadRun, TokenSpelling, END};
use crate::automaton::byte_automaton::{Piece, Seen};
use crate::automaton::{ByteAutomaton, CtxId, Pos};
use crate::cfg::chart::ItemSetId;
use crate::cfg::completion;
use crate::cfg::fold;
use crate::cfg::grammar::{Grammar, ENDLESS, NEVER};
use crate::cfg::scanned::Opening;
use crate::lexical::{shortest_lexeme, LexId, Spelling, TermId, Terms, LONGEST};
use crate::work;

/// Bytes that a special token counts for in a completion.
const TOKEN: usize = 4;
/// Most things that a message lists.
const SHOWN: usize = 12;

pub(super) fn length(way: &[Piece]) -> usize {
    way.iter().map(|p| if let Piece::Bytes(text) = p { text.len() } else { TOKEN }).sum()
}

impl CompositeAutomaton {
    /// The shortest of the threads' completions.
    pub(super) fn shortest_completion(&mut self, threads: &[Thread], most: usize) -> Option<Vec<Piece>> {
        if self.accepts(threads) {
            return Some(Vec::new());
        }
        let mut best: Option<Vec<Piece>> = None;
        for thread in threads {
            let Some(way) = self.completion_of(thread, most) else { continue };
            if best.as_ref().is_none_or(|b| length(&way) < length(b)) {
                best = Some(way);
            }
        }
        best
    }

    fn completion_of(&mut self, thread: &Thread, most: usize) -> Option<Vec<Piece>> {
        let mut out = Vec::new();
        match thread.run {
            ThreadRun::Done => {}
            ThreadRun::Special(token) => out.push(Piece::Token(token)),
            ThreadRun::Language(lex) => {
                out = completion::joined(out, vec![Piece::Bytes(self.shortest_word(lex, most)?)])
            }
            ThreadRun::Lexeme { host, pos } => {
                out = self.with_lexer(host, |s| completion::complete(s, pos, most))?
            }
            ThreadRun::Json { machine, pos, text } => {
                let text = self.texts[text as usize].clone();
                let rest = self.with_json(machine, |m| m.completion_bytes(pos, &text, most))?;
                out = completion::joined(out, vec![Piece::Bytes(rest)]);
            }
            ThreadRun::Branches(place) => out = completion::joined(out, self.branch_completion(place)?),
            ThreadRun::Quoted(quote) => {
                let (mut text, machine, pos) = self.finish_quote(quote)?;
                text.extend(self.with_json(machine, |m| m.completion_bytes(pos, &[], most))?);
                out.push(Piece::Bytes(text));
            }
        }
        self.go_out(thread.return_id, &mut out, most)?;
        Some(out)
    }

    /// Adds the completions of the hosts around a part that has ended.
    fn go_out(&mut self, mut at: ReturnId, out: &mut Vec<Piece>, most: usize) -> Option<()> {
        while at != END {
            let return_id = self.return_address(at);
            let frame =
                *self.frames_after(return_id.host, &[(return_id.frame, return_id.terminal)]).first()?;
            let way = self.completion_from(return_id.host, frame, most)?;
            *out = completion::joined(std::mem::take(out), way);
            if length(out) > most {
                return None;
            }
            at = return_id.up;
        }
        Some(())
    }

    /// A completion from a frame of a host to the end of the host's text.
    fn completion_from(&mut self, host: u32, frame: u32, most: usize) -> Option<Vec<Piece>> {
        if self.frame_ends(host, frame) {
            return Some(Vec::new());
        }
        if matches!(self.hosts[host as usize], OuterGrammar::Lexed(_)) {
            return self.with_lexer(host, |s| completion::complete_from(s, CtxId(frame), most));
        }
        let plan = completion::plan(self.chart(host), ItemSetId(frame), most)?;
        let mut out = Vec::new();
        for terminal in plan {
            let entry = &self.chart(host).grammar.terminals[terminal as usize];
            let word = match (entry.part, entry.term) {
                (Some(part), _) => self.word_of(part)?,
                (None, term) => {
                    let lex = self.lexicon.at(Spelling::Raw, term?);
                    vec![Piece::Bytes(self.shortest_word(lex, most)?)]
                }
            };
            out = completion::joined(out, word);
        }
        Some(out)
    }

    fn shortest_word(&mut self, lex: LexId, most: usize) -> Option<Vec<u8>> {
        shortest_lexeme(&mut self.lexicon, lex, most).map(|w| w.0)
    }

    /// A short text of a part.
    pub(super) fn word_of(&mut self, part: u32) -> Option<Vec<Piece>> {
        memo!(self.words, part, self.find_word(part))
    }

    /// Whether a part has texts, even if they are too long to be spelled.
    fn has_words(&mut self, part: u32) -> bool {
        self.word_of(part).is_some()
            || match &self.parts[part as usize] {
                Part::Language(..) | Part::Json(_) => true,
                Part::Tokens { term, .. } => *term != Terms::EMPTY,
                Part::TokenText { absent, .. } => !absent,
                Part::Special { .. } => false,
                &Part::Branches(list) => (0..self.lists[list as usize].len()).any(|at| {
                    let part = self.branch(list, at);
                    self.has_words(part)
                }),
                &Part::OuterGrammar(host) => {
                    let grammar = &self.chart(host).grammar;
                    let parts: Vec<u32> = grammar.terminals.iter().filter_map(|t| t.part).collect();
                    let derives = grammar.costs[grammar.start as usize] < NEVER;
                    derives
                        && (matches!(self.hosts[host as usize], OuterGrammar::Plain(_))
                            || parts.into_iter().all(|part| self.has_words(part)))
                }
            }
    }

    fn find_word(&mut self, part: u32) -> Option<Vec<Piece>> {
        match &self.parts[part as usize] {
            Part::Tokens { tokens, .. } if !tokens.is_empty() => Some(vec![Piece::Token(tokens[0])]),
            Part::TokenText { absent: true, .. } => None,
            Part::Language(term, _) | Part::Tokens { term, .. } | Part::TokenText { term, .. } => {
                let lex = self.lexicon.at(Spelling::Raw, *term);
                Some(vec![Piece::Bytes(self.shortest_word(lex, LONGEST)?)])
            }
            Part::Special { tokens, ends: false, .. } if !tokens.is_empty() => {
                let token = tokens.iter().find(|t| !self.eos.contains(t)).copied()?;
                Some(vec![Piece::Token(token)])
            }
            Part::Special { tokens, spelled: TokenSpelling::Unknown, .. } if !tokens.is_empty() => {
                Some(vec![Piece::Token(tokens[0])])
            }
            Part::Special { text, spelled, .. } => {
                (*spelled != TokenSpelling::Never).then(|| vec![Piece::Bytes(text.as_bytes().to_vec())])
            }
            &Part::Json(machine) => {
                let text = self.with_json(machine, |m| {
                    m.start().and_then(|pos| m.completion_bytes(pos, &[], LONGEST))
                })?;
                Some(vec![Piece::Bytes(text)])
            }
            &Part::Branches(list) => {
                let place = self.first_place(list);
                self.branch_completion(place)
            }
            &Part::OuterGrammar(host) => {
                let frame = self.first_frame(host);
                self.completion_from(host, frame, LONGEST)
            }
        }
    }

    /// Reads the hosts without a lexer from `first` on again when the special tokens are known, inner hosts first: with the
    /// lengths of their parts, and with their regular rules as terminals.
    pub(super) fn read_hosts_again(&mut self, first: usize) {
        for host in first..self.hosts.len() {
            let OuterGrammar::Plain(chart) = &mut self.hosts[host] else { continue };
            let mut grammar = std::mem::replace(&mut chart.grammar, Grammar::nothing());
            let mut lengths: FxHashMap<u32, u64> = FxHashMap::default();
            for terminal in &mut grammar.terminals {
                let Some(part) = terminal.part else { continue };
                let longer = if self.has_words(part) { ENDLESS } else { NEVER };
                lengths.insert(part, self.word_of(part).map_or(longer, |way| length(&way) as u64));
                if let Some(term) = self.text_alone(part) {
                    (terminal.part, terminal.term) = (None, Some(term));
                    terminal.cost = self.lexicon.terms.least_length(term).map_or(1, u64::from);
                }
            }
            grammar = grammar.with_lengths(|part| lengths.get(&part).copied().unwrap_or(NEVER));
            if grammar.terminals.iter().any(|t| t.term.is_some()) {
                grammar = fold::fold(grammar, &mut self.lexicon, |part| self.parts[part as usize].has_text());
            }
            self.hosts[host] = self.host_of(grammar).unwrap_or_else(|error| work::refuse(error));
        }
    }

    /// The language of a part that stands for no special token.
    fn text_alone(&mut self, part: u32) -> Option<TermId> {
        match &self.parts[part as usize] {
            Part::Tokens { term, tokens, .. } if tokens.is_empty() => Some(*term),
            Part::Special { text, spelled: TokenSpelling::Unknown, tokens, .. } if tokens.is_empty() => {
                Some(self.lexicon.terms.literal(text))
            }
            _ => None,
        }
        .filter(|&term| !self.lexicon.terms.nullable(term) && term != Terms::EMPTY)
    }

    /// Gives the hosts with a lexer from `first` on the beginnings of the parts inside them, inner hosts
    /// first.
    pub(super) fn open_lexers(&mut self, first: usize) {
        for host in first as u32..self.hosts.len() as u32 {
            if matches!(self.hosts[host as usize], OuterGrammar::Plain(_)) {
                continue;
            }
            let all = (0u32..).zip(&self.chart(host).grammar.terminals);
            let parts: Vec<(u32, u32)> = all.filter_map(|(i, t)| t.part.map(|p| (i, p))).collect();
            for (terminal, part) in parts {
                if !self.has_words(part) {
                    continue;
                }
                let word = self.word_of(part);
                let threads = self.threads_of(part);
                let token = threads.iter().any(|t| matches!(t.run, ThreadRun::Special(_)));
                let first = self.first_bytes(&threads);
                self.with_lexer(host, |s| s.parts.insert(terminal, Opening { first, token, word }));
            }
        }
    }

    /// What the threads of a position expect.
    pub(super) fn in_words(&mut self, pos: Pos, seen: Seen) -> (Vec<String>, Option<String>) {
        let threads = self.threads_at(pos, &[]);
        let mut all: Vec<Thread> = threads.clone();
        for thread in &threads {
            if thread.return_id != END && self.ends(thread) {
                all.extend(self.close_threads(&[thread.return_id]).iter());
            }
        }
        crate::lists::sort_unique(&mut all);
        let (mut out, mut place) = (Vec::new(), None);
        // the machine knows one short text of a string's grammar; the grammar's own threads say more
        let quoted = all.iter().any(|t| matches!(t.run, ThreadRun::Quoted(_)));
        for thread in &all {
            if quoted && matches!(thread.run, ThreadRun::Json { .. }) {
                place = place.or(self.thread_in_words(thread, seen).1);
                continue;
            }
            let (words, at) = self.thread_in_words(thread, seen);
            out.extend(words.into_iter().filter(|w| w != "the end of the text"));
            place = place.or(at);
        }
        if self.accepts(&threads) {
            out.push("the end of the text".into());
        }
        let mut seen = rustc_hash::FxHashSet::default();
        out.retain(|w| seen.insert(w.clone()));
        if out.len() > SHOWN {
            let more = out.len() - SHOWN;
            out.truncate(SHOWN);
            out.push(format!("{more} other things"));
        }
        (out, place)
    }

    fn thread_in_words(&mut self, thread: &Thread, seen: Seen) -> (Vec<String>, Option<String>) {
        match thread.run {
            ThreadRun::Done => (Vec::new(), None),
            ThreadRun::Special(token) => {
                let text = self.parts.iter().find_map(|part| match part {
                    Part::Special { text, tokens, .. } if tokens.contains(&token) => Some(text.clone()),
                    _ => None,
                });
                (
                    vec![format!("the special token {}", text.unwrap_or_else(|| token.0.to_string().into()))],
                    None,
                )
            }
            ThreadRun::Language(lex) => (self.lexicon.in_words(lex), None),
            ThreadRun::Lexeme { host, pos } => self.with_lexer(host, |s| s.describe(pos, seen)),
            ThreadRun::Json { machine, pos, .. } => self.with_json(machine, |m| m.describe(pos, seen)),
            ThreadRun::Branches(place) => (self.branches_in_words(place, SHOWN), None),
            ThreadRun::Quoted(quote) => {
                let quote = self.quotes[quote as usize].clone();
                if !quote.pending.is_empty() {
                    return (vec!["the rest of an escape".into()], None);
                }
                let inner = quote.threads.iter().map(|t| self.thread_in_words(t, seen));
                let mut words: Vec<String> = inner.flat_map(|w| w.0).collect();
                if self.accepts(&quote.threads) {
                    words.push("the closing quote".into());
                }
                (words, None)
            }
        }
    }
}
