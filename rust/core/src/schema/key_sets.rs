//! Sets of keys that an object has used: big-endian Patricia tries whose nodes are hash-consed (Okasaki, Gill 1998).
//!
//! Equal sets are equal numbers, whatever the order of the keys; one more key makes at most 32 nodes, and what was
//! found out about a subtree holds for every set that has it.
//! Rejected: a sorted list a frame: each key copied all those before it.
//! Memory: the nodes of all sets that were met.

use rustc_hash::FxHashMap;

use super::{NameId, Schema};
use crate::heap_size::{self, Interner};
use crate::lexical::{TermId, Terms};

/// The number of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeySet(u32);

impl KeySet {
    pub const EMPTY: KeySet = KeySet(0);
}

/// A node of a trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum KeySetNode {
    Empty,
    Leaf(NameId),
    /// Names that share the bits above `bit` with `prefix`; those without it, and those with it.
    Fork {
        prefix: u32,
        bit: u32,
        without: KeySet,
        with: KeySet,
    },
}

/// The arena of sets.
pub struct KeySets {
    nodes: Interner<KeySetNode>,
    /// The set and the key that a set was first made of.
    parents: FxHashMap<KeySet, (KeySet, NameId)>,
    terms: FxHashMap<KeySet, TermId>,
}

heap_size::plain!(KeySetNode);

heap_size::tables!(KeySets: nodes, parents, terms);

impl Default for KeySets {
    fn default() -> Self {
        let nodes = Interner::from_iter([KeySetNode::Empty]);
        KeySets { nodes, parents: FxHashMap::default(), terms: FxHashMap::default() }
    }
}

/// The bits above a bit.
fn above(name: u32, bit: u32) -> u32 {
    name & !(bit | (bit - 1))
}

impl KeySets {
    pub(crate) fn node(&self, set: KeySet) -> KeySetNode {
        self.nodes[set.0 as usize]
    }

    fn add(&mut self, node: KeySetNode) -> KeySet {
        crate::work::spend(4);
        KeySet(self.nodes.intern(node))
    }

    /// How many names it holds; O(names).
    pub fn len(&self, set: KeySet) -> usize {
        crate::work::spend(1);
        match self.node(set) {
            KeySetNode::Empty => 0,
            KeySetNode::Leaf(_) => 1,
            KeySetNode::Fork { without, with, .. } => self.len(without) + self.len(with),
        }
    }

    /// The set that a set grew from, and by which name.
    pub(crate) fn parent(&self, set: KeySet) -> Option<(KeySet, NameId)> {
        self.parents.get(&set).copied()
    }

    /// The part of a set on one side of a bit, where its names share what stands above the bit.
    fn side(&self, set: KeySet, prefix: u32, bit: u32, with: bool) -> KeySet {
        let side = |own: u32| above(own, bit) == prefix && (own & bit != 0) == with;
        match self.node(set) {
            KeySetNode::Leaf(name) if side(name.0) => set,
            KeySetNode::Fork { prefix: p, bit: own, without, with: more } if (p, own) == (prefix, bit) => {
                match with {
                    true => more,
                    false => without,
                }
            }
            KeySetNode::Fork { prefix: own, .. } if side(own) => set,
            _ => KeySet::EMPTY,
        }
    }

    /// A set, and where it forks, which bits its names share.
    fn forks(&self, set: KeySet) -> Option<(u32, u32)> {
        match self.node(set) {
            KeySetNode::Fork { prefix, bit, .. } => Some((prefix, bit)),
            _ => None,
        }
    }

    /// The fork of both that is further up.
    fn upper(&self, a: KeySet, b: KeySet) -> Option<(u32, u32)> {
        match (self.forks(a), self.forks(b)) {
            (Some(x), Some(y)) => Some(if x.1 >= y.1 { x } else { y }),
            (x, y) => x.or(y),
        }
    }

    /// The names that are in both sets.
    pub fn intersection(&mut self, a: KeySet, b: KeySet) -> KeySet {
        crate::work::spend(1);
        if a == b || a == KeySet::EMPTY || b == KeySet::EMPTY {
            return if a == b { a } else { KeySet::EMPTY };
        }
        let Some((prefix, bit)) = self.upper(a, b) else { return KeySet::EMPTY };
        let [without, with] = [false, true].map(|with| {
            let (a, b) = (self.side(a, prefix, bit, with), self.side(b, prefix, bit, with));
            self.intersection(a, b)
        });
        self.fork(prefix, bit, without, with)
    }

    /// The names of a set that are not in another.
    pub fn difference(&mut self, a: KeySet, b: KeySet) -> KeySet {
        crate::work::spend(1);
        if a == b || a == KeySet::EMPTY || b == KeySet::EMPTY {
            return if a == b { KeySet::EMPTY } else { a };
        }
        let Some((prefix, bit)) = self.upper(a, b) else { return a };
        // names elsewhere than under the fork of the other set are in none of its sides
        if self.forks(a).is_none_or(|own| own != (prefix, bit)) {
            let with =
                [false, true].map(|with| self.side(a, prefix, bit, with)).into_iter().position(|s| s == a);
            return match with {
                Some(with) => {
                    let b = self.side(b, prefix, bit, with == 1);
                    self.difference(a, b)
                }
                None => a,
            };
        }
        let [without, with] = [false, true].map(|with| {
            let (a, b) = (self.side(a, prefix, bit, with), self.side(b, prefix, bit, with));
            self.difference(a, b)
        });
        self.fork(prefix, bit, without, with)
    }

    /// Whether a name is in both sets.
    pub fn intersects(&self, a: KeySet, b: KeySet) -> bool {
        crate::work::spend(1);
        if a == KeySet::EMPTY || b == KeySet::EMPTY || a == b {
            return a == b && a != KeySet::EMPTY;
        }
        self.upper(a, b).is_some_and(|(prefix, bit)| {
            [false, true].iter().any(|&with| {
                self.intersects(self.side(a, prefix, bit, with), self.side(b, prefix, bit, with))
            })
        })
    }

    pub fn contains(&self, mut set: KeySet, name: NameId) -> bool {
        loop {
            match self.node(set) {
                KeySetNode::Empty => return false,
                KeySetNode::Leaf(own) => return own == name,
                KeySetNode::Fork { bit, without, with, .. } => {
                    set = if name.0 & bit == 0 { without } else { with }
                }
            }
        }
    }

    /// The set with one more key.
    pub fn with(&mut self, set: KeySet, name: NameId) -> KeySet {
        let more = self.insert(set, name);
        if more != set && more.0 as usize == self.nodes.len() - 1 {
            self.parents.insert(more, (set, name));
        }
        more
    }

    fn insert(&mut self, set: KeySet, name: NameId) -> KeySet {
        match self.node(set) {
            KeySetNode::Empty => self.add(KeySetNode::Leaf(name)),
            KeySetNode::Leaf(own) if own == name => set,
            KeySetNode::Leaf(own) => self.join(name, own.0, set),
            KeySetNode::Fork { prefix, bit, .. } if above(name.0, bit) != prefix => {
                self.join(name, prefix, set)
            }
            KeySetNode::Fork { prefix, bit, without, with } if name.0 & bit == 0 => {
                let without = self.insert(without, name);
                self.add(KeySetNode::Fork { prefix, bit, without, with })
            }
            KeySetNode::Fork { prefix, bit, without, with } => {
                let with = self.insert(with, name);
                self.add(KeySetNode::Fork { prefix, bit, without, with })
            }
        }
    }

    /// A set and a name that differs from its prefix.
    fn join(&mut self, name: NameId, prefix: u32, set: KeySet) -> KeySet {
        let leaf = self.add(KeySetNode::Leaf(name));
        let bit = 1 << (31 - (name.0 ^ prefix).leading_zeros());
        let (without, with) = if name.0 & bit == 0 { (leaf, set) } else { (set, leaf) };
        self.add(KeySetNode::Fork { prefix: above(prefix, bit), bit, without, with })
    }

    /// The node over these children.
    pub(crate) fn fork(&mut self, prefix: u32, bit: u32, without: KeySet, with: KeySet) -> KeySet {
        match (without, with) {
            (KeySet::EMPTY, other) | (other, KeySet::EMPTY) => other,
            _ => self.add(KeySetNode::Fork { prefix, bit, without, with }),
        }
    }

    pub(crate) fn names(&self, set: KeySet) -> Vec<NameId> {
        let (mut out, mut stack) = (Vec::new(), vec![set]);
        while let Some(set) = stack.pop() {
            match self.node(set) {
                KeySetNode::Empty => {}
                KeySetNode::Leaf(name) => out.push(name),
                KeySetNode::Fork { without, with, .. } => stack.extend([with, without]),
            }
        }
        out
    }
}

impl Schema {
    /// The language of the keys of a set; built on that of the set it grew from.
    pub(crate) fn used_term(&mut self, set: KeySet) -> TermId {
        let (mut missing, mut at) = (Vec::new(), set);
        let mut term = loop {
            match (self.key_sets.terms.get(&at), self.key_sets.parents.get(&at)) {
                (Some(&known), _) => break known,
                (None, Some(&(parent, name))) => {
                    missing.push(name);
                    at = parent;
                }
                (None, None) => {
                    missing.extend(self.key_sets.names(at));
                    break Terms::EMPTY;
                }
            }
        };
        for &name in missing.iter().rev() {
            let text = &self.arenas.names[name.0 as usize];
            term = self.lexicon.terms.with_word(term, text);
        }
        self.key_sets.terms.insert(set, term);
        term
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_are_equal_numbers_and_hold_their_names() {
        let mut sets = KeySets::default();
        let names: Vec<NameId> = [0, 1, 2, 3, 7, 8, 64, 65, 1 << 31, u32::MAX].map(NameId).to_vec();
        let mut backwards = names.clone();
        backwards.reverse();
        let mut odd: Vec<NameId> = names.iter().step_by(2).copied().collect();
        odd.extend(&names);
        let grown: Vec<KeySet> = [&names, &backwards, &odd]
            .iter()
            .map(|order| order.iter().fold(KeySet::EMPTY, |set, &n| sets.with(set, n)))
            .collect();
        assert_eq!(grown, [grown[0]; 3]);
        assert_eq!(sets.names(grown[0]), names);
        for n in 0..200 {
            assert_eq!(sets.contains(grown[0], NameId(n)), names.contains(&NameId(n)), "{n}");
        }
    }

    #[test]
    fn sets_are_compared_and_taken_apart() {
        let mut sets = KeySets::default();
        let mut state = 1u64;
        let mut draw = |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % below
        };
        for round in 0..500 {
            let below = [4, 16, 100, 1 << 20][round % 4];
            let mut some = || (0..draw(12)).map(|_| draw(below)).collect::<std::collections::BTreeSet<u32>>();
            let (a, b) = (some(), some());
            let mut set = |names: &mut dyn Iterator<Item = u32>| {
                names.fold(KeySet::EMPTY, |s, n| sets.with(s, NameId(n)))
            };
            let (x, y) = (set(&mut a.iter().copied()), set(&mut b.iter().copied()));
            let both = set(&mut a.intersection(&b).copied());
            let less = set(&mut a.difference(&b).copied());
            assert_eq!((sets.intersection(x, y), sets.difference(x, y)), (both, less), "{a:?} {b:?}");
            assert_eq!(sets.intersects(x, y), both != KeySet::EMPTY);
            assert_eq!(sets.len(x), a.len());
        }
    }
}
