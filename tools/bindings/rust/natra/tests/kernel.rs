// SPDX-License-Identifier: BSD-2-Clause
//! Calls the kernel through the crate. `tests/rust/test.py` makes the network namespaces
//! `NATRA_TEST_PODS`, each with an eth0, and the bpffs `NATRA_TEST_BPFFS`. Without them
//! these tests are ignored.

use std::env;
use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::Command;
use std::sync::{Arc, Mutex};

use natra::{
    AttachMode, AutomaticGroup, Class, Code, Direction, FastPass, LogLevel, Natra, Netns, Options,
    Policy, Target,
};

const ENOENT: i32 = 2;
const EBADE: i32 = 52;

fn open() -> Natra {
    let bpffs = env::var("NATRA_TEST_BPFFS").expect("NATRA_TEST_BPFFS");

    Options::new().bpffs_path(bpffs).open().unwrap()
}

/// Each test has a pod of its own, because tests run side by side.
fn target(pod: usize) -> Target {
    let pods = env::var("NATRA_TEST_PODS").expect("NATRA_TEST_PODS");
    let name = pods.split(',').nth(pod).expect("one more pod");

    Target {
        id: format!("rust/{name}"),
        ifname: "eth0".into(),
        netns: Netns::Path(name.into()),
        network: "rust".into(),
        label: "shop/web-0".into(),
    }
}

fn policy(ingress: &str, egress: &str) -> Policy {
    Policy {
        ingress_rate_bits_per_sec: natra::parse_rate(ingress).unwrap(),
        egress_rate_bits_per_sec: natra::parse_rate(egress).unwrap(),
        ..Policy::default()
    }
}

#[test]
#[ignore]
fn whole_life() {
    let (mut natra, target) = (open(), target(0));
    let id = &target.id;
    let info = natra.attach(&target, &policy("10M", "20M")).unwrap();

    assert_eq!(
        (info.id.as_str(), info.ifname.as_str()),
        (id.as_str(), "eth0")
    );
    assert_eq!(
        (info.network.as_str(), info.label.as_str()),
        ("rust", "shop/web-0")
    );
    assert_eq!(info.policy, policy("10M", "20M"));
    assert_eq!(info.effective.ingress_burst_bits, 5_000_000);
    assert_ne!(info.mode, AttachMode::Auto);
    assert!(info.ingress_prog_id > 0 && info.program_is_current && !info.unshaped);
    assert_eq!(natra.query(id).unwrap(), info);

    natra.configure(id, &policy("30M", "40M")).unwrap();
    natra.check(id, Some(&policy("30M", "40M"))).unwrap();
    let e = natra.check(id, Some(&policy("30M", "50M"))).unwrap_err();
    assert_eq!(e.errno(), EBADE);
    assert_eq!(
        e.to_string(),
        format!("egress_rate_bits_per_sec: '{id}' has 40000000, not 50000000")
    );
    assert_eq!(e.code(), Code::LimitsDiffer);
    natra.upgrade(id).unwrap();

    let by_interface = Target {
        id: String::new(),
        ..target.clone()
    };
    assert_eq!(natra.find(&by_interface).unwrap(), *id);

    natra.detach(&Target::id(id)).unwrap();
    natra.detach(&Target::id(id)).unwrap();
    let e = natra.query(id).unwrap_err();
    assert_eq!(e.code(), Code::NotAttached);
    assert_eq!(
        (e.errno(), e.kind()),
        (ENOENT, std::io::ErrorKind::NotFound)
    );
    assert_eq!(e.to_string(), format!("'{id}' is not attached"));
}

#[test]
#[ignore]
fn configure_keeps_the_group() {
    let (mut natra, target) = (open(), target(5));
    let wanted = Policy {
        group: "rust".into(),
        group_is_automatic: true,
        group_weight: 3,
        group_floor_bits_per_sec: 1_000_000,
        ..policy("10M", "10M")
    };

    natra.attach(&target, &wanted).unwrap_err();
    let made = Policy {
        automatic_group: Some(AutomaticGroup {
            ingress_rate_bits_per_sec: 100_000_000,
            ..Default::default()
        }),
        ..wanted.clone()
    };
    let info = natra.attach(&target, &made).unwrap();
    assert_eq!(info.policy, wanted);
    let changed = Policy {
        ingress_rate_bits_per_sec: 20_000_000,
        ..info.policy
    };
    natra.configure(&target.id, &changed).unwrap();
    assert_eq!(natra.query(&target.id).unwrap().policy, changed);
    natra.detach(&target).unwrap();
}

#[test]
#[ignore]
fn counters() {
    let (mut natra, target) = (open(), target(1));
    let all_heavy = Policy {
        fast_pass: FastPass::Off,
        ..policy("10M", "10M")
    };
    let peer = env::var("NATRA_TEST_PEER").expect("NATRA_TEST_PEER");
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();

    natra.attach(&target, &all_heavy).unwrap();
    for _ in 0..5 {
        socket.send_to(b"x", &peer).unwrap();
    }
    let stats = natra.stats(&target.id).unwrap();
    assert!(stats.ingress.admitted.packets >= 5, "{:?}", stats.ingress);
    let flows = natra.top(&target.id, Direction::Ingress).unwrap();
    assert!(
        flows.iter().any(|f| f.packets >= 5 && f.protocol == 17),
        "{flows:?}"
    );
    assert!(natra.top(&target.id, Direction::Egress).is_ok());

    let mut seen = 0;
    natra
        .foreach_stats(|info, stats| {
            if info.id == target.id {
                seen = stats.unwrap().ingress.admitted.packets;
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(seen >= 5);
    natra.detach(&target).unwrap();
}

#[test]
#[ignore]
fn subnets_and_walks() {
    let (mut natra, target) = (open(), target(2));
    let mut wanted = policy("10M", "10M");

    wanted.unshaped_subnets = vec!["10.1.2.3/8".into(), "2001:db8::/32".into()];
    let info = natra.attach(&target, &wanted).unwrap();
    assert_eq!(
        info.policy.unshaped_subnets,
        ["10.0.0.0/8", "2001:db8::/32"]
    );
    natra.check(&target.id, Some(&info.policy)).unwrap();
    natra.configure(&target.id, &info.policy).unwrap();
    assert!(natra
        .attachments()
        .unwrap()
        .iter()
        .any(|i| i.id == target.id));

    // Breaking a walk is no error, and a panic goes on behind C.
    natra
        .foreach_attachment(|_| ControlFlow::Break(()))
        .unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| {
        natra.foreach_attachment(|_| panic!("of the closure"))
    }));
    assert!(panic.is_err());
    natra.query(&target.id).unwrap();
    natra.detach(&target).unwrap();
}

#[test]
#[ignore]
fn classes_come_back() {
    let (mut natra, target) = (open(), target(6));
    let cluster = Class {
        name: "cluster".into(),
        ingress_rate_bits_per_sec: 1_000_000_000,
        egress_rate_bits_per_sec: 2_000_000_000,
        subnets: vec!["10.0.0.0/8".into(), "fd00::/8".into()],
        ..Class::default()
    };
    let voice = |dscps| Class {
        name: "voice".into(),
        dscps,
        ..Class::default()
    };
    let with = |classes| Policy {
        classes,
        ..policy("10M", "10M")
    };
    let wanted = with(vec![cluster.clone(), voice(1 | 1 << 46 | 1 << 63)]);
    let info = natra.attach(&target, &wanted).unwrap();

    assert_eq!(info.policy, wanted);
    assert_eq!(info.effective.classes, wanted.classes);
    assert_eq!(natra.query(&target.id).unwrap(), info);
    // What is changed is compared, and what is reported can be attached again.
    let changed = with(vec![cluster, voice(1 << 5)]);
    natra.configure(&target.id, &changed).unwrap();
    natra.check(&target.id, Some(&changed)).unwrap();
    let e = natra.check(&target.id, Some(&wanted)).unwrap_err();
    assert_eq!(e.errno(), EBADE);
    let reported = natra.query(&target.id).unwrap().policy;
    assert_eq!(natra.attach(&target, &reported).unwrap().policy, changed);
    // Without classes, configure keeps them, and attach does not.
    natra.configure(&target.id, &policy("20M", "10M")).unwrap();
    assert_eq!(natra.classes(&target.id).unwrap(), changed.classes);
    natra.attach(&target, &policy("20M", "10M")).unwrap();
    assert_eq!(natra.classes(&target.id).unwrap(), []);
    natra.detach(&target).unwrap();
}

#[test]
#[ignore]
fn log_and_threads() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&lines);
    let bpffs = env::var("NATRA_TEST_BPFFS").expect("NATRA_TEST_BPFFS");
    let mut natra = Options::new()
        .bpffs_path(bpffs)
        .keep_programs(true)
        .log(move |level, line| log.lock().unwrap().push((level, line.to_string())))
        .open()
        .unwrap();
    let target = target(3);
    let id = target.id.clone();

    // A handle may move to another thread.
    std::thread::spawn(move || {
        natra.attach(&target, &policy("10M", "10M")).unwrap();
        natra.detach(&target).unwrap();
    })
    .join()
    .unwrap();
    assert!(lines
        .lock()
        .unwrap()
        .iter()
        .any(|(level, line)| *level == LogLevel::Info && line.starts_with(&id)));
}

#[test]
#[ignore]
fn gc_by_network() {
    let (mut natra, mut target) = (open(), target(4));

    target.network = "rust-gc".into();
    natra.attach(&target, &policy("10M", "10M")).unwrap();
    assert_eq!(natra.gc(Some("rust-gc"), &[&target.id]).unwrap(), 0);
    assert_eq!(natra.gc(Some("rust-gc"), &[]).unwrap(), 1);
    assert_eq!(natra.query(&target.id).unwrap_err().errno(), ENOENT);
}

#[test]
#[ignore]
fn features() {
    let mut natra = open();
    let features = natra.probe().unwrap();
    let kernel = Command::new("uname").arg("-r").output().unwrap().stdout;

    natra.status().unwrap();
    assert_eq!(features.kernel, String::from_utf8(kernel).unwrap().trim());
    assert!(features.kernel_ok && features.bpf, "{}", features.reason);
}
