# agent-container: build, demo and tests. "make help" lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help engine demo build guest test unit e2e lint bench golden clean

# A version from git where there is one; the guest carries none, so that the
# images, which are named by content, do not change with every commit.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
GOFLAGS_STATIC := -trimpath -buildvcs=false
export CGO_ENABLED ?= 0

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-10s %s\n", $$1, $$2}'

engine: ## make sure a Docker engine with compose and buildx answers
	@tests/engine.sh

demo: build ## run a real agent on a small repository, in a container
	@tests/demo.sh

build: guest ## build build/agent-container, one static binary with everything in it
	@mkdir -p build
	go build $(GOFLAGS_STATIC) -ldflags '-s -w -X github.com/agent-container/agent-container/cli.release=$(VERSION)' -o build/agent-container .

guest: ## build the program inside the images, for both architectures
	GOOS=linux GOARCH=amd64 go build $(GOFLAGS_STATIC) -ldflags '-s -w' -o images/guest/agent-container-guest-amd64 ./guest
	GOOS=linux GOARCH=arm64 go build $(GOFLAGS_STATIC) -ldflags '-s -w' -o images/guest/agent-container-guest-arm64 ./guest

test: unit e2e ## all tests: unit, scripts, real engine

# The race detector needs a C compiler, which nothing else here does.
RACE := $(if $(shell command -v $${CC:-gcc} 2>/dev/null),-race)

unit: guest ## tests that need no engine, with the race detector where there is a C compiler
	@$(if $(RACE),:,echo "unit: no C compiler: the race detector is off")
	CGO_ENABLED=$(if $(RACE),1,0) go test $(RACE) -shuffle=on -timeout 25m $$(go list ./... | grep -v '/guest/gateway$$')
	CGO_ENABLED=$(if $(RACE),1,0) go test $(RACE) -shuffle=on -timeout 25m ./guest/gateway # its rows keep to times: nothing beside it

e2e: build ## tests on the real engine with the real agents
	AGENT_CONTAINER_E2E=1 go test -count=1 -timeout 60m -parallel 4 ./tests/e2e/...

lint: guest ## vet, staticcheck, shellcheck, formatting
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
		if [ -n "$$unformatted" ]; then echo "gofmt would change: $$unformatted"; exit 1; fi
	go vet ./...
	go tool staticcheck ./...
	@command -v shellcheck >/dev/null || { echo "lint: shellcheck is not installed"; exit 1; }
	shellcheck $$(git ls-files --cached --others --exclude-standard | while read -r f; do [ -f "$$f" ] && head -c 64 "$$f" | grep -qE '^#!.*\b(ba|da)?sh' && echo "$$f"; done)

bench: build ## figures as ratios in one run
	go test -count=1 -run '^$$' -bench . -benchtime 20x -timeout 30m ./tests/bench

golden: ## rewrite the golden files; read the difference afterwards
	go test ./compose -update

clean: ## remove what was built
	rm -rf build images/guest/agent-container-guest-*
