//! Assertions that look past the ends of a pattern's match, as a language with the text around it.
//!
//! A terminal is matched inside a text. `if\b` does not match in `iffy`, nor `(?<!c)b` after a `c`, though
//! each word alone matches. The language here is that of a word, [`END`], and the text after it, one for each
//! set of characters that may stand before the word.
//! Invariant: where [`Pattern::looks`] reports no look past an end, the text around it does not change what
//! matches.
//! Complexity: linear in the tree, but for what the assertions copy ([`super::lower`]).

use super::charset::CharSet;
use super::error::RegexError;
use super::lang::Lang;
use super::syntax::Node;
use super::{lazy, lower, read, Dialect};

/// Stands between the word and what follows: a code point that Unicode keeps for internal use (chapter 23.7,
/// noncharacters). Words do not contain it; rejected: a surrogate, which no language of the lexical layer
/// reads.
pub const END: u32 = 0x10_FFFF;

/// A pattern that is matched against a part of a text.
pub struct Pattern {
    node: Node,
}

/// Whether assertions look past the start (`before`) and the end (`behind`) of the match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    pub before: bool,
    pub behind: bool,
}

impl Pattern {
    /// A pattern in Python's dialect; `ordered`: its lazy quantifiers determine where a match ends.
    pub fn parse(pattern: &str, ordered: bool) -> Result<Self, RegexError> {
        Ok(Self { node: lazy::resolve(read(pattern, Dialect::Python, ordered)?.0)? })
    }

    /// The words that match without any text around them.
    pub fn alone(&self) -> Result<Lang, RegexError> {
        lower::lower(&self.node)
    }

    pub fn looks(&self) -> Looks {
        let mut looks = Looks::default();
        if !self.node.is_plain() {
            look_out(&self.node, 0, 0, &mut looks);
        }
        looks
    }

    /// The sets of characters that the lookbehinds test.
    ///
    /// # Errors
    /// One of them tests more than a character before the match.
    pub fn sets_before(&self) -> Result<Vec<CharSet>, RegexError> {
        let (mut sets, mut long) = (Vec::new(), None);
        self.node.each_look(&mut |look| match &look.body {
            body if look.behind && body.set().is_some() => sets.extend(body.set()),
            _ if look.behind => long = Some(look.column),
            _ => {}
        });
        match long {
            Some(column) => {
                let message = "this lookbehind may see more than one character before the match; shorten it";
                Err(RegexError::unsupported(column, message))
            }
            None => Ok(sets),
        }
    }

    /// Words, each with [`END`] and what may follow: first with nothing before them, then with a character of
    /// each set of the partition by `sets` ([`super::charset::parted`]); without `sets`, one language.
    pub fn around(&self, sets: &[CharSet]) -> Result<Vec<Lang>, RegexError> {
        let tail = [Node::Set(CharSet::single(END)), Node::any()];
        let whole = Node::concat(std::iter::once(marked(&self.node, false)).chain(tail).collect());
        lower::lower_around(&whole, sets)
    }
}

/// The tree with [`END`] allowed before each character that a lookahead reads.
fn marked(node: &Node, ahead: bool) -> Node {
    let all = |parts: &[Node]| parts.iter().map(|part| marked(part, ahead)).collect();
    let end = || Node::Repeat(Box::new(Node::Set(CharSet::single(END))), 0, Some(1));
    match node {
        Node::Set(set) if ahead => Node::Concat(vec![end(), Node::Set(set.minus(&CharSet::single(END)))]),
        Node::Text(text) if ahead => {
            let each = text.chars().flat_map(|c| [end(), Node::Set(CharSet::single(c as u32))]);
            Node::Concat(each.collect())
        }
        Node::Set(set) => Node::Set(set.minus(&CharSet::single(END))),
        Node::Text(text) if text.contains(char::MAX) => Node::Alt(Vec::new()),
        Node::Text(_) => node.clone(),
        Node::Concat(parts) => Node::Concat(all(parts)),
        Node::Alt(parts) => Node::Alt(all(parts)),
        Node::Repeat(inner, low, high) => Node::Repeat(Box::new(marked(inner, ahead)), *low, *high),
        Node::Lazy(inner) => marked(inner, ahead),
        Node::Look(look) if look.behind => {
            let body = look.body.set().map_or(look.body.clone(), Node::Set);
            Node::look(true, look.negative, body, look.column)
        }
        Node::Look(look) => Node::look(false, look.negative, marked(&look.body, true), look.column),
    }
}

/// Finds assertions that reach past an end of the match, which has at least so many characters before and
/// behind the node.
fn look_out(node: &Node, before: u64, behind: u64, looks: &mut Looks) {
    match node {
        Node::Set(_) | Node::Text(_) => {}
        Node::Concat(parts) if leaves_out_words(parts) => {}
        Node::Concat(parts) => {
            let mut rest: u64 = parts.iter().map(least).sum();
            let mut read = 0;
            for part in parts {
                rest -= least(part);
                look_out(part, before + read, behind + rest, looks);
                read += least(part);
            }
        }
        Node::Alt(parts) => parts.iter().for_each(|part| look_out(part, before, behind, looks)),
        Node::Repeat(inner, ..) | Node::Lazy(inner) => look_out(inner, before, behind, looks),
        Node::Look(look) if look.behind => looks.before |= longest(&look.body) > before,
        Node::Look(look) => {
            looks.behind |= longest(&look.body) > behind;
            // `longest` has counted lookaheads inside; lookbehinds inside need a check
            look_out(&look.body, before, LONG << 8, looks);
        }
    }
}

/// Whether the tree is `(?!W(?!B))AB*` (or `(?!W\b)A\w*`), a name that is none of the words W. It never looks
/// past the end of a name: it tests for characters of B, with which the name goes on. (It can go on with each
/// of them, then with one that no word contains, so that it is no word.)
fn leaves_out_words(parts: &[Node]) -> bool {
    let [Node::Look(look), first, Node::Repeat(rest, 0, None)] = parts else { return false };
    let (Node::Concat(body), Some(rest), Some(_)) = (&look.body, rest.set(), first.set()) else {
        return false;
    };
    let Some((last, words)) = body.split_last() else { return false };
    let mut read = CharSet::empty();
    if look.behind || !look.negative || !words.iter().all(|word| collect(word, &mut read)) {
        return false;
    }
    let ends = *last == Node::look(false, true, Node::Set(rest.clone()), column(last));
    let border = *last == Node::boundary(&rest, false, column(last));
    (ends || border) && read.minus(&rest).is_empty() && !rest.minus(&read).is_empty()
}

/// Adds the characters of a tree; false if it has an assertion.
fn collect(node: &Node, read: &mut CharSet) -> bool {
    match node {
        Node::Set(set) => *read = read.union(set),
        Node::Text(text) => *read = read.union(&CharSet::of(text)),
        Node::Concat(parts) | Node::Alt(parts) => return parts.iter().all(|part| collect(part, read)),
        Node::Repeat(inner, ..) | Node::Lazy(inner) => return collect(inner, read),
        Node::Look(_) => return false,
    }
    true
}

/// The column of the first assertion in a tree.
fn column(node: &Node) -> usize {
    let mut first = None;
    node.each_look(&mut |look| first = first.or(Some(look.column)));
    first.unwrap_or_default()
}

/// Cap of lengths, so that the sum over a pattern's parts does not overflow.
const LONG: u64 = 1 << 40;

/// Characters of a shortest match.
fn least(node: &Node) -> u64 {
    let read = match node {
        Node::Set(_) => 1,
        Node::Text(text) => text.chars().count() as u64,
        Node::Concat(parts) => parts.iter().map(least).sum(),
        Node::Alt(parts) => parts.iter().map(least).min().unwrap_or(0),
        Node::Repeat(inner, low, _) => least(inner).saturating_mul(u64::from(*low)),
        Node::Lazy(inner) => least(inner),
        Node::Look(_) => 0,
    };
    read.min(LONG)
}

/// Most characters that a match reads or its assertions test.
fn longest(node: &Node) -> u64 {
    let reached = match node {
        Node::Set(_) => 1,
        Node::Text(text) => text.chars().count() as u64,
        Node::Concat(parts) => parts.iter().fold(0u64, |sum, part| sum.saturating_add(longest(part))),
        Node::Alt(parts) => parts.iter().map(longest).max().unwrap_or(0),
        Node::Repeat(inner, _, high) => {
            longest(inner).saturating_mul(high.map_or(LONG, |high| u64::from(high.max(1))))
        }
        Node::Lazy(inner) => longest(inner),
        Node::Look(look) => longest(&look.body),
    };
    reached.min(LONG)
}
