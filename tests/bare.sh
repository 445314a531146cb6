#!/bin/sh
# The README's two commands on a bare Debian (`make test-bare`, as root; NHA_SUITE=trixie, else bookworm): debootstrap's smallest system with
# a C compiler, make and git, this machine's Rust toolchain, and a clone of what is committed. It says how long each command took.
#
# They are run as a user without privileges (tests/confined.py). bare.sh 'COMMAND' ... runs these instead; bare.sh --as-root has root run
# them, or `make test-all`. For root the place is one of its own by pivot_root: a plain chroot does not do, since the tests enter and
# leave mount namespaces. NHA_MIRROR is where Debian is fetched from; without it, where this machine has it from.
# The room (NHA_BARE, or a directory of target) is kept to be inspected after a failure; the next run makes it again but for the base system.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
room=${NHA_BARE:-$target/bare}
suite=${NHA_SUITE:-bookworm}
base=$room/$suite root=$room/root
home=${CARGO_HOME:-$HOME/.cargo}
sysroot=$(rustc --print sysroot)
mirror=${NHA_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)}

as_root='' confined=$PWD/tests/confined.py
if [ "${1:-}" = --as-root ]; then
    as_root=yes confined=
    shift
fi
[ $# -gt 0 ] || set -- ${as_root:+'make test-all'}
[ $# -gt 0 ] || set -- 'make demo' 'make test'

fail() { echo "FAILED: $*" >&2 && exit 1; }
[ "$(id -u)" = 0 ] || fail 'this needs root'
[ "$sysroot" != /usr ] || fail 'the toolchain lies in /usr: install one by rustup'
command -v debootstrap >/dev/null || fail 'debootstrap is not there: run make package-deps'

fetch_base() {
    [ ! -d "$base" ] || return 0
    rm -rf "$base.new"
    mkdir -p "$room"
    debootstrap --variant=minbase --include=gcc,libc6-dev,make,git "$suite" "$base.new" "$mirror" >"$room/debootstrap.log" ||
        fail "debootstrap: $room/debootstrap.log"
    mv "$base.new" "$base"
}

# A fresh copy, the committed tree, and what this machine knows of networks: where names are resolved, apt's proxy.
lay_out() {
    rm -rf "$root"
    cp -a "$base" "$root"
    mkdir -p "$root/toolchain" "$root/cargo" "$root/before" "$root/home/user"
    git clone --quiet --no-hardlinks "$PWD" "$root/src"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    apt-config dump Acquire >"$root/etc/apt/apt.conf.d/90-as-here"
    for part in config config.toml registry; do
        [ ! -e "$home/$part" ] || cp -a "$home/$part" "$root/cargo/"
    done
    [ -n "$as_root" ] || chown -R 1000:1000 "$root/src" "$root/cargo" "$root/home/user"
}

# In namespaces of its own: turns the root into /, and becomes the command with an environment of its own. $4 is the place of the user's
# confinement, and empty for root.
ENTER='
    mount --make-rprivate /
    mount --bind "$1" "$1"
    mount --bind -o ro "$2" "$1/toolchain"
    mount -t proc proc "$1/proc"
    mount --rbind /sys "$1/sys"
    mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/dev/shm"
    mount -t tmpfs tmpfs "$1/run"
    set -- "$1" "$4" env -i CARGO_HOME=/cargo PATH=/toolchain/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        CARGO_TERM_COLOR=never CARGO_NET_OFFLINE=true HOME=/home/user sh -c "$3"
    root=$1 confined=$2
    shift 2
    [ -z "$confined" ] || exec "$confined" --root "$root" "$@"
    cd "$root"
    pivot_root . before
    umount -l /before
    cd /src
    exec "$@"'

# in_it COMMAND: what is said goes to the terminal.
in_it() {
    unshare --mount --pid --fork --kill-child --uts sh -ec "$ENTER" sh "$root" "$sysroot" "$1" "$confined"
}

# timed COMMAND: says how long it took.
timed() {
    begun=$(date +%s) result=0
    in_it "$1" || result=$?
    echo "bare $suite: $1: $(($(date +%s) - begun)) s, exit code $result"
    return $result
}

fetch_base
cargo fetch --locked --quiet # what the clone needs is in cargo's home then
lay_out
ended=0
for command in "$@"; do timed "$command" || ended=1; done
exit $ended
