# For a site with fence_compute (here fence-nova) and NovaEvacuate (here nova-evacuate): as root on one controller, sh -e pcs-migrate-fence-compute.sh
# It shows a migration in which no fencing is lost and none is reported twice. fence_compute waits for Nova during the fencing and
# keeps its mark in memory (attribute "evacuate"); fence_mark writes a journal and does not wait.
#   1. fence_mark replaces fence-nova in the level. Fencings from here on wait in the journal.
#   2. NovaEvacuate finishes the hosts that fence-nova has marked. Then it is removed, with fence-nova and the unfencing.
#   3. The alerter starts, and sends the waiting marks. It sends nothing of fencings before step 1.
# Before: on every controller the package and the same alerter.toml. fence_compute also undid its forced_down when a host was back:
# a [nova.NAME] route with disable = true and when-returned = "up" does that. Give resources with requires=unfencing requires=fencing first.

pcs stonith create mark fence_mark \
    pcmk_host_list=compute1 pcmk_status_retries=1 \
    pcmk_off_retries=1 pcmk_off_timeout=40s \
    op monitor interval=60s timeout=40s
# The new level first, so that compute1 is never without one.
pcs stonith level add 2 compute1 power-compute1 mark
pcs stonith level remove 1 target compute1

while attrd_updater --name evacuate --all | grep -E 'value="(yes|[^"]+@[0-9]+)"'; do sleep 10; done
pcs resource delete nova-evacuate
pcs resource delete compute-unfence-trigger
pcs stonith delete fence-nova

pcs resource create alerter ocf:openstack:nova-host-alerter \
    config=/etc/nova-host-alerter/alerter.toml \
    meta requires=quorum resource-stickiness=INFINITY migration-threshold=3 failure-timeout=120s \
    op start timeout=60s stop timeout=60s monitor interval=10s timeout=20s
pcs constraint location alerter rule resource-discovery=exclusive score=0 '#kind' eq cluster
pcs alert create path=/usr/share/pacemaker/alerts/alert_mark id=alert-mark
