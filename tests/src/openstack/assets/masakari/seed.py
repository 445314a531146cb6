"""Makes Masakari's database: segments and their hosts."""

import json
import os
import sqlite3

import masakari_repaired  # noqa: F401
import masakari.conf
from masakari import config, context, objects
from masakari.db import migration

with open(os.environ["WANTED"]) as file:
    wanted = json.load(file)
config.parse_args(["masakari", "--config-file", os.path.join(os.environ["OS_MASAKARI_CONFIG_DIR"], "masakari.conf")])
objects.register_all()
place = masakari.conf.CONF.database.connection.removeprefix("sqlite:///")
sqlite3.connect(place).execute("PRAGMA journal_mode=WAL")
migration.db_sync()

admin = context.get_admin_context()
for fields in wanted["segments"]:
    segment = objects.FailoverSegment(context=admin, name=fields["name"], enabled=fields["enabled"],
                                      service_type="compute", recovery_method="auto")
    segment.create()
    for host in fields["hosts"]:
        objects.Host(context=admin, failover_segment=segment, name=host, on_maintenance=host in wanted["on_maintenance"],
                     reserved=host in wanted["reserved"], type="COMPUTE", control_attributes="SSH").create()
