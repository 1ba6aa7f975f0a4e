# SPDX-License-Identifier: BSD-2-Clause
"""Finds what `tools/install-deps deploy` has put into the cache."""
import os
import sys

SOURCE = os.path.realpath(f"{os.path.dirname(os.path.abspath(__file__))}/../..")
DEPLOY = f"{SOURCE}/tools/deploy"
CACHE = f"{os.environ.get('NATRA_CACHE', '/var/cache/natra')}/deploy"
HELM, KUSTOMIZE = f"{CACHE}/bin/helm", f"{CACHE}/bin/kustomize"
VALIDATE, SPDX = f"{CACHE}/venv/bin/kubernetes-validate", f"{CACHE}/venv/bin/pyspdxtools"


def need(*paths):
    """End the test as skipped if a tool is not there."""
    for path in paths:
        if not os.path.exists(path):
            print(f"skipped: no {path} (tools/install-deps deploy image)")
            sys.exit(77)


def import_yaml():
    need(f"{CACHE}/venv")
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    sys.path.append(f"{CACHE}/venv/lib/{version}/site-packages")
    import yaml
    return yaml
