# For sites that choose how fenced hosts come back: run pcs.sh, then this: sh -e pcs-remote-nodes.sh
# It shows a second host whose connection has no reconnect_interval. Both are fenced and marked alike. Neither way affects a mark:
# marks are not attributes of the host, which Pacemaker clears when a connection starts.
# compute1, reconnect_interval=60s: after the fencing its connection is retried every 60 s, until the host has booted.
# compute2, without: it is retried right after the fencing, while the host still boots. That fails, and a failed start keeps the
# connection off that controller (start-failure-is-fatal) until an operator cleans it up. Also, Pacemaker 2.1.5 fences the host from
# a partition without quorum. So set it to about the boot time of a host.

pcs resource create compute2 ocf:pacemaker:remote \
    server=compute2.my.cloud.com \
    op monitor interval=10s timeout=30s --force

pcs stonith create power-compute2 fence_ipmilan \
    ip=10.0.9.102 username=admin password=CHANGE-ME lanplus=true pcmk_host_list=compute2 \
    op monitor interval=60s

# One mark device serves these hosts; each host has its levels. `setup` makes more for more than ten hosts.
pcs stonith update mark pcmk_host_list="compute1 compute2"
pcs stonith level add 1 compute2 power-compute2 mark
pcs stonith level add 2 compute2 power-compute2
