//! Constraints made of others: sequences, choices, JSON inside a grammar, a grammar inside a JSON string.
//!
//! In: a form of the frontends ([`form`]).  Out: a [`crate::automaton::ByteAutomaton`] over one arena of lexical states.
//! Data: a set of threads ([`threads`]): each is a run of one part, and the place of its host to which it returns
//! ([`ReturnAddress`]).  A host is a grammar some of whose terminals are constraints of their own (its parts).
//! Invariant: each thread can reach an accepting state by itself, so a set is alive exactly when it is not
//! empty. Wherever a part could end, what follows it is read too: `a + b` is the concatenation of two
//! languages, not a guess at its border.
//! Complexity: a step costs its threads; parts that end at one place are merged into one item set, so that
//! the set stays polynomial. A set of one thread is a position of its part, with that part's masks; a larger
//! set unites those of its threads.
//! Papers: Tomita 1985 (a shared stack); Woods 1970 (networks that call each other).
//! Rejected: one automaton of all parts built beforehand (schemas have none that is small); a priority between parts that
//! end at different places (the accepted language would depend on the order of the alternatives).
//! Start: this file; [`step`] reads bytes, [`branches`] has constraints distinguished by the texts that they
//! begin with, [`rest`] what follows these, [`structure`] is the interface to the tokens, [`quoted`] reads
//! grammars inside JSON strings, [`completion`] finds completions,
//! [`budget`] counts tokens.

pub mod branches;
mod budget;
mod completion;
pub mod form;
mod inside;
mod language;
mod machines;
mod prepared;
mod quoted;
mod rest;
mod step;
mod structure;
pub(crate) mod text;
mod threads;
mod tokens;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::automaton::{CtxId, Piece, Pos};

use crate::cfg::chart::Chart;
use crate::cfg::scanned::Scanned;
use crate::hash::Keyed;
use crate::heap_size::{self, Interner};
use crate::json::JsonMachine;
use crate::lexical::spell::ByteSet;
use crate::lexical::{LexId, Lexicon, TermId, Terms};
use crate::schema::holes::HoleUse;
use crate::vocab::TokenId;

/// The id of an interned [`ReturnAddress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ReturnId(u32);

/// The whole text ends here.
const END: ReturnId = ReturnId(0);

/// Where a part returns to: it was read as a terminal of a host, from a frame of it (an item set or a
/// context); the host itself returns to `up`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ReturnAddress {
    host: u32,
    frame: u32,
    terminal: u32,
    up: ReturnId,
    /// The number of hosts around it.
    depth: u32,
    /// Tokens that the part has taken, where they are counted ([`budget`]).
    used: u32,
}

/// What a thread is reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum ThreadRun {
    /// Nothing: the text is complete.
    Done,
    /// One special token.
    Special(TokenId),
    Language(LexId),
    /// A lexeme of a host with a lexer; the thread returns to where the host does.
    Lexeme {
        host: u32,
        pos: Pos,
    },
    Json {
        machine: u32,
        pos: Pos,
        text: u32,
    },
    /// A grammar inside a JSON string.
    Quoted(u32),
    /// The text that one of several constraints begins with.
    Branches(branches::BranchRange),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Thread {
    return_id: ReturnId,
    run: ThreadRun,
}

/// A part: the constraint of a terminal.
#[derive(Clone)]
enum Part {
    /// The flag says that no word of it is a proper prefix of another.
    Language(TermId, bool),
    /// A language that stands for a special token in vocabularies without it.
    TokenText {
        token: Box<str>,
        term: TermId,
        absent: bool,
    },
    Json(u32),
    OuterGrammar(u32),
    /// One of a list of branches.
    Branches(u32),
    /// Tokens that are named, or all others: the texts of those that are not special, and the special ones.
    Tokens {
        names: Box<[tokens::TokenName]>,
        which: tokens::TokenChoice,
        term: TermId,
        tokens: Vec<TokenId>,
        ends: bool,
    },
    /// The text of a special token.
    Special {
        text: Box<str>,
        spelled: TokenSpelling,
        tokens: Vec<TokenId>,
        /// All of them end texts: they can stand only at the end; elsewhere the vocabulary counts as one
        /// without them.
        ends: bool,
    },
}

impl Part {
    /// Whether it has texts; one that has none is a special token.
    fn has_text(&self) -> bool {
        match self {
            Part::Tokens { term, .. } => *term != Terms::EMPTY,
            Part::Special { spelled, tokens, ends, .. } => spelled.as_text(tokens.is_empty(), *ends),
            _ => true,
        }
    }
}

/// Where the text of a special token is spelled out.
#[derive(Clone, Copy, PartialEq)]
enum TokenSpelling {
    Never,
    /// In a vocabulary that does not know it.
    Unknown,
    /// In such a vocabulary, and where something follows a token that ends texts.
    WhereNoToken,
}

impl TokenSpelling {
    /// Whether a special token's text stands for it, in a vocabulary that does not know it or where it ends texts.
    fn as_text(self, unknown: bool, ends: bool) -> bool {
        match self {
            TokenSpelling::Never => false,
            TokenSpelling::Unknown => unknown,
            TokenSpelling::WhereNoToken => unknown || ends,
        }
    }
}

/// A part of a grammar. `empty`: it could be empty, which a rule allows instead.
#[derive(Clone)]
struct Bound {
    part: u32,
    /// Bytes of a short text of it.
    cost: u64,
    empty: bool,
}

enum OuterGrammar {
    /// Every segmentation counts.
    Plain(Box<Chart>),
    /// A contextual lexer cuts what lies between the parts.
    Lexed(Box<Scanned>),
}

/// A context of the token layer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CompositeContext {
    /// One thread, whose lexical state is the position's; the run stores none.
    One(Thread),
    Set(Box<[Thread]>),
}

/// Positions, each with the number of its text.
type Positions = Arc<[(Pos, u32)]>;

/// A constraint made of others.
#[derive(Default)]
pub struct CompositeAutomaton {
    lexicon: Box<Lexicon>,
    machines: Vec<machines::Machine>,
    /// For each machine, the parts that are grammars of its strings.
    holes: Vec<Vec<u32>>,
    hosts: Vec<OuterGrammar>,
    parts: Vec<Part>,
    /// The most tokens of a part.
    budgets: FxHashMap<u32, u32>,
    lists: Vec<branches::BranchList>,
    /// The tokens of each special text, once the vocabulary is known.
    bound: Option<FxHashMap<Box<str>, Vec<TokenId>>>,
    deepest: Option<u32>,
    /// Lists that the form names, while it is read.
    given: Vec<Arc<branches::Branches>>,
    /// The tokens that end texts.
    eos: Vec<TokenId>,
    root: u32,
    backs: Interner<ReturnAddress>,
    ctxs: Interner<CompositeContext>,
    texts: Interner<Box<[u8]>, Keyed>,
    quotes: Interner<quoted::Quoted, Keyed>,
    /// How a language of strings uses the grammars of a machine.
    said: FxHashMap<(u32, TermId), HoleUse>,
    /// Threads after parts that end at one position.
    settled: FxHashMap<Box<[ReturnId]>, Arc<[Thread]>>,
    /// Threads at a frame of a host.
    arrived: FxHashMap<(u32, u32, ReturnId), Arc<[Thread]>>,
    alone: FxHashMap<Thread, bool>,
    splits: FxHashMap<CtxId, Option<Positions>>,
    byte_sets: FxHashMap<CtxId, ByteSet>,
    words: FxHashMap<u32, Option<Vec<Piece>>>,
    report: Vec<String>,
}

heap_size::plain!(ReturnAddress, quoted::Quoted);

heap_size::owned!(CompositeContext, this => match this {
    CompositeContext::Set(threads) => heap_size::slice(threads),
    CompositeContext::One(_) => 0,
});

impl CompositeAutomaton {
    /// What was ignored, loosened or not proven in the schemas.
    pub fn report(&self) -> &[String] {
        &self.report
    }

    /// Runs a JSON machine on the common arena.
    fn with_json<T>(&mut self, machine: u32, f: impl FnOnce(&mut JsonMachine) -> T) -> T {
        self.machine(machine);
        let machines::Machine::Made(inner) = &mut self.machines[machine as usize] else {
            unreachable!("it was made above")
        };
        std::mem::swap(&mut self.lexicon, &mut inner.schema.lexicon);
        let out = f(inner);
        std::mem::swap(&mut self.lexicon, &mut inner.schema.lexicon);
        out
    }

    /// Runs a host with a lexer on the common arena.
    fn with_lexer<T>(&mut self, host: u32, f: impl FnOnce(&mut Scanned) -> T) -> T {
        let OuterGrammar::Lexed(inner) = &mut self.hosts[host as usize] else {
            unreachable!("lexemes belong to hosts with a lexer")
        };
        std::mem::swap(&mut self.lexicon, &mut inner.lexicon);
        let out = f(inner);
        std::mem::swap(&mut self.lexicon, &mut inner.lexicon);
        out
    }

    fn chart(&mut self, host: u32) -> &mut Chart {
        match &mut self.hosts[host as usize] {
            OuterGrammar::Plain(chart) => chart,
            OuterGrammar::Lexed(scanned) => &mut scanned.chart,
        }
    }

    fn return_address(&self, id: ReturnId) -> ReturnAddress {
        self.backs[id.0 as usize]
    }

    fn intern_return(&mut self, return_id: ReturnAddress) -> ReturnId {
        ReturnId(self.backs.intern(return_id))
    }

    fn text(&mut self, text: &[u8]) -> u32 {
        match self.texts.get_index_of(text) {
            Some(i) => i as u32,
            None => self.texts.intern(text.into()),
        }
    }

    /// Whether no word of the part that returns here is a proper prefix of another.
    fn is_closed(&mut self, return_id: ReturnId) -> bool {
        let return_id = self.return_address(return_id);
        let part = self.chart(return_id.host).grammar.terminals[return_id.terminal as usize].part;
        part.is_some_and(|p| {
            matches!(self.parts[p as usize], Part::Language(_, true) | Part::TokenText { .. })
        })
    }
}
