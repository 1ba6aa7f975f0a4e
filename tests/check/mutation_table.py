# SPDX-License-Identifier: BSD-2-Clause
"""The mistakes that the tests must notice; see the script `mutations`.

Each is a name, a file, the text in it that is replaced (it must be there exactly
once, so keep it short), what stands there instead, and the test that fails: the
cheapest one that can. What only a kernel with fq can show is tried in a VM.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    name: str
    file: str
    changes: tuple          # of (text, what replaces it)
    test: str               # a name that meson knows
    args: tuple = ()        # appended to the test's own
    vm: bool = False


def one(name, file, old, new, test, *args, vm=False):
    return Mutation(name, file, ((old, new),), test, args, vm)


def in_vm(name, file, old, new, test, *args):
    return one(name, file, old, new, test, *args, vm=True)


BPF = "bpf/natra.bpf.c"

CLASSIFY = [
    one("heavy-only-above-enter", "bpf/natra_classify.h",
        "estimate < enter &&", "estimate <= enter &&", "unit-classify"),
    one("known-by-any-cell", "bpf/natra_classify.h",
        "(c0 & c1 & c2 & c3 & NATRA_HEAVY_USED)",
        "((c0 | c1 | c2 | c3) & NATRA_HEAVY_USED)", "unit-classify"),
    one("hold-and-known-swapped", "bpf/natra_classify.h",
        "NATRA_HOLD_WINDOWS : NATRA_KNOWN_WINDOWS",
        "NATRA_KNOWN_WINDOWS : NATRA_HOLD_WINDOWS", "unit-classify"),
    one("hold-renewed-below-leave", "bpf/natra_classify.h",
        "estimate >= leave && ages", "ages", "unit-classify"),
    one("sketch-saturates-to-zero", "bpf/natra_sketch.h",
        "estimate = NATRA_CELL_COUNT_MAX;", "estimate = 0;", "unit-sketch"),
    one("units-rounded-down", "bpf/natra_sketch.h",
        "(bytes + (1U << (NATRA_UNIT_SHIFT - 1)))", "bytes", "unit-sketch"),
    one("sketch-lowers-a-cell", "bpf/natra_sketch.h",
        "if (c3 < estimate)", "if (c3 != estimate)", "unit-sketch"),
    one("sketch-ages-half-as-fast", "bpf/natra_sketch.h",
        "NATRA_CELL_COUNT_MAX) >> age;", "NATRA_CELL_COUNT_MAX) >> age / 2;",
        "unit-sketch"),
    one("flow-evicts-the-youngest", "bpf/natra_flows.h",
        "age > oldest_age", "age < oldest_age", "unit-flows"),
    one("hash-ignores-a-word", "bpf/natra_hash.h",
        "key[10] * daddr[3]", "key[10] * daddr[2]", "unit-hash"),
]

BUCKET = [
    one("limit-excludes-itself", "bpf/natra_bucket.h",
        "depart - now_ns > limit_ns", "depart - now_ns >= limit_ns",
        "unit-bucket"),
    one("bucket-has-no-burst", "bpf/natra_bucket.h",
        "now_ns > burst_ns ? now_ns - burst_ns : 0", "now_ns", "unit-bucket"),
    one("bucket-fills-without-end", "bpf/natra_bucket.h",
        "tat > full_ns ? tat : full_ns", "tat", "unit-bucket"),
    one("cost-rounded-down", "bpf/natra_bucket.h",
        "rate->mult + chance)", "rate->mult)", "unit-bucket"),
    one("gso-header-once-too-often", "bpf/natra_wirelen.h",
        "(segs - 1) * header_len", "segs * header_len", "unit-wirelen"),
    one("gso-segments-rounded-down", "bpf/natra_wirelen.h",
        "(len - header_len + size - 1) / size", "(len - header_len) / size",
        "unit-wirelen"),
]

PARSE = [
    one("first-fragment-is-a-packet", "bpf/natra_parse.h",
        "natra_be16(0x3fff)", "natra_be16(0x1fff)", "unit-parse"),
    one("ip-options-are-ports", "bpf/natra_parse.h",
        "*offset += (byte[0] & 0xf) * 4U;", "*offset += 20;", "unit-parse"),
    one("service-tag-is-no-tag", "bpf/natra_parse.h",
        "ethertype == NATRA_ETHERTYPE_8021AD", "ethertype == 0", "unit-parse"),
    one("three-tags-pass", "bpf/natra_parse.h",
        "natra_is_vlan(type) ? NATRA_PARSED_OPAQUE",
        "natra_is_vlan(type) ? NATRA_PARSED_OTHER", "unit-parse"),
    one("udp-lite-has-no-ports", "bpf/natra_parse.h",
        "protocol == NATRA_PROTO_UDPLITE ||", "", "unit-parse"),
    one("last-fragment6-is-a-packet", "bpf/natra_parse.h",
        "natra_be16(0xfff9)", "natra_be16(0x0001)", "unit-parse_ipv6"),
    one("reserved-bits-make-a-fragment", "bpf/natra_parse.h",
        "natra_be16(0xfff9)", "natra_be16(0xffff)", "unit-parse_ipv6"),
    one("authentication-header-in-octets", "bpf/natra_parse.h",
        "(byte[1] + 2U) * 4", "(byte[1] + 1U) * 8", "unit-parse_ipv6"),
    one("jumbo-header-of-each-segment", "bpf/natra_parse.h",
        "offset - p->jumbo_len", "offset", "unit-parse_ipv6"),
]

PROGRAMS = [
    one("wire-length-of-the-other-hook", BPF,
        "if (!tx)", "if (tx)", "bpf-kinds"),
    one("tag-of-one-segment", BPF,
        "(segs > 1 ? segs : 1)", "1", "bpf-kinds"),
    one("jumbo-header-charged", BPF,
        "ret->bytes -= parsed->jumbo_len * skb->gso_segs;", "", "bpf-kinds"),
    one("arp-is-dropped", BPF,
        "return NATRA_COUNT_OTHER;", "return NATRA_COUNT_DROPPED_RATE;",
        "bpf-kinds"),
    one("tcp-options-not-in-segments", BPF,
        "l2_len + l3_len + (((__u8 *)l3)[l3_len + 12] >> 4) * 4U",
        "l2_len + l3_len + 20", "bpf-kinds"),
    one("fast-path-takes-options", BPF,
        "*(__u8 *)ip4 != 0x45", "(*(__u8 *)ip4 & 0xf0) != 0x40", "bpf-flows"),
    one("fast-path-takes-fragments", BPF,
        "(ip4->frag_off & natra_be16(0x3fff))",
        "(ip4->frag_off & natra_be16(0x2000))", "bpf-flows"),
    one("own-end-is-the-peer", BPF,
        "natra_fixed.peer_is_to ? tuple->daddr : tuple->saddr",
        "natra_fixed.peer_is_to ? tuple->saddr : tuple->daddr", "bpf-subnets"),
    one("hidden-address-is-free", BPF,
        "if (!tuple->version)", "if (tuple->version == 5)", "bpf-subnets"),
    one("drop-stays-charged", BPF,
        "__sync_fetch_and_add(&state->tat_ns, -cost_ns);", "", "bpf-police"),
    one("mark-in-the-tag", BPF,
        "if (skb->protocol != natra_be16(NATRA_ETHERTYPE_IPV4) &&",
        "if (!skb->protocol &&", "bpf-police"),
    one("over-the-rate-passes", BPF,
        "outcome == NATRA_COUNT_DROPPED_RATE ||",
        "outcome == NATRA_COUNT_MAX ||", "bpf-police"),
    one("charged-mice6-are-free", BPF,
        "if (mouse && limits->pass == NATRA_PASS_FREE)",
        "if (mouse && (limits->pass == NATRA_PASS_FREE || "
        "skb->protocol == natra_be16(NATRA_ETHERTYPE_IPV6)))", "bpf-charged"),
    one("tiny-is-larger", BPF,
        "#define TINY_BYTES 128", "#define TINY_BYTES 129", "bpf-charged"),
    one("tiny-is-smaller", BPF,
        "#define TINY_BYTES 128", "#define TINY_BYTES 127", "bpf-charged"),
    one("mice-take-the-reserve", BPF,
        "now_ns -= limits->reserve_ns;", "", "bpf-passes"),
    one("reserve-is-not-of-the-burst", BPF,
        "burst_ns -= limits->reserve_ns;", "", "bpf-charged"),
    one("charged-mice-not-first", BPF,
        "limit_ns = NATRA_NO_LIMIT;", "limit_ns = 0;", "bpf-passes"),
    one("stamp-limit-is-longer", BPF,
        "MAX_STAMP_NS 9000000000ULL", "MAX_STAMP_NS 11000000000ULL",
        "bpf-edt"),
    one("stamp-limit-is-shorter", BPF,
        "MAX_STAMP_NS 9000000000ULL", "MAX_STAMP_NS 7000000000ULL",
        "bpf-edt"),
    one("stamp-of-any-clock", BPF,
        "skb->tstamp_type == BPF_SKB_TSTAMP_DELIVERY_MONO &&", "", "bpf-edt"),
    one("mouse-gets-a-stamp", BPF,
        "if (mouse)\n\t\treturn NATRA_COUNT_MICE;",
        "if (mouse && !edt)\n\t\treturn NATRA_COUNT_MICE;", "bpf-charged"),
    one("mouse-beyond-the-horizon", BPF,
        "edt && !mouse ? NATRA_COUNT_DROPPED_HORIZON",
        "edt ? NATRA_COUNT_DROPPED_HORIZON", "bpf-charged"),
    one("charged-mice-bound-by-the-horizon", BPF,
        "limit_ns = NATRA_NO_LIMIT;", "limit_ns = limits->delay_limit_ns;",
        "bpf-charged"),
    one("every-delay-is-marked", BPF,
        "depart_ns - now_ns > limits->mark_from_ns && set_ce(skb)",
        "set_ce(skb)", "bpf-edt"),
    one("delay-is-a-time", BPF,
        "delay_ns_sum += depart_ns - now_ns;", "delay_ns_sum += depart_ns;",
        "bpf-edt"),
]

POLICY = [
    one("limits-of-the-other-way", "src/policy.c",
        "bool out = half == HALF_EGRESS;", "bool out = half != HALF_EGRESS;",
        "unit-policy"),
    one("mice-have-the-whole-burst", "src/policy.c",
        "burst / MICE_BURST_DIVISOR", "burst", "unit-policy"),
    one("marked-when-it-is-too-late", "src/policy.c",
        "p.pace_limit_ns / 2", "p.pace_limit_ns", "unit-policy"),
    one("egress-is-marked", "src/policy.c",
        "l.mark_from_ns = UINT64_MAX;", "l.mark_from_ns = 0;", "unit-policy"),
    one("police-is-loose", "src/policy.c",
        "if (half == HALF_INGRESS && p.ingress_mode == NATRA_INGRESS_PACE)",
        "if (half == HALF_INGRESS)", "unit-policy"),
    one("threshold-of-the-faster-way", "src/policy.c",
        "in < out) ? in : out", "in > out) ? in : out", "unit-policy"),
    one("any-sketch-width", "src/policy.c",
        "(width & (width - 1)) == 0)", "width)", "unit-policy"),
    one("edt-changes-live", "src/policy.c",
        "a->mode == b->mode && a->edt == b->edt &&", "a->mode == b->mode &&",
        "unit-policy"),
    one("reserve-without-a-bound", "src/policy.c",
        "l.reserve_ns = MAX_RESERVE_NS;", "", "unit-policy"),
    one("burst-without-a-bound", "src/policy.c",
        "burst_ns > INT64_MAX ? INT64_MAX : ", "", "unit-policy"),
]

LIBRARY = [
    one("marked-and-admitted-swapped", "src/query.c",
        "ret->marked = count_of(&c, NATRA_COUNT_MARKED)",
        "ret->marked = count_of(&c, NATRA_COUNT_ADMITTED)", "api-counters"),
    one("admitted-is-mice", "src/query.c",
        "ret->admitted = count_of(&c, NATRA_COUNT_ADMITTED)",
        "ret->admitted = count_of(&c, NATRA_COUNT_MICE)", "api-counters"),
    one("unlimited-and-other-swapped", "src/query.c",
        "ret->unlimited = count_of(&c, NATRA_COUNT_UNLIMITED)",
        "ret->unlimited = count_of(&c, NATRA_COUNT_OTHER)", "api-counters"),
    one("top-begins-with-the-least", "src/query.c",
        "(x->bytes < y->bytes) - (x->bytes > y->bytes)",
        "(x->bytes > y->bytes) - (x->bytes < y->bytes)", "api-counters"),
    one("top-has-one-port-twice", "src/query.c",
        "flow.dport = ntohs(ports[1]);", "flow.dport = ntohs(ports[0]);",
        "api-counters"),
    one("top-in-network-order", "src/query.c",
        "flow.sport = ntohs(ports[0]);", "flow.sport = ports[0];",
        "api-counters"),
    one("top-has-one-address-twice", "src/query.c",
        "memcpy(flow.saddr, slot->saddr,", "memcpy(flow.saddr, slot->daddr,",
        "api-counters"),
    one("top-idle-in-ticks", "src/query.c",
        "<< NATRA_FLOW_TICK_SHIFT,", "<< 0,", "api-counters"),
    one("top-of-the-other-way", "src/query.c",
        "if (direction == NATRA_INGRESS_DIR)",
        "if (direction != NATRA_INGRESS_DIR)", "api-counters"),
    one("gc-of-other-networks", "src/query.c",
        "strcmp(sweep->network, gen->meta.network) == 0 &&",
        "strcmp(sweep->network, gen->meta.network) != 0 &&", "api-state"),
    one("gc-removes-what-is-valid", "src/query.c",
        "!is_kept(sweep, gen->meta.id)", "is_kept(sweep, gen->meta.id)",
        "api-state"),
    one("list-is-backwards", "src/query.c",
        "strcmp(((const struct natra_info *)a)->id,",
        "-strcmp(((const struct natra_info *)a)->id,", "api-state"),
    one("label-is-the-network", "src/query.c",
        "sizeof(info->label), m->label)", "sizeof(info->label), m->network)",
        "api-state"),
    one("two-ids-for-an-interface", "src/natra.c",
        "strcmp(owner, id) != 0)", "strcmp(owner, id) == 0)", "api-state"),
    one("check-compares-nothing", "src/natra.c",
        "if (memcmp(&have, &want, sizeof(have)) != 0)", "if (n == NULL)",
        "api-state"),
    one("mode-by-environment-over-all", "src/natra.c",
        "if (mode && p->mode == NATRA_MODE_AUTO &&", "if (mode &&",
        "cni-config", "--only", "environment"),
    one("mode-by-environment-unheard", "src/natra.c",
        '"NATRA_ATTACH_MODE")', '"NATRA_ATTACH_MODES")',
        "cni-config", "--only", "environment"),
    one("pacing-by-environment-unheard", "src/natra.c",
        '"NATRA_EDT_PACING")', '"NATRA_EDT")',
        "cni-config", "--only", "environment"),
    one("hooks-of-the-other-way", "src/shaper.c",
        "(half == HALF_EGRESS) == (h->on_host != 0)",
        "(half == HALF_EGRESS) != (h->on_host != 0)", "api-state"),
    one("peer-is-the-pod", "src/shaper.c",
        ".peer_is_to = half == HALF_EGRESS,",
        ".peer_is_to = half != HALF_EGRESS,", "api-counters"),
    one("peer-is-the-source", "src/shaper.c",
        ".peer_is_to = half == HALF_EGRESS,", "", "api-counters"),
    one("refused-fq-is-recorded", "src/shaper.c",
        "if (r == -EOPNOTSUPP || r == -EBUSY)\n\t\tlink->fq = 0;", "",
        "api-state"),
    one("kept-without-the-new-direction", "src/shaper.c",
        "limits_cover(&gen->meta, request->policy) &&", "", "api-kept"),
    one("kept-with-other-subnets", "src/shaper.c",
        "subnets_equal(&subnets, request->subnets) &&", "", "api-subnets"),
    one("kept-with-the-old-label", "src/shaper.c",
        "(void)str_copy(gen->meta.label, sizeof(gen->meta.label),\n"
        "\t\t       request->label);", "", "api-kept"),
    one("kept-with-the-old-network", "src/shaper.c",
        "(void)str_copy(gen->meta.network, sizeof(gen->meta.network),\n"
        "\t\t       request->network);", "", "api-kept"),
    one("nothing-is-undone", "src/shaper.c",
        "if (teardown_gen(n, gen, keep, pod_fd) < 0)", "if (!gen)",
        "api-kept"),
    one("slots-are-not-left", "src/teardown.c",
        "r = engine_leave(n, &gen->meta.slot[i]);", "r = 0;", "api-state"),
    one("program-gone-unnoticed", "src/check.c",
        "r = check_engine(n, gen, (enum half)i);", "r = 0;", "api-kept"),
    one("before-is-behind", "src/check.c",
        "e->is_before_ours = is_before && !e->is_ours;",
        "e->is_before_ours = !is_before && !e->is_ours;", "api-hooks"),
]

HOOKS = [
    Mutation("empty-clsact-removed", "src/hook_clsact.c", (
        ("int hook_clsact_detach(",
         "static int any(void *arg, const struct hook_program *program)\n"
         "{\n\t(void)arg;\n\t(void)program;\n\treturn 1;\n}\n\n"
         "int hook_clsact_detach("),
        ("\topts.handle = own.program.handle;",
         "\tstruct bpf_tc_opts front = {.sz = sizeof(front)};\n"
         "\tstruct hook other = {hook->ifindex, !hook->ingress};\n\n"
         "\tfront.handle = own.program.handle;\n"
         "\tfront.priority = own.program.priority;\n"
         "\t(void)bpf_tc_detach(&at, &front);\n"
         "\tif (hook_clsact_list(n, nl, hook, any, NULL) == 0 &&\n"
         "\t    hook_clsact_list(n, nl, &other, any, NULL) == 0) {\n"
         "\t\tat.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS;\n"
         "\t\t(void)bpf_tc_hook_destroy(&at);\n"
         "\t\treturn 0;\n\t}\n"
         "\topts.handle = own.program.handle;")), "api-hooks"),
    one("clsact-never-in-front", "src/hook_clsact.c",
        "front = r == 1;", "front = false;", "api-hooks"),
    one("clsact-always-in-front", "src/hook_clsact.c",
        "front = r == 1;", "front = true;", "api-hooks"),
    one("clsact-handle-of-others", "src/hook_clsact.c",
        ".handle = FIRST_HANDLE + prog_id,", ".handle = 1,", "api-hooks"),
    one("tcx-behind-others", "src/hook_tcx.c",
        ".flags = BPF_F_BEFORE,", ".flags = BPF_F_AFTER,", "api-hooks"),
    one("any-tbf-is-the-plugins", "src/leftovers.c",
        "l.tbf.handle != PLUGINS_HANDLE", "!l.tbf.handle", "api-leftovers"),
    one("mirrored-is-redirected", "src/leftovers.c",
        "return parms->eaction == TCA_EGRESS_REDIR;", "return true;",
        "api-leftovers"),
    one("any-class-is-the-plugins", "src/leftovers.c",
        "class != PLUGINS_CLASS || ", "", "api-leftovers"),
]

CNI = [
    one("burst-rounded-down", "cni/bandwidth.c",
        "bits / 8 + (bits % 8 != 0)", "bits / 8", "unit-cni-bandwidth"),
    one("least-placeholder-is-a-burst", "cni/bandwidth.c",
        "d.burst_bits >= PLACEHOLDER_BITS", "d.burst_bits > PLACEHOLDER_BITS",
        "unit-cni-bandwidth"),
    one("placeholder-in-the-configuration", "cni/bandwidth.c",
        "if (path[0] && d.burst_bits", "if (d.burst_bits",
        "unit-cni-bandwidth"),
    one("lowest-is-highest", "cni/bandwidth.c",
        "runtime < conf ? by_runtime", "runtime > conf ? by_runtime",
        "unit-cni-bandwidth"),
    one("runtime-zero-wins", "cni/bandwidth.c",
        "if (!runtime)", "if (!runtime && precedence != PRECEDENCE_RUNTIME)",
        "unit-cni-bandwidth"),
    one("static-hides-what-it-has-not", "cni/bandwidth.c",
        "by_conf.present && s->precedence", "s->precedence",
        "unit-cni-bandwidth"),
    one("subnets-of-both-places", "cni/bandwidth.c",
        "(s->precedence == PRECEDENCE_RUNTIME || !has_subnets(conf->json))",
        "true", "unit-cni-bandwidth"),
    one("every-annotation-is-allowed", "cni/annotations.c",
        "settings->allowed_annotations & 1U << i", "settings",
        "unit-cni-annotations"),
    one("annotation-burst-of-the-other-way", "cni/annotations.c",
        "read_burst(text, p->egress_rate_bits_per_sec,\n"
        "\t\t\t  &p->egress_burst_bytes)",
        "read_burst(text, p->egress_rate_bits_per_sec,\n"
        "\t\t\t  &p->ingress_burst_bytes)", "unit-cni-annotations"),
    one("annotations-in-any-case", "cni/annotations.c",
        "json_get_exact(pod, name)", "json_get(pod, name)",
        "cni-config", "--only", "annotations"),
    one("share-of-nothing", "cni/settings.c",
        "number < 1 || number > max", "number > max", "unit-cni-settings"),
    one("fail-is-continue", "cni/settings.c",
        "s->continue_on_error = i == 1;", "s->continue_on_error = i == 0;",
        "unit-cni-settings"),
    one("ifname-of-16", "cni/env.c",
        "strlen(ifname) >= IFNAME_SIZE", "strlen(ifname) > IFNAME_SIZE",
        "unit-cni-env"),
    one("first-argument-counts", "cni/env.c",
        "found = args + key_len + 1;",
        "found = found ? found : args + key_len + 1;", "unit-cni-env"),
    one("pod-has-no-label", "cni/command.c",
        ".label = call->pod,", ".label = call->conf.name,",
        "unit-cni-command"),
    one("stale-limits-stay", "cni/cmd_add.c",
        "else if (id_fits)\n\t\tremove_stale(call);", "", "unit-cni-command"),
    one("delete-needs-its-netns", "cni/cmd_del.c",
        "if (r < 0 && target.netns) {", "if (r > 0 && target.netns) {",
        "unit-cni-command"),
    one("newer-state-fails-delete", "cni/cmd_del.c",
        "if (r == -ESTALE) {", "if (r == -ENOSPC) {", "unit-cni-command"),
    one("gc-of-null-is-refused", "cni/cmd_gc.c",
        "!cJSON_IsArray(valid) && !cJSON_IsNull(valid)",
        "!cJSON_IsArray(valid)", "unit-cni-command"),
    one("gc-of-unknown-is-of-all", "cni/cmd_gc.c",
        "if (!valid)", "if (!call)", "unit-cni-command"),
    one("check-forgives-all", "cni/cmd_check.c",
        "natra_query(call->n, call->id, &info) == 0 && info.unshaped",
        "natra_query(call->n, call->id, &info) == 0", "unit-cni-command"),
    one("status-has-another-code", "cni/cmd_status.c",
        "CNI_NOT_AVAILABLE", "CNI_BAD_CONFIG", "unit-cni-command"),
]

NATRACTL = [
    one("label-option-is-ignored", "tools/natractl/cmd_attach.c",
        "target.label = cli->opts.value[OPT_LABEL];", "", "cli-output"),
    one("network-option-is-the-label", "tools/natractl/cmd_attach.c",
        "target.network = cli->opts.value[OPT_NETWORK];",
        "target.network = cli->opts.value[OPT_LABEL];", "cli-output"),
    one("delay-of-the-unmarked", "tools/natractl/stats.c",
        "stats->paced.packets + stats->marked.packets", "stats->paced.packets",
        "cli-output"),
    one("counter-under-anothers-name", "tools/natractl/stats.c",
        '{"marked", offsetof(struct natra_direction_stats, marked)}',
        '{"marked", offsetof(struct natra_direction_stats, admitted)}',
        "cli-output"),
    one("dropped-is-half-of-it", "tools/natractl/stats.c",
        "stats->dropped_rate.bytes + stats->dropped_horizon.bytes",
        "stats->dropped_rate.bytes", "cli-output"),
    one("ports-in-json-swapped", "tools/natractl/cmd_top.c",
        'json_add_u64(o, "dport", flow->dport)',
        'json_add_u64(o, "dport", flow->sport)', "cli-output"),
    one("endpoints-in-the-table-swapped", "tools/natractl/cmd_top.c",
        "print_endpoint(flow, flow->daddr, flow->dport)",
        "print_endpoint(flow, flow->saddr, flow->dport)", "cli-output"),
]

# On a kernel that has fq.
FQ = [
]

DEMO = [
    one("quickstart-limits-nothing", "tests/harness/demo.py",
        "lim.attach(CAP, CAP)", 'lim.attach("1G", "1G")', "net-quickstart"),
]

TABLE = [*CLASSIFY, *BUCKET, *PARSE, *PROGRAMS, *POLICY, *LIBRARY, *HOOKS, *CNI,
         *NATRACTL, *FQ, *DEMO]
