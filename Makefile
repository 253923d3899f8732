# Everything a newcomer needs is a target here; `make help` lists them.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)

# CI and developers on Python 3.11 install the pinned versions; other Pythons the declared ranges.
PY := $(shell $(PYTHON) -c 'import sys; print("py%d%d" % sys.version_info[:2])')
PINS := $(patsubst %,-c %,$(wildcard constraints/$(PY).txt))
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PINS)

.DEFAULT_GOAL := help
.PHONY: help demo test lint check deep explore prove ledger mutants specs vectors bench bench-quick bench-lockstep device-bundle clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 16

demo: $(VENV)/installed ## set up, then certify the reference ARC and two vLLM releases
	@echo; echo "1. The reference ARC of the newest edition:"; echo
	$(BIN)/cachelaw certify cachelaw.reference:ARC --budget quick
	@echo; echo "2. The ARC of vLLM 0.30.0:"; echo
	$(BIN)/cachelaw certify vllm==0.30.0:arc --budget quick
	@echo; echo "3. The ARC of vLLM 0.29.0, which turns stores away (exit status 1 is expected):"; echo
	$(BIN)/cachelaw certify vllm==0.29.0:arc --budget quick; test $$? -eq 1

test: lint check ## all that CI runs: lint, then the tests

lint: $(VENV)/installed-dev ## ruff format, ruff check, mypy --strict
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check: $(VENV)/installed-dev ## the tests alone, a file on each core at a time
	$(BIN)/pytest -m "not deep" -n $(JOBS) --dist loadfile

deep: $(VENV)/installed-dev ## the tests that are too long for every run
	$(BIN)/pytest -m deep

explore: $(VENV)/installed ## every state of the reference at small scope, with counts
	$(BIN)/cachelaw explore

prove: $(VENV)/installed-dev ## the proofs: contracts over all paths, theorems for every capacity
	$(BIN)/python -m proofs
	$(BIN)/python -m tests.proof.gate
	$(BIN)/python -m tests.proof.differences
	$(BIN)/pytest -m "proof and not deep" tests/proof

ledger: $(VENV)/installed-dev ## write specs/assurance.md; runs again only what it is out of date about
	$(BIN)/python -m tests.assurance.ledger

mutants: $(VENV)/installed-dev ## the suite on trial: what kills each mutant, and how soon
	$(BIN)/python -m cachelaw.conformance.mutants --jobs $(JOBS) --json tests/mutants/matrix.json \
	  --page specs/mutants.md --ran "\`make mutants\`, $$(date -u +%Y-%m-%d), $$(uname -m)."

specs: $(VENV)/installed-dev ## write the clauses of the registry into specs/*.md
	$(BIN)/python -m cachelaw.specs.pages --write

vectors: $(VENV)/installed-dev ## make the golden vectors anew
	$(BIN)/python -m tests.vectors.make

bench: $(VENV)/installed-bench ## measure the fast path, all sizes, and write fast/BENCHMARKS.md
	$(BIN)/python -m benchmarks.fast --write

bench-quick: $(VENV)/installed-bench ## measure the fast path at few sizes; writes nothing
	$(BIN)/python -m benchmarks.fast --quick

device-bundle: $(VENV)/installed-dev ## pack numba and numba-cuda for a GPU host without a network
	$(BIN)/python -m benchmarks.fast.bundle

bench-lockstep: $(VENV)/installed ## policy calls a second of the lockstep engine
	$(BIN)/python -m benchmarks.lockstep

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "cachelaw needs Python 3.10 or newer; name one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV) || \
	  { echo "python3 cannot make a virtual environment; on Debian: apt install python3-venv"; exit 1; }

$(VENV)/installed: pyproject.toml $(wildcard constraints/*.txt) | $(BIN)/python
	$(INSTALL) -e .
	@touch $@

$(VENV)/installed-dev: pyproject.toml $(wildcard constraints/*.txt) | $(BIN)/python
	$(INSTALL) -e ".[dev,fast,cuda]"
	@touch $@ $(VENV)/installed

$(VENV)/installed-bench: $(VENV)/installed-dev
	$(INSTALL) -e ".[dev,fast,cuda,bench]"
	@touch $@
