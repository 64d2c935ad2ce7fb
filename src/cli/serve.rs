//! `ralph serve`: starts the web page, prints its address and opens a browser.

use std::process::{Command, Stdio};

use crate::ok_or_log;
use crate::run::Host;
use crate::serve::{Listen, ServeAddress, ServeSettings, Steering, TlsFiles, serve as serve_page};
use crate::store::state_directory;
use crate::ui::Terminal;

use super::args::ServeArguments;
use super::error::CliError;
use super::exit::Exit;

/// Programs that open an address in the user's browser.
const OPENERS: [&str; 2] = ["xdg-open", "open"];

pub(super) fn serve(arguments: &ServeArguments, terminal: &Terminal, host: &Host) -> Result<Exit, CliError> {
    let settings = ServeSettings {
        listen: listen(arguments),
        steering: match arguments.steer {
            true => Steering::On,
            false => Steering::Off,
        },
        hosts: arguments
            .proxy_host
            .iter()
            .chain(&arguments.host)
            .cloned()
            .collect(),
    };
    let mut first = true;
    serve_page(&settings, &state_directory()?, host, |address| {
        // Without a reader of the address, the page still works in browsers that are signed in.
        let _ = terminal.print(&announcement(address, settings.steering, first));
        if std::mem::take(&mut first) && arguments.open {
            open_browser(&address.sign_in);
        }
    })?;
    Ok(Exit::Success)
}

fn listen(arguments: &ServeArguments) -> Listen {
    // The arguments require an address and a certificate together.
    if let (Some(address), Some(certificate)) = (arguments.listen, &arguments.tls_cert) {
        let key = arguments.tls_key.as_ref().unwrap_or(certificate);
        let tls = TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        };
        return Listen::Encrypted { address, tls };
    }
    match &arguments.socket {
        Some(path) => Listen::Socket(path.clone()),
        None => Listen::Port(arguments.port),
    }
}

fn announcement(address: &ServeAddress, steering: Steering, first: bool) -> String {
    let sign_in = &address.sign_in;
    if !first {
        return format!("To sign in with another browser: {sign_in}\n");
    }
    let socket = match &address.listening {
        Listen::Port(_) | Listen::Encrypted { .. } => String::new(),
        Listen::Socket(path) => format!(
            "Listening on {0}. To reach it from another machine: ssh -L 8080:{0} HOST, then open the address with port 8080.\n",
            path.display()
        ),
    };
    let mode = match steering {
        Steering::Off => "Read-only; --steer allows commands.",
        Steering::On => "The page can send commands to runs.",
    };
    format!(
        "{socket}Open {sign_in}\nThe address signs one browser in. {mode} Ctrl-C stops the server, not the runs.\n"
    )
}

/// Without a browser, the printed address is enough.
fn open_browser(address: &str) {
    for opener in OPENERS {
        let opened = Command::new(opener)
            .arg(address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if let Ok(mut child) = opened {
            let wait = std::thread::Builder::new().name("browser".into());
            ok_or_log!(wait.spawn(move || child.wait()), "cannot wait for the browser");
            return;
        }
    }
}
