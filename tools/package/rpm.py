# SPDX-License-Identifier: BSD-2-Clause
"""Makes RPM packages with rpmbuild."""

import os
import time

from deb import wrapped
from describe import SOURCE, output

ARCH = {"amd64": "x86_64", "arm64": "aarch64"}
LIBDIR, UNIT_DIR = "usr/lib64", "usr/lib/systemd/system"
# What a build directory or a host could leave in a package is switched off; programs are
# stripped already.
MACROS = {
    "_build_id_links": "none", "debug_package": "%{nil}", "__os_install_post": "%{nil}",
    "_buildhost": "natra", "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1", "_binary_payload": "w6.xzdio",
    "__brp_mangle_shebangs": "%{nil}", "_docdir": "/usr/share/doc",
}
STARTED = """if [ $1 -eq 1 ] && [ -x /usr/bin/systemctl ]; then
	/usr/bin/systemctl --no-reload preset {unit} || :
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || :
fi
"""
STOPPED = """if [ -d /run/systemd/system ]; then
	systemctl --no-reload disable --now {unit} || :
fi
"""
UPGRADED = """if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || :
	if [ $1 -ge 1 ]; then
		systemctl try-restart {unit} || :
	fi
fi
"""


def scripts(package):
    unit, name = package.service, package.rpm_name
    if package.table.get("library"):
        yield f"%post -n {name} -p /sbin/ldconfig\n"
        yield f"%postun -n {name} -p /sbin/ldconfig\n"
    if unit:
        yield f"%post -n {name}\n" + STARTED.format(unit=unit)
        yield f"%postun -n {name}\n" + UPGRADED.format(unit=unit)
    if package.removing or unit:
        stopped = STOPPED.format(unit=unit) if unit else ""
        yield (f'%preun -n {name}\nif [ "$1" -eq 0 ]; then\n{stopped}'
               f"{package.removing}\nfi\n")


def capital(text):
    return text[0].upper() + text[1:]


def requires(package):
    same = f"%{{version}}-%{{release}}"
    names = {p.name: p.rpm_name for p in package.all.packages}
    return [*(f"{names[d]} = {same}" for d in package.table.get("depends", [])),
            *package.table.get("rpm_requires", [])]


def listing(package, root):
    """Return the entries of %files, with what a user may change marked as such."""
    config = {f"/{to}" for to in package.table.get("config", {}).values()}
    found = []
    for path in sorted(root.rglob("*")):
        name = f"/{path.relative_to(root)}"
        if path.is_dir():
            if any(part in name for part in (f"/doc/{package.name}", "include/natra",
                                             f"/licenses/{package.rpm_name}")):
                found.append(f"%dir {name}")
        elif name in config:
            found.append(f"%config(noreplace) {name}")
        elif "/share/licenses/" in name:
            found.append(f"%license {name}")
        elif "/share/doc/" in name or "/share/man/" in name:
            found.append(f"%doc {name}")
        else:
            found.append(name)
    return "\n".join(found)


def section(package, root):
    devel = package.rpm_name.endswith("-devel")
    lines = [f"%package -n {package.rpm_name}",
             f"Group: {'Development/Libraries' if devel else 'System/Networking'}",
             f"Summary: {capital(package.summary)}"]
    lines += [f"Requires: {r}" for r in requires(package)]
    lines += [f"Recommends: {r}" for r in package.table.get("recommends", [])]
    return "\n".join([
        *lines, f"%description -n {package.rpm_name}", *wrapped(package.text), "",
        *scripts(package), f"%files -n {package.rpm_name}", "%defattr(-,root,root,-)",
        listing(package, root), ""])


def spec(packages, stage, parts):
    day = time.strftime("%a %b %d %Y", time.gmtime(packages.time))
    return "\n".join([
        f"Name: {packages.source}", f"Version: {packages.version}",
        f"Release: {packages.revision}", f"License: {packages.license}",
        f"URL: {packages.homepage}", f"Packager: {packages.maintainer}",
        f"Summary: {capital(parts[0][0].summary)}", "%description", parts[0][0].summary, "",
        *(section(*part) for part in parts),
        "%install", "mkdir -p %{buildroot}", f"cp -a {stage}/. %{{buildroot}}", "",
        "%changelog",
        f"* {day} {packages.maintainer} - {packages.version}-{packages.revision}",
        "- This version of natra; its changelog says what is new", ""])


def fill(package, root):
    package.fill(root, LIBDIR, UNIT_DIR)
    for library in root.glob(f"{LIBDIR}/*.so.*.*"):
        library.chmod(0o755)
    to = root / "usr/share/licenses" / package.rpm_name
    to.mkdir(parents=True)
    (to / "LICENSE").write_text((SOURCE / "LICENSE").read_text())
    doc = root / "usr/share/doc" / package.name
    (doc / "CHANGELOG.md").write_text((SOURCE / ".github/CHANGELOG.md").read_text())


def make(packages, work, out):
    """Yield the path of each package."""
    stage, parts = work / "stage", []
    stage.mkdir()
    for package in packages.packages:
        root = work / package.name
        fill(package, root)
        parts.append((package, root))
        output("cp", "-a", f"{root}/.", stage)
    packages.stamp(stage)
    (work / "natra.spec").write_text(spec(packages, stage, parts))
    macros = [x for k, v in MACROS.items() for x in ("--define", f"{k} {v}")]
    output("rpmbuild", "-bb", "--quiet", f"--target={ARCH[packages.arch]}-linux", *macros,
           "--define", f"_topdir {work}/top", "--define", f"_rpmdir {work}/rpms",
           "--define", "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
           work / "natra.spec",
           env=dict(os.environ, SOURCE_DATE_EPOCH=str(packages.time), LC_ALL="C"))
    for path in sorted((work / "rpms").iterdir()):
        target = out / path.name
        target.write_bytes(path.read_bytes())
        yield target
