//! Reads the table of the formats: `formats.ebnf`, whose head says what it is written in.
//!
//! Complexity: the rules that a format needs, each once; those with parameters once per mention.
//! Invariant: the table is a part of the program; an error in it fails the tests, which read every rule of
//! it.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{computed, Digits};
use crate::regex::charset::CharSet;
use crate::regex::lang::Lang;

/// The names of a rule's parameters, and its expression.
type Rule = (Vec<&'static str>, &'static str);

pub(super) struct Table {
    digits: Digits,
    /// Rules without parameters that were read.
    known: HashMap<&'static str, Lang>,
}

/// The rules by their names.
fn rules() -> &'static HashMap<&'static str, Rule> {
    static RULES: LazyLock<HashMap<&str, Rule>> = LazyLock::new(|| {
        let text = include_str!("formats.ebnf");
        let heads = text.match_indices('\n').map(|found| found.0 + 1);
        let mut heads = heads.filter(|&at| !text[at..].starts_with(' ')).peekable();
        let mut rules = HashMap::new();
        while let Some(at) = heads.next() {
            let rule = &text[at..heads.peek().copied().unwrap_or(text.len())];
            if let Some((head, body)) = rule.split_once(" =").filter(|_| !rule.starts_with('#')) {
                let (name, parameters) = head.split_once('(').unwrap_or((head, ""));
                let parameters = parameters.split([',', ' ', ')']).filter(|p| !p.is_empty());
                rules.insert(name, (parameters.collect(), body));
            }
        }
        rules
    });
    &RULES
}

impl Table {
    pub fn new(digits: Digits) -> Self {
        Table { digits, known: HashMap::new() }
    }

    /// The language of a rule.
    pub fn rule(&mut self, name: &'static str, arguments: Vec<Lang>) -> Lang {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let Some((parameters, text)) = rules().get(name) else {
            return computed::rule(name, || self.rule("fraction", Vec::new()));
        };
        let free = parameters.is_empty();
        let given = parameters.iter().copied().zip(arguments).collect();
        let lang = Reader { table: self, given, text }.choice();
        if free {
            self.known.insert(name, lang.clone());
        }
        lang
    }
}

/// Reads an expression; `text` is its unread rest.
struct Reader<'a> {
    table: &'a mut Table,
    given: HashMap<&'static str, Lang>,
    text: &'static str,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        self.text = self.text.trim_start();
        self.text.chars().next()
    }

    fn has(&mut self, mark: char) -> bool {
        let has = self.next() == Some(mark);
        self.text = &self.text[has as usize..];
        has
    }

    /// The text before the first character that ends it.
    fn until(&mut self, ends: impl Fn(char) -> bool) -> &'static str {
        let (read, rest) = self.text.split_at(self.text.find(ends).unwrap_or(self.text.len()));
        self.text = rest;
        read
    }

    fn choice(&mut self) -> Lang {
        let mut all = vec![self.conjunction()];
        while self.has('|') {
            all.push(self.conjunction());
        }
        Lang::or(all)
    }

    fn conjunction(&mut self) -> Lang {
        let mut left = self.sequence();
        loop {
            left = if self.has('&') {
                Lang::and([left, self.sequence()])
            } else if self.has('-') {
                match (left, self.sequence()) {
                    (Lang::Class(left), Lang::Class(right)) => Lang::class(left.minus(&right)),
                    (left, right) => Lang::and([left, right.not()]),
                }
            } else {
                return left;
            }
        }
    }

    fn sequence(&mut self) -> Lang {
        let mut parts = Vec::new();
        while self.next().is_some_and(|c| !"|&-),".contains(c)) {
            parts.push(self.item());
        }
        Lang::concat(parts)
    }

    fn item(&mut self) -> Lang {
        if self.has('!') {
            return self.item().not();
        }
        let mut lang = self.atom();
        loop {
            let (least, most) = match self.text.chars().next() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => self.counts(),
                _ => return lang,
            };
            self.text = &self.text[1..];
            lang = lang.repeat(least, most);
        }
    }

    /// `{2}`, `{1,}`, `{1,4}` and `{1,~9}`, up to the closing brace.
    fn counts(&mut self) -> (u32, Option<u32>) {
        let counts = &self.until(|c| c == '}')[1..];
        let number = |digits: &str| digits.parse().ok();
        let (least, most) = counts.split_once(',').unwrap_or((counts, counts));
        let few = most.strip_prefix('~');
        let most = few.map_or(number(most), |most| number(most).filter(|_| self.table.digits == Digits::Few));
        (number(least).unwrap_or(0), most)
    }

    fn atom(&mut self) -> Lang {
        match self.next() {
            Some('"') => {
                self.has('"');
                let text = self.until(|c| c == '"');
                self.has('"');
                Lang::text(text)
            }
            Some('(') => {
                self.has('(');
                let lang = self.choice();
                assert!(self.has(')'), "a bracket is open before {:?}", self.text);
                lang
            }
            Some('[') => self.set(),
            Some('.') => {
                self.has('.');
                Lang::any_char()
            }
            _ => self.name(),
        }
    }

    fn set(&mut self) -> Lang {
        let (mut depth, mut escaped) = (0, false);
        let end = self.text.find(|c: char| {
            depth += match c {
                '[' if !escaped => 1,
                ']' if !escaped => -1,
                _ => 0,
            };
            escaped = c == '\\' && !escaped;
            depth == 0
        });
        let (set, rest) = self.text.split_at(end.expect("a set that ends") + 1);
        self.text = rest;
        let set: String = set.split_whitespace().collect();
        Lang::class(CharSet::from_syntax(&set).unwrap_or_else(|| panic!("no set of characters: {set}")))
    }

    fn name(&mut self) -> Lang {
        let name = self.until(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let mut arguments = Vec::new();
        if self.text.starts_with('(') {
            while self.has(if arguments.is_empty() { '(' } else { ',' }) {
                arguments.push(self.choice());
            }
            assert!(self.has(')'), "the arguments of {name} are open before {:?}", self.text);
        }
        match self.given.get(name) {
            Some(lang) => lang.clone(),
            None => self.table.rule(name, arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regex::format::NAMES;
    use crate::regex::matcher::matches;

    #[test]
    fn each_rule_is_part_of_a_format() {
        let mut table = Table::new(Digits::Any);
        NAMES.into_iter().for_each(|name| drop(table.rule(name, Vec::new())));
        for (name, (parameters, _)) in rules() {
            assert!(!parameters.is_empty() || table.known.contains_key(name), "{name}");
        }
    }

    #[test]
    fn the_notation_says_what_the_tables_head_says() {
        for (text, yes, no) in [
            (r#" "a" [bc]{1,2} | !(.{2} .*) "#, "abc ab  x", "abcc bb abd cb"),
            (r#" .{2} - "ab" .? & ("a"+ | . "b") "#, "aa bb", "ab ba a aaa abb"),
            (r#" ("a" "\"?)* "b"{1,~2} "#, "abb a\\ab", "a\\\\b abbb a\\\\"),
        ] {
            let mut table = Table::new(Digits::Few);
            let lang = Reader { table: &mut table, given: HashMap::new(), text }.choice();
            let held = |text: &&str| matches(&lang, text);
            assert_eq!(yes.split(' ').filter(|text| !held(text)).count(), 0, "{text}");
            assert_eq!(no.split(' ').filter(held).count(), 0, "{text}");
        }
    }
}
