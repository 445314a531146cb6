"""pcs, loaded once: that is four fifths of what a call costs. Each call is a fork, with the caller's mounts, directory, environment and files.

Standard input is a socket that listens, standard output a pipe whose other end closes when the tests end.
"""
import ctypes
import os
import select
import signal
import socket
import sys

from pcs import app

OF_MOUNTS = 0x20000
LIBC = ctypes.CDLL(None)


def answer(caller):
    message, files, _, _ = socket.recv_fds(caller, 1 << 16, 5)
    message += b"".join(iter(lambda: caller.recv(1 << 16), b""))
    count, *words = message.decode().split("\0")
    if LIBC.setns(files[3], OF_MOUNTS) != 0:
        raise OSError("setns")
    os.fchdir(files[4])
    for fd in range(3):
        os.dup2(files[fd], fd)
    for fd in files:
        os.close(fd)
    os.environ.clear()
    os.environ.update(word.split("=", 1) for word in words[int(count) :])
    sys.argv = words[: int(count)]
    app.main()


def call(caller):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    code = 1
    try:
        answer(caller)
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        caller.send(bytes([code]))
        os._exit(0)


listener = socket.socket(fileno=0)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
events = select.poll()
events.register(0, select.POLLIN)
events.register(1, 0)
while all(fd == 0 for fd, _ in events.poll()):
    caller, _ = listener.accept()
    if os.fork() == 0:
        call(caller)
    caller.close()
