#!/bin/sh
# Installs what the tests need beside a Rust toolchain, or with `packages` what makes and tests the packages. Says first what; starts
# and enables nothing; does nothing when all is there.
#
# Debian 12: tried. Ubuntu and Fedora: untried, their lists are made from their documentation.
# A killed run leaves /usr/sbin/policy-rc.d in place; the next run repairs that.
set -eu

common='pacemaker corosync pacemaker-cli-utils crmsh pcs iproute2 util-linux strace libfaketime libxml2-utils gcc libc6-dev curl time git'
# What makes systems of other releases.
roots='debootstrap'
# The services of OpenStack that drivers are tested against: their code alone, without what sets them up. On Debian only:
# elsewhere the releases differ, and the tests that want them say that they are not there.
openstack='python3-keystone python3-masakari python3-nova python3-mistral python3-heat uwsgi-core uwsgi-plugin-python3'
# What reads the figures and the page as operators do: promtool, a browser and what drives it. On Debian only.
watchers='prometheus chromium chromium-driver fonts-dejavu-core'
# What compiles the shipped confinement: systemd-analyze comes with systemd.
confinement='apparmor checkpolicy systemd'
# What reads the manual pages and the completions: the same names everywhere.
readers='man-db mandoc'
# The register in etcd: three members that a test starts itself, and the tool that speaks to them.
etcd='etcd-server etcd-client'
# A kernel in a process, with bonds and devices that hang.
kernel='user-mode-linux dmsetup'
# What denies a user's tests what a plain container denies them.
confined='python3-seccomp'
debian_packages="$common $confined $roots resource-agents fence-agents $openstack $watchers $confinement $readers $etcd $kernel"
# Ubuntu has split both.
ubuntu_packages="$common $confined resource-agents-base resource-agents-extra fence-agents-base fence-agents-extra $confinement $readers $etcd"
# crmsh is not packaged there: what needs it says so.
fedora_packages="pacemaker corosync pacemaker-remote pacemaker-cli pcs resource-agents fence-agents-all
    iproute util-linux strace libfaketime libxml2 gcc glibc-devel curl time git python3-libseccomp $readers etcd"
# What makes the packages, checks them, and tries them in a fresh system.
packaging_debian='debhelper dpkg-dev lintian rpm rpmlint debootstrap musl-tools xz-utils gcc libc6-dev'
packaging_fedora='rpm-build rpmlint musl-gcc xz gcc glibc-devel'

policy=/usr/sbin/policy-rc.d
saved_policy=$policy.before-nova-host-alerter

target=deps
say() { echo "make $target: $*"; }

# Prints those of the packages $1 that are not installed.
missing_debs() {
    # shellcheck disable=SC2086 # a list
    installed=" $(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $1 2>/dev/null |
        awk '$2 == "installed" { printf "%s ", $1 }')"
    for package in $1; do
        case $installed in *" $package "*) ;; *) echo "$package" ;; esac
    done
}

missing_rpms() {
    for package in $1; do
        rpm -q "$package" >/dev/null 2>&1 || echo "$package"
    done
}

# Debian asks this script before any service is started: 101 is "do not".
forbid_starts() {
    allow_starts # repairs what a killed run left
    if [ -e "$policy" ] || [ -L "$policy" ]; then mv "$policy" "$saved_policy"; fi
    printf '#!/bin/sh\n# nova-host-alerter: make deps\nexit 101\n' >"$policy"
    chmod 755 "$policy"
}

allow_starts() {
    if grep -qs '^# nova-host-alerter: make deps' "$policy"; then rm -f "$policy"; fi
    if [ -e "$saved_policy" ] || [ -L "$saved_policy" ]; then mv "$saved_policy" "$policy"; fi
}

# Prints what is enabled: systemd's links, and the start links of old init scripts.
enabled() {
    find /etc/systemd/system -type l 2>/dev/null || true
    find /etc/rc[2-5].d -name 'S*' 2>/dev/null || true
}

# Disables what $2 lists and $1 does not; works without a running systemd.
disable_new() {
    comm -13 "$1" "$2" | while read -r link; do
        case $link in
        /etc/systemd/*) deb-systemd-helper disable "${link##*/}" >/dev/null 2>&1 || true ;;
        /etc/rc*) name=${link##*/} && update-rc.d "${name#S[0-9][0-9]}" disable >/dev/null 2>&1 || true ;;
        esac
        [ ! -L "$link" ] || rm -f "$link"
        say "left disabled: ${link##*/}"
    done
}

install_with_apt_get() {
    work=$(mktemp -d)
    trap 'allow_starts; rm -rf "$work"' EXIT
    trap 'exit 130' INT TERM HUP
    enabled | sort >"$work/before"
    forbid_starts
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q
    # shellcheck disable=SC2086 # a list
    apt-get install -q -y --no-install-recommends $1
    enabled | sort >"$work/after"
    disable_new "$work/before" "$work/after"
}

# Fedora's presets enable and start nothing by themselves.
install_with_dnf() {
    # shellcheck disable=SC2086 # a list
    dnf install -y --setopt=install_weak_deps=False $1
}

# Prints the family of this distribution.
family() {
    # shellcheck source=/dev/null
    . /etc/os-release
    case " $ID ${ID_LIKE:-} " in
    *' ubuntu '*) echo ubuntu ;;
    *' debian '*) echo debian ;;
    *' fedora '*) echo fedora ;;
    *) echo "$ID" ;;
    esac
}

main() {
    if [ "${1:-}" = packages ]; then
        target=package-deps
        debian_packages=$packaging_debian ubuntu_packages=$packaging_debian fedora_packages=$packaging_fedora
    fi
    system=$(family)
    case $system in
    debian) missing=$(missing_debs "$debian_packages") tool=apt_get ;;
    ubuntu) missing=$(missing_debs "$ubuntu_packages") tool=apt_get ;;
    fedora) missing=$(missing_rpms "$fedora_packages") tool=dnf ;;
    *) say "no list of packages for $system; Debian's is: $debian_packages" && exit 1 ;;
    esac
    if [ -z "$missing" ]; then
        say 'all packages are there'
        return
    fi
    [ "$system" = debian ] || say "this was never tried on $system"
    missing=$(echo "$missing" | tr '\n' ' ')
    say "installs these packages, and starts and enables nothing of them: $missing"
    if [ "$(id -u)" != 0 ]; then
        say "that needs root: sudo make $target"
        exit 1
    fi
    "install_with_$tool" "$missing"
    say 'done'
}

main "$@"
