//! The tokens of a text, and mistakes with their place.

use crate::error::{Error, Kind, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// The name and the `::=` of a rule.
    Head,
    Name,
    Literal,
    Class,
    Any,
    /// `<[id]>` or `<name>`; `!` before it: any other.
    Named,
    /// `?`, `*`, `+` or `{m,n}`: at least, at most.
    Repeat(u64, Option<u64>),
    Bar,
    Open,
    Close,
    End,
}

/// Where a token is read, for the message about one that can't stand there.
#[derive(Clone, Copy)]
pub(super) enum TokenContext {
    /// Before the first rule.
    Start,
    /// In a rule, `depth` groups deep; `repeatable`: behind what can be repeated.
    Rule { depth: usize, repeatable: bool },
}

impl TokenContext {
    fn expected(self) -> String {
        const RULE: &str = "a rule (name ::=)";
        let TokenContext::Rule { depth, repeatable } = self else {
            return RULE.into();
        };
        let mut all = vec!["a \"literal\"", "a [class]", "'.'", "a <token>", "a rule name", "'('", "'|'"];
        if repeatable {
            all.extend(["'?', '*' or '+'", "'{m,n}'"]);
        }
        all.extend(if depth > 0 { &["')'"][..] } else { &[RULE, "the end of the grammar"][..] });
        all.join(" or ")
    }
}

/// A token and its bytes in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScannedToken<'t> {
    pub token: Token,
    pub at: usize,
    pub text: &'t str,
}

pub(super) struct Scan<'t> {
    text: &'t str,
    at: usize,
    /// The end of the last token.
    behind: usize,
    pub next: ScannedToken<'t>,
}

impl<'t> Scan<'t> {
    /// The text with its first token read.
    pub fn new(text: &'t str) -> Result<Self> {
        let next = ScannedToken { token: Token::End, at: 0, text: "" };
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let mut scan = Scan { text, at: 0, behind: 0, next };
        scan.advance(TokenContext::Start)?;
        Ok(scan)
    }

    /// Takes the token and reads the next.
    pub fn advance(&mut self, place: TokenContext) -> Result<ScannedToken<'t>> {
        let taken = self.next;
        self.behind = taken.at + taken.text.len();
        self.skip();
        let rest = &self.text[self.at..];
        let Some((token, length)) = first(rest) else {
            let message = match rest.chars().next().unwrap_or_default() {
                '"' => "this literal has no closing '\"'".into(),
                '[' => "this class has no closing ']'".into(),
                '{' => "a repetition is written {m}, {m,} or {m,n}".into(),
                '<' | '!' => "a token is written <[id]> or <name>, any other !<[id]> or !<name>".into(),
                shown => format!("unexpected character {shown:?}; expected {}", place.expected()),
            };
            return Err(self.mistake(message, self.at));
        };
        self.next = ScannedToken { token, at: self.at, text: &rest[..length] };
        self.at += length;
        Ok(taken)
    }

    fn skip(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let comment = rest.starts_with('#');
            let length = if comment {
                rest.find(['\r', '\n']).unwrap_or(rest.len())
            } else {
                rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len()
            };
            if length == 0 {
                return;
            }
            self.at += length;
        }
    }

    /// The error for a next token that can't stand here.
    pub fn unexpected(&self, place: TokenContext) -> Error {
        let (what, at) = match self.next.token {
            Token::End => {
                let last = self.text[..self.behind].chars().next_back().map_or(0, char::len_utf8);
                ("the grammar ends here".into(), self.behind - last)
            }
            _ => (format!("unexpected '{}'", self.next.text), self.next.at),
        };
        self.mistake(format!("{what}; expected {}", place.expected()), at)
    }

    /// Whether only blanks stand before this place on its line.
    pub fn begins_line(&self, at: usize) -> bool {
        let line = self.text[..at].rfind('\n').map_or(0, |i| i + 1);
        self.text[line..at].trim().is_empty()
    }

    pub fn mistake(&self, message: impl Into<String>, at: usize) -> Error {
        let (line, column, shown) = self.place(at);
        let message = message.into();
        let caret = " ".repeat(column - 1);
        let told = format!("Line {line}, column {column}: {message}.\n{shown}\n{caret}^");
        Error { line: Some(line), column: Some(column), ..Error::new(Kind::InvalidGrammar, told) }
    }

    pub fn limit(&self, message: impl Into<String>, at: usize) -> Error {
        let (line, column, _) = self.place(at);
        Error { line: Some(line), column: Some(column), ..Error::limit(message) }
    }

    /// 1-based line and column (in code points), and the line.
    pub fn place(&self, at: usize) -> (usize, usize, &'t str) {
        let before = &self.text[..at];
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let end = self.text[at..].find('\n').map_or(self.text.len(), |i| at + i);
        let line = before.matches('\n').count() + 1;
        (line, self.text[start..at].chars().count() + 1, self.text[start..end].trim_end_matches('\r'))
    }
}

/// The token that the text begins with, and its length.
fn first(text: &str) -> Option<(Token, usize)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let Some(start) = text.chars().next() else {
        return Some((Token::End, 0));
    };
    Some(match start {
        c if is_name(c) => {
            let name = text.find(|c| !is_name(c)).unwrap_or(text.len());
            let sign = text[name..].trim_start_matches([' ', '\t']);
            match sign.starts_with("::=") {
                true => (Token::Head, text.len() - sign.len() + 3),
                false => (Token::Name, name),
            }
        }
        '"' => (Token::Literal, closed(text, b'"')?),
        '[' => (Token::Class, closed(text, b']')?),
        '<' | '!' => (Token::Named, token(text)?),
        '{' => return count(text),
        '.' => (Token::Any, 1),
        '?' => (Token::Repeat(0, Some(1)), 1),
        '*' => (Token::Repeat(0, None), 1),
        '+' => (Token::Repeat(1, None), 1),
        '|' => (Token::Bar, 1),
        '(' => (Token::Open, 1),
        ')' => (Token::Close, 1),
        _ => return None,
    })
}

/// The length of `<[id]>`, `<name>` or one of them after `!`.
fn token(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('!').unwrap_or(text).strip_prefix('<')?;
    let end = inside.find(['>', ' ', '\t', '\r', '\n'])?;
    let plain = match inside[..end].strip_prefix('[') {
        Some(id) => {
            id.strip_suffix(']').is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()))
        }
        None => end > 0,
    };
    (plain && inside[end..].starts_with('>')).then(|| text.len() - inside.len() + end + 1)
}

/// The length up to the first `end` without a backslash before it.
fn closed(text: &str, end: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    while *bytes.get(at)? != end {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    Some(at + 1)
}

/// `{m}`, `{m,}` or `{m,n}`.
fn count(text: &str) -> Option<(Token, usize)> {
    let end = text.find('}')?;
    let blank = [' ', '\t'];
    let number = |digits: &str| {
        let digits = digits.trim_matches(blank);
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| digits.parse().unwrap_or(u64::MAX))
    };
    let (least, most) = match text[1..end].split_once(',') {
        None => number(&text[1..end]).map(|n| (n, Some(n)))?,
        Some((least, most)) if most.trim_matches(blank).is_empty() => (number(least)?, None),
        Some((least, most)) => (number(least)?, Some(number(most)?)),
    };
    Some((Token::Repeat(least, most), end + 1))
}
