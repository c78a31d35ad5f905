# `make` prints this file's targets. Only Go is needed to build, test and run the demo; tools are built from tools/*/go.mod.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

BIN      := bin
E2E      := e2e/conformance e2e/prometheus e2e/cluster e2e/chart
MODULES   = . $(E2E) tools/image
FUZZTIME ?= 10s
BENCH    ?= .
ARGS     ?=
VERSION  ?=
DIST     := dist

# Everything is built without cgo, as the image and e2e/cluster are, so that make compiles no package
# twice. Only the race detector and vale need it.
export CGO_ENABLED = 0
race $(BIN)/vale: export CGO_ENABLED = 1

.PHONY: help
help: ## Print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##### The product

.PHONY: build
build: ## Build every command of cmd/ into bin/
	go build -trimpath -o $(BIN)/ ./cmd/...

# tools/image builds wva with the same settings as make build, so they share compiled packages.
.PHONY: image
image: ## Write the container image as an OCI layout to dist/image; VERSION=v1.2.3 names the version
	go run -C tools/image . --output $(CURDIR)/$(DIST)/image --version "$(VERSION)" $(ARGS)

.PHONY: image-tree
image-tree: ## Write the image's files for this machine's processor to dist/tree
	go run -C tools/image . --tree $(CURDIR)/$(DIST)/tree --platform linux/$$(go env GOARCH) --version "$(VERSION)" $(ARGS)

# cmd/wva is built as tools/image builds it, so its binaries are those of the image.
.PHONY: binaries
binaries: ## Write the binaries of a release, with checksums, to dist/binaries; VERSION=v1.2.3 names the version
	@rm -rf $(DIST)/binaries; \
	for target in wva-linux-amd64 wva-linux-arm64 wvactl-{linux,darwin}-{amd64,arm64}; do \
		IFS=- read -r command os arch <<< "$$target"; \
		echo "building $$target"; \
		GOOS=$$os GOARCH=$$arch go build -trimpath -buildvcs=false \
			-ldflags '-s -w -X main.version=$(VERSION)' -o $(DIST)/binaries/$$target ./cmd/$$command; \
	done; \
	cd $(DIST)/binaries && sha256sum * > SHA256SUMS

.PHONY: demo
demo: ## Run the product against a simulated fleet; ARGS="--speed 0" passes flags on
	go run ./cmd/wvactl demo $(ARGS)

EVALUATED = ramp step trickle-after-burst on-off spike long-prompts long-outputs llm-d-episode
.PHONY: evaluate
evaluate: ## Compare the policies on the named loads with three seeds, within an hour on two cores; ARGS="-o csv" passes flags on
	go run ./cmd/wvactl simulate $(addprefix --load ,$(EVALUATED)) --sweep --seeds 3 \
		--policy wva,wva-percentile,static,hpa-queue,hpa-inflight,hpa-rate $(ARGS)

##### Tests

.PHONY: test
test: ## Run the tests
	go test ./...

.PHONY: race
race: ## Run the tests under the race detector, but those that take long there (-short)
	@# The detector of Go 1.26 itself crashes at times beside testing/synctest (golang/go issue 78156):
	@# with a failed check, or with a segmentation violation in the runtime, which is no panic. That
	@# is no result of a test: such packages run again, at most five times; the others are cached.
	@log=$$(mktemp); \
	for try in 1 2 3 4 5 6; do \
		echo "go test -race -short -timeout 60m ./..."; \
		if go test -race -short -timeout 60m ./... 2>&1 | tee "$$log"; then exit 0; fi; \
		if ! grep -qE 'ThreadSanitizer: CHECK failed|^SIGSEGV: segmentation violation' "$$log" || grep -qE 'DATA RACE|^ *--- FAIL|^panic:' "$$log"; then exit 1; fi; \
		echo "the race detector crashed"; \
	done; \
	exit 1

.PHONY: conformance
conformance: ## Drive the server with KEDA's own client code (first build takes minutes)
	go test -C e2e/conformance -count=1 ./...

.PHONY: e2e-prometheus
e2e-prometheus: ## Drive the server against a real Prometheus (PROMETHEUS names its binary; skipped without one, unless E2E_REQUIRED)
	@command -v "$${PROMETHEUS:-prometheus}" >/dev/null || echo "e2e-prometheus: there is no Prometheus"
	go test -C e2e/prometheus -count=1 -parallel 8 ./...

.PHONY: chart
chart: $(BIN)/helm check-manifests ## Lint and render the Helm chart with many values; ARGS=-update rewrites its pages
	go test -C e2e/chart -count=1 ./... $(ARGS)

.PHONY: cluster-build
cluster-build: ## Build etcd, Kubernetes, KWOK and KEDA for e2e-cluster and cluster (a cold build takes 10 to 40 minutes)
	go run -C e2e/cluster ./cmd/build

.PHONY: e2e-cluster
e2e-cluster: cluster-build $(BIN)/helm ## Drive the server beside a real API server, KEDA and HPA (Linux; skipped without user namespaces, unless E2E_REQUIRED)
	go test -C e2e/cluster -count=1 -timeout 30m ./...

.PHONY: scale
scale: cluster-build ## Measure the server beside an API server with 5,000 ScaledObjects and 25,000 pods (some 15 minutes); ARGS="-models 400" for others
	go test -C e2e/cluster -count=1 -v -timeout 60m -run TestServerAtScale ./scale -args -models 1000 -nodes 2000 -streams 20000 -observed 2m $(ARGS)

.PHONY: cluster
cluster: cluster-build ## Run such a cluster until Ctrl-C; ARGS=--play installs wva, Prometheus and a model under load
	go run -C e2e/cluster ./cmd/cluster $(ARGS)

.PHONY: grid
grid: ## Compare the sizing of a replica with simulated engines over eight seeds (half an hour); ARGS=-update rewrites docs/math/sizing-grid.md
	go test -count=1 -timeout 60m -v -run 'TestSizingIsAccurate|TestTruth|TestReplayMatchesTheNaiveEngine' ./analyzer/queueing -grid $(ARGS)

.PHONY: grid-part
grid-part: ## Compare the sizing with three of the seeds on every eleventh cell of the grid (a minute or two)
	go test -count=1 -run '^TestSizingIsAccurateOnTheGrid$$' ./analyzer/queueing -grid -grid.seeds 3 -grid.every 11 $(ARGS)

.PHONY: inputs
inputs: ## Compare the sizing from incomplete inputs with simulated engines (ten minutes); ARGS=-update rewrites docs/math/sizing-inputs.md
	go test -count=1 -timeout 60m -v -run 'TestInputsOnAllCells' ./analyzer/queueing -inputs $(ARGS)

.PHONY: compare
compare: ## Compare the solver with cbc and glpsol (ten minutes; Debian's coinor-cbc and glpk-utils); ARGS=-update rewrites docs/math/solver-comparison.md
	go test -count=1 -timeout 90m -v -run 'TestFleetsAgainstOtherSolvers|TestFragmentedFleets|TestMinimumsAreMet' ./solver -compare $(ARGS)

.PHONY: adversary
adversary: ## Let a hostile tenant play against another for 90 s; ARGS="-adversary.for 8h -adversary.seed 7" plays on
	go test -count=1 -timeout 0 -v -run '^TestAdversary$$' ./app -args -adversary.for 90s $(ARGS)

.PHONY: image-test
image-test: ## Build the image twice, compare, and run its binary as its user (root only)
	go test -C tools/image -count=1 ./...

.PHONY: arm64
arm64: ## Check that the solver makes the same plans on arm64 (skipped without qemu-aarch64, Debian's qemu-user)
	@command -v qemu-aarch64 >/dev/null || { echo "arm64: there is no qemu-aarch64; skipped"; exit 0; }; \
	test=$$(mktemp); trap 'rm -f "$$test"' EXIT; \
	GOARCH=arm64 go test -c -o "$$test" ./solver; \
	cd solver && qemu-aarch64 "$$test" -test.v -test.run TestPlansAreTheSameOnEveryMachine

.PHONY: bench
bench: ## Run the benchmarks that match BENCH (default: all)
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./...

# go test lists a package's targets first and its "ok" line after them; one call fuzzes one target.
# Without a limit, one input of a slow target is minimised for longer than FUZZTIME.
.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default: 10s)
	@targets=$$(go test -list '^Fuzz' ./... \
		| awk '/^Fuzz/ {name[n++] = $$1} /^ok/ {for (i = 0; i < n; i++) print $$2, name[i]; n = 0}'); \
	[ -n "$$targets" ] || { echo "no fuzz target found"; exit 1; }; \
	while read -r package name; do \
		echo "$$package $$name"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$package" </dev/null; \
	done <<< "$$targets"

##### Code

.PHONY: lint
lint: vet golangci deadcode prose buf-lint buf-breaking ## Run go vet, golangci-lint, deadcode, vale, buf lint and buf breaking

.PHONY: vet
vet:
	@for module in $(MODULES); do echo "go vet -C $$module ./..."; go vet -C $$module ./...; done

.PHONY: golangci
golangci: $(BIN)/golangci-lint
	@failed=0; for module in $(MODULES); do \
		echo "golangci-lint run ./... in $$module"; \
		(cd $$module && $(CURDIR)/$(BIN)/golangci-lint run --config $(CURDIR)/.golangci.yml ./...) || failed=1; \
	done; exit $$failed

# A function that no command reaches is removed, or used.
.PHONY: deadcode
deadcode: $(BIN)/deadcode ## Fail if a function is reached by no command
	@echo "deadcode ./cmd/..."; \
	unreachable=$$($(BIN)/deadcode -test=false ./cmd/...); \
	[ -z "$$unreachable" ] || { echo "$$unreachable"; exit 1; }

# The rules are in .vale; that of the words is written from docs/glossary.md.
.PHONY: prose
prose: $(BIN)/vale ## Lint Markdown pages and comments by the glossary
	@$(BIN)/vale --no-global test .vale; \
	find . \( -name .git -o -name $(BIN) \) -prune -o -name '*.pb.go' -o \
		\( -name '*.md' -o -name '*.go' -o -name '*.proto' \) -print0 \
		| xargs -0 $(BIN)/vale --no-global --no-wrap --output line

.PHONY: buf-lint
buf-lint: $(BIN)/buf
	$(BIN)/buf lint

# The API is compared with the latest tag before this commit: before the first release it may change.
# BREAKING_BASE names another commit.
.PHONY: buf-breaking
buf-breaking: $(BIN)/buf
	@base="$(BREAKING_BASE)"; \
	if [ -z "$$base" ]; then base=$$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || true); fi; \
	if [ -z "$$base" ]; then echo "buf breaking: there is no tag to compare with; skipped"; exit 0; fi; \
	old=$$(mktemp -d); trap 'rm -rf "$$old"' EXIT; \
	git archive "$$base" buf.yaml proto | tar -x -C "$$old"; \
	echo "buf breaking: comparing with $$base"; \
	$(BIN)/buf breaking --against "$$old"

.PHONY: generate
generate: $(BIN)/buf $(BIN)/protoc-gen-go $(BIN)/protoc-gen-go-grpc $(BIN)/protoc-gen-apidoc ## Generate the Go code of proto/ and docs/reference/api.md
	$(BIN)/buf generate

.PHONY: check-generated
check-generated: $(BIN)/buf $(BIN)/protoc-gen-go $(BIN)/protoc-gen-go-grpc $(BIN)/protoc-gen-apidoc ## Fail if generated code is not up to date
	@fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	$(BIN)/buf generate --output "$$fresh"; \
	diff -r --exclude='*.proto' "$$fresh/proto" proto && diff "$$fresh/docs/reference/api.md" docs/reference/api.md || { echo "generated code is out of date; run make generate"; exit 1; }

.PHONY: manifests
manifests: $(BIN)/helm ## Write deploy/wva.yaml, the default rendering of the Helm chart
	HELM=$(BIN)/helm deploy/chart/render .

.PHONY: check-manifests
check-manifests: $(BIN)/helm ## Fail if deploy/wva.yaml is not up to date
	@fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	HELM=$(BIN)/helm deploy/chart/render "$$fresh"; \
	for file in $$(cd "$$fresh" && find . -name '*.yaml'); do \
		diff -u "$$file" "$$fresh/$$file" || { echo "$$file is out of date; run make manifests"; exit 1; }; \
	done

.PHONY: check-modules
check-modules: ## Fail if go.mod is not tidy, or a module differs from go.sum
	@for module in $(MODULES); do echo "module $$module"; go mod -C $$module verify; go mod -C $$module tidy -diff; done

##### Everything

# The tests come last, so that the output ends with their result.
.PHONY: check
check: build lint check-generated check-modules chart image-test arm64 adversary grid-part conformance e2e-prometheus e2e-cluster race ## Run the rest of CI, after make test

.PHONY: clean
clean: ## Remove bin/ and dist/
	rm -rf $(BIN) $(DIST)

##### Tools: one module each, rebuilt when its go.mod changes

# As Helm's own Makefile does: without a cluster, the version of Kubernetes is that of its client-go.
$(BIN)/helm: LINK = $(foreach part,Major=1 Minor=$(shell sed -n 's/^\tk8s.io\/client-go v0\.\([0-9]*\)\..*/\1/p' tools/helm/go.mod),-X helm.sh/helm/v3/pkg/chartutil.k8sVersion$(part) -X helm.sh/helm/v3/pkg/lint/rules.k8sVersion$(part))

$(BIN)/protoc-gen-apidoc: tools/protoc-gen-apidoc/main.go

$(BIN)/%: tools/%/go.mod
	@mkdir -p $(BIN)
	go build -C tools/$* -ldflags '$(LINK)' -o $(CURDIR)/$@ "$$(sed -n 's/^tool //p' $<)"
	@touch $@
