# For controllers or compute hosts with a watchdog (sbd): run pcs.sh, pcs-three-controllers.sh, then this with sh -e.
# It shows the controllers' watchdog behind their power device, and compute2, which has nothing but a watchdog (sbd runs on it too).
# sbd without a disk wants three controllers, or a quorum device: with two_node none of two loses quorum, and none shoots itself.
#
# What the mark means for compute2: the word watchdog in a level ends the fencing by itself after stonith-watchdog-timeout, and no
# agent behind it is run. So fence_mark has no part in it: Pacemaker's alert makes the mark, 10 s later ([intake] evidence-grace).
# What it cannot: prove that the host is off. Pacemaker assumes it from the time that has gone by. A host whose watchdog does not
# work, or whose sbd does not run, is told as dead while it lives. So the time is at least twice SBD_WATCHDOG_TIMEOUT, and a host
# with a power device is not in the list of fence_watchdog: nobody ever assumes of compute1 that it is off.

pcs resource create compute2 ocf:pacemaker:remote \
    server=compute2.my.cloud.com reconnect_interval=60s \
    op monitor interval=10s timeout=30s --force

pcs stonith create watchdog fence_watchdog pcmk_host_list="ctl1 ctl2 ctl3 compute2"

pcs stonith level add 1 compute2 watchdog
for controller in ctl1 ctl2 ctl3; do
    pcs stonith level add 1 $controller power-$controller
    pcs stonith level add 2 $controller watchdog
done

# pcs takes this only where sbd is enabled: pcs stonith sbd enable.
pcs property set stonith-watchdog-timeout=10s
