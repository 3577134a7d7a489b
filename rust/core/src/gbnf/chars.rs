//! Characters of literals and classes, with their escapes.

use super::scan::{Scan, ScannedToken};
use crate::error::Result;

/// A character and whether it was escaped.
type Char = (char, bool);

/// The text that a literal stands for.
pub(super) fn literal(scan: &Scan, piece: ScannedToken) -> Result<String> {
    Ok(read(scan, piece, 1)?.into_iter().map(|(c, _)| c).collect())
}

/// The pattern of a class.
pub(super) fn class(scan: &Scan, piece: ScannedToken) -> Result<String> {
    let sign = if piece.text.starts_with("[^") { "^" } else { "" };
    let chars = read(scan, piece, 1 + sign.len())?;
    if chars.is_empty() {
        let message = "the class is empty; use \"\" for the empty text and '.' for any character";
        return Err(scan.mistake(message, piece.at));
    }
    let escaped = |c: char| regex_syntax::escape(c.encode_utf8(&mut [0; 4]));
    let mut parts = String::new();
    let mut rest = &chars[..];
    while let [(low, _), more @ ..] = rest {
        parts += &escaped(*low);
        rest = more;
        if let [('-', false), (high, _), more @ ..] = rest {
            if high < low {
                let range = format!("the range {low:?} to {high:?} in {}", piece.text);
                return Err(scan.mistake(format!("{range} is the wrong way round"), piece.at));
            }
            parts = parts + "-" + &escaped(*high);
            rest = more;
        }
    }
    Ok(format!("[{sign}{parts}]"))
}

/// The characters from the byte `from` of the piece up to its last.
fn read(scan: &Scan, piece: ScannedToken, from: usize) -> Result<Vec<Char>> {
    let mut rest = &piece.text[from..piece.text.len() - 1];
    let mut found = Vec::new();
    while let Some(c) = rest.chars().next() {
        let (char, length) = if c == '\\' {
            escape(rest)
                .map_err(|message| scan.mistake(message, piece.at + piece.text.len() - 1 - rest.len()))?
        } else {
            (c, c.len_utf8())
        };
        found.push((char, c == '\\'));
        rest = &rest[length..];
    }
    Ok(found)
}

/// The character of the escape that the text begins with, and the escape's length.
fn escape(text: &str) -> std::result::Result<(char, usize), String> {
    let letter = text[1..].chars().next().unwrap_or_default();
    let digits = match letter {
        'n' => return Ok(('\n', 2)),
        'r' => return Ok(('\r', 2)),
        't' => return Ok(('\t', 2)),
        letter if letter.is_ascii_punctuation() => return Ok((letter, 2)),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return Err(format!("unknown escape \\{}", letter.escape_default())),
    };
    let code = text.get(2..2 + digits).filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()));
    let code =
        code.ok_or_else(|| format!("unknown escape \\{letter}: {digits} hexadecimal digits belong to it"))?;
    let value = u32::from_str_radix(code, 16).ok().and_then(char::from_u32);
    value.map(|c| (c, 2 + digits)).ok_or_else(|| format!("\\{letter}{code} is not a Unicode character"))
}
