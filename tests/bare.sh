#!/bin/sh
# The README's two commands on a bare Debian (`make test-bare`, as root; NHA_SUITE=trixie, else bookworm): debootstrap's smallest system with
# a C compiler, make and git, this machine's Rust toolchain, and a clone of what is committed. It says how long each command took.
#
# The root is a place of its own by pivot_root: a plain chroot does not do, since the tests enter and leave mount namespaces.
# bare.sh 'COMMAND' ... runs these instead. NHA_MIRROR is where Debian is fetched from; without it, where this machine has it from.
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
    mkdir -p "$root/toolchain" "$root/cargo" "$root/before"
    git clone --quiet --no-hardlinks "$PWD" "$root/src"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    apt-config dump Acquire >"$root/etc/apt/apt.conf.d/90-as-here"
    for part in config config.toml registry; do
        [ ! -e "$home/$part" ] || cp -a "$home/$part" "$root/cargo/"
    done
}

# In namespaces of its own: turns the root into /, and becomes the command with an environment of its own.
ENTER='
    mount --make-rprivate /
    mount --bind "$1" "$1"
    mount --bind -o ro "$2" "$1/toolchain"
    mount -t proc proc "$1/proc"
    mount --rbind /sys "$1/sys"
    mount --rbind /dev "$1/dev"
    cd "$1"
    pivot_root . before
    umount -l /before
    mount -t tmpfs tmpfs /dev/shm
    mount -t tmpfs tmpfs /run
    cd /src
    exec env -i HOME=/root CARGO_HOME=/cargo PATH=/toolchain/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        CI=true CARGO_TERM_COLOR=never CARGO_NET_OFFLINE=true sh -c "$3"'

# in_it COMMAND: what is said goes to the terminal.
in_it() {
    unshare --mount --pid --fork --kill-child --uts sh -ec "$ENTER" sh "$root" "$sysroot" "$1"
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
[ $# -gt 0 ] || set -- 'make demo' 'make test'
ended=0
for command in "$@"; do timed "$command" || ended=1; done
exit $ended
