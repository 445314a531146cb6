"""Instances as rows that nobody is behind: `make HOST COUNT`, `move HOST OTHER [COUNT]`, or `delete HOST`."""

import os
import sys
import uuid

from nova import config, context, objects
from nova.network import model

config.parse_args(["nova", "--config-file", os.path.join(os.environ["OS_NOVA_CONFIG_DIR"], "nova.conf")])
objects.register_all()
admin = context.get_admin_context()
cell = next(cell for cell in objects.CellMappingList.get_all(admin) if cell.name == "cell1")
context.set_target_cell(admin, cell)


def of(host):
    return sorted(objects.InstanceList.get_by_host(admin, host), key=lambda one: one.display_name)


def make(host, number):
    flavor = objects.Flavor(
        id=1, name="small", flavorid="1", memory_mb=64, vcpus=1, root_gb=1, ephemeral_gb=0, swap=0, rxtx_factor=1.0,
        vcpu_weight=0, disabled=False, is_public=True, extra_specs={}, description=None,
    )
    own = str(uuid.uuid4())
    nothing = objects.InstanceInfoCache(instance_uuid=own, network_info=model.NetworkInfo())
    instance = objects.Instance(
        admin, uuid=own, info_cache=nothing, project_id="project-%d" % (number % 2), user_id="somebody",
        display_name="web-%d" % number, hostname="web-%d" % number, host=host, node=host, vm_state="active",
        power_state=1, image_ref="", memory_mb=64, vcpus=1, root_gb=1, ephemeral_gb=0, instance_type_id=1,
        flavor=flavor, old_flavor=None, new_flavor=None, system_metadata={}, metadata={},
    )
    instance.create()
    objects.InstanceMapping(
        admin, instance_uuid=instance.uuid, cell_mapping=cell, project_id=instance.project_id, user_id="somebody",
    ).create()


what, host = sys.argv[1:3]
if what == "make":
    for number in range(int(sys.argv[3])):
        make(host, number)
elif what == "move":
    count = int(sys.argv[4]) if len(sys.argv) > 4 else None
    for instance in of(host)[:count]:
        instance.host = instance.node = sys.argv[3]
        instance.save()
elif what == "delete":
    for instance in of(host):
        instance.destroy()
else:
    raise SystemExit("what is %s?" % what)
