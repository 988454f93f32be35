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

.PHONY: help test lint fmt fuzz-short simulation soak soak-all soak-hours explore mutants linear determinism differential integration foreign command vet-docent kerberos ports grpc observe bench bench-check compare cover api api-check machines test-386 test-older-go release-rehearsal check

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

soak: ## play many more seeds of everything, and start many servers in containers; takes a night and needs Docker
	$(MAKE) simulation SIM_SEEDS=50000 ENSEMBLE_SEEDS=50000 ENSEMBLE_GAME_SEEDS=5000 KEEPER_SEEDS=5000 WATCH_SEEDS=5000 \
		ENSEMBLE_ELECTION_SEEDS=5000 BARRIER_SEEDS=20000 ENSEMBLE_BARRIER_SEEDS=5000 \
		NODE_SEEDS=20000 ENSEMBLE_NODE_SEEDS=5000 CACHE_SEEDS=20000 CROWD_SEEDS=20000 SIM_TIMEOUT=24h
	$(MAKE) linear LINEAR_SEEDS=20000 SIM_TIMEOUT=24h
	cd integration && DOCENT_LARGE_DIRECTORIES=1000 $(GO) test -count=1 -timeout 1h -run LargeTree -v ./caches
	cd integration/zkcontainer && DOCENT_OUTSIDE=20 $(GO) test -count=1 -timeout 1h -run Outside -v .
	DOCENT_EXPLORE_LONG=1 $(GO) test -count=1 -timeout 48h -run 'Explore|EveryShort|Orders$$' -v ./client/... ./recipes/...
	$(MAKE) mutants

HOURS ?= 8
SOAK_DIR ?= .
SOAK_SERVERS ?=

soak-all: ## run all recipes at once for HOURS through faults, and write soak.csv and soak.svg; fails if something grows
	@mkdir -p '$(SOAK_DIR)'
	cd integration && $(GO) run ./soak -length "$$(awk 'BEGIN { print $(HOURS) * 3600 }')s" -dir '$(abspath $(SOAK_DIR))' -servers '$(SOAK_SERVERS)'

soak-hours: ## the same for HOURS by a clock that waits for nobody, in memory and without Curator; two minutes of a processor per hour
	@mkdir -p '$(SOAK_DIR)'
	cd integration && DOCENT_SOAK_HOURS=$(HOURS) DOCENT_SOAK_DIR='$(abspath $(SOAK_DIR))' $(GO) test -count=1 -timeout 24h -run '^TestHours$$' -v ./soak

explore: ## walk the machines, play every short program and measure memory in the usual form, without the race detector; one minute
	$(GO) test -count=1 -timeout $(TEST_TIMEOUT) -run 'Explore|EveryShort|Orders$$|^TestMemory$$' -v ./client/... ./recipes/... | grep -Ev '^(=== |    --- PASS)'

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

command: ## test the command docent; needs Unix, and Debian's package chromium
	cd cmd/docent && $(GO) test -race -timeout $(TEST_TIMEOUT) ./...

vet-docent: ## test docentvet, and run it over every module, where it finds nothing
	cd cmd/docentvet && $(GO) test -timeout $(TEST_TIMEOUT) ./...
	@root=$$PWD; tool=$$(mktemp -d)/docentvet; trap 'rm -rf "$$(dirname "$$tool")"' EXIT; failed=; \
	$(GO) build -C cmd/docentvet -o "$$tool" .; \
	for m in $(MODULES); do \
		echo "docentvet $$m"; \
		(cd "$$m" && $(GO) vet -vettool="$$tool" ./...) || failed="$$failed $$m"; \
	done; \
	if [ -n "$$failed" ]; then echo "make vet-docent: findings in:$$failed" >&2; exit 1; fi

kerberos: ## test the logins by Kerberos, without a KDC
	cd client/kerberos && $(GO) test -race -timeout $(TEST_TIMEOUT) ./...

ports: ## test the backends of other projects on Docent, by the projects' own suites
	cd docs/examples/ports && $(GO) test -race -timeout $(TEST_TIMEOUT) ./...

grpc: ## test the resolver for gRPC with the oldest gRPC that it needs and with a new one, and the example
	cd recipes/discovery/grpcdocent && $(GO) test -race -timeout $(TEST_TIMEOUT) ./...
	cd recipes/discovery/grpcdocent && $(GO) test -modfile=newest.mod -timeout $(TEST_TIMEOUT) ./...
	cd docs/examples/discovery && $(GO) test -race -timeout $(TEST_TIMEOUT) ./...

observe: ## test the adapters for metrics and traces, beside a Prometheus server; needs Debian's package prometheus
	cd observe/promdocent && $(GO) test -race -timeout $(TEST_TIMEOUT) ./...
	cd observe/oteldocent && $(GO) test -race -timeout $(TEST_TIMEOUT) ./...
	cd observe/live && $(GO) test -count=1 -timeout $(TEST_TIMEOUT) ./...

bench: ## run the benchmarks
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

bench-check: ## test bench/, which runs the peers
	cd bench && $(GO) test -timeout $(TEST_TIMEOUT) ./...

compare: ## run bench/ briefly: Docent beside its peers on servers of this host; two minutes, without a verdict
	cd bench && $(GO) run . -quick

cover: ## print the coverage of each function; the profile is left in .cache/
	@mkdir -p .cache
	$(GO) test -timeout $(TEST_TIMEOUT) -coverpkg=./... -coverprofile=.cache/cover.out ./...
	$(GO) tool cover -func=.cache/cover.out

# The record is that of every published module, so their dependencies are fetched.
api: ## write what the public Go API is to the directory api
	cd internal/release && $(GO) run ./apirecord -write

api-check: ## compare the public Go API with its record in the directory api, and what has changed with CHANGELOG.md
	cd internal/release && $(GO) test ./apirecord && $(GO) run ./apirecord

# A vet compiles the tests as well, which takes most of the time: 32 bits, and a system of each kind,
# for the library and the command. zkcontainer needs Docker, which has these two besides Linux.
MACHINES ?= linux/386 linux/arm linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 freebsd/amd64
BUILT ?= windows/amd64
machines: ## vet for other systems and processors what runs there, tests included, and build it for BUILT
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	$(GO) build -C cmd/docentvet -o "$$dir/elsewhere" ./internal/elsewhere; \
	for p in $(MACHINES); do \
		case $$p in \
			linux/386) more='client/kerberos observe/promdocent observe/oteldocent';; \
			darwin/arm64 | windows/amd64) more='client/kerberos observe/promdocent observe/oteldocent recipes/discovery/grpcdocent cmd/docentvet integration/zkcontainer';; \
			*) more=;; \
		esac; \
		"$$dir/elsewhere" "$$p" . cmd/docent $$more; \
	done; \
	for p in $(BUILT); do \
		export GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0; \
		for m in . cmd/docent; do echo "build $$m for $$p"; (cd "$$m" && $(GO) build ./...); done; \
	done

# What counts, shifts and compares numbers.
SMALL = ./retry ./fence ./internal/clock ./internal/wire ./client/internal/... ./recipes/shared \
	./recipes/internal/book ./recipes/internal/candidacy ./recipes/internal/gathering ./recipes/internal/seqqueue
test-386: ## test on 32 bits what counts there; on an amd64 machine
	GOARCH=386 CGO_ENABLED=0 $(GO) test -timeout $(TEST_TIMEOUT) -skip 'Explore|EveryShort|Schedules' $(SMALL)

OLDER_GO ?= go1.25.8
test-older-go: ## build and test the library with the oldest Go that it supports, which the go command fetches
	GOTOOLCHAIN=$(OLDER_GO) $(GO) version
	GOTOOLCHAIN=$(OLDER_GO) $(GO) build ./...
	GOTOOLCHAIN=$(OLDER_GO) $(GO) test -timeout $(TEST_TIMEOUT) -skip 'Explore|EveryShort|Schedules' $(filter-out ./internal/clock,$(SMALL)) \
		./client ./client/zkconn ./observe ./recipes/barrier ./recipes/nodes ./docs/examples/...

VERSION ?= 0.1.0
# Empty runs the tests of each module as unpacked as well.
REHEARSAL ?= -quick
release-rehearsal: ## make what would be published of the commit checked out as VERSION, build and import it, and with REHEARSAL= test it; publishes nothing
	cd internal/release && $(GO) vet . && $(GO) test . ./published && $(GO) run . $(REHEARSAL) $(VERSION)

check: ## everything that CI runs
	$(MAKE) test
	$(MAKE) api-check
	$(MAKE) command
	$(MAKE) vet-docent
	$(MAKE) kerberos
	$(MAKE) ports
	$(MAKE) grpc
	$(MAKE) observe
	$(MAKE) machines
	$(MAKE) test-386
	$(MAKE) test-older-go
	$(MAKE) release-rehearsal
	$(MAKE) lint
	$(MAKE) fuzz-short
	$(MAKE) explore
	$(MAKE) simulation
	$(MAKE) linear
	$(MAKE) determinism
	$(MAKE) differential
	$(MAKE) foreign
	$(MAKE) integration
	$(MAKE) bench-check
