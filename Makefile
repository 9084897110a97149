# Variables to set on the command line:
#   PYTHON       interpreter for the virtual environment: 3.11, 3.12 or 3.13
#   TORCH        which torch, as pip writes it; empty takes the one of PYTHON (with its packages)
#   TORCH_INDEX  where from; https://download.pytorch.org/whl/cpu has builds without CUDA
PYTHON ?= $(shell for each in python3 python3.13 python3.12 python3.11; do \
  $$each -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$each && break; done)
VENV ?= .venv
TORCH ?= torch==2.13.0
TORCH_INDEX ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
# A stamp for each choice of torch: another choice installs again, the same one does not.
STAMP := $(VENV)/.installed-$(if $(TORCH),$(subst =,-,$(subst /,-,$(TORCH))),own-torch)
DEV_STAMP := $(STAMP)-dev
# timm asks for torchvision, and torchvision for one exact torch: both come without their dependencies.
VISION ?= $(if $(filter torch==2.13.0,$(TORCH)),timm==1.0.31 torchvision==0.28.0,)
SOURCES := aotcli tests benchmarks sample_models
PYTEST_ARGS ?= -q

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo check test test-slow test-cuda lint format bench bench-cuda zoo readme pictures clean

help:  ## Print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' Makefile

install: $(DEV_STAMP)  ## Make .venv and install aotcli with all that its tests need

demo: $(STAMP)  ## Show what a GPT's training step saves for its backward, and why
	$(BIN)/aotcli partition sample_models/gpt.py --strategy mincut

check: $(STAMP)  ## Hold the sample models against their baselines in .aotcli/
	OMP_NUM_THREADS=1 $(BIN)/aotcli check $(CHECK_ARGS)

test: $(DEV_STAMP)  ## Run the tests, less those that compile C++ or run for long
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" $(PYTEST_ARGS)

test-slow: $(DEV_STAMP)  ## Run the tests that `make test` leaves out
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

lint: $(DEV_STAMP)  ## Check style, types and the direction of imports
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(DEV_STAMP)  ## Format the sources
	$(BIN)/ruff check --fix-only $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: $(DEV_STAMP)  ## Measure, and write benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks

zoo: $(DEV_STAMP)  ## Run small models of transformers and timm through everything; write benchmarks/ZOO.md
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.zoo

readme: $(DEV_STAMP)  ## Write what the README's commands print anew
	$(BIN)/python tests/test_readme.py

# Pictures for the README and docs/draw.md: the samples as they are drawn at first, and some views of the GPT.
PICTURES := docs/pictures
DRAWN := gpt mlp resnet unet attention several_outputs graph_break dynamic_shapes
pictures: $(DEV_STAMP)  ## Draw the samples into docs/pictures
	@mkdir -p $(PICTURES) build
	@for each in $(DRAWN); do \
	  $(BIN)/aotcli draw sample_models/$$each.py -o $(PICTURES)/$$each.svg || exit 1; done
	@$(BIN)/aotcli draw sample_models/gpt.py -o $(PICTURES)/gpt.png
	@$(BIN)/aotcli draw sample_models/gpt.py --focus h.0.fc --radius 2 -o $(PICTURES)/gpt-focus.svg
	@$(BIN)/aotcli draw sample_models/gpt.py --only saved -o $(PICTURES)/gpt-saved.svg
	@$(BIN)/aotcli draw sample_models/gpt.py --strategy mincut:aggressive=true --against @mincut \
	  -o $(PICTURES)/gpt-against.svg
	@$(BIN)/aotcli trace sample_models/gpt.py -q -o build/gpt.aot.json >/dev/null
	@$(BIN)/python tests/report_pictures.py build/gpt.aot.json $(PICTURES)

test-cuda: $(DEV_STAMP)  ## Run the tests that need a GPU; skipped where there is none
	$(BIN)/python -m pytest -m cuda $(PYTEST_ARGS)

bench-cuda: $(DEV_STAMP)  ## Measure on a GPU and print a record; skipped where there is none
	@for each in benchmarks/cuda_*.py; do $(BIN)/python -m benchmarks.$$(basename $$each .py) || exit 1; done

clean:  ## Remove .venv and what tools left
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || \
	  { echo "aotcli needs Python 3.11, 3.12 or 3.13: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(if $(TORCH),,--system-site-packages) $(VENV)
	$(if $(TORCH),$(PIP) install -q $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) "$(TORCH)")
	$(PIP) install -q -e . $(if $(TORCH),"$(TORCH)")
	@touch $@

$(DEV_STAMP): $(STAMP)
	$(PIP) install -q -e '.[dev,hf,png]' $(if $(TORCH),"$(TORCH)")
	$(if $(VISION),$(PIP) install -q pillow $(if $(TORCH),"$(TORCH)") && $(PIP) install -q --no-deps $(VISION))
	@touch $@
