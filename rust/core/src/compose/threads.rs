//! Where parts begin and end: the closure of a set of threads.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{CompositeAutomaton, OuterGrammar, Part, ReturnAddress, ReturnId, Thread, ThreadRun, END};
use crate::automaton::{ByteAutomaton, CtxId, Pos};
use crate::cfg::chart::ItemSetId;
use crate::lexical::{Lexicon, Spelling, TermId};

/// Hosts whose parts ended, innermost first: (depth, host, where the host returns).
type Ended = BTreeMap<(Reverse<u32>, u32, ReturnId), Vec<(u32, u32)>>;

impl CompositeAutomaton {
    /// Threads of what may follow parts that all end at one position of the text.
    pub(super) fn close_threads(&mut self, backs: &[ReturnId]) -> Arc<[Thread]> {
        let uncounted: Vec<ReturnId>;
        let backs = match self.budgets.is_empty() {
            true => backs,
            false => {
                uncounted = backs.iter().map(|&id| self.uncounted_return(id)).collect();
                &uncounted
            }
        };
        memo!(self.settled, backs, backs.into(), {
            let mut out: Vec<Thread> = Vec::new();
            let mut ended = Ended::default();
            for &return_id in backs {
                self.end(return_id, &mut ended, &mut out);
            }
            while let Some(((_, host, up), ends)) = ended.pop_first() {
                for frame in self.frames_after(host, &ends) {
                    out.extend(self.return_to(host, frame, up).iter());
                    if self.frame_ends(host, frame) {
                        self.end(up, &mut ended, &mut out);
                    }
                }
            }
            crate::lists::sort_unique(&mut out);
            out.into()
        })
    }

    fn end(&mut self, return_id: ReturnId, ended: &mut Ended, out: &mut Vec<Thread>) {
        if return_id == END {
            out.push(Thread { return_id: END, run: ThreadRun::Done });
            return;
        }
        let ReturnAddress { host, frame, terminal, up, .. } = self.return_address(return_id);
        let key = (Reverse(self.return_address(up).depth), host, up);
        ended.entry(key).or_default().push((frame, terminal));
    }

    /// Frames (item sets or contexts) of a host after terminals that end at one position.
    pub(super) fn frames_after(&mut self, host: u32, ends: &[(u32, u32)]) -> Vec<u32> {
        match &mut self.hosts[host as usize] {
            OuterGrammar::Plain(chart) => {
                let ends: Vec<(ItemSetId, u32)> = ends.iter().map(|e| (ItemSetId(e.0), e.1)).collect();
                chart.after(&ends).map(|s| s.0).into_iter().collect()
            }
            OuterGrammar::Lexed(_) => {
                let after = |s: &mut crate::cfg::scanned::Scanned| {
                    ends.iter().filter_map(|&(ctx, t)| s.after(CtxId(ctx), t)).map(|c| c.0).collect()
                };
                self.with_lexer(host, after)
            }
        }
    }

    /// Whether the host's own text may end at a frame of it.
    pub(super) fn frame_ends(&mut self, host: u32, frame: u32) -> bool {
        match &mut self.hosts[host as usize] {
            OuterGrammar::Plain(chart) => chart.accepts(ItemSetId(frame)),
            OuterGrammar::Lexed(_) => self.with_lexer(host, |s| {
                let context = s.context(CtxId(frame));
                s.ends(context)
            }),
        }
    }

    /// The frame before the first symbol of a host.
    pub(super) fn first_frame(&mut self, host: u32) -> u32 {
        match &mut self.hosts[host as usize] {
            OuterGrammar::Plain(chart) => chart.start().0,
            OuterGrammar::Lexed(_) => self.with_lexer(host, |s| s.start_context().0),
        }
    }

    /// Threads that begin at a frame of a host.
    pub(super) fn return_to(&mut self, host: u32, frame: u32, up: ReturnId) -> Arc<[Thread]> {
        memo!(self.arrived, (host, frame, up), {
            let mut out = Vec::new();
            let terminals: Vec<u32> = match &mut self.hosts[host as usize] {
                OuterGrammar::Plain(chart) => {
                    let lr0 = chart.lr0(ItemSetId(frame)).clone();
                    let all = (0u32..).zip(&chart.grammar.terminals);
                    let ignored = all.filter(|(_, t)| t.ignored).map(|(i, _)| i);
                    let mut all: Vec<u32> = lr0.terminals.iter().copied().chain(ignored).collect();
                    crate::lists::sort_unique(&mut all);
                    all
                }
                OuterGrammar::Lexed(_) => {
                    let ctx = CtxId(frame);
                    let (lex, parts) = self.with_lexer(host, |s| (s.begin(ctx), s.parts_at(ctx).collect()));
                    if lex != Lexicon::DEAD {
                        out.push(Thread {
                            return_id: up,
                            run: ThreadRun::Lexeme { host, pos: Pos { ctx, lex } },
                        });
                    }
                    parts
                }
            };
            let depth = self.return_address(up).depth + 1;
            for terminal in terminals {
                let return_id =
                    self.intern_return(ReturnAddress { host, frame, terminal, up, depth, used: 0 });
                let entry = &self.chart(host).grammar.terminals[terminal as usize];
                match (entry.part, entry.term) {
                    (Some(part), _) => self.begin_part(part, return_id, &mut out),
                    (None, Some(term)) => self.begin_language(term, return_id, &mut out),
                    (None, None) => {}
                }
            }
            crate::lists::sort_unique(&mut out);
            out.into()
        })
    }

    pub(super) fn begin_part(&mut self, part: u32, return_id: ReturnId, out: &mut Vec<Thread>) {
        match &self.parts[part as usize] {
            Part::Language(term, _) => self.begin_language(*term, return_id, out),
            Part::TokenText { term, absent, .. } => {
                if !absent {
                    self.begin_language(*term, return_id, out);
                }
            }
            Part::Tokens { term, tokens, .. } => {
                let term = *term;
                out.extend(tokens.iter().map(|&t| Thread { return_id, run: ThreadRun::Special(t) }));
                self.begin_language(term, return_id, out);
            }
            Part::Special { text, spelled, tokens, ends } => {
                out.extend(tokens.iter().map(|&t| Thread { return_id, run: ThreadRun::Special(t) }));
                if spelled.as_text(tokens.is_empty(), *ends) {
                    let text = text.clone();
                    let term = self.lexicon.terms.literal(&text);
                    self.begin_language(term, return_id, out);
                }
            }
            &Part::Json(machine) => {
                if let Some(pos) = self.with_json(machine, |m| m.start()) {
                    out.push(Thread { return_id, run: ThreadRun::Json { machine, pos, text: 0 } });
                }
            }
            &Part::Branches(list) => {
                let place = self.first_place(list);
                out.push(Thread { return_id, run: ThreadRun::Branches(place) });
            }
            &Part::OuterGrammar(host) => {
                let frame = self.first_frame(host);
                out.extend(self.return_to(host, frame, return_id).iter());
            }
        }
    }

    fn begin_language(&mut self, term: TermId, return_id: ReturnId, out: &mut Vec<Thread>) {
        let lex = self.lexicon.at(Spelling::Raw, term);
        if lex != Lexicon::DEAD {
            out.push(Thread { return_id, run: ThreadRun::Language(lex) });
        }
    }

    /// Whether the part of a thread may end here.
    pub(super) fn ends(&mut self, thread: &Thread) -> bool {
        match thread.run {
            ThreadRun::Done => true,
            ThreadRun::Special(_) | ThreadRun::Quoted(_) | ThreadRun::Branches(_) => false,
            ThreadRun::Language(lex) => self.lexicon.outcome(lex) != Lexicon::NONE,
            ThreadRun::Lexeme { host, pos } => self.lexeme_ends(host, pos),
            ThreadRun::Json { machine, pos, text } => {
                let text = self.texts[text as usize].clone();
                self.with_json(machine, |m| m.accepting(pos, &text))
            }
        }
    }

    pub(super) fn lexeme_ends(&mut self, host: u32, pos: Pos) -> bool {
        if self.lexicon.outcome(pos.lex) == Lexicon::NONE {
            return false;
        }
        self.with_lexer(host, |s| {
            s.after_lexeme(pos).is_some_and(|ctx| {
                let context = s.context(ctx);
                s.ends(context)
            })
        })
    }

    /// Whether the whole text may end here.
    pub(super) fn accepts(&mut self, threads: &[Thread]) -> bool {
        threads.iter().any(|thread| {
            if thread.run == ThreadRun::Done {
                return true;
            }
            self.ends(thread)
                && (thread.return_id == END
                    || self.close_threads(&[thread.return_id]).iter().any(|t| t.run == ThreadRun::Done))
        })
    }

    /// Threads before the first byte.
    pub(super) fn first_threads(&mut self) -> Vec<Thread> {
        let mut out = Vec::new();
        self.begin_part(self.root, END, &mut out);
        if let Part::OuterGrammar(host) = self.parts[self.root as usize] {
            let frame = self.first_frame(host);
            if self.frame_ends(host, frame) {
                out.push(Thread { return_id: END, run: ThreadRun::Done });
            }
        }
        out.sort_unstable();
        out
    }
}
