"""Makes the database before the first start, in a process of its own that need not import everything again."""

import os
import runpy
import traceback

_here = os.path.dirname(os.path.abspath(__file__))


def once():
    """Runs seed.py, unless that was done before."""
    done = os.path.join(_here, "made")
    if os.path.exists(done):
        return
    child = os.fork()
    if child == 0:
        try:
            runpy.run_path(os.path.join(_here, "seed.py"))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit("the database was not made")
    open(done, "w").close()
