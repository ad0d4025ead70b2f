# The commands `make run` and `make test` also work on a fresh Debian or Ubuntu machine. After an
# edit: `make check`.

SHELL := /bin/bash
# rustup puts cargo here; a shell may not have it on its PATH yet.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
# The end-to-end tests start Python programs with this interpreter.
export WARREN_PYTHON := $(CURDIR)/target/venv/bin/python

# The operator's page asks for this token; the first `make run` creates it.
ADMIN_TOKEN := data/admin-token.txt

.PHONY: help run test check fmt

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /make \1\t/p' $(MAKEFILE_LIST)

run: ## build Warren with its pages, and serve ./data on 127.0.0.1:4600
	@.ci/setup.sh run
	@cargo xtask build
	@umask 077 && mkdir -p data && (test -s $(ADMIN_TOKEN) || head -c 32 /dev/urandom | base64 > $(ADMIN_TOKEN))
	@echo "Plan is at /, and anybody who reaches it may make an account. /admin asks for what $(ADMIN_TOKEN) holds."
	./target/quick/warren serve --data ./data --open-registration --admin-token-file $(ADMIN_TOKEN)

test: ## install what the tests need, then run every check of `cargo xtask ci`
	@.ci/setup.sh test
	@cargo xtask ci

check: ## what to run after each edit: format, rules, lints, unit tests of the crates that changed
	@cargo xtask check

fmt: ## format the code
	cargo fmt --all
