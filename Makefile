# Short names for the frequent tasks of a developer. A newcomer needs only
# `make test`: it finds or installs a real ZooKeeper, and reports what it could
# not run.

SHELL       := bash
.SHELLFLAGS := -o pipefail -c

GO    ?= go
TOOL  := $(GO) tool -modfile=tools/go.mod
SUITE := ./recipes/recipestest

.PHONY: help test test-quick quick-units quick-contract quick-seeds test-all test-contract test-faults test-python test-release test-launches test-upgrades test-interop test-model test-acl test-partition test-rolling test-servers test-mutants test-soak test-uptime test-counts test-against build cross bench bench-peers bench-queue bench-memory bench-plugin bench-join results lint vet vulncheck release api-check api-release proto proto-check proto-release fuzz zookeeper

help:
	@echo 'make test           the tests that a newcomer and CI run: also on a real ZooKeeper, with the race detector for concurrent packages'
	@echo 'make test-quick     for each edit: gofmt, vet, unit tests, the contract over one transport, 200 seeds; no ZooKeeper, host or binaries'
	@echo 'make test-all       every test at full length, all with the race detector, 5,000 seeds'
	@echo 'make test-contract  the contract over every transport and server, counted by recipe'
	@echo 'make test-faults    every fault at every request, with the number of cases'
	@echo 'make test-python    the protos with the protoc of the system, and a host in Python'
	@echo 'make test-release   a release for this platform: man pages, completions, deb and rpm, SBOM, signature'
	@echo 'make test-launches  200 launches of the plugin leave no process, file or goroutine'
	@echo 'make test-upgrades  50 upgrades under load between two builds of the plugin, then 200 kills with 100 holds and 100 waiters, also on a real server'
	@echo 'make test-interop   one wait queue with Curator and with kazoo, and the locks of three versions of Curator and four of kazoo; INTEROP_SECONDS (60) a pair'
	@echo 'make test-model     checks the model of handoff with two faults: 10 million states (a minute)'
	@echo 'make test-acl       kills a server of 100,000 znodes 200 times under load, and restarts it; 10,000 turns with one ACL (half an hour)'
	@echo 'make test-soak      100,000 seeds of the simulation, from seed FIRST (1): many faults, virtual time'
	@echo 'make test-uptime    200 sessions through one plugin on a real server for UPTIME (2h), with an upgrade every ten minutes: nothing accumulates'
	@echo 'make test-partition real servers and clients on a network that breaks, for PARTITION (10m); needs root on Linux'
	@echo 'make test-rolling   upgrades three servers from 3.8.0 to 3.9.6 and back under load; needs root on Linux (2 minutes)'
	@echo 'make test-servers   the contract, faults and partitions on ZooKeeper 3.4.13, 3.8.0, 3.9.3 and 3.9.6, and the table of docs/servers.md; root for all'
	@echo 'make test-mutants   plants mistakes in the core and the host, which tests must notice: SAMPLE (40) of each part, by SEED (1)'
	@echo 'make test-counts    compares the requests of a handoff with the recorded ones (seconds)'
	@echo 'make test-against   zkbench run -against finds a difference of a tenth, and no difference where there is none, in AGAINST (20) runs of PAIRS (20) (25 minutes)'
	@echo 'make build          the binaries, into bin/'
	@echo 'make cross          builds the binaries for PLATFORMS (all), and keeps none'
	@echo 'make bench          compares the strategies on a real ZooKeeper by benchstat'
	@echo 'make bench-peers    handoff against the locks of go-zookeeper, Curator and kazoo (45 minutes; ROUNDS=2 CONTENDERS=10,100: 5)'
	@echo 'make bench-queue    a queue of ELEMENTS (1000000), put and taken, beside those of kazoo and Curator; QUEUE_SECONDS (300) to take (an hour)'
	@echo 'make bench-memory   the memory of a session, idle and while its contender waits'
	@echo 'make bench-plugin   the plugin against a library call, and against a relay in a second process (8 minutes)'
	@echo 'make bench-join     three generators and three servers, 1 ms apart, against one generator; needs root on Linux (15 minutes)'
	@echo 'make results        records the sweep on real ZooKeeper servers into testdata/results (75 minutes; FOR=9m: a part)'
	@echo 'make release        archives, deb, rpm, SBOM and checksums with VERSION, signed by SIGNING_KEY, into bin/release/'
	@echo 'make lint           gofmt, vet on three systems, staticcheck, actionlint'
	@echo 'make vulncheck      known vulnerabilities in what the binaries call'
	@echo 'make api-check      fails if the Go API breaks its base and CHANGELOG.md does not name the change'
	@echo 'make api-release    records HEAD as the base of the Go API: after each release'
	@echo 'make proto          generates the code from the .proto files'
	@echo 'make proto-check    lints the .proto files, and fails if they break a release or the generated code is outdated'
	@echo 'make proto-release  records the .proto files as released: from then on no change may break them'
	@echo 'make fuzz           runs every fuzz target for FUZZTIME (10s)'

zookeeper:
	@.ci/install-zookeeper

test: zookeeper
	@.ci/test -seeds 500 ./...

test-all: zookeeper
	@ZKRECIPES_TEST_ALL=1 .ci/test -seeds 5000 ./...

# Packages that have not changed use the test cache. vet comes first: it compiles for the others,
# which wait most of the time and run together. -vet=off, because vet has been there.
UNITS := ./bench/... ./internal/feed ./internal/jute ./internal/rpc/... ./internal/version ./internal/zkbench/... ./internal/zkserver ./plugin ./recipes ./recipes/zookeeper/internal/...
QUICK := $(GO) test -short -vet=off -ldflags=-w
test-quick:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	@$(MAKE) --no-print-directory --keep-going --jobs --output-sync quick-units quick-contract quick-seeds
quick-units:
	$(QUICK) $(UNITS)
quick-contract:
	$(QUICK) -run '^TestContract$$/^in-memory$$/^embedded$$' $(SUITE)
quick-seeds:
	@.ci/simulate 200

test-contract: zookeeper
	@ZKRECIPES_TEST_ALL=1 .ci/test -v -run 'TestContract' $(SUITE) | grep -E 'contract tests:|^(ok|FAIL|test:)'

# Set FIRST to a different number each time: seeds that passed pass again.
FIRST ?= 1
test-soak:
	@.ci/simulate 100000 $(FIRST)

# Fails if it cannot run, and says what it needs.
UPTIME ?= 2h
test-uptime: zookeeper
	ZKRECIPES_UPTIME=$(UPTIME) ZKRECIPES_REQUIRE_ZOOKEEPER=1 ZKRECIPES_TEST_PATIENCE=0 $(GO) test -count=1 -v -timeout 0 ./internal/testing/uptime

test-python:
	@.ci/install-debs python protobuf-compiler libprotobuf-dev python3-grpcio python3-protobuf openssl
	$(GO) test -count=1 -run HostInPython ./cmd/zkrecipes-plugin

test-faults:
	@ZKRECIPES_TEST_ALL=1 ZKRECIPES_REQUIRE_ZOOKEEPER= .ci/test -v -run 'EveryFault' ./recipes/zookeeper | grep -E '^faults|^(ok|FAIL)'

test-launches:
	ZKRECIPES_TEST_ALL=1 $(GO) test -count=1 -v -run TestLaunchesLeaveNothing ./host

test-upgrades: zookeeper
	ZKRECIPES_TEST_ALL=1 $(GO) test -count=1 -v -run TestUpgradesUnderLoad ./host

INTEROP_SECONDS ?= 60
test-interop: zookeeper
	ZKRECIPES_INTEROP_SECONDS=$(INTEROP_SECONDS) ZKRECIPES_TEST_PATIENCE=30m ZKRECIPES_REQUIRE_PEERS=1 $(GO) test -count=1 -v -timeout 30m ./internal/testing/interop | grep -E 'interop:|violation|^ *(---|ok|FAIL)'
	@.ci/test-interop bin/peers $(INTEROP_SECONDS)

test-model:
	ZKRECIPES_MODEL_FAULTS=2 $(GO) test -count=1 -v -run '^TestHandoffModel$$' ./recipes/zookeeper/internal/line

test-acl: zookeeper
	ZKRECIPES_ACL_KILLS=200/100000 ZKRECIPES_ACL_TURNS=10000 ZKRECIPES_REQUIRE_ZOOKEEPER=1 $(GO) test -count=1 -v -timeout 2h -run '^(TestAServerStartsAfterEachKill|TestALineHasOneACL)$$' ./recipes/zookeeper/internal/lock ./recipes/zookeeper/internal/line

# Fails if it cannot run, and says what it needs.
PARTITION ?= 10m
test-partition: zookeeper
	ZKRECIPES_PARTITION=$(PARTITION) ZKRECIPES_REQUIRE_ZOOKEEPER=1 ZKRECIPES_TEST_PATIENCE=0 $(GO) test -count=1 -v -timeout 1h ./internal/testing/partition

# Fails if it cannot run, and says what it needs.
ROLLING ?= bin/zookeepers/zookeeper-3.8.0 bin/zookeepers/zookeeper-3.9.6
test-rolling:
	@for home in $(ROLLING); do [ -e $$home ] || .ci/install-zookeepers bin/zookeepers >/dev/null || exit 1; done
	ZKRECIPES_ROLLING='$(abspath $(ROLLING))' ZKRECIPES_REQUIRE_ZOOKEEPER=1 $(GO) test -count=1 -v -timeout 30m -run TestRollingUpgrade ./internal/testing/partition

test-servers:
	@.ci/test-servers bin/zookeepers

SAMPLE ?= 40
SEED   ?= 1
test-mutants:
	$(GO) run ./internal/testing/mutants -sample $(SAMPLE) -seed $(SEED)

test-counts:
	$(GO) test -count=1 -run '^(TestNoStrategyCostsMoreThanRecorded|TestPlantedReadFailsTheGate|TestAHandoffSendsNothingBeforeTheGrant)$$' ./cmd/zkbench

# The checksum shows that the three binaries have the same sources, even without a commit.
SOURCES = $(shell find cmd host internal plugin recipes go.mod go.sum -type f ! -name '*_test.go' ! -path '*/testdata/*' | LC_ALL=C sort | xargs cat | cksum | tr ' ' -)
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X github.com/zkrecipes/zkrecipes/internal/version.sources=$(SOURCES)' -o bin/ ./cmd/...

PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
cross:
	@for platform in $(PLATFORMS); do \
		echo "build $$platform"; \
		dir=$$(mktemp -d) && \
		CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build -o $$dir/ ./cmd/... || exit 1; \
		rm -rf $$dir; \
	done

# The newest tag, unless VERSION says otherwise. SIGNING_KEY is the file of an SSH key.
VERSION ?= $(shell git describe --tags --abbrev=0 --match 'v*' 2>/dev/null)
SIGNING_KEY ?=
release:
	rm -rf bin/release
	$(GO) run ./internal/release -version '$(VERSION)' -key '$(SIGNING_KEY)'

# Makes a release for this platform, installs its packages in empty roots, and removes them.
test-release:
	@.ci/install-debs release groff-base mandoc man-db openssh-client rpm systemd zsh fish
	ZKRECIPES_TEST_ALL=1 $(GO) test -count=1 -timeout 20m -run TestARelease ./internal/release
	$(GO) test -count=1 -run TestAShellInsertsNamesQuoted ./cmd/zkrecipes

bench: zookeeper
	@mkdir -p bin
	$(GO) run ./cmd/zkbench run -ensemble 1 -workload drain -contenders 10,100 -count 6 -out bin/bench.txt
	$(TOOL) benchstat -col '/strategy@(herd predecessor handoff)' bin/bench.txt

# Rounds are interleaved, and benchstat treats them as samples. The ratios come last.
ROUNDS     ?= 6
CONTENDERS ?= 1,10,100,1000,3000
SERVERS    ?= 1,3
WINDOW_MS  ?= 3000
bench-peers: zookeeper
	@mkdir -p bin
	ZKRECIPES_PEERS_ROUNDS=$(ROUNDS) ZKRECIPES_PEERS_CONTENDERS=$(CONTENDERS) ZKRECIPES_PEERS_SERVERS=$(SERVERS) ZKRECIPES_PEERS_WINDOW_MS=$(WINDOW_MS) \
		ZKRECIPES_REQUIRE_ZOOKEEPER=1 ZKRECIPES_REQUIRE_PEERS=1 $(GO) test ./internal/testing/interop -run '^$$' -bench Peers -benchtime 1x -timeout 4h | tee bin/peers.txt
	$(TOOL) benchstat -row '/servers /workload /contenders' -col '/lock@(floor handover plain go-zookeeper curator kazoo predecessor handoff plugin-predecessor plugin-handoff)' -ignore /round bin/peers.txt
	@grep '^|' bin/peers.txt

ELEMENTS      ?= 1000000
QUEUE_SECONDS ?= 300
bench-queue: zookeeper
	ZKRECIPES_QUEUE=$(ELEMENTS) ZKRECIPES_QUEUE_SECONDS=$(QUEUE_SECONDS) ZKRECIPES_REQUIRE_ZOOKEEPER=1 ZKRECIPES_REQUIRE_PEERS=1 $(GO) test ./internal/testing/interop -run '^$$' -bench LongQueue -benchtime 1x -v -timeout 4h | grep -E 'LongQueue|: (put|fill|len|take)|FAIL'

bench-memory: zookeeper
	$(GO) test ./recipes/zookeeper/internal/session -run '^$$' -bench WaitingSessions -benchtime 1x -timeout 1h

# The relay is a second process that only forwards. No plugin can be faster.
bench-plugin: zookeeper
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/zkbench ./cmd/zkrecipes-plugin
	for servers in 1 3; do \
		bin/zkbench run -ensemble $$servers -recipe lock -workload drain,cycle -contenders 100 \
			-strategy predecessor,handoff -via direct,relay,plugin -count 10 -out bin/plugin-$$servers.txt && \
		for unit in handoffs/s host-cpu-ns/op other-cpu-ns/op; do \
			$(TOOL) benchstat -row '/workload /strategy' -filter ".unit:$$unit" -col '/via@(direct relay plugin)' bin/plugin-$$servers.txt || exit 1; \
		done; \
	done

# Fails if it cannot run, and says what it needs.
bench-join: zookeeper
	ZKRECIPES_BENCH_JOIN=1 ZKRECIPES_REQUIRE_ZOOKEEPER=1 ZKRECIPES_TEST_PATIENCE=0 $(GO) test -count=1 -v -timeout 1h -run 'TestSeveral|TestAWorker' ./cmd/zkbench

# Continues an interrupted run. The script describes its variables.
results: zookeeper
	@FOR=$(FOR) .ci/results

# Makes twice AGAINST runs of half a minute each.
AGAINST ?= 20
PAIRS   ?= 20
test-against:
	ZKRECIPES_AGAINST=$(AGAINST) ZKRECIPES_PAIRS=$(PAIRS) ZKRECIPES_TEST_PATIENCE=0 $(GO) test -count=1 -v -timeout 2h -run TestAgainstFinds ./cmd/zkbench

vet:
	@for os in linux darwin windows; do echo "vet $$os"; CGO_ENABLED=0 GOOS=$$os $(GO) vet ./... || exit 1; done

lint: vet
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; }
	$(TOOL) staticcheck ./...
	$(TOOL) actionlint -shellcheck= -pyflakes=

# Needs a network for the Go vulnerability database.
vulncheck:
	$(TOOL) govulncheck ./...

# Fails on an incompatible change that the first section of CHANGELOG.md does not name.
api-check:
	$(GO) -C tools run ./api

api-release:
	git rev-parse HEAD >testdata/api-base

proto:
	$(TOOL) buf generate

proto-check:
	$(TOOL) buf lint
	$(TOOL) buf generate
	$(TOOL) buf breaking --against plugin/proto/released/v1.binpb
	git diff --exit-code -- plugin/proto

proto-release: proto-check
	$(TOOL) buf build --exclude-source-info -o plugin/proto/released/v1.binpb

FUZZTIME ?= 10s
fuzz:
	@.ci/fuzz $(FUZZTIME)
