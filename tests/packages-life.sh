#!/bin/sh
# The life of the packages in a fresh Debian: installed, upgraded in the middle of an outage, removed, purged. tests/packages.sh
# starts it in namespaces of its own: packages-life.sh ROOM SYSTEM BASE PACKAGES VERSIONS SCENE
set -eu
room=$1 system=$2 base=$3 packages=$4 versions=$5 scene=$6
root=$room/root
deb=$(echo "$packages"/nova-host-alerter_*.deb)
lock=/var/lib/nova-host-alerter/marks.db.lock # its first word is the number of the process that runs

ok() { echo "ok: $*"; }
fail() { echo "FAILED: $scene: $*" >&2 && exit 1; }
trap 'ended=$?; [ $ended = 0 ] || echo "FAILED: $scene: $(tail -n 20 "$room/log" 2>/dev/null)" >&2' EXIT

# Runs a command in that system.
in_it() {
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

lay_out() {
    mount --make-rprivate /
    mkdir -p "$root" "$room/upper" "$room/work"
    mount -t overlay -o "lowerdir=$system/$base,upperdir=$room/upper,workdir=$room/work" overlay "$root"
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/dev"
    for node in null zero random urandom; do cp -a "/dev/$node" "$root/dev/"; done
    mkdir -p "$root/archives" "$root/dev/shm" "$root/dev/pts"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    mount --bind "$system/archives" "$root/archives"
    ip link set lo up
    hostname ctl1
}

# apt ARGUMENTS...: from what was fetched: there is no network here.
apt() { in_it apt-get -q -y -o Dir::Cache::archives=/archives -o DPkg::Options::=--force-unsafe-io --no-install-recommends "$@"; }

# given DEB: puts it where that system sees it, and prints its name there.
given() { cp "$1" "$root/tmp/new.deb" && echo /tmp/new.deb; }

# install_deb DEB: with what it depends on.
install_deb() {
    apt install "$(given "$1")" && rm "$root/tmp/new.deb"
}

# Names, owners and modes, and what is in /etc, without the records and caches of dpkg and apt.
listing() {
    (cd "$root" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log -o -path ./tmp -o -path ./proc -o -path ./dev \) -prune -o \
        -printf '%p %y %U:%G %m %l\n' && find ./etc -type f -exec sha256sum {} +) | LC_ALL=C sort
}

# Lines that only one of two listings has.
difference() { diff "$1" "$2" | grep '^[<>]' || :; }

# What distinguishes one process from another: its number and when it began; nothing where it is gone.
identity() {
    [ -e "$root$lock" ] || return 0
    read -r pid began _ <"$root$lock"
    [ "$(sed 's/.*) //' "$root/proc/$pid/stat" 2>/dev/null | cut -d ' ' -f 20)" != "$began" ] || echo "$pid:$began"
}

# The ids of the marks.
marks() { in_it nova-host-alerter list --all --json 2>/dev/null | sed -n 's/^    "id": "\(.*\)",$/\1/p' | sort; }

ocf() {
    in_it OCF_ROOT=/usr/lib/ocf OCF_RESOURCE_INSTANCE=alerter OCF_RESKEY_CRM_meta_timeout=60000 \
        /usr/lib/ocf/resource.d/openstack/nova-host-alerter "$1" 2>&1
}

fence() { printf 'action=off\nnodename=%s\nplug=%s\n' "$1" "$1" | in_it fence_mark; }

# Fences $1 and waits until the alerter has made its mark.
mark() {
    fence "$1"
    limit=100
    until in_it nova-host-alerter list --json | grep -q "\"host\": \"$1\""; do
        limit=$((limit - 1))
        [ $limit -gt 0 ] || fail "$1 gets no mark"
        sleep 0.1
    done
}

# One route, to an endpoint that nobody serves: the outage goes on.
configure() {
    cat >>"$root/etc/nova-host-alerter/alerter.toml" <<END
[store]
register = "none"
[hosts]
domain = "my.cloud.com"
on-shared-storage = true
[log]
to = "stderr"
[http.recovery]
url = "http://127.0.0.1:9/v1/host-failures"
END
}

assert_modes() {
    modes=$(in_it stat -c '%n %a %U:%G' /etc/nova-host-alerter/alerter.toml /run/nova-host-alerter /var/lib/nova-host-alerter /var/lib/nova-host-alerter/evidence)
    [ "$modes" = '/etc/nova-host-alerter/alerter.toml 600 root:root
/run/nova-host-alerter 755 root:root
/var/lib/nova-host-alerter 711 root:root
/var/lib/nova-host-alerter/evidence 700 hacluster:haclient' ] || fail "modes: $modes"
}

assert_runs() {
    in_it nova-host-alerter --version
    in_it fence_mark -o metadata | grep -q '<resource-agent name="fence_mark"' || fail 'fence_mark has no metadata'
    in_it su -s /bin/sh hacluster -c 'CRM_alert_version=1 CRM_alert_kind=node /usr/share/pacemaker/alerts/alert_mark' || fail 'hacluster cannot run alert_mark'
}

# Without Pacemaker; its package comes later and finds the account that it would make.
installed_alone() {
    install_deb "$deb" >"$room/log" 2>&1 || fail "$(tail "$room/log")"
    assert_modes
    assert_runs
    ok 'it installs without Pacemaker'
    apt install pacemaker pacemaker-cli-utils resource-agents >"$room/log" 2>&1 || fail "$(tail "$room/log")"
    assert_modes
    in_it stat -c %U:%G /var/lib/pacemaker/cib | grep -qx hacluster:haclient || fail "Pacemaker's own directory"
    ok 'Pacemaker installs after it'
}

seen_by_the_tools() {
    in_it crm_resource --list-agents ocf:openstack | grep -qx nova-host-alerter || fail 'crm_resource does not list the agent'
    in_it crm_resource --show-metadata ocf:openstack:nova-host-alerter | grep -q '<parameter name="config"' || fail 'crm_resource shows no metadata'
    in_it stonith_admin --list-installed 2>/dev/null | grep -qw fence_mark || fail 'stonith_admin does not list fence_mark'
    in_it stonith_admin --metadata --agent fence_mark | grep -q '<action name="off"' || fail 'stonith_admin shows no metadata'
    in_it pcs resource describe ocf:openstack:nova-host-alerter | grep -q 'Reports fenced compute hosts' || fail 'pcs does not describe the agent'
    in_it pcs stonith describe fence_mark | grep -q 'Marks a host' || fail 'pcs does not describe fence_mark'
    in_it HOME=/tmp crm ra info ocf:openstack:nova-host-alerter | grep -q 'Reports fenced compute hosts' || fail 'crmsh does not describe the agent'
    ok 'crm_resource, stonith_admin, pcs and crmsh see the agents'
}

upgraded_in_an_outage() {
    configure
    ocf start || fail 'the resource does not start'
    before=$(identity)
    [ -n "$before" ] || fail 'nothing runs'
    mark compute1
    mark compute2
    open=$(marks)
    for version in "$versions/newer.deb" "$deb"; do
        apt install --allow-downgrades "$(given "$version")" >"$room/log" 2>&1 || fail "$(tail "$room/log")"
        grep -q 'still uses the old program' "$room/log" || fail "nothing says that it goes on: $(in_it nova-host-alerter status --ocf 2>&1)"
        [ "$(identity)" = "$before" ] || fail "$version has touched what runs: $before is $(identity)"
        [ "$(marks)" = "$open" ] || fail "$version has lost marks"
        ocf monitor || fail 'the monitor does not find it any more'
    done
    mark compute3
    [ "$(marks | wc -l)" = 3 ] || fail 'the new agent does not reach the alerter'
    ok 'an upgrade and a downgrade in an outage: the same process, the same marks'
    apt install "$(given "$versions/killing.deb")" >"$room/log" 2>&1
    [ "$(identity)" != "$before" ] || fail 'a package that kills what runs is not noticed'
    ok 'a package that kills what runs is noticed'
    ocf start || fail 'the resource does not start again'
    [ "$(marks | wc -l)" = 3 ] || fail 'marks are lost'
}

removed() {
    before=$(identity) open=$(marks)
    apt remove nova-host-alerter >"$room/log" 2>&1 || fail "$(tail "$room/log")"
    for said in compute1 compute2 compute3 'marks stay in the journal' 'still runs here'; do
        grep -q "$said" "$room/log" || fail "the removal does not say \"$said\": $(cat "$room/log")"
    done
    [ "$(identity)" = "$before" ] || fail 'the removal has touched what runs'
    [ ! -e "$root/usr/sbin/nova-host-alerter" ] || fail 'the program is still there'
    install_deb "$deb" >"$room/log" 2>&1
    [ "$(marks)" = "$open" ] || fail 'the removal has lost marks'
    grep -q '^register = "none"' "$root/etc/nova-host-alerter/alerter.toml" || fail 'the configuration is lost'
    ok 'a removal says what is open, touches nothing that runs, and the next installation has every mark'
    ocf stop || fail 'the resource does not stop'
}

# purged BEFORE: nothing is left but what was there before.
purged() {
    apt purge nova-host-alerter >"$room/log" 2>&1 || fail "$(tail "$room/log")"
    grep -q 'the purge deletes their marks' "$room/log" || fail "the purge does not say what it deletes: $(cat "$room/log")"
    rm -f "$root/tmp/new.deb"
    listing >"$room/after"
    left=$(difference "$1" "$room/after")
    [ -z "$left" ] || fail "the purge leaves: $left"
    [ -z "$(in_it dpkg -l | grep nova-host-alerter)" ] || fail 'dpkg knows it still'
    touch "$root/etc/left-behind"
    listing >"$room/after"
    [ -n "$(difference "$1" "$room/after")" ] || fail 'a file that is left is not noticed'
    ok 'a purge leaves no trace'
}

# health_stays REMOVE...: the agent of compute hosts is not taken away while its resource runs.
health_stays() {
    note=$root/run/resource-agents/compute-health-health
    mkdir -p "${note%/*}" && touch "$note"
    ! "$@" >"$room/log" 2>&1 || fail 'the package goes though its resource runs'
    grep -q 'take its clone away first' "$room/log" || fail "the removal does not say why it is refused: $(cat "$room/log")"
    rm "$note"
    "$@" >"$room/log" 2>&1 || fail "$(tail "$room/log")"
    ok 'the agent of compute hosts goes after its resource, and not before'
}

upgraded_and_purged() {
    install_deb "$packages"/nova-host-alerter-compute-health_*.deb >"$room/log" 2>&1 || fail "$(tail "$room/log")"
    health_stays apt purge nova-host-alerter-compute-health
    listing >"$room/before"
    install_deb "$deb" >"$room/log" 2>&1 || fail "$(tail "$room/log")"
    assert_modes
    assert_runs
    [ "$(in_it systemctl is-enabled nova-host-alerter 2>/dev/null || :)" = disabled ] || fail 'the unit is enabled'
    [ -z "$(identity)" ] || fail 'the installation starts it'
    ok 'it installs beside fence-agents; nothing is enabled or started'
    seen_by_the_tools
    upgraded_in_an_outage
    removed
    purged "$room/before"
}

# What it prints goes through a file: not even /dev is there.
in_nothing() { chroot "$room/nothing" "$@" >"$room/log" 2>&1; }

# It runs where there is no library at all, and writes the journal that the package's daemon reads.
static_agent() {
    install_deb "$deb" >"$room/log" 2>&1 || fail "$(tail "$room/log")"
    configure
    mkdir "$room/nothing"
    tar --extract --file "$packages"/nova-host-alerter-fence_mark-*-musl.tar.xz --strip-components 1 --directory "$room/nothing"
    in_nothing /fence_mark -o metadata || fail "it wants more than itself: $(cat "$room/log")"
    grep -q '<resource-agent name="fence_mark"' "$room/log" || fail 'it has no metadata'
    cp "$root/usr/sbin/fence_mark" "$room/nothing/dynamic"
    ! in_nothing /dynamic -o metadata || fail 'the agent of the package runs there too: nothing was tried'
    cp "$room/nothing/fence_mark" "$root/usr/sbin/fence_mark"
    # It ends with this namespace.
    in_it nova-host-alerter run >"$room/log" 2>&1 &
    mark compute1
    ok 'the static agent runs without any library, and the alerter reads what it wrote'
}

# Debian's rpm, on a Debian without the deb: its files, its scripts, and a removal that keeps the marks.
rpm() {
    apt install systemd >"$room/log" 2>&1 || fail "$(tail "$room/log")"
    file=$(echo "$packages"/nova-host-alerter-[0-9]*64.rpm)
    command rpm --root "$root" --nodeps --install "$file" >"$room/log" 2>&1 || fail "$(tail "$room/log")"
    command rpm --root "$root" --nodeps --verify nova-host-alerter || fail 'rpm finds what it installed altered'
    assert_modes
    assert_runs
    configure
    fence compute1
    command rpm --root "$root" --nodeps --erase nova-host-alerter >"$room/log" 2>&1 || fail "$(tail "$room/log")"
    grep -q compute1 "$room/log" || fail "the removal does not say what is open: $(cat "$room/log")"
    [ ! -e "$root/usr/sbin/fence_mark" ] || fail 'the program is still there'
    [ -e "$root/var/lib/nova-host-alerter/marks.db" ] || fail 'the journal is lost'
    [ -e "$root/etc/nova-host-alerter/alerter.toml.rpmsave" ] || fail 'the configuration is lost'
    ok 'the rpm installs, runs, and keeps configuration and marks when it is removed'
    command rpm --root "$root" --nodeps --install "$packages"/nova-host-alerter-compute-health-*64.rpm >"$room/log" 2>&1 || fail "$(tail "$room/log")"
    health_stays command rpm --root "$root" --nodeps --erase nova-host-alerter-compute-health
}

lay_out
"$scene"
