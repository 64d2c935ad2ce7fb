//! A program that tries to leave its sandbox in more than 60 ways, judged from outside: by listeners, files and processes.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::process::helpers::wait_until;
use crate::sandbox::skip::skip;
use crate::sandbox::{DEADLINE, Running, Sandbox};

const ATTEMPTS: &str = include_str!("attempts.py");
/// What no attempt may read.
const SECRET: &str = "s3cret-9f2b";

/// Everything outside of the sandbox that an attempt could reach.
struct Outside {
    sandbox: Sandbox,
    mark: String,
    victim: Child,
    tcp: Vec<TcpListener>,
    udp: Vec<UdpSocket>,
    sockets: Vec<UnixListener>,
    /// Files outside of the project and their content.
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Sockets and files in shared directories of the system.
    shared: Vec<PathBuf>,
}

impl Outside {
    fn new(settings: &str) -> Self {
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let sandbox = Sandbox::new_in(base);
        let mark = format!("ralph-test-{}-{:08x}", std::process::id(), number_of(&sandbox));
        let python = Path::new("/usr/bin/python3");
        let python = python
            .exists()
            .then(|| python.to_owned())
            .or_else(|| which::which("python3").ok());
        if let Some(python) = python {
            std::os::unix::fs::symlink(python, sandbox.path("bin/python3")).expect("Python");
        }
        for program in [
            "unshare",
            "mount",
            "umount",
            "tmux",
            "at",
            "systemd-run",
            "su",
            "env",
        ] {
            if let Ok(found) = which::which(program) {
                let _ = std::os::unix::fs::symlink(found, sandbox.path("bin").join(program));
            }
        }
        let mut outside = Self {
            victim: Command::new("sleep")
                .arg("1000")
                .env("SECRET_OF_VICTIM", SECRET)
                .spawn()
                .expect("sleep"),
            sandbox,
            mark,
            tcp: Vec::new(),
            udp: Vec::new(),
            sockets: Vec::new(),
            files: Vec::new(),
            shared: Vec::new(),
        };
        outside.create_files(settings);
        outside
    }

    fn file(&mut self, path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(&path, text).expect("a file");
        self.files.push((path, text.into()));
    }

    fn create_files(&mut self, settings: &str) {
        let (home, work) = (self.sandbox.path("home"), self.sandbox.work());
        for name in [
            ".ssh/id_ed25519",
            ".gnupg/secret",
            ".aws/credentials",
            ".mozilla/cookies",
        ] {
            self.file(home.join(name), SECRET);
        }
        for name in [".ssh/authorized_keys", ".bashrc", ".config/ralph/ralph.yml"] {
            self.file(home.join(name), "");
        }
        self.file(self.sandbox.path("sibling").join("file"), "theirs\n");
        self.file(self.sandbox.path("state").join("trust/decisions"), SECRET);
        fs::set_permissions(self.sandbox.path("state"), fs::Permissions::from_mode(0o700))
            .expect("permissions");
        self.file(work.join("notify.sh"), "true\n");
        let config = format!(
            "cli: {{backend: custom, command: python3, args: [attempts.py], prompt_mode: stdin, transcript: plain}}\n\
             event_loop: {{prompt: x, max_iterations: 1, max_no_progress: 0}}\n\
             hooks: {{on_fail: sh notify.sh}}\n{settings}\n"
        );
        self.file(work.join("ralph.yml"), &config);
        fs::write(work.join("attempts.py"), ATTEMPTS).expect("the attempts");
        let git = |arguments: &[&str]| {
            let mut command = self.sandbox.command_for("git");
            assert!(
                command.args(arguments).status().expect("git").success(),
                "{arguments:?}"
            );
        };
        git(&["init", "-q"]);
        let config = work.join(".git/config");
        let text = fs::read_to_string(&config).expect("git's configuration");
        self.files.push((config, text.into()));
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // Both have the same port, if the machine has IPv6.
            let port = self
                .tcp
                .first()
                .map_or(0, |first| first.local_addr().expect("an address").port());
            let address = address.replace(":0", &format!(":{port}"));
            self.tcp.extend(TcpListener::bind(address));
        }
        self.tcp.extend(TcpListener::bind((self.other_host(), 3128)));
        let udp = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        udp.set_nonblocking(true).expect("a socket that does not block");
        self.udp.push(udp);
        let name = SocketAddr::from_abstract_name(&self.mark).expect("a name");
        self.sockets
            .push(UnixListener::bind_addr(&name).expect("an abstract socket"));
        for directory in ["/run", "/tmp"] {
            let path = Path::new(directory).join(&self.mark);
            // Only root can write to /run.
            if let Ok(socket) = UnixListener::bind(&path) {
                self.sockets.push(socket);
                self.shared.push(path);
            }
        }
        let memory = Path::new("/dev/shm").join(&self.mark);
        self.file(memory.clone(), SECRET);
        self.shared.push(memory);
    }

    /// An address of this machine that no other test uses.
    fn other_host(&self) -> Ipv4Addr {
        let [_, second, third, fourth] = number_of(&self.sandbox).to_be_bytes();
        Ipv4Addr::new(127, second | 1, third, fourth.clamp(2, 250))
    }

    fn start(&self) -> Running {
        let mut command = self.sandbox.command(&["run", "-q", "--trust"]);
        command
            .env_remove("RALPH_SANDBOX")
            .env("SERVICE_PASSWORD", SECRET);
        // The attempts wait for the facts, which contain the process id.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let running = Running::start(&mut command);
        let facts = json!({
            "home": self.sandbox.path("home"),
            "state": self.sandbox.path("state"),
            "sibling": self.sandbox.path("sibling"),
            "run": self.sandbox.path("state").join("projects"),
            "ralph": env!("CARGO_BIN_EXE_ralph"),
            "bin": self.sandbox.path("bin"),
            "pid": running.pid(),
            "victim": self.victim.id(),
            "abstract": self.mark,
            "service": Path::new("/run").join(&self.mark),
            "x11": Path::new("/tmp").join(&self.mark),
            "tcp": self.tcp[0].local_addr().expect("an address").port(),
            "udp": self.udp[0].local_addr().expect("an address").port(),
            "other_host": self.other_host(),
            "segment": 0,
            "mark": self.mark,
        });
        fs::write(self.sandbox.work().join("facts.new"), facts.to_string()).expect("the facts");
        fs::rename(
            self.sandbox.work().join("facts.new"),
            self.sandbox.work().join("facts.json"),
        )
        .expect("the facts");
        running
    }

    /// Runs the attempts and returns their output.
    fn run(&self) -> String {
        let mut running = self.start();
        let limit = DEADLINE + DEADLINE;
        assert!(
            running.has_ended_within(limit),
            "ralph does not end:\n{}",
            self.output()
        );
        let status = running.kill();
        let output = self.output();
        assert_eq!(status.code(), Some(3), "ralph ended in its own way:\n{output}");
        output
    }

    fn output(&self) -> String {
        let raw = self.sandbox.iteration_file("0001", "stdout.raw");
        String::from_utf8_lossy(&raw).into_owned()
    }

    /// Checks what every mode promises.
    fn check(&mut self, output: &str) {
        assert!(output.contains("work done in the project"), "{output}");
        assert!(output.matches("attempt ").count() >= 60, "{output}");
        for (path, before) in &self.files {
            let now = fs::read(path).ok();
            assert_eq!(
                now.as_ref(),
                Some(before),
                "{} was changed:\n{output}",
                path.display()
            );
        }
        let home = self.sandbox.path("home");
        for new in [".profile-new", "by-systemd", "by-at"] {
            assert!(!home.join(new).exists(), "{new} was created:\n{output}");
        }
        for path in [
            format!("/var/spool/cron/crontabs/{}", self.mark),
            format!("/etc/systemd/system/{}.service", self.mark),
        ] {
            assert!(!Path::new(&path).exists(), "{path} was created");
        }
        let git = self.sandbox.work().join(".git");
        assert!(
            !git.join("commondir").exists() && !git.join("hooks/pre-commit").exists(),
            "{output}"
        );
        assert!(!self.sandbox.path("bin").join("git-evil").exists(), "{output}");
        assert!(
            !output.contains("the disk is readable")
                && !output.contains(":$6$")
                && !output.contains("root:*:"),
            "{output}"
        );
        let victim = self.victim.try_wait().expect("a child of ours");
        assert!(victim.is_none(), "another process was killed: {victim:?}");
        for socket in &self.sockets {
            socket
                .set_nonblocking(true)
                .expect("a socket that does not block");
            assert!(socket.accept().is_err(), "a Unix socket was reached:\n{output}");
        }
        let mark = self.mark.clone();
        wait_until("the end of the daemon", DEADLINE, || !is_running(&mark));
        let journal = self.sandbox.journal_text();
        assert!(
            journal.contains("\"topic\":\"work.done\""),
            "ralph emit works:\n{output}\n{journal}"
        );
        assert!(journal.contains("agents can only publish events"), "{journal}");
        self.sandbox.ralph(&["verify"]).exits_with(0);
        let log = Command::new("git")
            .args(["log", "--oneline"])
            .current_dir(self.sandbox.work())
            .output()
            .expect("git");
        assert!(
            String::from_utf8_lossy(&log.stdout).contains("done"),
            "commits work"
        );
    }

    fn assert_secrets_are_unread(&self, output: &str) {
        assert!(!output.contains(SECRET), "a secret was read:\n{output}");
    }

    /// Checks that no listener got a byte.
    fn assert_nothing_was_sent(&self, output: &str) {
        for listener in &self.tcp {
            listener
                .set_nonblocking(true)
                .expect("a socket that does not block");
            assert!(listener.accept().is_err(), "{listener:?} was reached:\n{output}");
        }
        let mut buffer = [0; 64];
        for socket in &self.udp {
            assert!(socket.recv(&mut buffer).is_err(), "a packet arrived:\n{output}");
        }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = (self.victim.kill(), self.victim.wait());
        for path in &self.shared {
            let _ = fs::remove_file(path);
        }
    }
}

/// A number that differs between sandboxes.
fn number_of(sandbox: &Sandbox) -> u32 {
    let name = sandbox.path("work").display().to_string();
    name.bytes()
        .fold(7, |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
}

/// Whether a process with this text in its command line runs.
pub(super) fn is_running(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter(|process| process.file_name().to_string_lossy().parse::<i32>().is_ok())
        .any(|process| {
            let mut text = Vec::new();
            let file = fs::File::open(process.path().join("cmdline"));
            let read = file.and_then(|mut file| file.read_to_end(&mut text));
            read.is_ok() && String::from_utf8_lossy(&text).contains(mark)
        })
}

/// The attempts need Python and namespaces.
#[track_caller]
fn is_possible() -> bool {
    let namespaces = Command::new("unshare")
        .args(["-r", "-m", "-p", "-n", "-f", "true"])
        .status();
    let able = which::which("python3").is_ok() && namespaces.is_ok_and(|status| status.success());
    if !able {
        skip("python3 or user namespaces are missing");
    }
    able
}

#[test]
fn a_workspace_sandbox_stops_every_attempt_on_files_processes_and_sockets() {
    if !is_possible() {
        return;
    }
    let mut outside = Outside::new("sandbox: {mode: workspace}");
    let output = outside.run();
    outside.check(&output);
    let before_environment = output.replace(&format!("SERVICE_PASSWORD={SECRET}"), "");
    outside.assert_secrets_are_unread(&before_environment);
}

#[test]
fn a_strict_sandbox_with_a_network_list_stops_every_attempt() {
    if !is_possible() {
        return;
    }
    let mut outside = Outside::new("sandbox: {mode: strict, net: [allowed.example]}");
    let output = outside.run();
    outside.check(&output);
    outside.assert_secrets_are_unread(&output);
    outside.assert_nothing_was_sent(&output);
    let denied = outside.sandbox.records("denied");
    let hosts: Vec<&str> = denied
        .iter()
        .filter_map(|record| record["host"].as_str())
        .collect();
    assert!(
        hosts.iter().any(|host| host.starts_with("evil.example:")),
        "{denied:?}"
    );
    assert_eq!(
        hosts.len(),
        hosts.iter().collect::<std::collections::BTreeSet<_>>().len(),
        "each host is reported once: {hosts:?}"
    );
}
