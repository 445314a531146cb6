#!/bin/sh
# The tests that run everywhere (`make test`): as any user, with a Rust toolchain and a C compiler. What a test needs beside that and does
# not find leaves it out; `make test-all` runs it.
#
# NHA_LISTS is a file of `lists.sh build`: nothing is built then. NHA_ROOM keeps what was said.
set -eu
cd "$(dirname "$0")/.."
room=${NHA_ROOM:-$(mktemp -d)}
[ -n "${NHA_ROOM:-}" ] || trap 'rm -rf "$room"' EXIT
lists=${NHA_LISTS:-$room/lists}
if [ -z "${NHA_LISTS:-}" ]; then
    begun=$(date +%s)
    echo 'building the programs and their tests'
    tests/lists.sh build "$lists"
    echo "built in $(($(date +%s) - begun)) s"
fi

# A bare system trusts nobody, and has no client made; what is not trusted is what tests ask for.
[ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ] || export SSL_CERT_FILE="$PWD/tests/data/ca.pem"

# Their clusters, services and browser are real: `make test-all` starts them.
real='/tests (cluster|failover|openstack|kubernetes|page) '
grep -E "$real" "$lists" | xargs -L 1 tests/lists.sh skip "$room"
# The longest first, two at a time.
result=0
{ grep ' it ' "$lists" && grep -v ' it ' "$lists" | grep -Ev "$real"; } | xargs -P 2 -L 1 tests/lists.sh play "$room" || result=1
# shellcheck disable=SC2046 # its words
set -- $(tests/lists.sh total "$room")
echo "$1 passed, $3 failed; $5 left out: need root, namespaces or programs that are not here (run \`make test-all\`)"
exit "$result"
