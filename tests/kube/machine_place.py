# SPDX-License-Identifier: BSD-2-Clause
"""Makes a VM of tests/vm the place of a Kubernetes node.

The node has all of the VM, and so the first network namespace. What a node keeps is on a disk, where
it stays when the power goes. A script runs itself in the VM, with the options that it gave to
command(): --image, and --shared with a directory of the machine outside.
"""
import os
import shutil
import signal
import sys
import tempfile
from argparse import ArgumentParser

import script
from agentpod import build_image, make_manifests
from commands import sh
from isolation import NETNS_DIR
from node import binaries
from place import keep
from report import skip

sys.path.append(os.path.dirname(os.path.abspath(__file__)) + "/../vm")
from machine import Machine, add_options, cannot

KERNEL = "6.12"
DISK, DEVICE = "/mnt", "/dev/vda"
DISK_BYTES = 8 << 30
DRIVERS = ("virtio_pci", "virtio_blk")
SHARED = script.option("--shared", help="a directory of the machine outside; for the script itself")


def need_vm():
    """Skip where no VM can run."""
    if cannot(KERNEL):
        skip(cannot(KERNEL))


def prepare(arguments, shared):
    """Make what takes an emulated CPU minutes in the shared directory, and a disk."""
    binaries()
    image = arguments.image or build_image()
    # Somebody may build another image meanwhile. write_next() has to find its directory bpf, too.
    arguments.shared, arguments.image = shared, shutil.copy(image, shared)
    shutil.copytree(f"{os.path.dirname(image)}/bpf", f"{shared}/bpf")
    make_manifests(f"{shared}/manifests")
    with open(f"{shared}/disk", "w") as f:
        f.truncate(DISK_BYTES)


def command(arguments, *words):
    """Return the command that runs the script once more, with these options, too."""
    return ["env", f"NATRACTL={os.environ['NATRACTL']}", f"PYTHONPATH={os.environ['PYTHONPATH']}",
            "PYTHONDONTWRITEBYTECODE=1", f"NATRA_KUBE_MANIFESTS={arguments.shared}/manifests",
            # Go looks for garbage less often.
            "GOGC=400", "python3", os.path.realpath(sys.argv[0]), "--shared", arguments.shared,
            "--image", arguments.image, *words]


def machine(arguments, seconds, *words):
    """Return the VM that runs it, for a `with`."""
    parser = ArgumentParser()
    add_options(parser, cpus=2, memory="5G")
    options = parser.parse_args(["--timeout", str(seconds), "--rwdir", arguments.shared])
    disk = ["-drive", f"file={arguments.shared}/disk,format=raw,if=none,id=disk", "-device",
            "virtio-blk-pci,drive=disk"]
    return Machine(KERNEL, command(arguments, *words), options, qemu=disk)


def show_cache():
    """Take away what hides the cache of the machine outside, where programs are."""
    sh("umount", "--lazy", "/var/cache", check=False)


def mount_disk():
    """Mount the VM's disk, after making its file system in the first boot."""
    for driver in DRIVERS:
        sh("modprobe", driver, check=False)
    if not sh("blkid", "-s", "TYPE", "-o", "value", DEVICE, check=False).strip():
        sh("mkfs.ext4", "-q", DEVICE, timeout=120)
    sh("mount", "-t", "ext4", DEVICE, DISK)


def settle():
    """Make the VM the place of the node that has the disk."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.stdout.reconfigure(line_buffering=True)
    mount_disk()
    keep(f"{DISK}/node")
    os.makedirs(NETNS_DIR, exist_ok=True)
    tempfile.tempdir = "/run"
    # The kubelet gives pods mounts of the node that follow it.
    sh("mount", "--make-rshared", "/")
