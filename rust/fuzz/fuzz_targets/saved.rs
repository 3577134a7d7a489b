//! Any bytes as a saved grammar: an error or a working automaton, never a crash, a hang or a dead end; what is loaded
//! is saved as it was.
//!
//! An input is one byte and the grammar's bytes: with the mark, version and sum that belong to them, or, where the byte
//! is odd, as they are. What follows a byte 255 is walked (see `walk`); no text of a grammar holds one.

#![no_main]

mod walk;

use libfuzzer_sys::fuzz_target;
use tokenform_core::limits::Limits;
use tokenform_core::Grammar;

const MARK: &[u8] = b"tokenform grammar\n\x01\0\0\0";

fuzz_target!(init: walk::bound(), |data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let mut parts = rest.splitn(2, |&b| b == 0xff);
    let (said, text) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let bytes = if choice & 1 == 1 { said.to_vec() } else { whole(said) };
    let Ok(grammar) = Grammar::from_bytes(&bytes) else { return };
    let saved = grammar.to_bytes();
    let again = Grammar::from_bytes(&saved).expect("what was saved is loaded");
    assert_eq!(again.source(), grammar.source(), "another grammar was loaded");
    if let Ok(automaton) = again.compile(walk::vocabulary(), Limits::default()) {
        let _ = walk::walk(&automaton, text);
    }
});

/// With a mark, this version and the sum over all of that (FNV-1a).
fn whole(said: &[u8]) -> Vec<u8> {
    let mut bytes = [MARK, said].concat();
    let sum = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum: u64, &b| (sum ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    bytes.extend(sum.to_le_bytes());
    bytes
}
