# For a site with two controllers; one compute host stands for all: as root on one controller, sh -e pcs.sh
# Either may die: with two_node in corosync.conf the other has quorum, fences it and runs the alerter.
# Between devices a blank means "and then" (one level); the next level is a command of its own.
# Mark device and alerter may run on any controller.

# Only if compute1 is not a remote node yet; "pcs cluster node add-remote" does this too, and copies the key to it.
pcs resource create compute1 ocf:pacemaker:remote \
    server=compute1.my.cloud.com reconnect_interval=60s \
    op monitor interval=10s timeout=30s --force

pcs stonith create power-ctl1 fence_ipmilan \
    ip=10.0.9.11 username=admin password=CHANGE-ME lanplus=true pcmk_host_list=ctl1 \
    op monitor interval=60s
pcs stonith create power-ctl2 fence_ipmilan \
    ip=10.0.9.12 username=admin password=CHANGE-ME lanplus=true pcmk_host_list=ctl2 \
    op monitor interval=60s
pcs stonith create power-compute1 fence_ipmilan \
    ip=10.0.9.101 username=admin password=CHANGE-ME lanplus=true pcmk_host_list=compute1 \
    op monitor interval=60s

pcs stonith create mark fence_mark \
    pcmk_host_list=compute1 pcmk_status_retries=1 \
    pcmk_off_retries=1 pcmk_off_timeout=40s \
    op monitor interval=60s timeout=40s

# Power, then mark. If that level fails, power alone: a failing mark never stops the fencing.
pcs stonith level add 1 compute1 power-compute1 mark
pcs stonith level add 2 compute1 power-compute1

pcs resource create alerter ocf:openstack:nova-host-alerter \
    config=/etc/nova-host-alerter/alerter.toml \
    meta requires=quorum resource-stickiness=INFINITY migration-threshold=3 failure-timeout=120s \
    op start timeout=60s stop timeout=60s monitor interval=10s timeout=20s
pcs constraint location alerter rule resource-discovery=exclusive score=0 '#kind' eq cluster

# Evidence of fencings, and of cluster nodes that join, on every controller. alert_mark ignores other alerts.
pcs alert create path=/usr/share/pacemaker/alerts/alert_mark id=alert-mark

pcs property set concurrent-fencing=true stonith-enabled=true
