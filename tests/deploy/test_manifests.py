#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The chart and the kustomizations make the same objects, which Kubernetes' schemas
allow, and which are what a cluster expects of an installer. Needs no root."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cache

cache.need(cache.HELM, cache.KUSTOMIZE, cache.VALIDATE)
yaml = cache.import_yaml()

PLATFORMS = sorted(os.listdir(f"{cache.DEPLOY}/overlays"))
# The oldest and the newest Kubernetes of the validator's schemas that the pages name.
VERSIONS = ("1.30", "1.34")
CRITICAL = "system-node-critical"


def run(*argv, code=0):
    p = subprocess.run(argv, text=True, capture_output=True, timeout=60)
    if bool(p.returncode) != bool(code):
        raise AssertionError(f"{argv}: {p.returncode}: {p.stdout}{p.stderr}")
    return p.stdout if not code else p.stderr


def objects(text):
    return {(o["kind"], o["metadata"]["name"]): o
            for o in yaml.safe_load_all(text) if o}


def helm(*settings, code=0, namespace="kube-system"):
    return run(cache.HELM, "template", "natra", f"{cache.DEPLOY}/chart", "--namespace",
               namespace, *[x for s in settings for x in ("--set", s)], code=code)


def kustomize(platform, *components):
    """Build an overlay with components, as a user's own kustomization would."""
    with tempfile.TemporaryDirectory() as d:
        def relative(path):
            return os.path.relpath(f"{cache.DEPLOY}/{path}", os.path.realpath(d))
        with open(f"{d}/kustomization.yaml", "w") as f:
            yaml.safe_dump({"resources": [relative(f"overlays/{platform}")],
                            "components": [relative(f"components/{c}")
                                           for c in components]}, f)
        return run(cache.KUSTOMIZE, "build", d)


def pod_spec(text):
    return objects(text)["DaemonSet", "natra-agent"]["spec"]["template"]["spec"]


class Same(unittest.TestCase):
    """Helm and kustomize cannot share a template, so each fact is stated twice; this
    proves that both say the same."""
    maxDiff = None

    def test_platforms(self):
        for platform in PLATFORMS:
            with self.subTest(platform):
                self.assertEqual(objects(helm(f"platform={platform}")),
                                 objects(kustomize(platform)))

    def test_components(self):
        for component, setting in (
                ("groups", "groups.node.egressRate=10G"),
                ("no-live", "live=false"), ("uninstall", "uninstall=true"),
                ("monitoring", "monitoring.port=9811,monitoring.operator=true")):
            for platform in ("k3s", "openshift"):
                with self.subTest(component, platform=platform):
                    self.assertEqual(objects(helm(f"platform={platform}", setting)),
                                     objects(kustomize(platform, component)))

    def test_namespace(self):
        built = objects(kustomize("default", "namespace"))
        labels = built.pop(("Namespace", "natra"))["metadata"]["labels"]
        self.assertEqual(labels["pod-security.kubernetes.io/enforce"], "privileged")
        self.assertEqual(built, objects(helm(namespace="natra")))

    def test_default_overlay_is_the_base(self):
        self.assertEqual(kustomize("default"),
                         run(cache.KUSTOMIZE, "build", f"{cache.DEPLOY}/base"))


class Valid(unittest.TestCase):
    def validate(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(text)
            f.flush()
            for version in VERSIONS:
                run(cache.VALIDATE, "--strict", "-k", version, f.name)

    def test_schemas(self):
        for platform in PLATFORMS:
            with self.subTest(platform):
                self.validate(kustomize(platform))
        self.validate(kustomize("default", "no-live"))
        self.validate(kustomize("default", "groups"))
        self.validate(kustomize("k3s", "uninstall"))
        self.validate(kustomize("gke", "namespace"))

    def test_a_wrong_field_is_noticed(self):
        wrong = kustomize("default").replace("hostNetwork:", "hostNetwrok:")
        with self.assertRaises(AssertionError):
            self.validate(wrong)

    def test_bad_values(self):
        for setting, names in (("platform=k3x", "/platform"), ("port=0", "/port"),
                               ("platfom=k3s", "platfom"), ("live=maybe", "/live"),
                               ("args={node}", "/args"), ("groups.node=10G", "/groups"),
                               ("image.digest=x", "digest"),
                               ("monitoring.port=-1", "/monitoring/port"),
                               ("monitoring.operator=true", "monitoring.port")):
            with self.subTest(setting):
                self.assertIn(names, helm(setting, code=1))

    def test_values(self):
        spec = pod_spec(helm("conf.fastPass=charged", "conf.onError=continue",
                             "conf.egressRate=10000000", "args={--replace-bandwidth}",
                             "port=9999", "seLinuxType=natra_t",
                             "image.repository=r.example/natra",
                             f"image.digest=sha256:{64 * 'a'}"))
        agent = spec["containers"][0]
        for arg in ('--conf=fastPass="charged"', "--conf=egressRate=10000000",
                    "--replace-bandwidth", "--listen=127.0.0.1:9999"):
            self.assertIn(arg, agent["args"])
        self.assertEqual(agent["livenessProbe"]["httpGet"]["port"], 9999)
        self.assertEqual(spec["securityContext"]["seLinuxOptions"]["type"], "natra_t")
        self.assertEqual(agent["image"], f"r.example/natra@sha256:{64 * 'a'}")


class Obligations(unittest.TestCase):
    """Checks what tools/deploy/CHECKLIST.md says of the pod."""

    def setUp(self):
        self.objects = objects(kustomize("default"))
        self.daemon = self.objects["DaemonSet", "natra-agent"]
        self.spec = self.daemon["spec"]["template"]["spec"]
        self.agent = self.spec["containers"][0]

    def test_scheduling(self):
        self.assertEqual(self.daemon["metadata"]["namespace"], "kube-system")
        self.assertEqual(self.spec["priorityClassName"], CRITICAL)
        self.assertEqual(self.spec["tolerations"], [{"operator": "Exists"}])
        self.assertEqual(self.spec["nodeSelector"], {"kubernetes.io/os": "linux"})
        self.assertEqual(self.agent["resources"]["requests"],
                         self.agent["resources"]["limits"])
        self.assertEqual(self.daemon["spec"]["updateStrategy"], {
            "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}})
        self.assertIs(self.spec["hostNetwork"], True)

    def test_confinement(self):
        for platform, *components in (("default",), ("k3s", "uninstall")):
            spec = pod_spec(kustomize(platform, *components))
            self.assertEqual(spec["securityContext"]["seLinuxOptions"],
                             {"type": "spc_t"})
            for container in spec["containers"] + spec.get("initContainers", []):
                security = container["securityContext"]
                self.assertIs(security["privileged"], False)
                self.assertIs(security["readOnlyRootFilesystem"], True)
                self.assertEqual(security["capabilities"]["drop"], ["ALL"])
                self.assertEqual(security["appArmorProfile"], {"type": "Unconfined"})

    def test_volumes(self):
        for volume in self.spec["volumes"]:
            self.assertEqual(volume["hostPath"]["type"], "Directory", volume)
        writable = {m["name"] for m in self.agent["volumeMounts"]
                    if not m.get("readOnly")}
        self.assertEqual(writable, {"net-dir", "bin-dir", "bpf"})
        for m in self.agent["volumeMounts"]:
            self.assertEqual(m["mountPropagation"], "HostToContainer", m)

    def test_rights(self):
        self.assertEqual(
            [(r["resources"], r["verbs"])
             for r in self.objects["ClusterRole", "natra-agent"]["rules"]],
            [(["pods"], ["watch"]), (["events"], ["create"])])
        without = objects(kustomize("default", "no-live"))
        self.assertFalse([k for k in without if "Role" in k[0]])
        spec = without["DaemonSet", "natra-agent"]["spec"]["template"]["spec"]
        self.assertIs(spec["automountServiceAccountToken"], False)
        self.assertIs(without["ServiceAccount", "natra-agent"][
            "automountServiceAccountToken"], False)


if __name__ == "__main__":
    unittest.main()
