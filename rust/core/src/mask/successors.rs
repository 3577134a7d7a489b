//! Where tokens lead, by class: the mask of a budget needs one query per class instead of one per token.
//!
//! Most tokens of a string stay inside it, and the lexical states that they lead to don't depend on what is
//! around the string: these are computed once per lexical state ([`super::string_transitions`]). Of the texts
//! that matter (keys), nearly all mean the same, as for masks ([`super::collect`]), or only patterns
//! distinguish them, which are read beside them ([`ByteAutomaton::partition`]); the others are followed one
//! by one.
//! Invariant: the classes are those of [`Core::classes_below`], which follows every token.
//! Memory: a mask for each state that a lexical state leads to.
//! Complexity: one step per group of a string's tokens; the others are walked, a step per node.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::any_text::TokenGroup;
use super::collect::{unfinished, without_escapes};
use super::core::{Core, StateKey};
use super::engine::DistanceClass;
use super::row::Mask;
use super::string_transitions::{StatePair, StringTransitions};
use crate::automaton::byte_automaton::{step, ByteAutomaton, Pos};
use crate::lexical::spell::OutcomeId;
use crate::lexical::{LexId, Lexicon, Terms};
use crate::vocab::{NodeId, TokenId, TokenSet, Trie, Vocabulary};
use crate::work;

/// Tokens after which the positions have one class.
pub struct SuccessorClass {
    pub class: DistanceClass,
    /// The least of the tokens.
    pub first: TokenId,
    pub tokens: Arc<Mask>,
}

/// Tokens by the class of the position after them.
#[derive(Default)]
pub(super) struct TokensByClass {
    places: FxHashMap<DistanceClass, usize>,
    lists: Vec<(DistanceClass, Vec<u32>)>,
    shared: Vec<(DistanceClass, TokenGroup)>,
    last: usize,
}

impl TokensByClass {
    pub fn add(&mut self, class: DistanceClass, tokens: &[TokenId]) {
        if self.lists.get(self.last).is_none_or(|l| l.0 != class) {
            self.last = *self.places.entry(class).or_insert(self.lists.len());
            if self.last == self.lists.len() {
                self.lists.push((class, Vec::new()));
            }
        }
        self.lists[self.last].1.extend(tokens.iter().map(|t| t.0));
    }

    /// Adds those tokens of another that `meant` selects.
    fn join(&mut self, other: TokensByClass, meant: impl Fn(u32) -> bool) {
        for (class, mut ids) in other.lists {
            ids.retain(|&id| meant(id));
            let tokens: Vec<TokenId> = ids.into_iter().map(TokenId).collect();
            if !tokens.is_empty() {
                self.add(class, &tokens);
            }
        }
    }

    fn remove(&mut self, excluded: &[u32]) {
        self.lists.iter_mut().for_each(|(_, ids)| ids.retain(|&id| !excluded.allows(id)));
    }

    pub fn successors(self, vocab: &Vocabulary) -> Vec<SuccessorClass> {
        let shared = self.shared.into_iter().map(|(class, g)| SuccessorClass {
            class,
            first: g.first,
            tokens: g.tokens,
        });
        let own = self.lists.into_iter().filter_map(|(class, ids)| {
            let first = TokenId(*ids.iter().min()?);
            Some(SuccessorClass { class, first, tokens: Arc::new(Mask::from_ids(ids, vocab.size())) })
        });
        let mut out: Vec<SuccessorClass> = shared.chain(own).collect();
        // the frequent tokens first
        out.sort_unstable_by_key(|l| l.first);
        out
    }
}

/// Where the texts of a string lead that have the same meaning.
#[derive(Clone, Copy)]
enum EndTarget {
    Same(Pos),
    Nowhere,
    /// Each text to its own target.
    Apart,
}

/// What was found of a string whose text matters.
struct StringEnds {
    state_key: StateKey,
    text: Vec<u8>,
    /// The state of the languages that distinguish texts, [`Lexicon::DEAD`] where there are none.
    kind: LexId,
    /// Where it leads when it is closed, by the languages that accept.
    known: FxHashMap<(OutcomeId, OutcomeId), EndTarget>,
    /// Whether some text that begins so is exceptional, and the nodes of the quotes after such texts.
    special: bool,
    ends: FxHashSet<NodeId>,
    /// Tokens that are followed one by one, as words.
    odd: Vec<u32>,
}

impl<S: ByteAutomaton> Core<S> {
    fn inside(&mut self, kind: StatePair) -> Arc<StringTransitions> {
        memo!(self.string_transitions_of, kind, {
            let vocab = self.vocab.clone();
            let lexicon = self.structure.lexicon();
            let (spelling, _) = lexicon.term(kind.0).expect("at the border of a code point");
            let free = lexicon.at(spelling, Terms::ALL);
            let plain = self.lexmask(Trie::ROOT, free).plain(&vocab, spelling);
            let inside = Arc::new(StringTransitions::new(self.structure.lexicon(), &vocab, &plain, kind));
            self.listed += inside.bytes();
            inside
        })
    }

    /// The classes after the tokens that a string allows; false where each token must be followed.
    pub(super) fn classes_in_string(&mut self, state_key: StateKey, found: &mut TokensByClass) -> bool {
        let (pos, vocab) = (state_key.pos, self.vocab.clone());
        if !self.structure.lexicon().is_string(pos.lex) {
            return false;
        }
        if self.structure.records(pos.ctx) {
            return self.states_as_classes.is_none() && self.classes_in_text(state_key, found);
        }
        let inside = self.inside((pos.lex, Lexicon::DEAD));
        for ((lex, _), group) in &inside.groups {
            let class = self.class_of(Pos { lex: *lex, ..pos }, &[]);
            found.shared.push((class, group.clone()));
        }
        let mut next: FxHashMap<OutcomeId, Option<Pos>> = FxHashMap::default();
        let mut close = |this: &mut Self, lex: LexId| {
            let outcome = this.structure.lexicon().outcome(lex);
            *next.entry(outcome).or_insert_with(|| this.structure.close(pos.ctx, outcome, &[]))
        };
        for &(node, (lex, _), _) in &inside.exits {
            if let Some(next) = close(self, lex) {
                self.classes_from(vocab.trie(), node, next, found);
            }
        }
        if let Some(shared) = &inside.shared {
            if let Some(next) = close(self, shared.kind.0) {
                let mut own = TokensByClass::default();
                self.classes_from(shared.tails(), Trie::ROOT, next, &mut own);
                found.join(own, |id| shared.has(id));
            }
        }
        true
    }

    /// The same where the string's text matters.
    fn classes_in_text(&mut self, state_key: StateKey, found: &mut TokensByClass) -> bool {
        let (pos, text, vocab) = (state_key.pos, self.text(state_key), self.vocab.clone());
        let (whole, begun) = unfinished(&text);
        let (Some(plain), true) = (without_escapes(whole), begun.is_empty()) else { return false };
        let kind = match self.structure.partition(pos.ctx) {
            Some(kinds) => self.partition_after(kinds, &text),
            None => Lexicon::DEAD,
        };
        let inside = self.inside((pos.lex, kind));
        let same = Pos { ctx: self.structure.equivalent(pos.ctx), ..pos };
        let (known, special, ends) = Default::default();
        let odd = vec![0; vocab.mask_words()];
        let mut closed = StringEnds { state_key, text: text.clone(), kind, known, special, ends, odd };
        self.mark_special(&plain, &inside, &mut closed);
        let mut own = TokensByClass::default();
        for &(node, kind, escape) in &inside.exits {
            if closed.ends.contains(&node) {
                continue;
            }
            // an escape may spell any character
            if escape && closed.special {
                closed.odd.allow_all(vocab.trie().subtree_tokens(node).iter().map(|t| t.0));
                continue;
            }
            match self.after_close(&mut closed, kind, node) {
                EndTarget::Same(next) => {
                    self.classes_after_close((vocab.trie(), node), next, &mut closed, &mut own)
                }
                EndTarget::Nowhere => {}
                EndTarget::Apart => {
                    closed.odd.allow_all(vocab.trie().subtree_tokens(node).iter().map(|t| t.0))
                }
            }
        }
        if let Some(shared) = &inside.shared {
            // a quote after a text that is not exceptional
            let one = shared.nodes(vocab.trie()).find(|node| !closed.ends.contains(node));
            match one.map_or(EndTarget::Nowhere, |node| self.after_close(&mut closed, shared.kind, node)) {
                EndTarget::Same(next) => {
                    let mut behind = TokensByClass::default();
                    let tails = (shared.tails(), Trie::ROOT);
                    self.classes_after_close(tails, next, &mut closed, &mut behind);
                    own.join(behind, |id| shared.has(id));
                }
                EndTarget::Nowhere => {}
                EndTarget::Apart => {
                    let tokens = shared.tails().subtree_tokens(Trie::ROOT).iter().map(|t| t.0);
                    closed.odd.allow_all(tokens.filter(|&id| shared.has(id)));
                }
            }
        }
        if closed.known.is_empty() && kind == Lexicon::DEAD {
            return false;
        }
        for ((lex, kind), group) in &inside.groups {
            if closed.kind == Lexicon::DEAD {
                let outcome = self.structure.lexicon().outcome(*lex);
                let held = self.structure.lexicon().outcome_list(outcome).to_vec();
                if self.structure.close_generic(pos.ctx, &held).is_none() {
                    return false;
                }
            }
            let class = Self::class_of_partition((Pos { lex: *lex, ..same }, *kind));
            let left = match group.tokens.meets(&closed.odd) {
                true => group.without(&closed.odd, vocab.size()),
                false => Some(group.clone()),
            };
            own.shared.extend(left.map(|group| (class, group)));
        }
        own.remove(&closed.odd);
        for id in closed.odd.ids() {
            if let (None, next, text) = self.run(state_key, vocab.text_of(TokenId(id))) {
                let class = self.class_of(next, &text);
                own.add(class, &[TokenId(id)]);
            }
        }
        *found = own;
        true
    }
    /// Marks the tokens in which an exceptional text may begin or end.
    fn mark_special(&mut self, plain: &str, inside: &StringTransitions, closed: &mut StringEnds) {
        let vocab = self.vocab.clone();
        let trie = vocab.trie();
        for rest in self.structure.exceptional(closed.state_key.pos.ctx, plain) {
            closed.special = true;
            let mut node = Some(Trie::ROOT);
            for &byte in rest.as_bytes() {
                node = node.and_then(|node| trie.child(node, byte));
                closed.odd.allow_all(node.iter().flat_map(|&node| trie.tokens(node)).map(|t| t.0));
            }
            closed.ends.extend(node.and_then(|node| trie.child(node, b'"')));
        }
        if closed.special {
            closed.odd.allow_all(inside.escaped.iter().map(|t| t.0));
        }
        for &node in &closed.ends {
            closed.odd.allow_all(trie.subtree_tokens(node).iter().map(|t| t.0));
        }
    }

    /// Where the string leads when it is closed at a node; one target for all texts of the same meaning.
    fn after_close(&mut self, closed: &mut StringEnds, (lex, kind): StatePair, node: NodeId) -> EndTarget {
        let ctx = closed.state_key.pos.ctx;
        let lexicon = self.structure.lexicon();
        let outcomes = (lexicon.outcome(lex), lexicon.outcome(kind));
        if let Some(&known) = closed.known.get(&outcomes) {
            return known;
        }
        let held = lexicon.outcome_list(outcomes.0).to_vec();
        let mut text = closed.text.clone();
        text.extend(self.vocab.trie().path(Trie::ROOT, node));
        text.pop();
        let one = self.structure.close(ctx, outcomes.0, &text);
        let after = match closed.kind {
            Lexicon::DEAD => match self.structure.close_generic(ctx, &held) {
                Some(next) if one.map(|one| self.class_of(one, &[])) == Some(self.class_of(next, &[])) => {
                    EndTarget::Same(next)
                }
                // the completions depend on the text
                _ => EndTarget::Apart,
            },
            _ => one.map_or(EndTarget::Nowhere, EndTarget::Same),
        };
        closed.known.insert(outcomes, after);
        after
    }

    /// The classes after the tokens below a node, from a position that represents those of many texts. It
    /// does not represent tokens in which another text that matters begins or ends: these are marked.
    fn classes_after_close(
        &mut self,
        (trie, node): (&Trie, NodeId),
        pos: Pos,
        closed: &mut StringEnds,
        found: &mut TokensByClass,
    ) {
        let tokens = trie.tokens(node);
        if !tokens.is_empty() {
            let class = self.class_of(pos, &[]);
            found.add(class, tokens);
        }
        let (bytes, nodes) = trie.children(node);
        work::spend(bytes.len() as u64);
        for (&byte, &child) in bytes.iter().zip(nodes) {
            let before = self.structure.closings();
            let next = step(&mut self.structure, pos, &mut Vec::new(), byte);
            let begun = next.is_some_and(|next| self.structure.records(next.ctx));
            if begun || self.structure.closings() != before {
                closed.odd.allow_all(trie.subtree_tokens(child).iter().map(|t| t.0));
            } else if let Some(next) = next {
                self.classes_after_close((trie, child), next, closed, found);
            }
        }
    }

    /// The classes after the tokens at and below a node.
    fn classes_from(&mut self, trie: &Trie, node: NodeId, next: Pos, found: &mut TokensByClass) {
        let tokens = trie.tokens(node);
        if !tokens.is_empty() {
            let class = self.class_of(next, &[]);
            found.add(class, tokens);
        }
        self.classes_below(trie, node, next, &mut Vec::new(), found);
    }

    pub(super) fn classes_below(
        &mut self,
        trie: &Trie,
        node: NodeId,
        pos: Pos,
        text: &mut Vec<u8>,
        found: &mut TokensByClass,
    ) {
        if self.states_as_classes.is_some_and(|most| found.lists.len() > most) {
            return;
        }
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
