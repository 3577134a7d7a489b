//! How threads read a byte, and which of them can be a position of their part alone.

use super::{CompositeAutomaton, CompositeContext, ReturnId, Thread, ThreadRun, END};
use crate::automaton::byte_automaton::step;
use crate::automaton::{ByteAutomaton, CtxId, Pos};
use crate::lexical::spell::{ByteSet, OutcomeId};
use crate::lexical::{LexId, Lexicon, Spelling, Step, Terms};

/// Most states of a lexeme that are visited to see how it may end.
const SEARCH: usize = 1024;

/// Whether a thread has no recorded text: a position cannot store one.
fn without_text(thread: Thread) -> bool {
    !matches!(thread.run, ThreadRun::Json { text, .. } if text != 0)
}

impl CompositeAutomaton {
    /// Reads one byte.
    pub(super) fn advance(&mut self, threads: &[Thread], byte: u8) -> Vec<Thread> {
        let mut out = Vec::new();
        let mut ended: Vec<ReturnId> = Vec::new();
        for thread in threads {
            self.step_thread(thread, byte, &mut out);
            if thread.return_id != END && self.ends(thread) {
                ended.push(thread.return_id);
            }
        }
        self.go_on(ended, byte, &mut out);
        crate::lists::sort_unique(&mut out);
        out
    }

    /// Reads a byte in what follows parts that have ended.
    pub(super) fn go_on(&mut self, mut ended: Vec<ReturnId>, byte: u8, out: &mut Vec<Thread>) {
        if ended.is_empty() {
            return;
        }
        crate::lists::sort_unique(&mut ended);
        let next = self.close_threads(&ended);
        for thread in next.iter() {
            self.step_thread(thread, byte, out);
        }
    }

    /// One byte inside the part of a thread.
    fn step_thread(&mut self, thread: &Thread, byte: u8, out: &mut Vec<Thread>) {
        let return_id = thread.return_id;
        match thread.run {
            ThreadRun::Done | ThreadRun::Special(_) => {}
            ThreadRun::Language(lex) => {
                if let Step::Stay(lex) = self.lexicon.step(lex, byte) {
                    out.push(Thread { return_id, run: ThreadRun::Language(lex) });
                }
            }
            ThreadRun::Lexeme { host, pos } => match self.lexicon.step(pos.lex, byte) {
                Step::Stay(lex) => {
                    let fresh = self.with_lexer(host, |s| s.begin(pos.ctx)) == pos.lex;
                    let pos = Pos { lex, ..pos };
                    if !fresh || self.with_lexer(host, |s| s.can_end(pos)) {
                        out.push(Thread { return_id, run: ThreadRun::Lexeme { host, pos } });
                    }
                }
                _ => {
                    let outcome = self.lexicon.outcome(pos.lex);
                    self.leave_lexeme(return_id, host, pos.ctx, outcome, byte, out);
                }
            },
            ThreadRun::Json { machine, pos, text } => {
                let mut text = self.texts[text as usize].to_vec();
                let next = self.with_json(machine, |m| step(m, pos, &mut text, byte));
                if let Some(next) = next {
                    let fresh = next.ctx != pos.ctx;
                    let text = self.text(&text);
                    self.push_json(return_id, machine, next, text, fresh, out);
                }
            }
            ThreadRun::Quoted(quote) => self.step_quoted(return_id, quote, byte, out),
            ThreadRun::Branches(place) => self.step_branches(return_id, place, byte, out),
        }
    }

    /// Adds a thread at a JSON position; a string that begins there may be a text of another grammar.
    pub(super) fn push_json(
        &mut self,
        return_id: ReturnId,
        machine: u32,
        pos: Pos,
        text: u32,
        fresh: bool,
        out: &mut Vec<Thread>,
    ) {
        if fresh && !self.holes[machine as usize].is_empty() {
            self.open_quotes(return_id, machine, pos, out);
        }
        out.push(Thread { return_id, run: ThreadRun::Json { machine, pos, text } });
    }

    /// The lexeme of a host has ended before a byte.
    fn leave_lexeme(
        &mut self,
        return_id: ReturnId,
        host: u32,
        ctx: CtxId,
        outcome: OutcomeId,
        byte: u8,
        out: &mut Vec<Thread>,
    ) {
        if outcome == Lexicon::NONE {
            return;
        }
        if let Some((outcome, begun)) = self.lexicon.behind(outcome) {
            // the code point is not part of the lexeme: what follows reads it from its first byte on
            let mut threads = Vec::new();
            self.leave_lexeme(return_id, host, ctx, outcome, begun[0], &mut threads);
            for &byte in begun[1..].iter().chain([&byte]) {
                threads = threads.iter().fold(Vec::new(), |mut next, thread| {
                    self.step_thread(thread, byte, &mut next);
                    next
                });
            }
            out.extend(threads);
            return;
        }
        if let Some(next) = self.with_lexer(host, |s| s.after_outcome(ctx, outcome)) {
            let fresh = self.return_to(host, next.0, return_id);
            for thread in fresh.iter() {
                self.step_thread(thread, byte, out);
            }
        }
    }

    /// The thread of a context has left its lexeme before a byte.
    pub(super) fn leave_one(
        &mut self,
        thread: Thread,
        outcome: OutcomeId,
        text: &[u8],
        byte: u8,
    ) -> Vec<Thread> {
        let mut out = Vec::new();
        let return_id = thread.return_id;
        let ends = match thread.run {
            ThreadRun::Language(_) => true,
            ThreadRun::Lexeme { host, pos } => {
                self.leave_lexeme(return_id, host, pos.ctx, outcome, byte, &mut out);
                return_id != END && self.outcome_ends(host, pos.ctx, outcome)
            }
            ThreadRun::Json { machine, pos, .. } => {
                let next = self.with_json(machine, |m| m.leave(pos.ctx, outcome, text, byte));
                if let Some(next) = next {
                    self.push_json(return_id, machine, next, 0, true, &mut out);
                }
                self.with_json(machine, |m| m.ends_at(pos.ctx, outcome, text))
            }
            _ => false,
        };
        if ends && return_id != END {
            self.go_on(vec![return_id], byte, &mut out);
        }
        crate::lists::sort_unique(&mut out);
        out
    }

    fn outcome_ends(&mut self, host: u32, ctx: CtxId, outcome: OutcomeId) -> bool {
        self.with_lexer(host, |s| {
            s.after_outcome(ctx, outcome).is_some_and(|next| {
                let context = s.context(next);
                s.ends(context)
            })
        })
    }

    /// The position of a set of threads.
    pub(super) fn pos_of(&mut self, threads: Vec<Thread>) -> Option<Pos> {
        match threads[..] {
            [] => None,
            [one] if without_text(one) && self.stands_alone(one) => Some(self.single(one)),
            _ => Some(self.set_of(threads)),
        }
    }

    /// The position of a set, which leaves its lexical state with every byte.
    pub(super) fn set_of(&mut self, threads: Vec<Thread>) -> Pos {
        let ctx = CtxId(self.ctxs.intern(CompositeContext::Set(threads.into())));
        Pos { ctx, lex: self.lexicon.at(Spelling::Raw, Terms::EPS) }
    }

    /// A thread as a position of its part.
    pub(super) fn single(&mut self, thread: Thread) -> Pos {
        let (run, lex) = match thread.run {
            ThreadRun::Language(lex) => (ThreadRun::Language(Lexicon::DEAD), lex),
            ThreadRun::Lexeme { host, pos } => {
                (ThreadRun::Lexeme { host, pos: Pos { ctx: pos.ctx, lex: Lexicon::DEAD } }, pos.lex)
            }
            ThreadRun::Json { machine, pos, .. } => {
                (ThreadRun::Json { machine, pos: Pos { ctx: pos.ctx, lex: Lexicon::DEAD }, text: 0 }, pos.lex)
            }
            run => (run, Lexicon::DEAD),
        };
        let ctx = CtxId(self.ctxs.intern(CompositeContext::One(Thread { run, ..thread })));
        Pos { ctx, lex }
    }

    /// The thread of a context, with the lexical state and the text of a position.
    pub(super) fn whole(&mut self, thread: Thread, lex: LexId, text: &[u8]) -> Thread {
        let run = match thread.run {
            ThreadRun::Language(_) => ThreadRun::Language(lex),
            ThreadRun::Lexeme { host, pos } => ThreadRun::Lexeme { host, pos: Pos { ctx: pos.ctx, lex } },
            ThreadRun::Json { machine, pos, .. } => {
                let text = self.text(text);
                ThreadRun::Json { machine, pos: Pos { ctx: pos.ctx, lex }, text }
            }
            run => run,
        };
        Thread { run, ..thread }
    }

    /// Whether a thread can be a position of its part alone: where the part could end, no byte extends both
    /// the part and what follows it.
    pub(super) fn stands_alone(&mut self, thread: Thread) -> bool {
        let thread = Thread { return_id: self.uncounted_return(thread.return_id), ..thread };
        memo!(self.alone, thread, {
            match thread.run {
                ThreadRun::Done | ThreadRun::Special(_) | ThreadRun::Quoted(_) | ThreadRun::Branches(_) => {
                    return false
                }
                // `step_thread` excludes bytes that begin a dead lexeme
                ThreadRun::Lexeme { host, pos }
                    if self.with_lexer(host, |s| s.may_begin_dead_lexeme(pos)) =>
                {
                    self.alone.insert(thread, false);
                    return false;
                }
                _ if thread.return_id == END => return true,
                ThreadRun::Language(_) if self.is_closed(thread.return_id) => return true,
                _ => {}
            }
            let next = self.close_threads(&[thread.return_id]);
            let follow = self.first_bytes(&next);
            follow == ByteSet::default()
                || match thread.run {
                    ThreadRun::Language(lex) => {
                        !self.goes_on(lex, follow, |this, lex| this.lexicon.outcome(lex) != Lexicon::NONE)
                    }
                    ThreadRun::Lexeme { host, pos } => {
                        !self.goes_on(pos.lex, follow, |this, lex| this.lexeme_ends(host, Pos { lex, ..pos }))
                    }
                    ThreadRun::Json { machine, pos, .. } => {
                        !self.with_json(machine, |m| m.tail_bytes(pos)).meets(&follow)
                    }
                    _ => false,
                }
        })
    }

    /// Whether a lexeme may reach a state in which its part could end and which reads one of these bytes;
    /// true where it has too many states to tell.
    fn goes_on(
        &mut self,
        lex: LexId,
        follow: ByteSet,
        mut ends: impl FnMut(&mut Self, LexId) -> bool,
    ) -> bool {
        if self.lexicon.term(lex).is_none() {
            return true;
        }
        let mut seen = rustc_hash::FxHashSet::from_iter([lex]);
        let mut todo = vec![lex];
        while let Some(lex) = todo.pop() {
            if seen.len() > SEARCH || self.lexicon.first_bytes(lex).meets(&follow) && ends(self, lex) {
                return true;
            }
            for (_, next) in self.lexicon.representatives(lex) {
                if seen.insert(next) {
                    todo.push(next);
                }
            }
        }
        false
    }

    /// Bytes that some of the threads may read, without what follows their parts; a superset.
    pub(super) fn first_bytes(&mut self, threads: &[Thread]) -> ByteSet {
        let mut set = ByteSet::default();
        for thread in threads {
            match thread.run {
                ThreadRun::Done | ThreadRun::Special(_) => {}
                ThreadRun::Quoted(_) => set = ByteSet::ALL,
                ThreadRun::Branches(place) => set.add(&self.branch_bytes(place)),
                ThreadRun::Language(lex) => set.add(&self.lexicon.first_bytes(lex)),
                ThreadRun::Lexeme { host, pos } => {
                    set.add(&self.lexicon.first_bytes(pos.lex));
                    let outcome = self.lexicon.outcome(pos.lex);
                    if outcome != Lexicon::NONE {
                        set.add(&self.bytes_after_lexeme(thread.return_id, host, pos.ctx, outcome));
                    }
                }
                ThreadRun::Json { machine, pos, .. } => {
                    set.add(&self.lexicon.first_bytes(pos.lex));
                    let outcome = self.lexicon.outcome(pos.lex);
                    if outcome != Lexicon::NONE {
                        set.add(&self.with_json(machine, |m| m.leave_bytes(pos.ctx, outcome)));
                    }
                }
            }
        }
        set
    }

    /// Bytes that may follow a lexeme in its host.
    pub(super) fn bytes_after_lexeme(
        &mut self,
        up: ReturnId,
        host: u32,
        ctx: CtxId,
        outcome: OutcomeId,
    ) -> ByteSet {
        let (next, mut set) =
            self.with_lexer(host, |s| (s.after_outcome(ctx, outcome), s.bytes_after_outcome(ctx, outcome)));
        if let Some(next) = next {
            let parts = self.return_to(host, next.0, up);
            let parts: Vec<Thread> = parts
                .iter()
                .copied()
                .filter(|t| !matches!(t.run, ThreadRun::Lexeme { host: h, .. } if h == host))
                .collect();
            set.add(&self.first_bytes(&parts));
        }
        set
    }
}
