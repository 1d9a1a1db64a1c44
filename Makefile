# Two commands on a fresh machine with Python 3.11 and make: `make demo` and `make test`.
PYTHON ?= python3.11
VENV   ?= .venv
BIN     = $(VENV)/bin
READY   = $(VENV)/.ready
# One thread per process: the tests and the demo run several processes side by side.
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM ?= false
# Compiled files spare every process that the tests start about a second.
unexport PYTHONDONTWRITEBYTECODE

.SECONDARY:
.PHONY: help demo test test-fast dist-check test-vllm test-verl test-rllm test-logbooks test-trl-oldest lint bench bench-gpu test-gpu bench-detection bench-peers bench-detection-simulations bench-detection-full reproduce docs site clean

help:
	@echo "make demo   train three tiny multi-agent runs on the CPU, monitored, and write their report"
	@echo "make test   the whole test suite"
	@echo "make test-fast  without its long tests"
	@echo "make test-vllm  what runs on vLLM, on its CPU build, in an environment of its own"
	@echo "make test-verl  the plugin for verl, on verl's own classes, in an environment of its own"
	@echo "make test-rllm RLLM=<folder of its sources>  the backend for rLLM 0.3, in rLLM's own trainer, likewise"
	@echo "make test-logbooks  what is handed to mlflow and trackio, read back, likewise"
	@echo "make test-trl-oldest  the TRL integration on the oldest TRL that it supports, likewise"
	@echo "make dist-check  build wheel and sdist, and use both in empty environments (PYTHONS=\"python3.12 python3.13\")"
	@echo "make test-gpu  training on a GPU: bfloat16, flash attention, vLLM, NCCL; skips where there is none"
	@echo "make lint   ruff, mypy --strict, import contracts"
	@echo "make bench  what watching costs on this machine"
	@echo "make bench-gpu  on a GPU: an iteration beside its plan, and the price of the monitor"
	@echo "make bench-detection       what the detectors find in recorded runs, beside simple rules"
	@echo "make bench-peers  roledrift beside other monitors, on simulated logs, in an environment of its own"
	@echo "make bench-detection-simulations  how often they are wrong in simulated runs, and the paper's cells (minutes)"
	@echo "make bench-detection-full  the same, after training the runs of the suite that are not recorded yet (hours)"
	@echo "make reproduce  the claims of the paper on tiny models (about 32 CPU minutes; DEPTH=full SHARD=1/4: a part of the full depth)"
	@echo "make site   build the documentation site into site/, with live pages and executed notebooks"
	@echo "make docs   regenerate the pictures in docs/ from real runs"
	@echo "make clean  remove runs, caches and every environment made here"

# torch goes first and by exact version, so that nothing else pulls in another build of it.
$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (once; a few minutes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check 'pip>=25.1'  # knows dependency groups
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt torch==2.13.0
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e .[trl,wandb,view] --group dev
	@touch $@

demo: $(READY)
	@$(BIN)/python -m reference_trainer demo --out runs/demo --overwrite

# The page is tested in a browser: the system's, Debian's package, or one that playwright brings.
CHROMIUM ?= $(shell command -v chromium chromium-browser google-chrome 2>/dev/null | head -1)
BROWSER  = $(if $(CHROMIUM),,$(VENV)/.browser)
$(VENV)/.browser: $(READY)
	@{ command -v apt-get && test "$$(id -u)" = 0 && apt-get update -qq && \
	   apt-get install -y -qq chromium; } >/dev/null || \
	 $(BIN)/python -m playwright install --with-deps chromium
	@touch $@

WORKERS ?= 2

test: $(READY) $(BROWSER)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-fast: $(READY) $(BROWSER)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

# What runs on a framework has an environment of its own: tests/envs/NAME/requirements.txt holds every package of it, so
# nothing is resolved (vLLM's CPU build asks for a gigabyte that it does not use, verl for an older numpy). torch goes first.
.venv-%/.ready: tests/envs/%/requirements.txt pyproject.toml
	@echo "setting up .venv-$* (once; a few minutes, 1 to 2 GB)"
	@test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	@grep '^torch==' $< | xargs -r .venv-$*/bin/python -m pip install -q --disable-pip-version-check
	@.venv-$*/bin/python -m pip install -q --disable-pip-version-check --no-deps -r $< -e .
	@touch $@

test-vllm test-logbooks: test-%: .venv-%/.ready
	.venv-$*/bin/python -m pytest tests/envs/$*

# verl 0.8 beside 0.9: the older one is put in front of it for the tests of what both have.
VERL  = .venv-verl
VERL8 = $(VERL)/verl-0.8.0
$(VERL8): $(VERL)/.ready
	@$(VERL)/bin/python -m pip install -q --disable-pip-version-check --no-deps --upgrade --target $@ verl==0.8.0

test-verl: $(VERL8)
	$(VERL)/bin/python -m pytest -W ignore tests/envs/verl
	PYTHONPATH=$(VERL8) $(VERL)/bin/python -m pytest -W ignore tests/envs/verl/test_rows.py tests/envs/verl/test_legacy.py

# rLLM is on no package index: what is tested is the folder that is given.
test-rllm: $(VERL8)
	@test -f "$(RLLM)/rllm/trainer/unified_trainer.py" || \
	  { echo "make test-rllm RLLM=<folder of rLLM's sources, version 0.3>"; exit 2; }
	PYTHONPATH=$(VERL8):$(RLLM) $(VERL)/bin/python -m pytest -W ignore tests/envs/rllm

OLDEST = .venv-trl-oldest
$(OLDEST)/.ready: pyproject.toml constraints.txt
	@echo "setting up $(OLDEST) (once; a few minutes)"
	@test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	@$(OLDEST)/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt torch==2.13.0
	@grep -v '^trl==' constraints.txt > $(OLDEST)/constraints.txt
	@$(OLDEST)/bin/python -m pip install -q --disable-pip-version-check -c $(OLDEST)/constraints.txt \
	  -e .[trl] trl==1.8.0 datasets jmespath==1.1.0 tensorboard wandb pytest hypothesis
	@touch $@

test-trl-oldest: $(OLDEST)/.ready
	$(OLDEST)/bin/python -m pytest tests/integrations/test_trl*.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

PYTHONS ?= $(PYTHON)
dist-check: $(READY)
	$(BIN)/python tools/dist_check.py $(PYTHONS:%=--python %)

# In the environment of the tests, or with PYTHON_GPU=python in one that has CUDA builds of torch, flash-attn and vllm.
PYTHON_GPU ?= $(BIN)/python
test-gpu: $(if $(filter $(BIN)/%,$(PYTHON_GPU)),$(READY))
	$(PYTHON_GPU) -m pytest -q -rs tests/gpu || test $$? -eq 5  # 5: all were skipped

bench-gpu: $(if $(filter $(BIN)/%,$(PYTHON_GPU)),$(READY))
	$(PYTHON_GPU) -m benchmarks role_gradients gpu_iteration

bench: $(READY)
	$(BIN)/python -m benchmarks

# Other monitors, from PyPI, beside roledrift and what it needs; no torch.
PEERS = .venv-peers
$(PEERS)/.ready: pyproject.toml benchmarks/peers/requirements.txt
	@echo "setting up $(PEERS) (once; a minute)"
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install -q --disable-pip-version-check -r benchmarks/peers/requirements.txt
	@$(PEERS)/bin/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

bench-peers: $(PEERS)/.ready
	$(PEERS)/bin/python -m benchmarks.peers

bench-detection: $(READY)
	$(BIN)/python -m benchmarks.detection --seeds report --why "make bench-detection"

bench-detection-simulations: $(READY)
	$(BIN)/python -m benchmarks.detection.simulations

bench-detection-full: $(READY)
	$(BIN)/python -m benchmarks.detection.training
	$(BIN)/python -m benchmarks.detection.simulations
	$(BIN)/python -m benchmarks.detection --seeds report --why "make bench-detection-full"

DEPTH ?= quick
SHARD ?= 1/1
RESULTS ?= runs/reproduction/results
reproduce: $(READY)
	$(BIN)/python -m benchmarks.reproduction run --depth $(DEPTH) --shard $(SHARD) --results $(RESULTS)
	$(BIN)/python -m benchmarks.reproduction page --results $(RESULTS)

# The pages of the gallery are recorded runs, and the notebooks are executed: both are made anew.
$(VENV)/.site: $(READY) pyproject.toml constraints.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --group site
	@touch $@

site: $(VENV)/.site
	NO_MKDOCS_2_WARNING=1 PYTHONWARNINGS=ignore:IProgress $(BIN)/python -m mkdocs build --strict -f tools/mkdocs.yml

docs: $(READY)
	$(BIN)/python tools/make_screenshots.py

clean:
	rm -rf $(VENV) .venv-* runs site .mypy_cache .ruff_cache .pytest_cache .hypothesis
