# Two commands do all the set-up: `make run` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
UV_PIN := uv==0.13.7
UV     := $(BIN)/uv pip install --quiet --python $(BIN)/python

RUN_HOME := $(CURDIR)/.openfang

NEW_ENOUGH := 'import sys; sys.version_info >= (3, 11) or \
	sys.exit("This needs Python 3.11 or newer: make PYTHON=python3.11 ...")'

# Without bytecode each of the many processes that start here would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run setup test test-nodes conformance check format coverage mutants numbers bench bench-nodes fuzz soak chaos chaos-nodes docs reference screenshots wheel lock seeds clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 16

run: $(VENV)/.run  ## `openfang up` on a home inside the checkout, until Ctrl-C (RUN_HOME=.openfang)
	@OPENFANG_HOME='$(RUN_HOME)' exec $(BIN)/python -m openfang up --foreground --no-import --no-connect

setup: $(VENV)/.dev  ## only make .venv, with the tools of `make check`

test: $(VENV)/.dev $(VENV)/.peers  ## run every test (installs what the tests need)
	@$(BIN)/python tools/system_packages.py
	@$(BIN)/pytest $(PYTEST_ARGS)

screenshots: $(VENV)/.dev $(VENV)/.peers  ## take the pictures of the docs anew, in a browser
	@$(BIN)/pytest -n 0 tests/edges/web/screenshots.py $(PYTEST_ARGS)

conformance: $(VENV)/.dev $(VENV)/.peers  ## run the official MCP conformance suite on both our ends
	@$(BIN)/pytest tests/conformance -n 2 $(PYTEST_ARGS)

test-nodes: $(VENV)/.dev $(VENV)/.peers  ## the suites of MCP and A2A, and of several nodes, against three behind a balancer
	@$(BIN)/pytest tests/cluster -n 2 $(PYTEST_ARGS)
	@for engine in auto inline; do for tests in $(ON_NODES); do \
		TEST_NODES=3 TEST_ENGINE=$$engine $(BIN)/pytest $$tests -n 1 $(PYTEST_ARGS) || exit 1; done; done

# One after the other: the server of a run takes a hundred connections, and a node has nine or more.
# Daemons that are asked from outside, whichever of them answers. What else there is of A2A and MCP
# is not for several: tests/edges/a2a, tests/sources/a2a and most of tests/peers build a node inside
# the test; tests/peers/test_clients.py asks no node; tests/peers/test_whole.py looks at one machine's
# processes; tests/peers/rings are three homes already; tests/faults kill the daemon of one home, and
# tests/cluster has kills of its own.
ON_NODES := tests/a2a_spec tests/peers/a2a tests/peers/test_pairings.py tests/peers/test_frameworks.py

check: $(VENV)/.dev  ## ruff, pyright strict, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/pyright

coverage: $(VENV)/.dev  ## which branches the tests take; without the long runs (COVERAGE_TESTS=tests/...)
	@rm -f .coverage .coverage.*
	-@for tests in $(COVERAGE_TESTS); do echo "$$tests"; $(BIN)/coverage run -m pytest $$tests; done
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report --skip-covered --fail-under=90
	@$(BIN)/coverage report --skip-covered --fail-under=95 --include='$(HEART)'

# Real daemons under faults, peers of other makes and the pages run for long, and mostly elsewhere.
# One run for each folder: a worker that is ended has lost the data of its own run alone.
LONG_TESTS := tests/faults tests/conformance tests/peers tests/chaos tests/test_pages.py tests/test_tour.py
COVERAGE_TESTS ?= $(filter-out $(LONG_TESTS),$(patsubst %/,%,$(sort $(dir $(wildcard tests/*/test_*.py)))) \
	$(wildcard tests/test_*.py))
HEART := */openfang/policy/*,*/openfang/guard/*,*/openfang/audit/*,*/openfang/safety/*,*/openfang/registry/*,*/openfang/pipeline/*

mutants: $(VENV)/.dev  ## break the code in small ways, and see which tests notice (PARTS="guard policy" SAMPLE=300 SINCE=HEAD~50)
	@nice $(BIN)/python -m tools.mutants --sample $(or $(SAMPLE),0) --since '$(SINCE)' $(PARTS)

numbers: $(VENV)/.dev  ## how long functions and modules are, and what is rarely a good sign
	@$(BIN)/python -m tools.measure

format: $(VENV)/.dev  ## put the code into its shape
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format --quiet .

bench: $(VENV)/.dev $(VENV)/.bench-peers  ## measure CPU per call, beside others in the same run
	@$(BIN)/python -m bench

bench-nodes: $(VENV)/.dev  ## measure one to three nodes on one Postgres: CPU, statements, locks
	@$(BIN)/python -W ignore -m bench.nodes

FUZZ_REQUESTS ?= 1000000
FUZZ_MINUTES  ?= 60
FUZZ_EXAMPLES ?= 25
SOAK_CALLS    ?= 200000
SOAK_KILLS    ?= 100
SOAK_STORMS   ?= 20

fuzz: $(VENV)/.dev  ## send the daemon wrong requests (FUZZ_REQUESTS=1000000 FUZZ_MINUTES=60 FUZZ_SEED=1)
	@FUZZ_REQUESTS=$(FUZZ_REQUESTS) FUZZ_MINUTES=$(FUZZ_MINUTES) FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) \
		$(BIN)/pytest tests/faults/test_tasks_fuzz.py tests/faults/test_fuzz.py \
		tests/edges/api/test_document.py $(PYTEST_ARGS)

soak: $(VENV)/.dev  ## make many calls, and kill the daemon often (SOAK_CALLS=200000 SOAK_KILLS=100)
	@SOAK_CALLS=$(SOAK_CALLS) SOAK_KILLS=$(SOAK_KILLS) SOAK_STORMS=$(SOAK_STORMS) \
		$(BIN)/pytest tests/faults/test_soak.py tests/faults/test_killed.py \
		tests/faults/test_tasks_killed.py tests/faults/test_storms.py $(PYTEST_ARGS)

CHAOS_MINUTES ?= 10
CHAOS_SEED    ?= 1
CHAOS_ROUNDS  ?= 2

chaos: $(VENV)/.dev  ## every fault to a live daemon under load (CHAOS_MINUTES=10 CHAOS_SEED=1)
	@$(BIN)/python -m tests.chaos --minutes $(CHAOS_MINUTES) --seed $(CHAOS_SEED)

chaos-nodes: $(VENV)/.dev  ## every fault to three nodes and their database, under load (CHAOS_ROUNDS=2)
	@$(BIN)/python -m tests.cluster --rounds $(CHAOS_ROUNDS)

docs: $(VENV)/.dev  ## build the documentation as a site, strictly, into build/site
	@$(BIN)/zensical build --strict --clean
	@echo 'Open build/site/index.html; the search works where it is served:'
	@echo '  $(BIN)/python -m http.server --bind 127.0.0.1 -d build/site'

reference: $(VENV)/.dev  ## write what the pages take from the code anew
	@$(BIN)/python -m tools.reference

# Made of the source distribution: what is not in it is not in the wheel either. The bytes are always the same.
wheel: | $(VENV)/bin/uv  ## build the wheel and the source distribution, to dist/
	@$(BIN)/uv build --quiet --clear --out-dir dist .
	@ls -l dist

lock: $(VENV)/.dev  ## resolve all lock files anew
	@$(BIN)/uv pip compile pyproject.toml --extra agents $(LOCK) -o requirements.lock
	@$(BIN)/uv pip compile pyproject.toml --group dev --all-extras $(LOCK) -o requirements-dev.lock
	@$(BIN)/python tools/test_peers.py lock

LOCK := --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

clean:  ## remove what the commands above made
	@rm -rf $(VENV) .pytest_cache .ruff_cache .coverage .coverage.* .cache build dist

$(VENV)/bin/uv:
	@$(PYTHON) -c $(NEW_ENOUGH)
	@echo 'Setting up .venv, once: some 80 MB to download.'
	@$(PYTHON) -m venv --without-pip $(VENV)
	@$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check $(UV_PIN)

$(VENV)/.run: requirements.lock pyproject.toml | $(VENV)/bin/uv
	@$(UV) --require-hashes -r requirements.lock
	@$(UV) --no-deps --editable .
	@touch $@

$(VENV)/.dev: requirements-dev.lock pyproject.toml | $(VENV)/bin/uv
	@$(UV) --require-hashes -r requirements-dev.lock
	@$(UV) --no-deps --editable .
	@touch $@ $(VENV)/.run

# The real servers and clients and the conformance suite that the tests run against.
$(VENV)/.peers: tools/test_peers.py $(wildcard tests/packages/node*/* tests/packages/python/*) | $(VENV)/.dev
	@$(BIN)/python tools/test_peers.py
	@touch $@

# The gateways that the bench measures us beside.
$(VENV)/.bench-peers: tools/test_peers.py $(wildcard tests/packages/bench/*) | $(VENV)/.dev
	@$(BIN)/python tools/test_peers.py bench
	@touch $@
