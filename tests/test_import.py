"""Importing Questree changes nothing in the modules of others."""

from __future__ import annotations

import os
import subprocess
import sys

LOOK = """
import importlib, inspect, pkgutil, sys
import dspy, httpcore, httpx, json_repair
import dspy._vendor.lm15.transports, dspy.adapters.baml_adapter, dspy.clients.execution, httpcore._backends.sync

THEIRS = ("dspy", "httpcore", "httpx", "json_repair", "litellm")

def attributes():
    found = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in THEIRS:
            continue
        for own, value in list(vars(module).items()):
            found[name, own] = repr(value) if own.isupper() and isinstance(value, (dict, list, set)) else id(value)
            if inspect.isclass(value) and value.__module__.partition(".")[0] in THEIRS:
                found |= {(name, own, one): id(kept) for one, kept in vars(value).items() if not one.startswith("__")}
    return found

before = attributes()
import questree
for module in pkgutil.walk_packages(questree.__path__, "questree."):
    importlib.import_module(module.name)
after = attributes()
assert len(before) > 10_000
print(*(".".join(name) for name in before if after.get(name) != before[name]))
"""


def test_importing_questree_changes_no_attribute_of_another_library():
    offline = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    seen = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=False, env=offline)
    assert (seen.stdout.split(), seen.returncode) == ([], 0), seen.stderr
