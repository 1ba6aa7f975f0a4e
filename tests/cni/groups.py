#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the plugin's key `group`: which group a pod gets, with which rates, what its
annotations may ask for there, which values are refused, and who removes the group."""
import json
import os
import threading

from plugin import Veth, attachment, call, find_natra, limits, natractl, run_script

M = 1_000_000
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"
RATES = {"ingressRate": 10 * M, "egressRate": 20 * M}
TENANT = {"name": "{namespace}", "ingressRate": "100M", "egressRate": 50 * M}
FILE = "/var/lib/natra/namespaces.json"
WEIGHT, FLOOR = "natra.io/group-weight", "natra.io/group-floor"

# Keys, and words of the refusal; unit-cni-groups has what the library refuses.
BAD = [
        ({"group": "a"}, ("group", "not an object")),
        ({"group": {}}, ("group.name", "missing")),
        ({"group": {"name": ""}}, ("group.name",)),
        ({"group": {"name": 5}}, ("group.name", "5")),
        ({"group": {"name": "x" * 128}}, ("group.name", "127")),
        ({"group": {"name": "{label:team}"}}, ("group.name", "{label:team}")),
        ({"group": {"name": "{annotation:}"}}, ("group.name", "{annotation:}")),
        ({"group": {"name": "a}"}}, ("group.name", "a}")),
        ({"group": dict(TENANT, ingressRate="fast")}, ("group.ingressRate", "fast")),
        ({"group": dict(TENANT, egressRate=10**16)}, ("group.egressRate",)),
        ({"group": dict(TENANT, rate=5)}, ("group.rate", "no key")),
        ({"group": dict(TENANT, weight=2)}, ("group.weight", "parent")),
        ({"group": dict(TENANT, floor="5M")}, ("group.floor", "parent")),
        ({"group": dict(TENANT, parent="p", weight=65)}, ("group.weight", "65")),
        ({"group": {"name": "a", "parent": "p"}}, ("group.parent", "rate")),
        ({"group": TENANT, "groupWeight": 65}, ("groupWeight", "65")),
        ({"group": TENANT, "groupWeight": 2**32 + 1}, ("groupWeight",)),
        ({"group": TENANT, "groupFloor": "x"}, ("groupFloor", "x")),
        ({"groupWeight": 2}, ("groupWeight", "group")),
        ({"groupFloor": "2M"}, ("groupFloor", "group")),
        ({"rates": None, "group": TENANT, "groupFloor": "20M", "ingressRate": "10M"},
         ("groupFloor: 20000000 is over ingressRate",)),
]


def groups(automatic=True):
    return {g["name"]: g for g in json.loads(natractl("group", "show", "--json"))
            if g["automatic"] == automatic}


class Pod:
    """A pod of a namespace, and the calls that a runtime makes for it."""

    def __init__(self, number, namespace):
        self.veth = Veth(f"p{number}", f"v{number}")
        self.env = {"CNI_NETNS": self.veth.path, "CNI_CONTAINERID": f"c{number}",
                    "CNI_ARGS": f"K8S_POD_NAMESPACE={namespace};K8S_POD_NAME=p{number}"
                    if namespace else ""}

    def conf(self, rates=RATES, annotations=None, **keys):
        runtime = {"bandwidth": rates, ANNOTATIONS: annotations or {}}
        return {"cniVersion": "1.0.0", "name": "groups", "type": "natra", "logFile": "",
                "prevResult": self.veth.prev_result(), "runtimeConfig": runtime, **keys}

    def run(self, command, *args, **keys):
        return call(find_natra(), command, self.conf(*args, **keys), **self.env)

    def show(self):
        info = attachment(self.veth.path)
        return info and json.loads(natractl("show", info["id"], "--json"))

    def group(self):
        """Return its group, weight and floor."""
        info = self.show()
        return info and (info["group"], info["policy"]["group_weight"],
                         info["policy"]["group_floor_bits_per_sec"])


def names(rep, pods):
    """Pods of one namespace share a group that lives as long as its last pod."""
    for pod in pods:
        rep.equal("ADD", pod.run("ADD", group=TENANT).code, 0)
    have = groups()
    rep.equal("members of each group", {n: g["members"] for n, g in have.items()},
              {"blue": 2, "red": 1})
    rep.equal("groups that an administrator has made", groups(False), {})
    rep.true("that in words", natractl("group", "show").count("its last member") == 2)
    rep.equal("rates", {(g["ingress_rate_bits_per_sec"], g["egress_rate_bits_per_sec"])
                        for g in have.values()}, {(100 * M, 50 * M)})
    wider = dict(TENANT, egressRate="60M")
    rep.equal("the next ADD's rates", (pods[0].run("ADD", group=wider).code,
              groups()["blue"]["egress_rate_bits_per_sec"]), (0, 60 * M))
    rep.equal("CHECK", [p.run("CHECK", group=TENANT).code for p in pods], [0, 0, 0])
    for pod, left in zip(pods, (["blue", "red"], ["red"], [])):
        rep.equal("DEL", pod.run("DEL", group=TENANT).code, 0)
        rep.equal("groups left", sorted(groups()), left)


def by_hand(rep, pod):
    """An administrator's group of the same name is another one, whatever becomes of the
    pod."""
    natractl("group", "set", "blue", "--egress-rate", "9M")
    mine = groups(False)
    plain = {"name": "blue"}
    for what, run, automatic in (
            ("ADD", lambda: pod.run("ADD", group=TENANT), ["blue"]),
            ("an edit", lambda: pod.run("ADD", group=dict(TENANT, egressRate="60M")),
             ["blue"]),
            ("CHECK", lambda: pod.run("CHECK", group=TENANT), ["blue"]),
            ("DEL", lambda: pod.run("DEL", group=TENANT), []),
            ("ADD without rates", lambda: pod.run("ADD", group=plain), []),
            ("ADD with rates", lambda: pod.run("ADD", group=TENANT), ["blue"]),
            ("ADD without them again", lambda: pod.run("ADD", group=plain), []),
            ("DEL without rates", lambda: pod.run("DEL", group=plain), [])):
        code = run().code
        joins = "without" in what and what[0] == "A"
        found = groups(False)
        rep.equal(f"{what}, with members of the administrator's",
                  (code, found["blue"].pop("members")), (0, int(joins)))
        rep.equal("  which is as it was", {k: found["blue"][k] for k in found["blue"]
                                           if "charged" not in k},
                  {k: v for k, v in mine["blue"].items()
                   if "charged" not in k and k != "members"})
        rep.equal("  automatic groups", sorted(groups()), automatic)
        info = pod.show()
        rep.equal("  the pod's", info and (info["group"],
                                           info["policy"]["group_is_automatic"]),
                  None if what[0] == "D" else ("blue", not joins))
    natractl("group", "remove", "blue")


def parts(rep, pod):
    """A weight and a floor, from the configuration or from annotations."""
    asked = {WEIGHT: "7", FLOOR: "3M"}
    allowed = ["group-weight", FLOOR]
    for keys, want in (
            ({}, ("blue", 0, 0)),
            ({"groupWeight": 4, "groupFloor": "2M"}, ("blue", 4, 2 * M)),
            ({"annotations": asked}, ("blue", 0, 0)),
            ({"annotations": asked, "allowAnnotations": allowed}, ("blue", 7, 3 * M)),
            ({"annotations": asked, "allowAnnotations": allowed, "groupWeight": 4},
             ("blue", 7, 3 * M))):
        a = pod.run("ADD", group=TENANT, **keys)
        rep.equal(f"{keys}", (a.code, pod.group()), (0, want))
        pod.run("DEL", group=TENANT)
    a = pod.run("ADD", annotations=asked, allowAnnotations=allowed)
    rep.equal("annotations without a group", (a.code, pod.group()), (0, ("", 0, 0)))
    pod.run("DEL")
    for name, value in ((WEIGHT, "0"), (WEIGHT, "65"), (WEIGHT, "4294967297"),
                        (WEIGHT, "x"), (FLOOR, "x")):
        a = pod.run("ADD", annotations={name: value}, allowAnnotations=allowed,
                    group=TENANT)
        rep.equal(f"{name} {value}", (a.error(), name in a.text()), (7, True))
        pod.run("DEL", group=TENANT)
    a = pod.run("ADD", annotations={FLOOR: "30M"}, allowAnnotations=allowed,
                group=TENANT)
    rep.equal("a floor over the pod's own rate", (a.error(), a.text().strip(), pod.show()),
              (7, f"annotation {FLOOR}: 30000000 is over ingressRate", None))
    keys = {"group": TENANT, "groupFloor": "15M",
            "classes": [{"name": "lan", "subnets": ["10.0.0.0/8"]}]}
    a = pod.run("ADD", **keys)
    rep.equal("the configuration's floor over the pod's own rate",
              (a.error(), a.text().strip(), pod.show()),
              (7, "groupFloor: 15000000 is over ingressRate", None))
    rep.equal("  STATUS, onError continue, CHECK", (
        pod.run("STATUS", cniVersion="1.1.0", **keys).error(),
        [pod.run(c, onError="continue", **keys).error() for c in ("ADD", "CHECK")],
        pod.group()), (0, [0, 0], ("blue", 0, 0)))
    pod.run("DEL", group=TENANT)
    for rates in RATES, {}:  # over the pod's own, and over the group's
        keys = {"annotations": {FLOOR: "70M"}, "allowAnnotations": allowed, "group": TENANT,
                "onError": "continue"}
        a = pod.run("ADD", rates, **keys)
        rep.equal("such a floor, onError continue", (a.code, pod.group(), limits(pod.show())[:2]),
                  (0, ("blue", 0, 0), (rates.get("ingressRate", 0), rates.get("egressRate", 0))))
        rep.equal("CHECK", pod.run("CHECK", rates, **keys).text(), "")
    pod.run("DEL", group=TENANT)
    rep.equal("groups left", sorted(groups()), [])


def full(rep, first, second):
    """One whose floor is over what the others' floors have left is a member without a floor."""
    keys = {"group": TENANT, "groupFloor": "30M"}
    rep.equal("the first", (first.run("ADD", {}, **keys).code, first.group()),
              (0, ("blue", 0, 30 * M)))
    a = second.run("ADD", {}, **keys)
    rep.equal("the second", (a.error() > 0, "floors" in a.text()), (True, True))
    a = second.run("ADD", {}, onError="continue", **keys)
    rep.equal("onError continue", (a.code, second.group()), (0, ("blue", 0, 0)))
    for pod in first, second:
        pod.run("DEL", {}, **keys)


def at_fault(rep, first, second):
    """A pod that goes on without its floor or its group keeps what else it has asked for, and
    the log says no more than that."""
    log = "/var/log/at-fault.log"
    floor = {"group": TENANT, "groupFloor": "30M"}
    keys = {"annotations": {"natra.io/fast-pass": "strict"}, "allowAnnotations": ["fast-pass"],
            "onError": "continue", "logFile": log}
    for what, more, group, words in (
            ("no such parent", {"group": dict(TENANT, parent="node")}, "", "in no group"),
            ("no room for its floor", floor, "blue", "has no floor")):
        first.run("ADD", {}, **floor)
        a = second.run("ADD", {}, **keys, **more)
        rep.equal(what, (a.code, second.group(), second.show()["policy"]["fast_pass"]),
                  (0, (group, 0, 0), "strict"))
        with open(log) as f:
            text = f.read()
        rep.check("  the log", text, words, words in text and "do not count" not in text)
        os.unlink(log)
        for pod in first, second:
            pod.run("DEL", {})


def borrowed(rep, pod):
    """A pod without rates is limited by its group alone, and CHECK looks at it."""
    a = pod.run("ADD", {}, group=TENANT)
    rep.equal("rates of the group", (a.code, limits(pod.show())[:2]),
              (0, (0, 0)))
    rep.equal("CHECK", pod.run("CHECK", {}, group=TENANT).code, 0)
    pod.veth.run("tc", "qdisc", "del", "dev", "eth0", "clsact", check=False)
    natractl("detach", pod.show()["id"])
    rep.equal("DEL", pod.run("DEL", {}, group=TENANT).code, 0)
    a = pod.run("ADD", {"ingressRate": 5 * M}, group=TENANT)
    rep.equal("a rate of its own for one direction", limits(pod.show())[:2],
              (5 * M, 0))
    pod.run("DEL", group=TENANT)


def others(rep, pod):
    """Groups that somebody else has made, and those that are not there."""
    team = {"name": "{annotation:example.org/team}/{namespace}"}
    annotation = {"example.org/team": "a"}
    a = pod.run("ADD", annotations=annotation, group=team)
    rep.equal("no such group", (a.code, pod.group(), limits(pod.show())[:2]),
              (0, ("", 0, 0), (10 * M, 20 * M)))
    natractl("group", "set", "a/blue", "--egress-rate", "9M")
    a = pod.run("ADD", annotations=annotation, group=team)
    rep.equal("a group made by hand", (a.code, pod.group()), (0, ("a/blue", 0, 0)))
    a = pod.run("ADD", {}, annotations=annotation, group=team)
    rep.equal("which alone limits the pod", (a.code, limits(pod.show())[:2]), (0, (0, 0)))
    a = pod.run("ADD", group=team)
    rep.equal("no such annotation", (a.code, pod.group()), (0, ("", 0, 0)))
    pod.run("DEL", annotations=annotation, group=team)
    rep.equal("it stays", sorted(groups(False)), ["a/blue"])
    natractl("group", "remove", "a/blue")
    child = dict(TENANT, parent="node", weight=3, floor="40M")
    a = pod.run("ADD", group=child)
    rep.equal("no such parent", (a.error() > 0, "node" in a.text(), pod.show()),
              (True, True, None))
    a = pod.run("ADD", group=child, onError="continue")
    rep.equal("the same, onError continue", (a.code, pod.group()), (0, ("", 0, 0)))
    natractl("group", "set", "node", "--ingress-rate", "1G", "--egress-rate", "1G")
    a = pod.run("ADD", group=child)
    have = groups().get("blue", {})
    rep.equal("in a parent", (a.code, have.get("parent"), have.get("weight"),
                              have.get("floor_bits_per_sec")), (0, "node", 3, 40 * M))
    pod.run("DEL", group=child)
    rep.equal("the parent stays", sorted(groups(False)), ["node"])
    natractl("group", "remove", "node")


def unnamed(rep, pod):
    a = pod.run("ADD", group=TENANT)
    rep.equal("no K8S_POD_NAMESPACE", (a.code, pod.group(), sorted(groups())),
              (0, ("", 0, 0), []))
    rep.equal("DEL", pod.run("DEL", group=TENANT).code, 0)


def too_long(rep, pod):
    """An id that is too long to be attached leaves no group."""
    env, pod.env = pod.env, dict(pod.env, CNI_CONTAINERID="c" * 250)
    rep.equal("ADD", pod.run("ADD", group=TENANT).error(), 4)
    rep.equal("DEL", (pod.run("DEL", group=TENANT).code, sorted(groups())), (0, []))
    pod.env = env


def bad(rep, pod):
    for keys, words in BAD:
        a = pod.run("ADD", **keys)
        rep.check(str(keys)[:52], a.text()[:80] if a.code else "success", words,
                  a.error() == 7 and all(w in a.text() for w in words))
        rep.equal("STATUS, DEL", (pod.run("STATUS", cniVersion="1.1.0", **keys).error(),
                                  pod.run("DEL", **keys).code), (7, 0))
    rep.equal("nothing is left", (pod.show(), groups()), (None, {}))


def race(rep, pods, rounds):
    """The last pod of a namespace goes while another one comes."""
    wrong = []

    def live(pod, namespace):
        for _ in range(rounds):
            a = pod.run("ADD", group=TENANT)
            found = pod.group() if not a.code else str(a)
            if found != (namespace, 0, 0):
                wrong.append(found)
            pod.run("DEL", group=TENANT)

    threads = [threading.Thread(target=live, args=(p, n)) for p, n in pods]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    rep.check(f"wrong of {rounds * len(pods)} ADDs", f"{len(wrong)} {wrong[:2]}", "0",
              not wrong)
    rep.equal("groups left", sorted(groups()), [])


def namespaces(rep, pod):
    """The file of namespaces bounds what a pod gets, and CHECK and DEL work with it."""
    os.makedirs(os.path.dirname(FILE))
    with open(FILE, "w") as f:
        json.dump({"bl*": {"max": {"egressRate": "5M"}, "default": {"ingressRate": "3M"}}}, f)

    def rates():
        info = pod.show()
        return info and (info["policy"]["ingress_rate_bits_per_sec"],
                         info["policy"]["egress_rate_bits_per_sec"],
                         info["ingress_rate_origin"], info["egress_rate_origin"])

    for what, asked, want in (
            ("no rate", None, (3 * M, 5 * M, "default", "maximum")),
            ("more than the maximum", RATES, (10 * M, 5 * M, "", "maximum")),
            ("less", {"egressRate": M}, (3 * M, M, "default", ""))):
        rep.equal(f"ADD with {what}", (pod.run("ADD", asked).code, rates()), (0, want))
        rep.equal("  CHECK", pod.run("CHECK", asked).code, 0)
    rep.true("  list says so", "ok, default" in natractl("list"))
    rep.equal("STATUS", pod.run("STATUS", cniVersion="1.1.0").code, 0)
    natractl("detach", pod.show()["id"])
    rep.true("CHECK of a pod whose limits were lost", pod.run("CHECK", None).code != 0)
    for text, words in (("{", "not JSON"), ('{"*": {"max": {"egressRate": "x"}}}',
                                            "'*': max.egressRate: 'x'")):
        with open(FILE, "w") as f:
            f.write(text)
        answer = pod.run("ADD", None)
        rep.equal("ADD with a file that is wrong", answer.error(), 7)
        rep.true("  names it", words in answer.text() and FILE in answer.text(), str(answer))
        rep.equal("  onError continue", pod.run("ADD", RATES, onError="continue").code, 0)
        status = [pod.run("STATUS", cniVersion="1.1.0", **more).error()
                  for more in ({}, {"onError": "continue"})]
        rep.equal("  STATUS, with onError continue", status, [7, 0])
    os.unlink(FILE)
    os.symlink(FILE, FILE)
    rep.equal("ADD with a file that cannot be read", pod.run("ADD", None).error(), 5)
    os.unlink(FILE)
    rep.equal("DEL", (pod.run("DEL").code, rates()), (0, None))


def main(rep, _):
    pods = [Pod(0, "blue"), Pod(1, "blue"), Pod(2, "red")]
    namespaces(rep, pods[0])
    names(rep, pods)
    by_hand(rep, pods[0])
    parts(rep, pods[0])
    full(rep, *pods[:2])
    at_fault(rep, *pods[:2])
    borrowed(rep, pods[0])
    others(rep, pods[0])
    bad(rep, pods[0])
    too_long(rep, pods[0])
    unnamed(rep, Pod(3, ""))
    race(rep, [(p, n) for p, n in zip(pods, ("blue", "blue", "red"))], 12)


if __name__ == "__main__":
    run_script(main)
