//! Whether a terminal depends on the text around it, found from the language of its words with what may follow.
//!
//! For [`super::terminals`], which refuses what can't be decided, [`super::split_terminals`] and [`super::trailing_context`].
//! Invariant: one character behind a word is examined; what looks further is reported.
//! Complexity: [`MOST`] states of a terminal, and of two beside each other.  Memory: none of its own.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::lexical::term::intersect_ranges;
use crate::lexical::{TermId, Terms};
use crate::regex::context::END;
use crate::work;

/// The characters of texts; what stands for the end of a word is none.
pub(super) const TEXT: [(u32, u32); 2] = [(0, 0xD7FF), (0xE000, END - 1)];
/// States of a terminal's language that are looked at.
const MOST: usize = 4096;

pub(super) type Ranges = Vec<(u32, u32)>;
type States = IndexSet<(TermId, TermId), FxBuildHasher>;

/// How a terminal depends on the text around it.
pub(super) struct ContextDependence {
    /// Whether it matches a word only before some characters, though it can't go on with the others.
    pub depends: bool,
    /// Characters of its shortest word.
    pub least: Option<u64>,
}

/// Why a terminal is refused.
pub(super) enum SurveyRefusal {
    /// It looks further than one character past its end.
    Far,
    Large,
}

/// Looks at all states of a terminal's language.
///
/// `begins`: the characters that terminals begin with; before others no text goes on.
pub(super) fn context_dependence(
    terms: &mut Terms,
    around: TermId,
    begins: &Ranges,
) -> Result<ContextDependence, SurveyRefusal> {
    let mut found = ContextDependence { depends: false, least: None };
    let mut behind = FxHashMap::default();
    let mut seen = States::default();
    seen.insert((around, Terms::EMPTY));
    let mut level: Vec<u64> = vec![0];
    let mut at = 0;
    while let Some(&(state, _)) = seen.get_index(at) {
        let after = terms.derive(state, END);
        if after != Terms::EMPTY {
            found.least = found.least.or(Some(level[at]));
            let told = behind.entry(after).or_insert_with(|| follow_effect(terms, after));
            if !told.differs.is_empty() || !told.far.is_empty() {
                let unreadable_chars = intersect_ranges(&unreadable_chars(terms, state), begins);
                found.depends |= !intersect_ranges(&told.differs, &unreadable_chars).is_empty();
                if !intersect_ranges(&told.far, &unreadable_chars).is_empty() {
                    return Err(SurveyRefusal::Far);
                }
            }
        }
        let runs = terms.delta(state);
        work::spend(2 + runs.len() as u64 / 32);
        for run in runs.iter().filter(|run| run.to != Terms::EMPTY && run.end != END) {
            if seen.insert((run.to, Terms::EMPTY)) {
                level.push(level[at] + 1);
            }
        }
        if seen.len() > MOST {
            return Err(SurveyRefusal::Large);
        }
        at += 1;
    }
    Ok(found)
}

/// How the text behind a word decides whether it is a word of the terminal.
struct FollowEffect {
    /// Characters before which it is one where it is none at the end of the text, or the other way round.
    differs: Ranges,
    /// Characters before which more of the text has a say.
    far: Ranges,
}

fn follow_effect(terms: &mut Terms, after: TermId) -> FollowEffect {
    let at_end = terms.nullable(after);
    let mut told = FollowEffect { differs: Vec::new(), far: Vec::new() };
    let mut all: FxHashMap<TermId, bool> = FxHashMap::default();
    for (range, behind, _) in paired_ranges(terms, after, Terms::EMPTY) {
        if (behind != Terms::EMPTY) != at_end {
            told.differs.push(range);
        }
        if behind != Terms::EMPTY && !*all.entry(behind).or_insert_with(|| is_all(terms, behind)) {
            told.far.push(range);
        }
    }
    told
}

/// The characters that a language can't go on with.
pub(super) fn unreadable_chars(terms: &mut Terms, state: TermId) -> Ranges {
    let ranges = paired_ranges(terms, state, Terms::EMPTY);
    ranges.into_iter().filter(|r| r.1 == Terms::EMPTY).map(|r| r.0).collect()
}

/// Whether the other terminal goes on wherever it hangs on the next character whether this one ends.
pub(super) fn covers(terms: &mut Terms, around: TermId, other: TermId) -> bool {
    let mut seen = States::default();
    seen.insert((around, other));
    let mut at = 0;
    while let Some(&(state, other)) = seen.get_index(at) {
        let after = terms.derive(state, END);
        if after != Terms::EMPTY {
            let told = follow_effect(terms, after);
            let open = intersect_ranges(&told.differs, &unreadable_chars(terms, state));
            if !intersect_ranges(&open, &unreadable_chars(terms, other)).is_empty() {
                return false;
            }
        }
        for (_, onward, read) in paired_ranges(terms, state, other) {
            if onward != Terms::EMPTY {
                seen.insert((onward, read));
            }
        }
        if seen.len() > MOST {
            return false;
        }
        at += 1;
    }
    true
}

/// Ranges of characters with where each of two languages goes.
pub(super) fn paired_ranges(terms: &mut Terms, a: TermId, b: TermId) -> Vec<((u32, u32), TermId, TermId)> {
    let runs = [terms.delta(a), terms.delta(b)];
    let mut at = [0; 2];
    let mut out = Vec::new();
    let mut from = 0;
    while at.iter().zip(&runs).all(|(&at, runs)| at < runs.len()) {
        let here = [0, 1].map(|i| runs[i][at[i]]);
        let end = here[0].end.min(here[1].end);
        for (first, last) in intersect_ranges(&[(from, end)], &TEXT) {
            out.push(((first, last), here[0].to, here[1].to));
        }
        (0..2).filter(|&i| here[i].end == end).for_each(|i| at[i] += 1);
        let Some(next) = end.checked_add(1) else { break };
        from = next;
    }
    work::spend(1 + out.len() as u64 / 32);
    out
}

/// The characters that texts of a language begin with.
pub(super) fn begins(terms: &mut Terms, language: TermId) -> Ranges {
    let ranges = paired_ranges(terms, language, Terms::EMPTY);
    ranges.into_iter().filter(|r| r.1 != Terms::EMPTY).map(|r| r.0).collect()
}

/// Whether a language is that of all texts.
fn is_all(terms: &mut Terms, language: TermId) -> bool {
    let any = terms.any();
    let all = terms.star(any);
    let others = terms.not(language);
    let missing = terms.and(&[all, others]);
    !terms.live(missing)
}
