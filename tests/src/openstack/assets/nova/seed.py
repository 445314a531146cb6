"""Makes Nova's databases: one cell with compute services."""

import json
import os
import sqlite3
import uuid

from nova import config, context, objects
import nova.conf
from nova.db import migration

with open(os.environ["WANTED"]) as file:
    wanted = json.load(file)
config.parse_args(["nova", "--config-file", os.path.join(os.environ["OS_NOVA_CONFIG_DIR"], "nova.conf")])
objects.register_all()
CONF = nova.conf.CONF
main, api = CONF.database.connection, CONF.api_database.connection
nowhere = main.replace("nova.db", "nova-cell0.db")
path = {place: place.removeprefix("sqlite:///") for place in (main, api, nowhere)}
migration.db_sync(database="api")
migration.db_sync(database="main")
sqlite3.connect(path[main]).execute("VACUUM INTO ?", [path[nowhere]])
for place in path.values():
    sqlite3.connect(place).execute("PRAGMA journal_mode=WAL")

admin = context.get_admin_context()
cells = ((objects.CellMapping.CELL0_UUID, "cell0", nowhere), (str(uuid.uuid4()), "cell1", main))
for cell, name, place in cells:
    mapping = objects.CellMapping(admin, uuid=cell, name=name, database_connection=place, transport_url="fake://")
    mapping.create()

for host in wanted["computes"]:
    objects.Service(admin, host=host, binary="nova-compute", topic="compute", report_count=1).create()
    objects.HostMapping(admin, host=host, cell_mapping=mapping).create()
# Nobody is behind them: of one that was seen a moment ago Nova would wait for an answer.
database = sqlite3.connect(path[main])
database.execute("UPDATE services SET created_at = '2020-01-01 00:00:00', last_seen_up = '2020-01-01 00:00:00'")
database.commit()
