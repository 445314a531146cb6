#!/bin/sh
# Builds a real kube-apiserver below DIR, and puts Debian's kubectl beside it. Nothing is installed. It is built once, in about two
# minutes on two cores, from the source package of Debian 12: later releases ship kubectl alone.
#
# usage: kubernetes.sh [DIR]      (result: DIR/kubernetes/kube-apiserver and DIR/kubernetes/kubectl; DIR is below the target directory)
set -eu

# What is built, and with which Go.
version='1.20.5+really1.20.2-1.1+deb12u1'
go='1.19.8-2'
reflect='1.0.2-2'
# Raise it when this script makes something else of the same sources.
recipe=4

dir=${1:-${CARGO_TARGET_DIR:-$(dirname "$0")/../../target}/lab-deps}/kubernetes

# Elsewhere there is no such source package: what needs the server says that it is not there.
command -v apt-get >/dev/null || exit 0
[ "$(cat "$dir/version" 2>/dev/null)" != "$version $go $recipe" ] || exit 0

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
work=$(mktemp -d "$dir/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
cd "$work"

# Package lists of our own: those of this machine stay as they are.
apt() {
    apt-get -q -o Dir::Etc::sourcelist="$work/apt/list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/apt/lists" \
        -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root "$@" >&2
}

fetch() {
    mkdir -p apt/lists/partial apt/cache/archives/partial
    archive='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main'
    printf 'deb %s\ndeb-src %s\n' "$archive" "$archive" >apt/list
    apt update
    apt download "golang-1.19-go=$go" "golang-1.19-src=$go" "golang-github-modern-go-reflect2-dev=$reflect" "kubernetes-client=$version"
    apt source --download-only "kubernetes=$version"
}

unpack() {
    for package in *.deb; do dpkg -x "$package" root; done
    mkdir -p gopath/src/k8s.io/kubernetes
    tar -xf kubernetes_*.orig.tar.gz -C gopath/src/k8s.io/kubernetes --strip-components=1
    # The vendored 1.0.1 does not know the maps of Go 1.18: the server ends with a fault at the first custom resource with labels.
    vendored=gopath/src/k8s.io/kubernetes/vendor/github.com/modern-go/reflect2
    rm -r "$vendored"
    cp -r root/usr/share/gocode/src/github.com/modern-go/reflect2 "$vendored"
}

# Prints the packages that say that they are part of the API's description.
described() {
    staging='api apimachinery apiserver kube-aggregator apiextensions-apiserver metrics component-base kube-proxy kubelet cloud-provider
        kube-scheduler kube-controller-manager'
    # shellcheck disable=SC2086 # a list
    (cd staging/src/k8s.io && grep -rl --include=*.go '+k8s:openapi-gen=true' $staging) |
        sed 's|/[^/]*$||; s|^|k8s.io/kubernetes/vendor/k8s.io/|'
    grep -rl --include=*.go '+k8s:openapi-gen=true' pkg cmd | sed 's|/[^/]*$||; s|^|k8s.io/kubernetes/|'
}

# The description is generated, and not in the sources. What is built serves a few hundred requests, and nobody debugs it: half as much
# to compute without optimizations and symbols, and without a collector in the compiler, whose processes are short.
build() {
    export GOGC=off GOROOT="$work/root/usr/lib/go-1.19" GOPATH="$work/gopath" GOCACHE="$work/cache" GO111MODULE=off CGO_ENABLED=0 PATH="$work/root/usr/lib/go-1.19/bin:$PATH"
    cd gopath/src/k8s.io/kubernetes
    : >"$work/header"
    go build -o "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
    "$work/openapi-gen" -O zz_generated.openapi -p k8s.io/kubernetes/pkg/generated/openapi --go-header-file "$work/header" \
        --output-base "$GOPATH/src" -i "$(described | sort -u | paste -sd,)" >"$work/openapi.log" 2>&1
    # Without the clients of the clouds.
    go build -tags providerless -gcflags 'all=-N -l -dwarf=false' -ldflags '-s -w' -o "$work/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
    cd "$work"
}

fetch
unpack
build
cp -L root/usr/bin/kubectl "$dir/"
mv kube-apiserver "$dir/"
echo "$version $go $recipe" >"$dir/version"
