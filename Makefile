# Two commands do everything: `make demo` and `make test`. Each makes its own environment when there is none.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
WORKERS ?= 2
SEED ?= 0
BASE ?= HEAD
ORDER ?= files
TESTS ?=
PYTEST = $(BIN)/python -m pytest
PARALLEL = -n $(WORKERS) --dist worksteal
QUICK = $(PARALLEL) -m 'not slow and not nightly and not foreign'
ORDERED = $(if $(filter random,$(ORDER)),,-p no:randomly)
COVERED = $(if $(COVERAGE),--cov --cov-report=)

.PHONY: demo test test-fast test-nightly test-foreign lint format freeze golden speed plant mutate hostile clean

demo: $(VENV)/.run-installed
	$(BIN)/manylabel demo --out runs/demo --overwrite

# COVERAGE=1 measures which lines of the package the tests reach; those they do not are listed in build/uncovered.txt.
# ORDER=random: another order every time, and the seed that gives it again is printed
test: $(VENV)/.dev-installed
	$(PYTEST) $(PARALLEL) $(ORDERED) $(COVERED)
ifdef COVERAGE
	mkdir -p build
	$(BIN)/coverage report --show-missing --skip-covered > build/uncovered.txt
	@grep '^TOTAL' build/uncovered.txt | sed 's/TOTAL/lines of the package that tests reach:/'
endif

# in another order every time, so that no test comes to depend on those before it; TESTS=tests/unit: these only
test-fast: $(VENV)/.dev-installed
	$(PYTEST) $(QUICK) $(TESTS)

test-nightly: $(VENV)/.dev-installed
	$(PYTEST) -n $(WORKERS) -m nightly

# builds .foreign/ where it is not there yet: minutes, and 2 GB
test-foreign: $(VENV)/.dev-installed
	$(BIN)/python tests/foreign/environments.py
	$(PYTEST) -m foreign tests/foreign

# What users hold on to, and what every reader makes of every test's data, written anew: for changes that are meant.
# TESTS=tests/unit/data: the data of these tests only
freeze: $(VENV)/.dev-installed
	$(BIN)/python tests/net/freeze.py
	MANYLABEL_FREEZE=tables $(PYTEST) $(QUICK) -p no:randomly -q $(TESTS)

# This work tree beside the commit BASE: the same bits? as fast?
golden: $(VENV)/.dev-installed
	$(BIN)/python tests/net/golden.py $(BASE)

speed: $(VENV)/.dev-installed
	$(BIN)/python tests/net/speed.py $(BASE)

# Would the quick tests notice? Known bugs, one at a time; and small changes at random where figures and decisions are made
plant: $(VENV)/.dev-installed
	$(BIN)/python tests/net/plant.py $(ONLY) -- $(QUICK)

mutate: $(VENV)/.dev-installed
	$(BIN)/python tests/mutation/mutate.py --workers $(WORKERS)

# What loses, misleads, crashes or hangs? Thousands of cases in sandboxes; the table goes into docs/reliability.md
hostile: $(VENV)/.dev-installed
	mkdir -p build
	$(BIN)/python tests/hostile/trial.py --workers $(WORKERS) --seed $(SEED) --out build/hostile.txt --write

lint: $(VENV)/.dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev-installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "manylabel needs Python 3.11 or newer; choose it with PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

# pip chooses torch and torchvision together: builds of different origin do not fit each other
$(VENV)/.run-installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[train]"
	touch $@

$(VENV)/.dev-installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@ $(VENV)/.run-installed

clean:
	rm -rf $(VENV) runs build .pytest_cache .mypy_cache .ruff_cache
