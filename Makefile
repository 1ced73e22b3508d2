# Two commands do everything: `make demo` and `make test`. Each makes its own environment when there is none.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test test-fast lint format clean

demo: $(VENV)/.run-installed
	$(BIN)/manylabel demo --out runs/demo

test: $(VENV)/.dev-installed
	$(BIN)/python -m pytest

test-fast: $(VENV)/.dev-installed
	$(BIN)/python -m pytest -m "not slow"

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
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.dev-installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@ $(VENV)/.run-installed

clean:
	rm -rf $(VENV) runs .pytest_cache .mypy_cache .ruff_cache
