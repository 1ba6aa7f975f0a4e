#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The chart knows the directories, the version and the options that the
programs know."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from cache import DEPLOY, SOURCE

AGENT, NATRACTL = os.environ["NATRA_AGENT"], os.environ["NATRACTL"]


def read(path):
    with open(path) as f:
        return f.read()


def directories(platform):
    """The directories that natractl takes, on a node that has none."""
    with tempfile.TemporaryDirectory() as root:
        p = subprocess.run([NATRACTL, "uninstall", "--dry-run", "--platform", platform,
                            "--root", root], text=True, capture_output=True, timeout=20)
        net = re.search(r"directory '(/[^']*)'", p.stderr)[1]
        os.makedirs(root + net)
        p = subprocess.run([NATRACTL, "uninstall", "--dry-run", "--platform", platform,
                            "--root", root], text=True, capture_output=True, timeout=20)
        found = re.search(r"directory '(/[^']*)'", p.stderr)
        return net, found and found[1]


class Facts(unittest.TestCase):
    def test_directories(self):
        chart = read(f"{DEPLOY}/chart/platforms.yaml")
        for platform in re.findall(r"^(\w+):", chart, re.M):
            block = re.search(rf"^{platform}:(.*?)(?=^\w|\Z)", chart, re.M | re.S)[1]
            self.assertEqual(tuple(re.search(rf"{k}: ([^,}}\s]+)", block)[1]
                                   for k in ("netDir", "binDir")), directories(platform))

    def test_version(self):
        version = re.search(r" version: '(.*)'", read(f"{SOURCE}/meson.build"))[1]
        chart = read(f"{DEPLOY}/chart/Chart.yaml")
        self.assertEqual(re.findall(r"^(?:appV|v)ersion: (.*)$", chart, re.M),
                         [version, version])
        for path in (f"{DEPLOY}/README.md", f"{DEPLOY}/chart/README.md",
                     f"{DEPLOY}/chart/Chart.yaml", f"{SOURCE}/tools/bindings/go/README.md",
                     f"{SOURCE}/README.md"):
            self.assertEqual(set(re.findall(
                r"(?:VERSION=|natra[:-]|bindings/go@v|version )(\d+\.\d+\.\d+)", read(path))),
                {version}, path)

    def test_variants(self):
        """The page names the manifests' variants beside `install`."""
        made = re.findall(r"^\t\[([\w-]+)\]=", read(f"{DEPLOY}/manifests"), re.M)
        page = re.search(r"manifests\.tar\.gz has variants \((.*)\)", read(f"{DEPLOY}/README.md"))[1]
        self.assertEqual(["install", *re.findall(r"`([\w-]+)`", page)], made)

    def test_schema_names_the_values(self):
        names = re.findall(r"^(\w+):", read(f"{DEPLOY}/chart/values.yaml"), re.M)
        schema = json.loads(read(f"{DEPLOY}/chart/values.schema.json"))
        self.assertEqual(sorted(names), sorted(set(schema["properties"]) - {"global"}))
        self.assertEqual(sorted(schema["properties"]["platform"]["enum"]),
                         sorted(re.findall(r"^(\w+):", read(
                             f"{DEPLOY}/chart/platforms.yaml"), re.M)))

    def test_runbook(self):
        """Each alert's link leads to its entry of the runbook, and each entry is of an alert."""
        rules = read(f"{DEPLOY}/monitoring/rules.yaml")
        entries = re.findall(r"^## (\w+)$", read(f"{DEPLOY}/monitoring/RUNBOOK.md"), re.M)
        links = re.findall(r"alert: (\w+)\n(?:(?!.*alert: ).*\n)*?.*runbook_url: \S*/tools/deploy/"
                           r"monitoring/RUNBOOK.md#(\w+)$", rules, re.M)
        self.assertEqual(links, [(name, name.lower()) for name in
                                 re.findall(r"alert: (\w+)", rules)])
        self.assertEqual(sorted(entries), sorted(name for name, _ in links))

    def test_summaries(self):
        """An alert that names a pod names an attachment without one, too."""
        found = re.findall(r"summary: (.*\$labels\.pod\b.*)", read(f"{DEPLOY}/monitoring/rules.yaml"))
        self.assertGreater(len(found), 4)
        for summary in found:
            self.assertIn("$labels.attachment", summary)

    def test_repository(self):
        """All pages and the chart name the repository that the Go module's path names."""
        path = subprocess.run([f"{SOURCE}/tools/repository"], text=True,
                              stdout=subprocess.PIPE, timeout=20).stdout.strip()
        for file in ("chart/Chart.yaml", "chart/README.md", "README.md",
                     "monitoring/rules.yaml"):
            found = set(re.findall(r"github(?:usercontent)?\.com/([\w-]+/natra)\b",
                                   read(f"{DEPLOY}/{file}")))
            self.assertEqual(found, {path.removeprefix("github.com/")}, file)

    def test_move(self):
        """Nothing names the old owner when the repository has moved, whatever names it now."""
        git = ["git", "-c", "safe.directory=*"]
        old = subprocess.run([f"{SOURCE}/tools/repository"], text=True, capture_output=True,
                             timeout=20).stdout.strip().removeprefix("github.com/")
        files = subprocess.run([*git, "grep", "-lIi", old], cwd=SOURCE, text=True,
                               capture_output=True, timeout=60).stdout.splitlines()
        self.assertIn("tools/deploy/README.md", files)
        with tempfile.TemporaryDirectory() as tmp:
            for file in {*files, "tools/repository"}:
                os.makedirs(os.path.dirname(f"{tmp}/{file}"), exist_ok=True)
                shutil.copy(f"{SOURCE}/{file}", f"{tmp}/{file}")
            for command in ([*git, "init", "-q"], [*git, "add", "."],
                            ["tools/repository", "github.com/Some-Body/natra"]):
                subprocess.run(command, cwd=tmp, check=True, timeout=60)
            for file in files:
                # A variable of a script may have that name.
                self.assertEqual(re.findall(rf"(?i)(?<!\$){old}.*", read(f"{tmp}/{file}")), [],
                                 file)
            chart = read(f"{tmp}/tools/deploy/chart/Chart.yaml")
            self.assertIn("ghcr.io/some-body/natra:", chart)
            self.assertIn("githubusercontent.com/Some-Body/natra/", chart)

    def test_artifact_hub(self):
        """What a hub shows of the chart is there, and each link into the repository leads to a file."""
        chart = read(f"{DEPLOY}/chart/Chart.yaml")
        for key in ("kubeVersion", "home", "icon", "sources", "maintainers", "keywords",
                    "  artifacthub.io/license", "  artifacthub.io/images", "  artifacthub.io/links"):
            self.assertRegex(chart, rf"(?m)^{re.escape(key)}: *\S|^{re.escape(key)}:\n  -", key)
        links = re.findall(r"/natra/(?:blob/)?main/(\S+)", chart)
        self.assertGreater(len(links), 1)
        for path in links:
            self.assertTrue(os.path.exists(f"{SOURCE}/{path}"), path)

    def test_checklist(self):
        """Each test that the checklist names is there."""
        page = read(f"{SOURCE}/tests/install/CHECKLIST.md")
        for path, _, name in re.findall(r"`(tests/[\w/.]+)`( `(\w+)`)?", page):
            text = read(f"{SOURCE}/{path}")
            if name:
                self.assertRegex(text, rf"(def|class) {name}\b")

    def test_options(self):
        help_text = subprocess.run([AGENT, "--help"], text=True, capture_output=True,
                                   timeout=20).stdout
        options = set(re.findall(r"^  (--[\w-]+)", help_text, re.M))
        used = set(re.findall(r"- \"?(--[\w-]+)",
                              read(f"{DEPLOY}/chart/templates/daemonset.yaml")))
        self.assertGreater(len(used), 4)
        self.assertLessEqual(used, options)


if __name__ == "__main__":
    unittest.main()
