# Short names for the frequent tasks of a developer. A newcomer needs only
# `make test`: it finds or installs a real ZooKeeper, and reports what it could
# not run. What CI, releases and recordings need besides lies in .ci.

SHELL       := bash
.SHELLFLAGS := -o pipefail -c

GO    ?= go
SUITE := ./recipes/recipestest

.PHONY: help zookeeper test test-quick quick-units quick-contract quick-seeds test-all test-counts test-contract lint build bench bench-peers results docs proto release suites

help:
	@echo 'make test           the tests that a newcomer and CI run: also on a real ZooKeeper, with the race detector for concurrent packages'
	@echo 'make test-quick     for each edit: gofmt, vet, unit tests, the contract over one transport, 200 seeds; no ZooKeeper, host or binaries'
	@echo 'make test-all       every test at full length, all with the race detector, 5,000 seeds'
	@echo 'make test-counts    compares the requests of a handoff, an idle hold and a Take through the plugin with the recorded ones (seconds)'
	@echo 'make test-contract  the contract on servers that run already, in ZKRECIPES_TEST_SERVERS=host:port,host:port; uses one path of its own'
	@echo 'make lint           gofmt, vet on three systems, staticcheck, actionlint'
	@echo 'make build          the binaries, into bin/'
	@echo 'make bench          compares the strategies on a real ZooKeeper by benchstat'
	@echo 'make bench-peers    every recipe against those of go-zookeeper, Curator and kazoo (five hours; BENCH=Peers ROUNDS=2 CONTENDERS=10,100: 5 minutes)'
	@echo 'make results        records all figures of the pages, from one commit (two and a half hours, on a machine that does nothing else)'
	@echo 'make docs           makes the figures, tables and outputs of the pages from the recorded results'
	@echo 'make proto          generates the code from the .proto files'
	@echo 'make release        archives, deb, rpm, image, SBOM and checksums of VERSION (by default the commit'\''s tag), signed by SIGNING_KEY, into bin/release/'
	@echo 'make suites         lists the long suites: .ci/suite NAME runs one'

zookeeper:
	@.ci/install-zookeeper

test: zookeeper
	@.ci/test -seeds 300 ./...

test-all: zookeeper
	@ZKRECIPES_TEST_ALL=1 .ci/test -seeds 5000 ./...

# Packages that have not changed use the test cache. vet comes first: it compiles for the others,
# which wait most of the time and run together. -vet=off, because vet has been there.
UNITS := ./bench/... ./cmd/zkbench/internal/... ./internal/feed ./internal/jute ./internal/rpc/... ./internal/version ./internal/probe ./internal/timeline ./internal/zkserver ./plugin ./recipes ./recipes/zookeeper/internal/...
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

test-counts:
	$(GO) test -count=1 -run '^(TestNoStrategyCostsMoreThanRecorded|TestPlantedReadFailsTheGate|TestAHandoffSendsNothingBeforeTheGrant)$$' ./cmd/zkbench
	$(GO) test -count=1 -run '^TestIdleHoldsCostNoMoreThanRecorded$$' ./recipes/zookeeper/internal/line
	$(GO) test -count=1 -run '^TestATakeThroughThePluginWritesNoMoreThanRecorded$$' ./host

# On servers with the usual tick of 2 s the tests of lost sessions take longer than on those of make test.
test-contract:
	@test -n '$(ZKRECIPES_TEST_SERVERS)' || { echo 'set ZKRECIPES_TEST_SERVERS to the servers, such as zk1:2181,zk2:2181'; exit 2; }
	@$(GO) test -count=1 -timeout 1h -v -run '^TestContractOnGivenServers$$' $(SUITE) | grep -E '^ *--- (FAIL|SKIP)|_test.go|\.go:[0-9]+: |contract tests:|CONTRACT TESTS|^(ok|FAIL|panic)'

# Without -trimpath, the tests use what it compiles. The checksum shows that the three binaries
# have the same sources, even without a commit.
SOURCES = $(shell find cmd host internal plugin recipes go.mod go.sum -type f ! -name '*_test.go' ! -path '*/testdata/*' | LC_ALL=C sort | xargs cat | cksum | tr ' ' -)
build:
	CGO_ENABLED=0 $(GO) build -ldflags '-X github.com/zkrecipes/zkrecipes/internal/version.sources=$(SOURCES)' -o bin/ ./cmd/...

# The tag of this commit, with -dirty if a file has changed, unless VERSION says otherwise.
# SIGNING_KEY is the file of an SSH key. PLATFORMS is a list, such as linux/amd64,linux/arm64; empty
# means all.
VERSION ?= $(shell git describe --tags --exact-match --dirty --match 'v*' 2>/dev/null)
SIGNING_KEY ?=
PLATFORMS ?=
release:
	@test -n '$(VERSION)' || { echo 'this commit has no tag: set VERSION, such as VERSION=v0.1.0'; exit 2; }
	rm -rf bin/release
	$(GO) -C tools run ./release -version '$(VERSION)' -key '$(abspath $(SIGNING_KEY))' $(if $(PLATFORMS),-platforms '$(PLATFORMS)') -out ../bin/release

bench: zookeeper
	@mkdir -p bin
	$(GO) run ./cmd/zkbench run -ensemble 1 -workload drain -contenders 10,100 -count 6 -out bin/bench.txt
	$$($(GO) -C tools tool -n benchstat) -col '/strategy@(herd predecessor handoff)' bin/bench.txt

# Rounds are interleaved, and benchstat treats them as samples. The ratios come last. BENCH selects
# a part: Peers (locks with contention), Recipes (the others) or Holds (idle). IDLE is how many
# sessions hold a lock each, and HOLD how many locks one session holds.
BENCH      ?= Peers|Recipes|Holds
ROUNDS     ?= 6
CONTENDERS ?= 1,10,100,1000,3000
SERVERS    ?= 1,3
WINDOW_MS  ?= 3000
IDLE       ?= 300,3000
IDLE_TIMEOUT_MS ?= 30000
HOLD       ?= 1000,20000
bench-peers: zookeeper
	@mkdir -p bin
	ZKRECIPES_PEERS_ROUNDS=$(ROUNDS) ZKRECIPES_PEERS_CONTENDERS=$(CONTENDERS) ZKRECIPES_PEERS_SERVERS=$(SERVERS) ZKRECIPES_PEERS_WINDOW_MS=$(WINDOW_MS) \
		ZKRECIPES_IDLE=$(IDLE) ZKRECIPES_IDLE_TIMEOUT_MS=$(IDLE_TIMEOUT_MS) ZKRECIPES_HOLD=$(HOLD) \
		ZKRECIPES_REQUIRE_ZOOKEEPER=1 ZKRECIPES_REQUIRE_PEERS=1 $(GO) test ./internal/testing/interop -run '^$$' -bench '$(BENCH)' -benchtime 1x -timeout 12h | tee bin/peers.txt
	$$($(GO) -C tools tool -n benchstat) -row '/servers /workload /contenders' -col '/lock@(floor handover plain go-zookeeper curator kazoo predecessor handoff plugin-predecessor plugin-handoff)' -ignore /round,/rtt bin/peers.txt
	@grep '^|' bin/peers.txt

# Continues an interrupted recording. The script describes its variables.
results: zookeeper
	@.ci/results

docs: build
	bin/zkbench report -figures testdata/results/figures -insert docs/benchmark.md testdata/results/zookeeper-1.jsonl testdata/results/zookeeper-3.jsonl
	$(GO) test -count=1 ./cmd/zkbench/internal/report ./internal/testing/repository -run '^(TestTimelinesAreDrawnAsTheyWere|TestResults|TestDocs)$$' -update

suites:
	@.ci/suite

lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; }
	@for platform in "" darwin/arm64 windows/amd64; do os=$${platform%/*} arch=$${platform#*/}; echo "vet $${platform:-this system}"; CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) vet ./... || exit 1; done
	$(GO) -C tools vet ./...
	staticcheck=$$($(GO) -C tools tool -n staticcheck) && $$staticcheck ./... && cd tools && $$staticcheck ./...
	$$($(GO) -C tools tool -n actionlint) -shellcheck= -pyflakes=

proto:
	@.ci/proto
