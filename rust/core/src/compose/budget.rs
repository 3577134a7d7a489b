//! Parts that end after a number of tokens.
//!
//! A part with a budget counts the tokens whose first byte it reads.  Once the budget is spent, the part ends at the first end
//! of a token where its text may end.
//! Where one token leads into a part by two ways, from its first byte and later, the part counts it (a token less, never more).
//! Data: the count stands in the return address of the thread that reads the part, so that each reading has its own.
//! Invariant: what a token may be does not depend on the counts: where the budget is spent and the part could end, its thread
//! is replaced by those of what follows.  So positions that differ in counts alone have one mask, and the same completions.
//! Complexity: a look at the threads of a position after each token.
//! Memory: a position for each count that a text has.
//! Source: `max_tokens` of XGrammar's structural tags.
//! Rejected: counting in the matcher (drafts, batches and masks ahead have states alone).

use super::{
    CompositeAutomaton, CompositeContext, OuterGrammar, ReturnAddress, ReturnId, Thread, ThreadRun, END,
};
use crate::automaton::Pos;
use crate::lexical::spell::ByteSet;
use crate::lexical::{LexId, Lexicon};

impl CompositeAutomaton {
    /// The most tokens of the part that a thread reads.
    fn budget_of(&self, thread: &Thread) -> Option<u32> {
        if self.budgets.is_empty() || !matches!(thread.run, ThreadRun::Language(_)) {
            return None;
        }
        let ReturnAddress { host, terminal, .. } = self.return_address(thread.return_id);
        let grammar = match self.hosts.get(host as usize)? {
            OuterGrammar::Plain(chart) => &chart.grammar,
            OuterGrammar::Lexed(scanned) => &scanned.chart.grammar,
        };
        let part = grammar.terminals[terminal as usize].part?;
        self.budgets.get(&part).copied()
    }

    /// The position at the end of a token, by the position after its first byte.
    pub(super) fn count_token(&mut self, first: Pos, pos: Pos) -> Pos {
        let (begun, threads) = (self.threads_at(first, &[]), self.threads_at(pos, &[]));
        if threads.iter().all(|thread| self.budget_of(thread).is_none()) {
            return pos;
        }
        let (mut out, mut ended) = (Vec::new(), Vec::new());
        for thread in threads {
            let Some(most) = self.budget_of(&thread) else {
                out.push(thread);
                continue;
            };
            let before = self.return_address(thread.return_id);
            let counts = begun.iter().any(|other| other.return_id == thread.return_id);
            let used = most.min(before.used + u32::from(counts));
            if used == most && self.ends(&thread) {
                ended.push(thread.return_id);
            } else {
                let return_id = self.intern_return(ReturnAddress { used, ..before });
                out.push(Thread { return_id, ..thread });
            }
        }
        if !ended.is_empty() {
            out.extend(self.close_threads(&ended).iter());
        }
        crate::lists::sort_unique(&mut out);
        self.pos_of(out).expect("a part that ends leads to an accepted end")
    }

    /// The place that a part returns to, whatever it has taken.
    pub(super) fn uncounted_return(&mut self, id: ReturnId) -> ReturnId {
        match self.return_address(id) {
            ReturnAddress { used: 0, .. } => id,
            counted => self.intern_return(ReturnAddress { used: 0, ..counted }),
        }
    }

    /// Whether a language has ended and can't go on.
    fn is_over(&mut self, lex: LexId) -> bool {
        self.lexicon.outcome(lex) != Lexicon::NONE && self.lexicon.first_bytes(lex) == ByteSet::default()
    }

    /// The position with the same mask in which no token was counted; where a part is over, that of what follows it.
    pub(super) fn uncounted(&mut self, pos: Pos) -> Pos {
        if self.budgets.is_empty() {
            return pos;
        }
        match self.ctxs[pos.ctx.0 as usize].clone() {
            CompositeContext::One(Thread { return_id, run: ThreadRun::Language(_) })
                if return_id != END && self.is_over(pos.lex) =>
            {
                let next = self.close_threads(&[return_id]);
                self.pos_of(next.to_vec()).expect("a part that ends leads to an accepted end")
            }
            CompositeContext::One(thread) => {
                let return_id = self.uncounted_return(thread.return_id);
                match return_id == thread.return_id {
                    true => pos,
                    false => Pos { ctx: self.single(Thread { return_id, ..thread }).ctx, ..pos },
                }
            }
            CompositeContext::Set(threads) => {
                let counted = threads.iter().any(|t| self.return_address(t.return_id).used > 0);
                if !counted {
                    return pos;
                }
                let mut out: Vec<Thread> = threads
                    .iter()
                    .map(|&t| Thread { return_id: self.uncounted_return(t.return_id), ..t })
                    .collect();
                crate::lists::sort_unique(&mut out);
                self.pos_of(out).expect("as many threads")
            }
        }
    }
}
