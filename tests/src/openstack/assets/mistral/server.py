"""Mistral's API, engine and executor in one process. Its migrations do not know SQLite; its models make the tables."""

import os
import sys

from mistral.cmd import launch  # first: it exchanges the threads of everything that is imported after it
from mistral import config, exceptions
from mistral.api import service as api
from mistral.db.v2 import api as database
from mistral.engine import engine_server
from mistral.executors import executor_server
from mistral.rpc import base as rpc
from mistral.services import workflows

WORKFLOWS = """
version: "2.0"
host-evacuate:
  input: [search_opts, on_shared_storage]
  tasks:
    note: {action: std.noop}
host_down:
  input: [host]
  tasks:
    note: {action: std.noop}
host_down_slow:
  input: [host]
  tasks:
    wait: {action: std.async_noop}
host_down_broken:
  input: [host]
  tasks:
    give_up: {action: std.fail}
"""

# Through a message bus an error of the engine comes with its name. From hand to hand it does not, and the API would answer 500.
exceptions.MistralError.exc_type = property(lambda self: type(self).__name__)
exceptions.MistralError.value = property(str)

launch.CONF.register_cli_opts(config.CLI_OPTS)
config.parse_args(["--config-file", os.path.join(os.path.dirname(sys.argv[0]), "mistral.conf")])
launch.logging.setup(launch.CONF, "mistral")
if hasattr(launch, "override_keystone_options"):  # up to Caracal
    launch.override_keystone_options()
database.setup_db()
if database.load_workflow_definition("host_down") is None:
    workflows.create_workflows(WORKFLOWS, scope="public")
rpc.get_transport()
launch.launch_thread(engine_server.get_oslo_service())
launch.launch_thread(executor_server.get_oslo_service())
launch.launch_thread(api.WSGIService("mistral_api"))
launch.get_server_thread_manager().wait()
