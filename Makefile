# Each target makes and reuses .venv; nothing else is needed by hand.
# `make demo`, `make test`, `make test-fast` (no Ray: for the inner loop), `make check`, `make bench`.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: demo test test-fast check bench

demo: $(INSTALLED)
	$(BIN)/raybench demo --out runs/demo

# Two processes, one of which has Ray; what belongs together is grouped in tests/conftest.py.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder

test: $(INSTALLED)
	$(PYTEST)

test-fast: $(INSTALLED)
	$(PYTEST) -q -m "not ray"

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/test_layers.py

bench: $(INSTALLED)
	$(BIN)/python -m tests.perf.bench

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[demo,dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[pdq]' \
		|| echo "pdq is left out: its package comes as source, which needs a C++ compiler"
	touch $(INSTALLED)
