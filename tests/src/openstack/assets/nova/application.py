"""Nova's API under uwsgi."""

from nova.api.openstack.wsgi_app import init_application

import made

made.once()
application = init_application("osapi_compute")
