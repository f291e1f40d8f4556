# make setup, demo, test, interop, test-long, coverage, lint, docs, validate, claims, twin, clean. Another Python: make setup PYTHON=python3.12
PYTHON ?=
# Compiled modules: make setup COMPILED=1 builds them, make setup removes them, other targets leave them as they are.
COMPILED ?= $(if $(filter-out setup,$(MAKECMDGOALS)),,0)
BIN := .venv/bin

.PHONY: setup demo test interop test-long coverage sweeps thesis lint format docs validate claims twin test-netem test-hostile compiled clean
.DEFAULT_GOAL := setup

setup: # .venv with the mcastlab command and, as root, the system packages; fast if all are installed. COMPILED=1: faster runs
	@COMPILED=$(COMPILED) scripts/setup $(PYTHON)

demo: setup # one scenario in the simulator and in Mininet, side by side
	@$(BIN)/mcastlab demo

lint: setup # style and types
	@$(BIN)/python -m ruff check --quiet
	@$(BIN)/python -m ruff format --check --quiet || { echo "not formatted: run make format" >&2; exit 1; }
	@$(BIN)/python -m mypy --no-error-summary -n 2

format: setup # rewrite the code in the project's format
	@$(BIN)/python -m ruff format --quiet
	@$(BIN)/python -m ruff check --quiet --fix

docs: setup # the documentation site, into build/site; open build/site/index.html
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# Run tests in parallel if pytest-xdist is installed; tests/conftest.py sets the number of processes.
PARALLEL = $$($(BIN)/python -c 'import xdist' 2>/dev/null && printf %s '-n auto')

test: lint # all checks and tests; docs/testing.md describes them
	@$(BIN)/python -m pytest -q $(PARALLEL)

interop: setup # all transfers between this project's NORM and libnorm1, and their table in docs/norm.md; some minutes
	@$(BIN)/python -m tests.emu.interop --write docs/norm.md
	@$(BIN)/python -m tests.emu.interop_places --write docs/norm.md
	@$(BIN)/python -m tests.emu.interop_modes --write docs/norm.md
	@$(BIN)/python -m tests.emu.congestion_interop --write docs/norm.md

test-long: setup # tests of sweeps on clusters, and of sweeps killed at random times: some minutes
	@$(BIN)/python -m pytest -q -m long

COVERED := protocols topologies sim emu experiments mcastlab

coverage: setup # the tests with statement coverage of each package; takes about twice as long as test
	@mkdir -p build/coverage
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run -m pytest -q $(PARALLEL)
	@$(BIN)/python -m coverage combine --quiet
	@for part in $(COVERED); do \
	  printf '%-12s %s %%\n' $$part "$$($(BIN)/python -m coverage report --format=total --include="$$part/*")" || exit 1; \
	done
	@printf '%-12s %s %%\n' all "$$($(BIN)/python -m coverage report --format=total)"

SWEEPS := nack-atlas fec storm distributor-storm router baselines congestion twin

sweeps: setup # the ready sweeps, into out/, and their figures in docs/images; up to three minutes each on two free processors
	@for name in $(SWEEPS); do \
	  $(BIN)/mcastlab sweep experiments/sweeps/$$name.yaml --out out/$$name --resume || exit 1; \
	  $(BIN)/python -m examples.sweep_pictures out/$$name --svg docs/images/sweep-$$name.svg || exit 1; \
	done

THESIS := braking card coding figure-5-1 figure-5-10 figure-5-12 figure-5-2 figure-5-4 figure-5-5 figure-5-6 figure-5-8 pools repair router storm-control subscribers tunnel-processor
PICTURED := figure-5-6 figure-5-8 figure-5-10 figure-5-12 router subscribers

thesis: setup # the sweeps of docs/thesis.md, in Mininet too, with reports, into out/thesis, and its pictures; half an hour, continues after a stop
	@set -- $(THESIS); total=$$#; for name do \
	  printf '%s of %s: %s\n' $$((total - $$# + 1)) $$total $$name; shift; \
	  $(BIN)/mcastlab sweep experiments/sweeps/thesis/$$name.yaml --out out/thesis/$$name --resume || exit 1; \
	  $(BIN)/mcastlab report out/thesis/$$name || exit 1; \
	done
	@for name in $(PICTURED); do cp out/thesis/$$name/figures/lines-throughput_mbit_s.svg docs/images/thesis-$$name.svg || exit 1; done
	@cp out/thesis/repair/figures/lines-repairs_sent.svg docs/images/thesis-repair.svg

SEARCHED := norm a n1 n2 srm

validate: setup # measure theory for docs/validation.md, and search for violations; takes hours, continues after a stop
	@$(BIN)/mcastlab validate --out docs/validation.md --resume
	@for name in $(SEARCHED); do \
	  $(BIN)/mcastlab search experiments/scenarios/lan-file.yaml --set "protocol={name: $$name, rate: 10Mbit}" \
	    --set workload.size=100kB --set workload.count=3 --set duration=20s --set wire=bytes --runs 500 || exit 1; \
	done
	@$(BIN)/mcastlab search experiments/scenarios/two-senders.yaml --set duration=20s --runs 200

CLAIMED := 000 003

claims: setup # judge the claims of the seed documents for docs/seeds.md, in Mininet too; up to half an hour, continues after a stop
	@for seed in $(CLAIMED); do \
	  $(BIN)/mcastlab claims $$seed --out docs/seeds.md --resume --brief || exit 1; \
	done
	@$(BIN)/mcastlab claims 000 --on emu --out docs/seeds.md --resume --brief

TWIN := $(BIN)/mcastlab twin experiments/scenarios/twin/lan-1.yaml

twin: setup # compare simulator and Mininet in every twin scenario, write docs/fidelity.md, check the test itself
	@$(BIN)/mcastlab twin --table --out docs/fidelity.md
	@$(BIN)/python -m benchmarks.tcp_goodput --write docs/fidelity.md
	@$(TWIN) --worlds emu,emu
	@$(TWIN) --second protocol.rate=16Mbit; test $$? = 1

test-netem: setup # tests of netem links and 802.1Q trunks, in a user-mode kernel
	@scripts/uml/run $(BIN)/python -m pytest -q -p no:cacheprovider -k "netem or vlan" tests/emu/test_netem.py tests/emu/test_trunks.py

test-hostile: setup # honest transfers beside each attack at full rate; writes the table of docs/security.md; some minutes
	@$(BIN)/python -m benchmarks.hostile_transfer --write docs/security.md

compiled: setup # the compiled build in build/compiled, and a comparison with the pure one
	@$(BIN)/python scripts/compiled.py build/compiled
	@$(BIN)/python -m benchmarks.compiled build/compiled

clean: # remove all generated files
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist out
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
