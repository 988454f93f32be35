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

.PHONY: help test race lint fmt fuzz-short simulation determinism differential integration foreign bench compare cover check

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

test: ## test the core module, with the race detector where it works
ifeq ($(HAVE_RACE),yes)
	$(GO) test -race -timeout $(TEST_TIMEOUT) ./...
else
	@echo 'make test: no race detector, because cgo is off or there is no C compiler (Debian: apt-get install gcc libc6-dev)'
	$(GO) test -timeout $(TEST_TIMEOUT) ./...
endif

race: ## test again with the race detector, in random order
ifneq ($(HAVE_RACE),yes)
	@echo 'make race: needs cgo and a C compiler (Debian: apt-get install gcc libc6-dev)' >&2; exit 1
endif
	$(GO) test -race -shuffle=on -timeout $(TEST_TIMEOUT) ./...

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

SIM_SEEDS ?= 20000
ENSEMBLE_SEEDS ?= 5000
GAME_SEEDS ?= 3000
ENSEMBLE_GAME_SEEDS ?= 800
KEEPER_SEEDS ?= 1000
WATCH_SEEDS ?= 2000
simulation: ## play seeded schedules of faults, SIM_SEEDS (20000) on a server, ENSEMBLE_SEEDS (5000) on three, for locks other than mutexes GAME_SEEDS (3000), ENSEMBLE_GAME_SEEDS (800), on ClickHouse Keeper KEEPER_SEEDS (1000), for watches WATCH_SEEDS (2000); make test plays some hundred
	$(GO) test -count=1 -timeout 5m -run '^TestWaitersThatGiveUp$$' ./recipes
	DOCENT_SIM_SEEDS=$(SIM_SEEDS) $(GO) test -count=1 -timeout 20m -run '^(TestSchedules|TestKnownSeeds)$$' -v ./recipes/internal/simulation
	DOCENT_SIM_ENSEMBLE_SEEDS=$(ENSEMBLE_SEEDS) DOCENT_SIM_GAME_SEEDS=$(GAME_SEEDS) DOCENT_SIM_ENSEMBLE_GAME_SEEDS=$(ENSEMBLE_GAME_SEEDS) DOCENT_SIM_KEEPER_SEEDS=$(KEEPER_SEEDS) DOCENT_SIM_WATCH_SEEDS=$(WATCH_SEEDS) \
		$(GO) test -count=1 -timeout 20m -run '(Ensemble|Game|Keeper).*(Schedules|Seeds)|TestWatchSchedules|TestAnswersProveNothing|TestSignsOfLifeTakeTime|TestUnrecognisedKeeper' -v ./recipes/internal/simulation

TRACE_SEEDS ?= 200
SIM_AGAIN ?= 200
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
	$(MAKE) race
	$(MAKE) lint
	$(MAKE) fuzz-short
	$(MAKE) simulation
	$(MAKE) determinism
	$(MAKE) differential
	$(MAKE) foreign
	$(MAKE) integration
	$(MAKE) compare
