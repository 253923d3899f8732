# Everything a newcomer needs is a target here; `make help` lists them.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# CI and developers on Python 3.11 install the pinned versions; other Pythons the declared ranges.
PY := $(shell $(PYTHON) -c 'import sys; print("py%d%d" % sys.version_info[:2])')
PINS := $(patsubst %,-c %,$(wildcard constraints/$(PY).txt))
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PINS)

.DEFAULT_GOAL := help
.PHONY: help demo test lint check deep explore prove specs vectors clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 10

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

check: $(VENV)/installed-dev ## the tests alone
	$(BIN)/pytest -m "not deep"

deep: $(VENV)/installed-dev ## the tests that are too long for every run
	$(BIN)/pytest -m deep

explore: $(VENV)/installed ## every state of the reference at small scope, with counts
	$(BIN)/cachelaw explore

prove: $(VENV)/installed-dev ## the proofs: contracts over all paths, theorems for every capacity
	$(BIN)/python -m proofs
	$(BIN)/python -m tests.proof.gate
	$(BIN)/pytest -m "proof and not deep" tests/proof

specs: $(VENV)/installed-dev ## write the clauses of the registry into specs/*.md
	$(BIN)/python -m cachelaw.specs.pages --write

vectors: $(VENV)/installed-dev ## make the golden vectors anew
	$(BIN)/python -m tests.vectors.make

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
	$(INSTALL) -e ".[dev]"
	@touch $@ $(VENV)/installed
