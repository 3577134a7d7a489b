//! Plans: what the languages of a lexeme do with the rest of some tokens, whatever the context.
//!
//! A plan is made of what each language does alone ([`super::quotient`]): a token leaves the lexeme where the last
//! of the languages stops, so what one of them ends in is what it ends in alone, without the tokens in which
//! another reads on or is chosen.  That is told pair by pair, and most pairs begin with different bytes.
//!
//! Complexity: its languages and the pairs that meet.
//! Rejected: one walk for each combination of languages (1 to 3 ms each, and a grammar of 90 terminals has
//! hundreds of combinations).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::conflicts::conflicts;
use super::quotient::{build, differ, exits_without, without_exceptions, Quotient, Tokens};
use super::suffixes::{SuffixSetId, TokenSuffixSets};
use super::within::Within;
use crate::automaton::byte_automaton::{Alive, Scanner};
use crate::heap_size;
use crate::lexical::spell::ByteSet;
use crate::lexical::{Lexicon, Spelling, TermId};
use crate::vocab::Vocabulary;

/// What leaves a language loses tokens to others: up to so many nodes, or from so many lost tokens on, the rest gets
/// a trie of its own; otherwise the few are taken out of what is found. (Never in small sets: tokens like `--------`
/// would be followed through all their segmentations.)
const FILTERED: usize = 4096;
const MANY_LOST: usize = 64;
/// Nodes from which on it pays to look for a language that is nearly the same.
const DIFFER: usize = 1024;

/// The number of a list of languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LanguageListId(pub u32);

/// Languages that are walked side by side.
pub(super) struct LanguageList {
    pub alive: Alive,
    /// Bytes that some of them reads.
    pub first: ByteSet,
    /// Of those, the ones after which the lexeme may not be able to end; found where it begins.
    pub unsure: Option<ByteSet>,
    /// What the empty text is, where it is one of them, and the bytes that it may end before.
    pub empty: Option<u32>,
    pub closed_by: ByteSet,
}

/// Languages beside another one, and whether they are chosen before it.
type RivalLanguages = Vec<(TermId, bool)>;

/// What a list does with the rest of some tokens.
pub(super) struct Plan {
    pub words: Vec<Arc<[u32]>>,
    pub ids: Arc<[u32]>,
    pub exits: Box<[LanguageExit]>,
}

pub(super) struct LanguageExit {
    pub place: u32,
    pub rests: Arc<[SuffixSetId]>,
    pub removed: Arc<[u32]>,
}

/// Plans that were made, and what they are made of.
#[derive(Default)]
pub(super) struct Plans {
    pub rests: TokenSuffixSets,
    starts: FxHashMap<TermId, ByteSet>,
    singles: FxHashMap<(SuffixSetId, TermId), Arc<Quotient>>,
    losses: FxHashMap<(SuffixSetId, TermId, TermId, bool), Arc<[u32]>>,
    filtered: FxHashMap<(SuffixSetId, TermId, RivalLanguages), Arc<[SuffixSetId]>>,
    plans: FxHashMap<(SuffixSetId, LanguageListId), Arc<Plan>>,
    /// Bytes of masks and lists of ids.
    listed: usize,
}

impl Plans {
    /// Bytes that the tables hold.
    pub fn bytes(&mut self) -> usize {
        let tables = heap_size::bytes!(self: starts, singles, losses, filtered, plans);
        tables + self.filtered.len() * 64 + self.listed + self.rests.bytes()
    }

    /// The bytes that a text of a language may begin with.
    pub fn starts(&mut self, lexicon: &mut Lexicon, term: TermId) -> ByteSet {
        memo!(self.starts, term, {
            let lex = lexicon.at(Spelling::Raw, term);
            lexicon.starts(lex)
        })
    }
}

/// One call: the plans, and what they are asked with.
pub(super) struct Planner<'a> {
    pub known: &'a mut Plans,
    pub scanner: &'a mut dyn Scanner,
    pub vocab: &'a Vocabulary,
}

impl Planner<'_> {
    fn starts(&mut self, term: TermId) -> ByteSet {
        self.known.starts(self.scanner.lexicon(), term)
    }

    /// What the languages of a list do with the rest of some tokens.
    pub fn plan(&mut self, rest: SuffixSetId, number: LanguageListId, list: &LanguageList) -> Arc<Plan> {
        memo!(self.known.plans, (rest, number), {
            let plan = Arc::new(self.make_plan(rest, list));
            self.known.listed +=
                128 + heap_size::slice(&plan.ids) + plan.words.iter().map(own_share).sum::<usize>();
            plan
        })
    }

    fn make_plan(&mut self, rest: SuffixSetId, list: &LanguageList) -> Plan {
        let own = self.known.rests.get(rest);
        let mut plan = Plan { words: Vec::new(), ids: Arc::new([]), exits: Box::new([]) };
        let (mut ids, mut exits) = (Vec::new(), Vec::new());
        let read: Vec<(u32, TermId, ByteSet)> = list
            .alive
            .iter()
            .map(|&(place, term)| (place, term, self.starts(term).and(&own.bytes)))
            .filter(|r| !r.2.is_empty())
            .collect();
        for &(place, term, first) in &read {
            // the same set for all that begin alike: what goes on otherwise is not read
            let whole = self.known.rests.get(own.whole);
            let from = if self.starts(term).and(&whole.bytes) == first { own.whole } else { rest };
            let single = self.single(from, term);
            match &single.within {
                Within::Few(few) => ids.extend_from_slice(few),
                Within::Many(words) if !plan.words.iter().any(|w| Arc::ptr_eq(w, words)) => {
                    plan.words.push(words.clone());
                }
                Within::Many(..) => {}
            }
            if !single.exits.is_empty() {
                let others = read.iter().filter(|o| o.0 != place && o.2.meets(&first));
                let others: RivalLanguages =
                    others.map(|o| (o.1, self.scanner.outranks(o.0, place))).collect();
                exits.extend(self.exit(from, place, term, &single, others));
            }
        }
        let stay = read.iter().fold(ByteSet::default(), |mut all, r| {
            all.add(&r.2);
            all
        });
        let left = own.bytes.without(&stay).and(&list.closed_by);
        if let (Some(place), false) = (list.empty, left.is_empty()) {
            let rests = Arc::new([self.known.rests.limited(self.vocab, rest, &left)]);
            exits.push(LanguageExit { place, rests, removed: Arc::new([]) });
        }
        crate::lists::sort_unique(&mut ids);
        plan.ids = ids.into();
        plan.exits = exits.into();
        plan
    }

    /// What leaves a lexeme as one of its languages, beside others that begin alike.
    fn exit(
        &mut self,
        rest: SuffixSetId,
        place: u32,
        term: TermId,
        single: &Quotient,
        others: RivalLanguages,
    ) -> Option<LanguageExit> {
        let mut removed: Vec<u32> = single.removed.to_vec();
        let mut lost: Vec<u32> = Vec::new();
        let mut winners: RivalLanguages = Vec::new();
        let size: usize = single.exits.iter().map(|&r| self.known.rests.get(r).size).sum();
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
        (!rests.is_empty()).then(|| LanguageExit { place, rests, removed: removed.into() })
    }

    fn without(
        &mut self,
        rest: SuffixSetId,
        term: TermId,
        winners: RivalLanguages,
        lost: &[u32],
    ) -> Arc<[SuffixSetId]> {
        let key = (rest, term, winners);
        memo!(self.known.filtered, key, { exits_without(self.after(rest), term, lost) })
    }

    fn loss(&mut self, rest: SuffixSetId, term: TermId, other: TermId, chosen: bool) -> Arc<[u32]> {
        let key = (rest, term, other, chosen);
        memo!(self.known.losses, key, {
            let first = self.starts(term).and(&self.starts(other));
            let own = self.known.rests.get(rest);
            let trie = self.known.rests.trie(own, self.vocab);
            let terms = (term, other);
            let found: Arc<[u32]> =
                conflicts(self.scanner.lexicon(), self.vocab, trie, own, terms, &first, chosen).into();
            self.known.listed += heap_size::slice(&found);
            found
        })
    }

    fn after(&mut self, rest: SuffixSetId) -> Tokens<'_> {
        let rest = self.known.rests.get(rest);
        Tokens { lexicon: self.scanner.lexicon(), vocab: self.vocab, rests: &mut self.known.rests, rest }
    }

    fn single(&mut self, rest: SuffixSetId, term: TermId) -> Arc<Quotient> {
        memo!(self.known.singles, (rest, term), {
            let own = self.known.rests.get(rest);
            let mut made = None;
            if own.size >= DIFFER {
                if let Some(base) = without_exceptions(self.scanner.lexicon(), term) {
                    let under = self.single(rest, base);
                    made = differ(self.after(rest), (term, base), &under);
                }
            }
            let single = Arc::new(made.unwrap_or_else(|| build(self.after(rest), term)));
            self.known.listed += single.bytes();
            single
        })
    }
}

/// Bytes of a shared mask, by those who share it.
fn own_share(words: &Arc<[u32]>) -> usize {
    heap_size::slice(words) / Arc::strong_count(words)
}
