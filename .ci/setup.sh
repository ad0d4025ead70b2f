#!/usr/bin/env bash
# Installs the programs that a Debian or Ubuntu machine lacks, in three parts: `setup.sh run` to
# build, `setup.sh test` for the system's packages that tests need, `setup.sh tools` for everything
# else that they need.
#
# It checks before it installs, so a second run changes nothing and takes no time. Files outside the
# system's and the languages' own directories are installed once per machine, into
# ${WARREN_CACHE:-~/.cache/warren}: every clone links to them.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=$1
channel=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)

packages=()
services=()
need() { # need PACKAGE COMMAND…: the package is missing if the command fails
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || packages+=("$package")
}

# need_without_service PACKAGE[:SERVICE] COMMAND…: like need, but the package's service, by default of
# the same name, must not run here.
need_without_service() {
    "${@:2}" >/dev/null 2>&1 || services+=("${1#*:}")
    need "${1%:*}" "${@:2}"
}

as_root() {
    local command=(env DEBIAN_FRONTEND=noninteractive "$@")
    ((EUID == 0)) || command=(sudo "${command[@]}")
    "${command[@]}"
}

# Runs a command that installs packages, without starting any of their services: for this it creates
# the file with which Debian's scripts check, unless the machine has one of its own.
without_services() (
    policy=/usr/sbin/policy-rc.d
    if [[ ! -e $policy ]]; then
        trap 'as_root rm -f "$policy"' EXIT
        printf '#!/bin/sh\n# %s; it removes this.\nexit 101\n' "$PWD/.ci/setup.sh" |
            as_root install -m 755 /dev/stdin "$policy" || exit
    fi
    "$@"
)

install() { # installs all packages that need has collected
    ((${#packages[@]})) || return 0
    echo "installing: ${packages[*]}"
    as_root apt-get -qq update
    without_services as_root apt-get -qq install --yes --no-install-recommends "${packages[@]}" >/dev/null || {
        echo "these packages cannot be installed: ${packages[*]}" >&2
        exit 1
    }
    # The services must not start at the next boot either.
    ((!${#services[@]})) || as_root systemctl --quiet disable "${services[@]}"
    packages=() services=()
}

clang_for_wasm() {
    clang --target=wasm32-unknown-unknown -c -o /dev/null -x c - <<<'int one(void) { return 1; }'
}

browser() { # prints the name of the installed Chromium; Ubuntu's own only points to a snap
    local name
    for name in chromium google-chrome chromium-browser; do
        "$name" --version >/dev/null 2>&1 && echo "$name" && return
    done
    return 1
}

system_packages() { # system_packages run|test
    need gcc command -v cc
    need libc6-dev test -e /usr/include/stdio.h
    need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
    # The web pages need these: for TypeScript, and to compile SQLite for browsers.
    need nodejs command -v node
    need npm command -v npm
    need clang clang_for_wasm
    need llvm command -v llvm-ar
    # curl downloads rustup where the distribution has no package of it.
    command -v rustup >/dev/null || need curl command -v curl
    if [[ $1 == test ]]; then
        need git command -v git
        need python3-venv python3 -c 'import ensurepip, venv'
        need sqlite3 command -v sqlite3
        need strace command -v strace
        # groff formats the manual pages, so that the tests see its warnings.
        need groff-base command -v groff
        need openssl command -v openssl
        # The benchmarks' tests start servers of their own: the package's own cluster stays idle.
        need postgresql compgen -G '/usr/lib/postgresql/*/bin/initdb'
        # docs/operating has configurations for these programs.
        need systemd command -v systemd-analyze
        need_without_service nginx test -x /usr/sbin/nginx
        need_without_service caddy test -x /usr/bin/caddy
        need_without_service haproxy test -x /usr/sbin/haproxy
        need_without_service fail2ban test -x /usr/bin/fail2ban-regex
        need_without_service postfix test -x /usr/sbin/postfix
        need_without_service dovecot-lmtpd:dovecot test -x /usr/lib/dovecot/lmtp
        need swaks command -v swaks
        # `warren tune --emit` writes code for frameworks in these languages.
        need default-jdk-headless command -v javac
        need maven command -v mvn
        need golang-go command -v go
        # better-sqlite3 has no binary on npm.
        need g++ command -v c++
        need make command -v make
        # Actual Budget's web app and Warren's pages run in Chromium.
        if ! grep -q '^ID=ubuntu' /etc/os-release; then
            need chromium browser
        fi
    fi
    install
    if [[ $1 == test ]]; then
        # PL/Proxy has a package for each major version; the tests start the newest server.
        local major
        major=$(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | cut -d/ -f5 | sort -n | tail -n 1)
        need "postgresql-$major-plproxy" test -e "/usr/share/postgresql/$major/extension/plproxy.control"
        install
    fi
}

toolchain_is_installed() {
    local installed part
    installed=$(rustup component list --toolchain "$channel" --installed 2>/dev/null) || return 1
    for part in rustc clippy rustfmt rust-std-wasm32-unknown-unknown; do
        grep -q "^$part" <<<"$installed" || return 1
    done
}

toolchain() {
    # Debian 12 knows the name, but has no package: then this prints nothing, and succeeds.
    if ! command -v rustup >/dev/null && [[ -n $(apt-cache show rustup 2>/dev/null) ]]; then
        need rustup false
        install
    elif ! command -v rustup >/dev/null; then
        # Older distributions have no package of rustup.
        echo "installing: rustup"
        curl --proto '=https' --tlsv1.2 -sSf https://static.rust-lang.org/rustup/rustup-init.sh |
            sh -s -- -qy --profile minimal --default-toolchain none
    fi
    toolchain_is_installed && return
    echo "installing: Rust $channel"
    rustup -q toolchain install "$channel" --profile minimal --no-self-update \
        --component clippy,rustfmt --target wasm32-unknown-unknown
}

web_packages() {
    # The copy of the lock file is written last: it marks the packages as complete.
    cmp -s web/package-lock.json web/node_modules/installed.json && return
    echo "installing: the packages of the pages into web/node_modules"
    npm --prefix web ci --prefer-offline --no-audit --no-fund --loglevel=error
    cp web/package-lock.json web/node_modules/installed.json
}

# The number of kept versions of an installation; the least recently used ones are removed.
VERSIONS_MAX=3

cached() { # cached NAME FILE… -- FUNCTION: links target/NAME to the function's installation
    local name=$1 inputs=()
    shift
    while [[ $1 != -- ]]; do
        inputs+=("$1")
        shift
    done
    local system key folder
    system=$(. /etc/os-release && echo "$ID ${VERSION_ID:-}" && uname -m && python3 --version)
    key=$({ cat "${inputs[@]}" && declare -f "$2" && echo "$system"; } | sha256sum | cut -c1-16)
    folder=$cache/$name-$key
    if [[ ! -e $folder/complete ]]; then
        # Another clone may be installing the same.
        exec {lock}>"$cache/$name.lock"
        flock "$lock"
        if [[ ! -e $folder/complete ]]; then
            echo "installing: $name into $folder"
            rm -rf "$folder"
            mkdir "$folder"
            "$2" "$folder"
        fi
        exec {lock}>&-
    fi
    touch "$folder/complete"
    # No link may lead through an older link, or into a directory of an older clone.
    if [[ $(readlink "target/$name") != "$folder" ]]; then
        rm -rf "target/$name"
        ln -s "$folder" "target/$name"
    fi
    ls -dt "$cache/$name"-*/complete | tail -n +$((VERSIONS_MAX + 1)) | xargs -r dirname | xargs -r rm -rf
}

cargo_deny() {
    # cargo-deny runs for only a second: compiling it with optimizations takes longer.
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_TARGET_DIR=$1/build cargo install --quiet --locked --root "$1" cargo-deny@0.20.2
    rm -rf "$1/build"
}

python_packages() {
    python3 -m venv "$1"
    "$1/bin/pip" install --quiet --disable-pip-version-check -r tests/requirements.txt
}

sqlite_jdbc() {
    mvn --quiet --batch-mode --strict-checksums dependency:copy \
        -Dartifact=org.xerial:sqlite-jdbc:3.54.1.0 -DoutputDirectory="$1" -Dmdep.stripVersion=true -Dstyle.color=never
}

# Installs Actual Budget's published server and clients, compiled for the Node in their packages.
actual_packages() {
    cp tests/actual/package*.json "$1"
    npm --prefix "$1" ci --ignore-scripts --prefer-offline --no-audit --no-fund --loglevel=error
    local node
    node=$(compgen -G "$1/node_modules/node-linux-*")
    PATH=$node/bin:$PATH npm_config_nodedir=$node npm --prefix "$1" rebuild --loglevel=error
    # Playwright's own Chromium is used where the distribution has none.
    browser >/dev/null || PLAYWRIGHT_BROWSERS_PATH=$1/browsers "$node/bin/node" \
        "$1/node_modules/playwright-core/cli.js" install --with-deps --only-shell chromium
}

# Installs the bundlers whose apps are tested with @warren/client; the compilers in them are
# prebuilt. This does not use `npm ci`, which rejects a lock file that lacks a package for some
# other system: not every registry has them all.
bundler_packages() {
    cp tests/bundlers/package*.json "$1"
    npm --prefix "$1" install --no-save --ignore-scripts --prefer-offline --no-audit --no-fund --loglevel=error
}

tools() {
    cache=$(realpath -m "${WARREN_CACHE:-${HOME:-target}/.cache/warren}/tools")
    if ! mkdir -p "$cache" 2>/dev/null || [[ ! -w $cache ]]; then
        cache=$PWD/target/cache/tools
        mkdir -p "$cache"
    fi
    mkdir -p target
    cached actual tests/actual/package-lock.json -- actual_packages
    cached bundlers tests/bundlers/package-lock.json -- bundler_packages
    cached venv tests/requirements.txt -- python_packages
    cached jdbc /dev/null -- sqlite_jdbc
    # Go keeps downloaded and compiled packages in a cache of its own.
    (cd tests/emit/go && go build -mod=readonly modernc.org/sqlite)
    command -v cargo-deny >/dev/null || cached cargo-deny /dev/null -- cargo_deny
}

case $purpose in
run | test)
    system_packages "$purpose"
    toolchain
    .ci/compiled.sh restore
    web_packages
    ;;
tools)
    tools
    ;;
*)
    echo "usage: .ci/setup.sh run | test | tools" >&2
    exit 2
    ;;
esac
