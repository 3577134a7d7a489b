//! Plans: what the languages of a lexeme do with a set of token suffixes, whatever the context.
//!
//! A plan is made from the quotient of each language alone ([`super::quotient`]). A token leaves the lexeme
//! where the last of the languages stops. So a language ends in the tokens that it ends in alone, without
//! those in which another reads on or is preferred ([`super::conflicts`]). These are found for each pair;
//! most pairs have no first byte in common.
//!
//! Complexity: its languages, and the pairs with a common first byte.
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

/// The exits of a language lose tokens to others: up to so many nodes, or from so many lost tokens on, the
/// rest gets a trie of its own; otherwise the few are removed from the result. (Never in small sets: tokens
/// like `--------` would be followed through all their segmentations.)
const FILTERED: usize = 4096;
const MANY_LOST: usize = 64;
/// Nodes from which on it pays to look for a language that is nearly the same.
const DIFFER: usize = 1024;

/// The id of a list of languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LanguageListId(pub u32);

/// Languages that are walked side by side.
pub(super) struct LanguageList {
    pub alive: Alive,
    /// First bytes that some of them reads.
    pub first: ByteSet,
    /// Of those, the ones after which the lexeme may not be able to end; computed where it begins.
    pub unsure: Option<ByteSet>,
    /// The language of the empty text, if it is in one, and the bytes before which it may end.
    pub empty: Option<u32>,
    pub closed_by: ByteSet,
}

/// Languages beside another one, and whether they are preferred to it.
type RivalLanguages = Vec<(TermId, bool)>;

/// What a list does with the rest of some tokens.
pub(super) struct Plan {
    pub words: Vec<Arc<[u32]>>,
    pub ids: Arc<[u32]>,
    pub exits: Box<[LanguageExit]>,
}

pub(super) struct LanguageExit {
    pub place: u32,
    pub suffix_sets: Arc<[SuffixSetId]>,
    pub removed: Arc<[u32]>,
}

/// Plans that were made, and what they are made of.
#[derive(Default)]
pub(super) struct Plans {
    pub suffix_sets: TokenSuffixSets,
    starts: FxHashMap<TermId, ByteSet>,
    quotients: FxHashMap<(SuffixSetId, TermId), Arc<Quotient>>,
    conflicts_of: FxHashMap<(SuffixSetId, TermId, TermId, bool), Arc<[u32]>>,
    filtered: FxHashMap<(SuffixSetId, TermId, RivalLanguages), Arc<[SuffixSetId]>>,
    plans: FxHashMap<(SuffixSetId, LanguageListId), Arc<Plan>>,
    /// Bytes of masks and lists of ids.
    listed: usize,
}

impl Plans {
    /// Bytes that the tables hold.
    pub fn bytes(&mut self) -> usize {
        let tables = heap_size::bytes!(self: starts, quotients, conflicts_of, filtered, plans);
        tables + self.filtered.len() * 64 + self.listed + self.suffix_sets.bytes()
    }

    /// The bytes that a text of a language may begin with.
    pub fn starts(&mut self, lexicon: &mut Lexicon, term: TermId) -> ByteSet {
        memo!(self.starts, term, {
            let lex = lexicon.at(Spelling::Raw, term);
            lexicon.starts(lex)
        })
    }
}

/// One call: the plans, and its arguments.
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
    pub fn plan(&mut self, suffixes: SuffixSetId, number: LanguageListId, list: &LanguageList) -> Arc<Plan> {
        memo!(self.known.plans, (suffixes, number), {
            let plan = Arc::new(self.make_plan(suffixes, list));
            self.known.listed +=
                128 + heap_size::slice(&plan.ids) + plan.words.iter().map(bytes_per_owner).sum::<usize>();
            plan
        })
    }

    fn make_plan(&mut self, suffixes: SuffixSetId, list: &LanguageList) -> Plan {
        let own = self.known.suffix_sets.get(suffixes);
        let mut plan = Plan { words: Vec::new(), ids: Arc::new([]), exits: Box::new([]) };
        let (mut ids, mut exits) = (Vec::new(), Vec::new());
        let read: Vec<(u32, TermId, ByteSet)> = list
            .alive
            .iter()
            .map(|&(place, term)| (place, term, self.starts(term).and(&own.bytes)))
            .filter(|r| !r.2.is_empty())
            .collect();
        for &(place, term, first) in &read {
            // the whole set, which more lists share, where the language reads none of its other suffixes
            let whole = self.known.suffix_sets.get(own.whole);
            let from = if self.starts(term).and(&whole.bytes) == first { own.whole } else { suffixes };
            let single = self.quotient(from, term);
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
            let suffix_sets = Arc::new([self.known.suffix_sets.starting_with(self.vocab, suffixes, &left)]);
            exits.push(LanguageExit { place, suffix_sets, removed: Arc::new([]) });
        }
        crate::lists::sort_unique(&mut ids);
        plan.ids = ids.into();
        plan.exits = exits.into();
        plan
    }

    /// The exit of a lexeme as one of its languages, beside others with a common first byte.
    fn exit(
        &mut self,
        suffixes: SuffixSetId,
        place: u32,
        term: TermId,
        single: &Quotient,
        others: RivalLanguages,
    ) -> Option<LanguageExit> {
        let mut removed: Vec<u32> = single.removed.to_vec();
        let mut lost: Vec<u32> = Vec::new();
        let mut winners: RivalLanguages = Vec::new();
        let size: usize = single.exits.iter().map(|&r| self.known.suffix_sets.get(r).size).sum();
        for (other, chosen) in others {
            let loss = self.lost_tokens(suffixes, term, other, chosen);
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
        let suffix_sets = if winners.is_empty() {
            single.exits.clone()
        } else {
            self.exits_without_lost(suffixes, term, winners, &lost)
        };
        (!suffix_sets.is_empty()).then(|| LanguageExit { place, suffix_sets, removed: removed.into() })
    }

    fn exits_without_lost(
        &mut self,
        suffixes: SuffixSetId,
        term: TermId,
        winners: RivalLanguages,
        lost: &[u32],
    ) -> Arc<[SuffixSetId]> {
        let key = (suffixes, term, winners);
        memo!(self.known.filtered, key, { exits_without(self.reading(suffixes), term, lost) })
    }

    fn lost_tokens(
        &mut self,
        suffixes: SuffixSetId,
        term: TermId,
        other: TermId,
        chosen: bool,
    ) -> Arc<[u32]> {
        let key = (suffixes, term, other, chosen);
        memo!(self.known.conflicts_of, key, {
            let first = self.starts(term).and(&self.starts(other));
            let own = self.known.suffix_sets.get(suffixes);
            let trie = self.known.suffix_sets.trie(own, self.vocab);
            let terms = (term, other);
            let found: Arc<[u32]> =
                conflicts(self.scanner.lexicon(), self.vocab, trie, own, terms, &first, chosen).into();
            self.known.listed += heap_size::slice(&found);
            found
        })
    }

    fn reading(&mut self, suffixes: SuffixSetId) -> Tokens<'_> {
        let suffixes = self.known.suffix_sets.get(suffixes);
        Tokens {
            lexicon: self.scanner.lexicon(),
            vocab: self.vocab,
            suffix_sets: &mut self.known.suffix_sets,
            suffixes,
        }
    }

    fn quotient(&mut self, suffixes: SuffixSetId, term: TermId) -> Arc<Quotient> {
        memo!(self.known.quotients, (suffixes, term), {
            let own = self.known.suffix_sets.get(suffixes);
            let mut made = None;
            if own.size >= DIFFER {
                if let Some(base) = without_exceptions(self.scanner.lexicon(), term) {
                    let under = self.quotient(suffixes, base);
                    made = differ(self.reading(suffixes), (term, base), &under);
                }
            }
            let single = Arc::new(made.unwrap_or_else(|| build(self.reading(suffixes), term)));
            self.known.listed += single.bytes();
            single
        })
    }
}

/// Bytes of a shared mask, divided among its owners.
fn bytes_per_owner(words: &Arc<[u32]>) -> usize {
    heap_size::slice(words) / Arc::strong_count(words)
}
