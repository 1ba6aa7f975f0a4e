#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A real Prometheus scrapes made-up pods: each query of the dashboard and each rule has
data, and each alert fires in its state and not before. It needs neither root nor a kernel;
prometheus.py does the same with real pods."""
import http.server
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from node import Prometheus, check_dashboard, need
from report import Report

LIMIT = 1000
VERDICTS = ("mice", "admitted", "paced", "marked", "dropped_rate", "dropped_horizon",
            "unlimited", "other")
# Bytes per second by verdict, while all is well and later.
CALM = {"mice": 50, "admitted": 100, "paced": 700, "marked": 20, "dropped_horizon": 5}
LATER = {"flood": {"paced": 1000, "dropped_rate": 500}, "mice": {"mice": 1200}}
BROKEN = {"natra_unshaped": "bare", "natra_check_failed": "check",
          "natra_program_before": "before"}
PODS = ("web", *LATER, *BROKEN.values())
ALERTS = {"NatraUnshaped": "bare", "NatraCheckFailed": "check",
          "NatraProgramBefore": "before", "NatraOverLimit": "mice",
          "NatraLossAtLimit": "flood", "NatraInstallerNotReady": None,
          "NatraAbiMismatch": None}


class MadeUp:
    def __init__(self):
        self.bytes = {(pod, v): 0.0 for pod in PODS for v in VERDICTS}
        self.last = time.monotonic()
        self.is_broken = False

    def grow(self):
        seconds, self.last = time.monotonic() - self.last, time.monotonic()
        for pod in PODS:
            rates = LATER.get(pod, CALM) if self.is_broken else CALM
            for verdict, rate in rates.items():
                self.bytes[pod, verdict] += rate * seconds

    def text(self):
        self.grow()
        lines = []
        for (pod, verdict), count in self.bytes.items():
            labels = f'namespace="shop",pod="{pod}",interface="eth0"'
            way = f'{labels},direction="egress"'
            lines += [f'natra_bytes_total{{{way},verdict="{verdict}"}} {count}',
                      f'natra_packets_total{{{way},verdict="{verdict}"}} {count / 100}']
            if verdict == "mice":
                lines += [f"natra_pace_delay_seconds_total{{{way}}} {count / 1000}",
                          f'natra_delay_seconds_bucket{{{way},le="0.1"}} {count}',
                          f'natra_delay_seconds_bucket{{{way},le="+Inf"}} {count}',
                          f'natra_connect_seconds_bucket{{{way},le="0.1"}} {count}',
                          f'natra_connect_seconds_bucket{{{way},le="+Inf"}} {count}',
                          f"natra_connects_refused_total{{{way}}} {count}",
                          f"natra_connect_syns_repeated_total{{{way}}} {count}",
                          f"natra_limit_bytes_per_second{{{way}}} {LIMIT}",
                          f"natra_heavy_flows{{{way}}} 1",
                          f'natra_attachment_info{{{labels},fast_pass="free"}} 1']
                lines += [f"{name}{{{labels}}} {int(self.is_broken and bad == pod)}"
                          for name, bad in BROKEN.items()]
        lines += ['natra_attachments{mode="tcx-podside"} 6', 'natra_feature{feature="fq"} 1',
                  f"natra_installer_ready {int(not self.is_broken)}",
                  f"natra_abi_mismatches {int(self.is_broken)}",
                  "natra_conflist_repairs_total 0", "natra_scrape_duration_seconds 0.01"]
        return "\n".join(lines) + "\n"


def serve(made_up):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = made_up.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main():
    need("prometheus")
    r, made_up = Report(), MadeUp()
    server = serve(made_up)
    prometheus = Prometheus([f"127.0.0.1:{server.server_port}"])
    try:
        time.sleep(20)
        check_dashboard(r, prometheus)
        fired = prometheus.query("ALERTS")
        r.true("no alert while all is well", not fired, str(len(fired)))
        made_up.is_broken = True
        end = time.monotonic() + 60
        while prometheus.alerts() != set(ALERTS) and time.monotonic() < end:
            time.sleep(1)
        firing = prometheus.query('ALERTS{alertstate="firing"}')
        for name, pod in ALERTS.items():
            pods = {labels.get("pod") for labels, _ in firing if labels["alertname"] == name}
            r.true(f"alert {name}", pods == {pod}, ", ".join(map(str, pods)) or "silent")
        r.true("dashboard: Without their limit", prometheus.query("natra_unshaped == 1"))
    finally:
        prometheus.close()
        server.shutdown()
    r.end()


if __name__ == "__main__":
    main()
