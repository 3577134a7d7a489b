//! Joints: several terminals of one length that all count; and lazy terminals, which end where they first can.
//!
//! In such a grammar no rank decides between terminals of one length, as in llguidance.  The texts that several terminals of
//! a context have in common get a place of the tuple, a joint, behind which the parser has read any of them.  No other
//! terminal goes on from the end of a lazy one, or ends there.
//! Invariant: at a context a text ends as the joint of all terminals that it is of.
//! Complexity: overlapping languages are cut into what each set of terminals alone reads, once per LR(0) core of a context;
//! at most [`MOST`] joints per grammar.
//! Rejected: a set of contexts behind a lexeme (one item set is one number, and merges what is alike).

use rustc_hash::FxHashMap;

use super::context_dependence::begins;
use super::scanned::{Context, Scanned};
use super::terminals::begun_by;
use crate::error::Error;
use crate::lexical::term::intersect_ranges;
use crate::lexical::{TermId, Terms};
use crate::work;

/// Joints of a grammar.
pub(super) const MOST: usize = 256;

/// The joints that were met, by their members.
#[derive(Default)]
pub(super) struct Joints {
    known: FxHashMap<Box<[u32]>, u32>,
    members: Vec<Box<[u32]>>,
}

impl Scanned {
    /// The terminals of a place that is a joint.
    pub(super) fn joint(&self, place: u32) -> Option<&[u32]> {
        let at = (place as usize).checked_sub(self.first_joint)?;
        self.joints.members.get(at).map(|members| &**members)
    }

    /// The context behind a text that is of all these terminals.
    pub(super) fn after_joint(&mut self, context: Context, members: &[u32]) -> Option<Context> {
        let ends: Vec<_> = members.iter().map(|&t| (context.set, t)).collect();
        let set = self.chart.merge(&ends, &[])?;
        Some(Context { set, inside: None, following: 0, ..context })
    }

    /// The places of terminals, cut where a lazy one ends, and joints of those that overlap.
    pub(super) fn with_joints(&mut self, places: Vec<(u32, TermId)>) -> Vec<(u32, TermId)> {
        let mut places = self.cut_by_lazy(places);
        // what may be ignored is: it outranks all others
        let terminals = &self.chart.grammar.terminals;
        let read = |p: &&(u32, TermId)| terminals.get(p.0 as usize).is_some_and(|t| !t.ignored);
        let read: Vec<(u32, TermId)> = places.iter().filter(read).copied().collect();
        for members in self.overlaps(&read) {
            let own: Vec<TermId> = places.iter().filter(|p| members.contains(&p.0)).map(|p| p.1).collect();
            let all = self.lexicon.terms.and(&own);
            let term = self.lexicon.terms.prune(all);
            let place = self.joint_of(members);
            places.push((place, term));
        }
        places
    }

    fn joint_of(&mut self, members: Box<[u32]>) -> u32 {
        let at = match self.joints.known.get(&members) {
            Some(&known) => known,
            None => {
                let new = self.joints.members.len();
                if new >= MOST {
                    too_many();
                }
                self.joints.members.push(members.clone());
                self.joints.known.insert(members, new as u32);
                new as u32
            }
        };
        self.first_joint as u32 + at
    }

    fn cut_by_lazy(&mut self, places: Vec<(u32, TermId)>) -> Vec<(u32, TermId)> {
        let terminals = &self.chart.grammar.terminals;
        let is_lazy = |place: u32| terminals.get(place as usize).is_some_and(|t| t.lazy);
        let lazy: Vec<TermId> = places.iter().filter(|p| is_lazy(p.0)).map(|p| p.1).collect();
        if lazy.is_empty() {
            return places;
        }
        let terms = &mut self.lexicon.terms;
        let ends = terms.or(&lazy);
        let [past, ended] = [true, false].map(|longer| {
            let begun = begun_by(terms, ends, longer);
            terms.not(begun)
        });
        let cut = places.into_iter().filter_map(|(place, term)| {
            let kept = terms.and(&[term, if is_lazy(place) { past } else { ended }]);
            let kept = terms.prune(kept);
            (kept != Terms::EMPTY && terms.live(kept)).then_some((place, kept))
        });
        cut.collect()
    }

    /// The sets of two terminals and more of which some text is of all, and of no other.
    fn overlaps(&mut self, places: &[(u32, TermId)]) -> Vec<Box<[u32]>> {
        let terms = &mut self.lexicon.terms;
        let mut classes: Vec<(Vec<u32>, TermId)> = Vec::new();
        let firsts: Vec<_> = places.iter().map(|p| begins(terms, p.1)).collect();
        let at = |place: u32| places.iter().position(|p| p.0 == place).unwrap_or(0);
        for (i, &(place, term)) in places.iter().enumerate() {
            work::spend(1 + classes.len() as u64);
            let mut rest = term;
            let mut next = Vec::with_capacity(classes.len() + 1);
            for (members, language) in classes {
                let apart = intersect_ranges(&firsts[at(members[0])], &firsts[i]).is_empty();
                let both = if apart { Terms::EMPTY } else { terms.and(&[language, term]) };
                if both == Terms::EMPTY || !terms.live(both) {
                    next.push((members, language));
                    continue;
                }
                next.push((members.iter().copied().chain([place]).collect(), both));
                for (of, but, keep) in [(language, term, true), (rest, language, false)] {
                    let but = terms.not(but);
                    let left = terms.and(&[of, but]);
                    match keep {
                        true if left != Terms::EMPTY && terms.live(left) => {
                            next.push((members.clone(), left))
                        }
                        true => {}
                        false => rest = left,
                    }
                }
            }
            if rest != Terms::EMPTY && terms.live(rest) {
                next.push((vec![place], rest));
            }
            classes = next;
            if classes.len() > MOST + places.len() {
                too_many();
            }
        }
        classes.into_iter().filter(|class| class.0.len() > 1).map(|class| class.0.into()).collect()
    }
}

fn too_many() -> ! {
    work::refuse(Error::limit(format!(
        "more than {MOST} sets of terminals are read from the same texts; make fewer of them overlap"
    )))
}
