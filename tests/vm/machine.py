# SPDX-License-Identifier: BSD-2-Clause
"""Runs VMs over this machine's root file system, on Debian's kernels; for run and pair.

The guest is root, sees the host's files read-only (writes to /etc, /home, /tmp, /usr
and /var go to memory) and can write to the directories that it is given. A guest of
another architecture sees the root directory of tools/cross/root instead, and in it
this repository and the working directory at their places. Output and exit code of the
command come through files, so they do not depend on the guest's console, whose log is
shown when the guest fails.

Four kinds of environment variables count: NATRA_CACHE (/var/cache/natra) is the
directory for kernels and virtme-ng; NATRA_VM_KVM=1 uses KVM, otherwise the CPU is
emulated, because many build machines have a /dev/kvm that cannot boot a stock kernel;
NATRA_VM_CPU is QEMU's name of the emulated CPU; and all NATRA_* are passed to the guest.
"""

import fcntl
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = Path(os.environ.get("NATRA_CACHE") or "/var/cache/natra").resolve()
CONSOLE_LINES = 40
# These switch off what Debian hardens its kernels with, which takes an emulated CPU a
# tenth of its time: security modules, zeroed pages, checks of each copy.
KERNEL_ARGS = ("mitigations=off init_on_alloc=0 hardened_usercopy=off "
               "randomize_kstack_offset=off lsm= audit=0")


class Amd64:
    """How this machine's architecture is emulated."""
    name = "amd64"
    qemu, parts = "qemu-system-x86_64", "vm"
    # An emulated TSC fails its watchdog now and then, and the HPET that replaces it
    # costs an exit for each timestamp, of which fq needs one per packet. Pages are not
    # zeroed by `rep stos`.
    kernel_args = "tsc=reliable clearcpuid=rep_good"
    # -cpu max with two CPUs makes 6.12 panic in QEMU 7.2.
    cpu = "qemu64"
    vng = ()


class Arm64:
    """How arm64 is emulated."""
    name = "arm64"
    qemu, parts = "qemu-system-aarch64", "vm arm64"
    kernel_args = "kpti=off"
    # It is the CPU of many nodes in clouds, with atomic instructions but without signed
    # pointers, whose emulation takes long.
    cpu = "neoverse-n1"
    vng = ("--arch", "arm64")


# Once the kernel trusts the TSC it rewrites the code of its scheduler's clock, and
# with many CPUs QEMU 7.2 now and then runs what it had translated halfway through
# that: the boot ends in a panic, "Oops: int3" in sched_clock_cpu().
MANY_CPUS_ARGS = "tsc=unstable"
# QEMU can do so with any code that the kernel rewrites while another CPU runs it, such
# as a static branch. Nothing but the kernel's own patching puts an int3 into its code.
EMULATOR_DEFECT = "int3: 0000 [#1]"
# A VM that dies before its command starts is booted again, up to this number of
# boots in all. One that hangs in its first boot is booted once more.
BOOTS = 3
# Makes the first directory of each pair visible as the second one, for the command after
# them alone.
BIND = """\
while [ "$1" != -- ]; do
	mkdir -p "$2"
	mount --bind "$1" "$2"
	shift 2
done
shift
exec "$@"
"""
# Releases of Ubuntu, which has kernels that Debian no longer offers.
UBUNTU = ("jammy",)
# virtme-ng mounts a tmpfs on each of these.
HIDDEN = ("/run/", "/var/cache/", "/var/log/", "/var/tmp/")

GUEST = """\
exec >{out} 2>&1 </dev/null
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LC_ALL=C.UTF-8 {env}
hostname natra-vm
ip link set lo up
mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
cd {cwd} || exit 125
r=0
timeout -k 10 {seconds} {command} || r=$?
echo "$r" >{code}.new
mv {code}.new {code}
"""


class VmError(Exception):
    """The VM could not be started or did not reach the end."""
    code = 125


class EmulatorError(VmError):
    """QEMU ended the VM by a defect of its own."""
    code = 126


def note(text):
    print(f"vm: {text}", flush=True)


def output_of(*command, **kwargs):
    r = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
    if r.returncode:
        raise VmError(f"{shlex.join(command)}: {r.stderr.strip()[-500:]}")
    return r.stdout


def kernel_table():
    lines = [l.split() for l in (HERE / "kernels").read_text().splitlines()]
    return {l[0]: l[1:] for l in lines if l and not l[0].startswith("#")}


def arch_of(kernel):
    """Return the architecture in a kernel's name, such as 6.12-arm64, or this
    machine's."""
    return Arm64 if kernel.endswith("-arm64") else Amd64


def ubuntu_keyring(home):
    """Return the file with the keys of Ubuntu's archive, from Debian's package of
    them, which apt verifies."""
    output_of("apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root",
              "ubuntu-keyring", cwd=home)
    (deb,) = home.glob("ubuntu-keyring_*.deb")
    output_of("dpkg-deb", "-x", str(deb), str(home))
    return home / "usr/share/keyrings/ubuntu-archive-keyring.gpg"


def apt_options(suite, home, arch):
    """Return apt's options for another release or architecture than this machine's: a
    source and lists of its own, so that the machine's apt stays as it is."""
    release = platform.freedesktop_os_release().get("VERSION_CODENAME")
    if suite.split("-")[0] == release and arch is Amd64:
        return []
    keys = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    archive = "http://deb.debian.org/debian"
    if suite.split("-")[0] in UBUNTU:
        keys, archive = ubuntu_keyring(home), "http://archive.ubuntu.com/ubuntu"
    source = home / "sources.list"
    source.write_text(f"deb [arch={arch.name} signed-by={keys}] {archive} {suite} main\n")
    (home / "lists/partial").mkdir(parents=True)
    options = {"Dir::Etc::SourceList": source, "Dir::Cache": home / "cache",
               "Dir::Etc::SourceParts": "/dev/null",
               "Dir::State::Lists": home / "lists",
               "APT::Architecture": arch.name, "APT::Architectures": arch.name,
               "APT::Sandbox::User": "root"}
    return [o for k, v in options.items() for o in ("-o", f"{k}={v}")]


def image_packages(name, suite, meta, apt):
    """Return the image that a suite's meta package depends on, as name=version, and the
    packages of its parts: of its modules, and since Debian's 7.x of the image itself."""
    suites = [suite]
    if "-" not in suite:
        suites += [f"{suite}-updates", f"{suite}-security"]
    for line in output_of("apt-cache", *apt, "madison", meta).splitlines():
        _, version, source = (f.strip() for f in line.split("|"))
        if source.split()[1].split("/")[0] not in suites:
            continue
        show = output_of("apt-cache", *apt, "show", f"{meta}={version}")
        m = re.search(r"^Depends:.*?linux-image-([^\s,]+)( \(= ([^)]+)\))?", show, re.M)
        if m and version.startswith(f"{name.split('-')[0]}."):
            which = f"{m[1]}={m[3]}" if m[2] else m[1]
            show = output_of("apt-cache", *apt, "show", f"linux-image-{which}")
            parts = [p for p in ("binary", "modules") if f" linux-{p}-{m[1]}" in show]
            return [f"linux-{p}-{which}" for p in ("image", *parts)]
    raise VmError(f"apt knows no {meta} {name} in {suite}")


def unpack(packages, target, apt):
    work = Path(f"{target}.new")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    note(f"downloading {' and '.join(packages)}")
    # Debian's _apt user cannot write here, so root does the download.
    output_of("apt-get", *apt, "download", "-qq", "-o", "Acquire::Retries=3",
              "-o", "APT::Sandbox::User=root", *packages, cwd=work)
    for deb in work.glob("*.deb"):
        output_of("dpkg-deb", "-x", str(deb), str(work))
        deb.unlink()
    for d in ("boot", "lib"):
        (work / d).mkdir(exist_ok=True)
    if (work / "usr/lib/modules").exists():
        (work / "usr/lib/modules").rename(work / "lib/modules")
    (version,) = os.listdir(work / "lib/modules")
    for image in (work / "lib/modules").glob("*/vmlinuz"):
        image.rename(work / f"boot/vmlinuz-{version}")
    output_of("depmod", "-b", str(work), version)
    (work / "package").write_text(" ".join(packages) + "\n")
    shutil.rmtree(target, ignore_errors=True)
    work.rename(target)


def fetch_kernel(name):
    """Return the directory of the unpacked kernel, from the cache if it is there."""
    suite, meta = kernel_table()[name][:2]
    target = CACHE / "kernels" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / f"{name}.lock", "w") as lock, \
            tempfile.TemporaryDirectory(prefix="natra-apt-") as home:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / "package").exists():
            apt = apt_options(suite, Path(home), arch_of(name))
            try:
                unpack(image_packages(name, suite, meta, apt), target, apt)
            except VmError:
                # The package lists were never updated here, or are older than what the
                # mirror keeps.
                output_of("apt-get", *apt, "update", "-qq",
                          "-o", "DPkg::Lock::Timeout=300")
                unpack(image_packages(name, suite, meta, apt), target, apt)
    return target


def find_vng():
    # A directory that no link points to yet is only half installed.
    for venv in sorted(CACHE.glob("vng-*"), reverse=True):
        if venv.is_symlink():
            return venv / "bin/vng"
    raise VmError(f"no virtme-ng in {CACHE}: run tools/install-deps vm")


class Follower:
    """Copies the whole lines that are appended to a file to our output."""

    def __init__(self, path, prefix):
        self.path, self.prefix = path, prefix
        self.file = None
        self.rest = b""

    def poll(self, last=False):
        if self.file is None and self.path.exists():
            self.file = open(self.path, "rb")
        data = self.rest + (self.file.read() if self.file else b"")
        whole, end, self.rest = data.rpartition(b"\n")
        if last:
            whole, end, self.rest = data, b"", b""
        if whole or end:
            for line in whole.split(b"\n"):
                sys.stdout.buffer.write(self.prefix + line + b"\n")
            sys.stdout.buffer.flush()


class Machine:
    """One VM that runs one command; a context manager.

    poll() is True as soon as there is nothing more to wait for, and end() then returns
    the command's exit code.
    """

    def __init__(self, kernel, command, options, qemu=(), env=None, prefix=""):
        self.kernel, self.command, self.options = kernel, command, options
        self.arch = arch_of(kernel)
        self.qemu, self.env = list(qemu), dict(env or {})
        self.prefix = prefix.encode()
        self.gave_up = self.booted = False
        self.boots = 0

    def __enter__(self):
        vng, kernel = find_vng(), fetch_kernel(self.kernel)
        self.root = self.arch is not Amd64 and output_of(ROOT / "tools/cross/root").strip()
        self._dir = tempfile.TemporaryDirectory(prefix="natra-vm-", dir="/tmp")
        self.state = Path(self._dir.name)
        self.code = self.state / "code"
        self._write_script()
        self._follower = Follower(self.state / "out", self.prefix)
        self._vng = self._vng_command(vng, kernel)
        self._env = dict(os.environ,
                         PATH=f"{HERE}/boot:{vng.parent}:"
                              "/usr/sbin:/usr/bin:/sbin:/bin")
        self._boot()
        return self

    def _boot(self):
        with open(self.state / "console", "wb") as console:
            # The VM gets a session of its own, so that all of it can be ended at once.
            self.vm = subprocess.Popen(self._vng, cwd="/", env=self._env,
                                       start_new_session=True,
                                       stdin=subprocess.DEVNULL, stdout=console,
                                       stderr=subprocess.STDOUT)
        self.begin = time.monotonic()
        self.boots += 1

    def __exit__(self, *_):
        self._kill()
        self._dir.cleanup()

    def _vng_command(self, vng, kernel):
        o = self.options
        (image,) = (kernel / "boot").glob("vmlinuz-*")
        # The kernel counts CPUs that could be plugged in as possible, though they
        # never run.
        args = f"{KERNEL_ARGS} {self.arch.kernel_args}"
        if o.possible_cpus:
            args += f" {MANY_CPUS_ARGS} maxcpus={o.cpus}"
        rwdirs = [self.state, *o.rwdir]
        rwdirs += [d for d in {ROOT, Path.cwd()} if f"{d}/".startswith(HIDDEN)]
        command = [str(vng), "-v", "-r", str(image), "--force-9p",
                   "--cpus", str(o.possible_cpus or o.cpus),
                   "--memory", o.memory,
                   "--name", "natra-vm", f"--append={args}",
                   "--exec", f"sh {self.state}/script"]
        rwdirs = [Path(d).resolve() for d in rwdirs]
        if self.root:
            command = self._with_root(kernel) + command
            command += [*self.arch.vng, f"--root={self.root}",
                        *(f"--rwdir={d}={d}" for d in rwdirs)]
        else:
            command += [f"--rodir={kernel}", *(f"--rwdir={d}" for d in rwdirs)]
        qemu = self.qemu
        if self.root or os.environ.get("NATRA_VM_KVM") != "1":
            command += ["--disable-kvm"]
            qemu = ["-cpu", os.environ.get("NATRA_VM_CPU", self.arch.cpu), *qemu]
        return command + ([f"--qemu-opts={shlex.join(qemu)}"] if qemu else [])

    def _with_root(self, kernel):
        """Return how a command is run that sees in the other root directory what the
        guest needs of this machine."""
        seen = {d: f"{self.root}{d}" for d in (ROOT, Path.cwd())}
        seen[kernel / "lib/modules"] = f"{self.root}/lib/modules"
        return ["unshare", "--mount", "--", "sh", "-euc", BIND, "sh",
                *(str(d) for pair in seen.items() for d in pair), "--"]

    def _write_script(self):
        env = {k: v for k, v in os.environ.items() if k.startswith("NATRA_")}
        env.update(self.env, NATRA_VM=self.kernel)
        (self.state / "script").write_text(GUEST.format(
            out=self.state / "out", code=self.code, cwd=shlex.quote(os.getcwd()),
            env=" ".join(f"{k}={shlex.quote(v)}" for k, v in env.items()),
            seconds=self.options.timeout, command=shlex.join(self.command)))

    def _kill(self):
        for sig in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.vm.pid, sig)
            except ProcessLookupError:
                return
            try:
                self.vm.wait(2)
            except subprocess.TimeoutExpired:
                pass

    def cut_power(self):
        """End the VM at once, with what its kernel has not written to its disks."""
        os.killpg(self.vm.pid, signal.SIGKILL)
        self.vm.wait()
        self._follower.poll(last=True)

    def poll(self):
        self._follower.poll()
        if self.code.exists() or self.gave_up:
            return True
        if self.vm.poll() is not None:
            return not self._boot_again("died")
        o, passed = self.options, time.monotonic() - self.begin
        if not self.booted and (self.state / "out").exists():
            self.booted = True
            note(f"{self.kernel} up after {passed:.1f} s")
        # The guest ends the command by itself; this limit is for a guest that hangs.
        if passed > o.boot_timeout + (o.timeout if self.booted else 0):
            note(f"no answer after {passed:.0f} s, ending the VM")
            self.gave_up = self.boots > 1 or not self._boot_again("hung")
        return self.gave_up

    def wait(self):
        """Wait until there is nothing more to wait for, and return the command's exit code."""
        while not self.poll():
            time.sleep(0.1)
        return self.end()

    def _boot_again(self, what):
        """Return whether a VM that died or hung before its command started was
        booted once more."""
        if (self.state / "out").exists() or self.boots == BOOTS:
            return False
        note(f"{self.kernel} {what} in boot {self.boots} of {BOOTS}, before the "
             f"command started: {self._last_words()}")
        self._kill()
        self._boot()
        return True

    def _last_words(self):
        """Return the line of the console that names the cause."""
        lines = self._console() or ["nothing on the console"]
        return next((l for l in lines if re.search("Oops|panic|BUG:", l)),
                    lines[-1]).strip()

    def _console(self):
        return (self.state / "console").read_text(errors="replace").splitlines()

    def failed(self):
        """Return whether the command, which has ended, did not exit with 0."""
        return not self.code.exists() or self.code.read_text().strip() != "0"

    def end(self):
        """Show the rest of the output, and return the command's exit code. The guest is
        not given the time to shut down: what it wrote to shared directories is there,
        because these are not cached."""
        self._follower.poll(last=True)
        ended = self.code.exists()
        if not ended or self.options.console:
            self._show_console()
        if not ended:
            if EMULATOR_DEFECT in "\n".join(self._console()):
                raise EmulatorError(f"{self.kernel} died of QEMU's int3 defect")
            raise VmError(f"{self.kernel} died or hung before the end")
        code = int(self.code.read_text())
        if code == 124:
            note(f"{self.kernel}: the command took over "
                 f"{self.options.timeout} s")
        return code

    def _show_console(self):
        lines = self._console()
        print(f"vm: last lines of the console ({len(lines)} in all):")
        print("\n".join(lines[-CONSOLE_LINES:]), flush=True)


def add_options(parser, cpus, memory):
    add = parser.add_argument
    add("--timeout", type=int, default=900, metavar="S",
        help="seconds for the command (900)")
    add("--boot-timeout", type=int, default=400, metavar="S",
        help="seconds for the rest (400)")
    add("--cpus", type=int, default=cpus)
    add("--possible-cpus", type=int, metavar="N",
        help="so many CPUs, of which only --cpus run")
    add("--memory", default=memory)
    add("--rwdir", action="append", default=[], metavar="DIR",
        help="the guest may write here; can be repeated")
    add("--console", action="store_true",
        help="show the end of the console log")


def cannot(kernel):
    """Return why no VM with this kernel can run here, or None."""
    arch = arch_of(kernel)
    if os.geteuid() != 0:
        return "needs root: the tests run as root over this file system"
    if not shutil.which(arch.qemu):
        return f"no {arch.qemu}: run tools/install-deps {arch.parts}"
    return None


def end_on_signals():
    """Turn signals into an exit that closes what is open and leaves no VM behind."""
    def terminated(number, _frame):
        raise SystemExit(128 + number)
    signal.signal(signal.SIGTERM, terminated)
    signal.signal(signal.SIGHUP, terminated)
