# For controllers or compute hosts with a watchdog (sbd): run pcs.sh, pcs-three-controllers.sh, then this with sh -e.
# It shows the controllers' watchdog behind their power device, and compute2, which has only a watchdog (sbd runs on it too).
# sbd without a disk needs three controllers, or a quorum device: with two_node neither controller loses quorum or resets itself.
#
# The mark of compute2: the device watchdog ends the fencing after stonith-watchdog-timeout, and no agent behind it is run. So
# fence_mark is not used: Pacemaker's alert makes the mark, 10 s later.
# This does not prove that the host is off: Pacemaker assumes it after that time. If the watchdog does not work, or sbd does not run,
# a living host is reported as dead. So the time must be at least twice SBD_WATCHDOG_TIMEOUT, and a host with a power device must not
# be in the list of fence_watchdog: compute1 is never assumed to be off.

pcs resource create compute2 ocf:pacemaker:remote \
    server=compute2.my.cloud.com reconnect_interval=60s \
    op monitor interval=10s timeout=30s --force

pcs stonith create watchdog fence_watchdog pcmk_host_list="ctl1 ctl2 ctl3 compute2"

pcs stonith level add 1 compute2 watchdog
for controller in ctl1 ctl2 ctl3; do
    pcs stonith level add 1 $controller power-$controller
    pcs stonith level add 2 $controller watchdog
done

# pcs accepts this only if sbd is enabled: pcs stonith sbd enable.
pcs property set stonith-watchdog-timeout=10s
