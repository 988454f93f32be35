# `make test` needs Go only. Everything else says what it is missing.
# CI runs .ci/run, which calls the same targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := test

GO ?= go
# A number of runs, not a time: at the end of a time the go command may report its own
# deadline as a failure of the target.
FUZZTIME ?= 50000x
BENCHTIME ?= 1s
TEST_TIMEOUT ?= 10m
INTEGRATION_TIMEOUT ?= 25m

# The race detector needs cgo and a C compiler; Go works without either.
HAVE_RACE := $(shell [ "$$($(GO) env CGO_ENABLED)" = 1 ] && command -v $$($(GO) env CC) >/dev/null 2>&1 && echo yes)

# Every module but tools, so that a new one is linted without being listed here.
MODULES = $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path './tools/*' -not -path './.cache/*' | sort))

.PHONY: help test lint fmt fuzz-short simulation soak explore mutants linear determinism differential integration foreign command kerberos observe bench compare cover check

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

test: ## test the core module in random order, with the race detector where it works
ifeq ($(HAVE_RACE),yes)
# By default the race detector makes each test program wait a second at its end. It makes a
# garbage collection dear, so there are fewer; the limit keeps large heaps from doubling.
	GOGC="$${GOGC:-200}" GOMEMLIMIT="$${GOMEMLIMIT:-512MiB}" GORACE="atexit_sleep_ms=50 $${GORACE:-}" $(GO) test -race -shuffle=on -timeout $(TEST_TIMEOUT) ./...
else
	@echo 'make test: no race detector, because cgo is off or there is no C compiler (Debian: apt-get install gcc libc6-dev)'
	$(GO) test -timeout $(TEST_TIMEOUT) ./...
endif

lint: ## lint every module; the tools are pinned in tools/go.mod
	@root=$$PWD; failed=; \
	for m in $(MODULES); do \
		echo "lint $$m"; \
		(cd "$$m" && $(GO) tool -modfile="$$root/tools/go.mod" golangci-lint run ./...) || failed="$$failed $$m"; \
	done; \
	if [ -n "$$failed" ]; then echo "make lint: failed in:$$failed" >&2; exit 1; fi

fmt: ## format every module
	@root=$$PWD; \
	for m in $(MODULES); do (cd "$$m" && $(GO) tool -modfile="$$root/tools/go.mod" golangci-lint fmt ./...); done

fuzz-short: ## run every fuzz target for FUZZTIME (default 50000x)
	GO='$(GO)' FUZZTIME='$(FUZZTIME)' .ci/fuzz.sh

SIM_TIMEOUT ?= 20m
SIM_SEEDS ?= 3000
ENSEMBLE_SEEDS ?= 1000
ENSEMBLE_GAME_SEEDS ?= 400
KEEPER_SEEDS ?= 200
WATCH_SEEDS ?= 300
CACHE_SEEDS ?= 1500
ENSEMBLE_ELECTION_SEEDS ?= 400
CROWD_SEEDS ?= 500
BARRIER_SEEDS ?= 1500
ENSEMBLE_BARRIER_SEEDS ?= 400
NODE_SEEDS ?= 1500
ENSEMBLE_NODE_SEEDS ?= 400
simulation: ## play seeded schedules of faults, as many of each kind as the variables *_SEEDS say; make test plays some hundred
	DOCENT_CACHE_SEEDS=$(CACHE_SEEDS) DOCENT_SIM_CROWD_SEEDS=$(CROWD_SEEDS) \
		DOCENT_SIM_SEEDS=$(SIM_SEEDS) DOCENT_SIM_ENSEMBLE_SEEDS=$(ENSEMBLE_SEEDS) DOCENT_SIM_ENSEMBLE_GAME_SEEDS=$(ENSEMBLE_GAME_SEEDS) DOCENT_SIM_KEEPER_SEEDS=$(KEEPER_SEEDS) DOCENT_SIM_WATCH_SEEDS=$(WATCH_SEEDS) \
		DOCENT_SIM_ENSEMBLE_ELECTION_SEEDS=$(ENSEMBLE_ELECTION_SEEDS) \
		DOCENT_BARRIER_SEEDS=$(BARRIER_SEEDS) DOCENT_ENSEMBLE_BARRIER_SEEDS=$(ENSEMBLE_BARRIER_SEEDS) \
		DOCENT_NODES_SEEDS=$(NODE_SEEDS) DOCENT_NODES_RIVAL_SEEDS=$(NODE_SEEDS) DOCENT_NODES_ENSEMBLE_SEEDS=$(ENSEMBLE_NODE_SEEDS) \
		DOCENT_TURNS_TROUBLES=4 \
		$(GO) test -count=1 -timeout $(SIM_TIMEOUT) -run 'Schedules$$|^TestKnown.*Seeds$$|^TestWaitersThatGiveUp$$|^TestLongQueueDrains$$|^TestCrowdBesideOne$$|^TestAnswersProveNothing$$|^TestSignsOfLifeTakeTime$$|^TestUnrecognisedKeeper$$|^TestWriterFasterThanReader$$|^TestTurns$$' -v \
		./recipes/internal/simulation ./recipes ./recipes/shared ./recipes/barrier ./recipes/nodes ./recipes/cache

soak: ## play many more seeds of everything; takes a night
	$(MAKE) simulation SIM_SEEDS=50000 ENSEMBLE_SEEDS=50000 ENSEMBLE_GAME_SEEDS=5000 KEEPER_SEEDS=5000 WATCH_SEEDS=5000 \
		ENSEMBLE_ELECTION_SEEDS=5000 BARRIER_SEEDS=20000 ENSEMBLE_BARRIER_SEEDS=5000 \
		NODE_SEEDS=20000 ENSEMBLE_NODE_SEEDS=5000 CACHE_SEEDS=20000 CROWD_SEEDS=20000 SIM_TIMEOUT=24h
	$(MAKE) linear LINEAR_SEEDS=20000 SIM_TIMEOUT=24h
	DOCENT_EXPLORE_LONG=1 $(GO) test -count=1 -timeout 48h -run 'Explore|EveryShort|Orders$$' -v ./client/... ./recipes/...
	$(MAKE) mutants

explore: ## walk the machines and play every short program in the usual form, which the race detector would slow down; one minute
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -run 'Explore|EveryShort|Orders$$' -v ./client/... ./recipes/... | grep -Ev '^(=== |    --- PASS)'

TARGETS ?=
ONLY ?=
WRITE ?=
mutants: ## change each machine in all small ways and see that the tests notice; TARGETS=chain for one, ONLY=REGEXP for some changes, WRITE=-write writes the survivors; five minutes
	$(GO) run ./internal/mutants -targets '$(TARGETS)' -only '$(ONLY)' $(WRITE)

LINEAR_SEEDS ?= 1500
linear: ## check with porcupine what callers of shared and atomic values see, in LINEAR_SEEDS (1500) schedules of faults, one in twenty on three servers; make integration plays 200
	cd integration && DOCENT_LINEAR_SEEDS=$(LINEAR_SEEDS) $(GO) test -count=1 -timeout $(SIM_TIMEOUT) -run 'Schedules$$' -v ./linear

TRACE_SEEDS ?= 200
SIM_AGAIN ?= 50
determinism: ## play seeds four times each, on one and on two processors, and compare the traces
	for p in 1 2; do \
		DOCENT_TRACE_SEEDS=$(TRACE_SEEDS) DOCENT_SIM_AGAIN=$(SIM_AGAIN) GOMAXPROCS=$$p \
			$(GO) test -count=1 -timeout 30m -run SameSeed ./internal/zkserver ./recipes/internal/simulation; \
		DOCENT_TRACE_SEEDS=$(TRACE_SEEDS) GOMAXPROCS=$$p \
			$(GO) test -race -count=1 -timeout 30m -run SameSeed ./internal/zkserver; \
	done

integration: ## test against real ZooKeeper servers in containers; needs Docker
	GO='$(GO)' INTEGRATION_TIMEOUT='$(INTEGRATION_TIMEOUT)' .ci/integration.sh

differential: ## compare zktest with real servers over DIFF_OPS (default 200000) random requests; needs Docker, or Debian's zookeeper
	GO='$(GO)' .ci/differential.sh

foreign: ## run Curator's and kazoo's recipes on zktest and on a real server and compare; needs Docker
	cd integration && $(GO) test -race -count=1 -timeout 10m -parallel 6 -tags foreign ./foreign

command: ## test the command docent; needs Unix
	cd cmd/docent && $(GO) test -race -timeout $(TEST_TIMEOUT) ./...

kerberos: ## test the logins by Kerberos, without a KDC
	cd client/kerberos && $(GO) test -race -timeout $(TEST_TIMEOUT) ./...

observe: ## test the adapters for metrics and traces, beside a Prometheus server; needs Debian's package prometheus
	cd observe/promdocent && $(GO) test -race -timeout $(TEST_TIMEOUT) ./...
	cd observe/oteldocent && $(GO) test -race -timeout $(TEST_TIMEOUT) ./...
	cd observe/live && $(GO) test -count=1 -timeout $(TEST_TIMEOUT) ./...

bench: ## run the benchmarks
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

compare: ## test bench/ and run it briefly: Docent beside its peers on servers of this host; three minutes
	cd bench && $(GO) test -timeout $(TEST_TIMEOUT) ./... && $(GO) run . -quick

cover: ## print the coverage of each function; the profile is left in .cache/
	@mkdir -p .cache
	$(GO) test -timeout $(TEST_TIMEOUT) -coverpkg=./... -coverprofile=.cache/cover.out ./...
	$(GO) tool cover -func=.cache/cover.out

check: ## everything that CI runs
	$(MAKE) test
	$(MAKE) command
	$(MAKE) kerberos
	$(MAKE) observe
	$(MAKE) lint
	$(MAKE) fuzz-short
	$(MAKE) explore
	$(MAKE) simulation
	$(MAKE) linear
	$(MAKE) determinism
	$(MAKE) differential
	$(MAKE) foreign
	$(MAKE) integration
	$(MAKE) compare
