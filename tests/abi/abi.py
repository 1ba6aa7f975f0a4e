#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the header, the libraries and what is installed, as a user of libnatra
meets them.

usage: abi.py [Header|Example|Link|Install|Record|Room], with the environment of meson.build
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
from fnmatch import fnmatch
from pathlib import Path

import record

SOURCE = Path(os.environ["NATRA_SOURCE"])
BUILD = Path(os.environ["NATRA_BUILD"])
VERSION = os.environ["NATRA_VERSION"]
PREFIX = Path(os.environ["NATRA_PREFIX"])
LIBDIR = os.environ["NATRA_LIBDIR"]
SBINDIR = os.environ["NATRA_SBINDIR"]
CNIDIR = os.environ["NATRA_CNIDIR"]
SANITIZE = os.environ["NATRA_SANITIZE"]
COMPILER = os.environ["NATRA_COMPILER"]
HAS_MAN = os.environ["NATRA_MAN"] == "true"
# Of a cross build: the compiler with its options, pkg-config's directories and the root
# directory, and what runs its programs here, from meson.
CROSS = shlex.split(os.environ["NATRA_CROSS"])
PC_PATH = os.environ["NATRA_PC_PATH"]
SYSROOT = os.environ["NATRA_SYSROOT"]
RUNNER = shlex.split(os.environ["NATRA_RUNNER"])
HEADER = SOURCE / "include/natra/natra.h"
INCLUDES = [f"-I{SOURCE}/include", f"-I{BUILD}/include"]
STRICT = ["-pedantic-errors", "-Wall", "-Wextra", "-Werror"]
C17 = ["-x", "c", "-std=c17", *STRICT]
CXX17 = ["-x", "c++", "-std=c++17", *STRICT]
PRIVATE = ["libbpf", "libnl-3.0", "libnl-route-3.0"]

PROGRAM = """#include <natra/natra.h>
#include <stdio.h>
int main(void)
{
	return puts(natra_version()) < 0;
}
"""


def run(*args, **kw):
    return subprocess.run([str(a) for a in args], text=True, timeout=120,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **kw)


def compilers():
    """Return (name, options) of every compiler here, for both languages. The name may
    be several words."""
    if CROSS:
        return [(" ".join(CROSS), C17),
                (" ".join([f"{CROSS[0]}++", *CROSS[1:]]), CXX17)]
    names = {"gcc": (("gcc", C17), ("g++", CXX17)),
             "clang": (("clang", C17), ("clang++", CXX17)),
             "default": (("cc", C17), ("c++", CXX17))}
    # Each compiler has its own sanitizer runtime, and a process can have only one.
    used = names.values() if SANITIZE == "none" else [names[COMPILER]]
    found = [(c, o) for pair in used for c, o in pair if shutil.which(c)]
    for languages in (C17, CXX17):
        if languages not in [o for _, o in found]:
            raise unittest.SkipTest(f"no compiler for {languages[1]}")
    return found


def pkg_config(*args, **env):
    if CROSS:
        env = {"PKG_CONFIG_LIBDIR": PC_PATH, "PKG_CONFIG_SYSROOT_DIR": SYSROOT, **env}
    r = run("pkg-config", *args, env=dict(os.environ, **env))
    if r.returncode:
        raise AssertionError(f"pkg-config {args}: {r.stderr}")
    return shlex.split(r.stdout)


class Case(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory(prefix="natra-abi-")
        self.addCleanup(tmp.cleanup)
        self.tmp = Path(tmp.name)

    def source(self, text):
        path = self.tmp / "program"
        path.write_text(text)
        return path

    def must(self, *args, **kw):
        r = run(*args, **kw)
        self.assertEqual(r.returncode, 0, f"{args}\n{r.stdout}{r.stderr}")
        return r

    def build(self, compiler, options, text, *link, includes=None):
        out = self.tmp / "out"
        sanitize = [] if SANITIZE == "none" else [f"-fsanitize={SANITIZE}"]
        self.must(*compiler.split(), *options, *(includes or INCLUDES),
                  self.source(text), "-x", "none", "-o", out, *link,
                  *sanitize)
        return out

    def measure(self, text, includes):
        """Return the numbers of the headers whose text this is, on the target."""
        return record.measure(
            lambda program: self.must(*RUNNER, self.build(
                compilers()[0][0], C17, program, includes=includes)).stdout, text)

    def says_version(self, program, **env):
        r = self.must(*RUNNER, program, env=dict(os.environ, **env))
        self.assertEqual(r.stdout, f"{VERSION}\n")

    def needed(self, program):
        out = self.must("readelf", "-d", program).stdout
        return re.findall(r"NEEDED.*\[(.*?)\]", out)


class Header(Case):
    """The header needs no other, and can be included twice, in C and in C++."""

    def compile(self, compiler, options, text):
        self.must(*compiler.split(), *options, "-c", *INCLUDES,
                  self.source(text), "-o", self.tmp / "out")

    def test_alone(self):
        for compiler, options in compilers():
            with self.subTest(compiler):
                self.compile(compiler, options,
                             "#include <natra/natra.h>\n" * 2 +
                             "extern int unused;\n")

    def test_version_alone(self):
        major, minor, patch = VERSION.split(".")
        for compiler, options in compilers():
            check = "static_assert" if "c++" in options else "_Static_assert"
            with self.subTest(compiler):
                self.compile(compiler, options, f"""#include <natra/version.h>
{check}(NATRA_VERSION_MAJOR == {major}, "");
{check}(NATRA_VERSION_MINOR == {minor}, "");
{check}(NATRA_VERSION_PATCH == {patch}, "");
{check}(sizeof(NATRA_VERSION) == sizeof("{VERSION}"), "");
""")

    def test_init_of_every_struct(self):
        """NATRA_INIT suits each struct that begins with its size."""
        names = re.findall(r"^struct (\w+) \{\n\tsize_t sz;",
                           record.headers(SOURCE), re.M)
        self.assertGreaterEqual(len(names), 11, names)
        body = "".join(f"""	struct {n} {n} = NATRA_INIT({n});
	if ({n}.sz != sizeof(struct {n}))
		return 1;
""" for n in names) + """	struct natra_info *again = &natra_info;
	*again = (struct natra_info)NATRA_INIT(*again);
	if (again->sz != sizeof(struct natra_info))
		return 1;
	const struct natra_info fixed = NATRA_INIT(fixed);
	if (fixed.sz != sizeof(fixed))
		return 1;
"""
        # A C++ program may take the header as one of C.
        include = """#ifdef __cplusplus
extern "C" {
#endif
#include <natra/natra.h>
#ifdef __cplusplus
}
#endif
"""
        for compiler, options in compilers():
            with self.subTest(compiler):
                out = self.build(compiler, options,
                                 f"{include}int main(void)\n{{\n{body}\treturn 0;\n}}\n")
                self.must(*RUNNER, out)

    def test_only_c_headers(self):
        found = re.findall(r"^#include <(.*)>",
                           "".join(h.read_text() for h in HEADER.parent.glob("*.h")),
                           re.M)
        self.assertEqual(sorted(set(found)),
                         ["natra/base.h", "natra/errors.h", "natra/leftovers.h", "natra/stats.h",
                          "natra/text.h", "natra/types.h", "natra/version.h", "stdbool.h",
                          "stddef.h", "stdint.h"])


class Example(Case):
    """The program in the header's documentation."""

    def text(self):
        m = re.search(r"^ \* @code\n(.*?)^ \* @endcode\n",
                      HEADER.read_text(), re.M | re.S)
        self.assertIsNotNone(m, "no @code block")
        lines = m[1].splitlines()
        for line in lines:
            self.assertRegex(line, r"^ \*( |$)")
        return "\n".join(l[3:] for l in lines) + "\n"

    def test_compiles_links_and_runs(self):
        text = self.text()
        self.assertIn("int main(", text)
        self.assertIn("natra_attach(", text)
        for compiler, options in compilers():
            with self.subTest(compiler):
                out = self.build(compiler, options, text,
                                 BUILD / "src/libnatra.so")
                env = dict(os.environ, LD_LIBRARY_PATH=f"{BUILD}/src")
                # First it has no argument, then an interface that does not exist.
                self.assertEqual(run(*RUNNER, out, env=env).returncode, 2)
                r = run(*RUNNER, out, "nosuch0", env=env)
                self.assertEqual(r.returncode, 1)
                self.assertEqual(len(r.stderr.splitlines()), 1, r.stderr)
                # qemu-user does not know a call that comes before the interface.
                if not RUNNER:
                    self.assertIn("nosuch0", r.stderr)

    def test_readme_compiles(self):
        """The README's part of a program; tests/check/test_readme.py runs it."""
        [code] = re.findall(r"^```c\n(.*?)^```$",
                            (SOURCE / "README.md").read_text(), re.M | re.S)
        text = (f"#include <natra/natra.h>\n#include <stdio.h>\nint main(void)\n{{\n{code}"
                "return 0;\n}\n")
        for compiler, options in compilers():
            with self.subTest(compiler):
                self.build(compiler, options, text, BUILD / "src/libnatra.so")


class Link(Case):
    """A program of five lines works with the libraries of the build."""

    def test_shared(self):
        for compiler, options in compilers():
            with self.subTest(compiler):
                out = self.build(compiler, options, PROGRAM,
                                 BUILD / "src/libnatra.so")
                self.assertIn("libnatra.so.0", self.needed(out))
                self.says_version(out, LD_LIBRARY_PATH=f"{BUILD}/src")

    def test_stays_when_it_is_closed(self):
        """libbpf has a function of the library's, which it calls after a dlclose, too."""
        text = """#include <dlfcn.h>
int main(int argc, char **argv)
{
	void *library = dlopen(argv[argc - 1], RTLD_NOW);

	return !library || dlclose(library) || !dlopen(argv[argc - 1], RTLD_NOW | RTLD_NOLOAD);
}
"""
        for compiler, options in compilers():
            with self.subTest(compiler):
                out = self.build(compiler, options, text, "-ldl")
                self.must(*RUNNER, out, BUILD / "src/libnatra.so")

    def test_needs(self):
        """libelf and zlib are libbpf's: a shared libbpf brings them itself."""
        needed = " ".join(self.needed(BUILD / "src/libnatra.so"))
        self.assertIn("libbpf", needed)
        self.assertNotRegex(needed, r"libelf|libz\.so|libzstd")

    def test_static(self):
        private = pkg_config("--libs", *PRIVATE)
        for compiler, options in compilers():
            with self.subTest(compiler):
                out = self.build(compiler, options, PROGRAM,
                                 BUILD / "src/libnatra.a", *private,
                                 "-pthread")
                self.assertFalse([n for n in self.needed(out)
                                  if "natra" in n])
                self.says_version(out)

    def test_hidden_is_not_linked(self):
        """A function that is not in the map cannot be called, and its name stays free."""
        calls = PROGRAM.replace("int main", "int pin_lock(void);\nint main") \
                       .replace("return ", "return pin_lock() + ")
        defines = calls.replace("(void);\n", "(void);\n"
                                "int pin_lock(void)\n{\n\treturn 0;\n}\n", 1)
        private = pkg_config("--libs", *PRIVATE)
        for compiler, options in compilers():
            for library in ("libnatra.so", "libnatra.a"):
                link = [BUILD / "src" / library, *private, "-pthread"]
                with self.subTest(compiler, library=library):
                    out = self.build(compiler, options, defines, *link)
                    self.says_version(out, LD_LIBRARY_PATH=f"{BUILD}/src")
                    with self.assertRaisesRegex(AssertionError,
                                                "undefined .*pin_lock"):
                        self.build(compiler, options, calls, *link)


class Install(Case):
    """`meson install` puts the right files in place, and pkg-config finds them."""

    def setUp(self):
        super().setUp()
        self.dest = self.tmp / "dest"
        self.must("meson", "install", "--no-rebuild", "-C", BUILD,
                  "--destdir", self.dest)
        self.root = self.dest / PREFIX.relative_to("/")
        self.lib = self.root / LIBDIR

    def test_layout(self):
        lib = LIBDIR
        expected = {
            "include/natra/base.h", "include/natra/errors.h",
            "include/natra/leftovers.h", "include/natra/natra.h",
            "include/natra/stats.h", "include/natra/text.h",
            "include/natra/types.h",
            "include/natra/version.h",
            f"{lib}/libnatra.so", f"{lib}/libnatra.so.0",
            f"{lib}/libnatra.so.{VERSION}", f"{lib}/libnatra.a",
            f"{lib}/pkgconfig/libnatra.pc", f"{SBINDIR}/natractl",
            f"{CNIDIR}/natra", "share/doc/natra/cni/10-bridge.conflist",
            "share/bash-completion/completions/natractl",
            "share/fish/vendor_completions.d/natractl.fish",
            "share/zsh/site-functions/_natractl",
            "share/containers/oci/hooks.d/natra.json",
        }
        if HAS_MAN:
            expected |= {"share/man/man8/natractl.8",
                         "share/man/man8/natra-cni.8"}
        found = {str(p.relative_to(self.root))
                 for p in self.root.rglob("*") if not p.is_dir()}
        self.assertFalse(expected - found, "not installed")
        # No internal file may be installed: no other header, no test.
        self.assertEqual({p for p in found if p.endswith(".h")},
                         {p for p in expected if p.endswith(".h")})
        outside = [p for p in self.dest.rglob("*") if not p.is_dir() and
                   self.root not in p.parents]
        self.assertFalse(outside)

    def test_library_alone(self):
        """The tag devel has what the whole installation has of the library."""
        alone = self.tmp / "alone"
        self.must("meson", "install", "--no-rebuild", "-C", BUILD, "--tags", "devel",
                  "--destdir", alone)
        of_library = {str(p.relative_to(self.dest)) for p in self.dest.rglob("*")
                      if not p.is_dir() and p.relative_to(self.root).parts[0] in
                      ("include", Path(LIBDIR).parts[0])}
        self.assertEqual({str(p.relative_to(alone)) for p in alone.rglob("*")
                          if not p.is_dir()}, of_library)

    def test_packages_have_all(self):
        with open(SOURCE / "tools/package/packages.toml", "rb") as f:
            packages = [p for p in tomllib.load(f).values() if isinstance(p, dict)]
        patterns = [re.sub("^usr/", "", p.partition(" -> ")[0]
                           .replace("{libdir}", LIBDIR)
                           .replace("usr/sbin", SBINDIR)
                           .replace("usr/libexec/natra", CNIDIR))
                    for package in packages for p in package["files"]]
        installed = [str(p.relative_to(self.root)) for p in self.root.rglob("*")
                     if not p.is_dir()]
        self.assertEqual([name for name in installed
                          if not any(fnmatch(name, p) for p in patterns)], [])

    def test_kinds(self):
        self.assertEqual(os.readlink(self.lib / "libnatra.so.0"),
                         f"libnatra.so.{VERSION}")
        # A thin archive would point into the build.
        self.assertEqual((self.lib / "libnatra.a").read_bytes()[:8],
                         b"!<arch>\n")
        natractl = self.root / SBINDIR / "natractl"
        self.assertTrue(os.access(natractl, os.X_OK))
        r = self.must(*RUNNER, natractl, "version",
                      env=dict(os.environ, LD_LIBRARY_PATH=str(self.lib)))
        self.assertIn(VERSION, r.stdout)
        plugin = self.root / CNIDIR / "natra"
        r = self.must(*RUNNER, plugin,
                      env=dict(os.environ, CNI_COMMAND="VERSION",
                               LD_LIBRARY_PATH=str(self.lib)))
        self.assertIn("supportedVersions", r.stdout)
        for program in (natractl, plugin):
            dynamic = self.must("readelf", "-d", program).stdout
            self.assertNotIn(str(BUILD), dynamic)

    def pc(self, *args):
        system = PC_PATH or self.must("pkg-config", "--variable", "pc_path",
                                      "pkg-config").stdout.strip()
        return pkg_config(*args, "libnatra",
                          PKG_CONFIG_SYSROOT_DIR=str(self.dest),
                          PKG_CONFIG_LIBDIR=f"{self.lib}/pkgconfig:{system}")

    def test_pkg_config_shared(self):
        self.assertEqual(self.pc("--modversion"), [VERSION])
        flags = self.pc("--cflags", "--libs")
        self.assertIn(f"-I{self.root}/include", flags)
        self.assertNotIn("-lbpf", flags)
        for compiler, options in compilers():
            with self.subTest(compiler):
                out = self.build(compiler, options, PROGRAM, *flags,
                                 includes=self.pc("--cflags"))
                self.assertIn("libnatra.so.0", self.needed(out))
                self.says_version(out, LD_LIBRARY_PATH=str(self.lib))

    def test_pkg_config_static(self):
        flags = self.pc("--static", "--libs")
        self.assertIn("-lbpf", flags)
        # The linker prefers the shared one where both are.
        (self.lib / "libnatra.so").unlink()
        for compiler, options in compilers():
            with self.subTest(compiler):
                out = self.build(compiler, options, PROGRAM, *flags,
                                 includes=self.pc("--cflags"))
                self.assertFalse([n for n in self.needed(out)
                                  if "natra" in n])
                self.says_version(out)
                # A sanitizer's runtime is shared.
                if SANITIZE == "none":
                    out = self.build(compiler, options, PROGRAM, "-static",
                                     *flags, includes=self.pc("--cflags"))
                    self.assertFalse(self.needed(out))
                    self.says_version(out)


# The structs that others contain, or arrays, or that callbacks get and programs copy.
WITH_ROOM = ("natra_policy", "natra_class", "natra_group_info", "natra_direction_stats",
             "natra_connect_stats", "natra_flow")
NEW_OPTION = """#include <natra/natra.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra_info info = NATRA_INIT(info);
	struct natra_policy policy = NATRA_INIT(policy);
	struct natra_class class_ = NATRA_INIT(class_);
	struct natra *n;
	int r;

	(void)argv;
	if (natra_open(&n, &opts) < 0)
		return 2;
	policy.egress_rate_bits_per_sec = 1000000;
	class_.name = "peers";
	class_.dscps = 1;
	policy.classes = &class_;
	policy.classes_len = 1;
	policy.OPTION = argc == 2;
	class_.OPTION = argc == 3;
	info.policy = policy;
	policy = info.policy;
	r = natra_policy_check(n, &policy);
	printf("%d %s\\n", r, r ? natra_error(n) : "");
	natra_close(n);
	return 0;
}
"""


class Room(Case):
    """A struct that others contain grows into its room: what follows it stays where it
    is, for a program with an older or newer header than the library's."""

    def newer_header(self):
        """Write a header in which a member has taken the first part of each room."""
        to = self.tmp / "new"
        shutil.copytree(SOURCE / "include", to)
        shutil.copy(BUILD / "include/natra/version.h", to / "natra")
        found = []
        for header in (to / "natra").glob("*.h"):
            text, _ = re.subn(
                r"(^struct (\w+) {\n(?:\t.*\n)*?)\tuint64_t room\[(\d+)\];",
                lambda m: found.append(m[2]) or
                f"{m[1]}\tuint64_t option;\n\tuint64_t room[{int(m[3]) - 1}];",
                header.read_text(), flags=re.M)
            header.write_text(text)
        self.assertEqual(sorted(found), sorted(WITH_ROOM))
        return [f"-I{to}"]

    def test_nothing_moves(self):
        text = record.headers(SOURCE)
        layout = self.measure(text, INCLUDES)
        layout = {k: v for k, v in layout.items() if not k.endswith(".room")}
        new = self.measure(text, self.newer_header())
        self.assertEqual(layout, {k: v for k, v in new.items() if k in layout})

    def said(self, option, includes, *argv):
        out = self.build(compilers()[0][0], C17, NEW_OPTION.replace("OPTION", option),
                         BUILD / "src/libnatra.so", includes=includes)
        return self.must(*RUNNER, out, *argv,
                         env=dict(os.environ, LD_LIBRARY_PATH=f"{BUILD}/src")).stdout

    def test_new_option(self):
        """A newer program works as long as it sets no option that the library lacks."""
        new = self.newer_header()
        self.assertEqual(self.said("room[0]", INCLUDES), "0 \n")
        self.assertEqual(self.said("option", new), "0 \n")
        text = "has options that this version lacks\n"
        self.assertEqual(self.said("option", new, "policy"), f"-22 policy: {text}")
        self.assertEqual(self.said("option", new, "the", "class"), f"-22 classes: {text}")
        # It can be anywhere in the room.
        self.assertEqual(self.said("room[7]", new, "policy"), f"-22 policy: {text}")


# Edits of the headers and the map that programs do not notice: (old text, new text).
ADDS = (("\tbool refuse_other_abi;\n\tuint8_t reserved[7];",
         "\tbool refuse_other_abi;\n\tbool option;\n\tuint8_t reserved[6];"),
        ("\tuint64_t room[32];", "\tuint64_t option;\n\tuint64_t room[31];"),
        ("\tstruct natra_connect_stats egress_connects;",
         "\tstruct natra_connect_stats egress_connects;\n\tuint64_t option;"),
        ("\tNATRA_CODE_MAX", "\tNATRA_CODE_OPTION,\n\tNATRA_CODE_MAX"),
        ("#define NATRA_FLOWS_MAX 576", "#define NATRA_FLOWS_MAX 577"),
        ("NATRA_API int natra_status(", "NATRA_API int natra_option(void);\nNATRA_API int natra_status("))
# Those that break them: the same, and what is named.
BREAKS = (
    ("\tint netns_fd;", "\tint netns_fd;\n\tint option;", "natra_target.option"),
    ("\tuint64_t room[9];", "\tuint64_t option;\n\tuint64_t room[9];", "natra_class"),
    ("\tuint64_t packets;\n\tuint64_t bytes;", "\tuint64_t bytes;\n\tuint64_t packets;",
     "natra_count.packets"),
    ("\tbool is_htb;", "\tbool htb;", "natra_leftovers.is_htb"),
    ("NATRA_SLI_OFF, ", "NATRA_SLI_OFF, NATRA_SLI_SOME, ", "NATRA_SLI_ON"),
    ("\tNATRA_DIRECTION_NONE = 255", "\tNATRA_DIRECTION_NONE = 3", "NATRA_DIRECTION_NONE"),
    ("NATRA_RATE_MIN_BITS_PER_SEC 1ULL", "NATRA_RATE_MIN_BITS_PER_SEC 8ULL",
     "NATRA_RATE_MIN_BITS_PER_SEC"),
    ("NATRA_CLASS_NAME_MAX        31", "NATRA_CLASS_NAME_MAX        63", "NATRA_CLASS_NAME_MAX"),
    ("natra_status(struct natra *n)", "natra_status(struct natra *n, int option)", "natra_status"),
    ("NATRA_API int natra_upgrade(", "NATRA_API long natra_upgrade(", "natra_upgrade"),
    ("\tnatra_version;\n", "", "natra_version"),
    ("typedef bool (*natra_cancelled_fn)", "typedef int (*natra_cancelled_fn)",
     "typedef natra_cancelled_fn"))


class Record(Case):
    """What record.txt promises holds on each target."""

    def edited(self, *edits):
        """Return the names of what is broken with (old text, new text) in the headers."""
        to = self.tmp / "edited"
        shutil.copytree(SOURCE / "include", to, dirs_exist_ok=True)
        shutil.copy(BUILD / "include/natra/version.h", to / "natra")
        shutil.copy(SOURCE / "src/libnatra.map", to / "map.h")
        for old, new, *_ in edits:
            found = [h for h in to.rglob("*.h") if old in h.read_text()]
            self.assertEqual(len(found), 1, old)
            found[0].write_text(found[0].read_text().replace(old, new, 1))
        text = "".join((to / "natra" / h.name).read_text() for h in HEADER.parent.glob("*.h"))
        return self.broken(re.sub(r"/\*.*?\*/", "", text, flags=re.S),
                           (to / "map.h").read_text(), [f"-I{to}"])

    def broken(self, text, versions, includes):
        return record.broken(record.RECORD.read_text(), self.measure(text, includes),
                             record.functions(text, versions))

    def test_is_kept(self):
        self.assertEqual(self.edited(), [])

    def test_other_target(self):
        """Both have the same layout, which clang can tell without running anything."""
        if CROSS or not shutil.which("clang"):
            self.skipTest("a native clang is needed")
        program = record.asserts(self.measure(record.headers(SOURCE), INCLUDES))
        for target in ("x86_64", "aarch64"):
            self.must("clang", f"--target={target}-linux-gnu", "-ffreestanding", "-fsyntax-only",
                      *C17, *INCLUDES, self.source(program))

    def test_additions_pass(self):
        self.assertEqual(self.edited(*ADDS), [])

    def test_changes_are_named(self):
        found = self.edited(*BREAKS)
        self.assertEqual([name for *_, name in BREAKS if name not in found], [])


if __name__ == "__main__":
    sys.exit(unittest.main())
