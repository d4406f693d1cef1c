# SPDX-License-Identifier: Apache-2.0
# "make help" lists the targets. Requires Go, git, make and a POSIX shell.

VERSION := $(shell cat VERSION)
MODULE  := github.com/kubectl-ocm/kubectl-ocm
BIN     := bin
DIST    := dist

# The packages that "make test" tests, and additional flags for "go test", for example
# make test PKG=./pkg/fleet/token ARGS='-run TestAToken -v'
PKG  ?= ./...
ARGS ?=

GOBUILD = CGO_ENABLED=0 go build -trimpath -buildvcs=false \
	-ldflags "-s -w -X $(MODULE)/internal/version.stamped=$(VERSION)"

# Suites that run our programs as separate processes: the race detector would see only the
# test's own requests, and take a quarter of the time.
PROCESSES = test/integration/(agent|fleet|hub|playground)

# The race detector needs a working C compiler.
RACE = $(shell echo 'int main(void){return 0;}' | $$(go env CC) -x c -o /dev/null - >/dev/null 2>&1 && echo -race)

# The krew manifest that "make release" rewrites.
MANIFEST ?= krew-index/plugins/ocm.yaml

# The commit that is released; empty if there are changes besides the manifest.
COMMIT = $(shell git diff --quiet HEAD -- . ':!$(MANIFEST)' 2>/dev/null && git rev-parse HEAD)

# The images, each with the program in it.
IMAGES = ocm-hub=./controllers/ocm-hub ocm-agent=./controllers/ocm-agent webdemo=./examples/webdemo \
	helloworld-addon=./examples/helloworld-addon

CACHE     = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kubectl-ocm
GOLANGCI  = $(CACHE)/tools/golangci-lint-$(shell awk '/golangci-lint\/v2 v/{print $$2}' tools/golangci.mod)-$(shell go env GOVERSION)

# The files in which "make generate" sets the version of the lines marked with it.
STAMPED = config/agent/operator/kustomization.yaml config/hub/kustomization.yaml config/agent/kustomization.yaml config/helm/cluster-manager/Chart.yaml config/helm/klusterlet/Chart.yaml

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
demo: build control-plane ## Start a hub and two managed clusters on this machine, and an application on both
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
release: ## Build the plugin's archives and checksums into dist/, and rewrite krew-index/
	go run ./tools/release -version $(VERSION) -commit "$(COMMIT)" -out $(DIST)/release -manifest $(MANIFEST) $(ARGS)

.PHONY: kubernetes
kubernetes: ## Build the Kubernetes of the demo and the tests, once (minutes; kept in the user's cache)
	@go run -C test/kubernetes ./build

.PHONY: control-plane
control-plane: ## Build only the part of Kubernetes that needs no nodes (all that "make test" needs)
	@go run -C test/kubernetes ./build -control-plane

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
	go vet -tags e2e,perf ./...

.PHONY: lint
lint: $(GOLANGCI) ## Run golangci-lint, built once from the version in tools/golangci.mod
	$(GOLANGCI) run ./...

$(GOLANGCI):
	@echo "building golangci-lint: some minutes, once"
	@mkdir -p $(@D)
	CGO_ENABLED=0 GOFLAGS= go build -modfile=tools/golangci.mod -trimpath -ldflags "-s -w" -o $@ \
		github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: budgets
budgets: build ## Measure the source and the binaries against their budgets
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
		sed -E 's/(: v?)[^ ]+ # VERSION$$/\1$(VERSION:v%=%) # VERSION/' $$f > $$f.new && cat $$f.new > $$f && rm $$f.new || exit 1; done

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
	@echo "race detector: $(if $(RACE),on but for $(PROCESSES),off (no C compiler found))"
	@# The suites of processes wait more than they compute, so all others run beside them. Their
	@# output follows in one piece: mixed, it would be neither text nor the lines of -json.
	@mkdir -p $(BIN)
	@$(MAKE) --no-print-directory -k -j2 test-processes test-others; status=$$?; cat $(BIN)/test-others.log; exit $$status
	go test -C test/kubernetes $(ARGS) ./build

.PHONY: test-processes
test-processes: ## Run only the suites that run our programs as processes
	@all=$$(go list $(PKG)) || exit 1; all=$$(echo "$$all" | grep -E '/($(PROCESSES))$$') || exit 0; \
		go test -p 3 -parallel 3 -shuffle=on -timeout 40m $(ARGS) $$all

# The longest suite begins first, so that nothing waits for it alone at the end.
.PHONY: test-others
test-others: ## Run only the other packages, into bin/test-others.log
	@exec >$(BIN)/test-others.log 2>&1; all=$$(go list $(PKG)) || exit 1; \
		all=$$(echo "$$all" | grep -vE '/($(PROCESSES))$$') || exit 0; longest=$$(echo "$$all" | grep '/test/integration/work$$'); \
		$(if $(RACE),CGO_ENABLED=1) go test -p 2 $(RACE) -shuffle=on -timeout 40m $(ARGS) \
			$$longest $$(echo "$$all" | grep -v '/test/integration/work$$')

.PHONY: unit
unit: ## Run only the tests that start no Kubernetes
	go test $(ARGS) $$(go list ./... | grep -v /test/)

.PHONY: integration
integration: control-plane ## Run only the tests of the loops on real control planes
	go test -shuffle=on -timeout 20m $(ARGS) ./test/integration/...

.PHONY: perf
perf: control-plane ## Measure against the budgets of test/perf/*.yaml (on an otherwise idle machine; ARGS=-short: smaller fleets)
	go test -tags perf -count=1 -p 1 -v -timeout 30m $(ARGS) ./test/perf/...
	go test -tags perf -count=1 -p 1 -v -timeout 10m -run '^TestResidentMemory$$' $(ARGS) ./test/integration/agent

.PHONY: e2e
e2e: kubernetes ## Test on clusters with real nodes (Linux, root, containerd; see CONTRIBUTING.md)
	go test -tags e2e -count=1 -p 1 -timeout 40m $(ARGS) ./test/harness/nodes/... ./test/e2e/...

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
