#!/bin/sh
# Builds the programs as packages have them, into the directory $1: the same bytes wherever the tree, cargo's home and its target
# directory are. `packaging/build.sh DIRECTORY static` builds fence_mark alone, without any library of the system.
#
# compute-health alone is built without any too: it is held in memory, and no library of the system is.
#
# Never from the network: crates come from vendor/ (`make vendor`) if it exists, else from cargo's home (`cargo fetch`).
# NHA_BUILT=DIRECTORY uses programs that are built already, for work on the packages themselves. SYSTEM_SQLITE=1 links the system's
# SQLite, for distributions with 3.51.3 or newer: the programs refuse an older one.
set -eu
cd "$(dirname "$0")/.."
tree=$PWD
mkdir -p "$1"
into=$(cd "$1" && pwd)
kind=${2:-dynamic}
musl=$(uname -m)-unknown-linux-musl
cargo_home=${CARGO_HOME:-$HOME/.cargo}
target=${CARGO_TARGET_DIR:-$tree/target}/package/build

# Prints cargo's options for the crates' source.
sources() {
    [ ! -d vendor ] || printf '%s\n' --config 'source.crates-io.replace-with="vendored"' --config "source.vendored.directory=\"$tree/vendor\""
}

# Prints each directory of crates, and its name in the programs.
origins() {
    [ ! -d vendor ] || echo "$tree/vendor /usr/src/crates"
    for registry in "$cargo_home"/registry/src/*; do echo "$registry /usr/src/crates"; done
    echo "$target /usr/src/build"
}

# Panics and assertions would show paths of this machine.
set_flags() {
    flags=$(distribution_flags)
    rust=${RUSTFLAGS:-}
    while read -r from name; do
        flags="$flags -ffile-prefix-map=$from=$name"
        rust="$rust${rust:+ }--remap-path-prefix=$from=$name"
    done <<END
$(origins)
END
    export CFLAGS="$flags"
    CARGO_ENCODED_RUSTFLAGS=$(printf %s "$rust" | tr ' ' '\037')
    export CARGO_ENCODED_RUSTFLAGS
}

# The distribution's flags for C, for the journal's SQLite and for TLS. Debian's default flags have the directory's name in them.
distribution_flags() {
    if command -v dpkg-buildflags >/dev/null; then
        DEB_BUILD_MAINT_OPTIONS='hardening=+all reproducible=-fixfilepath' dpkg-buildflags --get CFLAGS
        dpkg-buildflags --get CPPFLAGS
    else
        echo "${CFLAGS:--O2}"
    fi | tr '\n' ' '
}

# Cargo compares times, and an unpacked tree has old ones: files of another tree in the target directory must not be used.
renew() {
    sum=$(find Cargo.toml Cargo.lock .cargo crates fence-agent alerter compute-health docs/openapi.json -type f | LC_ALL=C sort | xargs sha256sum | sha256sum)
    [ "$sum" != "$(cat "$target/tree" 2>/dev/null)" ] || return 0
    find crates fence-agent alerter compute-health docs/openapi.json -type f -exec touch {} +
    mkdir -p "$target"
    rm -f "$target/tree"
}

# compile ARGUMENTS...
compile() {
    set_flags
    renew
    # shellcheck disable=SC2046 # one argument a line
    (IFS='
' && CARGO_TARGET_DIR=$target exec "${CARGO:-cargo}" build --release --locked --offline $(sources) "$@")
    echo "$sum" >"$target/tree"
}

# Whether the toolchain has a standard library for musl; those of distributions have none.
has_musl() { "${RUSTC:-rustc}" --print target-libdir --target "$musl" 2>/dev/null | xargs ls >/dev/null 2>&1; }

# For musl, else with the system's own libc. It names the machine in any case: cargo then builds its own helpers with the usual flags.
health() {
    platform=$musl
    has_musl || platform=$("${RUSTC:-rustc}" -vV | sed -n 's/^host: //p')
    (RUSTFLAGS="${RUSTFLAGS:-}${RUSTFLAGS:+ }-Ctarget-feature=+crt-static" && compile --target "$platform" -p compute-health)
    install -m 755 "$target/$platform/release/compute-health" "$into/"
}

third_party() {
    # shellcheck disable=SC2046 # one argument a line
    (IFS='
' && exec packaging/third-party.sh $(sources)) >"$into/THIRD-PARTY"
}

# Builds fence_mark alone, or says which compiler is missing.
static() {
    if ! has_musl; then
        echo "make static: this toolchain has no standard library for $musl: \`rustup target add $musl\` fetches it" >&2
        exit 1
    fi
    if ! command -v musl-gcc >/dev/null; then
        echo 'make static: musl-gcc is not here, which builds SQLite for it: install musl-tools' >&2
        exit 1
    fi
    compile --target "$musl" -p fence-agent --bin fence_mark
    install -m 755 "$target/$musl/release/fence_mark" "$into/"
}

if [ "$kind" = static ]; then
    static
elif [ -n "${NHA_BUILT:-}" ]; then
    install -s -m 755 "$NHA_BUILT/nova-host-alerter" "$NHA_BUILT/fence_mark" "$NHA_BUILT/alert_mark" "$NHA_BUILT/compute-health" "$into/"
    third_party
else
    compile -p alerter -p fence-agent --bins ${SYSTEM_SQLITE:+--no-default-features}
    install -m 755 "$target/release/nova-host-alerter" "$target/release/fence_mark" "$target/release/alert_mark" "$into/"
    health
    third_party
fi
