# Every job has one command here; CI, pre-commit and the README call these targets and nothing else.
# A fresh clone needs Python 3.11+, Rust and make: each target does the set-up that it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(UV):
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.8'

$(VENV)/.dependencies: pyproject.toml requirements.txt | $(UV)
	$(UV) pip install --quiet --python $(BIN)/python --requirement requirements.txt
	@touch $@

# A release build, always: a debug build of the core must never reach a benchmark.
$(VENV)/.core: $(RUST_SOURCES) pyproject.toml $(VENV)/.dependencies
	$(UV) pip install --quiet --python $(BIN)/python --no-build-isolation --no-deps --editable .
	@touch $@

.PHONY: setup
setup: $(VENV)/.core ## Create .venv with everything for training and development

.PHONY: build
build: setup ## Build the wheel into dist/
	$(BIN)/maturin build --release --out dist

.PHONY: image
image: build ## Build the images clickmill:dev and clickmill:dev-base
	deploy/docker/build dev

.PHONY: demo
demo: setup ## Make a click log, train on it, evaluate, draw the curve
	$(BIN)/clickmill data synth examples/criteo/data/train.tsv --rows 300000
	$(BIN)/clickmill data synth examples/criteo/data/test.tsv --rows 50000 --start-row 300000
	$(BIN)/clickmill train -m examples/criteo/config.yaml
	$(BIN)/clickmill evaluate -m examples/criteo/config.yaml
	$(BIN)/clickmill report examples/criteo/run

.PHONY: format
format: $(VENV)/.dependencies ## Format Rust and Python
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: lint
lint: setup ## rustfmt, clippy, ruff, mypy, stubtest
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest clickmill._core

.PHONY: stubs
stubs: $(VENV)/.dependencies ## Write python/clickmill/_core.pyi from the Rust sources
	$(BIN)/maturin generate-stubs --quiet --features stubs --out target/stubs
	cp target/stubs/clickmill/_core.pyi python/clickmill/_core.pyi

.PHONY: test-rust
test-rust: ## Rust tests
	cargo test --workspace --locked

# Those of tests/cluster mostly wait, each for processes of its own: more than cores are run at a time.
.PHONY: test-python
test-python: setup ## Python tests
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal tests/unit tests/e2e
	$(BIN)/python -m pytest --numprocesses 4 --dist worksteal tests/cluster

# Hadoop's own name node and data node, by Maven; need a JDK.
.hdfs: tests/hdfs/pom.xml
	mvn --quiet --batch-mode --strict-checksums --file $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$@
	@touch $@

.PHONY: test-hdfs
test-hdfs: setup .hdfs ## Tests against a small HDFS
	CLICKMILL_HDFS_JARS=.hdfs $(BIN)/python -m pytest tests/hdfs

.PHONY: test
test: lint test-rust test-python ## Everything that must be green before a change lands

.PHONY: test-k8s
test-k8s: setup ## Tests on the cluster of KUBECONFIG, or on the dev cluster where its kit is
	tests/k8s/run

.PHONY: chaos
chaos: setup ## Kill training runs many times over; KILLS=20 and SEED=1 can be set
	CLICKMILL_KILLS=$(or $(KILLS),20) CLICKMILL_SEED=$(or $(SEED),1) $(BIN)/python -m pytest --timeout 3600 tests/cluster

.PHONY: fuzz
fuzz: ## Fuzz the parsers, table files and frames; SECONDS=60 for each target and TARGETS="csv slots" can be set
	fuzz/run $(or $(SECONDS),60) $(TARGETS)

.PHONY: docs
docs: setup ## Write the reference pages from the code
	$(BIN)/python docs/generate.py

.PHONY: bench-setup
bench-setup: setup ## Environments of the benchmarks' peers, under .peers/
	$(BIN)/python benchmarks/environments.py

.PHONY: bench
bench: bench-setup ## Run all benchmarks; results in benchmarks/results/
	$(BIN)/python benchmarks/table.py
	$(BIN)/python benchmarks/parsing.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/pserver.py
	$(BIN)/python benchmarks/cluster.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/quality.py
