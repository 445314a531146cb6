#!/usr/bin/python3
"""A receiver of docs/standard.md, to begin with: receiver.py PORT DATABASE [SECRET_FILE]

It writes a message down, answers, and acts afterwards. Where a fault would start machines twice, the line says so.
"""

import base64
import hashlib
import hmac
import http.server
import json
import sqlite3
import sys
import threading
import time
import uuid

TYPES = {"host failure", "host returned"}
FIVE_MINUTES = 300
LONGEST = 64 * 1024
# The id alone would take a return for a repetition of its failure; the host's name alone would swallow its next outage.
TABLE = """CREATE TABLE IF NOT EXISTS message (
    id TEXT, event_type TEXT, hostname TEXT, acted INTEGER DEFAULT 0, PRIMARY KEY (id, event_type))"""
# A return without its failure is accepted and ignored: an operator may have ended the failure before it came here.
KNOWN = "SELECT 1 FROM message WHERE id = ?"


def connect():
    database = sqlite3.connect(sys.argv[2], timeout=10)
    database.execute("PRAGMA synchronous = FULL")
    return database


def secret():
    if len(sys.argv) < 4:
        return None
    with open(sys.argv[3], encoding="ascii") as file:
        return base64.b64decode(file.read().strip().removeprefix("whsec_"))


def is_signed(headers, body, key):
    """After Standard Webhooks: id, time and body; an old message may be somebody's repetition."""
    name, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not at.isdecimal() or abs(time.time() - int(at)) > FIVE_MINUTES:
        return False
    mac = hmac.new(key, f"{name}.{at}.".encode() + body, hashlib.sha256).digest()
    right = b"v1," + base64.b64encode(mac)
    given = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(right, one.encode()) for one in given)


def read(body):
    """Id, type and host; ValueError where it is no event of version 1. Names that are not known are ignored."""
    try:
        event = json.loads(body)
        key, kind, host = event["id"], event["event_type"], event["payload"]["hostname"]
        major = event["version"].split(".")[0]
        if not all(isinstance(text, str) for text in (kind, host)) or major != "1":
            raise ValueError("another version")
        return str(uuid.UUID(key)), kind, host.lower()
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("no event") from error


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def answer(self, status, value=None):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > LONGEST:
            self.close_connection = True
            return self.answer(413)
        body = self.rfile.read(int(length))
        if KEY is not None and not is_signed(self.headers, body, KEY):
            return self.answer(401)
        try:
            key, kind, host = read(body)
        except ValueError:
            return self.answer(422)
        if kind in TYPES:
            # On disk before the answer, which ends the repetitions. One at the same time changes nothing either.
            new = "INSERT OR IGNORE INTO message (id, event_type, hostname) VALUES (?, ?, ?)"
            with connect() as database:
                if kind == "host failure" or database.execute(KNOWN, (key,)).fetchone():
                    database.execute(new, (key, kind, host))
        return self.answer(202)

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
    due = "SELECT rowid, event_type, hostname FROM message WHERE NOT acted ORDER BY rowid"
    while True:
        for row, kind, host in database.execute(due).fetchall():
            act(kind, host)
            with database:
                database.execute("UPDATE message SET acted = 1 WHERE rowid = ?", (row,))
        time.sleep(0.2)


KEY = secret()
with connect() as first:
    first.execute(TABLE)
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
threading.Thread(target=work, daemon=True).start()
server.serve_forever()
