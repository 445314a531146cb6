#!/usr/bin/env bash
# Builds the programs of release 0.1.0 from this repository's own history, for the test of an upgrade: target/former has them then.
# What both releases are made of is compiled once.
set -euo pipefail
cd "$(dirname "$0")/.."

commit=$(sed -n 's/^| 0\.1\.0 | `\([0-9a-f]*\)` |$/\1/p' docs/upgrade.md)
target=${CARGO_TARGET_DIR:-$PWD/target}
programs="nova-host-alerter fence_mark alert_mark"
place=$target/former
[ "$(cat "$place/commit" 2>/dev/null)" != "$commit" ] || exit 0

mkdir -p "$place/source"
git -c safe.directory="$PWD" archive "$commit" | tar -x -C "$place/source"
# Links to what is compiled already: cargo takes what fits, and writes the rest again.
rm -rf "$place/build"
mkdir -p "$place/build/debug"
for part in deps build .fingerprint; do
    cp -al "$target/debug/$part" "$place/build/debug/$part"
done
export CARGO_TARGET_DIR=$place/build
unset RUSTC_WORKSPACE_WRAPPER # that lint is of today
# shellcheck disable=SC2086 # a list of words
cargo build --quiet --locked --manifest-path "$place/source/Cargo.toml" $(printf -- '--bin %s ' $programs)
for program in $programs; do
    cp "$place/build/debug/$program" "$place/$program"
done
rm -rf "$place/build" "$place/source"
echo "$commit" >"$place/commit"
