# One command from an empty Linux machine: `make demo`. `make` alone lists the rest.
BIN := .venv/bin
# The first interpreter that fits. With none, tools/setup_env.py says so in a sentence.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1 \
	&& { echo "$$python"; break; }; done)
ENGINE := $(if $(filter 1,$(CUDA)),--cuda,$(if $(filter 0,$(CUDA)),--cpu))

.PHONY: help setup demo test lint audit lab dashboard room bench bench-name pins messages clean

help:
	@echo 'make demo              build .venv if needed, play the main scenario on a real engine, write a report'
	@echo 'make lab               JupyterLab on notebooks/'
	@echo 'make dashboard         the quickstart without its code, as a page for a class (Voilà)'
	@echo 'make room              one engine for a room: viewers look, the teacher drives (Voilà)'
	@echo 'make test              all tests          (ARGS="-k store" goes to pytest)'
	@echo 'make lint              ruff, mypy and the audit'
	@echo 'make audit             pins against known advisories, without a network (SECURITY.md)'
	@echo 'make bench NAME=probe  one of benchmarks/, as JSON'
	@echo 'make setup             build .venv alone  (CUDA=1 for NVIDIA, CUDA=0 back; PYTHON=/path/to/python3.12)'
	@echo 'make pins              write requirements/cuda.txt and environment.yml from requirements/cpu.txt'
	@echo 'make messages          write the catalogue of workbench/locale from the texts in the code'
	@echo 'make clean             remove .venv and caches; runs/ stays'

setup:
	@python="$(or $(PYTHON),python3)"; command -v "$$python" >/dev/null 2>&1 || { \
	echo "setup: workbench needs Linux with Python 3.11, 3.12 or 3.13, and there is no $$python here;" \
	"install one of them, or name it: make setup PYTHON=/path/to/python3.11" >&2; exit 1; }; \
	"$$python" tools/setup_env.py $(ENGINE)

demo: setup
	@$(BIN)/workbench demo --out runs/demo $(ARGS)

# All tests in two parts: those that only compute, on every core; then those with an engine or a browser, one by one.
# A test that fails is run once more, and named among the reruns: a machine with two cores now and then leaves a process
# standing for seconds.
PYTEST := $(BIN)/python -m pytest --reruns 1 --reruns-delay 2
test: setup
ifdef ARGS
	@$(BIN)/python -m pytest $(ARGS)
else
	@status=0; $(PYTEST) -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder -m "not live and not browser" || status=1; \
	$(PYTEST) -m "live or browser" || status=1; exit $$status
endif

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/audit.py

# Pins against requirements/advisories.toml; needs no network.
audit: setup
	@$(BIN)/python tools/audit.py $(ARGS)

# Jupyter refuses root, the usual user of a container, unless told; it listens on loopback only.
# tools/jupyter: no pop-up about news, no check for a rebuild (it holds the server up for seconds at each page load), and
# which cells a dashboard leaves out.
dashboard: export JUPYTER_PATH := $(CURDIR)/tools/jupyter$(if $(JUPYTER_PATH),:$(JUPYTER_PATH))
lab dashboard: export JUPYTER_CONFIG_PATH := $(CURDIR)/tools/jupyter$(if $(JUPYTER_CONFIG_PATH),:$(JUPYTER_CONFIG_PATH))
lab: setup
	$(BIN)/jupyter lab --ip=127.0.0.1 --notebook-dir=notebooks $(if $(filter 0,$(shell id -u)),--allow-root) $(ARGS)

dashboard: setup
	@$(BIN)/python tools/dashboard.py $(if $(HOST),--host "$(HOST)") $(ARGS)

room: setup
	@$(BIN)/workbench room $(ARGS)

bench: bench-name setup
	@$(BIN)/python -m benchmarks.$(NAME) $(ARGS)

bench-name:
	@test -f "benchmarks/$(NAME).py" || { echo "bench: got NAME='$(NAME)', expected one of:" \
	$(filter-out __init__,$(basename $(notdir $(wildcard benchmarks/*.py)))) >&2; exit 2; }

pins: setup
	@$(BIN)/python tools/pins.py

messages: setup
	@$(BIN)/python tools/messages.py

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
