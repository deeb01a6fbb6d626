# Each target makes and reuses .venv; nothing else is needed by hand.
# `make demo`, `make test`, `make test-all` (those that take minutes, too: lost nodes, faulty storage, fuzzing),
# `make test-fast` (no Ray, none that takes seconds: for the inner loop), `make test-contrib` (descriptors of OpenCV's
# contrib wheel), `make check`, `make bench`, `make bench-compare A=one.json B=two.json` (what changed between two runs
# of the bench).
PYTHON ?= python3
BIN := .venv/bin
CONTRIB := .venv/contrib
INSTALLED := .venv/.installed

.PHONY: demo test test-all test-slow test-contrib test-on-ray test-others test-fast check bench bench-compare

demo: $(INSTALLED)
	$(BIN)/raybench demo --out runs/demo

# Two at once, so that the tests of the session's Ray need only one, and the others do not wait for it.
test: $(INSTALLED)
	$(MAKE) --no-print-directory -j 2 test-on-ray test-others

test-on-ray: $(INSTALLED)
	$(BIN)/python -m pytest -m "ray and not ray(own=True) and not slow"

test-others: $(INSTALLED)
	$(BIN)/python -m pytest -m "(not ray or ray(own=True)) and not slow"

test-all: $(INSTALLED)
	$(MAKE) --no-print-directory test
	$(MAKE) --no-print-directory test-slow
	$(MAKE) --no-print-directory test-contrib

# Two files at once: much of the time is spent waiting for what runs do about nodes and storage that are gone.
test-slow: $(INSTALLED)
	$(BIN)/python -m pytest -m slow -n 2 --dist loadfile --durations=10

# OpenCV's contrib wheel takes the plain one's place, so it lies aside, in a folder that comes first for these tests.
test-contrib: $(INSTALLED) $(CONTRIB)
	PYTHONPATH=$(CONTRIB) $(BIN)/python -m pytest -m "not slow" tests/descriptors/test_opencv_contrib.py

$(CONTRIB): $(INSTALLED)
	rm -rf $@
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps --target $@ \
		opencv-contrib-python-headless

test-fast: $(INSTALLED)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not ray and not slow and not seconds"

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/test_layers.py

bench: $(INSTALLED)
	$(BIN)/python -m tests.perf.bench

bench-compare: $(INSTALLED)
	$(BIN)/python -m tests.perf.compare $(A) $(B)

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing packages into .venv, which takes some minutes without a word"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[demo,dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[pdq]' \
		|| echo "pdq is left out: its package comes as source, which needs a C++ compiler"
	touch $(INSTALLED)
