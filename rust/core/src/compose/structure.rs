//! [`ByteAutomaton`] for compositions.

use super::{CompositeAutomaton, CompositeContext, OuterGrammar, Part, ReturnId, Thread, ThreadRun, END};
use crate::automaton::byte_automaton::{Piece, Seen};
use crate::automaton::{ByteAutomaton, CtxId, Left, Pos};
use crate::cfg::scannerless::Scannerless;
use crate::cfg::Machine;
use crate::lexical::spell::{ByteSet, OutcomeId};
use crate::lexical::{LexId, Lexicon};
use crate::vocab::{TokenId, Vocabulary};
use crate::{heap_size, work};
use rustc_hash::FxHashMap;

impl CompositeAutomaton {
    /// The threads of a position.
    pub(super) fn threads_at(&mut self, pos: Pos, text: &[u8]) -> Vec<Thread> {
        match self.ctxs[pos.ctx.0 as usize].clone() {
            CompositeContext::One(thread) => vec![self.whole(thread, pos.lex, text)],
            CompositeContext::Set(threads) => threads.into(),
        }
    }

    /// The JSON machine that a context belongs to alone, and the machine's own context.
    fn json_at(&self, ctx: CtxId) -> Option<(ReturnId, u32, CtxId)> {
        match self.ctxs[ctx.0 as usize] {
            CompositeContext::One(Thread { return_id, run: ThreadRun::Json { machine, pos, .. } }) => {
                Some((return_id, machine, pos.ctx))
            }
            _ => None,
        }
    }

    fn returns_into_json(&mut self, return_id: ReturnId, machine: u32, pos: Pos) -> Option<Pos> {
        let mut out = Vec::new();
        self.push_json(return_id, machine, pos, 0, true, &mut out);
        out.sort_unstable();
        self.pos_of(out)
    }

    /// Special tokens that may come, and where each returns.
    fn special_runs(&mut self, pos: Pos, text: &[u8]) -> Vec<(TokenId, ReturnId)> {
        let mut all: Vec<Thread> = self.threads_at(pos, text);
        let mut ended: Vec<ReturnId> = Vec::new();
        for i in 0..all.len() {
            if all[i].return_id != END && self.ends(&all[i].clone()) {
                ended.push(all[i].return_id);
            }
            if let ThreadRun::Lexeme { host, pos } = all[i].run {
                let return_id = all[i].return_id;
                let next = self.with_lexer(host, |s| s.after_lexeme(pos));
                if let Some(next) = next {
                    all.extend(self.return_to(host, next.0, return_id).iter());
                }
            }
        }
        if !ended.is_empty() {
            crate::lists::sort_unique(&mut ended);
            all.extend(self.close_threads(&ended).iter());
        }
        let mut out: Vec<(TokenId, ReturnId)> = all
            .iter()
            .filter_map(
                |t| if let ThreadRun::Special(token) = t.run { Some((token, t.return_id)) } else { None },
            )
            .collect();
        crate::lists::sort_unique(&mut out);
        out
    }

    fn machine_bytes(&mut self, machine: u32) -> usize {
        // without the common arena: the machine has an empty one meanwhile
        self.machines[machine as usize].bytes()
    }

    fn host_bytes(&mut self, host: u32) -> usize {
        match &mut self.hosts[host as usize] {
            OuterGrammar::Plain(chart) => chart.bytes(),
            OuterGrammar::Lexed(scanned) => scanned.bytes(),
        }
    }

    /// Gives the parts from this one on their special tokens; the vocabulary is known.
    pub(super) fn bind_specials(&mut self, part: usize) {
        let known = self.bound.as_ref().expect("the vocabulary is known");
        let tokens_of = |text: &str| known.get(text).cloned().unwrap_or_default();
        for part in &mut self.parts[part..] {
            match part {
                Part::Special { text, tokens, ends, .. } => {
                    *tokens = tokens_of(text);
                    *ends = !tokens.is_empty() && tokens.iter().all(|t| self.eos.contains(t));
                }
                Part::TokenText { token, absent, .. } => {
                    *absent = tokens_of(token).iter().any(|t| !self.eos.contains(t));
                }
                _ => {}
            }
        }
    }

    /// Measures the parts and hosts from these on, whose special tokens are known.
    pub(super) fn measure_from(&mut self, part: usize, host: usize) {
        self.arrived.retain(|at, _| (at.0 as usize) < host);
        let (parts, holes) = (&self.parts, &self.holes);
        self.words.retain(|&at, _| match parts[at as usize] {
            _ if (at as usize) < part => true,
            Part::Language(..) => true,
            Part::Json(machine) => holes[machine as usize].is_empty(),
            _ => false,
        });
        self.read_hosts_again(host);
        self.open_lexers(host);
    }

    /// Gives the special tokens their numbers in a vocabulary.
    pub fn bind(&mut self, vocab: &Vocabulary) {
        let mut known: FxHashMap<Box<str>, Vec<TokenId>> = FxHashMap::default();
        let held = self.parts.iter().filter_map(|part| match part {
            Part::Special { text: token, .. } | Part::TokenText { token, .. } => Some(token.clone()),
            _ => None,
        });
        for text in held.chain(self.special_texts()) {
            known.entry(text).or_insert_with_key(|text| vocab.special_tokens(text.as_bytes()));
        }
        self.bound = Some(known);
        self.eos = vocab.eos().to_vec();
        if let Err(error) = self.bind_tokens(vocab) {
            work::refuse(error);
        }
        self.bind_specials(0);
        if let Some(error) = self.end_in_the_middle() {
            work::refuse(error);
        }
        // what was memoised before the vocabulary was known may spell a token that is special in it
        self.settled.clear();
        self.alone.clear();
        self.measure_from(0, 0);
    }

    /// The whole as one grammar, if the vocabulary has left no constraint of another kind in it.
    pub fn into_grammar(mut self: Box<Self>) -> std::result::Result<Machine, Box<Self>> {
        let Part::OuterGrammar(host) = self.parts[self.root as usize] else { return Err(self) };
        if self.chart(host).grammar.terminals.iter().any(|terminal| terminal.part.is_some()) {
            return Err(self);
        }
        let lexicon = std::mem::take(&mut self.lexicon);
        Ok(match self.hosts.swap_remove(host as usize) {
            OuterGrammar::Plain(chart) => {
                Machine::Scannerless(Box::new(Scannerless::new(chart.grammar, lexicon)))
            }
            OuterGrammar::Lexed(mut scanned) => {
                scanned.lexicon = lexicon;
                Machine::Scanned(scanned)
            }
        })
    }

    fn find_split(&mut self, pos: Pos) -> Option<super::Positions> {
        let CompositeContext::Set(threads) = self.ctxs[pos.ctx.0 as usize].clone() else { return None };
        let mut out = Vec::new();
        let mut mixed = Vec::new();
        for &thread in threads.iter() {
            if self.stands_alone(thread) {
                let text = match thread.run {
                    ThreadRun::Json { text, .. } => text,
                    _ => 0,
                };
                out.push((self.single(thread), text));
            } else if matches!(thread.run, ThreadRun::Quoted(_)) {
                out.push((self.set_of(vec![thread]), 0));
            } else if !matches!(thread.run, ThreadRun::Done | ThreadRun::Special(_)) {
                mixed.push(thread);
            }
        }
        if out.is_empty() || threads.len() == 1 {
            return None;
        }
        if !mixed.is_empty() {
            out.push((self.set_of(mixed), 0));
        }
        Some(out.into())
    }
}

impl ByteAutomaton for CompositeAutomaton {
    fn lexicon(&mut self) -> &mut Lexicon {
        &mut self.lexicon
    }

    fn set_deepest(&mut self, levels: u32) {
        self.deepest = Some(levels);
        for machine in &mut self.machines {
            machine.set_deepest(levels);
        }
    }

    fn bytes(&mut self) -> usize {
        let machines: usize = (0..self.machines.len() as u32).map(|m| self.machine_bytes(m)).sum();
        let hosts: usize = (0..self.hosts.len() as u32).map(|h| self.host_bytes(h)).sum();
        heap_size::bytes!(self: backs, ctxs, texts, quotes, said, settled, arrived, alone, splits, byte_sets)
            // lists of threads: a few each
            + (self.settled.len() + self.arrived.len() + self.splits.len()) * 128
            + self.lexicon.bytes()
            + machines
            + hosts
    }

    fn start(&mut self) -> Option<Pos> {
        let threads = self.first_threads();
        self.pos_of(threads)
    }

    fn records(&self, ctx: CtxId) -> bool {
        self.json_at(ctx).is_some_and(|(_, machine, inner)| {
            self.machines[machine as usize].made().is_some_and(|m| m.records(inner))
        })
    }

    fn close(&mut self, ctx: CtxId, outcome: OutcomeId, text: &[u8]) -> Option<Pos> {
        let (return_id, machine, inner) = self.json_at(ctx)?;
        let next = self.with_json(machine, |m| m.close(inner, outcome, text))?;
        self.returns_into_json(return_id, machine, next)
    }

    fn close_generic(&mut self, ctx: CtxId, accepting: &[u32]) -> Option<Pos> {
        let (return_id, machine, inner) = self.json_at(ctx)?;
        let next = self.with_json(machine, |m| m.close_generic(inner, accepting))?;
        self.returns_into_json(return_id, machine, next)
    }

    fn exceptional(&mut self, ctx: CtxId, text: &str) -> Vec<String> {
        match self.json_at(ctx) {
            Some((_, machine, inner)) => self.with_json(machine, |m| m.exceptional(inner, text)),
            None => Vec::new(),
        }
    }

    fn is_exceptional(&mut self, ctx: CtxId, text: &str) -> bool {
        let at = self.json_at(ctx);
        at.is_some_and(|(_, machine, inner)| self.with_json(machine, |m| m.is_exceptional(inner, text)))
    }

    fn bytes_after_any_text(&mut self, ctx: CtxId) -> Option<ByteSet> {
        let (_, machine, inner) = self.json_at(ctx)?;
        self.with_json(machine, |m| m.bytes_after_any_text(inner))
    }

    fn closings(&self) -> u64 {
        self.machines.iter().map(|m| m.closings()).sum()
    }

    fn leave(&mut self, ctx: CtxId, outcome: OutcomeId, text: &[u8], byte: u8) -> Option<Pos> {
        let next = match self.ctxs[ctx.0 as usize].clone() {
            CompositeContext::One(thread) => self.leave_one(thread, outcome, text, byte),
            CompositeContext::Set(threads) => self.advance(&threads, byte),
        };
        self.pos_of(next)
    }

    fn leave_bytes(&mut self, ctx: CtxId, outcome: OutcomeId) -> ByteSet {
        match self.ctxs[ctx.0 as usize].clone() {
            CompositeContext::One(Thread { return_id, run }) => {
                let mut set = match run {
                    ThreadRun::Lexeme { host, pos } => {
                        self.bytes_after_lexeme(return_id, host, pos.ctx, outcome)
                    }
                    ThreadRun::Json { machine, pos, .. } => {
                        self.with_json(machine, |m| m.leave_bytes(pos.ctx, outcome))
                    }
                    _ => ByteSet::default(),
                };
                if return_id != END {
                    let next = self.close_threads(&[return_id]);
                    set.add(&self.first_bytes(&next));
                }
                set
            }
            CompositeContext::Set(threads) => {
                memo!(self.byte_sets, ctx, {
                    let mut set = self.first_bytes(&threads);
                    for thread in threads.iter() {
                        if thread.return_id != END && self.ends(thread) {
                            let next = self.close_threads(&[thread.return_id]);
                            set.add(&self.first_bytes(&next));
                        }
                    }
                    set
                })
            }
        }
    }

    fn accepting(&mut self, pos: Pos, text: &[u8]) -> bool {
        let threads = self.threads_at(pos, text);
        self.accepts(&threads)
    }

    fn completion(&mut self, pos: Pos, text: &[u8], most: usize) -> Option<Vec<Piece>> {
        let threads = self.threads_at(pos, text);
        self.shortest_completion(&threads, most)
    }

    fn split(&mut self, pos: Pos) -> Option<Vec<(Pos, Vec<u8>)>> {
        if !matches!(self.ctxs[pos.ctx.0 as usize], CompositeContext::Set(_)) {
            return None;
        }
        if !self.splits.contains_key(&pos.ctx) {
            let found = self.find_split(pos);
            self.splits.insert(pos.ctx, found);
        }
        let found = self.splits[&pos.ctx].as_ref()?;
        Some(found.iter().map(|&(pos, text)| (pos, self.texts[text as usize].to_vec())).collect())
    }

    fn unquoted(&mut self, pos: Pos) -> Option<Pos> {
        let CompositeContext::Set(threads) = &self.ctxs[pos.ctx.0 as usize] else { return None };
        let [Thread { run: ThreadRun::Quoted(quote), .. }] = threads[..] else { return None };
        let threads = self.unquoted_threads(quote)?;
        self.pos_of(threads)
    }

    fn specials(&mut self, pos: Pos, text: &[u8]) -> Vec<TokenId> {
        let mut tokens: Vec<TokenId> = self.special_runs(pos, text).iter().map(|r| r.0).collect();
        tokens.dedup();
        // a token that ends texts may come only where the text may end
        tokens.retain(|t| !self.eos.contains(t) || self.take_special(pos, text, *t).is_some());
        tokens
    }

    fn open_language(&self, pos: Pos) -> Option<LexId> {
        match &self.ctxs[pos.ctx.0 as usize] {
            CompositeContext::Set(threads) => match threads[..] {
                [Thread { run: ThreadRun::Language(lex), .. }] => Some(lex),
                _ => None,
            },
            CompositeContext::One(_) => None,
        }
    }

    fn counts_tokens(&self) -> bool {
        !self.budgets.is_empty()
    }

    fn after_token(&mut self, first: Pos, pos: Pos) -> Pos {
        self.count_token(first, pos)
    }

    fn uncounted(&mut self, pos: Pos) -> Pos {
        CompositeAutomaton::uncounted(self, pos)
    }

    fn take_special(&mut self, pos: Pos, text: &[u8], token: TokenId) -> Option<Pos> {
        let runs = self.special_runs(pos, text);
        let backs: Vec<ReturnId> = runs.iter().filter(|r| r.0 == token).map(|r| r.1).collect();
        if backs.is_empty() {
            return None;
        }
        let next = self.close_threads(&backs);
        let next = self.pos_of(next.to_vec())?;
        (!self.eos.contains(&token) || self.accepting(next, &[])).then_some(next)
    }

    fn left(&mut self, pos: Pos, most: usize) -> Option<Vec<Left>> {
        match self.ctxs[pos.ctx.0 as usize] {
            CompositeContext::One(Thread { run: ThreadRun::Json { machine, pos: inner, .. }, .. }) => {
                self.with_json(machine, |m| m.left(Pos { ctx: inner.ctx, lex: pos.lex }, most))
            }
            _ => None,
        }
    }

    fn longest_left(&mut self, pos: Pos) -> Option<u32> {
        match self.ctxs[pos.ctx.0 as usize] {
            CompositeContext::One(Thread { run: ThreadRun::Json { machine, pos: inner, .. }, .. }) => {
                self.with_json(machine, |m| m.longest_left(Pos { ctx: inner.ctx, lex: pos.lex }))
            }
            _ => None,
        }
    }

    fn describe(&mut self, pos: Pos, seen: Seen) -> (Vec<String>, Option<String>) {
        self.in_words(pos, seen)
    }
}
