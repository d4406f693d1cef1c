# SPDX-License-Identifier: Apache-2.0
# "make help" lists the targets. Requires Go, git, make and a POSIX shell.

VERSION := $(shell cat VERSION)
MODULE  := github.com/kubectl-ocm/kubectl-ocm
BIN     := bin
DIST    := dist

# Some distributions of Go stay with their own release. go.mod names one with all security
# fixes, which is downloaded where it is newer than the one that is installed.
export GOTOOLCHAIN ?= auto

# Programs, tests, vet and lint take the same settings, so that each package is compiled once for all
# of them (and once more with the race detector).
export CGO_ENABLED ?= 0
export GOFLAGS     ?= -trimpath

# The packages that "make test" tests, and additional flags for "go test", for example
# make test PKG=./pkg/fleet/token ARGS='-run TestAToken -v'
PKG  ?= ./...
ARGS ?=

GOBUILD = CGO_ENABLED=0 go build -trimpath -buildvcs=false \
	-ldflags "-s -w -X $(MODULE)/internal/version.stamped=$(VERSION)"

# Suites that run our programs as separate processes: the race detector would see only the
# test's own requests, and take a quarter of the time. The longest begins first and the short ones
# next, so that no short one is left alone at the end.
SUITES = integration/fleet release integration/playground integration/agent integration/hub
PROCESSES = test/($(shell echo $(SUITES) | tr ' ' '|'))

# The race detector needs a working C compiler.
RACE = $(shell echo 'int main(void){return 0;}' | $$(go env CC) -x c -o /dev/null - >/dev/null 2>&1 && echo -race)

# kustomize imports "plugin", for which Go calls the linker of C. It takes a second longer for each
# raced test program than Go's own, and nothing here loads plugins.
RACEFLAGS = $(RACE) $(if $(filter linux/amd64,$(shell go env GOOS)/$(shell go env GOARCH)),-ldflags=-linkmode=internal)

# Tests run many more processes than there are processors. Under Linux's policy for batches, one that
# wakes up does not interrupt another, and caches stay warm: the same work takes a tenth less.
BATCH = $(shell chrt --batch 0 true 2>/dev/null && echo 'chrt --batch 0')

# What a package has in its files if it, or its tests, can race. The others are tested without the
# detector, which costs seconds of linking for each.
CONCURRENT = ^[[:space:]]*go (func|[a-zA-Z.]+\()|"sync(/atomic)?"|\.Go\(|\.Parallel\(\)|<-|make\(chan|test/harness"

# The krew manifest that "make release" rewrites.
MANIFEST ?= krew-index/plugins/ocm.yaml

# The commit that is released; empty if there are changes besides the manifest.
COMMIT = $(shell git diff --quiet HEAD -- . ':!$(MANIFEST)' 2>/dev/null && git rev-parse HEAD)

# The images, each with the program in it.
IMAGES = ocm-hub=./controllers/ocm-hub ocm-agent=./controllers/ocm-agent webdemo=./examples/webdemo \
	helloworld-addon=./examples/helloworld-addon managed-serviceaccount=./controllers/managed-serviceaccount

CACHE     = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kubectl-ocm
GOLANGCI  = $(CACHE)/tools/golangci-lint-$(shell awk '/golangci-lint\/v2 v/{print $$2}' tools/golangci.mod)-$(shell go env GOVERSION)

# The files in which "make generate" sets the version of the lines marked with it.
STAMPED = config/agent/operator/kustomization.yaml config/hub/kustomization.yaml config/agent/kustomization.yaml config/helm/cluster-manager/Chart.yaml config/helm/klusterlet/Chart.yaml config/addon/managed-serviceaccount.yaml

CONTROLLER_GEN = go tool -modfile=go.tools.mod controller-gen

# Open Cluster Management's guides use these variables for the clusters of deploy and clean.
# HUB_KUBECONFIG is the hub's file if it is not KUBECONFIG; contexts are then those of the files.
MANAGED_CLUSTER               ?= $(or $(MANAGED_CLUSTER_NAME),cluster1)
KLUSTERLET_NAME               ?= klusterlet
HUB_KUBECONFIG                ?=
HUB_KUBECONFIG_CONTEXT        ?= $(if $(HUB_KUBECONFIG),$(shell kubectl config current-context --kubeconfig=$(HUB_KUBECONFIG)))
KLUSTERLET_KUBECONFIG_CONTEXT ?= $(if $(HUB_KUBECONFIG),$(shell kubectl config current-context),$(HUB_KUBECONFIG_CONTEXT))
BOTH_FILES     = $(if $(HUB_KUBECONFIG),KUBECONFIG=$(or $(KUBECONFIG),$(HOME)/.kube/config):$(HUB_KUBECONFIG) )
HUB_CONTEXT    = $(if $(HUB_KUBECONFIG_CONTEXT),--context $(HUB_KUBECONFIG_CONTEXT))
SPOKE_CONTEXT  = $(if $(KLUSTERLET_KUBECONFIG_CONTEXT),--context $(KLUSTERLET_KUBECONFIG_CONTEXT))
JOIN_HUB       = --hub-context $(or $(HUB_KUBECONFIG_CONTEXT),$$(kubectl config current-context))
OF_KLUSTERLET  = $(if $(filter-out klusterlet,$(KLUSTERLET_NAME)), --klusterlet $(KLUSTERLET_NAME))
OF_IMAGE       = $(if $(IMAGE_REGISTRY)$(IMAGE_TAG), --image $(or $(IMAGE_REGISTRY),ghcr.io/kubectl-ocm)/$(1):$(or $(IMAGE_TAG),$(VERSION)))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## Explain every target
	@awk 'BEGIN {FS = ":.*## "} \
		/^## / {printf "\n%s\n", substr($$0, 4)} \
		/^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

## Try it

.PHONY: demo
demo: build ## Start a hub and two managed clusters on this machine, and an application on both
	@$(GOBUILD) -o $(BIN)/webdemo ./examples/webdemo
	@$(GOBUILD) -o $(BIN)/demo ./examples/demo
	@$(BIN)/demo up

.PHONY: demo-down
demo-down: ## Stop what "make demo" started, and clean up after it
	@mkdir -p $(BIN)
	@$(GOBUILD) -o $(BIN)/demo ./examples/demo
	@$(BIN)/demo down

## Build

.PHONY: build
build: ## Build the plugin and the controllers into bin/
	@mkdir -p $(BIN)
	@for p in plugins/kubectl-ocm controllers/ocm-hub controllers/ocm-agent; do \
		echo "building $(BIN)/$${p##*/}" && $(GOBUILD) -o $(BIN)/$${p##*/} ./$$p || exit 1; done

.PHONY: images
images: ## Build the container images as OCI archives into dist/, without a container engine
	go run ./tools/image -version $(VERSION) -out $(DIST)/images $(IMAGES)

.PHONY: charts
charts: ## Package the Helm charts into dist/
	go run ./tools/chart -out $(DIST)/charts config/helm/cluster-manager config/helm/klusterlet

.PHONY: bundles
bundles: ## Write the bundles of the Operator Lifecycle Manager into dist/
	go run ./tools/bundle -version $(VERSION) -out $(DIST)/bundles

.PHONY: release
release: ## Build archives, bills of materials and checksums into dist/, signed by KEY, and rewrite krew-index/
	go run ./tools/release -version $(VERSION) -commit "$(COMMIT)" -out $(DIST)/release -manifest $(MANIFEST) $(if $(KEY),-key "$(KEY)") $(ARGS)

.PHONY: kubernetes
kubernetes: ## Build the Kubernetes of the demo and the tests, once (minutes; kept in the user's cache)
	@go run -C test/kubernetes ./build

.PHONY: control-plane
control-plane: ## Build only the part of Kubernetes that needs no nodes (all that "make test" needs)
	@go run -C test/kubernetes ./build -control-plane

.PHONY: kubernetes-release
kubernetes-release: ## Compress the programs of Kubernetes that playgrounds download into dist/kubernetes, if they are what the checksums name (ARCH=arm64: those of another architecture)
	@go run -C test/kubernetes ./build $(if $(ARCH),-arch $(ARCH)) -control-plane -release $(abspath $(DIST))/kubernetes

.PHONY: clean
clean: ## Remove bin/ and dist/
	rm -rf $(BIN) $(DIST)

## Check

.PHONY: check
check: fmt vet lint unit budgets ## Run the fast checks: format, vet, lint, unit tests, budgets

.PHONY: fmt
fmt: ## Fail if a file is not gofmt-ed
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
		if [ -n "$$files" ]; then echo "not gofmt-ed:"; echo "$$files"; exit 1; fi

.PHONY: vet
vet: ## Run go vet, with the tests of every build tag
	go vet -tags e2e,perf,baseline ./...

.PHONY: lint
lint: $(GOLANGCI) ## Run golangci-lint, built once from the version in tools/golangci.mod
	$(GOLANGCI) run ./...

$(GOLANGCI):
	@echo "building golangci-lint: some minutes, once"
	@mkdir -p $(@D)
	CGO_ENABLED=0 GOFLAGS= go build -modfile=tools/golangci.mod -trimpath -ldflags "-s -w" -o $@ \
		github.com/golangci/golangci-lint/v2/cmd/golangci-lint

GOVULNCHECK = v1.9.0
VULNDB      = v0.0.0-20261105234957-e22db6528018

.PHONY: vulnerabilities
vulnerabilities: ## Look for known vulnerabilities in what the programs call (the database is a Go module, as of VULNDB)
	@db=$$(cd / && go mod download -json golang.org/x/vulndb@$(VULNDB) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') && \
		go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) -db "file://$$db/data/osv" ./controllers/... ./plugins/...

.PHONY: budgets
budgets: build ## Measure the source and the binaries against their budgets
	@$(GOBUILD) -o $(BIN)/managed-serviceaccount ./controllers/managed-serviceaccount
	go run ./tools/budgets -bin $(BIN)

.PHONY: deps
deps: ## Record the dependency lists of the binaries (tools/budgets/deps) after an intended change
	go run ./tools/budgets -update

.PHONY: generate
generate: ## Regenerate all generated files: deepcopy functions and CRDs from the types in pkg/apis, docs/cli, tables of docs/reference, bundles of config/olm, versions
	$(CONTROLLER_GEN) object paths=./pkg/apis/...
	$(CONTROLLER_GEN) crd paths=./pkg/apis/... output:crd:dir=config/crd
	go run ./tools/reference
	@go run ./tools/bundle -version $(VERSION) >/dev/null
	@for f in $(STAMPED); do \
		sed -E 's/^(.*: ?v?)[^ :]+ # VERSION$$/\1$(VERSION:v%=%) # VERSION/' $$f > $$f.new && cat $$f.new > $$f && rm $$f.new || exit 1; done

# Compares the tree before and after, so that it also works with uncommitted changes.
TREE = git ls-files -z -co --exclude-standard | sort -zu | xargs -0 cksum 2>/dev/null

.PHONY: verify
verify: ## Fail if "make generate" or "go mod tidy" would change a file
	@mkdir -p $(BIN)
	@$(TREE) > $(BIN)/tree.before || true
	@$(MAKE) --no-print-directory generate
	@$(TREE) > $(BIN)/tree.after || true
	@diff $(BIN)/tree.before $(BIN)/tree.after || { echo "generated files were not up to date: commit what make generate wrote"; exit 1; }
	go mod tidy -diff

## Test

.PHONY: test
test: control-plane ## Run every test that needs no root: unit, contract, and integration on real control planes
	@echo "race detector: $(if $(RACE),on where goroutines are but for $(PROCESSES),off (no C compiler found))"
	@# The suites of processes wait more than they compute, so all others run beside them. Their
	@# output follows in one piece: mixed, it would be neither text nor the lines of -json.
	@mkdir -p $(BIN)
	@$(BATCH) $(MAKE) --no-print-directory -k -j2 test-processes test-others; status=$$?; cat $(BIN)/test-others.log; exit $$status
	go test -C test/kubernetes $(ARGS) ./build

.PHONY: test-processes
test-processes: ## Run only the suites that run our programs as processes
	@known=$$(go list $(PKG)) || exit 1; \
		all=$$(for suite in $(SUITES); do echo "$$known" | grep "/test/$$suite$$"; done); [ -n "$$all" ] || exit 0; \
		GOGC=400 go test -p 3 -parallel 2 -shuffle=on -timeout 55m $(ARGS) $$all

# The longest suite begins first, so that nothing waits for it alone at the end.
.PHONY: test-others
test-others: ## Run only the other packages, into bin/test-others.log
	@exec >$(BIN)/test-others.log 2>&1; all=$$(go list -f '{{.Dir}}' $(PKG)) || exit 1; \
		longest=; raced=; plain=; status=0; \
		for dir in $$(echo "$$all" | grep -vE '/($(PROCESSES))$$'); do \
			if [ "$$dir" = $(CURDIR)/test/integration/work ]; then longest=$$dir; \
			elif grep -qE '$(CONCURRENT)' "$$dir"/*.go; then raced="$$raced $$dir"; else plain="$$plain $$dir"; fi; done; \
		run() { GOGC=400 go test -p 3 -shuffle=on -timeout 55m "$$@" || status=1; }; \
		[ -z "$$longest$$raced" ] || $(if $(RACE),CGO_ENABLED=1 )run $(if $(RACE),$(RACEFLAGS) )$(ARGS) $$longest $$raced; \
		[ -z "$$plain" ] || run $(ARGS) $$plain; \
		exit $$status

.PHONY: unit
unit: ## Run only the tests that start no Kubernetes
	go test $(ARGS) $$(go list ./... | grep -v /test/)

# The packages whose fuzz targets "make fuzz" runs, and for how long each.
FUZZTIME ?= 10m
FUZZPKG  ?= $(shell git grep -l '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u)

.PHONY: fuzz
fuzz: ## Look for input that breaks a parser, for FUZZTIME with each target of FUZZPKG (a find becomes a file in testdata/fuzz: commit it)
	@status=0; for dir in $(FUZZPKG); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$dir/*_test.go); do \
			echo "$$dir $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $(ARGS) ./$$dir || status=1; done; done; exit $$status

# How many random walks "make faults" takes, and the seed with which to take the same ones again (0: another one each time).
SEEDS ?= 100
SEED  ?= 0

.PHONY: faults
faults: control-plane ## Take SEEDS random walks through the life of works, and whole processes through bad weather (minutes; SEED=N repeats)
	go test -count=1 -v -timeout 60m -run '^TestRandomWalks' $(ARGS) ./test/integration/work -bad-weather -rapid.checks=$(SEEDS) -rapid.seed=$(SEED)
	go test -count=1 -v -timeout 60m -run 'InBadWeather' $(ARGS) ./test/integration/agent ./test/integration/hub -weather-seed=$(SEED)

# How many tunnels "make soak" cuts, and for how long; SEED determines which connections.
TUNNELS ?= 200
SOAK    ?= 10m

.PHONY: soak
soak: control-plane ## Cut connections of TUNNELS tunnels at random for SOAK, and compare what is held before and after
	go test -count=1 -v -timeout 0 -run '^TestTunnelsThatAreCutLeaveNothing$$' $(ARGS) ./test/integration/proxy -tunnels $(TUNNELS) -soak $(SOAK) -soak-seed $(SEED)

.PHONY: integration
integration: control-plane ## Run only the tests of the loops on real control planes
	go test -shuffle=on -timeout 20m $(ARGS) ./test/integration/...

.PHONY: perf
perf: control-plane ## Measure against the budgets of test/perf/*.yaml (on an otherwise idle machine; ARGS=-short: smaller fleets)
	go test -tags perf -count=1 -p 1 -v -timeout 30m $(ARGS) ./test/perf/...
	go test -tags perf -count=1 -p 1 -v -timeout 10m -run '^(TestResidentMemory|TestTheWayThroughTheHubStaysWithinItsBudgets)$$' $(ARGS) ./test/integration/agent ./test/integration/proxy

.PHONY: perf-hosting
perf-hosting: control-plane ## Measure the operator of a hundred hosted agents (minutes; ARGS=-short: twenty)
	go test -tags perf -count=1 -v -timeout 30m -run '^TestResidentMemoryOfAnOperator$$' $(ARGS) ./test/integration/agent

.PHONY: perf-accounts
perf-accounts: control-plane ## Count what a thousand ManagedServiceAccounts of one cluster cost (minutes; ARGS=-short: a hundred)
	go test -tags perf -count=1 -v -timeout 30m -run '^TestAThousandAccountsOfAClusterStayWithinTheirBudgets$$' $(ARGS) ./test/integration/serviceaccount

.PHONY: perf-tunnels
perf-tunnels: control-plane ## Measure the hub with four thousand idle tunnels (minutes; ARGS=-short: five hundred)
	go test -tags perf -count=1 -v -timeout 30m -run '^TestIdleTunnelsOfALargeFleet$$' $(ARGS) ./test/integration/proxy

# The fleet of "make scale": how many clusters, how long it is observed at rest, how long the hub
# is away, and where the report goes. SEED determines what differs between the clusters.
CLUSTERS ?= 1000
STEADY   ?= 30m
OUTAGE   ?= 1m
REPORT   ?= docs/scale/$(CLUSTERS)-clusters

.PHONY: scale
scale: control-plane ## Take a hub through the life of CLUSTERS simulated clusters, and write the report (hours for 10,000; STEADY=2m for a trial)
	go test -tags perf -count=1 -v -timeout 0 -run '^TestAFleet$$' $(ARGS) ./test/scale -clusters $(CLUSTERS) -steady $(STEADY) -outage $(OUTAGE) -seed $(SEED) -out $(abspath $(REPORT))

.PHONY: scale-alone
scale-alone: control-plane ## Measure what the role bindings of up to 10,000 clusters cost kube-apiserver alone (minutes)
	go test -tags perf -count=1 -v -timeout 30m -run '^TestTheAPIServerAlone$$' ./test/scale -out $(abspath docs/scale)

.PHONY: e2e
e2e: kubernetes ## Test on clusters with real nodes, and in a browser (Linux, root, containerd, chromium; see CONTRIBUTING.md)
	@# The two halves mostly wait, each for clusters of its own, so they run side by side. The
	@# output of the second follows in one piece.
	@mkdir -p $(BIN)
	@$(MAKE) --no-print-directory -k -j$(HALVES) e2e-registration e2e-others; status=$$?; cat $(BIN)/e2e-others.log; exit $$status

# Nodes watch files. Linux allows 128 watchers a user by default, which two fleets can exceed.
HALVES = $(shell test "$$(cat /proc/sys/fs/inotify/max_user_instances 2>/dev/null || echo 0)" -ge 512 && echo 2 || echo 1)
END_TO_END := go test -tags e2e -count=1 -p 1 -timeout 40m $(ARGS)
REGISTRATION := ^(TestRegistration|TestAddOns|TestFirstStepsByKubectlAlone)$$

.PHONY: e2e-registration
e2e-registration: ## Run only the half of "make e2e" that registers clusters in every way, and the first steps
	$(END_TO_END) -run '$(REGISTRATION)' ./test/e2e

.PHONY: e2e-others
e2e-others: ## Run only the other half of "make e2e", into bin/e2e-others.log
	$(END_TO_END) -skip '$(REGISTRATION)' ./test/harness/nodes/... ./test/harness/browser ./test/e2e >$(BIN)/e2e-others.log 2>&1

## Deploy to your own clusters (MANAGED_CLUSTER_NAME, KLUSTERLET_NAME, HUB_KUBECONFIG, HUB_KUBECONFIG_CONTEXT, KLUSTERLET_KUBECONFIG_CONTEXT, IMAGE_REGISTRY, IMAGE_TAG)

.PHONY: deploy
deploy: deploy-hub deploy-spoke ## Deploy hub and agent; then approve the CSR and accept the ManagedCluster

.PHONY: deploy-hub
deploy-hub: build ## Deploy the hub
	$(BOTH_FILES)$(BIN)/kubectl-ocm hub init $(HUB_CONTEXT)$(call OF_IMAGE,ocm-hub)

.PHONY: deploy-spoke
deploy-spoke: build ## Deploy the agent of MANAGED_CLUSTER_NAME
	$(BOTH_FILES)$(BIN)/kubectl-ocm join $(MANAGED_CLUSTER) $(SPOKE_CONTEXT) $(JOIN_HUB)$(OF_KLUSTERLET)$(call OF_IMAGE,ocm-agent)

.PHONY: deploy-example
deploy-example: ## Deploy the example add-on helloworld on the hub; then "kubectl ocm addon enable helloworld -c MANAGED_CLUSTER"
	$(BOTH_FILES)kubectl $(HUB_CONTEXT) apply -f examples/helloworld-addon/deploy.yaml

.PHONY: clean-example
clean-example: build ## Remove the example add-on from every cluster, then from the hub
	$(BOTH_FILES)$(BIN)/kubectl-ocm addon delete helloworld $(HUB_CONTEXT) --yes
	$(BOTH_FILES)kubectl $(HUB_CONTEXT) delete -f examples/helloworld-addon/deploy.yaml --ignore-not-found

.PHONY: clean-deploy
clean-deploy: clean-spoke clean-hub ## Remove agent and hub

.PHONY: clean-spoke
clean-spoke: build ## Remove the agent of MANAGED_CLUSTER_NAME: its Klusterlet, then the rest
	$(BOTH_FILES)$(BIN)/kubectl-ocm unjoin $(MANAGED_CLUSTER) $(SPOKE_CONTEXT) $(JOIN_HUB)$(OF_KLUSTERLET) --yes

.PHONY: clean-hub
clean-hub: build ## Remove the hub: its ClusterManager, then the rest
	$(BOTH_FILES)$(BIN)/kubectl-ocm hub clean $(HUB_CONTEXT) --yes
