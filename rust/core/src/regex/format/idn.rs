//! `idn-hostname`: RFC 5890 (IDNA2008) with the code points of RFC 5892 and the bidi rule of RFC 5893.
//!
//! A label is a host name's label or a U-label. Not exact, on the strict side: A-labels are left out (see
//! [`super::internet`]); a zero-width non-joiner between joining letters is known for Arabic letters alone. On the loose
//! side: the limit of 63 octets is on the A-label, whose length is arithmetic; a U-label has at most 59 characters
//! here, as each needs at least one digit after `xn--`; code points follow the Unicode version of the tables in use.

use super::abnf::{any_of, cat, list, one_of};
use super::internet::ldh_label;
use crate::regex::charset::CharSet;
use crate::regex::lang::Lang;

/// Characters that NFKC or case folding of it changes (RFC 5892 §2.2, "Unstable"), but for those that
/// `Changes_When_Casefolded` has already; computed from Unicode 14.
const UNSTABLE: [(u32, u32); 84] = [
    (0xAA, 0xBA),
    (0x133, 0x133),
    (0x140, 0x140),
    (0x1C6, 0x1CC),
    (0x1F3, 0x1F3),
    (0x2B0, 0x2B8),
    (0x2E0, 0x2E4),
    (0x340, 0x341),
    (0x343, 0x344),
    (0x374, 0x374),
    (0x37A, 0x37A),
    (0x3D2, 0x3D4),
    (0x3F2, 0x3F2),
    (0x675, 0x678),
    (0x958, 0x95F),
    (0x9DC, 0x9DF),
    (0xA33, 0xA33),
    (0xA36, 0xA36),
    (0xA59, 0xA5B),
    (0xA5E, 0xA5E),
    (0xB5C, 0xB5D),
    (0xE33, 0xE33),
    (0xEB3, 0xEB3),
    (0xEDC, 0xEDD),
    (0xF43, 0xF43),
    (0xF4D, 0xF4D),
    (0xF52, 0xF52),
    (0xF57, 0xF57),
    (0xF5C, 0xF5C),
    (0xF69, 0xF69),
    (0xF73, 0xF73),
    (0xF75, 0xF79),
    (0xF81, 0xF81),
    (0xF93, 0xF93),
    (0xF9D, 0xF9D),
    (0xFA2, 0xFA2),
    (0xFA7, 0xFA7),
    (0xFAC, 0xFAC),
    (0xFB9, 0xFB9),
    (0x10FC, 0x10FC),
    (0x1D2C, 0x1D2E),
    (0x1D30, 0x1D3A),
    (0x1D3C, 0x1D4D),
    (0x1D4F, 0x1D6A),
    (0x1D78, 0x1D78),
    (0x1D9B, 0x1DBF),
    (0x1F71, 0x1F71),
    (0x1F73, 0x1F73),
    (0x1F75, 0x1F75),
    (0x1F77, 0x1F77),
    (0x1F79, 0x1F79),
    (0x1F7B, 0x1F7B),
    (0x1F7D, 0x1F7D),
    (0x1FBE, 0x1FBE),
    (0x1FD3, 0x1FD3),
    (0x1FE3, 0x1FE3),
    (0x2071, 0x209C),
    (0x2102, 0x2149),
    (0x2C7C, 0x2C7D),
    (0x2D6F, 0x2D6F),
    (0x309F, 0x309F),
    (0x30FF, 0x30FF),
    (0x3131, 0x318E),
    (0xA69C, 0xA69D),
    (0xA770, 0xA770),
    (0xA7F2, 0xA7F4),
    (0xA7F8, 0xA7F9),
    (0xAB5C, 0xAB5F),
    (0xAB69, 0xAB69),
    (0xF900, 0xFA0D),
    (0xFA10, 0xFA10),
    (0xFA12, 0xFA12),
    (0xFA15, 0xFA1E),
    (0xFA20, 0xFA20),
    (0xFA22, 0xFA22),
    (0xFA25, 0xFA26),
    (0xFA2A, 0xFB1D),
    (0xFB1F, 0xFDFB),
    (0xFE70, 0xFE72),
    (0xFE74, 0xFFDC),
    (0x10781, 0x107BA),
    (0x1D400, 0x1D7FF),
    (0x1EE00, 0x1FBF9),
    (0x2F800, 0x2FA1D),
];

/// Characters of combining class 9 (Virama).
const VIRAMA: [(u32, u32); 55] = [
    (0x94D, 0x94D),
    (0x9CD, 0x9CD),
    (0xA4D, 0xA4D),
    (0xACD, 0xACD),
    (0xB4D, 0xB4D),
    (0xBCD, 0xBCD),
    (0xC4D, 0xC4D),
    (0xCCD, 0xCCD),
    (0xD3B, 0xD3C),
    (0xD4D, 0xD4D),
    (0xDCA, 0xDCA),
    (0xE3A, 0xE3A),
    (0xEBA, 0xEBA),
    (0xF84, 0xF84),
    (0x1039, 0x103A),
    (0x1714, 0x1715),
    (0x1734, 0x1734),
    (0x17D2, 0x17D2),
    (0x1A60, 0x1A60),
    (0x1B44, 0x1B44),
    (0x1BAA, 0x1BAB),
    (0x1BF2, 0x1BF3),
    (0x2D7F, 0x2D7F),
    (0xA806, 0xA806),
    (0xA82C, 0xA82C),
    (0xA8C4, 0xA8C4),
    (0xA953, 0xA953),
    (0xA9C0, 0xA9C0),
    (0xAAF6, 0xAAF6),
    (0xABED, 0xABED),
    (0x10A3F, 0x10A3F),
    (0x11046, 0x11046),
    (0x11070, 0x11070),
    (0x1107F, 0x1107F),
    (0x110B9, 0x110B9),
    (0x11133, 0x11134),
    (0x111C0, 0x111C0),
    (0x11235, 0x11235),
    (0x112EA, 0x112EA),
    (0x1134D, 0x1134D),
    (0x11442, 0x11442),
    (0x114C2, 0x114C2),
    (0x115BF, 0x115BF),
    (0x1163F, 0x1163F),
    (0x116B6, 0x116B6),
    (0x1172B, 0x1172B),
    (0x11839, 0x11839),
    (0x1193D, 0x1193E),
    (0x119E0, 0x119E0),
    (0x11A34, 0x11A34),
    (0x11A47, 0x11A47),
    (0x11A99, 0x11A99),
    (0x11C3F, 0x11C3F),
    (0x11D44, 0x11D45),
    (0x11D97, 0x11D97),
];

/// Letters of the Arabic block that join to the right alone, or not at all (Unicode's ArabicShaping).
const NOT_DUAL: [(u32, u32); 18] = [
    (0x621, 0x625),
    (0x627, 0x627),
    (0x629, 0x629),
    (0x62F, 0x632),
    (0x648, 0x648),
    (0x671, 0x677),
    (0x688, 0x699),
    (0x6C0, 0x6C0),
    (0x6C3, 0x6CB),
    (0x6CD, 0x6CD),
    (0x6CF, 0x6CF),
    (0x6D2, 0x6D3),
    (0x6D5, 0x6D5),
    (0x6DD, 0x6DD),
    (0x6E5, 0x6E6),
    (0x6EE, 0x6EF),
    (0x6FD, 0x6FE),
    (0x640, 0x640),
];

const ARABIC_DIGITS: [(u32, u32); 1] = [(0x660, 0x669)];
const EXTENDED_ARABIC_DIGITS: [(u32, u32); 1] = [(0x6F0, 0x6F9)];

fn known(syntax: &str) -> CharSet {
    CharSet::from_syntax(syntax).unwrap_or_default()
}

fn set(of: &[(u32, u32)]) -> CharSet {
    CharSet::from_ranges(of)
}

pub(super) fn hostname() -> Lang {
    let dot = one_of(".\u{3002}\u{FF0E}\u{FF61}");
    let label = any_of![ldh_label(), u_label()];
    let names = list(label, dot.clone());
    // A name with right-to-left characters obeys the bidi rule in each label (RFC 5893 §2).
    let bidi = list(bidi_label(), dot);
    let left_to_right = Lang::class(right().union(&arabic_number()).negate()).star();
    Lang::and([names, any_of![left_to_right, bidi], Lang::any_char().repeat(1, Some(253))])
}

/// Characters of the category PVALID (RFC 5892 §3), without those that need a context.
fn pvalid() -> CharSet {
    let letters = known(r"[\p{Ll}\p{Lu}\p{Lo}\p{Nd}\p{Lm}\p{Mn}\p{Mc}]");
    let unstable = set(&UNSTABLE).union(&known(r"\p{Changes_When_Casefolded}"));
    let ignorable = known(r"[\p{Default_Ignorable_Code_Point}\p{White_Space}\p{Noncharacter_Code_Point}]");
    // Ignorable blocks and old Hangul Jamo.
    let blocks =
        set(&[(0x1100, 0x11FF), (0x20D0, 0x20FF), (0xA960, 0xA97F), (0xD7B0, 0xD7FF), (0x1D100, 0x1D24F)]);
    // Exceptions (§2.6).
    let allowed = CharSet::of("\u{DF}\u{3C2}\u{6FD}\u{6FE}\u{F0B}\u{3007}");
    let refused =
        CharSet::of("\u{640}\u{7FA}\u{302E}\u{302F}\u{3031}\u{3032}\u{3033}\u{3034}\u{3035}\u{303B}");
    let ascii = set(&[(0x2D, 0x2D), (0x30, 0x39), (0x61, 0x7A)]);
    let contextual = set(&ARABIC_DIGITS).union(&set(&EXTENDED_ARABIC_DIGITS));
    let stable = letters.minus(&unstable).minus(&ignorable).minus(&blocks).minus(&refused).minus(&contextual);
    stable.minus(&set(&[(0, 0x7F)])).union(&allowed).union(&ascii)
}

fn u_label() -> Lang {
    let digits = set(&ARABIC_DIGITS).union(&set(&EXTENDED_ARABIC_DIGITS));
    let free = pvalid().union(&digits);
    let contextual = CharSet::of("\u{B7}\u{375}\u{5F3}\u{5F4}\u{30FB}\u{200C}\u{200D}");
    let letters = Lang::class(free.union(&contextual)).repeat(1, Some(59));
    let hyphens = any_of![
        cat![one_of("-"), Lang::any()],
        cat![Lang::any(), one_of("-")],
        cat![Lang::any_char().repeat(2, Some(2)), Lang::text("--"), Lang::any()],
    ];
    let leading_mark = cat![Lang::class(known(r"\p{M}")), Lang::any()];
    Lang::and([letters, hyphens.not(), leading_mark.not()].into_iter().chain(contexts()))
}

/// The contextual rules (RFC 5892 appendix A), each as a condition on the whole label.
fn contexts() -> Vec<Lang> {
    let l = CharSet::of("l");
    let around = |before: Lang, c: &str, after: Lang| occurs_only(CharSet::of(c), before, after);
    let hebrew = || ends_in(&known(r"\p{sc=Hebrew}"));
    let kana_or_han = known(r"[\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Han}]");
    let katakana_dot = CharSet::of("\u{30FB}");
    let virama = ends_in(&set(&VIRAMA));
    let marks = Lang::class(known(r"[\p{Mn}\p{Me}\p{Cf}]").minus(&CharSet::of("\u{200C}\u{200D}"))).star();
    let arabic = known(r"[\p{sc=Arabic}&&\p{L}]").intersect(&set(&[(0x620, 0x6FF)]));
    let joins_left = cat![ends_in(&arabic.minus(&set(&NOT_DUAL))), marks.clone()];
    let none_joins = CharSet::of("\u{621}\u{674}\u{6DD}");
    let joins_right = cat![marks, starts_with(&arabic.minus(&none_joins))];
    let zwnj = CharSet::of("\u{200C}");
    let without = |set: CharSet| Lang::class(set.negate()).star();
    vec![
        occurs_only(CharSet::of("\u{B7}"), ends_in(&l), Lang::any()),
        occurs_only(CharSet::of("\u{B7}"), Lang::any(), starts_with(&l)),
        around(Lang::any(), "\u{375}", starts_with(&known(r"\p{sc=Greek}"))),
        around(hebrew(), "\u{5F3}\u{5F4}", Lang::any()),
        around(virama.clone(), "\u{200D}", Lang::any()),
        // Before each non-joiner a virama, or else joining letters on both sides.
        occurs_only(zwnj.clone(), any_of![virama.clone(), joins_left], Lang::any()),
        cat![virama.not(), Lang::class(zwnj), joins_right.not()].not(),
        any_of![without(katakana_dot), cat![Lang::any(), Lang::class(kana_or_han), Lang::any()]],
        any_of![without(set(&ARABIC_DIGITS)), without(set(&EXTENDED_ARABIC_DIGITS))],
    ]
}

fn ends_in(set: &CharSet) -> Lang {
    cat![Lang::any(), Lang::class(set.clone())]
}

fn starts_with(set: &CharSet) -> Lang {
    cat![Lang::class(set.clone()), Lang::any()]
}

/// Wherever one of the characters stands, what precedes is in `before` and what follows in `after`; one of the
/// two is any text.
fn occurs_only(chars: CharSet, before: Lang, after: Lang) -> Lang {
    let wrong_before = cat![before.not(), Lang::class(chars.clone()), Lang::any()];
    let wrong_after = cat![Lang::any(), Lang::class(chars), after.not()];
    any_of![wrong_before, wrong_after].not()
}

/// Strong right-to-left characters (bidi classes R and AL): letters and the like of the blocks that Unicode keeps for them.
fn right() -> CharSet {
    let blocks =
        set(&[(0x590, 0x8FF), (0xFB1D, 0xFDFF), (0xFE70, 0xFEFF), (0x10800, 0x10FFF), (0x1E800, 0x1EFFF)]);
    let letters = known(r"[\p{L}\p{N}\p{Po}\p{So}\p{Pd}]");
    blocks.intersect(&letters).minus(&arabic_number()).minus(&set(&EXTENDED_ARABIC_DIGITS))
}

/// Bidi class AN.
fn arabic_number() -> CharSet {
    set(&ARABIC_DIGITS).union(&set(&[(0x66B, 0x66C), (0x10D30, 0x10D39), (0x10E60, 0x10E7E)]))
}

/// The bidi rule (RFC 5893 §2), for labels of the characters above.
fn bidi_label() -> Lang {
    let (right, arabic_number) = (right(), arabic_number());
    let european = set(&[(0x30, 0x39)]).union(&set(&EXTENDED_ARABIC_DIGITS));
    let marks = known(r"\p{Mn}");
    let neutral = CharSet::of("-\u{B7}\u{375}\u{30FB}\u{200C}\u{200D}");
    let left = right.union(&arabic_number).union(&european).union(&marks).union(&neutral).negate();
    let anywhere = european.union(&marks).union(&neutral);
    let tail = |last: CharSet| cat![Lang::class(last), Lang::class(marks.clone()).star()];
    let label = |first: &CharSet, inner: CharSet, last: CharSet| {
        let long = cat![Lang::class(first.clone()), Lang::class(inner).star(), tail(last.clone())];
        any_of![long, tail(first.intersect(&last))]
    };
    let without = |set: &CharSet| Lang::class(set.negate()).star();
    let leftward = label(
        &right,
        right.union(&arabic_number).union(&anywhere),
        right.union(&european).union(&arabic_number),
    );
    any_of![
        label(&left, left.union(&anywhere), left.union(&european)),
        Lang::and([leftward, any_of![without(&european), without(&arabic_number)]]),
    ]
}
