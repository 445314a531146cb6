#!/bin/sh
# Forwards a host failure to the HTTP endpoint that is the first argument; docs/exec-driver.md has the rules.
url=$1

# Version 1 is one line whose fields keep this order, without blanks, so that it can be cut.
read -r line
field() { printf '%s\n' "$line" | sed -n "s/^{\"version\":\"1\",\"id\":\"\([^\"]*\)\",\"event\":\(.*\),\"deadline_seconds\":\([0-9]*\)}\$/\\$1/p"; }
id=$(field 1)
event=$(field 2)
seconds=$(field 3)
if [ -z "$url" ] || [ -z "$event" ]; then
    echo "wanted: a url as the first argument, and a line of version 1 on standard input" >&2
    exit 78
fi
# A return has the id of its failure: with that as its key it would pass for a repetition. No text of another field is at this place.
case $event in
    "{\"id\":\"$id\",\"event_type\":\"host returned\","*) key=$id.return ;;
    *) key=$id ;;
esac
# To end by itself is better than to be killed: it can still say why.
[ "$seconds" -gt 2 ] && seconds=$((seconds - 1))

# -q: no .curlrc. Redirects are not followed. The event goes through a pipe: arguments can be seen by everybody.
answer=$(printf '%s' "$event" | curl -q --silent --show-error --max-time "$seconds" --output /dev/null \
    --dump-header - --write-out '%{http_code}' --header 'Content-Type: application/json' --header "Idempotency-Key: \"$key\"" \
    --data-binary @- "$url")
case $? in
    0) ;;
    3) exit 78 ;;                       # no url
    5 | 6 | 7 | 35 | 60) exit 69 ;;     # no address, no connection, no TLS: nothing was sent
    *) exit 1 ;;                        # it may have arrived
esac

# curl takes half a header for an answer. It is one only if an empty line stands before the status that curl adds.
status=$(printf '%s\n' "$answer" | tail -n 1)
before=$(printf '%s\n' "$answer" | tail -n 2 | head -n 1 | tr -d '\r')
if [ -n "$before" ]; then
    echo "the answer is not complete" >&2
    exit 1
fi

printf '{"detail":"the endpoint answered %s"}\n' "$status"
case $status in
    2??) exit 0 ;;
    401 | 403 | 407) exit 77 ;;
    400 | 411 | 413 | 422 | 431) exit 65 ;;
    408 | 409 | 425 | 429 | 500 | 502 | 503 | 504 | 507 | 52?) exit 75 ;;
    3?? | 4?? | 5??) exit 78 ;;
    *) exit 1 ;;
esac
