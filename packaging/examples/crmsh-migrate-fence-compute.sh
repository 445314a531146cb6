# For a site with fence_compute (here fence-nova) and NovaEvacuate (here nova-evacuate): as root on one controller, sh -e crmsh-migrate-fence-compute.sh
# It shows a migration in which no fencing is lost and none is reported twice. fence_compute waits for Nova during the fencing and
# keeps its mark in memory (attribute "evacuate"); fence_mark writes a journal and does not wait.
#   1. fence_mark replaces fence-nova in the level. Fencings from here on wait in the journal.
#   2. NovaEvacuate finishes the hosts that fence-nova has marked. Then it is removed, with fence-nova and the unfencing.
#   3. The alerter starts, and sends the waiting marks. It sends nothing of fencings before step 1.
# Before: on every controller the package and the same alerter.toml. fence_compute also undid its forced_down when a host was back:
# a [nova.NAME] route with disable = true and when-returned = "up" does that. Give resources with requires=unfencing requires=fencing first.

crm configure primitive mark stonith:fence_mark \
    params pcmk_host_list=compute1 pcmk_status_retries=1 \
        pcmk_off_retries=1 pcmk_off_timeout=40s \
    op monitor interval=60s timeout=40s
crm configure filter "sed s/,fence-nova/,mark/" fencing_topology

while attrd_updater --name evacuate --all | grep -E 'value="(yes|[^"]+@[0-9]+)"'; do sleep 10; done
crm configure delete --force nova-evacuate
crm configure delete --force compute-unfence-trigger
crm configure delete --force fence-nova

crm configure primitive alerter ocf:openstack:nova-host-alerter \
    params config=/etc/nova-host-alerter/alerter.toml \
    meta requires=quorum resource-stickiness=INFINITY migration-threshold=3 failure-timeout=120s \
    op start timeout=60s interval=0 \
    op stop timeout=60s interval=0 \
    op monitor interval=10s timeout=20s
crm configure location alerter-on-controllers alerter resource-discovery=exclusive rule 0: '#kind' eq cluster
crm configure alert alert-mark /usr/share/pacemaker/alerts/alert_mark select fencing nodes
