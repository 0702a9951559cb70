# Each target sets up .venv first when pyproject.toml or constraints.txt have changed.
PYTHON ?= python3
LAB_ARGS ?=
BIN := .venv/bin
READY := .venv/ready
NOTEBOOKS := $(sort $(wildcard notebooks/*.ipynb))
# One worker a core; torch inside each keeps to one thread, so that workers do not fight over cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

.PHONY: lab test tamper lint notebooks bench clean

# Served from this folder, not from notebooks/: lessons link to docs/ and README.md.
lab: $(READY)
	$(BIN)/jupyter lab --ServerApp.root_dir=. $(LAB_ARGS) notebooks/01_text_to_ids.ipynb

test: $(READY) lint
	$(PYTEST)

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

clean:
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
