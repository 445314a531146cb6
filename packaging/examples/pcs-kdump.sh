# For hosts with kdump: run pcs.sh, then this: sh -e pcs-kdump.sh
# It shows fence_kdump in the first level: a host that writes its memory to disk after a panic reports that, and may finish. There is
# no mark behind it: fence_kdump cuts no power, and anybody on the network can send its message, so fence_mark refuses there.
# Pacemaker's alert makes the mark of such a host, 10 s later.
# The fencing of every other host is delayed by timeout. fence_kdump resolves the node's name: compute1 must be known on the controllers.
# Pacemaker does not restart such a host: kdump does.

pcs stonith create kdump-compute1 fence_kdump \
    pcmk_host_list=compute1 timeout=30 pcmk_off_timeout=40s pcmk_off_retries=1 \
    op monitor interval=3600s

pcs stonith level clear target compute1
pcs stonith level add 1 compute1 kdump-compute1
pcs stonith level add 2 compute1 power-compute1 mark
pcs stonith level add 3 compute1 power-compute1
