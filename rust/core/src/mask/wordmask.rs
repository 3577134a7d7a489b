//! What a finite set of strings does with the tokens below a node: the keys and enumerations of a schema.
//!
//! The sorted words and the trie are walked together, byte by byte, so the cost is the number of nodes that the
//! two share.  The general walk takes ten times as long: it asks for derivatives, and the shared table for keys
//! that no other schema has.

use std::sync::Arc;

use super::exits::{Exit, Exits};
use super::lexmask::LexMask;
use super::within::Within;
use crate::lexical::term::Term;
use crate::lexical::{LexId, Lexicon, Spelling};
use crate::vocab::{NodeId, Trie, Vocabulary};

struct Shared<'a> {
    trie: &'a Trie,
    /// Bytes of the words that were read before the node.
    from: usize,
    outcome: Box<[u32]>,
    ids: Vec<u32>,
    exits: Vec<Exit>,
}

/// The mask of a set of words that are spelled as they are; `None` for other languages.
pub(super) fn of_words(
    lexicon: &mut Lexicon,
    vocab: &Vocabulary,
    node: NodeId,
    lex: LexId,
) -> Option<LexMask> {
    let (Spelling::Json, term) = lexicon.term(lex)? else { return None };
    let Term::Words(set) = *lexicon.terms.get(term) else { return None };
    if !lexicon.terms.words_are_plain(set) {
        return None;
    }
    let mut shared = Shared {
        trie: vocab.trie(),
        from: set.depth as usize,
        outcome: lexicon.outcome_list(Lexicon::FIRST).into(),
        ids: Vec::new(),
        exits: Vec::new(),
    };
    shared.visit(lexicon.terms.word_slice(set), set.depth as usize, node);
    let Shared { ids, mut exits, .. } = shared;
    exits.sort_unstable_by_key(|e| e.node);
    Some(LexMask::new(Within::of(ids, vocab), Arc::new(Exits::new(exits, vocab))))
}

impl Shared<'_> {
    /// `words` share the first `depth` bytes, and `node` is where those lead.
    fn visit(&mut self, mut words: &[Box<str>], depth: usize, node: NodeId) {
        let first = &words[0];
        if first.len() == depth {
            if let Some(node) = self.trie.child(node, b'"') {
                self.exits.push(Exit {
                    node,
                    length: first[self.from..].chars().count() as u32,
                    escaped: false,
                    outcome: self.outcome.clone(),
                    closed: true,
                    beyond: [].into(),
                    grouped: false,
                });
            }
            words = &words[1..];
        }
        while let Some(word) = words.first() {
            let byte = word.as_bytes()[depth];
            let same = words.partition_point(|w| w.as_bytes()[depth] <= byte);
            let (same, others) = words.split_at(same);
            if let Some(child) = self.trie.child(node, byte) {
                self.ids.extend(self.trie.tokens(child).iter().map(|t| t.0));
                self.visit(same, depth + 1, child);
            }
            words = others;
        }
    }
}
