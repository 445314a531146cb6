#!/bin/sh
# An alert agent for Pacemaker: mails when the alerter needs a person, and when that is over (docs/health.md, "Be alerted").
# Pacemaker runs it as hacluster on every controller, with the recipient of the alert in CRM_alert_recipient.
#
#   install -m 755 alert-mail.sh /usr/local/libexec/        # on every controller
#   crm configure alert alert-mail /usr/local/libexec/alert-mail.sh select resources to oncall@my.cloud.com
#   pcs alert create path=/usr/local/libexec/alert-mail.sh id=alert-mail && pcs alert recipient add alert-mail value=oncall@my.cloud.com
#
# Attributes of the alert: resource (the alerter's name in the cluster), sendmail.
set -u
rsc=${resource:-alerter}
[ "${CRM_alert_kind:-}" = resource ] && [ "${CRM_alert_rsc:-}" = "$rsc" ] || exit 0
task=${CRM_alert_task:-} rc=${CRM_alert_rc:-} node=${CRM_alert_node:-}

case $task:${CRM_alert_interval:-0}:$rc in
    monitor:0:*) exit 0 ;; # a probe: it only finds out where the alerter runs
    monitor:*:190) what='needs a person' ;;
    monitor:*:0) what='needs nobody' ;;
    *:0) exit 0 ;; # a start or a stop; the monitor says the rest
    *) what="has failed ($task: ${CRM_alert_desc:-$rc})" ;;
esac

# Pacemaker does not repeat an alert: a mail that is lost is lost.
exec "${sendmail:-/usr/sbin/sendmail}" -i -- "${CRM_alert_recipient:?the alert has no recipient}" <<END
Subject: nova-host-alerter on $node $what
To: $CRM_alert_recipient

The alerter (resource $rsc) on $node $what, at ${CRM_alert_timestamp:-an unknown time}.
There, \`nova-host-alerter status\` says why, and what to type.
END
