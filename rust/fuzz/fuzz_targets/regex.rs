//! Any pattern in any dialect: an error or a working automaton, never a crash, a hang or a dead end.
//!
//! An input is one byte (the dialect), the pattern up to a byte 0, and a text, which is walked (see `walk`).

#![no_main]

mod walk;

use libfuzzer_sys::fuzz_target;
use tokenform_core::lexical::Lexicon;
use tokenform_core::limits::Limits;
use tokenform_core::automaton::pattern::Pattern;
use tokenform_core::regex::{parse, DIALECTS};
use tokenform_core::work;

fuzz_target!(init: walk::bound(), |data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let Some((pattern, text)) = walk::parts(rest) else { return };
    let dialect = DIALECTS[usize::from(choice) % DIALECTS.len()].1;
    let Ok(Ok(lang)) = work::run(Limits::default().work, || parse(pattern, dialect)) else { return };
    let made = walk::automaton(move || {
        let mut lexicon = Lexicon::default();
        let term = lexicon.terms.lower(&lang);
        Ok(Pattern::new(lexicon, term, "the pattern".into()))
    });
    if let Ok(automaton) = made {
        let _ = walk::walk(&automaton, text);
    }
});
