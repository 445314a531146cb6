"""Heat's API and engine in one process."""

import os
import sys

import eventlet

eventlet.monkey_patch(os=False)

from oslo_config import cfg  # noqa: E402
from oslo_log import log  # noqa: E402

from heat.cmd import engine  # noqa: E402
from heat.common import config  # noqa: E402

try:
    from heat.db.migration import db_sync
except ImportError:  # Zed
    from heat.db.sqlalchemy import api

    def db_sync():
        api.db_sync(api.get_engine())


CONF = cfg.CONF
sys.argv[1:] = ["--config-file", os.path.join(os.path.dirname(sys.argv[0]), "heat.conf")]
log.register_options(CONF)
CONF(project="heat", prog="heat-api")
log.setup(CONF, "heat")
db_sync()
# It is kept: the launching code must hold it.
running = engine.launch_engine(setup_logging=False)
place = (CONF.heat_api.bind_host, CONF.heat_api.bind_port)
eventlet.wsgi.server(eventlet.listen(place), config.load_paste_app("heat-api"))
