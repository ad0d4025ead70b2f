#!/usr/bin/env bash
# Shares the packages that cargo compiled from registries between all clones: `compiled.sh place`
# prints the cache directory for this clone's lock file and compiler. `compiled.sh restore` copies
# this directory, or else the most recently used one, into a clone where nothing is compiled yet.
# `cargo xtask` saves it (xtask/src/build_cache.rs).
set -euo pipefail
cd "$(dirname "$0")/.."
cache=$(realpath -m "${WARREN_CACHE:-${HOME:-target}/.cache/warren}/cargo")
if ! mkdir -p "$cache" 2>/dev/null || [[ ! -w $cache ]]; then
    exit 0
fi
# Only packages from a registry have a checksum, which also identifies their names and versions.
place=$cache/$({ rustc -vV && grep '^checksum = ' Cargo.lock; } | sha256sum | cut -c1-16)
case $1 in
place)
    echo "$place"
    ;;
restore)
    [[ ! -d target/debug ]] || exit 0
    if [[ ! -d $place ]]; then
        # The result is empty if the cache is empty.
        place=$(find "$cache" -maxdepth 1 -name '*.lock' -printf '%T@ %p\n' | sort -rn | sed -n '1s/^[^ ]* //p')
        place=${place%.lock}
        [[ -d $place ]] || exit 0
    fi
    echo "restoring: compiled packages from $place"
    mkdir -p target
    flock --shared "$place.lock" cp --archive --no-clobber "$place/." target/
    ;;
esac
