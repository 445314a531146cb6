"""Masakari's API and engine in one process: messages go from hand to hand."""

import os
import sys

import eventlet

eventlet.monkey_patch(os=False)

import masakari_repaired  # noqa: E402, F401
from masakari.cmd.api import initialize_application  # noqa: E402

sys.argv[1:] = ["--config-file", os.path.join(os.environ["OS_MASAKARI_CONFIG_DIR"], "masakari.conf")]
application = initialize_application()

from masakari import service  # noqa: E402

engine = service.Service.create(binary="masakari-engine", topic=service.CONF.masakari_topic, periodic_fuzzy_delay=0)
engine.start()
listener = eventlet.listen((service.CONF.masakari_api_listen, service.CONF.masakari_api_listen_port))
print("the engine is there", flush=True)
eventlet.wsgi.server(listener, application, keepalive=False)
