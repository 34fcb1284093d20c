# The project's verbs. `make setup` needs Python 3.11+ with venv; everything else comes by pip and uv, checked by hash.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.casework-setup

# Drills and storms start some hundred processes, and where the environment forbids Python to keep what it compiles, each
# of them would compile anew what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test collected lint style types fix docs bench anatomy lock clean

setup: $(STAMP)  ## make .venv with everything in it

$(STAMP): requirements/uv.lock requirements/dev.lock pyproject.toml
	@echo "casework: making $(VENV) and installing the locked packages into it (pip, then uv; hashes are checked)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.lock
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/uv pip sync --quiet --compile-bytecode --require-hashes requirements/dev.lock
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup  ## one loan case, end to end, with a worker killed in mid-run
	$(BIN)/casework demo --app casework.examples.loan_underwriting:app

# Three at a time, on two cores too: many tests wait for servers. While one core checks the types, the other reads all
# tests once, so that the test processes find them compiled, and says early which cannot be read.
test: setup  ## every check and every test
	@$(MAKE) --no-print-directory --jobs=2 types style collected
	$(BIN)/pytest -n 3 --dist worksteal --durations=15

collected: setup
	@$(BIN)/pytest --collect-only -qq > $(VENV)/collected.txt || { cat $(VENV)/collected.txt; exit 1; }

lint: style types  ## format, lint, types, import contracts; changes nothing

style: setup
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/lint-imports --no-logo

types: setup
	$(BIN)/mypy

fix: setup  ## format and mend what can be mended by itself
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup  ## write the reference pages that are generated from code
	$(BIN)/python -m docs.generate

bench: setup  ## every benchmark, this project beside its peers; takes some twenty minutes
	$(BIN)/python -m benchmarks.table

anatomy: setup  ## where one run's milliseconds, rows and bytes go
	$(BIN)/python -m benchmarks.anatomy

lock: setup  ## resolve the dependencies anew, with hashes, naming no host
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
	  --python-version 3.11 requirements/uv.in --output-file requirements/uv.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
	  --python-version 3.11 pyproject.toml --extra local --extra models --extra telemetry --extra encryption --extra objects --extra mail --extra documents --group dev --output-file requirements/dev.lock

clean:  ## forget the environment and the caches; data in .casework stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
