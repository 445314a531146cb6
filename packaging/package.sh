#!/bin/sh
# Makes a package of the tracked files of this tree, in target/packages: `packaging/package.sh source|vendor|deb|rpm|static`.
#
# VENDORED=1 builds from the crates of the vendor tarball alone. NHA_BUILT=DIRECTORY packs programs that are built already.
set -eu
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C.UTF-8 TZ=UTC
# A package's build may have another home.
export CARGO_HOME="${CARGO_HOME:-$HOME/.cargo}" RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}"

name=nova-host-alerter
version=$(sed -n 's/^version = "\(.*\)".*/\1/p' Cargo.toml | head -n 1)
target=${CARGO_TARGET_DIR:-$PWD/target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
export CARGO_TARGET_DIR="$target"
work=$target/package
out=$target/packages
source=$out/$name-$version.tar.gz
vendor=$out/$name-$version-vendor.tar.xz

# All times in a package are that of the newest entry of its changelog.
SOURCE_DATE_EPOCH=$(date -d "$(sed -n 's/^ -- .*>  //p' packaging/debian/changelog | head -n 1)" +%s)
export SOURCE_DATE_EPOCH

need() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null || {
            echo "packaging: $tool is not here: run \`make package-deps\`" >&2
            exit 1
        }
    done
}

# The files of the tree: those that git tracks and that exist, or all of an unpacked tree.
files() {
    if [ -e .git ]; then git ls-files; else find . -type f ! -path './target/*' ! -path './vendor/*' ! -path './debian/*' | sed 's|^\./||'; fi |
        LC_ALL=C sort | while read -r file; do [ ! -e "$file" ] || echo "$file"; done
}

# archive ARGUMENTS...: an archive that is independent of this machine and of the time.
archive() {
    tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw,a-s --format=gnu "$@"
}

make_source() {
    mkdir -p "$out"
    files | archive --transform "s,^,$name-$version/," --no-recursion --files-from - | gzip -9n >"$source"
    echo "made $source"
}

# Every crate of Cargo.lock, also for other systems: cargo needs them all.
make_vendor() {
    mkdir -p "$out" "$work"
    rm -rf "$work/vendor"
    "${CARGO:-cargo}" vendor --locked --quiet --versioned-dirs "$work/vendor" >/dev/null
    archive --directory "$work" vendor | xz -T0 >"$vendor.part"
    mv "$vendor.part" "$vendor"
    rm -rf "$work/vendor"
    echo "made $vendor"
}

# The vendor tarball, if the build uses it.
vendored() {
    [ -n "${VENDORED:-}" ] || return 1
    [ -e "$vendor" ] || make_vendor
}

make_deb() {
    need dpkg-buildpackage dh
    make_source
    room=$work/deb
    rm -rf "$room"
    mkdir -p "$room"
    tar --extract --file "$source" --directory "$room"
    cp "$source" "$room/${name}_$version.orig.tar.gz"
    if vendored; then
        cp "$vendor" "$room/${name}_$version.orig-vendor.tar.xz"
        tar --extract --file "$vendor" --directory "$room/$name-$version"
    fi
    cp -r "$room/$name-$version/packaging/debian" "$room/$name-$version/debian"
    # -d: Rust may be rustup's, which is unknown to dpkg.
    (cd "$room/$name-$version" && dpkg-buildpackage -F -us -uc -d)
    take "$room"/*.deb "$room"/*.dsc "$room"/*.orig* "$room"/*.debian.tar.* "$room"/*.changes "$room"/*.buildinfo
}

make_rpm() {
    need rpmbuild
    make_source
    room=$work/rpm
    rm -rf "$room"
    mkdir -p "$room/SOURCES"
    cp "$source" "$room/SOURCES/"
    with=
    if vendored; then
        cp "$vendor" "$room/SOURCES/"
        with=--with=vendor
    fi
    # If rpm is not the system's own, its database has no compiler.
    [ -e /etc/debian_version ] && nodeps=--nodeps || nodeps=
    # One after the other: together, the package would have a digest of its source package, which has this directory's name in it.
    for kind in -bb -bs; do
        # shellcheck disable=SC2086 # either one word or none
        rpmbuild $kind $with $nodeps --define "_topdir $room" packaging/rpm/$name.spec
    done
    take "$room"/RPMS/*/*.rpm "$room"/SRPMS/*.rpm
}

take() {
    mv "$@" "$out/"
    for made in "$@"; do echo "made $out/${made##*/}"; done
}

make_static() {
    room=$name-fence_mark-$version-$(uname -m)-linux-musl
    rm -rf "$work/static"
    mkdir -p "$out" "$work/static/$room"
    packaging/build.sh "$work/static/$room" static
    cp LICENSE "$work/static/$room/"
    archive --directory "$work/static" "$room" | xz >"$out/$room.tar.xz"
    echo "made $out/$room.tar.xz"
}

"make_$1"
