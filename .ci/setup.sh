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

node_headers() { # says where Node's headers are
    local prefix=/usr
    if command -v node >/dev/null; then
        prefix=$(node -p 'path.dirname(path.dirname(process.execPath))')
    fi
    [[ -e $prefix/include/node/node.h ]] && echo "$prefix"
}

clang_for_wasm() {
    clang --target=wasm32-unknown-unknown -c -o /dev/null -x c - <<<'int one(void) { return 1; }'
}

browser() { # says how the Chromium is called that there is; Ubuntu's own only points to a snap
    local name
    for name in chromium google-chrome chromium-browser; do
        "$name" --version >/dev/null 2>&1 && echo "$name" && return
    done
    return 1
}

need gcc command -v cc
need libc6-dev test -e /usr/include/stdio.h
need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
# The pages: TypeScript, and SQLite compiled for browsers.
need nodejs command -v node
need npm command -v npm
need clang clang_for_wasm
need llvm command -v llvm-ar
command -v rustup >/dev/null || need curl command -v curl
if [[ $purpose == test ]]; then
    need git command -v git
    need python3-venv python3 -c 'import ensurepip, venv'
    need sqlite3 command -v sqlite3
    need strace command -v strace
    need openssl command -v openssl
    # The benchmarks' tests start servers of their own: the cluster that comes with it stays idle.
    need postgresql compgen -G '/usr/lib/postgresql/*/bin/initdb'
    # The frameworks that `warren tune --emit` writes for.
    need default-jdk-headless command -v javac
    need golang-go command -v go
    # Where better-sqlite3 has no binary for the Node that there is.
    need g++ command -v c++
    need make command -v make
    need libnode-dev node_headers
    # Actual Budget's web app runs in it.
    if ! grep -q '^ID=ubuntu' /etc/os-release; then
        need chromium browser
    fi
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

# The copy of the list is written last: it says that the packages are complete.
if ! cmp -s web/package-lock.json web/node_modules/installed.json; then
    echo "installing: the packages of the pages into web/node_modules"
    npm --prefix web ci --no-audit --no-fund --loglevel=error
    cp web/package-lock.json web/node_modules/installed.json
fi
[[ $purpose == test ]] || exit 0

if [[ ! -x target/tools/bin/cargo-deny ]] && ! command -v cargo-deny >/dev/null; then
    echo "installing: cargo-deny (a few minutes, once)"
    cargo install --quiet --locked --root target/tools cargo-deny@0.20.2
fi

# The same for Python's.
if ! cmp -s tests/requirements.txt target/venv/requirements.txt; then
    echo "installing: $(grep -c '==' tests/requirements.txt) Python packages into target/venv"
    python3 -m venv --clear target/venv
    target/venv/bin/pip install --quiet --disable-pip-version-check -r tests/requirements.txt
    cp tests/requirements.txt target/venv/requirements.txt
fi

# What `warren tune --emit` writes is run by its own frameworks. Each list is copied last, as above.
emit=target/emit
better_sqlite3=bench/rivals/better-sqlite3
if ! cmp -s $better_sqlite3/package-lock.json $emit/node/installed.json; then
    echo "installing: better-sqlite3 into $emit"
    mkdir -p $emit/node
    cp $better_sqlite3/package*.json $emit/node
    npm_config_nodedir=$(node_headers || true) npm --prefix $emit/node ci --no-audit --no-fund --loglevel=error
    cp $better_sqlite3/package-lock.json $emit/node/installed.json
fi
jdbc=3.54.1.0
jdbc_sha256=f8dce420a6016278497f4f0560f65602b9db858de141b541cf91a4644ebe4639
if ! sha256sum --status --check <<<"$jdbc_sha256  $emit/sqlite-jdbc.jar" 2>/dev/null; then
    echo "installing: sqlite-jdbc $jdbc into $emit"
    need curl command -v curl
    install
    curl --proto '=https' --tlsv1.2 -sSfo $emit/sqlite-jdbc.part \
        "https://repo1.maven.org/maven2/org/xerial/sqlite-jdbc/$jdbc/sqlite-jdbc-$jdbc.jar"
    sha256sum --quiet --check <<<"$jdbc_sha256  $emit/sqlite-jdbc.part"
    mv $emit/sqlite-jdbc.part $emit/sqlite-jdbc.jar
fi
if ! cmp -s tests/emit/go/go.sum $emit/go/go.sum; then
    echo "installing: modernc.org/sqlite into $emit (a minute or two, once)"
    mkdir -p $emit/go
    (
        export GOCACHE=$PWD/$emit/go/build GOMODCACHE=$PWD/$emit/go/modules
        export GOFLAGS='-mod=readonly -modcacherw'
        cd tests/emit/go
        go build modernc.org/sqlite
    )
    cp tests/emit/go/go.sum $emit/go/go.sum
fi

# Actual Budget's published server and clients, compiled for the Node that comes with them.
actual=target/actual
if ! cmp -s tests/actual/package-lock.json $actual/installed.json; then
    echo "installing: Actual Budget's packages into $actual (a minute or two, once)"
    mkdir -p $actual
    cp tests/actual/package*.json $actual
    npm --prefix $actual ci --ignore-scripts --no-audit --no-fund --loglevel=error
    node=$(compgen -G "$PWD/$actual/node_modules/node-linux-*")
    PATH=$node/bin:$PATH npm_config_nodedir=$node npm --prefix $actual rebuild --loglevel=error
    cp tests/actual/package-lock.json $actual/installed.json
fi
# Where the distribution has no Chromium of its own, Playwright has one.
if ! browser >/dev/null && ! compgen -G "$actual/browsers/chromium*" >/dev/null; then
    echo "installing: Chromium into $actual/browsers"
    node=$(compgen -G "$PWD/$actual/node_modules/node-linux-*/bin/node")
    PLAYWRIGHT_BROWSERS_PATH=$PWD/$actual/browsers "$node" $actual/node_modules/playwright-core/cli.js \
        install --with-deps --only-shell chromium
fi
