#!/bin/sh
# All tests (`make test`). What mostly waits for its cluster, its services or its browser runs beside the others, in as many lines as there
# are kinds of such, and is shown behind them with what it took. On each other release of RELEASES, a name of tests/roots.sh, the cluster
# list is run, and the scenarios that would make a false mark if what Pacemaker says were read wrongly.
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
# All in one: cargo would build programs alone with other features of what they share with the tests, and all of it twice.
"$cargo" build --locked --workspace --bins --tests
"$cargo" test --locked --workspace --no-run --quiet --message-format=json >"$said/built" || exit 1
wait "$roots"

# program LIST: what cargo has built of that test of this package. It is run as it is: cargo would have it wait for other builds here.
program() {
    sed -n 's|.*"manifest_path":"[^"]*/tests/Cargo.toml".*"name":"'"$1"'".*"executable":"\([^"]*\)".*|\1|p' "$said/built"
}

# lists NAME ...: lists of scenarios, on this machine's release or on that of NHA_RELEASE.
lists() {
    ended=0
    for list in "$@"; do
        name="$list${NHA_SCENARIOS:+, $NHA_SCENARIOS}${NHA_PART:+, part $NHA_PART}${NHA_RELEASE:+, Pacemaker of $NHA_RELEASE}" begun=$(date +%s)
        program=$(program "$list")
        echo "== $name ($program)"
        (cd tests && exec "$program") || ended=$?
        echo "== $name: $(($(date +%s) - begun)) s"
    done
    return "$ended"
}

# line COMMAND ...: beside the others.
line() {
    lines=$((lines + 1))
    "$@" >"$said/$lines" 2>&1 &
    running="$running $!"
}

# others LIST: on each other release.
others() {
    result=0
    for release in $releases; do
        [ "$release" = "$own" ] || NHA_RELEASE=$release lists "$1" || result=$?
    done
    return "$result"
}

part() { NHA_PART=$1 lists failover; }

harm() { NHA_PART=$1 NHA_SCENARIOS='doubt harm' others failover; }

# What computes makes way for what keeps time.
behind() { nice sh -c 'cd tests && exec "$0"' "$(program "$1")"; }

# both COMMAND COMMAND: the second too where the first fails.
both() {
    ended_first=0
    $1 || ended_first=$?
    $2 && return "$ended_first"
}

# Four that take as long as each other. More lines of clusters than these starve on two cores: Pacemaker's own time limits run out.
lines=0
line both 'part 1/2' 'harm 1/2'
line both 'part 2/2' 'lists page receivers'
line both 'others cluster' 'lists openstack kubernetes'
line both 'lists cluster' 'harm 2/2'
line behind it

result=0 begun=$(date +%s)
NHA_BESIDE='failover cluster page receivers openstack kubernetes it' nice "$cargo" test --locked --workspace --no-fail-fast || result=$?
echo "== the other tests: $(($(date +%s) - begun)) s"
for one in $running; do wait "$one" || result=$?; done
number=0
while [ "$number" -lt "$lines" ]; do
    number=$((number + 1))
    cat "$said/$number"
done
exit "$result"
