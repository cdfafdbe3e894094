//! `waxlog relay` from the outside: where it listens, what it keeps, how it ends.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{kill_process, Pid, Signal};

struct Relay {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: String,
}

fn command(home: &Path, listen: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waxlog"));
    command.args(["relay", "--listen", listen]).env_clear().env("HOME", home);
    command
}

impl Relay {
    fn start(home: &Path) -> Self {
        let mut command = command(home, "127.0.0.1:0");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.trim().rsplit("://").next().unwrap().to_owned();
        assert_eq!(line, format!("http://{address} and ws://{address}\n"));
        Self { child, stdout, address }
    }

    /// Who the relay says it is.
    fn identity(&self) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET /info HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let document: serde_json::Value =
            serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        document["self"].as_str().unwrap().to_owned()
    }

    /// Ends it as a service manager does; gives what it still said.
    fn stop(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // It has ended already unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_relay_keeps_its_identity_to_itself_and_over_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let relay = Relay::start(home.path());
    let identity = relay.identity();
    assert_eq!(relay.stop(), "");
    let folder = home.path().join(".local/state/waxlog/relay");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("key"))), (0o700, 0o600));
    let again = Relay::start(home.path());
    assert_eq!(again.identity(), identity);
    again.stop();
}

#[test]
fn a_relay_that_is_told_to_stop_ends_its_open_sockets() {
    let home = tempfile::tempdir().unwrap();
    let relay = Relay::start(home.path());
    let mut stream = TcpStream::connect(&relay.address).unwrap();
    let key = "AAAAAAAAAAAAAAAAAAAAAA==";
    write!(
        stream,
        "GET / HTTP/1.1\r\nhost: {}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n\r\n",
        relay.address
    )
    .unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 101");
    let reader = std::thread::spawn(move || {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        rest
    });
    assert_eq!(relay.stop(), "");
    let rest = reader.join().unwrap();
    assert!(rest.ends_with(b"relay restarting"), "{}", String::from_utf8_lossy(&rest));
}

#[test]
fn what_cannot_be_served_is_named() {
    let home = tempfile::tempdir().unwrap();
    let relay = Relay::start(home.path());
    let other = tempfile::tempdir().unwrap();
    let failed = |mut command: Command| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let taken = failed(command(other.path(), &relay.address));
    assert!(taken.contains(&relay.address) && taken.contains("--listen"), "{taken}");
    let nonsense = failed(command(other.path(), "nowhere"));
    assert!(nonsense.contains("\"nowhere\""), "{nonsense}");
    for (name, value) in [
        ("RELAY_URL", "https://relay.example"),
        ("BUZZ_MAX_FRAME_BYTES", "none"),
        ("BUZZ_RELAY_PRIVATE_KEY", "canary"),
        ("BUZZ_REAPER_INTERVAL_SECS", "0"),
    ] {
        let mut command = command(other.path(), "127.0.0.1:0");
        command.env(name, value);
        let said = failed(command);
        assert!(said.contains(name) && !said.contains("canary"), "{said}");
    }
    relay.stop();
}

#[test]
fn an_address_that_others_reach_is_warned_of() {
    let home = tempfile::tempdir().unwrap();
    let mut child = command(home.path(), "0.0.0.0:0");
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("can be reached from other machines") && said.contains("RELAY_URL"), "{said}");
}
