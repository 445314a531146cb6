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
said=$(mktemp -d)
running=
trap 'kill $running 2>/dev/null || :; rm -rf "$said"' EXIT
echo 'building the tests'
"$cargo" test --locked --workspace --no-run >"$said/built" 2>&1 || { cat "$said/built" && exit 1; }
wait "$roots"

# lists NAME ...: lists of scenarios, on this machine's release or on that of NHA_RELEASE. Their programs are run as they are: cargo would
# have them wait for whoever else builds here.
lists() {
    ended=0
    for list in "$@"; do
        program=$(sed -n "s|^ *Executable tests/$list/main.rs (\(.*\))$|\1|p" "$said/built")
        case $program in /*) ;; *) program=$PWD/$program ;; esac
        echo "     Running $list ($program)"
        (cd tests && exec "$program") || ended=$?
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

lists failover >"$said/1" 2>&1 & running="$running $!"
others >"$said/2" 2>&1 & running="$running $!"
lists cluster page openstack >"$said/3" 2>&1 & running="$running $!"

result=0
NHA_BESIDE='failover cluster page openstack' "$cargo" test --locked --workspace --no-fail-fast || result=$?
for line in $running; do wait "$line" || result=$?; done
cat "$said"/[0-9]
exit "$result"
