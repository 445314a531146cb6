#!/bin/sh
# Every scenario on real clusters of each release (`make test-releases`, as root), and docs/releases.md, which says what came of it:
# releases.sh RELEASE ...     the names of tests/roots.sh; without one all of them
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
[ $# -gt 0 ] || set -- bullseye bookworm 2.1.10 trixie sid

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

# run RELEASE LIST: "PASSED of ALL", and which failed; why stands in the log below the target directory.
run() {
    log=$target/releases-$1-$2${NHA_SCENARIOS:+-$NHA_SCENARIOS}.log release=$1 ended=0
    [ "$release" != "$own" ] || release=
    NHA_RELEASE=$release NHA_REQUIRE_CLUSTER=1 "$(program "$2")" >"$log" 2>&1 || ended=$?
    count "$log"
    return "$ended"
}

# bare SUITE: all tests on a bare Debian, with that release's Pacemaker and OpenStack.
bare() {
    log=$target/releases-bare-$1.log ended=0
    NHA_SUITE=$1 tests/bare.sh --as-root >"$log" 2>&1 || ended=$?
    count "$log"
    return "$ended"
}

count() {
    LC_ALL=C awk '/^test result: / { passed += $4; all += $4 + $6 }
        /^    [a-z0-9.]*: / { failed = failed (failed ? ", " : ": ") "`" $NF "`" }
        END { printf "%d of %d%s", passed, all, failed }' "$1"
}

version() {
    if [ "$1" = "$own" ]; then set -- /; else set -- "$target/roots/$1"; fi
    chroot "$1" pacemakerd --version | awk 'NR == 1 { print $2 }'
}

# note NAME VERSION CLUSTER FAILOVER MORE: a row; what is not run keeps its own.
note() {
    row="| $1 | $2 | $3 | $4 | $5 | $(date -u +%F) |"
    { grep -v "^| $1 |" "$page" && echo "$row"; } >"$page.new"
    mv "$page.new" "$page"
    echo "$row"
}

failed=0
for release in "$@"; do [ "$release" = "$own" ] || tests/roots.sh "$release"; done
build
for release in "$@"; do
    cluster=$(run "$release" cluster) || failed=1
    failover=$(run "$release" failover) || failed=1
    harm=$(NHA_SCENARIOS=harm run "$release" failover) || failed=1
    health=$(NHA_SCENARIOS=health run "$release" failover) || failed=1
    silence=$(NHA_SCENARIOS=silence run "$release" failover) || failed=1
    note "$release" "$(version "$release")" "$cluster" "$failover" "harm: $harm; health: $health; silence: $silence"
done
# Controllers of this machine's release become trixie's, one by one, with hosts of an older and of a newer one.
tests/roots.sh bullseye trixie
upgrade=$(NHA_SCENARIOS=upgrade run "$own" failover) || failed=1
note "$own to trixie" "$(version "$own") to $(version trixie)" '' '' "upgrade: $upgrade"
for suite in bookworm trixie; do
    bare=$(bare "$suite") || failed=1
    note "bare $suite" '' '' '' "\`make test-all\`: $bare"
done
[ "$failed" = 0 ]
