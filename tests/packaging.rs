//! The CI workflows and the Dockerfile can be parsed and agree with Cargo.toml.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn workflow(name: &str) -> Value {
    let text = text(&format!(".github/workflows/{name}.yml"));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns all commands of the jobs of a workflow.
fn commands(workflow: &Value) -> String {
    let jobs = workflow["jobs"].as_object().expect("jobs");
    let steps = jobs
        .values()
        .flat_map(|job| job["steps"].as_array().expect("steps"));
    let runs = steps.filter_map(|step| step["run"].as_str());
    runs.collect::<Vec<_>>().join("\n")
}

/// Returns the `rust-version` of Cargo.toml, which the workflows install.
fn toolchain() -> String {
    let manifest = text("Cargo.toml");
    let mut lines = manifest.lines();
    let version = lines.find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'));
    version.expect("a rust-version").to_owned()
}

#[test]
fn ci_runs_the_check_script_with_the_toolchain_of_the_package() {
    let ci = workflow("ci");
    let commands = commands(&ci);
    assert!(commands.contains("bash .ci/run"), "{commands}");
    assert!(commands.contains("rust-version"), "{commands}");
    assert!(ci["on"]["pull_request"].is_null() && ci["on"]["push"]["branches"][0] == "main");
    let toolchains = &ci["jobs"]["checks"]["strategy"]["matrix"]["toolchain"];
    assert_eq!(*toolchains, serde_json::json!(["rust-version", "stable"]));
}

#[test]
fn only_the_nightly_workflow_tests_the_newest_agent_programs() {
    let nightly = workflow("nightly");
    assert!(nightly["on"]["schedule"][0]["cron"].is_string());
    assert!(commands(&nightly).contains("tests/real_agents/run.sh --latest"));
    assert!(!text(".ci/run").contains("--latest"));
    assert!(!commands(&workflow("ci")).contains("--latest"));
}

#[test]
fn every_build_of_the_check_script_uses_the_lock_file() {
    let script = text(".ci/run");
    let builds =
        ["build", "clippy", "doc", "install", "run", "test"].map(|command| format!("cargo {command} "));
    let unlocked: Vec<&str> = script
        .lines()
        .filter(|line| builds.iter().any(|build| line.contains(build)) && !line.contains("--locked"))
        .collect();
    assert_eq!(unlocked, Vec::<&str>::new());
    for step in [
        "typos",
        "cargo machete",
        "cargo deny",
        "cargo fmt --check",
        "cargo test --locked",
    ] {
        assert!(script.contains(step), "{step}");
    }
}

#[test]
fn a_release_has_every_platform_and_checksums() {
    let release = workflow("release");
    let builds = release["jobs"]["build"]["strategy"]["matrix"]["include"]
        .as_array()
        .expect("platforms");
    let targets: Vec<&str> = builds
        .iter()
        .filter_map(|build| build["target"].as_str())
        .collect();
    let expected = [
        "x86_64-unknown-linux-gnu",
        "aarch64-unknown-linux-gnu",
        "x86_64-unknown-linux-musl",
        "aarch64-unknown-linux-musl",
        "x86_64-apple-darwin",
        "aarch64-apple-darwin",
    ];
    assert_eq!(targets, expected);
    let commands = commands(&release);
    for part in [
        "rust-version",
        "--locked --release",
        "sha256sum",
        "gh release create",
        "packaging/build.sh",
        "packaging/formula.sh",
        "cargo cyclonedx",
    ] {
        assert!(commands.contains(part), "{part}: {commands}");
    }
    let permissions = &release["jobs"]["publish"]["permissions"]["contents"];
    assert_eq!(
        (permissions, &release["permissions"]["contents"]),
        (&"write".into(), &"read".into()),
        "only the last job may write"
    );
}

#[test]
fn the_container_is_built_with_the_toolchain_of_the_package_and_does_not_run_as_root() {
    let docker = text("Dockerfile");
    let base = format!("FROM rust:{}-alpine AS build", toolchain());
    assert!(docker.contains(&base), "{base}");
    let last = docker.rsplit_once("\nFROM ").expect("two stages").1;
    assert!(last.contains("\nUSER ralph\n"), "{last}");
}

#[test]
fn the_formula_has_the_checksum_of_each_archive() {
    let directory = tempfile::tempdir().expect("a directory");
    let version = env!("CARGO_PKG_VERSION");
    let targets = ["aarch64-apple-darwin", "x86_64-unknown-linux-musl"];
    let sums: String = targets
        .iter()
        .enumerate()
        .map(|(number, target)| format!("{number:064}  ralph-v{version}-{target}.tar.gz\n"))
        .collect();
    let file = directory.path().join("SHA256SUMS");
    fs::write(&file, sums).expect("checksums");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/formula.sh");
    let output = Command::new("bash")
        .arg(script)
        .arg(&file)
        .output()
        .expect("bash");
    let formula = String::from_utf8(output.stdout).expect("text");
    for (number, target) in targets.iter().enumerate() {
        assert!(formula.contains(&format!("{number:064}")), "{formula}");
        let archive = format!("download/v{version}/ralph-v{version}-{target}.tar.gz");
        assert!(formula.contains(&archive), "{formula}");
    }
}

#[test]
fn every_page_of_the_documentation_is_in_the_contents_of_the_site() {
    let contents = text("docs/SUMMARY.md");
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    for (folder, prefix) in [(directory.clone(), ""), (directory.join("design"), "design/")] {
        for entry in fs::read_dir(folder).expect("a directory") {
            let name = entry.expect("an entry").file_name();
            let name = format!("{prefix}{}", name.to_string_lossy());
            if name.ends_with(".md") && name != "SUMMARY.md" {
                assert!(
                    contents.contains(&format!("({name})")),
                    "docs/SUMMARY.md does not list {name}"
                );
            }
        }
    }
}
