# Each target first sets up .venv where what it is made from has changed.
PYTHON ?= python3
LAB_ARGS ?=
BIN := .venv/bin
# The learner's own copies are in work/, here or in another folder: make lab BASE=~/course
WORKBOOK = $(BIN)/python -m utils.workbook $(if $(BASE),--base "$(BASE)")
READY := .venv/ready
DOCS_PORT ?= 8000
NOTEBOOKS := $(sort $(wildcard notebooks/*.ipynb))
# One worker per core; torch in each keeps to one thread, so that workers do not fight over cores.
# In kernels, here and in JupyterLab, etc/ipython sees to it.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

.PHONY: lab progress reset edit test test-browser tamper lint notebooks bench mutants docs docs-serve book clean

# Copies the lessons to work/ where they are not yet, and opens JupyterLab there.
lab: $(READY)
	$(WORKBOOK) lab $(LAB_ARGS)

# What is solved in work/, or by a class: make progress FOLDER=submissions
progress: $(READY)
	@$(WORKBOOK) progress $(if $(FOLDER),"$(FOLDER)")

# A fresh copy of a lesson; the old one is kept: make reset LESSON=4
reset: $(READY)
	@$(WORKBOOK) reset $(LESSON)

# Opens the course's own lessons, for those who change them.
edit: $(READY)
	$(BIN)/jupyter lab --ServerApp.root_dir=. $(if $(filter 0,$(shell id -u)),--allow-root) \
		$(LAB_ARGS) notebooks/00_the_whole_route.ipynb

test: $(READY) lint
	$(PYTEST)

# Two workers, each with its own server and browser; the tests of one lesson stay together.
# The pages of the site, and the book, are tested as they were last built.
test-browser: docs book
	$(BIN)/python -m pytest -n 2 --durations 10 tests/site tests/browser

# A change in any stored text output of any notebook must be noticed (make test tries a sample).
tamper: $(READY)
	$(PYTEST) tests/test_tamper.py --all-outputs

# Without ruff's cache, so that it also works where the checkout cannot be written.
lint: $(READY)
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/codespell

# Run every lesson in a fresh kernel and bring it into the form that is compared and committed.
notebooks: $(READY)
	$(BIN)/python tests/normalise.py $(NOTEBOOKS)
	$(BIN)/nbstripout --keep-output --keep-count --extra-keys metadata.language_info.version $(NOTEBOOKS)

bench: $(READY)
	$(BIN)/python benchmarks/windows.py
	$(BIN)/python benchmarks/attention.py
	$(BIN)/python benchmarks/generation.py
	$(BIN)/python benchmarks/class_progress.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/processes.py
	$(BIN)/python benchmarks/corpus.py

# Do the tests notice faults in utils? Not in CI: it takes about 25 minutes.
mutants: .venv/mutants-ready
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/mutants.py

# The site is built from scratch, because a page may show parts of other files. A warning is an error.
docs: .venv/docs-ready
	rm -rf docs/_build/html docs/_build/doctrees
	$(BIN)/sphinx-build --quiet -W --keep-going -n -c docs -d docs/_build/doctrees . docs/_build/html
	$(BIN)/python docs/_ext/check_links.py docs/_build/html
	@echo 'The site is in docs/_build/html: open docs/_build/html/index.html, or call make docs-serve.'

docs-serve: docs
	@echo 'The site is at http://127.0.0.1:$(DOCS_PORT); Ctrl+C ends it.'
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory docs/_build/html $(DOCS_PORT)

# The whole course with its answers as one PDF. A browser prints it: the one that the browser tests use.
book: .venv/browser-ready docs
	$(BIN)/python tests/browser/chrome.py
	$(BIN)/sphinx-build --quiet -W --keep-going -n -b singlehtml -c docs -d docs/_build/doctrees . docs/_build/book
	PYTHONPATH=tests/browser $(BIN)/python docs/_ext/print_book.py docs/_build/book/index.html docs/_build/text-to-attention.pdf

clean:
	rm -rf docs/_build
	rm -rf .venv *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

# Scripts in .venv contain its path. If pip is missing there, or contains another path, then making .venv
# failed half-way or the folder was moved or copied: .venv is made again from scratch.
MAKE_VENV :=
ifeq ($(shell grep -sF "`pwd -P`/.venv/bin/python" $(BIN)/pip),)
.PHONY: $(READY)
MAKE_VENV := "$(PYTHON)" -m venv --clear .venv
endif

$(READY): pyproject.toml constraints.txt $(wildcard etc/*/*)
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; try: make PYTHON=python3.12")'
	@$(or $(MAKE_VENV),true)
	@echo 'Installing into .venv: a few minutes the first time.'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	@$(BIN)/jupyter labextension disable --level=sys_prefix '@jupyterlab/apputils-extension:announcements' \
		>.venv/labextension.log 2>&1 || { cat .venv/labextension.log >&2; exit 1; }
	@touch $@

# What only the site, the browser tests or the mutants need is installed when they do.
.venv/%-ready: $(READY)
	@echo 'Installing what $* needs.'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$*]'
	@touch $@
