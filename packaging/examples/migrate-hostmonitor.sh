# For a site with masakari-hostmonitor: as root on every host that runs it, sh -e migrate-hostmonitor.sh
# It shows how that goes for good. Read docs/migrate.md first: the alerter is there before it, and paused until this has run
# everywhere; a host that both report is told once, and the other mark is held as duplicate.
# The monitors of instances and processes stay: they see what no fencing shows.

# Debian and Ubuntu call it so; others masakari-hostmonitor, or openstack-masakari-hostmonitor.
unit=${UNIT:-masakari-host-monitor}.service
systemctl disable --now "$unit"
# A package update, or whatever deploys this host, would start it again.
systemctl mask "$unit"
