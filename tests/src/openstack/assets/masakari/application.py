"""Masakari's API under uwsgi."""

import masakari_repaired  # noqa: F401
from masakari.cmd.api import initialize_application

import made

made.once()
application = initialize_application()
