//! The files by which ralph is built elsewhere: they can be read, and agree with the package.

use std::fs;
use std::path::Path;

use serde_json::Value;

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn workflow(name: &str) -> Value {
    let text = text(&format!(".github/workflows/{name}.yml"));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Everything that the jobs of a workflow run.
fn commands(workflow: &Value) -> String {
    let jobs = workflow["jobs"].as_object().expect("jobs");
    let steps = jobs
        .values()
        .flat_map(|job| job["steps"].as_array().expect("steps"));
    let runs = steps.filter_map(|step| step["run"].as_str());
    runs.collect::<Vec<_>>().join("\n")
}

/// How the workflows find the toolchain: what this finds is what they install.
fn toolchain() -> String {
    let manifest = text("Cargo.toml");
    let mut lines = manifest.lines();
    let version = lines.find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'));
    version.expect("a rust-version").to_owned()
}

#[test]
fn ci_runs_what_everybody_runs_with_the_toolchain_of_the_package() {
    let ci = workflow("ci");
    let commands = commands(&ci);
    assert!(commands.contains("bash .ci/run"), "{commands}");
    assert!(commands.contains("rust-version"), "{commands}");
    assert!(ci["on"]["pull_request"].is_null() && ci["on"]["push"]["branches"][0] == "main");
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
fn the_container_is_built_with_the_toolchain_of_the_package_and_is_not_roots() {
    let docker = text("Dockerfile");
    let base = format!("FROM rust:{}-alpine AS build", toolchain());
    assert!(docker.contains(&base), "{base}");
    let last = docker.rsplit_once("\nFROM ").expect("two stages").1;
    assert!(last.contains("\nUSER ralph\n"), "{last}");
}
