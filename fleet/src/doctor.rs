//! `ralph fleet doctor`: checks the engine, its workers, and that a git remote accepts checkpoints.

use temporalio_client::Client;

use crate::engine::{self, EngineUrl};
use crate::provision::{Git, redacted};

/// Prints one line per check, and returns the exit code.
pub(crate) async fn run(url: &EngineUrl, repo: Option<&str>) -> Result<u8, String> {
    let mut failed = false;
    let mut line = |ok: bool, text: String| {
        failed |= !ok;
        println!("{} {text}", if ok { "✓" } else { "✗" });
    };
    match engine::connect(url).await {
        Ok(client) => {
            line(true, format!("the engine at {url} answers"));
            let (ok, text) = plans(&client).await;
            line(ok, text);
        }
        Err(error) => line(false, error),
    }
    let ralph = crate::client::ralph_program();
    match crate::client::version_of(&ralph) {
        Some(version) if version == env!("CARGO_PKG_VERSION") => line(true, format!("ralph {version}")),
        Some(version) => line(
            false,
            format!(
                "ralph {version} and ralph-fleet {} differ",
                env!("CARGO_PKG_VERSION")
            ),
        ),
        None => line(false, format!("{} does not run", ralph.display())),
    }
    let variables = [
        "TEMPORAL_TLS_CLIENT_CERT_PATH",
        "TEMPORAL_API_KEY",
        "TEMPORAL_TLS",
    ];
    if variables.iter().all(|name| std::env::var_os(name).is_none()) && !url.address.starts_with("127.0.0.1")
    {
        println!("! the connection is not encrypted: set TEMPORAL_TLS or a client certificate");
    }
    if let Some(repo) = repo {
        match takes_checkpoints(repo) {
            Ok(()) => line(
                true,
                format!("{} takes refs/ralph/* and atomic pushes", redacted(repo)),
            ),
            Err(why) => line(false, format!("{} takes no checkpoints: {why}", redacted(repo))),
        }
    }
    Ok(u8::from(failed))
}

async fn plans(client: &Client) -> (bool, String) {
    match client
        .count_workflows(
            "WorkflowType = 'PlanRun' AND ExecutionStatus = 'Running'",
            Default::default(),
        )
        .await
    {
        Ok(count) => (
            true,
            format!("the namespace can be used; plans that run: {}", count.count()),
        ),
        Err(error) => (false, format!("the namespace cannot be used: {error}")),
    }
}

/// Pushes an empty commit to two refs at once, and removes them again.
fn takes_checkpoints(repo: &str) -> Result<(), String> {
    let directory = std::env::temp_dir().join(format!("ralph-fleet-doctor-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let git = Git::new(&directory);
    let check = || {
        git.run(&["init", "--quiet", "--bare", "."])?;
        let tree = git.run_with(&["mktree"], Some(b""))?;
        let commit = git.run(&["commit-tree", &tree, "-m", "ralph fleet doctor"])?;
        let names = ["refs/ralph/doctor/check/head", "refs/ralph/doctor/check/state"];
        let moves = names.map(|name| format!("{commit}:{name}"));
        git.run(&["push", "--quiet", "--atomic", repo, &moves[0], &moves[1]])?;
        let gone = names.map(|name| format!(":{name}"));
        git.run(&["push", "--quiet", "--atomic", repo, &gone[0], &gone[1]])
    };
    let result = check();
    // The directory is temporary.
    let _ = std::fs::remove_dir_all(&directory);
    result.map(drop).map_err(|error| error.to_string())
}
