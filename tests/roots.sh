#!/bin/sh
# Debian systems with Pacemaker of other releases, below target/roots, for the tests' clusters (`make roots`, as root):
# roots.sh SUITE ...        bullseye 2.0.5, bookworm 2.1.5, trixie 3.0.0, forky 3.0.1, sid 3.0.3
# roots.sh 2.1.10           bookworm with that release, built from its source
#
# A root is made once and kept; it is made again where this script or the cluster's accounts have changed.
# NHA_MIRROR is where Debian is fetched from; without it, where this machine has it from. NHA_PACEMAKER is a repository of Pacemaker's source.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
roots=$target/roots
mirror=${NHA_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)}
source=${NHA_PACEMAKER:-https://github.com/ClusterLabs/pacemaker}
packages='pacemaker corosync pacemaker-cli-utils resource-agents crmsh pcs iproute2 util-linux procps'
builders='autoconf automake autopoint gettext libtool make gcc libc6-dev pkg-config git python3 xsltproc libqb-dev libcpg-dev libcmap-dev libcfg-dev
    libquorum-dev libcorosync-common-dev libxml2-dev libxslt1-dev uuid-dev libgnutls28-dev libbz2-dev libglib2.0-dev libdbus-1-dev libltdl-dev'

fail() { echo "FAILED: $*" >&2 && exit 1; }
[ "$(id -u)" = 0 ] || fail 'this needs root'
command -v debootstrap >/dev/null || fail 'debootstrap is not there: run make deps'
user=$(id -u hacluster) group=$(getent group haclient | cut -d: -f3)
stamp="$(sha256sum <"$0" | cut -c1-16) $user $group"

# in_root ROOT COMMAND: with the root's own /proc; what it starts ends with it.
in_root() {
    unshare --mount --pid --fork --kill-child sh -ec 'mount -t proc proc "$1/proc"; exec chroot "$1" sh -ec "$2"' sh "$1" "$2"
}

# The accounts have this machine's numbers: files are laid out for both.
fill() {
    printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
    chmod 755 "$1/usr/sbin/policy-rc.d"
    cp -L /etc/resolv.conf /etc/hosts "$1/etc/"
    apt-config dump Acquire >"$1/etc/apt/apt.conf.d/90-as-here"
    # An unstable suite's list of files may have expired.
    echo 'Acquire::Check-Valid-Until "false";' >"$1/etc/apt/apt.conf.d/91-expired"
    in_root "$1" "
        groupadd --gid $group haclient && useradd --uid $user --gid haclient --home-dir /var/lib/pacemaker --shell /usr/sbin/nologin hacluster
        export DEBIAN_FRONTEND=noninteractive
        apt-get -q update
        apt-get -q -y --no-install-recommends -o DPkg::Options::=--force-unsafe-io install $packages
        cd /tmp && apt-get -q download pacemaker-remote && dpkg -x pacemaker-remote_*.deb /tmp/remote
        cp /tmp/remote/usr/sbin/pacemaker-remoted /usr/sbin/
        rm -rf /tmp/remote /tmp/*.deb
        apt-get clean"
}

# build ROOT RELEASE: over the distribution's own, in the same places.
build() {
    git clone --quiet --depth 1 --branch "Pacemaker-$2" "$source" "$1/tmp/pacemaker"
    in_root "$1" "
        export DEBIAN_FRONTEND=noninteractive
        apt-get -q -y --no-install-recommends -o DPkg::Options::=--force-unsafe-io install $(echo $builders)
        cd /tmp/pacemaker && ./autogen.sh
        ./configure --prefix=/usr --libdir=/usr/lib/\$(gcc -print-multiarch) --libexecdir=/usr/lib --sysconfdir=/etc --localstatedir=/var \
            --with-ocfdir=/usr/lib/ocf --with-corosync --disable-nls
        make --jobs=$(nproc) && make install
        rm -rf /tmp/pacemaker && apt-get clean"
}

make_root() {
    case $1 in [0-9]*) suite=bookworm ;; *) suite=$1 ;; esac
    root=$roots/$1 log=$roots/$1.log
    [ "$(cat "$root/made" 2>/dev/null)" != "$stamp" ] || return 0
    echo "make roots: $1 (its log: $log)"
    rm -rf "$root" "$root.new"
    mkdir -p "$roots"
    debootstrap --variant=minbase "$suite" "$root.new" "$mirror" >"$log" 2>&1 || fail "debootstrap of $1: $log"
    fill "$root.new" >>"$log" 2>&1 || fail "packages of $1: $log"
    [ "$suite" = "$1" ] || build "$root.new" "$1" >>"$log" 2>&1 || fail "Pacemaker $1: $log"
    echo "$stamp" >"$root.new/made"
    mv "$root.new" "$root"
}

for suite in "$@"; do make_root "$suite"; done
