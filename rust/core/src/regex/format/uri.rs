//! `uri`, `uri-reference` (RFC 3986 appendix A), `iri`, `iri-reference` (RFC 3987 §2.2), `uri-template` (RFC 6570 §2).
//!
//! Exact. URIs and IRIs share one grammar; an IRI has more unreserved characters, and private ones in its query.

use super::abnf::{alpha, any_of, cat, digit, either_case, hex_digit, list, one_of, ranges, text, times};
use super::internet::{ipv4, ipv6};
use crate::regex::lang::Lang;

/// What distinguishes IRIs from URIs: characters beyond ASCII.
struct Grammar {
    ucschar: Lang,
    private: Lang,
}

fn ucschar() -> Lang {
    let mut planes = vec![(0xA0, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFEF)];
    planes.extend((1..=0xD).map(|plane| (plane << 16, (plane << 16) + 0xFFFD)));
    planes.push((0xE1000, 0xEFFFD));
    ranges(&planes)
}

fn private() -> Lang {
    ranges(&[(0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x10_0000, 0x10_FFFD)])
}

const ASCII: Grammar = Grammar { ucschar: Lang::Empty, private: Lang::Empty };

fn international() -> Grammar {
    Grammar { ucschar: ucschar(), private: private() }
}

pub(super) fn uri() -> Lang {
    ASCII.absolute()
}

pub(super) fn uri_reference() -> Lang {
    ASCII.reference()
}

pub(super) fn iri() -> Lang {
    international().absolute()
}

pub(super) fn iri_reference() -> Lang {
    international().reference()
}

fn percent_encoded() -> Lang {
    cat![text("%"), times(hex_digit(), 2)]
}

fn sub_delims() -> Lang {
    one_of("!$&'()*+,;=")
}

impl Grammar {
    fn unreserved(&self) -> Lang {
        any_of![alpha(), digit(), one_of("-._~"), self.ucschar.clone()]
    }

    /// pchar without what `more` adds to it.
    fn char_with(&self, more: &str) -> Lang {
        any_of![self.unreserved(), percent_encoded(), sub_delims(), one_of(more)]
    }

    fn authority(&self) -> Lang {
        let user = cat![self.char_with(":").star(), text("@")].optional();
        let future = cat![
            either_case("v"),
            hex_digit().plus(),
            text("."),
            any_of![alpha(), digit(), one_of("-._~"), sub_delims(), text(":")].plus(),
        ];
        // reg-name has every IPv4 address among its texts.
        let host =
            any_of![cat![text("["), any_of![ipv6(), future], text("]")], ipv4(), self.char_with("").star(),];
        cat![user, host, cat![text(":"), digit().star()].optional()]
    }

    /// hier-part, or (`first` without a colon) relative-part.
    fn hierarchy(&self, first: Lang) -> Lang {
        let segment = || self.char_with(":@").star();
        let more = || cat![text("/"), segment()].star();
        any_of![
            cat![text("//"), self.authority(), more()],
            cat![text("/"), cat![self.char_with(":@").plus(), more()].optional()],
            cat![first, more()],
            Lang::Epsilon,
        ]
    }

    fn query_and_fragment(&self) -> Lang {
        let fragment = self.char_with(":@/?");
        let query = any_of![fragment.clone(), self.private.clone()];
        cat![cat![text("?"), query.star()].optional(), cat![text("#"), fragment.star()].optional()]
    }

    fn absolute(&self) -> Lang {
        let scheme = cat![alpha(), any_of![alpha(), digit(), one_of("+-.")].star()];
        let path = self.char_with(":@").plus();
        cat![scheme, text(":"), self.hierarchy(path), self.query_and_fragment()]
    }

    fn reference(&self) -> Lang {
        let no_colon = self.char_with("@").plus();
        any_of![self.absolute(), cat![self.hierarchy(no_colon), self.query_and_fragment()]]
    }
}

/// URI-Template. The apostrophe is a literal (erratum 6937).
pub(super) fn template() -> Lang {
    let ascii = ranges(&[
        (0x21, 0x21),
        (0x23, 0x24),
        (0x26, 0x3B),
        (0x3D, 0x3D),
        (0x3F, 0x5B),
        (0x5D, 0x5D),
        (0x5F, 0x5F),
        (0x61, 0x7A),
        (0x7E, 0x7E),
    ]);
    let literal = any_of![ascii, ucschar(), private(), percent_encoded()];
    let var_char = any_of![alpha(), digit(), text("_"), percent_encoded()];
    let name = list(var_char.plus(), text("."));
    let prefix = cat![text(":"), ranges(&[(0x31, 0x39)]), digit().repeat(0, Some(3))];
    let variable = cat![name, any_of![prefix, text("*")].optional()];
    let operator = one_of("+#./;?&=,!@|").optional();
    let expression = cat![text("{"), operator, list(variable, text(",")), text("}")];
    any_of![literal, expression].star()
}
