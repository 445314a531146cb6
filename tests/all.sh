#!/bin/sh
# All tests of this machine's release (`make test-all`, as root): what `make test` runs, as a user without any privilege; what it leaves out, as
# root; and beside both the real clusters, services, browser and packages. A test that none of them ran fails this.
#
# NHA_LEAVES=LIST leaves out a list of scenarios that `make test-releases` plays: CONTRIBUTING.md.
# On another release of Pacemaker (RELEASES, names of tests/roots.sh) those scenarios are run whose answers differ by release: CONTRIBUTING.md.
set -eu
cd "$(dirname "$0")/.."
export CARGO="${CARGO:-cargo}" CI=true # a test that root cannot run fails instead of stepping aside
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
chmod 755 "$said"
lists=$said/lists root=$said/root user=$said/user
mkdir "$root" "$user" "$said/home"
chown 1000:1000 "$user" "$said/home"
echo 'building the programs and their tests'
tests/lists.sh build "$lists"
built=$(dirname "$(dirname "$(sed -n '1s/.* //p' "$lists")")") # where the programs lie
wait "$roots"

# list DIRECTORY/NAME: its line of what was built.
list() { grep "/$(dirname "$1") $(basename "$1") " "$lists"; }

# as_root LIST [ONLY]
as_root() {
    # shellcheck disable=SC2046 # the words of a line
    tests/lists.sh play "$root" $(list "$1") ${2:+"$2"}
}

# lists NAME ...: lists of scenarios, on this machine's release or on that of NHA_RELEASE.
lists() {
    ended=0
    for name in "$@"; do as_root "tests/$name" || ended=1; done
    return "$ended"
}

# others LIST: on each other release.
others() {
    result=0
    for release in $releases; do
        [ "$release" = "$own" ] || NHA_RELEASE=$release lists "$1" || result=1
    done
    return "$result"
}

# Its server is compiled while others wait for their clusters.
kubernetes() {
    [ "${NHA_LEAVES:-}" != kubernetes ] || return 0
    nice tests/deps/kubernetes.sh && lists kubernetes
}

# part I/N LIST: a part of its scenarios.
part() { NHA_PART=$1 lists "$2"; }

# The answers of Pacemaker that the rules read: of its fencer, its history, its connections, its tools.
answers() { NHA_SCENARIOS='fencer evidence setup' others cluster; }
# What tempts Pacemaker itself, on the newest release that is here.
harm() {
    newest=${releases##* }
    [ "$newest" != "$own" ] || newest=
    NHA_RELEASE=$newest NHA_SCENARIOS=harm lists failover
}

# confined COMMAND ...: as that user, who reaches the tree and what was built of it wherever they lie.
confined() {
    nice unshare --mount --propagation private tests/confined.py --reach "$PWD" "$built" -- \
        env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME="$said/home" "$@"
}

everywhere() { confined make --no-print-directory test NHA_LISTS="$lists" NHA_ROOM="$user"; }

# What `make test` leaves out of its longest list, which says it before it is run.
privileged() {
    # shellcheck disable=SC2046 # the words of a line
    set -- $(list tests/it)
    confined tests/lists.sh names "$3" --ignored >"$said/only"
    [ -s "$said/only" ] && as_root tests/it "$said/only"
}

# What it has left out of the others, which their tests say when they are run.
rest() {
    result=0
    for name in fence-agent/it alerter/it; do
        sed -n "s|^out	$(echo "$name" | tr / ' ')	||p" "$user"/*.tests >"$said/only.rest"
        [ ! -s "$said/only.rest" ] || as_root "$name" "$said/only.rest" || result=1
    done
    return "$result"
}

# As that user; and then as root what it has left out, which only it says.
unprivileged() {
    ended=0
    everywhere || ended=1
    rest && return "$ended"
}

packages() { SUITES=$own CLUSTERS=$own NHA_BUILT=$built tests/packages.sh "$@"; }

# The packages are made first, and then they live in fresh systems.
packaged() { packages build lint && packages lives; }

# The longest first: who has done one takes the next, so that all end together on any machine.
cat >"$said/jobs" <<'END'
privileged
unprivileged
packaged
kubernetes
part 3/6 failover
part 2/2 cluster
part 2/6 failover
harm
part 5/6 failover
part 4/6 failover
part 1/2 cluster
part 6/6 failover
answers
lists openstack
part 1/6 failover
lists page
packages sqlite
END

# take: the next job, which nobody else gets.
take() {
    flock "$said/jobs.lock" sed -i '1{w /dev/stdout
d}' "$said/jobs"
}

work() {
    while job=$(take) && [ -n "$job" ]; do
        at=$(date +%s)
        $job </dev/null || echo "$job" >>"$said/failed"
        echo "== $job: $(($(date +%s) - at)) s"
    done
}

# More than five at once starve on two cores: Pacemaker's own time limits run out.
for _ in 1 2 3 4 5; do
    work &
    running="$running $!"
done
for one in $running; do wait "$one"; done
[ -z "${NHA_LEAVES:-}" ] || sed -i "/^out	tests $NHA_LEAVES	/d" "$user"/*.tests

# shellcheck disable=SC2046 # its words
set -- $(tests/lists.sh total "$root" "$user")
[ ! -e "$said/failed" ] || echo "FAILED: $(tr '\n' ';' <"$said/failed")"
grep -h '^failed' "$root"/*.tests "$user"/*.tests || :
tests/lists.sh left "$root" "$user"
# As cargo would count them.
echo "test result: $([ "$3" = 0 ] && echo ok || echo FAILED). $1 passed; $3 failed; $5 ignored; 0 measured; 0 filtered out"
[ ! -e "$said/failed" ] && [ "$3" = 0 ] && [ "$5" = 0 ]
