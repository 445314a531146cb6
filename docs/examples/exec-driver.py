#!/usr/bin/python3
"""Forwards a host failure to the HTTP endpoint that is the first argument; docs/exec-driver.md has the rules."""

import errno
import http.client
import json
import os
import socket
import ssl
import sys
import urllib.error
import urllib.request

TRY_AGAIN = {408, 409, 425, 429, 500, 502, 503, 504, 507, *range(520, 530)}
NOT_THIS_MESSAGE = {400, 411, 413, 422, 431}
NOT_LET_IN = {401, 403, 407}
NO_CONNECTION = {errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH}


class Lines:
    """An input that remembers the last line that was read."""

    def __init__(self, source):
        self.source, self.last = source, b""

    def readline(self, *limit):
        self.last = self.source.readline(*limit)
        return self.last

    def __getattr__(self, name):
        return getattr(self.source, name)


class WholeAnswer(http.client.HTTPResponse):
    """http.client takes half a header for an answer. It is one only with the empty line at its end."""

    def begin(self):
        self.fp = lines = Lines(self.fp)
        super().begin()
        if lines.last not in (b"\r\n", b"\n"):
            raise http.client.RemoteDisconnected("the answer is not complete")


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A followed redirect turns the POST into a GET, and its 200 into a false acknowledgement."""

    def redirect_request(self, *_):
        return None


def exit_code(status):
    if 200 <= status <= 299:
        return os.EX_OK
    if status in TRY_AGAIN:
        return os.EX_TEMPFAIL
    if status in NOT_THIS_MESSAGE:
        return os.EX_DATAERR
    if status in NOT_LET_IN:
        return os.EX_NOPERM
    return os.EX_CONFIG if 300 <= status <= 599 else 1


def answered(status, headers):
    words = {"detail": f"the endpoint answered {status}"}
    if headers.get("Location") and status < 300:
        words["reference"] = headers["Location"]
    if (headers.get("Retry-After") or "").isdigit():
        words["retry_after"] = int(headers["Retry-After"])
    print(json.dumps(words))
    return exit_code(status)


def never_sent(reason):
    known = isinstance(reason, (socket.gaierror, ssl.SSLError))
    return known or getattr(reason, "errno", None) in NO_CONNECTION


def main(url):
    http.client.HTTPConnection.response_class = WholeAnswer
    line = sys.stdin.buffer.read()
    given = json.loads(line)
    # The event goes on byte for byte: it is cut out of the line, whose fields keep their order.
    event = line[line.index(b'"event":') + len(b'"event":') : line.rindex(b',"deadline_seconds":')]
    # A return has the id of its failure: with that as its key it would pass for a repetition.
    key = given["id"] + (".return" if given["event"].get("event_type") == "host returned" else "")
    headers = {"Content-Type": "application/json", "Idempotency-Key": f'"{key}"'}
    request = urllib.request.Request(url, data=event, headers=headers, method="POST")
    # To end by itself is better than to be killed: it can still say why.
    seconds = max(1, given["deadline_seconds"] - 1)
    try:
        with urllib.request.build_opener(NoRedirect).open(request, timeout=seconds) as response:
            return answered(response.status, response.headers)
    except urllib.error.HTTPError as refusal:
        return answered(refusal.code, refusal.headers)
    except urllib.error.URLError as error:
        print(error.reason, file=sys.stderr)
        return os.EX_UNAVAILABLE if never_sent(error.reason) else 1


# Whatever else goes wrong ends with 1: nobody knows whether the event arrived, so it is sent again.
sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else os.EX_CONFIG)
