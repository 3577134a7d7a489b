//! Lays the repository's `grammars/` where the wheel takes them from: they belong to the package `tokenform`
//! when it is installed, and to the reader of the repository before that.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../grammars");
    println!("cargo:rerun-if-changed={}", source.display());
    let target = Path::new(&env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("_grammars");
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    fs::create_dir_all(&target)?;
    for entry in fs::read_dir(source)? {
        let file = entry?;
        if file.path().extension().is_some_and(|ending| ending == "lark") {
            fs::copy(file.path(), target.join(file.file_name()))?;
        }
    }
    Ok(())
}
