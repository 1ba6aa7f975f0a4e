# SPDX-License-Identifier: BSD-2-Clause
"""Makes a VM of tests/vm/run the place of a Kubernetes node.

The node has all of the VM, and so the first network namespace. What a node keeps is on a disk, where
it stays when the power goes.
"""
import os
import signal
import sys
import tempfile

from commands import sh
from isolation import NETNS_DIR
from place import keep

DISK = "/mnt"
DRIVERS = ("virtio_pci", "virtio_blk")


def show_cache():
    """Take away what hides the cache of the machine outside, where programs are."""
    sh("umount", "--lazy", "/var/cache", check=False)


def mount_disk(device):
    """Mount the VM's disk, after making its file system in the first boot."""
    for driver in DRIVERS:
        sh("modprobe", driver, check=False)
    if not sh("blkid", "-s", "TYPE", "-o", "value", device, check=False).strip():
        sh("mkfs.ext4", "-q", device, timeout=120)
    sh("mount", "-t", "ext4", device, DISK)


def settle(device):
    """Make the VM the place of the node that has this disk."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.stdout.reconfigure(line_buffering=True)
    mount_disk(device)
    keep(f"{DISK}/node")
    os.makedirs(NETNS_DIR, exist_ok=True)
    tempfile.tempdir = "/run"
    # The kubelet gives pods mounts of the node that follow it.
    sh("mount", "--make-rshared", "/")
