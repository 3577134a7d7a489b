//! Any schema, any options, any bytes: an error or a working automaton, never a crash, a hang or a contradiction.
//!
//! An input is one byte of options, the schema's text up to a byte 0, and the document, which is walked (see `walk`).
//! Run by `make fuzz`.  Rejected: structure-aware mutation by a generator of schemas; the differential judge
//! (`benchmarks.suites differential`) draws those, and finds what is wrong rather than what breaks.

#![no_main]

mod options;
mod walk;

use libfuzzer_sys::fuzz_target;
use tokenform_core::json::JsonMachine;
use tokenform_core::schema::Schema;

fuzz_target!(init: walk::bound(), |data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let Some((text, document)) = walk::parts(rest) else { return };
    let (text, chosen) = (text.to_string(), options::options(choice));
    let made = walk::automaton(move || JsonMachine::new(Schema::new(&text, chosen.clone())?));
    if let Ok(automaton) = made {
        // an error on the way is a limit that was reached, which the caller is told
        let _ = walk::walk(&automaton, document);
    }
});
