#!/bin/sh
# All tests (`make test`). What mostly waits for its cluster runs beside the others, and is shown behind them: the failover list, then on
# each other release of RELEASES the cluster list and the scenarios that would make a false mark.
set -eu
cargo=${CARGO:-cargo}
# shellcheck source=/dev/null
own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")

"$cargo" test --locked --workspace --no-run
for release in ${RELEASES:-}; do
    [ "$release" = "$own" ] || tests/roots.sh "$release"
done

# list NAME: a list of scenarios, on this machine's release or on that of NHA_RELEASE.
list() {
    "$cargo" test --locked --no-fail-fast -p tests --test "$1"
}

beside() {
    ended=0
    list failover || ended=$?
    for release in ${RELEASES:-}; do
        [ "$release" != "$own" ] || continue
        echo "== Pacemaker of $release"
        NHA_RELEASE=$release list cluster || ended=$?
        NHA_RELEASE=$release NHA_SCENARIOS=false-marks list failover || ended=$?
    done
    return "$ended"
}

said=$(mktemp)
beside >"$said" 2>&1 &
lists=$!
trap 'kill "$lists" 2>/dev/null || :; rm -f "$said"' EXIT

result=0
NHA_BESIDE=failover "$cargo" test --locked --workspace --no-fail-fast || result=$?
wait "$lists" || result=$?
cat "$said"
exit "$result"
