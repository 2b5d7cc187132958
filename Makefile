PYTHON ?= python3
BIN := .venv/bin
# After an upgrade of Python itself or a move of this directory, what is in .venv does not run: begin anew.
PACKAGES := $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>&1)
RUNS := [ -d "$(PACKAGES)" ] && { [ ! -e $(BIN)/gunicorn ] || [ -x "$$(head -n 1 $(BIN)/gunicorn | cut -c 3-)" ]; }
_ := $(shell [ ! -e .venv ] || { $(RUNS); } || rm -r .venv)
PIP = $(BIN)/python -m pip
# Under root's umask 077, the service's user could not read what root installs.
INSTALL = umask 022 && $(PIP) install --quiet --disable-pip-version-check
# The names of packages, one a line, of lines such as PyYAML==6.0.3.
NAMES := sed -n '/^[A-Za-z]/s/==.*//p' | tr A-Z a-z | sed y/_./--/

.PHONY: help run test test-postgresql lint coverage audit lock conformance torture bench pictures release

help: ## list these targets
	@awk -F ': .*## ' '/^[a-z-]+: .*## /{printf "make %-16s %s\n", $$1, $$2}' Makefile

run: .venv/installed ## install what is missing, and start the service
	@$(BIN)/python config.py >/dev/null && PRINT_SETUP_LINK=1 exec $(BIN)/gunicorn --config gunicorn.conf.py --no-control-socket app:app

# One worker more than cores: some tests wait for a process or a browser.
WORKERS = $$(($$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) + 1))
PYTEST = PYTEST_XDIST_AUTO_NUM_WORKERS=$(WORKERS) $(BIN)/python -m pytest

test: .venv/installed-dev ## run all tests
	$(PYTEST)

# What touches data, on PostgreSQL. The other tests parse, look at pages and processes, or have rules in Python about
# what these write with the same statements: they run on SQLite alone.
OF_DATA := tests/store/test_migrations_postgresql.py \
  $(addprefix tests/core/test_,alarms.py buttons.py channels.py deletion.py digest_crashes.py \
  doctor.py downtime.py failing_providers.py fetched_alarms.py fetching.py firing.py firing_by_time.py \
  followers.py for_all.py heartbeat_checks.py held_by_priority.py holding.py maintenance.py mutes.py ntfy_wakeup.py people.py \
  pictures.py pruning.py quiet_devices.py races.py replaced_while_held.py scheduled.py snoozes.py server_secret.py \
  while_pushed.py) \
  $(addprefix tests/web/test_,acknowledge.py answers.py definitions.py devices.py idempotency.py \
  long_poll.py pictures.py ping_keys.py pings.py prometheus.py scopes.py) \
  $(addprefix tests/dashboard/test_,history.py metrics.py sessions.py) \
  tests/cli/test_definition_files.py tests/process/test_several_processes.py

test-postgresql: .venv/installed-dev ## run the tests of what touches data on PostgreSQL
	POCKETBELL_TEST_DATABASE=postgresql $(PYTEST) $(OF_DATA)

# Line and branch coverage. The modules that decide over access, delivery and texts must be covered completely.
coverage: .venv/installed-dev ## measure what the tests cover
	$(BIN)/python -m pytest --cov --cov-report= --cov-fail-under=92
	$(BIN)/coverage report --skip-covered
	$(BIN)/coverage report --include=web/guards.py,core/alarms.py,core/answers.py,core/attempts.py,core/buttons.py,core/delivery.py,core/floods.py,core/idempotency.py,core/local_time.py,core/message_templates.py,core/push_slots.py,core/retries.py,core/scheduled.py,core/template_filters.py,core/value_text.py,core/long_poll.py --fail-under=100

# Check the packages for known vulnerabilities, if PyPI's own list is reachable (mirrors have none).
audit: .venv/installed ## look for known vulnerabilities in the packages
	@if $(BIN)/python -c 'import urllib.request; urllib.request.urlopen("https://pypi.org/pypi/pip/24.0/json", timeout=10)' 2>/dev/null; then \
	  $(PYTHON) -m venv .venv-audit && .venv-audit/bin/python -m pip install --quiet pip-audit==2.10.1 && \
	  .venv-audit/bin/pip-audit --strict --requirement requirements.txt; \
	else echo "pip-audit: PyPI's list of vulnerabilities is not reachable from here, so nothing was checked"; fi

# Make requirements.txt from requirements.in: exact versions, with the hashes of all files on PyPI, for every platform.
lock: .venv/uv/bin/uv ## write requirements.txt anew from requirements.in
	$< pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	  --custom-compile-command "make lock" --output-file requirements.txt requirements.in

# Test the service against docs/openapi.yaml with a generated client and with schemathesis. They have many dependencies,
# so they get a virtual environment of their own.
conformance: .venv/installed-dev ## test the service against docs/openapi.yaml
	$(PYTHON) -m venv .venv-conformance
	.venv-conformance/bin/python -m pip install --quiet --disable-pip-version-check schemathesis==4.32.5 openapi-python-client==0.29.1
	$(BIN)/python -m tests.conformance .venv-conformance/bin

torture: .venv/installed-dev ## kill it, fill its disk, crowd it (ONLY=NAME for one part)
	$(BIN)/python -m torture $(ONLY)

bench: .venv/installed-dev ## measure what must not get slower (ONLY=NAME)
	$(BIN)/python -m bench $(ONLY)

# Make the pictures of README and docs/ anew (docs/pictures), with Chromium.
pictures: .venv/installed-dev ## make the pictures of README and docs/ anew
	$(BIN)/python -m tools.pictures

# A release: CHANGELOG.md, the archive with its hash, the tag's text, after its upgrade was tried (FROM=COMMIT: from there).
release: .venv/installed-dev ## make the files of a release in dist/
	@$(BIN)/python -m tools.release $(FROM)

lint: .venv/installed-dev ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Pocketbell needs Python 3.11 or later; this is " + sys.version.split()[0] + ". Name a newer one, for example: make PYTHON=python3.12 run")'
	umask 022 && $(PYTHON) -m venv .venv

.venv/installed: requirements.txt | .venv/bin/python
	@$(INSTALL) --require-hashes -r requirements.txt || { echo "A package could not be installed. There is no prebuilt pycurl for 32-bit ARM and musl (Alpine): there you need libcurl's headers and a C compiler."; exit 1; }
	@[ -e $@-dev ] || $(PIP) freeze | $(NAMES) | grep -vxF "$$(cat requirements.txt | $(NAMES))" | \
	  xargs -r $(PIP) uninstall --quiet --yes # what an earlier version needed
	@touch $@

.venv/installed-dev: requirements.txt requirements-dev.txt | .venv/installed
	$(INSTALL) -r requirements-dev.txt
	@touch $@

# uv, for `make lock` and the gate.
.venv/uv/bin/uv: | .venv/bin/python
	$(PIP) install --quiet --disable-pip-version-check --target .venv/uv --upgrade uv==0.13.9
