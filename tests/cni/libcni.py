# SPDX-License-Identifier: BSD-2-Clause
"""Does what libcni does with a conflist, so that chains run on machines without Go: the
order of the plugins, the input of each, and the cache of results."""
import copy
import json
import os

from plugin import call, number


class Failed(Exception):
    """A plugin of the chain failed, which ends the chain."""

    def __init__(self, plugin, command, answer):
        super().__init__(f"{plugin} {command}: {answer}")
        self.plugin, self.answer = plugin, answer


class Container:
    """The values that a runtime passes besides the conflist."""

    def __init__(self, ident, netns, ifname="eth0", args=None,
                 capability_args=None):
        self.id, self.netns, self.ifname = ident, netns, ifname
        self.args = args or {}
        self.capability_args = capability_args or {}

    def env(self):
        return {"CNI_CONTAINERID": self.id, "CNI_NETNS": self.netns,
                "CNI_IFNAME": self.ifname, "CNI_ARGS": ";".join(
                        f"{k}={v}" for k, v in self.args.items())}


class Libcni:
    """Runs one conflist; the plugins are searched for in `path`."""

    def __init__(self, conflist, path, cache):
        self.list, self.path, self.cache = conflist, path, cache
        self.version = conflist["cniVersion"]
        self.answers = {}       # to the last command, by the plugin's type

    def _find(self, kind):
        for d in self.path:
            if os.access(f"{d}/{kind}", os.X_OK):
                return f"{d}/{kind}"
        raise FileNotFoundError(kind)

    def _cached(self, c):
        return f"{self.cache}/{self.list['name']}-{c.id}-{c.ifname}"

    def cached(self, c):
        """Return the result of the last ADD, or None."""
        try:
            with open(self._cached(c)) as f:
                return json.load(f)
        except FileNotFoundError:
            return None

    def _run(self, conf, command, c, prev=None):
        """Run one plugin. The keys of its input are sorted, as Go's encoder does."""
        conf = copy.deepcopy(conf)
        conf.update(name=self.list["name"], cniVersion=self.version)
        if prev is not None:
            conf["prevResult"] = prev
        runtime = {k: c.capability_args[k]
                   for k, on in conf.get("capabilities", {}).items()
                   if c and on and k in c.capability_args}
        if runtime:
            conf["runtimeConfig"] = runtime
        env = c.env() if c else dict.fromkeys(
                ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS"), "")
        a = call(self._find(conf["type"]), command,
                 json.dumps(conf, sort_keys=True).encode(),
                 CNI_PATH=":".join(self.path), **env)
        self.answers[conf["type"]] = a
        if a.code:
            raise Failed(conf["type"], command, a)
        return a

    def add(self, c, before=None):
        """Run ADD. `before` is called with each plugin's type and the result so far."""
        result = None
        self.answers = {}
        for conf in self.list["plugins"]:
            if before:
                before(conf["type"], result)
            result = self._run(conf, "ADD", c, result).json
        with open(self._cached(c), "w") as f:
            json.dump(result, f)
        return result

    def check(self, c):
        self.answers = {}
        for conf in self.list["plugins"]:
            self._run(conf, "CHECK", c, self.cached(c))

    def delete(self, c):
        """Run DEL in reverse order; before version 0.4.0 there is no prevResult."""
        self.answers = {}
        prev = self.cached(c) if number(self.version) >= (0, 4) else None
        for conf in reversed(self.list["plugins"]):
            self._run(conf, "DEL", c, prev)
        if self.cached(c):
            os.unlink(self._cached(c))
