#!/bin/sh
# Every scenario on real clusters of each release (`make test-releases`, as root), and docs/releases.md, which says what came of it:
# releases.sh SUITE ...       the suites of tests/roots.sh; without one all of them
#
# Programs and tests are built for musl, without a library of the system: those of Debian 12 do not run on an older one.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
target=${CARGO_TARGET_DIR:-$PWD/target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
musl=$(uname -m)-unknown-linux-musl
page=docs/releases.md
own=$(. /etc/os-release && echo "$VERSION_CODENAME")
[ $# -gt 0 ] || set -- bullseye bookworm trixie sid

build() {
    "$cargo" build --locked --quiet --target "$musl" --workspace --bins
    "$cargo" test --locked --quiet --target "$musl" -p tests --test cluster --test failover --no-run
    ln -sfn ../roots "$target/$musl/roots"
    ln -sfn ../lab-deps "$target/$musl/lab-deps"
}

# program LIST: the newest build of that list.
program() {
    find "$target/$musl/debug/deps" -name "$1-*" -perm -u+x -type f -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2
}

# run SUITE LIST: "PASSED of ALL"; what failed stands in the log below the target directory.
run() {
    log=$target/releases-$1-$2.log release=$1 ended=0
    [ "$release" != "$own" ] || release=
    NHA_RELEASE=$release NHA_REQUIRE_CLUSTER=1 "$(program "$2")" >"$log" 2>&1 || ended=$?
    awk '/^test result: / { passed += $4; all += $4 + $6 } END { printf "%d of %d", passed, all }' "$log"
    return "$ended"
}

version() {
    if [ "$1" = "$own" ]; then
        dpkg-query -W -f '${Version}' pacemaker
    else
        chroot "$target/roots/$1" dpkg-query -W -f '${Version}' pacemaker
    fi
}

# note NAME VERSION CLUSTER FAILOVER: a row; what is not run keeps its own.
note() {
    row="| $1 | $2 | $3 | $4 | $(date -u +%F) |"
    { grep -v "^| $1 " "$page" && echo "$row"; } >"$page.new"
    mv "$page.new" "$page"
    echo "$row"
}

failed=0
for suite in "$@"; do [ "$suite" = "$own" ] || tests/roots.sh "$suite"; done
build
for suite in "$@"; do
    cluster=$(run "$suite" cluster) || failed=1
    failover=$(run "$suite" failover) || failed=1
    note "$suite" "$(version "$suite")" "$cluster" "$failover"
done
# Controllers of this machine's release become trixie's, one by one, with hosts of an older and of a newer one.
tests/roots.sh bullseye trixie
upgrade=$(NHA_SCENARIOS=upgrade run "$own" failover) || failed=1
note "$own to trixie" "$(version "$own") to $(version trixie)" '' "upgrade: $upgrade"
[ "$failed" = 0 ]
