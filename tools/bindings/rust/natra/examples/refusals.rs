// SPDX-License-Identifier: BSD-2-Clause
//! Prints what libnatra says to bad input. `tests/rust/refusals.c` does the same in C, and
//! `tests/rust/test.py` compares the two.

use natra::{AttachMode, EdtPacing, Natra, Netns, Options, Policy, Result, Target};

fn say<T>(name: &str, result: Result<T>) {
    match result {
        Ok(_) => println!("{name}: 0"),
        Err(e) => println!("{name}: {}: {e}", e.errno()),
    }
}

fn rates() -> Policy {
    Policy {
        ingress_rate_bits_per_sec: 1_000_000,
        egress_rate_bits_per_sec: 1_000_000,
        ..Policy::default()
    }
}

fn policies(natra: &mut Natra) {
    let lists = |shaped: &[&str], unshaped: &[&str]| Policy {
        shaped_subnets: shaped.iter().map(|s| s.to_string()).collect(),
        unshaped_subnets: unshaped.iter().map(|s| s.to_string()).collect(),
        ..rates()
    };
    let high = Policy {
        ingress_rate_bits_per_sec: u64::MAX,
        ..rates()
    };
    let long = Policy {
        horizon_ns: 9_000_000_001,
        ..rates()
    };
    let group = Policy {
        group: "g".repeat(128),
        ..rates()
    };
    let mode = Policy {
        attach_mode: AttachMode::Unknown(99),
        ..rates()
    };
    let edt = Policy {
        edt_pacing: EdtPacing::Unknown(99),
        ..rates()
    };

    say("rate", natra.policy_check(&high));
    say("horizon", natra.policy_check(&long));
    say("group", natra.policy_check(&group));
    say("mode", natra.policy_check(&mode));
    say("edt", natra.policy_check(&edt));
    say(
        "subnet",
        natra.policy_check(&lists(&["10.0.0.0/8", "10.0.0.0/33"], &[])),
    );
    say(
        "two lists",
        natra.policy_check(&lists(&["10.0.0.0/8"], &["::/0"])),
    );
    say("good", natra.policy_check(&rates()));
}

fn targets(natra: &mut Natra) {
    let eth0 = || Target {
        ifname: "no-such-if".into(),
        ..Target::default()
    };
    let nowhere = Target {
        netns: Netns::Path("/no/such".into()),
        ..eth0()
    };
    let long_id = Target {
        id: "i".repeat(256),
        ..eth0()
    };
    let long_name = Target {
        ifname: "i".repeat(16),
        ..Target::default()
    };
    let long_label = Target {
        label: "l".repeat(256),
        ..eth0()
    };
    let not_netns = Target {
        netns: Netns::Path("/dev/null".into()),
        ..eth0()
    };

    say("no ifname", natra.attach(&Target::id("x"), &rates()));
    say("no rate", natra.attach(&eth0(), &Policy::default()));
    say("no netns", natra.attach(&nowhere, &rates()));
    say("not a netns", natra.attach(&not_netns, &rates()));
    say("long id", natra.attach(&long_id, &rates()));
    say("long ifname", natra.attach(&long_name, &rates()));
    say("long label", natra.attach(&long_label, &rates()));
    say("nothing to detach by", natra.detach(&Target::default()));
    say("nothing to find by", natra.find(&Target::default()));
}

fn ids(natra: &mut Natra) {
    say("query", natra.query("no-such"));
    say("query without an id", natra.query(""));
    say("configure", natra.configure("no-such", &rates()));
    say("check", natra.check("no-such", None));
    say("upgrade", natra.upgrade("no-such"));
    say("stats", natra.stats("no-such"));
    say("long", natra.query(&"i".repeat(300)));
}

fn main() -> Result<()> {
    let bpffs = std::env::args().nth(1).unwrap_or_default();
    let mut natra = Options::new().bpffs_path(bpffs).open()?;

    policies(&mut natra);
    targets(&mut natra);
    ids(&mut natra);
    Ok(())
}
