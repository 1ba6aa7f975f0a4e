#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""As much of kubectl as `kubectl natra` calls, for machines that have none: it asks
fake_cluster.py, which executes without a WebSocket for it."""
import argparse
import json
import os
import re
import sys
import tty
import urllib.error
import urllib.parse
import urllib.request


def ask(path, **query):
    """Return what the API server says, or end as kubectl does."""
    with open(os.environ["KUBECONFIG"], encoding="utf-8") as f:
        server = json.load(f)["clusters"][0]["cluster"]["server"]
    try:
        url = f"{server}/{path}?{urllib.parse.urlencode(query, doseq=True)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.read()
    except urllib.error.HTTPError as e:
        status = json.loads(e.read())
        sys.exit(f"Error from server ({status.get('reason')}): {status['message']}")


def found(path, here):
    """Yield what a path of a jsonpath template leads to."""
    step = re.match(r"@|\.(\w+)|\[\*\]|\[\?\(@\.(\w+)==\"(\w+)\"\)\]", path)
    if not step:
        assert path == "", path
        yield here
        return
    name, key, value = step.groups()
    if name:
        here = [here[name]] if name in here else []
    elif step[0] == "@":
        here = [here]
    else:
        here = [e for e in here if key is None or e.get(key) == value]
    for e in here:
        yield from found(path[step.end():], e)


def fill_in(template, whole):
    head, loop, rest = template.partition("{range ")
    if loop:
        path, _, body = rest.partition("}")
        body = body.partition("{end}")[0]
        return "".join(fill_in(body, e) for e in found(path, whole))
    return "".join(json.loads(part) if part[0] == '"' else
                   " ".join(map(str, found(part, whole)))
                   for part in re.findall(r"\{(.*?)\}", head))


def main():
    if sys.argv[1] == "natra":
        os.execvp("kubectl-natra", sys.argv[1:])
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["get", "exec", "logs", "describe", "version"])
    parser.add_argument("words", nargs="*")
    for flag in "previous", "stdin", "tty":
        parser.add_argument(f"--{flag}", action="store_true")
    for option in "namespace", "selector", "output", "container", "tail":
        parser.add_argument(f"--{option}")
    words, command = sys.argv[1:], []
    if "--" in words:
        command = words[words.index("--") + 1:]
        words = words[:words.index("--")]
    a = parser.parse_args(words)
    pods = f"api/v1/namespaces/{a.namespace}/pods"
    if a.verb == "version":
        print(ask("version").decode())
    elif a.verb == "logs":
        query = {"previous": "true"} if a.previous else {}
        sys.stdout.buffer.write(ask(f"{pods}/{a.words[0]}/log", **query))
    elif a.verb == "describe":
        print(ask(f"{pods}/{a.words[1]}").decode())
    elif a.verb == "get":
        query = {"labelSelector": a.selector} if a.selector else {}
        objects = json.loads(ask("/".join([pods, *a.words[1:]]), **query))
        print(fill_in(a.output.removeprefix("jsonpath="), objects), end="")
    else:
        p = json.loads(ask(f"{pods}/{a.words[0]}/exec", command=command,
                           tty=str(a.stdin and a.tty).lower()))
        if a.tty:
            tty.setraw(0)
        sys.stdout.buffer.write(p["out"].encode("latin-1"))
        sys.stderr.write(p["err"])
        sys.exit(p["code"])


if __name__ == "__main__":
    main()
