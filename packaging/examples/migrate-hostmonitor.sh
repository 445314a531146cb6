# For a site with masakari-hostmonitor: as root on every host that runs it, sh -e migrate-hostmonitor.sh
# It removes hostmonitor for good. Read docs/migrate.md first: the alerter is installed before, and paused until this has run
# everywhere; a host that both report is notified once, and the other mark is held as duplicate.
# The monitors of instances and processes stay: they see failures without a fencing.

# Its name in Debian and Ubuntu; others have masakari-hostmonitor, or openstack-masakari-hostmonitor.
unit=${UNIT:-masakari-host-monitor}.service
systemctl disable --now "$unit"
# A package update or a deployment tool would start it again.
systemctl mask "$unit"
