#!/usr/bin/python3
"""A receiver of docs/standard.md, to begin with: receiver.py PORT DATABASE [SECRET_FILE] [--bearer-file FILE]

It writes a message down, answers, and acts afterwards. Where a fault would start machines twice, the line says so.
"""

import argparse
import base64
import hashlib
import hmac
import http.server
import json
import sqlite3
import threading
import time
import uuid

TYPES = {"host failure", "host returned"}
FIVE_MINUTES = 300
LONGEST = 64 * 1024
# The id alone would take a return for a repetition of its failure; the host's name alone would swallow its next outage.
TABLE = """CREATE TABLE IF NOT EXISTS message (
    id TEXT, event_type TEXT, hostname TEXT, acted INTEGER, PRIMARY KEY (id, event_type))"""
# A return without its failure is kept and never acted upon (NULL); so is a failure after its return: the host is back.
# One statement, so that two messages at the same time do not both find nothing.
KEEP = """INSERT OR IGNORE INTO message VALUES (:id, :type, :host, CASE
    WHEN EXISTS (SELECT 1 FROM message WHERE id = :id) = (:type = 'host returned') THEN 0 END)"""
# 0 is due, 2 is begun, 1 is done. A failure whose return has come is not begun, and not resumed after a crash: its host is back.
DUE = """SELECT rowid, event_type, hostname FROM message AS one WHERE acted IN (0, 2) AND NOT (
    event_type = 'host failure' AND EXISTS (SELECT 1 FROM message WHERE id = one.id AND event_type = 'host returned'))
    ORDER BY rowid LIMIT 1"""
# json, int and sqlite3 raise these for what nobody can read; an error that is missing here would end without an answer.
UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def connect():
    database = sqlite3.connect(GIVEN.database, timeout=10)
    database.execute("PRAGMA synchronous = FULL")
    return database


def content(path):
    with open(path, encoding="ascii") as file:
        text = file.read().strip()
    if not text:
        raise argparse.ArgumentTypeError(f"{path} is empty: anybody could send that")
    return text


def is_allowed(headers, body):
    """By each of the two files that were given; a stranger's message must not count as the first of its key."""
    bearer = headers.get("Authorization", "").encode()
    if GIVEN.token is not None and not hmac.compare_digest(bearer, f"Bearer {GIVEN.token}".encode()):
        return False
    return KEY is None or is_signed(headers, body, KEY)


def is_signed(headers, body, key):
    """After Standard Webhooks: id, time and body; an old message may be somebody's repetition."""
    name, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not at.isdecimal() or abs(time.time() - float(at)) > FIVE_MINUTES:
        return False
    mac = hmac.new(key, f"{name}.{at}.".encode() + body, hashlib.sha256).digest()
    right = b"v1," + base64.b64encode(mac)
    given = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(right, one.encode()) for one in given)


def read(body):
    """Id, type and host; an error where it is no event of version 1. Names that are not known are ignored."""
    event = json.loads(body)
    key, kind, host = event["id"], event["event_type"], event["payload"]["hostname"]
    if not all(isinstance(text, str) for text in (kind, host)) or event["version"].split(".")[0] != "1":
        raise ValueError("another version")
    return {"id": str(uuid.UUID(key)), "type": kind, "host": host.lower()}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def answer(self, status, value=None):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status >= 400:
            # What was not read of its body would be taken for the next request.
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        try:
            self.answer(self.taken())
        except UNREADABLE:
            self.answer(400)
        except sqlite3.Error:
            self.answer(503)

    def taken(self):
        length = int(self.headers.get("Content-Length", ""))
        if not 0 <= length <= LONGEST:
            return 413
        body = self.rfile.read(length)
        if not is_allowed(self.headers, body):
            return 401
        message = read(body)
        if message["type"] in TYPES:
            # On disk before the answer, which ends the repetitions. One at the same time changes nothing either.
            with connect() as database:
                database.execute(KEEP, message)
        return 202

    def do_GET(self):
        rows = connect().execute("SELECT id, event_type, hostname FROM message WHERE acted ORDER BY rowid")
        self.answer(200, [{"id": key, "event_type": kind, "hostname": host} for key, kind, host in rows])

    def log_message(self, *_):
        pass


def act(kind, host):
    """Put your recovery here. After a crash it may be called again for the same message: let it find what it did."""
    print(kind, host, flush=True)


def work():
    database = connect()
    while True:
        # One at a time: a return may come while the one before is acted upon.
        if (due := database.execute(DUE).fetchone()) is None:
            time.sleep(0.2)
            continue
        row, kind, host = due
        note(database, row, 2)
        act(kind, host)
        note(database, row, 1)


def note(database, row, acted):
    with database:
        database.execute("UPDATE message SET acted = ? WHERE rowid = ?", (acted, row))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("port", type=int)
parser.add_argument("database")
parser.add_argument("secret", nargs="?", type=content, metavar="SECRET_FILE")
parser.add_argument("--bearer-file", dest="token", type=content, metavar="FILE")
GIVEN = parser.parse_args()
KEY = None if GIVEN.secret is None else base64.b64decode(GIVEN.secret.removeprefix("whsec_"))
with connect() as first:
    first.execute(TABLE)
server = http.server.ThreadingHTTPServer(("127.0.0.1", GIVEN.port), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
# An error in here ends the program: nothing is accepted any more that nobody would act upon.
work()
