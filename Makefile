# nova-host-alerter. `make help` lists what there is; `make demo` and `make test` are where to begin.
.DEFAULT_GOAL := help
.PHONY: help deps build quick test test-all test-releases roots test-cluster test-openstack simulate mutants man budgets bench screenshots demo lint format deny requirements test-bare \
	deb rpm vendor static install package-deps test-packages

CARGO ?= cargo

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## the whole path on this machine in seconds: a fencing, an outage, the acknowledgement
	$(CARGO) build --locked --workspace --bins
	$(CARGO) run --locked --quiet -p tests --bin demo

deps: ## install what the tests need (tried on Debian 12); starts and enables nothing
	@tests/deps/install.sh
	@command -v pacemaker-remoted >/dev/null || tests/deps/pacemaker-remoted.sh $${CARGO_TARGET_DIR:-target}/lab-deps

build: ## build all programs
	$(CARGO) build --locked --workspace --bins

quick: ## what a change of a driver, a problem or a key needs, in about a minute where all is built
	$(CARGO) test --locked --quiet --lib -p marks -p site -p drivers -p setup -p alerter
	$(CARGO) build --locked --workspace --bins
	@for what in house papers book manual default_config; do $(CARGO) test --locked --quiet -p tests --test it -- $$what || exit 1; done

test: ## the tests that run everywhere, as any user; what it leaves out needs root or programs that are not here
	@CARGO=$(CARGO) tests/test.sh

test-all: deps package-deps ## that, and real clusters, services, browser and packages (as root); RELEASES="bookworm trixie": what differs by Pacemaker of which Debian suites
	@CARGO=$(CARGO) RELEASES="$(RELEASES)" tests/all.sh

test-releases: deps package-deps ## every scenario on Pacemaker of RELEASES, else of all that tests/roots.sh knows, and docs/releases.md (as root; hours)
	@tests/releases.sh $(RELEASES)

roots: deps ## Debian systems with Pacemaker of RELEASES, for the tests' clusters (as root); they are kept
	@tests/roots.sh $(or $(RELEASES),trixie)

ROUNDS ?= 1
test-cluster: deps build ## the scenarios on real clusters alone (as root); ROUNDS=3 runs the list three times in a row
	NHA_REQUIRE_CLUSTER=1 NHA_REPEAT=$(ROUNDS) $(CARGO) test --locked --no-fail-fast -p tests --test failover --test cluster

test-openstack: deps build ## the drivers against the real services of OpenStack alone
	NHA_REQUIRE_OPENSTACK=1 NHA_REPEAT=$(ROUNDS) $(CARGO) test --locked --no-fail-fast -p tests --test openstack

SEEDS ?= 1000
HOURS ?= 10
simulate: ## hours of a cloud at virtual time, from seeds (SEEDS=1000 HOURS=10; HARD=1: clocks, registers and entries are wrong too, HARD=2: clocks by years, HARD=3: they are set by years); SEED=17 plays one again, with a log
	@SEED=$(SEED) SEEDS=$(or $(SEEDS),1000) FIRST=$(FIRST) HOURS=$(or $(HOURS),10) HOSTS=10000 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=8 \
	$(CARGO) test --locked --release --quiet -p alerter --test it -- --exact simulator::simulate --nocapture

mutants: ## every old rule that broke the promise is put back, and every pure rule is changed by cargo-mutants: a test must find each (half an hour); ONLY=age chooses old rules
	$(CARGO) run --locked --quiet -p tests --bin mutants -- $(ONLY)
	@[ -n "$(ONLY)" ] || command -v cargo-mutants >/dev/null || $(CARGO) install cargo-mutants --locked
	@[ -n "$(ONLY)" ] || $(CARGO) mutants -p marks --output $${CARGO_TARGET_DIR:-target}

budgets: ## memory, size, wake-ups, flushes and system calls of a release build, each with its limit
	$(CARGO) build --locked --release -p alerter -p fence-agent --bins
	$(CARGO) rustc --locked --release -p compute-health --bin compute-health -- -C target-feature=+crt-static
	NHA_BUILT=$$(realpath $${CARGO_TARGET_DIR:-target})/release $(CARGO) test --locked -p tests --test it budgets -- --nocapture

bench: ## speed and memory, as ratios to floors and peers; ONLY='drain memory' chooses
	$(CARGO) build --locked --release --workspace --bins
	$(CARGO) run --locked --release --quiet -p tests --bin bench -- $(ONLY)

screenshots: build ## the pictures of the status page in docs/images, made by the browser's test
	@mkdir -p docs/images
	NHA_REQUIRE_BROWSER=1 NHA_SCREENSHOTS=$(CURDIR)/docs/images $(CARGO) test --locked -p tests --test page -- screens_

man: ## the manual pages and completions in packaging/, from the tables of the code and from docs/
	@$(CARGO) run --locked --quiet -p manual

lint: format ## clippy beside it
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

format: ## formatting, and the shell scripts' syntax
	$(CARGO) fmt --check
	@set -e; for script in ocf/nova-host-alerter tests/*.sh tests/deps/*.sh docs/examples/*.sh packaging/*.sh packaging/debian/p*; do sh -n $$script; done

deny: ## licences, banned crates and sources of what is linked in
	@command -v cargo-deny >/dev/null || CARGO_PROFILE_DEV_DEBUG=0 $(CARGO) install cargo-deny --locked --no-default-features --debug
	$(CARGO) deny --locked check --hide-inclusion-graph bans licenses sources

deb: ## the Debian package, in target/packages; VENDORED=1 takes the crates from the tarball of `make vendor`
	@packaging/package.sh deb

rpm: ## the RPM package, likewise
	@packaging/package.sh rpm

vendor: ## a tarball of all crates, from which both can be built without cargo's registry
	@packaging/package.sh vendor

static: ## a tarball with a fence_mark that needs no library of the system (musl)
	@packaging/package.sh static

install: ## install into this machine, or below DESTDIR, what the packages install; starts and enables nothing
	packaging/build.sh $${CARGO_TARGET_DIR:-target}/package/install
	packaging/install.sh $${CARGO_TARGET_DIR:-target}/package/install
	[ -n "$(DESTDIR)" ] || { systemd-sysusers nova-host-alerter.conf && systemd-tmpfiles --create nova-host-alerter.conf; }

package-deps: ## install what building and testing the packages needs; starts and enables nothing
	@tests/deps/install.sh packages
	@! command -v rustup >/dev/null || rustup --quiet target add $$(uname -m)-unknown-linux-musl || echo 'make static will say what it lacks'

SUITES ?= bookworm trixie
test-packages: deps package-deps ## the packages: lintian, rpmlint, the same bytes twice, their life in a fresh Debian of SUITES and in a cluster of such (as root)
	@SUITES="$(SUITES)" tests/packages.sh

test-bare: ## the README's two commands as a user without privileges on a Debian 12 (NHA_SUITE=trixie: 13) with nothing but this toolchain, a C compiler, make and git (as root)
	@tests/bare.sh

requirements: ## the requirements, the tests that show each, and those without one
	@$(CARGO) run --locked --quiet -p tests --bin requirements
