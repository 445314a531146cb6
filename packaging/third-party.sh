#!/bin/sh
# Prints the crates that are linked into the programs, their licences, and each text of a licence once, as these licences require.
# The arguments go to cargo.
set -eu
cd "$(dirname "$0")/.."
cargo_home=${CARGO_HOME:-$HOME/.cargo}

# Name, version and licence of each crate that is linked in, except our own.
crates() {
    "${CARGO:-cargo}" tree --locked --offline "$@" -p alerter -p fence-agent --edges normal,no-proc-macro --prefix none \
        --format '{p}|{l}' | sed 's/ (\*)$//; s/ v/ /' | grep -v -e ' (/' -e '^$' | LC_ALL=C sort -u
}

# The licence texts in a crate's directory.
texts() {
    for directory in "vendor/$1-$2" "$cargo_home"/registry/src/*/"$1-$2"; do
        [ -d "$directory" ] || continue
        find "$directory" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'unlicense*' \) | LC_ALL=C sort
        return
    done
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
crates "$@" >"$work/crates"
[ -s "$work/crates" ] || { echo 'third-party: cargo lists no crate' >&2; exit 1; }
echo 'These crates are linked into nova-host-alerter, fence_mark and alert_mark, each under its own licence.'
echo 'SQLite, in libsqlite3-sys, is in the public domain; the standard library of Rust is under MIT OR Apache-2.0. The texts follow, each once.'
echo
sed 's/|/: /' "$work/crates"
while IFS='| ' read -r name version _; do
    texts "$name" "$version" | while read -r text; do
        sum=$(sha256sum <"$text")
        sum=${sum%% *}
        [ -e "$work/$sum" ] || cp "$text" "$work/$sum"
        echo "$name $version (${text##*/})" >>"$work/$sum.of"
        echo "$sum" >>"$work/order"
    done
done <"$work/crates"
awk '!seen[$0]++' "$work/order" | while read -r sum; do
    printf '\n%s\n' ------------------------------------------------------------------------
    cat "$work/$sum.of"
    echo
    cat "$work/$sum"
done
