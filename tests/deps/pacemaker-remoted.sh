#!/bin/sh
# Puts Debian's pacemaker-remoted below DIR without installing it: the package
# conflicts with pacemaker, and the test cluster needs both on one machine.
#
# usage: pacemaker-remoted.sh [DIR]      (result: DIR/usr/sbin/pacemaker-remoted; DIR is below the target directory)
set -eu

dir=${1:-${CARGO_TARGET_DIR:-$(dirname "$0")/../../target}/lab-deps}
daemon=$dir/usr/sbin/pacemaker-remoted

# Elsewhere the two packages can be installed side by side.
command -v dpkg-query >/dev/null || exit 0

# Both halves of a cluster come from one source package: another version is fetched again.
wanted=$(dpkg-query -W -f '${Version}' pacemaker)
if [ -x "$daemon" ] && [ "$(cat "$dir/version" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
work=$(mktemp -d "$dir/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
# Where apt cannot drop its rights to read the directory it says so and downloads all the same.
download() { apt-get -q download "pacemaker-remote=$wanted" >&2; }
# A machine whose packages came with its image may have no package lists.
download || { apt-get -q update >&2 && download; }
dpkg -x pacemaker-remote_*.deb "$work/x"
rm -rf "$dir/usr"
mv "$work/x/usr" "$dir/usr"
echo "$wanted" >"$dir/version"
