# The commands `make run` and `make test` also work on a fresh Debian or Ubuntu machine. Run
# `make check` after an edit.

SHELL := /bin/bash
# rustup installs cargo here, but the PATH of a shell may not contain this directory yet.
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
	@echo "Plan is at /, and anyone who can reach it can create an account. /admin asks for the token in $(ADMIN_TOKEN)."
	./target/quick/warren serve --data ./data --open-registration --admin-token-file $(ADMIN_TOKEN)

test: ## install what the tests need, then run every check of `cargo xtask ci`
	@.ci/setup.sh test
	@cargo xtask ci

check: ## check an edit: format, rules, lints, unit tests of the crates that changed
	@cargo xtask check

fmt: ## format the code
	cargo fmt --all
