# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_nova_host_alerter_global_optspecs
    string join \n config= json o= h/help V/version
end

function __fish_nova_host_alerter_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_nova_host_alerter_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_nova_host_alerter_using_subcommand
    set -l cmd (__fish_nova_host_alerter_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -s V -l version -d 'Print version'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "run" -d 'Run the daemon in the foreground'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "check-config" -d 'Check the configuration and list every problem in it'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "status" -d 'Show whether the daemon works, and the state of the routes'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "list" -d 'List marks; those that need an operator come first'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "show" -d 'Show everything about a host\'s marks, or about one mark'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "history" -d 'List what happened, oldest first'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "retry" -d 'Try open deliveries at once'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "mark" -d 'Mark a host by hand; unless it is fenced and off, its machines run twice'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "unmark" -d 'End the open marks of a host, or a single mark: no route is notified of them again'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "reload" -d 'Make the running daemon read its configuration again; an invalid one changes nothing'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "dismiss" -d 'End all deliveries to a route that is not configured any more; they are never sent'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "release" -d 'Send a held mark; you confirm that its host was fenced. A host name means the host\'s newest mark'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "pause" -d 'Stop sending for all groups, or for one: marks are made and kept until `resume`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "resume" -d 'End the pauses that cover all groups, or with --group those of one group'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "maintenance" -d 'Stop sending for a host or a group while it is worked on'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "send-test" -d 'Send a test message, which reports no host, and show the endpoint\'s answer'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "setup" -d 'Print or run the commands that make Pacemaker mark fenced hosts, or only check the cluster'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand run" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand run" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand run" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand run" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand check-config" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand check-config" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand check-config" -l online -d 'Also ask the endpoints whether they are ready and know the cluster\'s hosts'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand check-config" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand check-config" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand status" -l ocf -d 'Exit as an OCF monitor does: 0 running, 1 broken, 7 not running, 190 degraded; wait SECONDS for the daemon\'s answer, or 15' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand status" -l warning -d 'With --check: warning if a mark is open for this many seconds' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand status" -l critical -d 'With --check: critical if a mark is open for this many seconds' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand status" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand status" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand status" -l process -d 'Print the process that holds the journal, as its lock names it; for the OCF agent'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand status" -l check -d 'Print one line and exit as a Nagios plugin does: 0 ok, 1 warning, 2 critical, 3 unknown'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand status" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand status" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand list" -l limit -d 'Show at most this many marks; 0 shows all' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand list" -l state -d 'Only marks in this state: open, pending, in-flight, held, parked, quarantined, acknowledged, dismissed, cancelled, expired, or the reason of their hold, such as no-fqdn or storm' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand list" -l host -d 'Only hosts with these node names; `*` stands for any characters, `?` for one' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand list" -l since -d 'Only from this time on: 2026-11-22T03:00:00Z, 2026-11-22, or how long ago, such as 30d' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand list" -l until -d 'Only before this time' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand list" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand list" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand list" -l all -d 'Also show settled marks, the newest of them'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand list" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand list" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand show" -l limit -d 'Show only this many of the newest marks; 0 shows all' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand show" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand show" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand show" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand show" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand history" -l limit -d 'Show only this many of the newest lines; 0 shows all' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand history" -l host -d 'Only hosts with these node names; `*` stands for any characters, `?` for one' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand history" -l since -d 'Only from this time on: 2026-11-22T03:00:00Z, 2026-11-22, or how long ago, such as 30d' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand history" -l until -d 'Only before this time' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand history" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand history" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand history" -l summary -d 'Count outages instead: how they ended, and how long the acknowledgements took'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand history" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand history" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand retry" -l reason -d 'Why; kept in the history' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand retry" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand retry" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand retry" -l all -d 'Every open mark'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand retry" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand retry" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand mark" -l reason -d 'Why it is marked by hand; kept in the history' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand mark" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand mark" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand mark" -l fenced -d 'You confirm that the host was fenced and is off'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand mark" -l insist -d 'Also where the cluster has it as a living member, or does not know it'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand mark" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand mark" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand unmark" -l reason -d 'Why; kept in the history' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand unmark" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand unmark" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand unmark" -l return -d 'With the id of an ended mark: also end its return that waits to be sent'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand unmark" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand unmark" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand reload" -l reason -d 'Why; kept in the history' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand reload" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand reload" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand reload" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand reload" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand dismiss" -l route -d 'A route that is not configured any more' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand dismiss" -l reason -d 'Why; kept in the history' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand dismiss" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand dismiss" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand dismiss" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand dismiss" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand release" -l group -d 'All marks of this group that a storm holds' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand release" -l reason -d 'Why; kept in the history and known on every controller' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand release" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand release" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand release" -l insist -d 'Also where the cluster has the host as a living member'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand release" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand release" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand pause" -l group -d 'Only this group' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand pause" -l reason -d 'Why; kept in the history and known on every controller' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand pause" -l for -d 'This long: a number followed by s, m, h or d; without it, until `resume`' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand pause" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand pause" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand pause" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand pause" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand resume" -l group -d 'Only this group\'s pauses' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand resume" -l reason -d 'Why; kept in the history and known on every controller' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand resume" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand resume" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand resume" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand resume" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and not __fish_seen_subcommand_from begin end list" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and not __fish_seen_subcommand_from begin end list" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and not __fish_seen_subcommand_from begin end list" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and not __fish_seen_subcommand_from begin end list" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and not __fish_seen_subcommand_from begin end list" -f -a "begin" -d 'Begin a maintenance, which ends by itself; until then its marks are held'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and not __fish_seen_subcommand_from begin end list" -f -a "end" -d 'End every maintenance of a host, or of a group'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and not __fish_seen_subcommand_from begin end list" -f -a "list" -d 'List hosts and groups on maintenance'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from begin" -l group -d 'A group instead' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from begin" -l reason -d 'Why; kept in the history and known on every controller' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from begin" -l for -d 'At most this long: a number followed by s, m, h or d' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from begin" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from begin" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from begin" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from begin" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from end" -l group -d 'A group instead' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from end" -l reason -d 'Why; kept in the history and known on every controller' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from end" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from end" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from end" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from end" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from list" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from list" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from list" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand maintenance; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand send-test" -l reason -d 'Why; kept in the history' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand send-test" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand send-test" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand send-test" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand send-test" -s h -l help -d 'Print help'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand setup" -l health -d 'Set up only the agent for compute hosts (docs/compute-health.md), which observes; --health=fence later has Pacemaker fence hosts that fail their health check' -r -f -a "observe\t'It is shown'
fence\t'It is fenced, if it fails alone'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand setup" -l tool -d 'Use the commands of this tool; the default is the installed one, or pcs if both are installed' -r -f -a "pcs\t'pcs'
crmsh\t'crmsh, whose program is called crm'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand setup" -l hosts -d 'Only remote nodes with these names, separated by commas; `*` stands for any characters, `?` for one; the default is `[hosts] match` in the configuration, else all' -r
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand setup" -l cib -d 'Check this file, an output of `cibadmin --query`, instead of the running cluster' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand setup" -l config -d 'The configuration file; fragments are read from alerter.d beside it' -r -F
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand setup" -s o -d 'How to print answers and errors: table or json' -r -f -a "table\t'Text that fits the terminal'
json\t'JSON'"
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand setup" -l check -d 'Only list what is wrong with the cluster\'s configuration and what to type; exits with 1 if anything is wrong'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand setup" -l apply -d 'Run the commands and stop at the first that fails; a correct cluster is not changed'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand setup" -l json -d 'Print JSON, the same as `-o json`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand setup" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "run" -d 'Run the daemon in the foreground'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "check-config" -d 'Check the configuration and list every problem in it'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "status" -d 'Show whether the daemon works, and the state of the routes'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "list" -d 'List marks; those that need an operator come first'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "show" -d 'Show everything about a host\'s marks, or about one mark'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "history" -d 'List what happened, oldest first'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "retry" -d 'Try open deliveries at once'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "mark" -d 'Mark a host by hand; unless it is fenced and off, its machines run twice'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "unmark" -d 'End the open marks of a host, or a single mark: no route is notified of them again'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "reload" -d 'Make the running daemon read its configuration again; an invalid one changes nothing'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "dismiss" -d 'End all deliveries to a route that is not configured any more; they are never sent'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "release" -d 'Send a held mark; you confirm that its host was fenced. A host name means the host\'s newest mark'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "pause" -d 'Stop sending for all groups, or for one: marks are made and kept until `resume`'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "resume" -d 'End the pauses that cover all groups, or with --group those of one group'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "maintenance" -d 'Stop sending for a host or a group while it is worked on'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "send-test" -d 'Send a test message, which reports no host, and show the endpoint\'s answer'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "setup" -d 'Print or run the commands that make Pacemaker mark fenced hosts, or only check the cluster'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and not __fish_seen_subcommand_from run check-config status list show history retry mark unmark reload dismiss release pause resume maintenance send-test setup help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and __fish_seen_subcommand_from maintenance" -f -a "begin" -d 'Begin a maintenance, which ends by itself; until then its marks are held'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and __fish_seen_subcommand_from maintenance" -f -a "end" -d 'End every maintenance of a host, or of a group'
complete -c nova-host-alerter -n "__fish_nova_host_alerter_using_subcommand help; and __fish_seen_subcommand_from maintenance" -f -a "list" -d 'List hosts and groups on maintenance'
