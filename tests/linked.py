#!/usr/bin/env python3
"""What is linked in, by the rules of deny.toml: licences, banned crates, sources. `make deny` has cargo-deny check it, which is compiled for
longer than all of this project: at each push its three rules are enough. Ends with 1 and a line for each crate that breaks one."""
import json
import os
import subprocess
import sys
import tomllib

with open("deny.toml", "rb") as file:
    rules = tomllib.load(file)
cargo = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--format-version", "1"]
targets = [word for target in rules["graph"]["targets"] for word in ("--filter-platform", target)]
packages = json.loads(subprocess.run(cargo + targets, check=True, capture_output=True).stdout)["packages"]
allowed, banned = set(rules["licenses"]["allow"]), {rule["name"]: rule["reason"] for rule in rules["bans"]["deny"]}
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


def is_allowed(expression):
    """One of several, or all of them; of what is in brackets, the same."""
    choices = (expression or "").replace("/", " OR ").replace("(", "").replace(")", "").split(" OR ")
    return any(all(name.strip() in allowed for name in choice.split(" AND ")) for choice in choices)


wrong = []
for package in packages:
    crate = f"{package['name']} {package['version']}"
    if package["source"] not in (None, REGISTRY):
        wrong.append(f"{crate} is from {package['source']}")
    if package["source"] and not is_allowed(package["license"]):
        wrong.append(f"{crate} has the licence {package['license']}")
    if package["name"] in banned:
        wrong.append(f"{crate} is banned: {banned[package['name']]}")
print("\n".join(wrong) or f"{len(packages)} crates are as deny.toml wants them")
sys.exit(bool(wrong))
