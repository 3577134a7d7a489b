//! Masks over the vocabulary of a Hugging Face tokenizer: `tokenizer TOKENIZER.json SCHEMA.json [TEXT]`.
//!
//! Prints the tokens that may follow the text. The tokenizer must be byte-level BPE, as GPT-2's and its successors' are:
//! their files write each byte as a printable character.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use tokenform_core::{Grammar, Limits, Matcher, Options, Vocabulary};

/// The byte that each character of a byte-level vocabulary stands for: printable ones for themselves, the others in
/// order from U+0100 on.
fn bytes_of_characters() -> HashMap<char, u8> {
    let printable = |b: &u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let (plain, others): (Vec<u8>, Vec<u8>) = (0..=255).partition(printable);
    let moved = (0x100..).filter_map(char::from_u32).zip(others);
    plain.into_iter().map(|b| (char::from(b), b)).chain(moved).collect()
}

fn vocabulary(file: &Value) -> Result<Vocabulary, Box<dyn std::error::Error>> {
    let known = bytes_of_characters();
    let ids = file["model"]["vocab"].as_object().ok_or("the tokenizer is not byte-level BPE")?;
    let added: Vec<(&str, u64)> = file["added_tokens"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|token| Some((token["content"].as_str()?, token["id"].as_u64()?)))
        .collect();
    let last =
        ids.values().filter_map(Value::as_u64).chain(added.iter().map(|a| a.1)).max().ok_or("no tokens")?;
    let mut tokens: Vec<Box<[u8]>> = vec![Box::default(); last as usize + 1];
    for (text, id) in ids {
        let bytes: Option<Vec<u8>> = text.chars().map(|c| known.get(&c).copied()).collect();
        if let (Some(id), Some(bytes)) = (id.as_u64(), bytes) {
            tokens[id as usize] = bytes.into();
        }
    }
    for &(text, id) in &added {
        tokens[id as usize] = text.as_bytes().into();
    }
    let special: Vec<u32> = added.iter().map(|a| a.1 as u32).collect();
    let ends = |text: &str| text.contains("end") || text.contains("eos") || text == "</s>";
    let eos: Vec<u32> = added.iter().filter(|a| ends(a.0)).map(|a| a.1 as u32).collect();
    Ok(Vocabulary::new(tokens, eos, &special)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, tokenizer, schema, rest @ ..] = &arguments[..] else {
        return Err("usage: tokenizer TOKENIZER.json SCHEMA.json [TEXT]".into());
    };
    let vocabulary = Arc::new(vocabulary(&serde_json::from_str(&std::fs::read_to_string(tokenizer)?)?)?);
    let grammar = Grammar::json_schema(&std::fs::read_to_string(schema)?, Options::default())?;
    for line in grammar.report() {
        eprintln!("{line}");
    }
    let mut matcher = Matcher::new(grammar.compile(vocabulary.clone(), Limits::default())?, None)?;
    let text = rest.first().map_or("", String::as_str);
    matcher.accept_tokens(
        &vocabulary.greedy_tokens(text.as_bytes()).ok_or("the vocabulary can't spell the text")?,
    )?;
    for id in matcher.allowed_tokens()? {
        println!("{id}\t{:?}", String::from_utf8_lossy(&vocabulary.tokens()[id as usize]));
    }
    Ok(())
}
