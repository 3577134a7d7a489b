//! A real vocabulary: the 2,048 tokens of the built-in model, byte-level BPE.

use std::sync::{Arc, OnceLock};

use tokenform_core::vocab::Vocabulary;

/// Each token is a byte that says its length and its bytes; those of length 0 are special, the third of them the end.
/// Written by `python -m benchmarks.suites corpus`.
const TOKENS: &[u8] = include_bytes!("../vocabulary.bin");
const EOS: u32 = 2;

pub fn real() -> Arc<Vocabulary> {
    static REAL: OnceLock<Arc<Vocabulary>> = OnceLock::new();
    let make = || {
        let (mut tokens, mut special, mut rest) = (Vec::<Box<[u8]>>::new(), Vec::new(), TOKENS);
        while let Some((&length, after)) = rest.split_first() {
            let (token, next) = after.split_at(length as usize);
            if token.is_empty() {
                special.push(tokens.len() as u32);
            }
            tokens.push(token.into());
            rest = next;
        }
        Arc::new(Vocabulary::new(tokens, vec![EOS], &special).expect("a vocabulary"))
    };
    REAL.get_or_init(make).clone()
}
