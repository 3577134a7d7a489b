#!/bin/bash -eu
# Each target beside its dictionary and its options, as OSS-Fuzz expects them in $OUT; what it finds it keeps itself.
cd "$SRC/tokenform/rust/fuzz"
cargo fuzz build -O --debug-assertions
for source in fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    grep -q fuzz_target! "$source" || continue  # what targets share
    cp "target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
    cp schema.dict "$OUT/$target.dict"
    printf '[libfuzzer]\nmax_len = 4096\ntimeout = 300\nrss_limit_mb = 2048\n' > "$OUT/$target.options"
done
