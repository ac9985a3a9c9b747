# Two commands matter: `make demo` and `make test`. Both need a Rust toolchain and make; PostgreSQL and
# RabbitMQ are found, or started privately and stopped again (see tests/servers). To use servers of
# your own, set DATABASE_URL and AMQP_URL: databases and namespaces are created and dropped there, the
# named database itself is never touched.

SHELL := /bin/sh
CARGO ?= cargo
target := $(or $(CARGO_TARGET_DIR),target)
with_servers := $(target)/debug/with-servers
fault_points := --features sexton-service/fault-points
# One small test among the programs: with it cargo builds what they depend on with the features that the tests need, and
# not a second time without.
as_tests := --test servers

.DEFAULT_GOAL := help
.PHONY: help demo demo-clients up down test simulate test-next measure bench bench-smoke bench-model bench-failed bench-refusals bench-monitors bench-pings bench-console bench-retention soak fuzz model promised verify torture torture-fences pictures screens lint unused-dependencies fmt sqlx-check sqlx-prepare programs test-programs with-servers
# Targets share cargo's lock and the machine's cores: side by side they only wait for one another.
.NOTPARALLEL:

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: programs ## Show the platform at work, failures and kills included, within two minutes
	@$(target)/debug/demo run

demo-clients: programs ## Show services in Python, TypeScript and Java that enqueue, and what became of it
	@$(target)/debug/demo clients

up: programs ## Start the platform and leave it running
	@$(target)/debug/demo up

down: programs ## Stop what `make up` started
	@$(target)/debug/demo down

test: test-programs ## Run every test, from pure functions to killed processes
	@TEST_SERVERS_FOLDER=$${TEST_SERVERS_FOLDER-$$(sh scripts/memory-folder.sh)} CARGO="$(CARGO)" $(with_servers) bash scripts/test.sh $(fault_points)

# Not part of `verify`: it needs root, and unpacks a Debian release of its own under the target folder.
test-next: ## Run every test on PostgreSQL 17 and RabbitMQ 4.0 (root; downloads them once)
	@sh scripts/next-servers.sh $(MAKE) sqlx-check test

# Short, and always the same, within `make test`. Here the seed is the time unless it is given; a failure
# prints it, and the operations.
simulate: with-servers ## Draw operations on the real store: SIMULATION_CASES of them from SIMULATION_SEED on
	@SIMULATION_SEED=$${SIMULATION_SEED:-$$(date +%s)} SIMULATION_CASES=$${SIMULATION_CASES:-2000} \
		$(with_servers) $(CARGO) test --workspace $(fault_points) --test it -- \
		--nocapture chaos::simulation::no_list_of_operations_breaks_an_invariant

measure: ## Measure firing lag, memory, what commands, cancels and output cost, with release builds
	@$(CARGO) build --release -p sexton-scheduler -p sexton-worker -p sexton-console
	@$(CARGO) build --release -p sexton-worker --example nothing
	@$(CARGO) build --workspace --bin measure
	@TEST_BIN_DIR=$(abspath $(target))/release $(target)/debug/measure --report tests/long-runs.md

bench-model: ## Measure how long cron expressions, planning, metrics and the other pure parts of an execution take
	@$(CARGO) bench -q -p sexton-model --bench cron --bench plan --bench execution
	@$(CARGO) bench -q -p sexton-service --bench metrics

# Ten million executions need half an hour and 12 GB, a million parked messages half an hour, and a hundred thousand
# requeues ten minutes more; SCALE=100000 SWEEPS=1000 REQUEUES=1000 needs minutes, most of them for the build.
bench-failed: with-servers ## Measure queries of failed executions among SCALE (10000000) executions, SWEEPS and REQUEUES
	@$(CARGO) build -q --release --workspace --bin bench-failed
	@$(with_servers) $(target)/release/bench-failed --scale $(or $(SCALE),10000000) \
		--report bench/failed-executions.md --limit-ms $(or $(LIMIT_MS),100)
	@$(CARGO) build -q --release -p sexton-scheduler -p sexton-worker -p sexton-console
	@$(CARGO) build -q --release -p sexton-worker --example nothing
	@$(CARGO) build -q --workspace --bin measure
	@TEST_BIN_DIR=$(abspath $(target))/release $(target)/debug/measure --sweeps $(or $(SWEEPS),100000,1000000) \
		--report bench/failed-executions.md
	@TEST_BIN_DIR=$(abspath $(target))/release $(target)/debug/measure --requeues $(or $(REQUEUES),100000) \
		--report bench/failed-executions.md

# Twenty million rows need 12 GB, and most of an hour to be filled in; KEPT=1000000 needs minutes.
bench-retention: with-servers ## Measure retention: KEPT (20000000) rows before OLD (100000) that are to go
	@$(CARGO) build -q --workspace --bin bench-retention
	@$(with_servers) $(target)/debug/bench-retention --kept $(or $(KEPT),20000000) --old $(or $(OLD),100000)

# About five minutes, most of them for the build.
bench-refusals: with-servers ## Measure triggers while REFUSED (100000) tickets of another pool are refused
	@$(CARGO) build -q --release -p sexton-scheduler -p sexton-worker -p sexton-console
	@$(CARGO) build -q --workspace --bin measure
	@TEST_BIN_DIR=$(abspath $(target))/release $(target)/debug/measure --refusals $(or $(REFUSED),100000) \
		--report docs/internals/reliability.md

# Three rounds of everything take two hours, one takes forty minutes. Peers that cannot be installed are
# reported as missing. Servers that keep what is committed, unless DATABASE_URL and AMQP_URL name others.
# WORK='commands lag' measures these works alone, and writes their sections alone.
bench: with-servers ## Measure Sexton, the bare limit and the peers in turn, ROUNDS (3) times; write docs/internals/performance.md
	@bash bench/peers/install.sh $(target)/bench/peers
	@$(CARGO) build -q --release -p sexton-scheduler -p sexton-worker -p sexton-console -p sexton-bench
	@$(CARGO) build -q --release -p sexton-worker --example nothing
	@$(with_servers) --durable python3 bench/run.py --programs $(target)/release --installed $(target)/bench/peers \
		$(addprefix --work ,$(WORK)) --rounds $(or $(ROUNDS),3) --lines $(target)/bench/lines-$$(date +%Y%m%d-%H%M%S).jsonl
	@python3 bench/report.py --page docs/internals/performance.md $(if $(WORK),,--page bench/measured.md) --plots docs/internals/performance \
		$$(ls -t $(target)/bench/lines-*.jsonl | head -1)

# With the programs that the tests run, so it costs seconds. What it measures means nothing.
bench-smoke: test-programs ## See that the measurements of `make bench` and `make bench-pings` run, without the peers
	@$(CARGO) build -q --workspace --example nothing $(fault_points)
	@python3 bench/report.py --check
	@rm -f $(target)/bench/smoke.jsonl
	@$(with_servers) python3 bench/run.py --programs $(target)/debug --installed $(target)/bench/peers \
		--smoke --only sexton --only bare --lines $(target)/bench/smoke.jsonl
	@cp docs/internals/performance.md $(target)/bench/smoke.md
	@cp bench/measured.md $(target)/bench/smoke-measured.md
	@python3 bench/report.py --page $(target)/bench/smoke.md --page $(target)/bench/smoke-measured.md --plots $(target)/bench/smoke $(target)/bench/smoke.jsonl
	@python3 bench/report.py $(target)/bench/smoke.jsonl
	@$(target)/debug/measure --pings 200 --seconds 2

# About ten minutes, most of them for the measurement.
bench-monitors: with-servers ## Measure how soon JOBS (100000) daily jobs, and as many checks, are found that missed their deadlines, and what that costs
	@$(CARGO) build -q --release -p sexton-scheduler -p sexton-worker -p sexton-console
	@$(CARGO) build -q --release -p sexton-worker --example nothing
	@$(CARGO) build -q --workspace --bin measure
	@TEST_BIN_DIR=$(abspath $(target))/release $(target)/debug/measure --monitors $(or $(JOBS),100000) \
		--report docs/internals/performance.md
	@TEST_BIN_DIR=$(abspath $(target))/release $(target)/debug/measure --checks $(or $(JOBS),100000) \
		--report docs/internals/performance.md

# Half a minute of pings, and longer if the rate is too much for the machine, besides the build.
bench-pings: with-servers ## Measure `sexton serve` under PINGS (10000) pings a second for SECONDS (20)
	@$(CARGO) build -q --release -p sexton-console
	@$(CARGO) build -q --workspace --bin measure
	@TEST_BIN_DIR=$(abspath $(target))/release $(target)/debug/measure --pings $(or $(PINGS),10000) \
		--seconds $(or $(SECONDS),20) --report docs/internals/performance.md

# The pages and lists take a quarter of an hour, besides the rows among which they are measured. It fails if a goal was missed,
# after the report is written.
bench-console: with-servers ## Measure the console among SCALE (10000000) executions; pictures into the folder PICTURES
	@$(CARGO) build -q --release -p sexton-console
	@$(CARGO) build -q --workspace --bin measure
	@TEST_BIN_DIR=$(abspath $(target))/release $(if $(PICTURES),PICTURES=$(abspath $(PICTURES))) $(target)/debug/measure --console $(or $(SCALE),10000000) \
		--report docs/internals/performance.md

soak: test-programs ## Feed at half the drain rate for SOAK_MINUTES (20) and see that nothing grows
	@$(target)/debug/soak

fuzz: ## Look for hostile input, FUZZ_SECONDS (60) for each reader; needs a C++ compiler, and a registry once
	@sh scripts/fuzz.sh

# The promised times are measured with the machine to themselves, so apart from the tests and one by one.
promised: test-programs ## Ask for the promised times of recovery on an idle machine
	@$(with_servers) $(CARGO) test --workspace $(fault_points) --test it chaos::servers::recovery_times:: \
		-- --ignored --test-threads=1

model: ## Check the protocol in every state within the large bounds; ten minutes, 6 GB
	@$(CARGO) run -p sexton-verify -- --large

# What needs most comes last.
verify: test promised simulate model fuzz ## Everything that shows the guarantees hold; needs a C++ compiler, and a registry once

# SEED=2 begins another run; the same seed goes on where it was stopped. FENCE_OFF=<fence> builds the
# programs without that fence of the protocol first, and must end with status 3.
torture: test-programs ## Strike a thousand faults under load within an hour, write docs/internals/reliability.md
	@$(target)/debug/torture --seed $(or $(SEED),1) --report docs/internals/reliability.md --record tests/long-runs.md

torture-fences: test-programs ## Show that torture finds out a build without any one fence
	@$(target)/debug/torture fences

# Servers of its own, since the run breaks what it uses. Nothing else should be at work on the machine.
screens: test-programs ## Take the pictures of the console in docs/images, at the end of a demo
	@PICTURES=$(abspath docs/images) BROWSER_REQUIRED=1 $(with_servers) $(CARGO) test -q --workspace $(fault_points) \
		--test it -- demo::the_demo_observes_every_goal

pictures: programs with-servers ## Run a platform for MINUTES (12) under Prometheus and draw the dashboards in docs/images
	@prometheus=$$(sh scripts/prometheus.sh) && env -u DATABASE_URL -u AMQP_URL $(with_servers) python3 -B scripts/pictures/run.py \
		--programs $(target)/debug --prometheus "$$prometheus" --minutes $(or $(MINUTES),12)

lint: unused-dependencies ## Check formatting, unused dependencies, lints and documentation
	@$(CARGO) fmt --all --check
	@$(CARGO) clippy --workspace --all-targets -- -D warnings
	@RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --document-private-items

# The tool searches the sources for the names of the crates, so it needs no build and two seconds.
unused-dependencies:
	@$$(sh scripts/tool.sh cargo-machete) --skip-target-dir .

fmt: ## Format the code
	@$(CARGO) fmt --all

sqlx-check: with-servers ## Check that .sqlx holds what the queries and migrations say
	@$(with_servers) --migrated sh scripts/sqlx-metadata.sh check

sqlx-prepare: with-servers ## Write .sqlx from the queries and migrations
	@$(with_servers) --migrated sh scripts/sqlx-metadata.sh prepare

# A newcomer builds once and edits nothing: what cargo keeps for the next build would cost an eighth of this one.
programs:
	@CARGO_INCREMENTAL=$${CARGO_INCREMENTAL:-0} $(CARGO) build --workspace --bin scheduler --bin worker --bin sexton --bin demo

# Tests of processes run the real binaries from the target folder, so all of them are built first, with
# the places at which a test can kill them.
test-programs:
	@$(CARGO) build --workspace --bins $(as_tests) $(fault_points)

# Of the whole workspace, here and elsewhere: one package by itself would have its dependencies built once more, with
# fewer features.
with-servers:
	@$(CARGO) build -q --workspace --bin with-servers $(as_tests)
