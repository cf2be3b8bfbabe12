# `make up` serves, `make test` tests; both set up whatever they need from Python 3.11 alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: up demo test check lint cases faults many fuzz clean
.DEFAULT_GOAL := help

help:
	@echo "make up     serve everything, with an agent that reports this machine"
	@echo "make demo   the same, with a simulated fleet beside it"
	@echo "make test   run the tests"
	@echo "make check  linters, types, import rules and the tests"
	@echo "make cases  run every recorded file of ../shared/cases through the product"
	@echo "make faults kill, stop and cut off everything, FAULT_SEEDS=\"1 2 3\", and check what clients saw"
	@echo "make many   three API processes, two workers and Redis: one feed, and work that moves"
	@echo "make fuzz   read kernel logs that nobody would write, for FUZZ_SECONDS (60)"

# uv goes into the virtual environment by pip, then installs exactly what uv.lock says.
$(READY): pyproject.toml uv.lock
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; name one with make PYTHON=python3.x" if sys.version_info < (3, 11) else 0)'
	@echo "Setting up $(VENV) from uv.lock (once; about half a gigabyte) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.8"
	@VIRTUAL_ENV=$(abspath $(VENV)) UV_PROJECT_ENVIRONMENT=$(abspath $(VENV)) $(BIN)/uv sync --frozen --all-extras --compile-bytecode --quiet
	@touch $(READY)

up: $(READY)
	@$(BIN)/fleetgraph up

demo: $(READY)
	@$(BIN)/fleetgraph up --demo

test: $(READY)
	@PYTHON=$(BIN)/python sh tests/run

lint: $(READY)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy .
	@$(BIN)/lint-imports

check: lint test

cases: $(READY)
	@$(BIN)/python -m bench.cases ../shared/cases

FAULT_SEEDS ?= 1 2 3 4 5 6 7 8

faults: $(READY)
	@FAULT_SEEDS="$(FAULT_SEEDS)" $(BIN)/python -m pytest tests/faults -q

many: $(READY)
	@$(BIN)/python -m bench.many

FUZZ_SECONDS ?= 60

fuzz: $(READY)
	@VIRTUAL_ENV=$(abspath $(VENV)) UV_PROJECT_ENVIRONMENT=$(abspath $(VENV)) $(BIN)/uv sync --frozen --all-extras --group fuzz --quiet
	@$(BIN)/python -m tests.fuzz.kernel_log $(FUZZ_SECONDS)

clean:
	rm -rf $(VENV)
