PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test lint torture

run: .venv/installed
	@$(BIN)/python config.py >/dev/null && PRINT_SETUP_LINK=1 exec $(BIN)/gunicorn --config gunicorn.conf.py --no-control-socket app:app

test: .venv/installed-dev
	$(BIN)/python -m pytest

torture: .venv/installed-dev
	$(BIN)/python -m torture $(ONLY)

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Pocketbell needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Say which: make PYTHON=python3.12 run")'
	$(PYTHON) -m venv .venv

.venv/installed: requirements.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.venv/installed-dev: requirements.txt requirements-dev.txt | .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@
