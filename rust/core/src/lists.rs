//! Sorted lists that stand for sets.

use std::hash::Hash;

use crate::work;

/// Sorted, each once.
pub fn sort_unique<T: Ord>(list: &mut Vec<T>) {
    list.sort_unstable();
    list.dedup();
}

/// The one in the middle; `None`: there is none.
pub fn median(mut list: Vec<u64>) -> Option<u64> {
    let middle = list.len().checked_sub(1)? / 2;
    Some(*list.select_nth_unstable(middle).1)
}

/// Removes repetitions, keeping the first.
pub fn dedup<T: Copy + Eq + Hash>(list: &mut Vec<T>) {
    work::spend(1 + list.len() as u64 / 2);
    if list.len() < 16 {
        let mut i = 0;
        while i < list.len() {
            if list[..i].contains(&list[i]) {
                list.remove(i);
            } else {
                i += 1;
            }
        }
        return;
    }
    let mut seen = rustc_hash::FxHashSet::with_capacity_and_hasher(list.len(), Default::default());
    list.retain(|x| seen.insert(*x));
}
