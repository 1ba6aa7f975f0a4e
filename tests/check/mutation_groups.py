# SPDX-License-Identifier: BSD-2-Clause
"""Mistakes in groups and classes; see mutation_table.py."""

from mutation import one

BPF = "bpf/natra.bpf.c"
SHARES = "bpf/natra_groups.h"
JUDGE = "bpf/natra_groups.bpf.h"
STATE = "src/state/groups.c"
API = "src/api/groups.c"

TABLE = [
    one("floor-means-nothing", SHARES,
        "if (turn_ns > floor_ns)", "if (turn_ns < floor_ns && 0)", "unit-groups"),
    one("weights-mean-nothing", SHARES,
        "\t\tof->share);", "\t\t1U << NATRA_GROUP_SHARE_SHIFT);", "unit-groups"),
    one("stale-clock-of-a-member-stays", SHARES,
        "ns > stale_ns)", "ns > stale_ns + (1ULL << 62))", "unit-groups"),
    one("clock-of-a-member-goes-on-from-itself", SHARES,
        "natra_group_advance(&member->clock_ns, turn_ns + step_ns,",
        "natra_group_advance(&member->clock_ns, member->clock_ns + step_ns,",
        "unit-groups"),
    one("backstop-is-charged-again", "src/policy/policy.c",
        "if (leg != LEG_INGRESS ||", "if (leg < LEG_MAX ||", "unit-groups"),
    one("drops-are-charged-to-the-group", BPF,
        "if (natra_fixed.has_groups && !is_dropped(outcome) &&",
        "if (natra_fixed.has_groups &&", "bpf-groups"),
    one("parent-is-not-asked", JUDGE,
        "return upper_ns > turn_ns ? upper_ns : turn_ns;", "return turn_ns;",
        "bpf-groups"),
    one("mice-of-a-group-by-the-member", JUDGE,
        "*enter = of->enter_units;", "", "bpf-groups"),
    one("charged-mice-have-no-group", BPF,
        "if (natra_fixed.has_groups && packet->mouse &&",
        "if (natra_fixed.has_groups && packet->guarded &&", "bpf-groups"),
    one("free-mice-are-charged-to-the-group", BPF,
        "if (mouse && limits->pass == NATRA_PASS_FREE)\n\t\treturn NATRA_COUNT_MICE;",
        "if (mouse && limits->pass == NATRA_PASS_FREE) {\n"
        "\t\tif (natra_fixed.has_groups)\n"
        "\t\t\tgroup_charge(config, state, limits, packet, false);\n"
        "\t\treturn NATRA_COUNT_MICE;\n\t}", "bpf-groups"),
    one("group-loses-its-members", API,
        "if (members[number].count)", "if (members[0].count)", "api-groups"),
    one("own-floor-counts-twice", STATE,
        "r = groups_list_members(n, id, &list);",
        "r = groups_list_members(n, NULL, &list);", "api-groups"),
    one("refused-limits-of-a-group-stay", API,
        "\t\t*place = before;\n", "", "api-groups"),
    one("refused-group-leaves-a-map", API,
        "	if (r < 0)\n		groups_sweep(n);", "", "api-groups"),
    one("check-does-not-look-at-the-group", "src/attach/check.c",
        "if (r == 0 && policy.group)", "if (r == 0 && policy.group > 999)",
        "api-groups"),
    one("configure-keeps-programs-without-groups", "src/attach/limits.c",
        "!have.group == !policy->group &&", "", "api-groups"),
    one("group-without-members-is-swept", STATE,
        "if (groups_given(&groups, i)->name[0])", "if (false)", "api-groups"),
    one("a-stale-number-of-classes", "src/api/configure.c",
        "if (!given->classes_len && p->classes_len != have)", "if (false)",
        "api-classes"),
    one("kept-lists-unchecked", "src/api/configure.c",
        "return policy_check(p, n->error, sizeof(n->error));", "return 0;",
        "api-classes"),
    one("packets-not-beside-classes", "cni/classes.c",
        "\tpolicy_fields_drop_alone(&checked);\n", "", "unit-cni-classes"),
    one("a-member-to-come-is-none", "src/state/groups.c",
        "if (gen->abi != NATRA_PIN_ABI)",
        "if (gen->abi != NATRA_PIN_ABI || !gen->record.complete)", "api-groups"),
    one("floors-of-child-groups-uncounted", "src/state/groups.c",
        "sum += given->floor_bits_per_sec;", "sum += 0;", "api-groups"),
    one("a-floor-without-a-rate", "src/policy/groups.c",
        "rate ? given->floor_bits_per_sec : 0", "given->floor_bits_per_sec",
        "unit-groups"),
    one("a-drain-leaves-the-classes", "src/attach/limits.c",
        "lifted ? &none : limits", "lifted && !i ? &none : limits", "api-classes"),
]
