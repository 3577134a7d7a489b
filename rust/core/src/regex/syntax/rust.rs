//! Patterns of Rust's `regex`, read by its own parser.
//!
//! Invariant: `regex` and `regex-syntax` are one project; what its tree says is what the dialect means.

use regex_syntax::hir::{Class, Hir, HirKind, Look};
use regex_syntax::ParserBuilder;

use super::node::Node;
use super::{MAX_COUNT, MAX_NESTING};
use crate::regex::charset::CharSet;
use crate::regex::error::RegexError;

/// The most sets with a name: each takes several kilobytes and, without regard to case, a millisecond; `regex` itself
/// stops at ten megabytes.
const MAX_SETS: usize = 2000;
/// The longest pattern, in bytes.
const MAX_LENGTH: usize = 1 << 18;

/// Reads a pattern of Rust's `regex`.
pub fn parse(pattern: &str, ordered: bool) -> Result<Node, RegexError> {
    if pattern.len() > MAX_LENGTH {
        let message = format!("the pattern has {} bytes, the limit is {MAX_LENGTH}; split it", pattern.len());
        return Err(RegexError::limit(1, message));
    }
    let sets = pattern.matches('\\').count();
    let sets = if sets < MAX_SETS { sets } else { named_sets(pattern) };
    if sets > MAX_SETS {
        let message = format!("the pattern has {sets} sets as `\\w`, the limit is {MAX_SETS}; split it");
        return Err(RegexError::limit(1, message));
    }
    crate::work::spend(SET * sets as u64);
    let parsed = ParserBuilder::new().nest_limit(MAX_NESTING as u32).build().parse(pattern);
    let hir = parsed.map_err(|error| refusal(pattern, &error))?;
    node(&hir, ordered)
}

/// Steps of work for one set with a name.
const SET: u64 = 1000;

/// Backslashes before the letter of a set.
fn named_sets(pattern: &str) -> usize {
    let letters = pattern.bytes().zip(pattern.bytes().skip(1));
    letters.filter(|&(slash, letter)| slash == b'\\' && b"pPwWdDsS".contains(&letter)).count()
}

fn refusal(pattern: &str, error: &regex_syntax::Error) -> RegexError {
    use regex_syntax::ast::ErrorKind as Syntax;
    let column = |offset: usize| 1 + pattern.get(..offset).map_or(0, |text| text.chars().count());
    match error {
        regex_syntax::Error::Parse(error) => {
            let (column, message) = (column(error.span().start.offset), error.kind().to_string());
            match error.kind() {
                Syntax::UnsupportedLookAround | Syntax::UnsupportedBackreference => {
                    RegexError::invalid(column, format!("{message} by Rust's `regex`"))
                }
                Syntax::NestLimitExceeded(_) => RegexError::limit(column, message),
                _ => RegexError::invalid(column, message),
            }
        }
        regex_syntax::Error::Translate(error) => {
            RegexError::invalid(column(error.span().start.offset), error.kind().to_string())
        }
        _ => RegexError::invalid(1, "not a pattern of Rust's `regex`"),
    }
}

fn node(hir: &Hir, ordered: bool) -> Result<Node, RegexError> {
    let all = |parts: &[Hir]| parts.iter().map(|part| node(part, ordered)).collect::<Result<Vec<_>, _>>();
    Ok(match hir.kind() {
        HirKind::Empty => Node::empty(),
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => Node::Text(text.into()),
            Err(_) => return Err(RegexError::unsupported(1, "the pattern is over bytes, not characters")),
        },
        HirKind::Class(Class::Unicode(class)) => Node::Set(CharSet::from_class(class)),
        HirKind::Class(Class::Bytes(class)) => {
            let ranges = class.iter().map(|r| (r.start().into(), r.end().into()));
            Node::Set(CharSet::from_ranges(&ranges.collect::<Vec<_>>()))
        }
        HirKind::Look(look) => assertion(*look),
        HirKind::Repetition(rounds) => {
            if rounds.min.max(rounds.max.unwrap_or(0)) > MAX_COUNT {
                return Err(RegexError::limit(1, format!("a repetition counts at most to {MAX_COUNT}")));
            }
            let repeat = Node::Repeat(Box::new(node(&rounds.sub, ordered)?), rounds.min, rounds.max);
            if ordered && !rounds.greedy {
                Node::Lazy(Box::new(repeat))
            } else {
                repeat
            }
        }
        HirKind::Capture(capture) => node(&capture.sub, ordered)?,
        HirKind::Concat(parts) => Node::concat(all(parts)?),
        HirKind::Alternation(parts) => Node::alt(all(parts)?),
    })
}

fn assertion(look: Look) -> Node {
    const COLUMN: usize = 1; // the parser's tree has no positions
    let word = |unicode: bool| {
        let name = if unicode { r"\w" } else { "[0-9A-Za-z_]" };
        CharSet::from_syntax(name).unwrap_or_default()
    };
    let beside =
        |behind, negative, set: &CharSet| Node::look(behind, negative, Node::Set(set.clone()), COLUMN);
    // no word character outside; with `both`, one inside
    let edge = |start: bool, both: bool, unicode: bool| {
        let word = word(unicode);
        let outside = beside(start, true, &word);
        if both {
            Node::Concat(vec![outside, beside(!start, false, &word)])
        } else {
            outside
        }
    };
    let line = |behind| beside(behind, true, &CharSet::of("\n").negate());
    let after_return = || Node::look(true, false, Node::Set(CharSet::of("\r")), COLUMN);
    let before_newline = || Node::look(false, false, Node::Set(CharSet::of("\n")), COLUMN);
    match look {
        Look::Start => Node::start(COLUMN),
        Look::End => Node::end(COLUMN),
        Look::StartLF => line(true),
        Look::EndLF => line(false),
        // at a line's start or end, but not between `\r` and `\n`
        Look::StartCRLF => Node::Alt(vec![
            line(true),
            Node::Concat(vec![after_return(), beside(false, true, &CharSet::of("\n"))]),
        ]),
        Look::EndCRLF => Node::Alt(vec![
            beside(false, true, &CharSet::of("\r").negate()),
            Node::Concat(vec![beside(true, true, &CharSet::of("\r")), before_newline()]),
        ]),
        Look::WordAscii => Node::boundary(&word(false), false, COLUMN),
        Look::WordAsciiNegate => Node::boundary(&word(false), true, COLUMN),
        Look::WordUnicode => Node::boundary(&word(true), false, COLUMN),
        Look::WordUnicodeNegate => Node::boundary(&word(true), true, COLUMN),
        Look::WordStartAscii => edge(true, true, false),
        Look::WordEndAscii => edge(false, true, false),
        Look::WordStartUnicode => edge(true, true, true),
        Look::WordEndUnicode => edge(false, true, true),
        Look::WordStartHalfAscii => edge(true, false, false),
        Look::WordEndHalfAscii => edge(false, false, false),
        Look::WordStartHalfUnicode => edge(true, false, true),
        Look::WordEndHalfUnicode => edge(false, false, true),
    }
}
