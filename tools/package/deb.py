# SPDX-License-Identifier: BSD-2-Clause
"""Makes Debian packages with dpkg-deb."""

import email.utils
import hashlib
import os

from describe import HERE, SOURCE, compress, output

# The snippets of debhelper's dh_installsystemd: the administrator's choice stays, and the
# new program runs after an upgrade.
STARTED = """if [ "$1" = configure ] || [ "$1" = abort-upgrade ] || [ "$1" = abort-remove ]; then
	deb-systemd-helper unmask {unit} >/dev/null || true
	if deb-systemd-helper --quiet was-enabled {unit}; then
		deb-systemd-helper enable {unit} >/dev/null || true
	else
		deb-systemd-helper update-state {unit} >/dev/null || true
	fi
	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
		action=start
		[ -z "$2" ] || action=restart
		deb-systemd-invoke $action {unit} >/dev/null || true
	fi
fi
"""
STOPPED = """if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	deb-systemd-invoke stop {unit} >/dev/null || true
fi
"""
REMOVED = """if [ "$1" = remove ]; then
	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
	fi
	deb-systemd-helper mask {unit} >/dev/null || true
fi
if [ "$1" = purge ]; then
	deb-systemd-helper purge {unit} >/dev/null || true
	deb-systemd-helper unmask {unit} >/dev/null || true
fi
"""


def scripts(package):
    """Return the maintainer's scripts by name."""
    found = {}
    if package.removing:
        found["prerm"] = 'if [ "$1" = remove ]; then\n' + "\n".join(
            f"\t{line}" for line in package.removing.splitlines()) + "\nfi\n"
    if package.service:
        unit = {"unit": package.service}
        found["postinst"] = STARTED.format(**unit)
        found["prerm"] = STOPPED.format(**unit) + found.get("prerm", "")
        found["postrm"] = REMOVED.format(**unit)
    return found


def depends(package):
    table, found = package.table, []
    if "library" in table:
        found += [f"libc6 (>= {package.all.glibc(package)})", *table["needs"].values()]
    found += [f"{name} (= {package.all.version}-{package.all.revision})"
              for name in table.get("depends", [])]
    return ", ".join(found + table.get("deb_depends", []))


def control(package, root):
    size = sum(-(-p.lstat().st_size // 1024) for p in root.rglob("*") if not p.is_dir())
    everything = package.all
    fields = {
        "Package": package.name, "Source": everything.source,
        "Version": f"{everything.version}-{everything.revision}",
        "Architecture": everything.arch, "Maintainer": everything.maintainer,
        "Installed-Size": size, "Depends": depends(package),
        "Recommends": ", ".join(package.table.get("recommends", [])),
        "Section": package.section, "Priority": "optional",
        "Multi-Arch": "same" if package.section.startswith("lib") else "",
        "Homepage": everything.homepage, "Description": package.summary,
    }
    text = "".join(f"{k}: {v}\n" for k, v in fields.items() if v)
    return text + "".join(f" {line.strip() or '.'}\n" for line in wrapped(package.text))


def wrapped(text, width=75):
    """Yield a text's lines, none longer than `width`."""
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            if line and len(line) + len(word) >= width:
                yield line
                line = ""
            line += f" {word}" if line else word
        yield line


def document(package, root):
    """Write Debian's changelog and the licence, beside natra's own changelog."""
    everything = package.all
    doc = root / f"usr/share/doc/{package.name}"
    when = email.utils.formatdate(everything.time)
    (doc / "changelog.Debian").write_text(
        f"{everything.source} ({everything.version}-{everything.revision}) unstable;"
        " urgency=medium\n\n  * This version of natra; changelog.gz says what is new.\n\n"
        f" -- {everything.maintainer}  {when}\n")
    (doc / "changelog").write_text((SOURCE / ".github/CHANGELOG.md").read_text())
    for name in ("changelog.Debian", "changelog"):
        compress(doc / name)
    text = "natra is under this licence:\n\n" + (SOURCE / "LICENSE").read_text()
    text += "\nThe text of the GPL is in /usr/share/common-licenses/GPL-2.\n"
    if package.table.get("programs"):
        text += ("\nThe programs contain other libraries, which sbom.spdx.json lists;"
                 " their\nlicences are in the directory licenses beside this file.\n")
    (doc / "copyright").write_text(text)


def override(package, root):
    """Write which of lintian's warnings are meant to be, with the reasons."""
    to = root / "usr/share/lintian/overrides" / package.name
    to.parent.mkdir(parents=True)
    names = ["all"] + ["programs"] * ("programs" in package.table)
    to.write_text("".join((HERE / f"lintian-{n}").read_text() for n in names))


def control_files(package, root, meta):
    meta.mkdir()
    (meta / "control").write_text(control(package, root))
    files = sorted(p for p in root.rglob("*") if p.is_file() and not p.is_symlink() and
                   meta not in p.parents)
    (meta / "md5sums").write_text("".join(
        f"{hashlib.md5(p.read_bytes()).hexdigest()}  {p.relative_to(root)}\n"
        for p in files))
    if config := package.table.get("config"):
        (meta / "conffiles").write_text("".join(f"/{to}\n" for to in config.values()))
    if library := package.table.get("library"):
        name, version = library.split(".so.")
        (meta / "shlibs").write_text(
            f"{name} {version} {package.name} (>= {package.all.version})\n")
        (meta / "triggers").write_text("activate-noawait ldconfig\n")
    for name, text in scripts(package).items():
        (meta / name).write_text(f"#!/bin/sh\nset -e\n{text}")
        (meta / name).chmod(0o755)


def make(packages, work, out):
    """Yield the path of each package."""
    for package in packages.packages:
        root = work / package.name
        package.fill(root, packages.built_libdir, "lib/systemd/system")
        zsh = root / "usr/share/zsh"
        if zsh.is_dir():  # Debian's zsh looks here in place of site-functions.
            (zsh / "site-functions").rename(zsh / "vendor-completions")
        document(package, root)
        override(package, root)
        control_files(package, root, root / "DEBIAN")
        packages.stamp(root)
        path = out / (f"{package.name}_{packages.version}-{packages.revision}"
                      f"_{packages.arch}.deb")
        output("dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build",
               root, path, env=dict(os.environ, SOURCE_DATE_EPOCH=str(packages.time)))
        yield path
