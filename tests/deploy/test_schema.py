#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The schema of the chart refuses the settings that the plugin refuses and the bounds of
namespaces that the agent refuses, and no others. Of a quantity it knows the form, not the range:
"2G" packets are left to them."""
import json
import os
import re
import subprocess
import tempfile
import unittest

from cache import DEPLOY

NATRACTL, PLUGIN = os.environ["NATRACTL"], os.environ["NATRA_CNI"]
BAD_CONFIG = 7
NUMBERS = [-1, 0, 1, 1.5, 2, 64, 65, 100, 101, 10**9, 10**9 + 1, 10**15, 10**15 + 1]
TEXTS = ["", "0", "1", "7", "64", "65", "99", "100", "101", "10M", "1.5G", "10Mi", "1e6", "+5",
         "10X", "fast", "50%", "1ns", "50ms", "9s", "9.0s", "9.1s", "0s", "8999.5ms", "9000ms",
         "9001ms", "10s", "2", "10m", "0.5", "1.5", ".5k", "500u", "2 hours", "auto", "on", "off", "free", "strict", "charged",
         "police", "pace", "tcx-podside", "clsact-hostside", "static", "lowest", "runtime",
         "fail", "continue", "info", "loud", "/var/log/x", "log", True, [], {}]


def fits(schema, value):
    """Whether a value follows the parts of JSON Schema that the chart's uses."""
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    kind = schema.get("type")
    if kind and (not isinstance(value, types[kind]) or
                 kind == "integer" and isinstance(value, bool)):
        return False
    return value in schema.get("enum", [value]) and \
        (not isinstance(value, str) or re.search(schema.get("pattern", ""), value) is not None) and \
        (not isinstance(value, (int, float)) or
         schema.get("minimum", value) <= value <= schema.get("maximum", value)) and \
        ("anyOf" not in schema or any(fits(s, value) for s in schema["anyOf"])) and \
        ("not" not in schema or not fits(schema["not"], value)) and \
        (not isinstance(value, list) or all(fits(schema.get("items", {}), v) for v in value))


def plugin_takes(key, value):
    conf = {"cniVersion": "1.1.0", "name": "schema", "type": "natra", "logFile": "",
            "ingressRate": "1P", "egressRate": "1P", key: value}
    if key.startswith("group"):
        conf["group"] = {"name": "team"}
    p = subprocess.run([PLUGIN], input=json.dumps(conf), text=True, capture_output=True,
                       timeout=20, env={"CNI_COMMAND": "STATUS", "CNI_PATH": "/x"})
    return not p.returncode or json.loads(p.stdout)["code"] != BAD_CONFIG


def file_takes(rule):
    """Whether natractl's hook, which reads a namespace's rule as the agent does, takes it."""
    state = {"ociVersion": "1.0.0", "id": "x", "status": "creating", "pid": 2**22, "bundle": "/x"}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump({"*": rule}, f)
        f.flush()
        p = subprocess.run([NATRACTL, "hook", "--namespaces", f.name, "--on-error", "fail"],
                           input=json.dumps(state), text=True, capture_output=True, timeout=20)
        return f.name not in p.stderr


class Schema(unittest.TestCase):
    def test_it_refuses_what_the_plugin_refuses(self):
        with open(f"{DEPLOY}/chart/values.schema.json") as f:
            conf = json.load(f)["properties"]["conf"]
        self.assertIs(conf["additionalProperties"], False)
        for key, schema in conf["properties"].items():
            if key in ("classes", "group", "shapedSubnets", "unshapedSubnets",
                       "allowAnnotations"):
                continue
            for value in NUMBERS + TEXTS:
                if value == "1.5G" and re.search("(Packet|Connection)Rate", key):
                    continue
                with self.subTest(key=key, value=value):
                    self.assertEqual(fits(schema, value), plugin_takes(key, value))

    def test_bounds_of_namespaces(self):
        with open(f"{DEPLOY}/chart/values.schema.json") as f:
            rule = json.load(f)["properties"]["namespaces"]["additionalProperties"]["properties"]
        for part, key in (("default", "ingressRate"), ("max", "egressBurst"),
                          ("max", "ingressPacketRate")):
            schema = rule[part]["properties"][key]
            for value in NUMBERS + TEXTS:
                if value == "1.5G" and "Packet" in key:
                    continue
                with self.subTest(part=part, key=key, value=value):
                    rates = {"ingressRate": "1T", "egressRate": "1T", key: value}
                    self.assertEqual(fits(schema, value), file_takes({part: rates}))
        names = rule["allowAnnotations"]["items"]["enum"]
        self.assertTrue(file_takes({"allowAnnotations": names}))
        self.assertFalse(file_takes({"allowAnnotations": ["speed"]}))

    def test_annotations(self):
        with open(f"{DEPLOY}/chart/values.schema.json") as f:
            schema = json.load(f)["properties"]["conf"]["properties"]["allowAnnotations"]
        names = schema["items"]["enum"]
        self.assertTrue(plugin_takes("allowAnnotations", names))
        self.assertGreater(len(names), 30)


if __name__ == "__main__":
    unittest.main()
