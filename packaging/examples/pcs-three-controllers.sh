# For a site with three controllers: run pcs.sh, then this, as root on one controller: sh -e pcs-three-controllers.sh
# It shows what the third one adds: a power device. Any one controller may die: the other two have quorum, fence it, and one of them
# runs the alerter. One controller alone has no quorum: nothing is fenced or reported until a second one is back.
# corosync.conf: two_node is for two controllers; remove it with three.

pcs stonith create power-ctl3 fence_ipmilan \
    ip=10.0.9.13 username=admin password=CHANGE-ME lanplus=true pcmk_host_list=ctl3 \
    op monitor interval=60s

pcs property set no-quorum-policy=stop
