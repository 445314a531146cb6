#!/usr/bin/python3 -IS
"""Stands in for pcs: has the one that is loaded already (loaded.py) answer."""
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as loaded:
    loaded.connect("\0" + os.environ["NHA_PCS"])
    files = [0, 1, 2, os.open("/proc/self/ns/mnt", os.O_RDONLY), os.open(".", os.O_RDONLY)]
    environment = [f"{name}={value}" for name, value in os.environ.items()]
    words = [str(len(sys.argv)), *sys.argv, *environment]
    socket.send_fds(loaded, ["\0".join(words).encode()], files)
    loaded.shutdown(socket.SHUT_WR)
    # Nothing comes where it ended badly.
    sys.exit((loaded.recv(1) or b"\1")[0])
