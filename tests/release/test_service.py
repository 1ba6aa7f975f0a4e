#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The agent's unit is hardened, and the agent can do its work under systemd all the same:
it is ready, lets a pod use the programs of a new version, and removes what is left of a pod.

systemd runs in a container with the packages, with the machine's kernel.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "../harness/python")]
import machine
from isolation import isolate
from machine import SOURCE, run
from report import Report, skip
from test_packages import another_build

UNIT = SOURCE / "tools/package/natra-agent.service"
# The exposure that `systemd-analyze security` may find: what it counts are mostly the
# capabilities without which no limit can be set.
EXPOSURE_MAX = 3.6
BOOT_SECONDS = 240
# Each line of its output is the name of a check and what came of it.
SCRIPT = r"""#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
say() { echo "check $1: $2"; }
get() { exec 3<>/dev/tcp/127.0.0.1/9810 && printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3 && cat <&3; }
until_true() { for _ in $(seq 150); do "$@" && return; sleep 0.2; done; return 1; }
ready() { get /readyz 2>/dev/null | grep -q ' 200 '; }
current() { natractl show shop/web --json | grep -q '"program_is_current":[[:space:]]*true'; }
empty() { ! natractl list --json | grep -q '"id"'; }
deb() { dpkg -i /packages/packages-amd64-$1/natractl_* /packages/packages-amd64-$1/natra-{agent,cni}_*; }
verdict() { local name=$1; shift; if "$@"; then say "$name" yes; else say "$name" no; fi; }
{
exec 2>&1
mkdir -p /run/netns
deb 1
verdict active systemctl -q is-active natra-agent
verdict enabled systemctl -q is-enabled natra-agent
verdict ready until_true ready
ip netns add pod
ip link add host type veth peer name eth0 netns pod
ip netns exec pod ip link set eth0 up
ip link set host up
natractl attach eth0 --netns pod --id shop/web --ingress-rate 10M --egress-rate 10M
verdict attached current
deb 2
verdict restarted systemctl -q is-active natra-agent
verdict upgraded until_true current
systemctl stop natra-agent
verdict kept current
sed -i 's/--no-adopt/--no-adopt --period 1s/' /etc/default/natra-agent
systemctl start natra-agent
verdict "ready again" until_true ready
ip netns del pod
verdict collected until_true empty
deb 2
verdict "configuration kept" grep -q 'period 1s' /etc/default/natra-agent
dpkg -r natra-agent
verdict stopped bash -c '! systemctl -q is-active natra-agent'
journalctl --no-pager -u natra-agent -o cat | tail -n 60
} >/run/said 2>&1
cat /run/said >/results/said
systemctl exit 0
"""
SERVICE = """[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/usr/local/bin/service-test
[Install]
WantedBy=default.target
"""
CHECKS = ("active", "enabled", "ready", "attached", "restarted", "upgraded", "kept",
          "ready again", "collected", "configuration kept", "stopped")


def exposure(report):
    said = run("systemd-analyze", "security", "--offline=true", "--no-pager", UNIT)
    figure = float(re.search(r"exposure level.*?: ([\d.]+)", said)[1])
    report.check("exposure by systemd-analyze security", figure, f"<= {EXPOSURE_MAX}",
                 figure <= EXPOSURE_MAX)


def boot(root, work):
    """Run systemd in the root directory until the script has ended it."""
    for path, text, mode in (("usr/local/bin/service-test", SCRIPT, 0o755),
                             ("etc/systemd/system/service-test.service", SERVICE, 0o644)):
        Path(root, path).write_text(text)
        os.chmod(f"{root}/{path}", mode)
    wants = Path(root, "etc/systemd/system/default.target.wants")
    wants.mkdir(parents=True, exist_ok=True)
    (wants / "service-test.service").symlink_to("/etc/systemd/system/service-test.service")
    os.makedirs(f"{work}/results")
    # The namespaces of the test have a /sys without control groups. systemd gets one.
    group = "/sys/fs/cgroup/natra-service"
    run("mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup")
    os.makedirs(group, exist_ok=True)
    p = subprocess.run(
        ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh", "systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit",
         "--console=pipe", "--private-network", "--capability=all",
         "--system-call-filter=bpf perf_event_open", f"--directory={root}",
         "--bind=/sys/fs/bpf", f"--bind={work}:/packages", f"--bind={work}/results:/results"],
        stdin=subprocess.DEVNULL, text=True, timeout=BOOT_SECONDS,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for directory, _, _ in os.walk(group, topdown=False):
        os.rmdir(directory)
    said = Path(work, "results/said")
    return said.read_text() if said.exists() else p.stdout[-4000:]


def main():
    machine.need()
    if not shutil.which("systemd-nspawn"):
        skip("systemd-nspawn (tools/install-deps release)")
    report = Report()
    exposure(report)
    with tempfile.TemporaryDirectory(prefix="natra-service-", dir="/var/tmp") as work:
        isolate()
        machine.packages("amd64", work)
        machine.packages("amd64", work, 2, another_build)
        said = boot(machine.plain_root("service"), work)
        for name in CHECKS:
            good = f"check {name}: yes" in said
            report.true(f"service: {name}", good)
        if report.failed:
            print(said)
    report.end()


if __name__ == "__main__":
    main()
