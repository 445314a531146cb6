#!/usr/bin/python3
"""confined.py [--root DIR | --reach PATH ... --] COMMAND ...: runs it as user 1000 of a plain container: without a privilege, and with none to be
had; unshare, setns, mount and ptrace are refused. As root.

--root makes DIR its root. --reach lets the user come to these directories wherever they lie: in a mount namespace of one's own only.
"""
import errno
import os
import pathlib
import subprocess
import sys
import tempfile

import seccomp

USER = 1000
# clone3 cannot be judged by its arguments: the C library takes "no such call" for an old kernel, and uses clone.
DENIED = {"unshare": errno.EPERM, "setns": errno.EPERM, "mount": errno.EPERM, "ptrace": errno.EPERM, "clone3": errno.ENOSYS}
NEW_USER_NAMESPACE = 0x10000000


def confine():
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    for call, answer in DENIED.items():
        rules.add_rule(seccomp.ERRNO(answer), call)
    rules.add_rule(seccomp.ERRNO(errno.EPERM), "clone", seccomp.Arg(0, seccomp.MASKED_EQ, NEW_USER_NAMESPACE, NEW_USER_NAMESPACE))
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    rules.load()  # no new privileges is part of it


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True)


def reach(paths):
    """A directory on the way that others may not pass is covered by an empty one, with the wanted ones in it."""
    kept = [(path, tempfile.mkdtemp()) for path in paths]
    for path, place in kept:
        mount("--bind", path, place)
    for path in paths:
        closed = [part for part in reversed(path.parents) if not part.stat().st_mode & 1]
        for part in closed[:1]:
            mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", part)
    for path, place in kept:
        path.mkdir(parents=True, exist_ok=True)
        mount("--move", place, path)
        os.rmdir(place)


def main(words):
    if words[0] == "--root":
        os.chroot(words[1])
        os.chdir("/src")
        words = words[2:]
    elif words[0] == "--reach":
        end = words.index("--")
        reach([pathlib.Path(word) for word in words[1:end]])
        os.chdir(words[1])
        words = words[end + 1:]
    confine()
    os.execvp(words[0], words)


main(sys.argv[1:])
