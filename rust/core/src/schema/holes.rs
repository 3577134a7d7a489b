//! Strings of a schema that are the texts of a grammar that is not regular: a hole.
//!
//! Formulas join, cut and deny languages of strings, and a hole's is unknown to them.  So the languages hold texts of two
//! kinds: `w` stands for a string that no hole's grammar has, and a mark before it, `m w`, for one that the hole of that
//! mark has (a mark is a surrogate, which no text holds; two more stand for "all of them have it" and "none has").  A
//! hole's language is then `m` and whatever follows, and every other language says of `m w` what it says of `w`.
//! Invariant: a string is read as a hole's text where that alone decides; where more is said of it (`maxLength` beside a
//! hole, `not`, `uniqueItems`, a property's name) the schema is refused.
//! Complements and languages that begin with any text hold no marks, so what they say beside a hole is not seen here: the
//! frontend refuses such places (`string_grammars.py`).
//! Complexity: a derivative for each mark.
//! Rejected: marks as texts of their own (`maxLength: 1` held for every text of the hole); asking whether two languages
//! differ, where their derivatives do (tens of millions of steps for patterns of addresses).

use super::document::{Json, JsonNodeId};
use super::table::{self, ValueKind};
use super::{Holes, Schema, MARK};
use crate::error::{Error, Kind, Result};
use crate::lexical::{TermId, Terms};

/// The marks of what all holes have and of what none has; those of the holes follow.
const ALL_HOLES: u32 = 0xD800;
const NO_HOLE: u32 = ALL_HOLES + 1;
/// Holes of a schema.
pub(crate) const MOST_HOLES: usize = 1024;

/// The strings of a marked place.
pub enum Hole {
    /// A regular language: a place as any other.
    Language(TermId),
    /// Texts of a grammar, one of which is known.
    Grammar(Box<str>),
}

/// What a language says of the holes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum HoleUse {
    Nothing,
    /// The texts of these holes, whatever else it holds.
    Texts(Box<[u32]>),
    /// Something of some of their texts.
    Mixed,
}

fn mark_of(hole: u32) -> u32 {
    NO_HOLE + 1 + hole
}

/// Strings that begin with a mark.
fn marked(terms: &mut Terms, holes: u32, rest: TermId) -> TermId {
    let mark = terms.class(&[(ALL_HOLES, mark_of(holes) - 1)]);
    terms.concat(mark, rest)
}

/// A language that says of a string in a hole what it says of any.
fn lifted(terms: &mut Terms, holes: u32, language: TermId) -> TermId {
    if holes == 0 || language == Terms::ALL || language == Terms::EMPTY {
        return language;
    }
    let mut plain = language;
    if terms.is_boolean(language) {
        // a complement holds marks of its own
        let with_mark = marked(terms, holes, Terms::ALL);
        let without = terms.not(with_mark);
        plain = terms.and(&[language, without]);
    }
    let inside = marked(terms, holes, language);
    terms.or(&[plain, inside])
}

/// What a language says of the holes.
pub(crate) fn says(terms: &mut Terms, holes: Holes, language: TermId) -> HoleUse {
    // "any string" has no marks of its own, and needs none
    if holes.count == 0 || language == Terms::ALL || language == Terms::EMPTY {
        return HoleUse::Nothing;
    }
    // what the holes do not matter to is derived alike: terms are interned
    let none = terms.derive(language, NO_HOLE);
    let all = terms.derive(language, ALL_HOLES);
    let by_hole: Vec<TermId> = (0..holes.count).map(|hole| terms.derive(language, mark_of(hole))).collect();
    if all == none && by_hole.iter().all(|&inside| inside == none) {
        return HoleUse::Nothing;
    }
    let texts: Box<[u32]> = (0..holes.count).filter(|&hole| by_hole[hole as usize] == holes.every).collect();
    if texts.is_empty() || all != holes.every {
        return HoleUse::Mixed;
    }
    HoleUse::Texts(texts)
}

pub(crate) fn refusal() -> Error {
    let message = "the grammar of a string is not regular, and more is said of the same string (another keyword, a \
                   negation, uniqueItems, or the name of a property); say it in the grammar, or give a regular one (`tf.regex`)";
    Error::new(Kind::UnsupportedSchema, message)
}

impl Schema {
    /// Gives the formats of marked places their languages.
    pub(super) fn open_holes(&mut self, given: &[Hole]) {
        let count = given.iter().filter(|hole| matches!(hole, Hole::Grammar(_))).count() as u32;
        self.holes = Holes { count, every: self.patterns.guard };
        self.patterns.guard = self.lifted(self.patterns.guard);
        let mut next = 0;
        for (i, hole) in given.iter().enumerate() {
            let terms = &mut self.lexicon.terms;
            let language = match hole {
                Hole::Language(term) => lifted(terms, count, *term),
                Hole::Grammar(known) => {
                    let own = mark_of(next);
                    next += 1;
                    let marks = terms.class(&[(ALL_HOLES, ALL_HOLES), (own, own)]);
                    let marks = terms.concat(marks, Terms::ALL);
                    let known = terms.literal(known);
                    terms.or(&[marks, known])
                }
            };
            self.patterns.formats.insert(format!("{MARK}{i}").into(), Some(language));
        }
    }

    pub(crate) fn lifted(&mut self, language: TermId) -> TermId {
        lifted(&mut self.lexicon.terms, self.holes.count, language)
    }

    /// The texts without a mark: a name is never a hole's text.
    pub(crate) fn unmarked(&mut self) -> TermId {
        if self.holes.count == 0 {
            return Terms::ALL;
        }
        let terms = &mut self.lexicon.terms;
        let with_mark = marked(terms, self.holes.count, Terms::ALL);
        terms.not(with_mark)
    }

    /// A language of names, which no hole may have a say in.
    pub(crate) fn without_holes(&mut self, names: TermId) -> Result<TermId> {
        match says(&mut self.lexicon.terms, self.holes, names) {
            HoleUse::Nothing => Ok(names),
            _ => Err(refusal()),
        }
    }

    /// Refuses a schema some part of which says more of a string in a hole.
    pub(crate) fn check_holes(&mut self) -> Result<()> {
        if self.holes.count == 0 {
            return Ok(());
        }
        let root = self.resolver.root();
        let mut seen = vec![false; self.doc.node_count()];
        let mut stack: Vec<JsonNodeId> = vec![root];
        while let Some(node) = stack.pop() {
            if std::mem::replace(&mut seen[node.0 as usize], true) {
                continue;
            }
            let sub = self.node_sub(node);
            let value = self.compile(sub)?;
            let strings = self.value(value).str;
            if says(&mut self.lexicon.terms, self.holes, strings) == HoleUse::Mixed {
                return Err(refusal().at(&self.doc.pointer(node)));
            }
            if self.key_is_true(node, "uniqueItems") && self.has_items_of_holes(node)? {
                return Err(refusal().at(&self.doc.pointer(node)).keyword("uniqueItems"));
            }
            let draft = self.resolver.draft(&self.doc, node);
            for (keyword, value) in self.doc.entries(node).to_vec() {
                if let Some(what) = table::holds(&keyword, draft) {
                    if what == ValueKind::Reference {
                        stack.extend(self.reference(node, &keyword, value)?);
                    } else if !["not", "if", "contains"].contains(&&*keyword) {
                        stack.extend(table::subschemas(&self.doc, what, value));
                    }
                }
            }
        }
        Ok(())
    }

    fn key_is_true(&self, node: JsonNodeId, key: &str) -> bool {
        self.doc.key(node, key).is_some_and(|value| matches!(self.doc.get(value), Json::Bool(true)))
    }

    fn has_items_of_holes(&mut self, node: JsonNodeId) -> Result<bool> {
        let draft = self.resolver.draft(&self.doc, node);
        for keyword in ["items", "prefixItems", "additionalItems"] {
            let Some((value, what)) = self.doc.key(node, keyword).zip(table::holds(keyword, draft)) else {
                continue;
            };
            for item in table::subschemas(&self.doc, what, value) {
                let sub = self.node_sub(item);
                let strings = self.compile(sub)?;
                let strings = self.value(strings).str;
                if says(&mut self.lexicon.terms, self.holes, strings) != HoleUse::Nothing {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
