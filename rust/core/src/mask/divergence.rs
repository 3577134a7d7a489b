//! The mask of a position, made from that of the position which most bytes lead to.
//!
//! At the beginning of a string that is one of some words, or any text, several languages are read side by
//! side; after most bytes only one is alive, and unchanged. Tokens whose bytes lead both positions to the
//! same one are taken from the second position's mask, which many share; only the paths of the words are
//! walked.
//! Invariant: the tokens that a walk of the position itself finds.
//! Complexity: the nodes that the words and the trie share, and what [`super::collect`] says of the second position.

use std::sync::Arc;

use super::collect::WIDE;
use super::core::Core;
use super::exits::Exits;
use super::lexmask::LexMask;
use super::within::Within;
use crate::automaton::byte_automaton::{step, ByteAutomaton, Pos};
use crate::vocab::{NodeId, Trie};
use crate::work;

/// Children that are compared one by one; what is below the others is collected anew.
const CHILDREN: usize = 8192;

/// Where two positions diverge.
#[derive(Default)]
struct Divergence {
    /// Below these nodes the second position's mask does not apply.
    nodes: Vec<NodeId>,
    /// The first position's tokens there.
    ids: Vec<u32>,
    looked: usize,
}

impl<S: ByteAutomaton> Core<S> {
    /// The position of few languages that a position reaches by the first bytes of more than half of the
    /// trie.
    pub(super) fn usual_target(&mut self, node: NodeId, pos: Pos) -> Option<Pos> {
        if node != Trie::ROOT {
            return None;
        }
        let vocab = self.vocab.clone();
        let (bytes, nodes) = vocab.trie().children(node);
        let mut sizes: Vec<(Pos, u32)> = Vec::new();
        for (&byte, &child) in bytes.iter().zip(nodes) {
            let Some(next) = step(&mut self.structure, pos, &mut Vec::new(), byte) else { continue };
            let size = vocab.trie().subtree_size(child) as u32;
            match sizes.iter_mut().find(|s| s.0 == next) {
                Some(known) => known.1 += size,
                None => sizes.push((next, size)),
            }
        }
        let (usual, size) = sizes.into_iter().max_by_key(|s| s.1)?;
        let few = usual.ctx == pos.ctx && self.structure.lexicon().width(usual.lex) <= WIDE;
        (few && size as usize * 2 > vocab.trie().len()).then_some(usual)
    }

    /// What [`Core::collect`] finds at the root, made from another position's mask.
    pub(super) fn collect_divergent(
        &mut self,
        pos: Pos,
        usual: Pos,
        out: &mut Vec<u32>,
    ) -> Option<Arc<LexMask>> {
        let vocab = self.vocab.clone();
        let mut unlike = Divergence::default();
        self.walk_divergent(Trie::ROOT, pos, usual, &mut unlike);
        let mut own = Vec::new();
        let mask = self.collect(Trie::ROOT, usual, &mut Vec::new(), &mut own);
        self.without(&own, &unlike.nodes, out);
        out.append(&mut unlike.ids);
        let mask = mask.map(|mask| match unlike.nodes.is_empty() {
            true => mask,
            false => {
                let within = mask.within.minus(&vocab, &unlike.nodes);
                Arc::new(LexMask::new(within, Arc::new(Exits::new(Vec::new(), &vocab))))
            }
        });
        match mask.as_deref() {
            Some(LexMask { within: Within::Few(ids), .. }) => out.extend_from_slice(ids),
            _ => return mask,
        }
        None
    }

    fn walk_divergent(&mut self, node: NodeId, pos: Pos, usual: Pos, unlike: &mut Divergence) {
        let vocab = self.vocab.clone();
        let (bytes, nodes) = vocab.trie().children(node);
        work::spend(1 + 2 * bytes.len() as u64);
        unlike.looked += bytes.len();
        for (&byte, &child) in bytes.iter().zip(nodes) {
            let next = step(&mut self.structure, pos, &mut Vec::new(), byte);
            let like = step(&mut self.structure, usual, &mut Vec::new(), byte);
            if next == like {
                continue;
            }
            match (next, like) {
                (Some(next), Some(like))
                    if next.ctx == pos.ctx && like.ctx == pos.ctx && unlike.looked < CHILDREN =>
                {
                    self.walk_divergent(child, next, like, unlike);
                }
                _ => {
                    unlike.nodes.push(child);
                    if let Some(next) = next {
                        unlike.ids.extend(vocab.trie().tokens(child).iter().map(|t| t.0));
                        self.collect_below(child, next, &mut unlike.ids);
                    }
                }
            }
        }
    }
}
