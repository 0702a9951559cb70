# Each target sets up .venv first when pyproject.toml or constraints.txt have changed.
PYTHON ?= python3
LAB_ARGS ?=
BIN := .venv/bin
READY := .venv/ready
DOCS_PORT ?= 8000
NOTEBOOKS := $(sort $(wildcard notebooks/*.ipynb))
# One worker a core; torch inside each keeps to one thread, so that workers do not fight over cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

.PHONY: lab test test-browser tamper lint notebooks bench docs docs-serve clean

# Served from this folder, not from notebooks/: lessons link to docs/ and README.md.
lab: $(READY)
	$(BIN)/jupyter lab --ServerApp.root_dir=. $(LAB_ARGS) notebooks/01_text_to_ids.ipynb

test: $(READY) lint
	$(PYTEST)

# Two workers, each with a server and a browser of its own; the tests of a lesson stay together.
# The pages of the site are looked at as they were built last.
test-browser: .venv/browser-ready tests/browser/node_modules/.package-lock.json docs
	$(BIN)/python tests/browser/chrome.py
	$(BIN)/python -m pytest -n 2 --durations 10 tests/browser

# Every stored text output of every notebook, changed, must be noticed (make test does a sample).
tamper: $(READY)
	$(PYTEST) tests/test_tamper.py --all-outputs

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Run all lessons from fresh kernels and bring them into the form that is compared and committed.
notebooks: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/jupyter nbconvert --to notebook --execute --inplace \
		--ExecutePreprocessor.record_timing=False --ExecutePreprocessor.timeout=120 $(NOTEBOOKS)
	$(BIN)/python tests/normalise.py $(NOTEBOOKS)
	$(BIN)/nbstripout --keep-output --keep-count --extra-keys metadata.language_info.version $(NOTEBOOKS)

bench: $(READY)
	$(BIN)/python benchmarks/windows.py
	$(BIN)/python benchmarks/attention.py
	$(BIN)/python benchmarks/generation.py

# The site, as if for the first time: a page may hold what another file says. A warning is an error.
docs: .venv/docs-ready docs/node_modules/.package-lock.json
	rm -rf docs/_build
	$(BIN)/sphinx-build --quiet -W --keep-going -n -c docs -d docs/_build/doctrees . docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

docs-serve: docs
	@echo 'The site is at http://127.0.0.1:$(DOCS_PORT); Ctrl+C ends it.'
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory docs/_build/html $(DOCS_PORT)

clean:
	rm -rf docs/_build docs/node_modules tests/browser/node_modules
	rm -rf .venv *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

# Scripts in .venv hold its path. Without pip there, or with another path in it, making .venv failed
# half-way or the folder was moved or copied: .venv is made anew.
MAKE_VENV :=
ifeq ($(shell grep -sF "`pwd -P`/.venv/bin/python" $(BIN)/pip),)
.PHONY: $(READY)
MAKE_VENV := $(PYTHON) -m venv --clear .venv
endif

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; try: make PYTHON=python3.12")'
	$(MAKE_VENV)
	@echo 'Installing into .venv: a few minutes the first time.'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	$(BIN)/jupyter labextension disable --level=sys_prefix '@jupyterlab/apputils-extension:announcements'
	touch $@

# What the site and the browser tests need on top, so that lab and test do without it.
.venv/%-ready: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$*]'
	touch $@

%/node_modules/.package-lock.json: %/package.json %/package-lock.json
	@command -v node >/dev/null && command -v npm >/dev/null || { echo 'Node.js 18 or newer with npm is needed for $*.' >&2; exit 1; }
	npm ci --prefix $* --no-audit --no-fund --loglevel=error
	touch $@
