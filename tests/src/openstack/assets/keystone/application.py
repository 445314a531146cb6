"""Keystone under uwsgi."""

from keystone.server.wsgi import initialize_public_application

import made

made.once()
application = initialize_public_application()
