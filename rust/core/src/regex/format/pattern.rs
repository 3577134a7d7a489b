//! `regex`: valid patterns of ECMA-262 with the `u` flag (§22.2.1).
//!
//! Not exact, since validity is not regular: brackets nest without bound, backreferences need their
//! group, counts and class ranges compare two numbers. The language is the part of it with groups nested up to
//! [`DEPTH`], no backreferences, no named groups but one at most, counts of up to three digits before a second count, and
//! class ranges that start at a printable ASCII character or between two escapes of the same form.

use super::abnf::{alpha, any_of, cat, digit, hex_digit, one_of, ranges, text, times};
use crate::regex::charset::CharSet;
use crate::regex::lang::Lang;

/// Levels of groups.
const DEPTH: usize = 5;
const SYNTAX: &str = "^$\\.*+?()[]{}|";

pub(super) fn regex() -> Lang {
    let name = cat![any_of![alpha(), one_of("_$")], any_of![alpha(), digit(), one_of("_$")].star()];
    let named = cat![text("(?<"), name, text(">")];
    // At most one opening has a name, so no name comes twice.
    let opening = any_of![cat![text("("), text("?:").optional()], named.clone()];
    let mentions = cat![Lang::any(), named, Lang::any()];
    let twice = cat![mentions.clone(), mentions];
    // `\0` and a digit would be an octal escape. (Where the backslash is itself escaped, this is too strict.)
    let octal = cat![Lang::any(), text("\\0"), digit(), Lang::any()];
    Lang::and([disjunction(&opening), twice.not(), octal.not()])
}

/// Alternatives of terms, groups nested up to [`DEPTH`]; lookarounds in the two outer levels.
fn disjunction(opening: &Lang) -> Lang {
    let look = any_of![text("(?="), text("(?!"), text("(?<="), text("(?<!")];
    let looking = |depth| cat![look.clone(), terms(opening, depth, &Lang::Empty), text(")")];
    let inner = terms(opening, DEPTH - 2, &Lang::Empty);
    let inner = around(opening, inner, &looking(2));
    around(opening, inner, &looking(2))
}

/// Terms with groups nested up to `depth`, and `more` of another kind.
fn terms(opening: &Lang, depth: usize, more: &Lang) -> Lang {
    (0..depth).fold(around(opening, Lang::Empty, more), |inner, _| around(opening, inner, more))
}

/// Terms with groups around `inner`, and `more`.
fn around(opening: &Lang, inner: Lang, more: &Lang) -> Lang {
    let atom = any_of![
        Lang::class(CharSet::of(SYNTAX).negate()),
        text("."),
        escape(),
        cat![text("\\"), one_of("dDsSwW")],
        property(),
        class(),
        cat![opening.clone(), inner, text(")")],
    ];
    let anchor = any_of![one_of("^$|"), text("\\b"), text("\\B")];
    any_of![cat![atom, quantifier()], anchor, more.clone()].star()
}

/// Perhaps a quantifier, perhaps lazy.
fn quantifier() -> Lang {
    // Two counts in order: as many digits and in order, or more digits without a leading zero.
    let bounded = Lang::or((1..=3).map(|digits| {
        let longer = cat![ranges(&[(0x31, 0x39)]), digit().repeat(digits, None)];
        any_of![in_order("", digits, 10, ","), cat![times(digit(), digits), text(","), longer]]
    }));
    let counts = any_of![digit().plus(), cat![digit().plus(), text(",")], bounded];
    let quantifier = any_of![one_of("*+?"), cat![text("{"), counts, text("}")]];
    cat![quantifier, text("?").optional()].optional()
}

/// An escape that stands for one character, in and outside of classes.
fn escape() -> Lang {
    let hex4 = times(hex_digit(), 4);
    let code = cat![
        text("0").star(),
        any_of![hex_digit().repeat(1, Some(5)), cat![text("10"), times(hex_digit(), 4)]]
    ];
    let zero = text("\\0");
    any_of![
        cat![text("\\"), one_of("fnrtv")],
        cat![text("\\"), one_of(SYNTAX)],
        text("\\/"),
        cat![text("\\c"), alpha()],
        cat![text("\\x"), times(hex_digit(), 2)],
        cat![text("\\u"), any_of![hex4, cat![text("{"), code, text("}")]]],
        zero,
    ]
}

/// `\p{..}` of the general categories and some scripts.
fn property() -> Lang {
    const CATEGORIES: &str =
        "L LC Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp \
                              C Cc Cf Cs Co Cn";
    const BINARY: &str =
        "ASCII Any Assigned Alphabetic Lowercase Uppercase White_Space Emoji ID_Start ID_Continue";
    const SCRIPTS: &str =
        "Arabic Armenian Bengali Common Cyrillic Devanagari Georgian Greek Han Hangul Hebrew Hiragana \
                           Inherited Katakana Latin Tamil Thai";
    let names = |names: &str| Lang::or(names.split_whitespace().map(Lang::text));
    let script = any_of![text("Script"), text("sc"), text("Script_Extensions"), text("scx")];
    let category = any_of![text("General_Category"), text("gc")];
    let name = any_of![
        names(CATEGORIES),
        names(BINARY),
        cat![script, text("="), names(SCRIPTS)],
        cat![category, text("="), names(CATEGORIES)],
    ];
    cat![text("\\"), one_of("pP"), text("{"), name, text("}")]
}

/// `[...]`. A hyphen stands first, last or in a range of two characters in order.
fn class() -> Lang {
    let plain = CharSet::of("\\]-").negate();
    let ascii = CharSet::from_ranges(&[(0x20, 0x7E)]).intersect(&plain);
    let in_order = ascii.0.iter().flat_map(|&(low, high)| low..=high).map(|low| {
        let high = CharSet::from_ranges(&[(low, 0x10_FFFF)]).intersect(&plain);
        cat![Lang::class(CharSet::single(low)), text("-"), Lang::class(high)]
    });
    let set = any_of![cat![text("\\"), one_of("dDsSwW")], property()];
    let member = any_of![
        Lang::class(plain.clone()),
        escape(),
        text("\\-"),
        text("\\b"),
        set,
        Lang::or(in_order),
        escaped_range("\\x", 2),
        escaped_range("\\u", 4),
    ];
    let hyphen = || text("-").optional();
    cat![text("["), text("^").optional(), hyphen(), member.star(), hyphen(), text("]")]
}

/// Two escapes of so many hexadecimal digits in order. No surrogates: two of them may be one character.
fn escaped_range(escape: &str, digits: u32) -> Lang {
    let surrogate = cat![Lang::any(), text("\\u"), one_of("dD"), one_of("89abcdefABCDEF"), Lang::any()];
    Lang::and([in_order(escape, digits, 16, "-"), surrogate.not()])
}

/// Two numbers of so many digits, `opening` before each, the first not above the second: equal up to some digit, and
/// there less; or equal throughout. Each digit is compared by itself; the comparisons are intersected.
fn in_order(opening: &str, digits: u32, radix: u32, between: &str) -> Lang {
    let digit_of = |value: u32| Lang::class(CharSet::of(&format!("{value:x}{value:X}")));
    let any = Lang::or((0..radix).map(digit_of));
    let both = |at: u32, low: Lang, high: Lang| {
        let number = |value: Lang| {
            cat![text(opening), times(any.clone(), at), value, times(any.clone(), digits - at - 1)]
        };
        cat![number(low), text(between), number(high)]
    };
    let equal = |at| Lang::or((0..radix).map(|value| both(at, digit_of(value), digit_of(value))));
    let less = |at| {
        Lang::or(
            (1..radix).map(|value| both(at, digit_of(value - 1), Lang::or((value..radix).map(digit_of)))),
        )
    };
    let less_first_at = |at: u32| Lang::and((0..at).map(equal).chain([less(at)]));
    let all_equal = Lang::and((0..digits).map(equal));
    any_of![Lang::or((0..digits).map(less_first_at)), all_equal]
}
