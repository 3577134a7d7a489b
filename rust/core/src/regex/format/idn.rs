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
const UNSTABLE: &str =
    "AA-BA 133 140 1C6-1CC 1F3 2B0-2B8 2E0-2E4 340-341 343-344 374 37A 3D2-3D4 3F2 675-678 958-95F 9DC-9DF \
    A33 A36 A59-A5B A5E B5C-B5D E33 EB3 EDC-EDD F43 F4D F52 F57 F5C F69 F73 F75-F79 F81 F93 F9D FA2 FA7 FAC \
    FB9 10FC 1D2C-1D2E 1D30-1D3A 1D3C-1D4D 1D4F-1D6A 1D78 1D9B-1DBF 1F71 1F73 1F75 1F77 1F79 1F7B 1F7D 1FBE \
    1FD3 1FE3 2071-209C 2102-2149 2C7C-2C7D 2D6F 309F 30FF 3131-318E A69C-A69D A770 A7F2-A7F4 A7F8-A7F9 \
    AB5C-AB5F AB69 F900-FA0D FA10 FA12 FA15-FA1E FA20 FA22 FA25-FA26 FA2A-FB1D FB1F-FDFB FE70-FE72 FE74-FFDC \
    10781-107BA 1D400-1D7FF 1EE00-1FBF9 2F800-2FA1D";

/// Characters of combining class 9 (Virama).
const VIRAMA: &str =
    "94D 9CD A4D ACD B4D BCD C4D CCD D3B-D3C D4D DCA E3A EBA F84 1039-103A 1714-1715 1734 17D2 1A60 1B44 \
    1BAA-1BAB 1BF2-1BF3 2D7F A806 A82C A8C4 A953 A9C0 AAF6 ABED 10A3F 11046 11070 1107F 110B9 11133-11134 \
    111C0 11235 112EA 1134D 11442 114C2 115BF 1163F 116B6 1172B 11839 1193D-1193E 119E0 11A34 11A47 11A99 \
    11C3F 11D44-11D45 11D97";

/// Letters of the Arabic block that join to the right alone, or not at all (Unicode's ArabicShaping).
const NOT_DUAL: &str =
    "621-625 627 629 62F-632 648 671-677 688-699 6C0 6C3-6CB 6CD 6CF 6D2-6D3 6D5 6DD 6E5-6E6 6EE-6EF 6FD-6FE 640";

const ARABIC_DIGITS: [(u32, u32); 1] = [(0x660, 0x669)];
const EXTENDED_ARABIC_DIGITS: [(u32, u32); 1] = [(0x6F0, 0x6F9)];

fn known(syntax: &str) -> CharSet {
    CharSet::from_syntax(syntax).unwrap_or_default()
}

/// Code points and ranges of them, in hexadecimal digits.
fn listed(ranges: &str) -> CharSet {
    let read = |digits| u32::from_str_radix(digits, 16).unwrap_or_default();
    let ends = ranges.split(' ').map(|range| range.split_once('-').unwrap_or((range, range)));
    CharSet::from_ranges(&ends.map(|(from, to)| (read(from), read(to))).collect::<Vec<_>>())
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
    let unstable = listed(UNSTABLE).union(&known(r"\p{Changes_When_Casefolded}"));
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
    let virama = ends_in(&listed(VIRAMA));
    let marks = Lang::class(known(r"[\p{Mn}\p{Me}\p{Cf}]").minus(&CharSet::of("\u{200C}\u{200D}"))).star();
    let arabic = known(r"[\p{sc=Arabic}&&\p{L}]").intersect(&set(&[(0x620, 0x6FF)]));
    let joins_left = cat![ends_in(&arabic.minus(&listed(NOT_DUAL))), marks.clone()];
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
