//! llama.cpp's GBNF, read into the neutral form of grammars.
//!
//! In: rules (`name ::= ...`) of literals, character classes, `.`, groups, alternatives, `? * + {m} {m,} {m,n}`,
//! escapes (`\n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH`), comments, over several lines.  Out: [`crate::cfg::spec`].
//! Data: the alternatives of a rule, each a list of symbols.
//! Start: [`scan`] tokens and places; this file rules; [`chars`] literals and classes.
//!
//! Invariant: the language is over characters: no lexer, nothing is ignored, so the form asks for the lexer
//! "dynamic", where every segmentation counts, and each terminal has one length only.
//! Complexity: linear in the text plus the counts of `{m,n}`, whose sum is bounded by [`MAX_REPETITION`].
//! Source: `grammars/README.md` and `src/llama-grammar.cpp` of llama.cpp. Wider in five points: underscores
//! in names, line breaks anywhere inside a rule, left recursion, a byte order mark, and a backslash before
//! any ASCII punctuation. Narrower in two: a rule defined twice and an empty class are mistakes (llama.cpp
//! takes the last rule, and reads `[]` as the empty text). Tokens (`<[1000]>`, `<think>`, `!<think>`) are
//! declared terminals, which a vocabulary gives a meaning ([`part_of`]); a text is accepted by its characters
//! alone, however it is tokenized, so "any other token" stands in a repetition `*` or `+`.
//! Rejected: a parser generator (lark read the same syntax at 50 us a word: 113 ms for a rule of 2,000 words,
//! where all the rest takes 2 ms); folding classes with a repetition into one terminal here (the engine folds
//! the regular parts of every grammar).

mod chars;
mod scan;

use indexmap::{IndexMap, IndexSet};

use serde_json::{json, Value};

use crate::cfg::productive;
use crate::cfg::spec::{Entry, GrammarSpec};
use crate::error::{Error, Kind, Result};
use crate::hash::{KeyedMap, KeyedSet};
use scan::{Scan, ScannedToken, Token, TokenContext};

/// Greatest sum of all counts in `{m,n}`.
pub const MAX_REPETITION: u64 = 100_000;
/// Deepest nesting of groups.
pub const MAX_NESTING: usize = 200;

/// Suffix of the name of "any other token": the special ones among them.
const SPECIAL: &str = " (special)";

/// The form of the constraint of a declared terminal.
pub fn part_of(token: &str) -> Value {
    let (key, token) = match token.strip_prefix('!').map(|token| (token.strip_suffix(SPECIAL), token)) {
        Some((Some(token), _)) => ("other specials", token),
        Some((None, token)) => ("other texts", token),
        None => ("special", token),
    };
    let id = token.trim_start_matches("<[").trim_end_matches("]>").parse::<u32>();
    match id {
        Ok(id) if token.starts_with("<[") => json!({ key: id }),
        _ => json!({ key: token, "spelled": "unknown" }),
    }
}

/// One text, its terminals and flat rules.
struct Reader<'t> {
    scan: Scan<'t>,
    terminals: IndexMap<&'t str, Entry>,
    tokens: IndexSet<&'t str>,
    rules: Vec<(String, Vec<String>)>,
    heads: IndexMap<&'t str, usize>,
    uses: IndexMap<&'t str, usize>,
    helpers: usize,
    repetitions: u64,
}

/// Reads a grammar.
///
/// Errors: `InvalidGrammar` with the line, the column, the line itself and what was expected; `LimitExceeded`.
pub fn read(text: &str, start: &str) -> Result<GrammarSpec> {
    let mut reader = Reader {
        scan: Scan::new(text)?,
        terminals: IndexMap::new(),
        tokens: IndexSet::new(),
        rules: Vec::new(),
        heads: IndexMap::new(),
        uses: IndexMap::new(),
        helpers: 0,
        repetitions: 0,
    };
    if reader.scan.next.token != Token::Head {
        return Err(reader.scan.unexpected(TokenContext::Start));
    }
    while reader.scan.next.token == Token::Head {
        reader.define()?;
    }
    if reader.scan.next.token != Token::End {
        return Err(reader.scan.unexpected(TokenContext::Rule { depth: 0, repeatable: true }));
    }
    reader.finish(start)
}

impl<'t> Reader<'t> {
    fn define(&mut self) -> Result<()> {
        let head = self.scan.advance(TokenContext::Rule { depth: 0, repeatable: false })?;
        let name = head.text.trim_end_matches("::=").trim_end();
        if !self.scan.begins_line(head.at) {
            let message = format!("the rule '{name}' must begin on a line of its own");
            return Err(self.scan.mistake(message, head.at));
        }
        if self.heads.insert(name, head.at).is_some() {
            let message = format!("the rule '{name}' is defined more than once");
            return Err(self.scan.mistake(message, head.at));
        }
        self.alternatives(name, name, 0)
    }

    /// Alternatives of the rule `origin`, which is a part of the rule `head`.
    fn alternatives(&mut self, origin: &str, head: &str, depth: usize) -> Result<()> {
        if depth > MAX_NESTING {
            let message = format!(
                "Groups are nested deeper than {MAX_NESTING} in the rule '{head}'; name some as rules."
            );
            return Err(self.scan.limit(message, self.scan.next.at));
        }
        let mut expansions: IndexSet<Vec<String>> = IndexSet::new();
        loop {
            let mut expansion = Vec::new();
            while let Token::Name | Token::Literal | Token::Class | Token::Any | Token::Named | Token::Open =
                self.scan.next.token
            {
                expansion.append(&mut self.item(head, depth)?);
            }
            expansions.insert(expansion);
            match self.scan.next.token {
                Token::Bar => self.scan.advance(TokenContext::Rule { depth, repeatable: false })?,
                Token::Repeat(..) => {
                    return Err(self.scan.unexpected(TokenContext::Rule { depth, repeatable: false }))
                }
                _ => break,
            };
        }
        self.add(origin, expansions);
        Ok(())
    }

    /// The symbols of an atom with its repetitions.
    fn item(&mut self, head: &str, depth: usize) -> Result<Vec<String>> {
        let at = self.scan.next.at;
        let mut symbols = self.atom(head, depth)?;
        if let ([one], false) = (&symbols[..], matches!(self.scan.next.token, Token::Repeat(0 | 1, None))) {
            if one.starts_with('!') && self.scan.next.token != Token::Close {
                let message = format!(
                    "{one} stands in a repetition without an end alone: write {one}* or {one}+ (which texts one token \
                     has is not the same in every vocabulary)"
                );
                return Err(self.scan.mistake(message, at));
            }
        }
        while let Token::Repeat(least, most) = self.scan.next.token {
            let count = self.scan.advance(TokenContext::Rule { depth, repeatable: true })?;
            if most.is_some_and(|most| most < least) {
                let message = format!("the repetition {} has its bounds the wrong way round", count.text);
                return Err(self.scan.mistake(message, count.at));
            }
            if count.text.starts_with('{') {
                self.repetitions = self.repetitions.saturating_add(least.max(most.unwrap_or(0)));
            }
            if self.repetitions > MAX_REPETITION {
                let (line, _, _) = self.scan.place(count.at);
                let message = format!(
                    "The repetitions of the grammar add up to more than {MAX_REPETITION} (line {line}: {}); use \
                     smaller bounds or '*'.",
                    count.text
                );
                return Err(self.scan.limit(message, count.at));
            }
            symbols = self.repeat(head, symbols, least as usize, most.map(|n| n as usize));
        }
        Ok(symbols)
    }

    fn atom(&mut self, head: &str, depth: usize) -> Result<Vec<String>> {
        if self.scan.next.token == Token::Open {
            self.scan.advance(TokenContext::Rule { depth: depth + 1, repeatable: false })?;
            let name = self.helper(head);
            self.alternatives(&name, head, depth + 1)?;
            if self.scan.next.token != Token::Close {
                return Err(self.scan.unexpected(TokenContext::Rule { depth: depth + 1, repeatable: true }));
            }
            self.scan.advance(TokenContext::Rule { depth, repeatable: true })?;
            // a group of one token is that token
            match &self.rules[..] {
                [.., (origin, body)]
                    if *origin == name && matches!(&body[..], [one] if one.starts_with('!')) =>
                {
                    let body = body.clone();
                    if self.rules.iter().filter(|rule| rule.0 == name).count() == 1 {
                        self.rules.pop();
                        return Ok(body);
                    }
                }
                _ => {}
            }
            return Ok(vec![name]);
        }
        let piece = self.scan.advance(TokenContext::Rule { depth, repeatable: true })?;
        if piece.token == Token::Name {
            self.uses.entry(piece.text).or_insert(piece.at);
        } else if piece.token == Token::Named {
            self.tokens.insert(piece.text);
        } else if !self.terminals.contains_key(piece.text) {
            match self.terminal(piece)? {
                Some(entry) => self.terminals.insert(piece.text, entry),
                None => return Ok(Vec::new()),
            };
        }
        Ok(vec![piece.text.into()])
    }

    /// The entry of a literal or class; `None` for the empty text.
    fn terminal(&self, piece: ScannedToken<'t>) -> Result<Option<Entry>> {
        let (pattern, literal, flags) = match piece.token {
            Token::Any => (".".into(), None, "s"),
            Token::Class => (chars::class(&self.scan, piece)?, None, ""),
            _ => {
                let literal = chars::literal(&self.scan, piece)?;
                (regex_syntax::escape(&literal), Some(literal), "")
            }
        };
        if literal.as_ref().is_some_and(String::is_empty) {
            return Ok(None);
        }
        let (name, flags) = (piece.text.into(), flags.into());
        Ok(Some(Entry { name, pattern, literal, flags, ..Entry::default() }))
    }

    /// Symbols for `symbols{least,most}`; the rules `tail` are unambiguous: each count has one derivation.
    fn repeat(&mut self, head: &str, symbols: Vec<String>, least: usize, most: Option<usize>) -> Vec<String> {
        let Some(first) = symbols.first() else {
            return symbols;
        };
        if first.starts_with('!') {
            return vec![self.others(head, first, least)];
        }
        // one symbol, so that repetitions of repetitions don't multiply
        let symbol = match symbols.len() {
            1 => first.clone(),
            _ => {
                let name = self.helper(head);
                self.add(&name, [symbols]);
                name
            }
        };
        let mut all = vec![symbol.clone(); least];
        match most {
            None => {
                let name = self.helper(head);
                let base = if least == 1 { vec![symbol.clone()] } else { Vec::new() };
                self.add(&name, [base, vec![name.clone(), symbol]]);
                all.truncate(if least == 1 { 0 } else { least });
                all.push(name);
            }
            Some(most) => {
                let mut tail = None;
                for _ in least..most {
                    let name = self.helper(head);
                    let longer = std::iter::once(symbol.clone()).chain(tail);
                    self.add(&name, [Vec::new(), longer.collect()]);
                    tail = Some(name);
                }
                all.extend(tail);
            }
        }
        all
    }

    /// Any number of other tokens: texts, and special tokens between them, so that no two texts are neighbours.
    fn others(&mut self, head: &str, text: &str, least: usize) -> String {
        let (any, text, special) = (self.helper(head), text.to_string(), format!("{text}{SPECIAL}"));
        let mut some =
            vec![vec![text.clone()], vec![any.clone(), special.clone()], vec![any.clone(), special, text]];
        let name = if least == 0 { any.clone() } else { self.helper(head) };
        if least > 0 {
            self.add(&name, some.clone());
        }
        some.push(Vec::new());
        self.add(&any, some);
        name
    }

    fn add(&mut self, origin: &str, expansions: impl IntoIterator<Item = Vec<String>>) {
        self.rules.extend(expansions.into_iter().map(|expansion| (origin.to_string(), expansion)));
    }

    fn helper(&mut self, head: &str) -> String {
        self.helpers += 1;
        format!("{head}.{}", self.helpers) // no rule name of GBNF holds a dot
    }

    fn finish(mut self, start: &str) -> Result<GrammarSpec> {
        if let Some((name, &at)) = self.uses.iter().find(|(name, _)| !self.heads.contains_key(*name)) {
            return Err(self.scan.mistake(format!("the rule '{name}' is used but not defined"), at));
        }
        if !self.heads.contains_key(start) {
            let known: Vec<&str> = self.heads.keys().copied().collect();
            let known = known.join(", ");
            let message = format!("The start rule '{start}' is not defined; rules of the grammar: {known}.");
            return Err(Error::new(Kind::InvalidGrammar, message));
        }
        self.keep_reachable(start);
        let plain = self.rules.iter().map(|(name, body)| (name.as_str(), body.iter().map(String::as_str)));
        let special = self.tokens.iter().filter(|name| name.starts_with('!'));
        let special = special.map(|name| format!("{name}{SPECIAL}"));
        let declare: Vec<String> = self.tokens.iter().map(|name| name.to_string()).chain(special).collect();
        let symbols = self.terminals.keys().copied().chain(declare.iter().map(String::as_str));
        if let Some(name) = productive::endless(plain, symbols) {
            let head = name.split('.').next().unwrap_or_default();
            let message = format!(
                "the rule '{head}' derives nothing: all of its alternatives need a rule that never ends"
            );
            return Err(self.scan.mistake(message, self.heads[head]));
        }
        Ok(GrammarSpec {
            orders: Vec::new(),
            terminals: self.terminals.into_values().collect(),
            rules: self.rules,
            ignore: Vec::new(),
            declare,
            start: start.into(),
            segmented: true,
            ambiguous: false,
            starts_at_once: false,
            indenter: Value::Null,
        })
    }

    /// Removes what the start rule does not reach.
    fn keep_reachable(&mut self, start: &str) {
        let mut by_origin: KeyedMap<&str, Vec<usize>> = KeyedMap::default();
        for (i, (origin, _)) in self.rules.iter().enumerate() {
            by_origin.entry(origin).or_default().push(i);
        }
        let mut seen: KeyedSet<&str> = KeyedSet::from_iter([start]);
        let mut pending = vec![start];
        while let Some(name) = pending.pop() {
            for &rule in by_origin.get(name).into_iter().flatten() {
                for symbol in &self.rules[rule].1 {
                    if seen.insert(symbol) {
                        pending.push(symbol);
                    }
                }
            }
        }
        let kept: Vec<bool> = self.rules.iter().map(|(origin, _)| seen.contains(origin.as_str())).collect();
        self.terminals.retain(|name, _| seen.contains(name));
        self.tokens.retain(|name| seen.contains(name));
        let mut kept = kept.into_iter();
        self.rules.retain(|_| kept.next() == Some(true));
    }
}
