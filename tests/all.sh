#!/bin/sh
# All tests (`make test`). What mostly waits for its cluster, its services or its browser runs beside the others, in as many lines as there
# are kinds of such, and is shown behind them. On each other release of RELEASES, a name of tests/roots.sh, the cluster list is run, and the
# scenarios that would make a false mark.
set -eu
cargo=${CARGO:-cargo}
# shellcheck source=/dev/null
own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
# What is built here does not run on an older system: `make test-releases` builds for all.
case $own in
bookworm) usual='bookworm trixie' ;;
*) usual=$own ;;
esac
releases=${RELEASES:-$usual}

for release in $releases; do
    [ "$release" = "$own" ] || tests/roots.sh "$release"
done &
roots=$!
"$cargo" test --locked --workspace --no-run
wait "$roots"

# lists NAME ...: lists of scenarios, on this machine's release or on that of NHA_RELEASE.
lists() {
    ended=0
    for list in "$@"; do
        "$cargo" test --locked --no-fail-fast -p tests --test "$list" || ended=$?
    done
    return "$ended"
}

others() {
    ended=0
    for release in $releases; do
        [ "$release" != "$own" ] || continue
        echo "== Pacemaker of $release"
        NHA_RELEASE=$release lists cluster || ended=$?
        NHA_RELEASE=$release NHA_SCENARIOS=false-marks lists failover || ended=$?
    done
    return "$ended"
}

said=$(mktemp -d)
trap 'kill $running 2>/dev/null || :; rm -rf "$said"' EXIT
running=
lists failover >"$said/1" 2>&1 & running="$running $!"
others >"$said/2" 2>&1 & running="$running $!"
lists cluster page openstack >"$said/3" 2>&1 & running="$running $!"

result=0
NHA_BESIDE='failover cluster page openstack' "$cargo" test --locked --workspace --no-fail-fast || result=$?
for line in $running; do wait "$line" || result=$?; done
cat "$said"/*
exit "$result"
