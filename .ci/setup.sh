#!/usr/bin/env bash
# Installs what a Debian or Ubuntu machine lacks: `setup.sh run` to build, `setup.sh test` to test.
# It looks before it installs, so a second run changes nothing and takes no time.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=$1
channel=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)

packages=()
need() { # need PACKAGE COMMAND…: the package is missing if the command fails
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || packages+=("$package")
}

need gcc command -v cc
need libc6-dev test -e /usr/include/stdio.h
need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
command -v rustup >/dev/null || need curl command -v curl
if [[ $purpose == test ]]; then
    need git command -v git
    need python3-venv python3 -c 'import ensurepip, venv'
    need sqlite3 command -v sqlite3
    need strace command -v strace
    need openssl command -v openssl
    # The benchmarks' tests start servers of their own: the cluster that comes with it stays idle.
    need postgresql compgen -G '/usr/lib/postgresql/*/bin/initdb'
fi
install() { # what is needed so far
    ((${#packages[@]})) || return 0
    echo "installing: ${packages[*]}"
    local as_root=(env DEBIAN_FRONTEND=noninteractive)
    ((EUID == 0)) || as_root=(sudo "${as_root[@]}")
    "${as_root[@]}" apt-get -qq update
    "${as_root[@]}" apt-get -qq install --yes --no-install-recommends "${packages[@]}" >/dev/null
    packages=()
}
install
if [[ $purpose == test ]]; then
    # PL/Proxy has a package for each major version; the tests start the newest server.
    major=$(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | cut -d/ -f5 | sort -n | tail -n 1)
    need "postgresql-$major-plproxy" test -e "/usr/share/postgresql/$major/extension/plproxy.control"
    install
fi

if ! command -v rustup >/dev/null; then
    echo "installing: rustup"
    curl --proto '=https' --tlsv1.2 -sSf https://static.rust-lang.org/rustup/rustup-init.sh |
        sh -s -- -qy --profile minimal --default-toolchain none
fi
toolchain_has() {
    local installed
    installed=$(rustup component list --toolchain "$channel" --installed 2>/dev/null) || return 1
    local part
    for part in rustc clippy rustfmt rust-std-wasm32-unknown-unknown; do
        grep -q "^$part" <<<"$installed" || return 1
    done
}
if ! toolchain_has; then
    echo "installing: Rust $channel"
    rustup -q toolchain install "$channel" --profile minimal --no-self-update \
        --component clippy,rustfmt --target wasm32-unknown-unknown
fi
[[ $purpose == test ]] || exit 0

if [[ ! -x target/tools/bin/cargo-deny ]] && ! command -v cargo-deny >/dev/null; then
    echo "installing: cargo-deny (a few minutes, once)"
    cargo install --quiet --locked --root target/tools cargo-deny@0.20.2
fi

# The copy of the list is written last: it says that the environment is complete.
if ! cmp -s tests/requirements.txt target/venv/requirements.txt; then
    echo "installing: $(grep -c '==' tests/requirements.txt) Python packages into target/venv"
    python3 -m venv --clear target/venv
    target/venv/bin/pip install --quiet --disable-pip-version-check -r tests/requirements.txt
    cp tests/requirements.txt target/venv/requirements.txt
fi
