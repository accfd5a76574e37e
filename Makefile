# make app        the dashboard on the bundled sample
# make test       every test           make test-fast   without the slow and the browser ones
# make check      style, types, layers, dependencies
# make bench      the benchmarks       make lock        pin the dependencies anew
# make test-torch the tests that need torch, in an environment of their own (a large download on most machines)
#
# Needs Python 3.11 or newer and make; everything else is set up in .venv on the first call.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip --disable-pip-version-check
PYTEST := $(PY) -m pytest
FILE   ?= app/sample/sample.onnx
TORCH  := .venv-torch

.PHONY: app test test-fast test-torch check bench lock setup browser clean

app: setup
	$(VENV)/bin/modelglass $(FILE) $(ARGS)

test: setup browser
	$(PYTEST) -m "fuzz or heavy" -n 2
	$(PY) -m coverage run -m pytest -m "not fuzz and not heavy" $(ARGS)
	@$(PY) -m coverage report --skip-covered --skip-empty | tail -n 1

test-fast: setup
	$(PYTEST) -n 2 -m "not slow and not browser" $(ARGS)

test-torch: $(TORCH)/.installed
	$(TORCH)/bin/python -m pytest -p no:cacheprovider -m torch tests/torch_oracle $(ARGS)

check: setup
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyright
	$(VENV)/bin/lint-imports
	$(PY) -m deptry .

bench: setup
	$(PY) -m tests.benchmarks $(ARGS)

lock: setup
	$(PY) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade \
	  --no-emit-index-url --no-emit-find-links --group dev pyproject.toml --output-file requirements.lock

browser: setup
	@$(PY) tools/setup_browser.py

setup: $(VENV)/.installed

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Modelglass needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] + "; say make PYTHON=python3.12 or the like")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# One lock for 3.11 to 3.14 holds what the application needs and what its tests and checks need.
$(VENV)/.locked: requirements.lock $(VENV)/.made
	$(PIP) install --quiet --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.locked
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(TORCH)/.installed: requirements.lock $(VENV)/.made
	$(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/python -m pip --disable-pip-version-check install --quiet torch==2.13.0
	$(TORCH)/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r requirements.lock
	@touch $@

clean:
	rm -rf build dist *.egg-info .coverage .coverage.* .pytest_cache .ruff_cache .hypothesis .import_linter_cache
