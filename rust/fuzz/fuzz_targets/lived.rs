//! One automaton for several texts in turns, as a server has it: what one text met makes no difference to another.
//!
//! An input is one byte of options, the schema's text up to a byte 0, and documents, each up to a byte 0. All are walked
//! twice, with the caches dropped in between; the second time each must take the same bytes and be allowed as many
//! tokens at each of them.

#![no_main]

mod options;
mod walk;

use libfuzzer_sys::fuzz_target;
use tokenform_core::json::JsonMachine;
use tokenform_core::schema::Schema;

/// Texts of one input.
const TEXTS: usize = 6;

fuzz_target!(init: walk::bound(), |data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let Some((text, documents)) = walk::parts(rest) else { return };
    let (text, chosen) = (text.to_string(), options::options(choice));
    let made = walk::automaton(move || JsonMachine::new(Schema::new(&text, chosen.clone())?));
    let Ok(automaton) = made else { return };
    let documents: Vec<&[u8]> = documents.split(|&b| b == 0).take(TEXTS).collect();
    let walked: Vec<_> = documents.iter().map(|document| walk::walk(&automaton, document)).collect();
    automaton.clear();
    for (document, first) in documents.iter().zip(walked).rev() {
        if let (Ok(first), Ok(second)) = (first, walk::walk(&automaton, document)) {
            assert_eq!(first, second, "another text made a difference");
        }
    }
});
