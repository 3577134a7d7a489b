//! Texts that spell a number of a set: the state of a number is its text so far.
//!
//! Syntax and value are separate. Syntax is an ordinary term; of the value, the question is "is some
//! completion of this text in the set" ([`super::possible`]). Once every completion is in the set, the state
//! becomes one that checks no values; texts with the same completions become one ([`super::alike`]), so
//! states recur. Rejected: digit automata per bound and residue; with exponents, which scale the digits
//! before them, their product is neither small nor simple.
//!
//! Limits: exponents have at most [`EXP_DIGITS`] digits; `numbers="natural"` has at most [`WHOLE`] digits before the
//! point and [`PLACES`] after it, or as many as the schema's own numbers need.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::alike::{alike, marks, NumberReach};
use super::decimal::Decimal;
use super::piece::{Bound, NumberForm, Piece};
use super::possible::{ends_canonically, possible};
use super::set::{NumSet, NumSets};
use super::window::{digit_window, includes_all};
use super::Numbers;
use crate::hash::Keyed;
use crate::heap_size::{self, Interner};
use crate::lexical::delta::{runs_of_points, Run};
use crate::lexical::term::{Term, TermId, Terms, INF};

/// Digits of an exponent.
pub const EXP_DIGITS: u32 = 3;
pub(super) const MAX_EXP: i64 = 999;

/// Digits before the point under `numbers="natural"`: those of 256-bit integers.
pub const WHOLE: u32 = 80;
/// Digits after it: those of a decimal of 128 bits, and of the doubles that `JSON.stringify` writes without an exponent.
pub const PLACES: u32 = 40;
/// Digits allowed beyond those of the schema's own numbers.
const SLACK: i64 = 4;

/// The numbers in the range of a double; the least and the greatest positive one are given to 17 digits.
static DOUBLES: LazyLock<[Piece; 3]> = LazyLock::new(|| {
    let positive = ["2.4703282292062328e-324", "1.7976931348623158e308"];
    let [least, most] = positive.map(|text| Decimal::parse(text).expect("a number"));
    let between = |lo, hi| Piece {
        lo: Some(Bound { at: lo, open: false }),
        hi: Some(Bound { at: hi, open: false }),
        ..Piece::all()
    };
    [between(most.neg(), least.neg()), Piece::point(Decimal::zero()), between(least, most)]
});

/// How the numbers of a language are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Style {
    /// Digits alone, with a sign.
    Plain { signed_zero: bool },
    /// As `json.dumps` and `JSON.stringify` write them.
    Canonical { integral: bool },
    /// With any fraction and any exponent.
    Free,
}

/// The id of an interned language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpelledId(u32);

/// The texts of the numbers of a set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spelled {
    pub(super) values: NumSet,
    pub(super) style: Style,
    /// Most digits before the point, and after it.
    pub(super) whole: u32,
    pub(super) places: u32,
    /// The set is all numbers in the range of a double.
    pub(super) all: bool,
    /// Digits of the bounds; `None` if more than the bounds matters.
    pub(super) marks: Option<Box<[Box<str>]>>,
}

/// Interned sets of numbers, their languages, and the texts read so far.
#[derive(Clone, Default)]
pub struct NumberTerms {
    pub sets: NumSets,
    /// How many digits of a number one token of the vocabulary can have.
    pub reach: NumberReach,
    languages: Interner<std::sync::Arc<Spelled>, Keyed>,
    texts: Interner<Box<str>, Keyed>,
    pub(super) syntax: FxHashMap<Style, TermId>,
}

/// A set with more pieces has no key for the shared masks.
const KEYED_PIECES: usize = 8;

heap_size::plain!(std::sync::Arc<Spelled>);

heap_size::tables!(NumberTerms: texts, languages, sets; this => this.languages.len() * 512);

/// A text so far, taken apart.
pub(super) struct Partial<'a> {
    pub(super) negative: bool,
    /// Digits of the mantissa without the point.
    pub(super) digits: String,
    pub(super) fraction: usize,
    pub(super) has_point: bool,
    pub(super) exponent: Option<&'a str>,
}

impl<'a> Partial<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (body, exponent) = match rest.find(['e', 'E']) {
            Some(i) => (&rest[..i], Some(&rest[i + 1..])),
            None => (rest, None),
        };
        let (whole, frac) = body.split_once('.').unwrap_or((body, ""));
        Partial {
            negative,
            digits: [whole, frac].concat(),
            fraction: frac.len(),
            has_point: body.contains('.'),
            exponent,
        }
    }

    pub(super) fn mantissa(&self) -> Decimal {
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        let value = Decimal::new(digits.parse().expect("digits"), -(self.fraction as i64));
        if self.negative {
            value.neg()
        } else {
            value
        }
    }

    /// Digits before the point.
    pub(super) fn whole(&self) -> usize {
        self.digits.len() - self.fraction
    }
}

impl Spelled {
    fn new(values: NumSet, style: Style, whole: u32, places: u32) -> Self {
        let marks = if style == Style::Free { marks(&values) } else { None };
        Spelled { values, style, whole, places, all: false, marks }
    }

    fn integral(&self) -> bool {
        self.style != Style::Free && self.style != Style::Canonical { integral: false }
    }

    /// Whether the text has at most as many digits as the language allows.
    pub(super) fn within(&self, part: &Partial) -> bool {
        part.whole() as u64 <= self.whole as u64 && part.fraction as u64 <= self.places as u64
    }
}

impl NumberTerms {
    /// Whether the text is a number of the language. It is known to be a prefix of one; whether it may end
    /// here, its last digits tell.
    pub fn accepts(&self, language: SpelledId, text: u32) -> bool {
        let text = &self.texts[text as usize];
        if !text.ends_with(|c: char| c.is_ascii_digit()) {
            return false;
        }
        let part = Partial::of(text);
        let exponent: i64 = part.exponent.map_or(0, |e| e.parse().expect("at most three digits"));
        let language = &self.languages[language.0 as usize];
        if matches!(language.style, Style::Canonical { .. }) && !ends_canonically(&part) {
            return false;
        }
        language.all && part.exponent.is_none() || language.values.contains(&part.mantissa().scale(exponent))
    }

    /// Most digits before the point and after it, where they are bounded.
    pub(crate) fn most_digits(&self, id: SpelledId) -> Option<(u32, u32)> {
        let language = self.language(id);
        // the range of a double: a number can end one digit after a sign
        let most = if language.all { (0, 0) } else { (language.whole, language.places) };
        Some(most).filter(|most| most.0 != INF && most.1 != INF)
    }

    pub(super) fn language(&self, id: SpelledId) -> &std::sync::Arc<Spelled> {
        &self.languages[id.0 as usize]
    }

    pub(super) fn text(&self, text: u32) -> &str {
        &self.texts[text as usize]
    }

    /// Writes the language and the text so far as a key; false if there is none. Texts that no token can
    /// distinguish (`phase`) share one.
    pub(crate) fn encode(&self, id: SpelledId, text: u32, out: &mut Vec<u8>) -> bool {
        use std::io::Write;
        let language = self.language(id);
        let text = &self.texts[text as usize];
        if language.all {
            if let Some(key) = self.reach.phase(text, language.whole, language.places) {
                return write!(out, "{key:?}").is_ok();
            }
        }
        let pieces = &language.values.pieces;
        if pieces.len() > KEYED_PIECES {
            return false;
        }
        let Spelled { style, whole, places, .. } = **language;
        write!(out, "{style:?}|{whole}|{places}|{text}|{pieces:?}").is_ok()
    }
}

impl Terms {
    /// The texts of the numbers of a set.
    pub fn numbers_in(&mut self, set: NumSet, how: Numbers) -> TermId {
        if set.is_empty() {
            return Self::EMPTY;
        }
        match how {
            Numbers::Natural => return self.natural_numbers(set, Style::Free),
            Numbers::Shortest => return self.natural_numbers(set, Style::Canonical { integral: false }),
            Numbers::Canonical | Numbers::Any => {}
        }
        if !is_plain(&set) && !set.in_any_spelling() {
            return self.by_spelling(set, how);
        }
        let integral = only_integers(&set);
        let style = match how {
            _ if is_plain(&set) => Style::Plain { signed_zero: how == Numbers::Any },
            Numbers::Any => Style::Free,
            _ => Style::Canonical { integral },
        };
        let whole_line = set.pieces.iter().any(is_all_integers);
        match style {
            _ if set.is_all() => self.number_syntax(style),
            Style::Plain { .. } | Style::Canonical { integral: true } if whole_line => {
                self.number_syntax(style)
            }
            _ => self.spelled(Spelled::new(set, style, INF, INF)),
        }
    }

    /// For a set that distinguishes spellings: the union of its plain, marked and other pieces, each in its
    /// spelling.
    fn by_spelling(&mut self, set: NumSet, how: Numbers) -> TermId {
        let part = |kind: NumberForm| NumSet {
            pieces: set.pieces.iter().filter(|p| p.spelling == kind).cloned().collect(),
        };
        let marked = self.numbers_in(in_any(part(NumberForm::Marked)), how);
        let marked = self.with_mark(marked);
        let plain = self.numbers_in(part(NumberForm::Plain), how);
        let any = self.numbers_in(part(NumberForm::Any), how);
        self.or(&[plain, any, marked])
    }

    /// Of these texts, those with a fraction or an exponent.
    fn with_mark(&mut self, numbers: TermId) -> TermId {
        let digits = self.plain_syntax(INF, true);
        let other = self.not(digits);
        self.and(&[numbers, other])
    }

    /// Integers as digits; of the other numbers those in the range of a double, in a style.
    fn natural_numbers(&mut self, set: NumSet, style: Style) -> TermId {
        let (whole, places) = most_digits(&set);
        let integer =
            |p: &Piece| p.spelling == NumberForm::Plain || p.spelling == NumberForm::Any && is_integral(p);
        let (integers, others): (Vec<Piece>, Vec<Piece>) = set.pieces.into_iter().partition(integer);
        let (marked, others): (Vec<Piece>, Vec<Piece>) =
            others.into_iter().partition(|p| p.spelling == NumberForm::Marked);
        let signed_zero = style == Style::Free;
        let plain = Style::Plain { signed_zero };
        let integers = if integers.iter().any(is_all_integers) {
            self.plain_syntax(whole, signed_zero)
        } else {
            self.few_digits(in_any(NumSet { pieces: integers }), plain, (whole, places))
        };
        let others = self.few_digits(held(others), style, (whole, places));
        let marked = self.few_digits(held(in_any(NumSet { pieces: marked }).pieces), style, (whole, places));
        let marked = self.with_mark(marked);
        self.or(&[integers, others, marked])
    }

    /// With at most so many digits, or with any number of them if that leaves nothing.
    fn few_digits(&mut self, values: NumSet, style: Style, (whole, places): (u32, u32)) -> TermId {
        if values.is_empty() {
            return Self::EMPTY;
        }
        if values == held(vec![Piece::all()]) {
            match style {
                Style::Free => {
                    let all = self.all_doubles();
                    return self.number(all, "");
                }
                Style::Canonical { integral: false } => return self.number_syntax(style),
                _ => {}
            }
        }
        match self.spelled(Spelled::new(values.clone(), style, whole, places)) {
            Self::EMPTY => self.spelled(Spelled::new(values, style, INF, INF)),
            term => term,
        }
    }

    /// Every number in the range of a double.
    fn all_doubles(&mut self) -> SpelledId {
        let values = held(vec![Piece::all()]);
        let language = Spelled { all: true, ..Spelled::new(values, Style::Free, WHOLE, PLACES) };
        SpelledId(self.numbers.languages.intern(language.into()))
    }

    fn spelled(&mut self, language: Spelled) -> TermId {
        crate::work::spend(1 + language.values.pieces.len() as u64);
        let (id, _) = self.numbers.languages.insert_full(language.into());
        let start = self.number(SpelledId(id as u32), "");
        let runs = self.delta(start);
        if runs.iter().all(|r| r.to == Self::EMPTY) {
            return Self::EMPTY;
        }
        start
    }

    fn number(&mut self, language: SpelledId, text: &str) -> TermId {
        let text = match self.numbers.texts.get_index_of(text) {
            Some(i) => i,
            None => self.numbers.texts.insert_full(text.into()).0,
        };
        self.intern(Term::Num(language, text as u32))
    }

    pub(crate) fn number_runs(&mut self, id: SpelledId, text: u32) -> Vec<Run> {
        let text = self.numbers.texts[text as usize].to_string();
        let syntax = self.syntax_after(id, &text);
        let chars = "+-.0123456789Ee".chars();
        let points = chars.map(|c| (c as u32, self.number_after(id, &text, syntax, c)));
        let points: Vec<(u32, TermId)> = points.filter(|point| point.1 != Self::EMPTY).collect();
        runs_of_points(&points)
    }

    /// The derivative of a number by one character alone; `None` for other terms.
    pub(crate) fn number_step(&mut self, term: TermId, byte: u8) -> Option<TermId> {
        let Term::Num(id, text) = *self.get(term) else { return None };
        let text = self.numbers.texts[text as usize].to_string();
        let syntax = self.syntax_after(id, &text);
        Some(self.number_after(id, &text, syntax, byte as char))
    }

    /// The residual of the language's syntax after a text.
    fn syntax_after(&mut self, id: SpelledId, text: &str) -> TermId {
        let start = self.number_syntax(self.numbers.language(id).style);
        text.chars().fold(start, |syntax, c| self.derive(syntax, c as u32))
    }

    fn number_after(&mut self, id: SpelledId, text: &str, syntax: TermId, c: char) -> TermId {
        let rest = self.derive(syntax, c as u32);
        if rest == Self::EMPTY {
            return rest;
        }
        // `E` means `e`: one text for both halves the number of states
        let longer = format!("{text}{}", c.to_ascii_lowercase());
        let part = Partial::of(&longer);
        let language = self.numbers.language(id).clone();
        match language.within(&part) && possible(&language, &part) {
            true => self.after_digit(id, &language, &longer, &part, rest),
            false => Self::EMPTY,
        }
    }

    /// The state after a text; `rest`: the residual of the syntax.
    fn after_digit(
        &mut self,
        id: SpelledId,
        language: &Spelled,
        text: &str,
        part: &Partial,
        rest: TermId,
    ) -> TermId {
        if !language.all && includes_all(language, part) {
            return match language.style {
                _ if language.whole == INF => rest,
                Style::Free => {
                    let all = self.all_doubles();
                    let every = self.numbers.language(all);
                    let text = alike(&every.values, every.marks.as_deref(), text).unwrap_or(text.into());
                    self.number(all, &text)
                }
                Style::Canonical { integral: false } => {
                    let whole = match part.has_point {
                        true => None,
                        false => Some(language.whole - part.digits.len() as u32),
                    };
                    self.within_digits(rest, whole, language.places - part.fraction as u32)
                }
                _ if part.digits.starts_with('0') => rest,
                _ => self.more_digits(0, language.whole - part.digits.len() as u32, false),
            };
        }
        if let Some((least, most)) =
            language.integral().then(|| digit_window(&language.values, part)).flatten()
        {
            let left = if language.whole == INF { INF } else { language.whole - part.digits.len() as u32 };
            let marked = matches!(language.style, Style::Canonical { .. });
            return self.more_digits(least, most.min(left), marked);
        }
        let text = alike(&language.values, language.marks.as_deref(), text).unwrap_or(text.into());
        self.number(id, &text)
    }
}

/// The pieces cut to the range of a double; one entirely outside stays as it is.
pub(super) fn held(pieces: Vec<Piece>) -> NumSet {
    let mut out: Vec<Piece> = Vec::new();
    for piece in pieces {
        let before = out.len();
        for range in DOUBLES.iter() {
            out.extend(piece.intersect(range).filter(|both| !both.is_empty()));
        }
        if out.len() == before {
            out.push(piece);
        }
    }
    NumSet { pieces: out }
}

/// Most digits before the point and after it: more where the set's own bounds and units need them.
fn most_digits(set: &NumSet) -> (u32, u32) {
    let (mut whole, mut places) = (WHOLE as i64, PLACES as i64);
    for piece in &set.pieces {
        let ends = [&piece.lo, &piece.hi].into_iter().flatten().map(|b| &b.at);
        for number in ends.chain(&piece.unit).chain(&piece.not_units).filter(|n| !n.is_zero()) {
            whole = whole.max(number.magnitude() + 1 + SLACK);
            places = places.max(number.places() + SLACK);
        }
    }
    (whole as u32, places as u32)
}

fn in_any(mut set: NumSet) -> NumSet {
    set.pieces.iter_mut().for_each(|p| p.spelling = NumberForm::Any);
    set
}

fn is_plain(set: &NumSet) -> bool {
    set.pieces.iter().all(|p| p.spelling == NumberForm::Plain)
}

fn is_all_integers(p: &Piece) -> bool {
    p.lo.is_none() && p.hi.is_none() && p.not_units.is_empty() && p.unit == Some(Decimal::one())
}

fn is_integral(p: &Piece) -> bool {
    match p.as_point() {
        Some(x) => x.is_multiple_of(&Decimal::one()),
        None => p.unit.as_ref().is_some_and(|u| u.is_multiple_of(&Decimal::one())),
    }
}

/// Whether every number of the set is an integer.
pub fn only_integers(set: &NumSet) -> bool {
    set.pieces.iter().all(is_integral)
}
