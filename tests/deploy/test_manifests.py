#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The chart makes objects that Kubernetes' schemas allow and that are what a cluster
expects of an installer, and the manifests are what it makes. Needs no root."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import cache

cache.need(cache.HELM, cache.KUSTOMIZE, cache.VALIDATE)
yaml = cache.import_yaml()

with open(f"{cache.DEPLOY}/chart/platforms.yaml") as f:
    PLATFORMS = sorted(yaml.safe_load(f))
# The variants of the manifests, and the values that they stand for.
VARIANTS = {"install": (), "no-live": ("live=false",), "no-page": ("page=false",), "uninstall": ("uninstall=true",),
            "groups": ("groups.node.egressRate=10G",),
            "namespaces": ("namespaces.tenant-*.default.egressRate=10M",
                           "namespaces.tenant-*.max.egressRate=100M",
                           "namespaces.tenant-*.fastPass=strict"),
            "monitoring": ("monitoring.port=9811", "monitoring.operator=true")}
# The oldest and the newest Kubernetes of the validator's schemas that the pages name, and those around
# the first one with appArmorProfile.
OLDEST, *_, NEWEST = VERSIONS = ("1.25", "1.29", "1.30", "1.34")
CRITICAL = "system-node-critical"


def run(*argv, code=0):
    p = subprocess.run(argv, text=True, capture_output=True, timeout=60)
    if bool(p.returncode) != bool(code):
        raise AssertionError(f"{argv}: {p.returncode}: {p.stdout}{p.stderr}")
    return p.stdout if not code else p.stderr


def objects(text):
    return {(o["kind"], o["metadata"]["name"]): o
            for o in yaml.safe_load_all(text) if o}


def helm(*settings, code=0, namespace="kube-system", tests=False, version=NEWEST):
    return run(cache.HELM, "template", "natra", f"{cache.DEPLOY}/chart", "--namespace", namespace,
               "--kube-version", f"{version}.0", *(() if tests else ("--skip-tests",)),
               *[x for s in settings for x in ("--set", s)], code=code)


def pod_spec(text):
    return objects(text)["DaemonSet", "natra-agent"]["spec"]["template"]["spec"]


class Manifests(unittest.TestCase):
    """The manifests that a release has for those who do not use Helm."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        cls.made = f"{cls.work.name}/manifests"
        cls.said = subprocess.run([f"{cache.DEPLOY}/manifests", cls.made], text=True, check=True,
                                  stderr=subprocess.PIPE, timeout=120).stderr

    @classmethod
    def tearDownClass(cls):
        cls.work.cleanup()

    def test_all_are_of_the_chart(self):
        self.assertEqual(sorted(os.listdir(self.made)), PLATFORMS)
        for platform in PLATFORMS:
            self.assertEqual(set(os.listdir(f"{self.made}/{platform}")), set(VARIANTS))
        for platform in ("k3s", "openshift"):
            for variant, values in VARIANTS.items():
                with self.subTest(platform, variant=variant):
                    with open(f"{self.made}/{platform}/{variant}/natra.yaml") as f:
                        self.assertEqual(objects(f.read()),
                                         objects(helm(f"platform={platform}", *values)))

    def test_a_kustomization_takes_them(self):
        with open(f"{self.work.name}/kustomization.yaml", "w") as f:
            f.write("resources: [manifests/k3s/groups]\n"
                    "images: [{name: localhost/natra, newName: registry.example/natra}]\n")
        expected = objects(helm("platform=k3s", *VARIANTS["groups"],
                                "image.repository=registry.example/natra"))
        self.assertEqual(objects(run(cache.KUSTOMIZE, "build", self.work.name)), expected)

    def test_an_existing_directory_is_refused(self):
        self.assertIn(self.made, run(f"{cache.DEPLOY}/manifests", self.made, code=1))

    def test_nothing_is_said(self):
        self.assertEqual(self.said, "")

    def test_help(self):
        for tool in "manifests", "image":
            said = run(f"{cache.DEPLOY}/{tool}", "--help", code=2)
            self.assertTrue(said.startswith(f"usage: tools/deploy/{tool} "), said)


class Valid(unittest.TestCase):
    def validate(self, *settings, **more):
        """Each Kubernetes' schema allows what the chart makes for it."""
        for version in VERSIONS:
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
                f.write(helm(*settings, version=version, **more))
                f.flush()
                run(cache.VALIDATE, "--strict", "-k", version, f.name)

    def test_schemas(self):
        for platform in PLATFORMS:
            with self.subTest(platform):
                self.validate(f"platform={platform}")
        for values in (VARIANTS["no-live"], VARIANTS["groups"], VARIANTS["namespaces"],
                       ("platform=k3s", *VARIANTS["uninstall"])):
            with self.subTest(values):
                self.validate(*values)
        self.validate("platform=gke", namespace="natra")
        self.validate(tests=True)

    def test_bad_values(self):
        for setting, names in (("platform=k3x", "/platform"), ("port=0", "/port"),
                               ("platfom=k3s", "platfom"), ("live=maybe", "/live"),
                               ("edits=raise", "/edits"),
                               ("args={node}", "/args"), ("groups.node=10G", "/groups"),
                               ("namespaces.A.max.egressRate=1M", "'A'"),
                               ("namespaces.a.max.rate=1M", "/namespaces"),
                               ("namespaces.a.default.egressRate=10m", "egressRate"),
                               ("namespaces.a.fastPass=no", "/namespaces"),
                               ("image.digest=x", "digest"),
                               ("directories.binDir=opt", "binDir"),
                               ("updateStrategy.type=Recreate", "updateStrategy"),
                               ("monitoring.port=-1", "/monitoring/port"),
                               ("monitoring.operator=true", "monitoring.port")):
            with self.subTest(setting):
                self.assertIn(names, helm(setting, code=1))

    def test_names_with_quotes(self):
        """An apostrophe in a group's name does not end the text that YAML has of the file."""
        for name in "it's", "a''b", 'a"b':
            made = objects(helm(f"groups.{name}.egressRate=10G"))
            self.assertEqual(json.loads(made["ConfigMap", "natra-groups"]["data"]["groups.json"]),
                             {name: {"egressRate": "10G"}})

    def test_values(self):
        spec = pod_spec(helm("conf.fastPass=strict", "conf.onError=continue",
                             "conf.egressRate=10000000", "args={--replace-bandwidth}",
                             "port=9999", "seLinuxType=natra_t", "edits=lower", "podsFrom=kubelet",
                             "image.repository=r.example/natra",
                             f"image.digest=sha256:{64 * 'a'}"))
        agent = spec["containers"][0]
        for arg in ('--conf=fastPass="strict"', "--conf=egressRate=10000000",
                    "--replace-bandwidth", "--listen=127.0.0.1:9999", "--edits=lower",
                    "--kubelet-socket=/var/lib/kubelet/pods-api/pods-api.sock"):
            self.assertIn(arg, agent["args"])
        self.assertEqual(agent["livenessProbe"]["httpGet"]["port"], 9999)
        self.assertEqual(spec["securityContext"]["seLinuxOptions"]["type"], "natra_t")
        self.assertEqual(agent["image"], f"r.example/natra@sha256:{64 * 'a'}")


    def test_where_it_runs(self):
        made = objects(helm("directories.binDir=/usr/lib/cni", "podLabels.team=net",
                            "podAnnotations.a\\.b/c=d", "serviceAccount.name=other",
                            "serviceAccount.annotations.x=y", "priorityClassName=mine",
                            "tolerations=null", "affinity=null",
                            "updateStrategy.type=OnDelete", "updateStrategy.rollingUpdate=null"))
        daemon = made["DaemonSet", "natra-agent"]["spec"]
        pod, spec = daemon["template"]["metadata"], daemon["template"]["spec"]
        self.assertEqual(pod["labels"], {"team": "net", "app.kubernetes.io/name": "natra"})
        self.assertEqual(pod["annotations"]["a.b/c"], "d")
        self.assertEqual((spec["serviceAccountName"], spec["priorityClassName"]),
                         ("other", "mine"))
        self.assertEqual(made["ServiceAccount", "other"]["metadata"]["annotations"],
                         {"x": "y"})
        self.assertEqual(made["ClusterRoleBinding", "natra-agent"]["subjects"][0]["name"],
                         "other")
        self.assertNotIn("tolerations", spec)
        self.assertNotIn("affinity", spec)
        self.assertEqual(daemon["updateStrategy"], {"type": "OnDelete"})
        agent = spec["containers"][0]
        self.assertEqual(agent["args"][:3],
                         ["--platform=default", "--bin-dir=/usr/lib/cni", "--root=/host"])
        self.assertIn("/host/usr/lib/cni", [m["mountPath"] for m in agent["volumeMounts"]])
        self.assertIn({"path": "/usr/lib/cni", "type": "Directory"},
                      [v["hostPath"] for v in spec["volumes"]])
        init = pod_spec(helm("uninstall=true", "directories.netDir=/srv/net"))
        self.assertEqual(init["initContainers"][0]["args"], [
            "uninstall", "--platform=default", "--net-dir=/srv/net", "--root=/host"])
        self.assertNotIn(("ServiceAccount", "x"), objects(helm(
            "serviceAccount.create=false", "serviceAccount.name=x")))

    def test_lint(self):
        """A chart as it is published, without the link to the files of monitoring."""
        with tempfile.TemporaryDirectory() as work:
            shutil.copytree(f"{cache.DEPLOY}/chart", f"{work}/natra")
            p = subprocess.run([cache.HELM, "lint", "--strict", "--kube-version", "1.34.0",
                                f"{work}/natra"], text=True, capture_output=True, timeout=60)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertNotRegex(p.stdout, "WARN|INFO|ERROR")

    def test_the_test(self):
        """`helm test` sees what the agent sees, and goes where the agent may go, but not to a node that is
        cordoned or dead."""
        made = objects(helm("platform=k3s", "conf.fastPass=strict", "tolerations[0].operator=Exists",
                            "tolerations[1].key=team", "tolerations[1].operator=Exists",
                            "tolerations[2].key=node.kubernetes.io/unschedulable",
                            "tolerations[2].operator=Exists", tests=True))
        test = made["Pod", "natra-test-doctor"]
        agent = made["DaemonSet", "natra-agent"]["spec"]["template"]["spec"]
        self.assertEqual(test["metadata"]["annotations"]["helm.sh/hook"], "test")
        for key in ("volumes", "securityContext", "nodeSelector", "affinity", "hostPID"):
            self.assertEqual(test["spec"][key], agent[key])
        self.assertEqual(test["spec"]["tolerations"], [
            {"key": key, "operator": "Exists"}
            for key in ("node-role.kubernetes.io/control-plane", "team")])
        [doctor], [agent] = test["spec"]["containers"], agent["containers"]
        for key in ("image", "volumeMounts", "securityContext"):
            self.assertEqual(doctor[key], agent[key])
        self.assertIn("--platform=k3s", doctor["args"])
        self.assertNotIn(("Pod", "natra-test-doctor"), objects(helm("uninstall=true", tests=True)))

    def test_monitoring(self):
        made = objects(helm(*VARIANTS["monitoring"], "monitoring.labels.release=kps",
                            "monitoring.dashboard=true"))
        for kind in ("PodMonitor", "PrometheusRule"):
            self.assertEqual(made[kind, "natra"]["metadata"]["labels"],
                             {"app.kubernetes.io/name": "natra", "release": "kps"})
        self.assertEqual(made["PodMonitor", "natra"]["spec"]["selector"]["matchLabels"],
                         {"app.kubernetes.io/name": "natra"})
        board = made["ConfigMap", "natra-dashboard"]
        self.assertEqual(board["metadata"]["labels"]["grafana_dashboard"], "1")
        self.assertEqual(json.loads(board["data"]["natra.json"])["uid"], "natra")
        made = objects(helm("monitoring.dashboard=true",
                            "monitoring.dashboardLabels.grafana_dashboard=null"))
        self.assertEqual(made["ConfigMap", "natra-dashboard"]["metadata"]["labels"],
                         {"app.kubernetes.io/name": "natra"})

    def test_quota(self):
        """GKE admits critical pods outside of kube-system only with a quota."""
        for platform, namespace, wants in (("gke", "natra", True), ("gke", "kube-system", False),
                                           ("default", "natra", False)):
            made = objects(helm(f"platform={platform}", namespace=namespace))
            self.assertIs(("ResourceQuota", "natra-agent") in made, wants)


class Obligations(unittest.TestCase):
    """Checks what tests/install/CHECKLIST.md says of the pod."""

    def setUp(self):
        self.objects = objects(helm())
        self.daemon = self.objects["DaemonSet", "natra-agent"]
        self.spec = self.daemon["spec"]["template"]["spec"]
        self.agent = self.spec["containers"][0]

    def test_scheduling(self):
        self.assertEqual(self.daemon["metadata"]["namespace"], "kube-system")
        self.assertEqual(self.spec["priorityClassName"], CRITICAL)
        self.assertEqual(self.spec["tolerations"], [{"operator": "Exists"}])
        # Fargate and virtual kubelets cannot run it.
        terms = self.spec["affinity"]["nodeAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        self.assertEqual([[(e["key"], e["operator"], e["values"]) for e in
                           t["matchExpressions"]] for t in terms], [[
            ("eks.amazonaws.com/compute-type", "NotIn", ["fargate"]),
            ("type", "NotIn", ["virtual-kubelet"])]])
        self.assertEqual(self.spec["nodeSelector"], {"kubernetes.io/os": "linux"})
        self.assertEqual(self.agent["resources"]["requests"],
                         self.agent["resources"]["limits"])
        self.assertEqual(self.daemon["spec"]["updateStrategy"], {
            "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}})
        self.assertIs(self.spec["hostNetwork"], True)

    def test_confinement(self):
        for values in (), ("platform=k3s", *VARIANTS["uninstall"]):
            spec = pod_spec(helm(*values))
            self.assertEqual(spec["securityContext"]["seLinuxOptions"],
                             {"type": "spc_t"})
            for container in spec["containers"] + spec.get("initContainers", []):
                security = container["securityContext"]
                self.assertIs(security["privileged"], False)
                self.assertIs(security["readOnlyRootFilesystem"], True)
                self.assertEqual(security["capabilities"]["drop"], ["ALL"])
                self.assertEqual(security["appArmorProfile"], {"type": "Unconfined"})

    def test_confinement_before_the_field(self):
        """Before Kubernetes 1.30 AppArmor's profile is an annotation, and the field is refused."""
        template = objects(helm(*VARIANTS["uninstall"], version=OLDEST))[
            "DaemonSet", "natra-agent"]["spec"]["template"]
        spec = template["spec"]
        for container in spec["containers"] + spec["initContainers"]:
            self.assertNotIn("appArmorProfile", container["securityContext"])
            self.assertEqual(template["metadata"]["annotations"][
                f"container.apparmor.security.beta.kubernetes.io/{container['name']}"],
                "unconfined")

    def test_volumes(self):
        for volume in self.spec["volumes"]:
            self.assertEqual(volume["hostPath"]["type"], "DirectoryOrCreate" if
                             volume["name"] in ("state", "netns") else "Directory", volume)
        writable = {m["name"] for m in self.agent["volumeMounts"]
                    if not m.get("readOnly")}
        self.assertEqual(writable, {"net-dir", "bin-dir", "bpf", "state"})
        for m in self.agent["volumeMounts"]:
            self.assertEqual(m["mountPropagation"], "HostToContainer", m)
            # Red Hat's and Fedora's runtimes mount that into each container.
            self.assertFalse("/run/secrets/".startswith(m["mountPath"].rstrip("/") + "/"), m)

    def test_rights(self):
        self.assertEqual(
            [(r["resources"], r["verbs"])
             for r in self.objects["ClusterRole", "natra-agent"]["rules"]],
            [(["pods"], ["watch"]), (["events"], ["create"])])
        by_kubelet = objects(helm("podsFrom=kubelet"))
        self.assertEqual([r["resources"] for r in by_kubelet[
            "ClusterRole", "natra-agent"]["rules"]], [["events"]])
        without = objects(helm(*VARIANTS["no-live"]))
        self.assertFalse([k for k in without if "Role" in k[0]])
        spec = without["DaemonSet", "natra-agent"]["spec"]["template"]["spec"]
        self.assertIs(spec["automountServiceAccountToken"], False)
        self.assertIs(without["ServiceAccount", "natra-agent"][
            "automountServiceAccountToken"], False)


if __name__ == "__main__":
    unittest.main()
