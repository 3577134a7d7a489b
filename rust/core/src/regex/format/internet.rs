//! `ipv4` (RFC 2673 §3.2), `ipv6` (RFC 4291 §2.2), `hostname` (RFC 1123 §2.1), `email` (RFC 5321 §4.1.2),
//! `idn-email` (RFC 6531 §3.3).
//!
//! Not exact: a label with `--` as its third and fourth character is reserved (RFC 5890 §2.3.1), but for
//! the A-labels `xn--…`. Whether one of them decodes to a valid U-label is arithmetic over its whole length
//! (Punycode, RFC 3492): no regular language of a usable size says it, so A-labels are left out.

use super::abnf::{alpha, any_of, cat, digit, either_case, hex_digit, list, one_of, ranges, text, times};
use crate::regex::charset::CharSet;
use crate::regex::lang::Lang;

/// Four numbers up to 255 without leading zeros.
pub(super) fn ipv4() -> Lang {
    let octet = any_of![
        digit(),
        cat![ranges(&[(0x31, 0x39)]), digit()],
        cat![text("1"), times(digit(), 2)],
        cat![text("2"), ranges(&[(0x30, 0x34)]), digit()],
        cat![text("25"), ranges(&[(0x30, 0x35)])],
    ];
    cat![octet.clone(), times(cat![text("."), octet], 3)]
}

/// Eight groups, one run of them at most as `::`, the last two also as an IPv4 address.
pub(super) fn ipv6() -> Lang {
    ipv6_eliding(1)
}

/// An IPv6 address whose `::` stands for at least `elided` groups.
pub(super) fn ipv6_eliding(elided: u32) -> Lang {
    let group = || hex_digit().repeat(1, Some(4));
    let last_two = || any_of![cat![group(), text(":"), group()], ipv4()];
    let full = cat![times(cat![group(), text(":")], 6), last_two()];
    // `left` groups before the `::`, up to `room` after it.
    let with_gap = (0..=8 - elided).map(|left| {
        let room = 8 - elided - left;
        let before = match left {
            0 => Lang::Epsilon,
            _ => cat![group(), times(cat![text(":"), group()], left - 1)],
        };
        let mut after = vec![Lang::Epsilon];
        if room >= 1 {
            after.push(cat![cat![group(), text(":")].repeat(0, Some(room - 1)), group()]);
        }
        if room >= 2 {
            after.push(cat![cat![group(), text(":")].repeat(0, Some(room - 2)), ipv4()]);
        }
        cat![before, text("::"), Lang::or(after)]
    });
    any_of![full, Lang::or(with_gap)]
}

fn letter_or_digit() -> Lang {
    any_of![alpha(), digit()]
}

/// Letters, digits and hyphens: up to 63, no hyphen at the ends.
fn ldh() -> Lang {
    let inner = any_of![alpha(), digit(), text("-")];
    cat![letter_or_digit(), cat![inner.repeat(0, Some(61)), letter_or_digit()].optional(),]
}

/// A label of such, none of the reserved.
pub(super) fn ldh_label() -> Lang {
    let reserved = cat![times(Lang::any_char(), 2), text("--"), Lang::any()];
    Lang::and([ldh(), reserved.not()])
}

/// Labels with dots between, 253 characters at most.
pub(super) fn hostname() -> Lang {
    Lang::and([list(ldh_label(), text(".")), Lang::any_char().repeat(1, Some(253))])
}

/// Mailbox; the local part has at most 64 octets (§4.5.3.1.1), the domain 255 (§4.5.3.1.2), and a label of it
/// 63, as the names of hosts that it is made of (RFC 1035 §2.3.4).
pub(super) fn email() -> Lang {
    let sub_domain = ldh();
    let domain = any_of![list(sub_domain, text(".")), address_literal()];
    mailbox(CharSet::empty(), domain)
}

/// Mailbox with UTF-8 beyond ASCII in local part and domain. The limits of octets count characters here.
pub(super) fn idn_email() -> Lang {
    let beyond = CharSet::from_ranges(&[(0x80, 0x10_FFFF)]);
    let separators = CharSet::of("\u{3002}\u{FF0E}\u{FF61}\u{FF20}");
    let end = any_of![letter_or_digit(), Lang::class(beyond.minus(&separators))];
    let inner = any_of![end.clone(), text("-")].repeat(0, Some(61));
    let sub_domain = cat![end.clone(), cat![inner, end].optional()];
    let domain = any_of![list(sub_domain, text(".")), address_literal()];
    mailbox(beyond, domain)
}

fn mailbox(beyond: CharSet, domain: Lang) -> Lang {
    let atext = any_of![letter_or_digit(), one_of("!#$%&'*+-/=?^_`{|}~"), Lang::class(beyond.clone())];
    let dot_string = list(atext.plus(), text("."));
    let quoted_text = any_of![ranges(&[(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E)]), Lang::class(beyond)];
    let quoted_pair = cat![text("\\"), ranges(&[(0x20, 0x7E)])];
    let quoted = cat![text("\""), any_of![quoted_text, quoted_pair].star(), text("\"")];
    let local = Lang::and([any_of![dot_string, quoted], Lang::any_char().repeat(1, Some(64))]);
    let domain = Lang::and([domain, Lang::any_char().repeat(1, Some(255))]);
    cat![local, text("@"), domain]
}

/// address-literal (§4.1.3): IPv4, `IPv6:` and an address whose `::` stands for two groups or more, or a
/// registered tag and its text. `IPv6` is a tag with its own form.
fn address_literal() -> Lang {
    let tag_end = letter_or_digit();
    let tag = cat![any_of![alpha(), digit(), text("-")].star(), tag_end];
    let tag = Lang::and([tag, either_case("ipv6").not()]);
    let content = ranges(&[(0x21, 0x5A), (0x5E, 0x7E)]).plus();
    let inner = any_of![ipv4(), cat![either_case("ipv6:"), ipv6_eliding(2)], cat![tag, text(":"), content],];
    cat![text("["), inner, text("]")]
}
