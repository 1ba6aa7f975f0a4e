// SPDX-License-Identifier: BSD-2-Clause
//! Finds libnatra by pkg-config, or builds it (feature `vendored`). There is no
//! dependency on other crates, because Debian 12's cargo cannot use crates.io without
//! GitHub.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, process};

/// What libnatra itself is linked with, see `src/meson.build`.
const LIBRARIES: [&str; 3] = ["libbpf", "libnl-3.0", "libnl-route-3.0"];

fn fail(text: String) -> ! {
    eprintln!("natra-sys: {text}");
    process::exit(1);
}

/// Runs a command and returns its standard output.
fn run(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{shown}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!(
            "{shown}: {}: {}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout).trim(),
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    }
}

fn pkg_config(args: &[&str]) -> Result<String, String> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());

    run(Command::new(program).args(args))
}

/// Tells cargo what `pkg-config --libs` says.
fn link(libs: &str) {
    for word in libs.split_whitespace() {
        if let Some(dir) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={dir}");
        } else if let Some(lib) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={lib}");
        } else if word.ends_with(".so") {
            // pkg-config files of a build that is not installed name the file.
            let path = Path::new(word);
            let dir = path.parent().unwrap_or_else(|| Path::new("."));

            println!("cargo:rustc-link-search=native={}", dir.display());
            println!("cargo:rustc-link-lib=natra");
        }
    }
}

fn installed() {
    // An older library lacks what these bindings declare.
    let wanted = format!("libnatra >= {}", env!("CARGO_PKG_VERSION"));

    match pkg_config(&["--libs", &wanted]) {
        Ok(libs) => link(&libs),
        // pkg-config says which version there is in a line of its own.
        Err(e) => fail(format!(
            "no {wanted} (the feature `vendored` builds it): {}",
            e.replace('\n', " ")
        )),
    }
    if let Ok(dir) = pkg_config(&["--variable=includedir", "libnatra"]) {
        println!("cargo:include={}", dir.trim());
    }
}

/// The root of natra's repository, in which this crate is.
fn repository() -> PathBuf {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = here.join("../../../..");

    match fs::canonicalize(root) {
        Ok(root) if root.join("src/libnatra.map").exists() => root,
        _ => fail(format!(
            "vendored: {} is not in natra's repository",
            here.display()
        )),
    }
}

fn vendored() {
    let root = repository();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let build = out.join("natra");
    let archive = build.join("src/libnatra.a");

    if !build.join("build.ninja").exists() {
        run(Command::new("meson")
            .args(["setup", "-Dtests=disabled", "-Dman=disabled"])
            .args(["-Dbuildtype=release"])
            .arg(&build)
            .arg(&root))
        .unwrap_or_else(|e| fail(e));
    }
    run(Command::new("ninja")
        .arg("-C")
        .arg(&build)
        .arg("src/libnatra.a"))
    .unwrap_or_else(|e| fail(e));
    println!(
        "cargo:rustc-link-search=native={}",
        archive.parent().expect("it is in src").display()
    );
    println!("cargo:rustc-link-lib=static=natra");
    let mut args = vec!["--libs"];
    args.extend(LIBRARIES);
    link(&pkg_config(&args).unwrap_or_else(|e| fail(e)));
    println!("cargo:include={}", root.join("include").display());
    for name in ["src", "bpf", "include", "meson.build"] {
        println!("cargo:rerun-if-changed={}", root.join(name).display());
    }
}

fn main() {
    for name in ["PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_VENDORED").is_some() {
        vendored();
    } else {
        installed();
    }
}
