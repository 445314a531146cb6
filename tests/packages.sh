#!/bin/sh
# The packages, checked and tried (`make test-packages`, as root): the same bytes from two places, lintian and rpmlint, and their life
# in a fresh Debian: by themselves (tests/packages-life.sh) and in a living cluster (tests/src/bin/packaged).
#
# SUITES="bookworm trixie" says in which; CLUSTERS in which of them in a living cluster too, else in all. The first run fetches these
# systems; they are kept in the target directory.
# NHA_BUILT=DIRECTORY packs programs that are built already. NHA_MIRROR is where Debian is fetched
# from; without it, where this machine has it from.
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
export CARGO_TARGET_DIR="$target"
# Nobody keeps packages of programs that were built already: they are made quickly.
[ -z "${NHA_BUILT:-}" ] || export XZ_OPT=-0 DPKG_DEB_COMPRESSOR_LEVEL=0 CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
packages=$target/packages
suites=${SUITES:-bookworm trixie}
clusters=${CLUSTERS-$suites}
versions=$target/package/versions
mirror=${NHA_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)}
# neighbours SUITE: what the package recommends and suggests, and an administrator has beside it. After bookworm `fence-agents` draws in half
# a gigabyte of clouds' libraries.
neighbours() {
    case $1 in bookworm) agents=fence-agents ;; *) agents=fence-agents-ipmilan ;; esac
    echo "pacemaker pacemaker-cli-utils resource-agents ca-certificates pcs crmsh $agents"
}

step() { echo "== $*"; }
fail() { echo "FAILED: $*" >&2 && exit 1; }

# Everything that a package's build can see is another one here: tree, target directory, and where the crates are.
build_elsewhere() {
    other=$target/package/elsewhere
    rm -rf "$other/tree" "$other/target/packages"
    mkdir -p "$other/tree"
    tar --extract --file "$packages"/nova-host-alerter-*[0-9].tar.gz --strip-components 1 --directory "$other/tree"
    CARGO_TARGET_DIR=$other/target VENDORED=1 "$other/tree/packaging/package.sh" deb >"$other/deb.log" 2>&1 || fail "the deb from elsewhere: $other/deb.log"
    CARGO_TARGET_DIR=$other/target VENDORED=1 "$other/tree/packaging/package.sh" rpm >"$other/rpm.log" 2>&1 || fail "the rpm from elsewhere: $other/rpm.log"
}

# same DIRECTORY: the packages there are byte for byte those here.
same() {
    for made in "$packages"/*.deb "$packages"/*64.rpm; do
        cmp "$made" "$1/${made##*/}" || return 1
        sha256sum "$made"
    done
}

# Of programs that were built for a package: no path of this machine is in them, and the agent of compute hosts loads no library, which
# no memory would hold.
as_built() {
    [ -z "${NHA_BUILT:-}" ] || return 0
    room=$(mktemp -d)
    for deb in "$packages"/*.deb; do dpkg-deb -x "$deb" "$room"; done
    found=$(grep -rlaF -e "$PWD/" -e "${CARGO_HOME:-$HOME/.cargo}" -e "$target/" "$room" || :)
    loads=$(readelf -d "$room/usr/lib/ocf/resource.d/openstack/compute-health" | grep NEEDED || :)
    loads="$loads$(rpm -qp --requires "$packages"/*-compute-health-*64.rpm | grep '^lib' || :)"
    rm -rf "$room"
    [ -z "$found" ] || fail "paths of this machine are in: $found"
    [ -z "$loads" ] || fail "compute-health loads $loads"
}

lint() {
    step 'lintian, rpmlint'
    lintian --allow-root --pedantic --display-info --fail-on error,warning,info,pedantic "$packages"/*.changes
    rpmlint --strict --config packaging/rpm/rpmlint.toml "$packages"/*.rpm packaging/rpm/*.spec >"$target/package/rpmlint.log" 2>&1 || {
        cat "$target/package/rpmlint.log"
        return 1
    }
}

# By default SQLite is built in; without default features the distribution's own is linked (docs/packaging.md).
sqlite() {
    step 'SQLite, built in and not'
    set -- "${CARGO:-cargo}" tree --locked -p alerter -p fence-agent --edges features,normal,build --invert libsqlite3-sys --prefix none
    "$@" | grep '^libsqlite3-sys feature "bundled"' >/dev/null || fail 'SQLite is not built in'
    "$@" --no-default-features >"$target/package/features"
    grep -q '^libsqlite3-sys ' "$target/package/features" || fail 'there is no SQLite'
    ! grep '^libsqlite3-sys feature "bundled"' "$target/package/features" || fail 'SQLite is built in for those too who want their own'
}

# fetch_system SUITE: a Debian of the smallest kind, the archives of what is installed into it later without any network, and a controller.
fetch_system() {
    system=$target/package/$1
    mkdir -p "$system/archives"
    if [ ! -d "$system/base" ]; then
        rm -rf "$system/base.new"
        debootstrap --variant=minbase "$1" "$system/base.new" "$mirror" >"$system/debootstrap.log" || fail "debootstrap: $system/debootstrap.log"
        printf '#!/bin/sh\nexit 101\n' >"$system/base.new/usr/sbin/policy-rc.d"
        chmod 755 "$system/base.new/usr/sbin/policy-rc.d"
        mv "$system/base.new" "$system/base"
    fi
    [ ! -d "$system/controller" ] || return 0
    rm -rf "$system/controller.new"
    mkdir -p "$system/base/archives"
    cp -a "$system/base" "$system/controller.new"
    # shellcheck disable=SC2046 # a list
    DEBIAN_FRONTEND=noninteractive unshare --mount --pid --fork --kill-child sh -ec 'mount --bind "$1/archives" "$1/controller.new/archives"
        mount -t proc proc "$1/controller.new/proc"; root=$1/controller.new; shift
        chroot "$root" apt-get -q -y -o Dir::Cache::archives=/archives -o DPkg::Options::=--force-unsafe-io --no-install-recommends install systemd "$@"' \
        sh "$system" $(neighbours "$1") >"$system/fetch.log" 2>&1 || fail "the controller: $system/fetch.log"
    mv "$system/controller.new" "$system/controller"
}

# All at once: each is one process that unpacks.
fetch_systems() {
    fetches=
    for suite in $suites; do
        fetch_system "$suite" &
        fetches="$fetches $!"
    done
    for fetch in $fetches; do wait "$fetch"; done
}

# version NAME VERSION [SHELL]: the deb as NAME.deb under another version, with SHELL in its postinst.
version() {
    room=$versions/$1
    dpkg-deb -R "$packages"/nova-host-alerter_*.deb "$room"
    sed -i "s/^Version: .*/Version: $2/" "$room/DEBIAN/control"
    [ -z "${3:-}" ] || sed -i "2i $3" "$room/DEBIAN/postinst"
    dpkg-deb --root-owner-group -Znone -b "$room" "$versions/$1.deb" >/dev/null
    rm -rf "$room"
}

make_versions() {
    rm -rf "$versions"
    mkdir -p "$versions"
    version newer 0.3.0-2
    version killing 0.3.0-3 'kill "$(cut -d " " -f 1 /var/lib/nova-host-alerter/marks.db.lock)"'
}

# Controllers of a real cluster that are a Debian of that suite each.
cluster() {
    case " $clusters " in *" $suite "*) ;; *) return 0 ;; esac
    # Beside programs that are built already it is too.
    [ -n "${NHA_BUILT:-}" ] || "${CARGO:-cargo}" build --locked --quiet -p tests --bin packaged
    "$target/debug/packaged" "$target/package/$suite/controller" "$packages"/nova-host-alerter_*.deb "$versions/newer.deb" "$versions/killing.deb"
}

# life BASE SCENE: in namespaces of its own: no network, and no process outlives it.
life() {
    room=$(mktemp -d -p "$target/package")
    ended=0
    unshare --mount --pid --fork --kill-child --net --uts tests/packages-life.sh "$room" "$target/package/$suite" "$1" "$packages" "$versions" "$2" || ended=$?
    cp "$room/log" "$target/package/life-$suite-$2.log"
    rm -rf "$room"
    return $ended
}

build() {
    step 'make deb, make rpm'
    mkdir -p "$target/package"
    rm -rf "$packages"
    packaging/package.sh deb >"$target/package/deb.log" 2>&1 || fail "make deb: $target/package/deb.log"
    packaging/package.sh rpm >"$target/package/rpm.log" 2>&1 || fail "make rpm: $target/package/rpm.log"
    as_built
}

twice() {
    step 'the same from another place, from the tarball of the crates'
    build_elsewhere
    same "$target/package/elsewhere/target/packages" || fail 'two builds differ'
}

lives() {
    fetch_systems
    make_versions
    for suite in $suites; do
        step "a fresh Debian: $suite"
        scenes
    done
}

scenes() {
    for scene in ${SCENES:-installed_alone upgraded_and_purged rpm cluster}; do
        case $scene in
        cluster) cluster ;;
        upgraded_and_purged) life controller "$scene" ;;
        *) life base "$scene" ;;
        esac
    done
}

# The agent for other distributions. Where there is no compiler for it, that is said.
static() {
    step 'make static'
    fetch_systems
    suite=${suites%% *}
    if packaging/package.sh static >"$target/package/static.log" 2>&1; then
        life base static_agent
    else
        grep '^make static: ' "$target/package/static.log" || fail "make static: $target/package/static.log"
        echo 'skipped: the static agent'
    fi
}

[ "$(id -u)" = 0 ] || fail 'that needs root: sudo make test-packages'
# Alone, what is named: `tests/packages.sh lint lives`, `SCENES=rpm tests/packages.sh lives`.
for part in ${*:-build twice lint sqlite static lives}; do "$part"; done
echo 'all of it holds'
