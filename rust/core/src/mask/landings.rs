//! Where tokens lead, by class: what a budget's mask asks about once instead of once a token.
//!
//! Most tokens of a string stay inside it, and which of them come to which lexical state does not depend on what is
//! around the string: that is found once a lexical state. Of the texts that matter (keys), nearly all mean the same, as
//! for masks ([`super::collect`]); the others are followed one by one.
//! Invariant: the classes are those of [`Core::classes_below`], which follows every token.
//! Memory: a mask for each state that a lexical state leads to.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::collect::{unfinished, without_escapes};
use super::core::{Class, Core, Stand};
use super::row::Mask;
use crate::automaton::structure::{step, Pos, Structure};
use crate::held;
use crate::lexical::spell::OutcomeId;
use crate::lexical::{LexId, Lexicon, Step};
use crate::vocab::{NodeId, TokenId, TokenSet, Trie, Vocabulary};
use crate::work;

/// Tokens after which the positions have one class.
pub struct Landing {
    pub class: Class,
    /// The least of the tokens.
    pub first: TokenId,
    pub tokens: Arc<Mask>,
}

/// Tokens by the class of the position after them.
#[derive(Default)]
pub(super) struct Found {
    places: FxHashMap<Class, usize>,
    lists: Vec<(Class, Vec<u32>)>,
    shared: Vec<(Class, Group)>,
    last: usize,
}

impl Found {
    pub fn add(&mut self, class: Class, tokens: &[TokenId]) {
        if self.lists.get(self.last).is_none_or(|l| l.0 != class) {
            self.last = *self.places.entry(class).or_insert(self.lists.len());
            if self.last == self.lists.len() {
                self.lists.push((class, Vec::new()));
            }
        }
        self.lists[self.last].1.extend(tokens.iter().map(|t| t.0));
    }

    pub fn landings(self, vocab: &Vocabulary) -> Vec<Landing> {
        let shared =
            self.shared.into_iter().map(|(class, g)| Landing { class, first: g.first, tokens: g.tokens });
        let own = self.lists.into_iter().filter_map(|(class, ids)| {
            let first = TokenId(*ids.iter().min()?);
            Some(Landing { class, first, tokens: Arc::new(Mask::from_ids(ids, vocab.size())) })
        });
        let mut out: Vec<Landing> = shared.chain(own).collect();
        // the frequent tokens first
        out.sort_unstable_by_key(|l| l.first);
        out
    }
}

/// Tokens that lead to one lexical state.
#[derive(Clone)]
struct Group {
    first: TokenId,
    tokens: Arc<Mask>,
}

/// What the tokens do in a string.
pub(super) struct Inside {
    /// The states that they lead to.
    groups: Vec<(LexId, Group)>,
    /// Behind the quotes that close it: the node, the state before the quote, and whether an escape was read.
    exits: Vec<(NodeId, LexId, bool)>,
    /// Tokens that stay inside and hold a backslash.
    escaped: Vec<TokenId>,
}

impl Inside {
    fn bytes(&self) -> usize {
        let groups: usize = self.groups.iter().map(|g| 64 + g.1.tokens.bytes()).sum();
        groups + held::slice(&self.exits) + held::slice(&self.escaped)
    }
}

struct Walk<'a> {
    lexicon: &'a mut Lexicon,
    trie: &'a Trie,
    places: FxHashMap<LexId, usize>,
    groups: Vec<(LexId, Vec<u32>)>,
    exits: Vec<(NodeId, LexId, bool)>,
    escaped: Vec<TokenId>,
}

impl Walk<'_> {
    fn visit(&mut self, node: NodeId, lex: LexId, escape: bool) {
        let (bytes, nodes) = self.trie.children(node);
        work::spend(bytes.len() as u64);
        for (&byte, &child) in bytes.iter().zip(nodes) {
            match self.lexicon.step(lex, byte) {
                Step::Stay(next) => {
                    let escape = escape || byte == b'\\';
                    let tokens = self.trie.tokens(child);
                    if !tokens.is_empty() {
                        let place = *self.places.entry(next).or_insert(self.groups.len());
                        if place == self.groups.len() {
                            self.groups.push((next, Vec::new()));
                        }
                        self.groups[place].1.extend(tokens.iter().map(|t| t.0));
                        self.escaped.extend(tokens.iter().filter(|_| escape));
                    }
                    self.visit(child, next, escape);
                }
                Step::Close => self.exits.push((child, lex, escape)),
                Step::Dead => {}
            }
        }
    }
}

impl<S: Structure> Core<S> {
    fn inside(&mut self, lex: LexId) -> Arc<Inside> {
        if let Some(known) = self.insides.get(&lex) {
            return known.clone();
        }
        let (vocab, lexicon) = (self.vocab.clone(), self.structure.lexicon());
        let mut walk = Walk {
            lexicon,
            trie: vocab.trie(),
            places: FxHashMap::default(),
            groups: Vec::new(),
            exits: Vec::new(),
            escaped: Vec::new(),
        };
        walk.visit(Trie::ROOT, lex, false);
        let group = |(lex, ids): (LexId, Vec<u32>)| {
            let first = TokenId(*ids.iter().min().expect("made for a token"));
            (lex, Group { first, tokens: Arc::new(Mask::from_ids(ids, vocab.size())) })
        };
        let Walk { groups, exits, escaped, .. } = walk;
        let inside = Arc::new(Inside { groups: groups.into_iter().map(group).collect(), exits, escaped });
        self.listed += inside.bytes();
        self.insides.insert(lex, inside.clone());
        inside
    }

    /// The classes after the tokens that a string allows; false where each token must be followed.
    pub(super) fn classes_in_string(&mut self, stand: Stand, found: &mut Found) -> bool {
        let pos = stand.pos;
        if !self.structure.lexicon().is_string(pos.lex) {
            return false;
        }
        let inside = self.inside(pos.lex);
        if self.structure.records(pos.ctx) {
            return self.classes_in_text(stand, &inside, found);
        }
        for (lex, group) in &inside.groups {
            let class = self.class_of(Pos { lex: *lex, ..pos }, &[]);
            found.shared.push((class, group.clone()));
        }
        let mut next: FxHashMap<OutcomeId, Option<Pos>> = FxHashMap::default();
        for &(node, lex, _) in &inside.exits {
            let outcome = self.structure.lexicon().outcome(lex);
            let next = *next.entry(outcome).or_insert_with(|| self.structure.close(pos.ctx, outcome, &[]));
            if let Some(next) = next {
                self.classes_behind(node, next, found);
            }
        }
        true
    }

    /// The same where the string's text matters.
    fn classes_in_text(&mut self, stand: Stand, inside: &Inside, found: &mut Found) -> bool {
        let (pos, text, vocab) = (stand.pos, self.text(stand), self.vocab.clone());
        let (whole, begun) = unfinished(&text);
        let (Some(plain), true) = (without_escapes(whole), begun.is_empty()) else { return false };
        let same = Pos { ctx: self.structure.twin(pos.ctx), ..pos };
        // tokens and ends of the texts that are not like most others
        let (mut odd, mut ends): (FxHashSet<u32>, FxHashSet<NodeId>) = Default::default();
        odd.extend(inside.escaped.iter().map(|t| t.0));
        for rest in self.structure.special(pos.ctx, &plain) {
            let mut node = Some(Trie::ROOT);
            for &byte in rest.as_bytes() {
                node = node.and_then(|node| vocab.trie().child(node, byte));
                odd.extend(node.iter().flat_map(|&node| vocab.trie().tokens(node)).map(|t| t.0));
            }
            ends.extend(node.and_then(|node| vocab.trie().child(node, b'"')));
        }
        let mut own = Found::default();
        let mut known: FxHashMap<OutcomeId, Pos> = FxHashMap::default();
        for &(node, lex, escape) in &inside.exits {
            let outcome = self.structure.lexicon().outcome(lex);
            let exact = |this: &mut Self| {
                let mut text = text.clone();
                text.extend(vocab.trie().path(Trie::ROOT, node));
                text.pop();
                this.structure.close(pos.ctx, outcome, &text)
            };
            let next = match known.get(&outcome) {
                _ if escape || ends.contains(&node) => match exact(self) {
                    Some(next) => next,
                    None => continue,
                },
                Some(&next) => next,
                None => {
                    let held = self.structure.lexicon().outcome_list(outcome).to_vec();
                    let Some(next) = self.structure.close_generic(pos.ctx, &held) else { return false };
                    // where the text tells ways to an end apart, each is followed
                    let one = exact(self);
                    if one.map(|one| self.class_of(one, &[])) != Some(self.class_of(next, &[])) {
                        return false;
                    }
                    known.insert(outcome, next);
                    next
                }
            };
            let before = self.structure.closings();
            self.classes_behind(node, next, &mut own);
            if self.structure.closings() != before {
                return false;
            }
        }
        if known.is_empty() {
            return false;
        }
        for (lex, group) in &inside.groups {
            let outcome = self.structure.lexicon().outcome(*lex);
            let held = self.structure.lexicon().outcome_list(outcome).to_vec();
            if self.structure.close_generic(pos.ctx, &held).is_none() {
                return false;
            }
            let class = (Pos { lex: *lex, ..same }, u32::MAX);
            if let Some(group) = self.without_odd(group, &odd) {
                own.shared.push((class, group));
            }
        }
        for id in odd {
            let token = TokenId(id);
            if let (None, next, text) = self.run(stand, vocab.token(token)) {
                if self.structure.records(next.ctx) && !text.is_empty() {
                    let class = self.class_of(next, &text);
                    own.add(class, &[token]);
                }
            }
        }
        *found = own;
        true
    }

    fn without_odd(&self, group: &Group, odd: &FxHashSet<u32>) -> Option<Group> {
        if !odd.iter().any(|&id| group.tokens.has(id)) {
            return Some(group.clone());
        }
        let mut row = vec![0u32; self.vocab.mask_words()];
        group.tokens.write(&mut row);
        row.forbid_all(odd.iter().copied());
        let ids = row.ids();
        let first = TokenId(*ids.first()?);
        Some(Group { first, tokens: Arc::new(Mask::from_ids(ids, self.vocab.size())) })
    }

    fn classes_behind(&mut self, node: NodeId, next: Pos, found: &mut Found) {
        let vocab = self.vocab.clone();
        let tokens = vocab.trie().tokens(node);
        if !tokens.is_empty() {
            let class = self.class_of(next, &[]);
            found.add(class, tokens);
        }
        self.classes_below(vocab.trie(), node, next, &mut Vec::new(), found);
    }

    pub(super) fn classes_below(
        &mut self,
        trie: &Trie,
        node: NodeId,
        pos: Pos,
        text: &mut Vec<u8>,
        found: &mut Found,
    ) {
        let (bytes, nodes) = trie.children(node);
        work::spend(bytes.len() as u64);
        let before = text.clone();
        for (&byte, &child) in bytes.iter().zip(nodes) {
            if let Some(next) = step(&mut self.structure, pos, text, byte) {
                if !trie.tokens(child).is_empty() {
                    let class = self.class_of(next, text);
                    found.add(class, trie.tokens(child));
                }
                self.classes_below(trie, child, next, text, found);
            }
            text.clone_from(&before);
        }
    }
}
