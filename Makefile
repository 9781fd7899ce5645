# Tasks of this repository, for people and for CI. `make` alone lists them.
NODE := node_modules/node/bin/node
CC ?= cc
# A machine without a C compiler gets along without the keeper; the programs say so.
KEEPER := $(if $(shell command -v $(CC)),keeper)
KEEPER_SOURCES := $(wildcard runner/keeper/*.c runner/keeper/*.h)
AGENT_SOURCES := $(wildcard runner/agent/*.c)
HELPER_SOURCES := $(wildcard runner/helper/*.c runner/helper/*.h)
SIGNALS_SOURCES := $(wildcard runner/signals/*.c)
INSTALLED := node_modules/.installed

# $(call vitest,NAME,SECONDS,WRAPPER): runs the projects of vitest.config.ts whose names begin with NAME; what it counted goes to build/reports/NAME.json.
# ONLY='path path' runs the files whose paths contain one of these. The time limit is for what the runner itself does not end.
# Node keeps what it compiled of the sources: tests start the same programs again and again.
define vitest
@rm -f build/reports/$(1).json
$(3) env TIMES=$(1) NODE_COMPILE_CACHE=$(CURDIR)/build/compile-cache \
  timeout --kill-after=10 $(2) $(NODE) node_modules/vitest/vitest.mjs run $(ONLY) --configLoader native --project '$(1)*' --allowOnly=false $(if $(MAKE_TERMOUT),,--no-color) \
  --reporter=default --reporter=./test/support/suite-report.ts --reporter=./test/times/reporter.ts --outputFile=build/reports/$(1).json
endef

.PHONY: help install generate check quick times proof test unit sim sim-long sim-seeds sim-digests sim-figures coverage mutation generators integration e2e e2e-images chart-lint demo images charts package keeper agents client-faults client-runtimes kill-loop bench bench-compare bench-runner cluster-up cluster-down clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## install the dependencies of package-lock.json

$(INSTALLED): package.json package-lock.json
	npm ci --no-audit --no-fund
	@touch $@

generate: $(INSTALLED) ## write every generated file from its source
	$(NODE) scripts/generate.ts

check: $(INSTALLED) ## types, style, unused code, generated files
	$(NODE) node_modules/typescript/bin/tsc -p .
	$(NODE) node_modules/@biomejs/biome/bin/biome check .
	$(NODE) node_modules/knip/bin/knip.js
	$(NODE) scripts/generate.ts --check

test: check unit sim integration ## all that needs no Kubernetes

# The commit that the work left origin's main branch at; without one, the commit before the last.
BASE ?= $(shell git merge-base HEAD origin/main 2>/dev/null || git rev-parse HEAD~1 2>/dev/null)

quick: $(INSTALLED) $(KEEPER) ## before each commit: types, style, unit tests of what changed since BASE, 60 seeds; two minutes at most
	$(NODE) node_modules/typescript/bin/tsc -p .
	$(NODE) node_modules/@biomejs/biome/bin/biome check .
	$(NODE) --disable-warning=ExperimentalWarning node_modules/vitest/vitest.mjs run --configLoader native --project unit --changed '$(BASE)' --passWithNoTests --reporter=dot
	$(NODE) test/sim/main.ts --seeds 60

# What takes hours, one after the other; each goes on where one before it has failed.
proof: $(INSTALLED) $(KEEPER) ## before a release: what CI has no time for; many seeds, the oldest Kubernetes, kill loops, mutation
	@failed=; for part in 'chart-lint' 'sim-long SEEDS=5000 FROM=301' 'unit ONLY=runner/state/state-trees BERTH_TREES=2000' 'integration ONLY=runner/one-moment BERTH_MOMENTS=20' 'kill-loop MODE=cluster' 'kill-loop MODE=controller' 'e2e KUBERNETES=oldest' 'client-faults' 'client-runtimes' 'mutation COUNT=300'; do \
	  echo "proof: make $$part"; $(MAKE) --no-print-directory $$part || failed="$$failed make $$part;"; \
	done; test -z "$$failed" || { echo "proof: failed:$$failed" >&2; exit 1; }

times: $(INSTALLED) ## wall, CPU and waits of each suite and test file, from their last runs on this machine; ONLY=integration
	@$(NODE) --disable-warning=ExperimentalWarning test/times/main.ts --only '$(ONLY)'

unit: $(INSTALLED) $(KEEPER) ## the parts, each for itself; ONLY='controller/link store' runs the files whose paths contain one of these
	$(call vitest,unit,300)

# SEED=123 runs one seed; TRACE=1 shows everything that happens in it. BUGS='part of a name' runs only the planted bugs that have it.
sim: $(INSTALLED) ## the controller and the runner in a simulated cluster; SEED=123 TRACE=1 replays a failure
ifdef SEED
	$(NODE) test/sim/main.ts --seed $(SEED) $(if $(TRACE),--trace)
else
	$(call vitest,sim,1500)
endif

sim-long: $(INSTALLED) ## many more seeds; SEEDS=20000 FROM=1
	$(NODE) test/sim/main.ts --seeds $(or $(SEEDS),20000) --from $(or $(FROM),1)

sim-seeds: $(INSTALLED) ## looks for all planted bugs and records the seed that finds each; BUGS='part of a name'
	$(NODE) test/sim/bugs/main.ts

sim-digests: $(INSTALLED) ## a digest of each seed's trace; two commits that do the same print the same; SEEDS=200 FROM=1
	@$(NODE) test/sim/main.ts --digests --seeds $(or $(SEEDS),200) --from $(or $(FROM),1)

sim-figures: $(INSTALLED) ## what the simulator costs, covers and finds; SEEDS=300
	$(NODE) test/sim/main.ts --figures --seeds $(or $(SEEDS),300)

coverage: $(INSTALLED) $(KEEPER) ## lines that unit tests and the simulator's own process run: no programs that they start, no integration, no e2e
	$(NODE) node_modules/vitest/vitest.mjs run --configLoader native --project unit --project sim --exclude 'test/sim/bugs/**' --coverage

mutation: $(INSTALLED) ## small edits of the controller and of frames that no unit test notices; COUNT=300 SEED=1 ONLY=controller/decide
	$(NODE) --disable-warning=ExperimentalWarning test/mutation/main.ts --count $(or $(COUNT),300) --seed $(or $(SEED),1) --only '$(ONLY)' --seeds $(or $(SEEDS),0)

# Without a network the suite begins all the same, and the tests that need the generators fail with what npm or pip say.
generators:
	-@test/generated-clients/install >/dev/null

integration: $(INSTALLED) $(KEEPER) generators ## the programs on the embedded cluster; ONLY=controller/sessions as for unit
	$(call vitest,integration,2100)

# ONLY=pools runs the files whose paths below test/e2e hold the word, on a cluster that stays; `make cluster-down` removes it.
e2e: $(INSTALLED) keeper ## the Helm chart on a real kind cluster; ONLY=pools runs single files and keeps the cluster, as KEEP=1 does; KUBERNETES=oldest takes the oldest supported version
ifdef ONLY
	@files=$$(test/e2e/files $(ONLY)) && KEEP=1 NODES=2 test/e2e/with-cluster \
	  $(NODE) node_modules/vitest/vitest.mjs run --configLoader native --project 'e2e*' --allowOnly=false $(if $(MAKE_TERMOUT),,--no-color) $$files
else
	$(call vitest,e2e,2400,NODES=2 test/e2e/with-cluster)
endif

e2e-images: $(INSTALLED) keeper ## build beforehand what e2e needs: the node image and the images of the tests, at low priority; no cluster, and nothing is left running
	test/e2e/images

agents: $(INSTALLED) $(KEEPER) ## Claude Code, Codex CLI and Gemini CLI beside a stand-in for their models; installs them, 740 MB, into the user's cache
	$(call vitest,agents,900)

client-faults: $(INSTALLED) $(KEEPER) ## both clients in all scenarios, with each fault at each exchange; ONLY='follow, python, cut-id' COUNT=60 SEED=1
	$(NODE) --disable-warning=ExperimentalWarning test/conformance/main.ts --only '$(ONLY)' --count $(or $(COUNT),100000) --seed $(or $(SEED),1)

client-runtimes: $(INSTALLED) $(KEEPER) ## both clients on what else they have to hold on: Node 20 and 22, Deno, Bun, the oldest httpx2; installs them, 380 MB, into the user's cache; ONLY, COUNT, SEED
	$(NODE) --disable-warning=ExperimentalWarning test/conformance/main.ts --runtimes --only '$(ONLY)' --count $(or $(COUNT),60) --seed $(or $(SEED),1)

# Ends early after MINUTES (10). A seed gives the same turns, kills and pauses; what they meet differs from run to run.
kill-loop: $(INSTALLED) $(KEEPER) ## sessions on an embedded cluster that is killed and started again; KILLS=50 SEED=1 MODE=cluster|controller
	$(NODE) --disable-warning=ExperimentalWarning test/kill-loop/main.ts --kills $(or $(KILLS),50) --seed $(or $(SEED),1) --mode $(or $(MODE),cluster) --minutes $(or $(MINUTES),10)

# Two nodes: one takes too few pods. BENCH=short takes few samples. ONLY='cold|load' runs the sections whose names match. AGENT_SANDBOX=/path measures that checkout, too.
bench: $(INSTALLED) keeper ## the targets of a cluster with their floors, and all other figures; BENCH=short ONLY=cold KEEP=1 AGENT_SANDBOX=/path
	NODES=$(or $(NODES),2) test/e2e/with-cluster $(NODE) --disable-warning=ExperimentalWarning test/bench/bench.ts

bench-compare: $(INSTALLED) ## two runs of make bench side by side; A=one.json B=other.json
	@$(NODE) --disable-warning=ExperimentalWarning test/bench/compare-files.ts '$(A)' '$(B)'

bench-runner: $(INSTALLED) keeper ## the figures that need no Kubernetes: turns beside bare spawns, throughput, corpora
	$(NODE) --disable-warning=ExperimentalWarning test/bench/runner.ts

# Needs Go. The first run compiles both programs, a minute.
chart-lint: $(INSTALLED) ## kubeconform and kube-score on what the chart renders, with schemas of Kubernetes' own OpenAPI document
	$(NODE) --disable-warning=ExperimentalWarning test/chart/main.ts

demo: $(INSTALLED) $(KEEPER) ## a session from its first turn to waking up again, on the embedded cluster
	$(NODE) scripts/demo.ts

package: $(INSTALLED) keeper ## the command line as an npm package with its Node inside, build/berth-VERSION.tgz, and the clients: an npm package and a wheel
	$(NODE) --disable-warning=ExperimentalWarning package/build.ts
	$(NODE) --disable-warning=ExperimentalWarning package/typescript-client.ts

images: $(INSTALLED) keeper ## the container images as archives under build/images
	$(NODE) --disable-warning=ExperimentalWarning images/build.ts

charts: $(INSTALLED) ## both Helm charts for the images that were built last, build/charts/NAME-VERSION.tgz
	$(NODE) --disable-warning=ExperimentalWarning package/charts.ts

keeper: build/keeper build/bin/berth-agent build/bin/berth-enter build/signals.node ## the helpers: what starts and reaps an agent's processes, what these call, what the kubelet starts for a client, what PID 1 loads

build/bin/berth-agent: $(AGENT_SOURCES)
	$(MAKE) --no-print-directory -C runner/agent OUT=$(CURDIR)/build/bin/berth-agent CC=$(CC)

build/bin/berth-enter: $(HELPER_SOURCES)
	$(MAKE) --no-print-directory -C runner/helper OUT=$(CURDIR)/build/bin/berth-enter CC=$(CC)

build/signals.node: $(SIGNALS_SOURCES)
	$(MAKE) --no-print-directory -C runner/signals OUT=$(CURDIR)/build/signals.node CC=$(CC)

build/keeper: $(KEEPER_SOURCES)
	@mkdir -p build
	$(MAKE) --no-print-directory -C runner/keeper OUT=$(CURDIR)/build/keeper CC=$(CC)

cluster-up: $(INSTALLED) ## bring up the kind cluster; NODES=2 for two nodes, KUBERNETES=oldest
	test/cluster/up --nodes $(or $(NODES),1)

cluster-down: ## remove it without a trace
	test/cluster/down

clean: ## remove what was built in the checkout
	rm -rf build
