# make run   the app at http://127.0.0.1:7860
# make test  lint and every test, the real model and a real browser included
# make bench  the engine against transformers and llama.cpp, tables in bench.txt and bench.json
# Each makes its own .venv; PYTHON picks the interpreter (3.11 or newer), PORT the port.

PYTHON ?= python3
PORT ?= 7860
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev

.PHONY: run test lint bench clean

run: $(STAMP)
	$(BIN)/python app.py --port $(PORT)

test: lint
	$(BIN)/python -m pytest

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

bench: $(STAMP)
	$(BIN)/python -m playground bench --json bench.json --table bench.txt

$(STAMP): requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is %d.%d: set PYTHON=" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || { echo "Making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing the pinned requirements (once, a minute or two)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

$(DEV_STAMP): requirements-dev.txt $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

clean:
	rm -rf $(VENV)
