# Two commands for newcomers: `make demo`, `make test`. Both make what they need (.venv) and are quick the
# second time. `make check` is what CI asks for before the tests.
# the first Python that runs and is 3.10 or newer
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10; do \
	$$p -c "import sys; sys.exit(sys.version_info < (3, 10))" 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
RUST := $(shell find rust/core/src rust/py/src -name '*.rs') rust/Cargo.toml rust/core/Cargo.toml rust/py/Cargo.toml
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export OMP_NUM_THREADS ?= 2

.PHONY: demo test slow check bench fuzz clean

demo: $(VENV)/.ready
	$(BIN)/tokenform demo

test: $(VENV)/.tools
	cd rust && cargo test --release -q -p tokenform-core
	$(BIN)/pytest

# the long tests, and the property tests once more with examples drawn anew
slow: $(VENV)/.tools
	$(BIN)/pytest -m slow --hypothesis-profile=default
	$(BIN)/pytest --hypothesis-profile=default -k "$$(grep -rlE '^@given' tests | xargs -n1 basename -s .py | paste -sd'|' | sed 's/|/ or /g')"

check: $(VENV)/.tools
	cd rust && cargo fmt --check && cargo clippy --release --all-targets -q -- -D warnings
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy

bench: $(VENV)/.tools
	$(BIN)/pip install -q ".[peers,plots]"
	$(BIN)/python benchmarks/maskbench.py

# an hour of fuzzing for each target (FUZZ_SECONDS, FUZZ_TARGETS); needs the nightly compiler. These flags are those of cargo-fuzz, without it
FUZZ_SECONDS ?= 3600
FUZZ_TARGETS ?= schema lived regex grammar compose
FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=16

HOST = $(shell rustc -vV | sed -n 's/^host: //p')

fuzz: $(VENV)/.ready
	cd rust/fuzz && RUSTFLAGS="$(FUZZ_FLAGS)" cargo +nightly build --release --target $(HOST) --target-dir target
	$(BIN)/python -m tokenform.bench.suites corpus rust/fuzz/corpus/seeds
	for target in $(FUZZ_TARGETS); do \
		mkdir -p rust/fuzz/corpus/$$target rust/fuzz/artifacts && \
		(cd rust/fuzz && target/$(HOST)/release/$$target corpus/$$target corpus/seeds -dict=schema.dict -max_len=4096 \
			-timeout=10 -rss_limit_mb=1024 -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=artifacts/) || exit 1; \
	done

clean:
	rm -rf $(VENV) rust/target src/tokenform/*.so

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# the package in place, its dependencies, the compiled engine
$(VENV)/.ready: $(VENV)/bin/python pyproject.toml $(RUST)
	$(BIN)/pip install -q -e .
	@touch $@

$(VENV)/.tools: $(VENV)/.ready
	$(BIN)/pip install -q -e ".[test,lint]"
	@touch $@
