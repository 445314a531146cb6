#!/bin/sh
# All tests (`make test`). The failover list mostly waits for its cluster, so it runs beside the others, and is shown behind them.
set -eu
cargo=${CARGO:-cargo}

"$cargo" test --locked --workspace --no-run

beside=$(mktemp)
"$cargo" test --locked --no-fail-fast -p tests --test failover >"$beside" 2>&1 &
failover=$!
trap 'kill "$failover" 2>/dev/null || :; rm -f "$beside"' EXIT

result=0
NHA_BESIDE=failover "$cargo" test --locked --workspace --no-fail-fast || result=$?
wait "$failover" || result=$?
cat "$beside"
exit "$result"
