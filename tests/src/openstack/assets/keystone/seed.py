"""Makes Keystone's database: who there is, and where the services are."""

import json
import os
import sqlite3
import uuid

import keystone.server
from keystone.cmd.bootstrap import Bootstrapper
from keystone.common import fernet_utils, provider_api
from keystone.common.sql import upgrades

with open(os.environ["WANTED"]) as file:
    wanted = json.load(file)
keystone.server.configure(config_files=[os.path.join(os.environ["OS_KEYSTONE_CONFIG_DIR"], "keystone.conf")])
CONF = keystone.conf.CONF

# In the rollback journal a reader meets "database is locked", and its client an answer without a word.
sqlite3.connect(CONF.database.connection.removeprefix("sqlite:///")).execute("PRAGMA journal_mode=WAL")
upgrades.offline_sync_database_to_version()

for group in ("fernet_tokens", "fernet_receipts", "credential"):
    keys = fernet_utils.FernetUtils(CONF[group].key_repository, 3, group)
    keys.create_key_directory()
    keys.initialize_key_repository()

PROVIDERS = provider_api.ProviderAPIs
DOMAIN = "default"

admin = Bootstrapper()
admin.admin_username, admin.admin_password = wanted["admin"]["name"], wanted["admin"]["password"]
admin.project_name, admin.admin_role_name = wanted["project"], "admin"
admin.region_id, admin.service_name = wanted["region"], "keystone"
admin.public_url = admin.internal_url = admin.admin_url = wanted["identity"]
admin.bootstrap()
roles = {"admin": admin.admin_role_id, "member": admin.member_role_id, "reader": admin.reader_role_id}
projects = {wanted["project"]: admin.project_id}


def project(name):
    if name not in projects:
        projects[name] = uuid.uuid4().hex
        fields = {"id": projects[name], "name": name, "domain_id": DOMAIN, "enabled": True}
        PROVIDERS.resource_api.create_project(projects[name], fields)
    return projects[name]


for user in wanted["users"]:
    fields = {"name": user["name"], "password": user["password"], "domain_id": DOMAIN, "enabled": True}
    made = PROVIDERS.identity_api.create_user(fields)["id"]
    for role in user["roles"]:
        PROVIDERS.assignment_api.add_role_to_user_and_project(made, project(user["project"]), roles[role])

PROVIDERS.application_credential_api.create_application_credential({
    **wanted["application"], "user_id": admin.admin_user_id, "project_id": admin.project_id,
    "roles": [{"id": roles["admin"]}], "unrestricted": False,
})

for service in wanted["services"]:
    made = uuid.uuid4().hex
    fields = {"id": made, "type": service["type"], "name": service["name"], "enabled": True}
    PROVIDERS.catalog_api.create_service(made, fields)
    for interface in ("public", "internal", "admin"):
        address = uuid.uuid4().hex
        PROVIDERS.catalog_api.create_endpoint(address, {
            "id": address, "interface": interface, "region_id": wanted["region"], "service_id": made,
            "url": service["url"], "enabled": True,
        })
