// SPDX-License-Identifier: BSD-2-Clause
//! What the crate adds to C's checks; `examples/refusals.rs` shows C's own.

use natra::{
    Annotations, AttachMode, AutomaticGroup, Class, EdtPacing, FastPass, IngressMode, Natra,
    Policy, Sli, Target,
};

#[test]
fn nul_bytes_are_refused_by_their_field() {
    let mut natra = Natra::open().unwrap();
    let bad = || "a\0b".to_string();
    let policy = Policy::default();

    for (field, target) in [
        (
            "id",
            Target {
                id: bad(),
                ..Target::default()
            },
        ),
        (
            "ifname",
            Target {
                ifname: bad(),
                ..Target::default()
            },
        ),
        (
            "label",
            Target {
                label: bad(),
                ..Target::default()
            },
        ),
    ] {
        let e = natra.attach(&target, &policy).unwrap_err();

        assert_eq!(e.to_string(), format!("{field}: \"a\\0b\" has a NUL byte"));
        assert_eq!(e.errno(), 22);
    }
    let lists = Policy {
        shaped_subnets: vec![bad()],
        ..policy
    };
    let e = natra.policy_check(&lists).unwrap_err();
    assert_eq!(e.to_string(), "shaped_subnets: \"a\\0b\" has a NUL byte");
    for (field, class) in [
        (
            "classes.name",
            Class {
                name: bad(),
                ..Class::default()
            },
        ),
        (
            "classes.subnets",
            Class {
                subnets: vec![bad()],
                ..Class::default()
            },
        ),
    ] {
        let classes = Policy {
            classes: vec![class],
            ..Policy::default()
        };
        let e = natra.policy_check(&classes).unwrap_err();

        assert_eq!(e.to_string(), format!("{field}: \"a\\0b\" has a NUL byte"));
    }
}

#[test]
fn a_pod_asks_by_its_annotations() {
    let mut natra = Natra::open().unwrap();
    let policy = Policy {
        ingress_packet_rate_per_sec: 5,
        group: "all".into(),
        automatic_group: Some(AutomaticGroup {
            ingress_rate_bits_per_sec: 100_000_000,
            parent: "rack".into(),
            ..Default::default()
        }),
        unshaped_subnets: vec!["192.0.2.0/24".into()],
        ..Policy::default()
    };
    let mut asked = Annotations {
        of: vec![
            (
                "natra.io/classes".into(),
                "lan=10.0.0.0/8,ingress-rate=1G".into(),
            ),
            ("natra.io/egress-packet-rate".into(), "10k".into()),
            ("kubernetes.io/egress-bandwidth".into(), "20M".into()),
        ],
        allow_all: true,
        ..Annotations::default()
    };
    let annotated = natra.policy_annotate(&policy, &asked).unwrap();

    assert_eq!(
        annotated,
        Policy {
            egress_rate_bits_per_sec: 20_000_000,
            egress_packet_rate_per_sec: 10_000,
            classes: vec![Class {
                name: "lan".into(),
                ingress_rate_bits_per_sec: 1_000_000_000,
                subnets: vec!["10.0.0.0/8".into()],
                ..Class::default()
            }],
            ..policy.clone()
        }
    );
    asked.of[1].1 = "many".into();
    let e = natra.policy_annotate(&policy, &asked).unwrap_err();
    assert_eq!(
        e.to_string(),
        "annotation natra.io/egress-packet-rate: 'many': is not a number from 1 to 10^9, such as 10k"
    );
}

#[test]
fn words_are_those_of_the_command_line() {
    for word in [
        "auto",
        "tcx-podside",
        "clsact-podside",
        "tcx-hostside",
        "clsact-hostside",
    ] {
        assert_eq!(word.parse::<AttachMode>().unwrap().to_string(), word);
    }
    assert_eq!("off".parse::<EdtPacing>().unwrap(), EdtPacing::Off);
    assert_eq!("strict".parse::<FastPass>().unwrap(), FastPass::Strict);
    assert_eq!("pace".parse::<IngressMode>().unwrap(), IngressMode::Pace);
    assert_eq!("on".parse::<Sli>().unwrap(), Sli::On);
    assert_eq!(
        "no".parse::<EdtPacing>().unwrap_err().to_string(),
        "edt_pacing: 'no' is unknown"
    );
    assert_eq!(AttachMode::Unknown(99).to_string(), "99");
}

#[test]
fn quantities() {
    assert_eq!(natra::parse_rate("1.5G").unwrap(), 1_500_000_000);
    assert_eq!(natra::parse_size("64Ki").unwrap(), 65536);
    assert_eq!(natra::parse_time("50ms").unwrap(), 50_000_000);
    assert_eq!(natra::parse_rate("10m").unwrap_err().errno(), 34);
    assert_eq!(natra::parse_rate("ten").unwrap_err().errno(), 22);
    assert_eq!(natra::parse_time("1h\0").unwrap_err().errno(), 22);
}

#[test]
fn version_is_that_of_the_crate() {
    assert_eq!(natra::version(), env!("CARGO_PKG_VERSION"));
}
