//! Masks of a structure that reads lexemes: token sets are followed lexeme by lexeme instead of byte by byte.
//!
//! What the languages of a lexeme do with a set of token suffixes depends on the languages alone: which
//! tokens stay inside, and for each language that may be chosen, the rest of the tokens after it (a *plan*,
//! [`super::plans`]). A context only says which languages may begin and where each lexeme leads, so a new
//! context costs one parser step for each sequence of lexemes that some token contains, not a walk for each
//! token.
//!
//! Invariant: the same tokens as the byte walk; the oracle's tests hold it to that.
//! Complexity: a new context costs the sequences that its tokens contain. Nearly all of them only push on the
//! stack: their result depends on the top of the context alone ([`Scanner::top`]) and is memoised by it, up
//! to [`KEPT`]. Sequences that complete what began further down the stack are followed for each context.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::plans::{LanguageList, LanguageListId, Plan, Planner, Plans};
use super::suffixes::{SuffixSetId, TokenSuffixSet};
use crate::automaton::byte_automaton::{Alive, CtxId, Scanner};
use crate::heap_size;
use crate::lexical::spell::ByteSet;
use crate::lexical::{LexId, Lexicon, Spelling, Step, TermId};
use crate::vocab::{NodeId, TokenSet, Trie, Vocabulary};

/// Most numbers (tokens and places) in memoised results before all are dropped: 32 MiB.
const KEPT: usize = 8 << 20;
/// What a result takes beside its tokens.
const ENTRY: usize = 12;
/// Nodes up to which results are memoised, and up to which tokens are walked byte by byte.
const REMEMBERED: usize = 30_000;
const WALKED: usize = 12;

/// Languages of a lexeme after its first byte, and their places.
type LanguagesAfterByte = Arc<[(u32, LexId)]>;

/// Tokens that were found: shared masks, and ids.
#[derive(Default)]
pub struct FoundTokens {
    pub words: Vec<Arc<[u32]>>,
    pub ids: Vec<u32>,
    below: Vec<TokensBelowTop>,
}

/// Tokens that a top does not decide: their rests after lexemes that complete what began below it.
struct TokensBelowTop {
    /// The places of the lexemes.
    path: Box<[u32]>,
    suffixes: SuffixSetId,
    /// Tokens that are excluded.
    removed: Arc<[u32]>,
}

impl FoundTokens {
    fn add_words(&mut self, words: &Arc<[u32]>) {
        if !self.words.iter().any(|w| Arc::ptr_eq(w, words)) {
            self.words.push(words.clone());
        }
    }

    /// Adds what another found, without some tokens.
    fn add_without(&mut self, other: FoundTokens, removed: &Arc<[u32]>) {
        let kept = |id: &u32| removed.binary_search(id).is_err();
        self.ids.extend(other.ids.into_iter().filter(kept));
        for words in other.words {
            let mut words = words.to_vec();
            words.forbid_all(removed.iter().copied());
            self.words.push(words.into());
        }
        for TokensBelowTop { path, suffixes, removed: own } in other.below {
            let mut all = [&own[..], &removed[..]].concat();
            crate::lists::sort_unique(&mut all);
            self.below.push(TokensBelowTop { path, suffixes, removed: all.into() });
        }
    }
}

#[derive(Default)]
pub struct LexerMaskBuilder {
    plans: Plans,
    lists: Vec<LanguageList>,
    list_ids: FxHashMap<Alive, LanguageListId>,
    by_context: FxHashMap<CtxId, LanguageListId>,
    after_byte: FxHashMap<(LanguageListId, u8), LanguagesAfterByte>,
    /// By the suffixes, the list that reads them, and the top of the context.
    found: FxHashMap<(SuffixSetId, LanguageListId, CtxId), Arc<FoundTokens>>,
    found_size: usize,
    /// Bytes of lists of languages.
    listed: usize,
}

/// One call: the tables, and its arguments.
struct LexemeReader<'a> {
    tables: &'a mut LexerMaskBuilder,
    scanner: &'a mut dyn Scanner,
    vocab: &'a Vocabulary,
    /// The lexemes since the top from which the call reads.
    path: Vec<u32>,
}

impl LexerMaskBuilder {
    /// Bytes that the tables hold.
    pub fn bytes(&mut self) -> usize {
        let tables = heap_size::bytes!(self: list_ids, by_context, after_byte, found);
        tables + self.lists.len() * 512 + self.listed + self.found_size * 4 + self.plans.bytes()
    }

    /// The tokens that may come inside a lexeme of one of these languages.
    pub fn tokens(
        &mut self,
        scanner: &mut dyn Scanner,
        vocab: &Vocabulary,
        ctx: CtxId,
        alive: &Alive,
    ) -> FoundTokens {
        let mut out = FoundTokens::default();
        let all = self.plans.suffix_sets.below(vocab, Trie::ROOT);
        let mut reader = LexemeReader { tables: self, scanner, vocab, path: Vec::new() };
        let list = reader.list(alive);
        reader.read(all, list, ctx, &mut out);
        out
    }
}

impl LexemeReader<'_> {
    fn list(&mut self, alive: &Alive) -> LanguageListId {
        memo!(self.tables.list_ids, alive, alive.clone(), {
            let mut first = ByteSet::default();
            for &(_, term) in alive.iter() {
                first.add(&self.starts(term));
            }
            let id = LanguageListId(self.tables.lists.len() as u32);
            let empty = self.empty(alive);
            let is_closed =
                self.is_guarded(alive) && empty.is_some_and(|place| !self.scanner.is_code_point(place));
            let closed_by = if is_closed { ByteSet::ASCII } else { ByteSet::ALL };
            self.tables.lists.push(LanguageList {
                alive: alive.clone(),
                first,
                unsure: None,
                empty,
                closed_by,
            });
            id
        })
    }

    /// The languages that may begin at a context.
    fn list_at(&mut self, ctx: CtxId) -> LanguageListId {
        memo!(self.tables.by_context, ctx, {
            let alive = self.scanner.readable(ctx);
            let id = self.list(&alive);
            // the list may have been made in the middle of a lexeme, without this
            if self.tables.lists[id.0 as usize].unsure.is_none() {
                self.tables.lists[id.0 as usize].unsure = Some(self.scanner.unsure(&alive));
            }
            id
        })
    }

    fn starts(&mut self, term: TermId) -> ByteSet {
        self.tables.plans.starts(self.scanner.lexicon(), term)
    }

    fn plan(&mut self, suffixes: SuffixSetId, list: LanguageListId) -> Arc<Plan> {
        let LexerMaskBuilder { plans, lists, .. } = &mut *self.tables;
        let mut planner = Planner { known: plans, scanner: &mut *self.scanner, vocab: self.vocab };
        planner.plan(suffixes, list, &lists[list.0 as usize])
    }

    /// Tokens whose rest is read by a lexeme of the list: as far as the top of the context decides, memoised.
    fn read(&mut self, suffixes: SuffixSetId, list: LanguageListId, ctx: CtxId, out: &mut FoundTokens) {
        let top = self.scanner.top(ctx);
        if top == ctx && self.tables.plans.suffix_sets.get(suffixes).size > REMEMBERED {
            return self.read_from(suffixes, list, ctx, out);
        }
        let known = match self.tables.found.get(&(suffixes, list, top)) {
            Some(known) => known.clone(),
            None => self.find(suffixes, list, top),
        };
        out.ids.extend_from_slice(&known.ids);
        known.words.iter().for_each(|words| out.add_words(words));
        for TokensBelowTop { path, suffixes, removed } in &known.below {
            let next = path.iter().try_fold(ctx, |at, &place| match at {
                CtxId::BELOW => Some(at),
                at => self.scanner.after(at, place),
            });
            let Some(next) = next else { continue };
            let before = self.path.len();
            self.path.extend_from_slice(path);
            self.follow_without(&[*suffixes], next, removed, out);
            self.path.truncate(before);
        }
    }

    fn find(&mut self, suffixes: SuffixSetId, list: LanguageListId, top: CtxId) -> Arc<FoundTokens> {
        let (path, mut found) = (std::mem::take(&mut self.path), FoundTokens::default());
        stacker::maybe_grow(64 << 10, 1 << 20, || self.read_from(suffixes, list, top, &mut found));
        self.path = path;
        let own = found.words.iter().filter(|words| Arc::strong_count(words) == 1).map(|words| words.len());
        let size = ENTRY + found.ids.len() + found.below.len() * ENTRY + own.sum::<usize>();
        self.tables.found_size += size;
        if self.tables.found_size > KEPT {
            self.tables.found.clear();
            self.tables.found_size = size;
        }
        let found = Arc::new(found);
        self.tables.found.insert((suffixes, list, top), found.clone());
        found
    }

    fn read_from(&mut self, suffixes: SuffixSetId, list: LanguageListId, ctx: CtxId, out: &mut FoundTokens) {
        let plan = self.plan(suffixes, list);
        plan.words.iter().for_each(|w| out.add_words(w));
        out.ids.extend_from_slice(&plan.ids);
        for exit in plan.exits.iter() {
            let Some(next) = self.scanner.after(ctx, exit.place) else { continue };
            self.path.push(exit.place);
            self.follow_without(&exit.suffix_sets, next, &exit.removed, out);
            self.path.pop();
        }
    }

    /// Tokens whose rests are read from a context on, without some of them.
    fn follow_without(
        &mut self,
        suffix_sets: &[SuffixSetId],
        next: CtxId,
        removed: &Arc<[u32]>,
        out: &mut FoundTokens,
    ) {
        if next == CtxId::BELOW {
            let path = || self.path[..].into();
            let below = |&suffixes| TokensBelowTop { path: path(), suffixes, removed: removed.clone() };
            return out.below.extend(suffix_sets.iter().map(below));
        }
        if removed.is_empty() {
            return suffix_sets.iter().for_each(|&suffixes| self.follow(suffixes, next, out));
        }
        let mut found = FoundTokens::default();
        suffix_sets.iter().for_each(|&suffixes| self.follow(suffixes, next, &mut found));
        out.add_without(found, removed);
    }

    /// Tokens whose rest is read from a context on, where a lexeme begins.
    fn follow(&mut self, suffixes: SuffixSetId, ctx: CtxId, out: &mut FoundTokens) {
        let list = self.list_at(ctx);
        let LanguageList { first, unsure, empty, .. } = self.tables.lists[list.0 as usize];
        let unsure = unsure.unwrap_or(first);
        let own = self.tables.plans.suffix_sets.get(suffixes);
        if !first.meets(&own.bytes) && empty.is_none() {
            return;
        }
        if own.size <= WALKED {
            return self.begin(own, own.node, &own.bytes, ctx, list, out);
        }
        self.read_allowed(suffixes, &own, &unsure, ctx, list, out);
    }

    /// As `read`, without the first bytes after which the lexeme could not end.
    fn read_allowed(
        &mut self,
        suffixes: SuffixSetId,
        own: &TokenSuffixSet,
        unsure: &ByteSet,
        ctx: CtxId,
        list: LanguageListId,
        out: &mut FoundTokens,
    ) {
        let mut bytes = own.bytes;
        for byte in unsure.and(&own.bytes).iter() {
            if !self.scanner.may_begin(ctx, byte) {
                bytes = bytes.without(&ByteSet::of(&[byte]));
            }
        }
        let suffixes = if bytes == own.bytes {
            suffixes
        } else {
            self.tables.plans.suffix_sets.starting_with(self.vocab, suffixes, &bytes)
        };
        self.read(suffixes, list, ctx, out);
    }

    /// A few tokens, byte by byte, from the beginning of a lexeme.
    fn begin(
        &mut self,
        suffixes: TokenSuffixSet,
        node: NodeId,
        allowed: &ByteSet,
        ctx: CtxId,
        list: LanguageListId,
        out: &mut FoundTokens,
    ) {
        let LanguageList { first, unsure, empty, closed_by, .. } = self.tables.lists[list.0 as usize];
        let unsure = unsure.unwrap_or(first);
        let mut beyond = ByteSet::default();
        let (count, _) = self.tables.plans.suffix_sets.trie(suffixes, self.vocab).children(node);
        for i in 0..count.len() {
            let (bytes, nodes) = self.tables.plans.suffix_sets.trie(suffixes, self.vocab).children(node);
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
            let after_byte = self.after_first_byte(list, byte);
            self.walk(suffixes, child, &after_byte, ctx, out);
        }
        beyond = beyond.and(&closed_by);
        if let Some(place) = empty.filter(|_| !beyond.is_empty()) {
            self.end(suffixes, node, &beyond, (ctx, place), out);
        }
    }

    /// The tokens below a node, where a lexeme has ended, that go on with some bytes.
    fn end(
        &mut self,
        suffixes: TokenSuffixSet,
        node: NodeId,
        beyond: &ByteSet,
        (ctx, place): (CtxId, u32),
        out: &mut FoundTokens,
    ) {
        let Some(next) = self.scanner.after(ctx, place) else { return };
        self.path.push(place);
        if next == CtxId::BELOW {
            let suffixes = self.tables.plans.suffix_sets.after_node(self.vocab, suffixes, node, beyond);
            out.below.push(TokensBelowTop { path: self.path[..].into(), suffixes, removed: Arc::new([]) });
        } else {
            let list = self.list_at(next);
            self.begin(suffixes, node, beyond, next, list, out);
        }
        self.path.pop();
    }

    /// The languages of a list after a first byte.
    fn after_first_byte(&mut self, list: LanguageListId, byte: u8) -> LanguagesAfterByte {
        memo!(self.tables.after_byte, (list, byte), {
            let lexicon = self.scanner.lexicon();
            let after_byte = self.tables.lists[list.0 as usize].alive.iter().filter_map(|&(place, term)| {
                let lex = lexicon.at(Spelling::Raw, term);
                match lexicon.step(lex, byte) {
                    Step::Stay(next) => Some((place, next)),
                    _ => None,
                }
            });
            let after_byte: LanguagesAfterByte = after_byte.collect();
            self.tables.listed += heap_size::slice(&after_byte);
            after_byte
        })
    }

    /// The tokens at and below a node, in the middle of a lexeme.
    fn walk(
        &mut self,
        suffixes: TokenSuffixSet,
        node: NodeId,
        alive: &[(u32, LexId)],
        ctx: CtxId,
        out: &mut FoundTokens,
    ) {
        let trie = self.tables.plans.suffix_sets.trie(suffixes, self.vocab);
        out.ids.extend(trie.tokens(node).iter().map(|t| t.0));
        let mut beyond = ByteSet::default();
        for i in 0..trie.children(node).0.len() {
            let (bytes, nodes) = self.tables.plans.suffix_sets.trie(suffixes, self.vocab).children(node);
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
                false => self.walk(suffixes, child, &next, ctx, out),
            }
        }
        if beyond.is_empty() {
            return;
        }
        let lexicon = self.scanner.lexicon();
        let ended: Vec<u32> =
            alive.iter().filter(|a| lexicon.outcome(a.1) != Lexicon::NONE).map(|a| a.0).collect();
        if let Some(place) = self.chosen(&ended) {
            self.end(suffixes, node, &beyond, (ctx, place), out);
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
}
