//! Masks of a structure that reads lexemes: token sets are followed lexeme by lexeme instead of byte by byte.
//!
//! What the languages of a lexeme do with the rest of some tokens depends on the languages alone: which tokens stay
//! inside, and for each language that may be chosen, what is left of the tokens behind it (a *plan*).  A context
//! only says which languages may begin and where each lexeme leads, so a new context costs one step of the parser
//! for each sequence of lexemes that some token holds, not a walk for each token.
//!
//! A plan is made of what each language does alone ([`super::single`]): a token leaves the lexeme where the last
//! of the languages stops, so what one of them ends in is what it ends in alone, without the tokens in which
//! another reads on or is chosen.  That is told pair by pair, and most pairs begin with different bytes.
//!
//! Invariant: the same tokens as the walk byte by byte; the oracle's tests hold it to that.
//! Complexity: a plan costs its languages and the pairs that meet; a new context the sequences that its tokens
//! hold. What is found for small sets of tokens is remembered by (set, context), up to [`KEPT`].
//! Rejected: one walk for each combination of languages (1 to 3 ms each, and a grammar of 90 terminals has
//! hundreds of combinations).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::conflicts::conflicts;
use super::rest::{RestId, TokenSuffixSet, TokenSuffixSets};
use super::single::{build, differ, exits_without, without_exceptions, Single, Tokens};
use super::within::Within;
use crate::automaton::byte_automaton::{Alive, CtxId, Scanner};
use crate::held;
use crate::lexical::spell::ByteSet;
use crate::lexical::{LexId, Lexicon, Spelling, Step, TermId};
use crate::vocab::{NodeId, TokenSet, Trie, Vocabulary};

/// Numbers (tokens, and the places of findings) that findings may take before all are let go: 32 MiB.
const KEPT: usize = 8 << 20;
/// What a finding takes beside its tokens.
const ENTRY: usize = 12;
/// Nodes up to which findings are remembered, and up to which tokens are walked byte by byte.
const REMEMBERED: usize = 30_000;
const WALKED: usize = 12;
/// What leaves a language loses tokens to others: up to so many nodes, or from so many lost tokens on, the rest gets
/// a trie of its own; otherwise the few are taken out of what is found. (Never in small sets: tokens like `--------`
/// would be followed through all their segmentations.)
const FILTERED: usize = 4096;
const MANY_LOST: usize = 64;
/// Nodes from which on it pays to look for a language that is nearly the same.
const DIFFER: usize = 1024;

/// The number of a list of languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ListId(u32);

/// Languages that are walked side by side.
struct List {
    alive: Alive,
    /// Bytes that some of them reads.
    first: ByteSet,
    /// Of those, the ones after which the lexeme may not be able to end; found where it begins.
    unsure: Option<ByteSet>,
    /// What the empty text is, where it is one of them, and the bytes that it may end before.
    empty: Option<u32>,
    closed_by: ByteSet,
}

/// Languages beside another one, and whether they are chosen before it.
type Others = Vec<(TermId, bool)>;

/// What a list does with the rest of some tokens.
struct Plan {
    words: Vec<Arc<[u32]>>,
    ids: Arc<[u32]>,
    exits: Box<[Exit]>,
}

struct Exit {
    place: u32,
    rests: Arc<[RestId]>,
    removed: Arc<[u32]>,
}

/// Tokens that were found: shared masks, and ids.
#[derive(Default)]
pub struct Found {
    pub words: Vec<Arc<[u32]>>,
    pub ids: Vec<u32>,
}

impl Found {
    fn add_words(&mut self, words: &Arc<[u32]>) {
        if !self.words.iter().any(|w| Arc::ptr_eq(w, words)) {
            self.words.push(words.clone());
        }
    }

    /// All of them as ids.
    fn into_ids(mut self) -> Vec<u32> {
        for words in &self.words {
            self.ids.extend(words.ids());
        }
        self.ids
    }
}

#[derive(Default)]
pub struct LexerMaskBuilder {
    rests: TokenSuffixSets,
    lists: Vec<List>,
    list_ids: FxHashMap<Alive, ListId>,
    by_context: FxHashMap<CtxId, ListId>,
    starts: FxHashMap<TermId, ByteSet>,
    singles: FxHashMap<(RestId, TermId), Arc<Single>>,
    losses: FxHashMap<(RestId, TermId, TermId, bool), Arc<[u32]>>,
    filtered: FxHashMap<(RestId, TermId, Others), Arc<[RestId]>>,
    plans: FxHashMap<(RestId, ListId), Arc<Plan>>,
    found: FxHashMap<(RestId, CtxId), Arc<[u32]>>,
    found_size: usize,
    /// Bytes of masks and lists of ids.
    listed: usize,
}

/// One call: the tables, and what they are asked with.
struct Reader<'a> {
    tables: &'a mut LexerMaskBuilder,
    scanner: &'a mut dyn Scanner,
    vocab: &'a Vocabulary,
}

impl LexerMaskBuilder {
    /// Bytes that the tables hold.
    pub fn bytes(&mut self) -> usize {
        let tables =
            held::bytes!(self: list_ids, by_context, starts, singles, losses, filtered, plans, found);
        let lists = self.lists.len() * 512 + self.filtered.len() * 64;
        tables + lists + self.listed + self.found_size * 4 + self.rests.bytes()
    }

    /// The tokens that may come where a lexeme has begun that may become these.
    pub fn tokens(
        &mut self,
        scanner: &mut dyn Scanner,
        vocab: &Vocabulary,
        ctx: CtxId,
        alive: &Alive,
    ) -> Found {
        let mut out = Found::default();
        let all = self.rests.below(vocab, Trie::ROOT);
        let mut reader = Reader { tables: self, scanner, vocab };
        let list = reader.list(alive);
        reader.read(all, list, ctx, &mut out);
        out
    }
}

impl Reader<'_> {
    fn list(&mut self, alive: &Alive) -> ListId {
        memo!(self.tables.list_ids, alive, alive.clone(), {
            let mut first = ByteSet::default();
            for &(_, term) in alive.iter() {
                first.add(&self.starts(term));
            }
            let id = ListId(self.tables.lists.len() as u32);
            let empty = self.empty(alive);
            let is_closed =
                self.is_guarded(alive) && empty.is_some_and(|place| !self.scanner.is_code_point(place));
            let closed_by = if is_closed { ByteSet::ASCII } else { ByteSet::ALL };
            self.tables.lists.push(List { alive: alive.clone(), first, unsure: None, empty, closed_by });
            id
        })
    }

    /// The languages that may begin at a context.
    fn list_at(&mut self, ctx: CtxId) -> ListId {
        memo!(self.tables.by_context, ctx, {
            let alive = self.scanner.readable(ctx);
            let id = self.list(&alive);
            // the same languages may have been met in the middle of a lexeme
            if self.tables.lists[id.0 as usize].unsure.is_none() {
                self.tables.lists[id.0 as usize].unsure = Some(self.scanner.unsure(&alive));
            }
            id
        })
    }

    fn starts(&mut self, term: TermId) -> ByteSet {
        memo!(self.tables.starts, term, {
            let lexicon = self.scanner.lexicon();
            let lex = lexicon.at(Spelling::Raw, term);
            lexicon.starts(lex)
        })
    }

    /// Tokens whose rest is read by a lexeme of the list.
    fn read(&mut self, rest: RestId, list: ListId, ctx: CtxId, out: &mut Found) {
        let plan = self.plan(rest, list);
        plan.words.iter().for_each(|w| out.add_words(w));
        out.ids.extend_from_slice(&plan.ids);
        for exit in plan.exits.iter() {
            let Some(next) = self.scanner.after(ctx, exit.place) else { continue };
            if exit.removed.is_empty() {
                exit.rests.iter().for_each(|&rest| self.follow(rest, next, out));
                continue;
            }
            let mut found = Found::default();
            exit.rests.iter().for_each(|&rest| self.follow(rest, next, &mut found));
            let removed = |id: &u32| exit.removed.binary_search(id).is_err();
            out.ids.extend(found.into_ids().into_iter().filter(removed));
        }
    }

    /// Tokens whose rest is read from a context on, where a lexeme begins.
    fn follow(&mut self, rest: RestId, ctx: CtxId, out: &mut Found) {
        let list = self.list_at(ctx);
        let List { first, unsure, empty, .. } = self.tables.lists[list.0 as usize];
        let unsure = unsure.unwrap_or(first);
        let own = self.tables.rests.get(rest);
        if !first.meets(&own.bytes) && empty.is_none() {
            return;
        }
        if own.size <= WALKED {
            return self.begin(own, own.node, &own.bytes, ctx, list, out);
        }
        if own.size > REMEMBERED {
            return self.read_allowed(rest, &own, &unsure, ctx, list, out);
        }
        if let Some(known) = self.tables.found.get(&(rest, ctx)) {
            return out.ids.extend_from_slice(known);
        }
        let mut found = Found::default();
        self.read_allowed(rest, &own, &unsure, ctx, list, &mut found);
        let found: Arc<[u32]> = found.into_ids().into();
        out.ids.extend_from_slice(&found);
        self.tables.found_size += found.len() + ENTRY;
        if self.tables.found_size > KEPT {
            self.tables.found.clear();
            self.tables.found_size = found.len() + ENTRY;
        }
        self.tables.found.insert((rest, ctx), found);
    }

    /// As `read`, without the first bytes after which the lexeme could not end.
    fn read_allowed(
        &mut self,
        rest: RestId,
        own: &TokenSuffixSet,
        unsure: &ByteSet,
        ctx: CtxId,
        list: ListId,
        out: &mut Found,
    ) {
        let mut bytes = own.bytes;
        for byte in unsure.and(&own.bytes).iter() {
            if !self.scanner.may_begin(ctx, byte) {
                bytes = bytes.without(&ByteSet::of(&[byte]));
            }
        }
        let rest =
            if bytes == own.bytes { rest } else { self.tables.rests.limited(self.vocab, rest, &bytes) };
        self.read(rest, list, ctx, out);
    }

    /// A few tokens, byte by byte, from the beginning of a lexeme.
    fn begin(
        &mut self,
        rest: TokenSuffixSet,
        node: NodeId,
        allowed: &ByteSet,
        ctx: CtxId,
        list: ListId,
        out: &mut Found,
    ) {
        let List { first, unsure, alive, empty, closed_by } = &self.tables.lists[list.0 as usize];
        let (first, unsure, alive) = (*first, unsure.unwrap_or(*first), alive.clone());
        let (empty, closed_by) = (*empty, *closed_by);
        let mut beyond = ByteSet::default();
        let (count, _) = self.tables.rests.trie(rest, self.vocab).children(node);
        for i in 0..count.len() {
            let (bytes, nodes) = self.tables.rests.trie(rest, self.vocab).children(node);
            let (byte, child) = (bytes[i], nodes[i]);
            if !allowed.has(byte) {
                continue;
            }
            if !first.has(byte) {
                beyond.insert(byte);
                continue;
            }
            if unsure.has(byte) && !self.scanner.may_begin(ctx, byte) {
                continue;
            }
            let mut begun: Vec<(u32, LexId)> = Vec::new();
            for &(place, term) in alive.iter() {
                if self.tables.starts[&term].has(byte) {
                    let lexicon = self.scanner.lexicon();
                    let lex = lexicon.at(Spelling::Raw, term);
                    if let Step::Stay(next) = lexicon.step(lex, byte) {
                        begun.push((place, next));
                    }
                }
            }
            self.walk(rest, child, &begun, ctx, out);
        }
        beyond = beyond.and(&closed_by);
        let next = empty.filter(|_| !beyond.is_empty()).and_then(|place| self.scanner.after(ctx, place));
        if let Some(next) = next {
            let list = self.list_at(next);
            self.begin(rest, node, &beyond, next, list, out);
        }
    }

    /// The tokens at and below a node, in the middle of a lexeme.
    fn walk(
        &mut self,
        rest: TokenSuffixSet,
        node: NodeId,
        alive: &[(u32, LexId)],
        ctx: CtxId,
        out: &mut Found,
    ) {
        let trie = self.tables.rests.trie(rest, self.vocab);
        out.ids.extend(trie.tokens(node).iter().map(|t| t.0));
        let mut beyond = ByteSet::default();
        for i in 0..trie.children(node).0.len() {
            let (bytes, nodes) = self.tables.rests.trie(rest, self.vocab).children(node);
            let (byte, child) = (bytes[i], nodes[i]);
            let lexicon = self.scanner.lexicon();
            let mut next: Vec<(u32, LexId)> = Vec::new();
            for &(place, lex) in alive {
                if let Step::Stay(lex) = lexicon.step(lex, byte) {
                    next.push((place, lex));
                }
            }
            match next.is_empty() {
                true => beyond.insert(byte),
                false => self.walk(rest, child, &next, ctx, out),
            }
        }
        if beyond.is_empty() {
            return;
        }
        let lexicon = self.scanner.lexicon();
        let ended: Vec<u32> =
            alive.iter().filter(|a| lexicon.outcome(a.1) != Lexicon::NONE).map(|a| a.0).collect();
        let Some(place) = self.chosen(&ended) else { return };
        if let Some(next) = self.scanner.after(ctx, place) {
            let list = self.list_at(next);
            self.begin(rest, node, &beyond, next, list, out);
        }
    }

    fn is_guarded(&self, alive: &Alive) -> bool {
        alive.iter().any(|&(place, _)| self.scanner.is_code_point(place))
    }

    fn empty(&mut self, alive: &Alive) -> Option<u32> {
        let terms = &self.scanner.lexicon().terms;
        let empty: Vec<u32> = alive.iter().filter(|a| terms.nullable(a.1)).map(|a| a.0).collect();
        self.chosen(&empty)
    }

    fn chosen(&self, ended: &[u32]) -> Option<u32> {
        ended.iter().copied().reduce(|a, b| if self.scanner.outranks(b, a) { b } else { a })
    }

    fn plan(&mut self, rest: RestId, list: ListId) -> Arc<Plan> {
        memo!(self.tables.plans, (rest, list), {
            let plan = Arc::new(self.make_plan(rest, list));
            self.tables.listed +=
                128 + held::slice(&plan.ids) + plan.words.iter().map(own_share).sum::<usize>();
            plan
        })
    }

    fn make_plan(&mut self, rest: RestId, list: ListId) -> Plan {
        let own = self.tables.rests.get(rest);
        let alive = self.tables.lists[list.0 as usize].alive.clone();
        let mut plan = Plan { words: Vec::new(), ids: Arc::new([]), exits: Box::new([]) };
        let (mut ids, mut exits) = (Vec::new(), Vec::new());
        let read: Vec<(u32, TermId, ByteSet)> = alive
            .iter()
            .map(|&(place, term)| (place, term, self.starts(term).and(&own.bytes)))
            .filter(|r| !r.2.is_empty())
            .collect();
        for &(place, term, first) in &read {
            // the same set for all that begin alike: what goes on otherwise is not read
            let whole = self.tables.rests.get(own.whole);
            let from = if self.starts(term).and(&whole.bytes) == first { own.whole } else { rest };
            let single = self.single(from, term);
            match &single.within {
                Within::Few(few) => ids.extend_from_slice(few),
                Within::Many(words, _) if !plan.words.iter().any(|w| Arc::ptr_eq(w, words)) => {
                    plan.words.push(words.clone());
                }
                Within::Many(..) => {}
            }
            if !single.exits.is_empty() {
                let others = read.iter().filter(|o| o.0 != place && o.2.meets(&first));
                let others: Others = others.map(|o| (o.1, self.scanner.outranks(o.0, place))).collect();
                exits.extend(self.exit(from, place, term, &single, others));
            }
        }
        let stay = read.iter().fold(ByteSet::default(), |mut all, r| {
            all.add(&r.2);
            all
        });
        let List { empty, closed_by, .. } = self.tables.lists[list.0 as usize];
        let left = own.bytes.without(&stay).and(&closed_by);
        if let (Some(place), false) = (empty, left.is_empty()) {
            let rests = Arc::new([self.tables.rests.limited(self.vocab, rest, &left)]);
            exits.push(Exit { place, rests, removed: Arc::new([]) });
        }
        crate::lists::sort_unique(&mut ids);
        plan.ids = ids.into();
        plan.exits = exits.into();
        plan
    }

    /// What leaves a lexeme as one of its languages, beside others that begin alike.
    fn exit(
        &mut self,
        rest: RestId,
        place: u32,
        term: TermId,
        single: &Single,
        others: Others,
    ) -> Option<Exit> {
        let mut removed: Vec<u32> = single.removed.to_vec();
        let mut lost: Vec<u32> = Vec::new();
        let mut winners: Others = Vec::new();
        let size: usize = single.exits.iter().map(|&r| self.tables.rests.get(r).size).sum();
        for (other, chosen) in others {
            let loss = self.loss(rest, term, other, chosen);
            if loss.is_empty() {
                continue;
            }
            if size > FILTERED && loss.len() < MANY_LOST {
                removed.extend_from_slice(&loss);
            } else {
                lost.extend_from_slice(&loss);
                winners.push((other, chosen));
            }
        }
        crate::lists::sort_unique(&mut removed);
        let rests =
            if winners.is_empty() { single.exits.clone() } else { self.without(rest, term, winners, &lost) };
        (!rests.is_empty()).then(|| Exit { place, rests, removed: removed.into() })
    }

    fn without(&mut self, rest: RestId, term: TermId, winners: Others, lost: &[u32]) -> Arc<[RestId]> {
        let key = (rest, term, winners);
        memo!(self.tables.filtered, key, { exits_without(self.after(rest), term, lost) })
    }

    fn loss(&mut self, rest: RestId, term: TermId, other: TermId, chosen: bool) -> Arc<[u32]> {
        let key = (rest, term, other, chosen);
        memo!(self.tables.losses, key, {
            let first = self.starts(term).and(&self.starts(other));
            let own = self.tables.rests.get(rest);
            let trie = self.tables.rests.trie(own, self.vocab);
            let terms = (term, other);
            let found: Arc<[u32]> =
                conflicts(self.scanner.lexicon(), self.vocab, trie, own, terms, &first, chosen).into();
            self.tables.listed += held::slice(&found);
            found
        })
    }

    fn after(&mut self, rest: RestId) -> Tokens<'_> {
        let rest = self.tables.rests.get(rest);
        Tokens { lexicon: self.scanner.lexicon(), vocab: self.vocab, rests: &mut self.tables.rests, rest }
    }

    fn single(&mut self, rest: RestId, term: TermId) -> Arc<Single> {
        memo!(self.tables.singles, (rest, term), {
            let own = self.tables.rests.get(rest);
            let mut made = None;
            if own.size >= DIFFER {
                if let Some(base) = without_exceptions(self.scanner.lexicon(), term) {
                    let under = self.single(rest, base);
                    made = differ(self.after(rest), (term, base), &under);
                }
            }
            let single = Arc::new(made.unwrap_or_else(|| build(self.after(rest), term)));
            self.tables.listed += single.bytes();
            single
        })
    }
}

/// Bytes of a shared mask, by those who share it.
fn own_share(words: &Arc<[u32]>) -> usize {
    held::slice(words) / Arc::strong_count(words)
}
