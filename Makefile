# The commands of someone who uses or changes Sluice; `make help` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help lambda demo servers test proof aws steady unit build api lint security fmt sim bench ratios figures fleet soak coldstart screenshots fuzz release clean

tool := go tool -modfile=tools/go.mod

# What Go compiled for one clone or worktree serves the others: without this a package
# is compiled anew for each folder. The linter uses it too.
export GOFLAGS := $(strip $(shell go env GOFLAGS) -trimpath)

# The race detector needs a C compiler. With Go 1.26 its runtime dies in bubbles of
# synctest on several processors: docs/decisions/0010.
RACE ?= $(shell command -v $$(go env CC) >/dev/null && echo -race)
CPU := $(if $(RACE),$(if $(filter go1.26%,$(shell go env GOVERSION)),-cpu 1))
# Narrow any of these: make test PKG=./flow/... RUN=TestOrder
PKG ?= ./...
RUN ?=
FUZZTIME ?= 10s
SEEDS ?= 1000
FROM ?= 1
SEED ?=
COUNT ?= 6
CONFIG ?= sluice.yaml
DURATION ?= 10m
RUNS ?= 10
TAGS ?=
LOADED ?= 2
VERSION ?=

# These take longest: they begin first, so that none of them runs alone at the end.
longestunit := ./sources/poller ./cmd/sluice ./internal/daemon ./state/statetest

# Tests with servers around them. OpenSearch takes seconds to start: it is there when
# a test file in PKG names it. While one package waits for a server another has the
# processor. The linter vets. The timeout ends what hangs: a busy machine takes long,
# and that is no failure.
processors := $(shell getconf _NPROCESSORS_ONLN)
testfiles := {{$$dir := .Dir}}{{range .TestGoFiles}}{{$$dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$$dir}}/{{.}}{{"\n"}}{{end}}
searches = search=$$(go list -tags integration,proof -f '$(testfiles)' $(PKG) | tr '\n' '\0' | xargs -0 grep -ls 'localtest\.OpenSearch' || true)
define gotestsum
mkdir -p .out; go build -o bin/withstack ./internal/cmd/withstack; \
	$(searches); \
	bin/withstack $${search:+--opensearch} $(tool) gotestsum --format pkgname --format-hide-empty-pkg \
	  --jsonfile .out/$@.json --post-run-command 'bash internal/cmd/withstack/summary'
endef
# Less collection is a fifth less CPU time for tests, and a third for the linter, which
# takes 3.5 GB then.
GOGC ?= 400
test unit lint: export GOGC := $(GOGC)
# Go may answer from its cache when nothing changed, but not in CI.
flags := -vet=off -p $$((2 * $(processors))) -timeout 2h $(if $(CI),-count=1)

help: ## List the commands
	@grep -hE '^[a-z]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

test: ## All tests, with servers started and stopped, and the race detector where goroutines share memory; fails when one was skipped
	@[ -n "$(RACE)" ] || echo "no C compiler found: the race detector is OFF"
	$(gotestsum) $(if $(filter ./...,$(PKG)),--raw-command -- bash internal/cmd/withstack/alltests $(flags) -tags integration $(if $(RUN),-run '$(RUN)') -- $(RACE) $(CPU), \
	  -- $(flags) $(RACE) $(CPU) -tags integration $(if $(RUN),-run '$(RUN)') $(PKG))

proof: ## The long proofs, hours: tests named TestProof or TestWild, with the build tag proof; 200,000 new seeds of the simulation, and days: 1,000,000 of a fleet
	$(gotestsum) -- $(flags) -timeout 24h -count 1 -tags integration,proof -run '$(or $(RUN),^Test(Proof|Wild))' \
	  $(if $(filter ./...,$(PKG)),$$(git grep --untracked -lE '^//go:build .*\bproof\b' -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's|^|./|'),$(PKG))
	$(if $(filter ./...,$(PKG)),$(MAKE) sim SEEDS=200000 FROM=$$(date +%s)000000)
	$(if $(filter ./...,$(PKG)),$(MAKE) sim FLEET=1 SEEDS=1000000 FROM=$$(date +%s)000000)

aws: ## The tests with servers against an account of AWS, under names that begin with PREFIX; says what it creates and costs, and asks. LOCAL=1: on local servers
	@go build -o bin/awssuite ./internal/cmd/awssuite
	@$(if $(LOCAL),go build -o bin/withstack ./internal/cmd/withstack; $(searches); bin/withstack $${search:+--opensearch}) bin/awssuite $(if $(LOCAL),--local) \
	  $(if $(PREFIX),--prefix '$(PREFIX)') $(if $(OPENSEARCH),--opensearch '$(OPENSEARCH)') $(if $(YES),--yes) $(if $(CLEANUP),--cleanup) \
	  $(if $(filter-out ./...,$(PKG)),--pkg '$(patsubst ./%,^%,$(PKG:/...=))') $(if $(RUN),--run '$(RUN)')

steady: ## `make test` RUNS (10) times afresh, the last LOADED (2) beside four busy loops a processor; a line for each
	@bash internal/cmd/withstack/steady $(RUNS) $(LOADED)

unit: ## The quick tests that need neither Java nor network; TAGS=long: the long histories too
	go test -vet=off $(if $(TAGS),-tags '$(TAGS)') -p $$((2 * $(processors))) $(if $(RUN),-run '$(RUN)') $(if $(filter ./...,$(PKG)),$(longestunit)) $(PKG)

api: ## The public surface: a line for each name, method and field that a user can import
	@go run ./internal/cmd/api

build: ## Compile everything, examples and commands too
	go build ./...

lint: ## Code: golangci-lint with the list in .golangci.yml. Workflows: actionlint. Documents: vale with the rules in tools/vale/styles/Sluice
	$(tool) golangci-lint run --allow-parallel-runners $(PKG)
	$(tool) actionlint -shellcheck= -pyflakes=
	git ls-files -z '*.md' ':!CHANGELOG.md' | xargs -0 go tool -modfile=tools/vale/go.mod vale --no-global

security: ## gosec with its reviewed list, licences of all that is linked, and known vulnerabilities (asks vuln.go.dev)
	$(tool) golangci-lint run --allow-parallel-runners -c .golangci-security.yml
	go test -run '^TestLicences$$' ./internal/deptest
	@out=$$($(tool) govulncheck ./... 2>&1) && echo "$$out" || { echo "$$out"; case "$$out" in *"fetching vulnerabilities"*) \
	  echo "The database of vulnerabilities cannot be reached: the dependencies were NOT checked against it." ;; esac; exit 1; }

fmt: ## Format the code as the lint wants it
	$(tool) golangci-lint fmt

sim: ## SEEDS (1000) histories of a poller against a service that misbehaves, from seed FROM (1); SEED=n replays one; FLEET=1: of a fleet
	@go test -c -o bin/sim.test $(if $(FLEET),./state/dynamostate,./internal/sim)
	@$(if $(FLEET),cd state/dynamostate && ../../)bin/sim.test -test.run '^Test$(if $(FLEET),FleetSeeds,Sim)$$' -test.timeout 0 \
	  $(if $(SEED),-seed $(SEED) -seeds 1,-seed $(FROM) -seeds $(SEEDS) $(if $(FLEET),,-out .out/sim))

demo: ## Changes become messages, a search gets its answer, a cascade runs, an item is found by search, a killed daemon's shards are taken over: by daemon and by Lambda
	@go build -o bin/demo ./internal/cmd/demo
	@bin/demo

servers: ## DynamoDB Local, ElasticMQ and OpenSearch until Ctrl-C; prints the variables that lead to them
	@go build -o bin/withstack ./internal/cmd/withstack
	@bin/withstack

ratios: ## Speed beside today's usual ways, one line each, under a minute
	@go run ./bench/ratios

coldstart: ## A Lambda function's start beside a hand-written one, one line each
	@go run ./bench/coldstart

figures: ## A whole daemon on DynamoDB Local: start, pick-up, backlog, memory; one line each, minutes
	@go run ./bench/figures

fleet: ## Daemons that share a state table: start, take-over, balance, requests, memory; one line each, under five minutes
	@go run ./bench/fleet

soak: ## A daemon under load for DURATION (10m), then all effects compared with all writes; memory and goroutines must not grow
	@go run ./bench/soak -duration $(DURATION)

screenshots: ## The pictures of the daemon's page in docs/images, by a headless Chromium
	@go run ./internal/cmd/screenshots docs/images

bench: ## All benchmarks, with a benchstat table
	@mkdir -p .out
	go test -run '^$$' -bench . -benchmem -count $(COUNT) $(PKG) | tee .out/bench.txt
	$(tool) benchstat .out/bench.txt

fuzz: ## Each fuzz target for FUZZTIME (10s)
	@for file in $$(git grep -lE '^func Fuzz' -- '*_test.go'); do \
	  for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]+)\(.*/\1/p' $$file); do \
	    echo "== $$target ($$(dirname $$file))"; \
	    go test ./$$(dirname $$file) -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x; \
	  done; done

lambda: ## The function for Lambda with CONFIG (sluice.yaml) and the files that it names beside it: deploy/lambda/build for SAM, build.zip for others; TAGS=tracing: with traces
	go run ./internal/cmd/lambdafiles '$(CONFIG)' deploy/lambda/build
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -trimpath -tags 'lambda.norpc,$(TAGS)' -ldflags='-s -w' -o deploy/lambda/build/bootstrap ./cmd/sluice-lambda
	cd deploy/lambda/build && rm -f ../build.zip && zip -q -X -r -D ../build.zip .

release: ## What users download of VERSION (default: of git describe), in dist: binaries, packages, image, chart, checksums; checked, made twice to compare, upgraded and rolled back
	@go -C tools/release build -o ../../bin/release .
	@bin/release -version '$(VERSION)'
	@go -C tools/deploy build -o ../../.cache/deploy/bin/helm helm.sh/helm/v3/cmd/helm
	go -C tools/release test -count 1 . -version '$(VERSION)'
	@go build -o bin/withstack ./internal/cmd/withstack
	bin/withstack go test -count 1 -timeout 1h -tags integration,proof ./internal/releasetest -run TestProofUpgrade -released ../../dist

clean: ## Remove what was built and fetched
	rm -rf bin dist .out .cache
