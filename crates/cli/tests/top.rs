//! `plimsoll top` on a run of `plimsoll train`: listed, looked at by process id and by name, and
//! gone when the run is; and what it says of what cannot be looked at.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A folder that goes with its test, which stands for the user's runtime folder.
struct Runtime(PathBuf);

impl Runtime {
    fn new(name: &str) -> Runtime {
        // Short: a socket's path has at most about a hundred bytes.
        let folder = std::env::temp_dir().join(format!("plimsoll-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let runtime = Runtime(folder);
        fs::create_dir(runtime.sockets()).unwrap();
        fs::set_permissions(runtime.sockets(), fs::Permissions::from_mode(0o700)).unwrap();
        runtime
    }

    fn sockets(&self) -> PathBuf {
        self.0.join("plimsoll")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        // The second folder too, where runs of other tests may be.
        command.env("XDG_RUNTIME_DIR", &self.0).env("TMPDIR", &self.0);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// Exit status, standard output and standard error of `plimsoll top`.
    fn top(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(&[&["top"], arguments].concat()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A training run that goes on until it is dropped.
struct Training(Child);

impl Training {
    fn start(runtime: &Runtime) -> Training {
        let text: String = (0..600u32).map(|n| format!("{} is word {n}. ", n * n % 97)).collect();
        fs::write(runtime.0.join("text"), text).unwrap();
        let settings = "train --sample 0 --steps 1000000 --batch 4 --context 32 --layers 1 --width 32 --heads 2 --vocabulary 300";
        let mut command = runtime.command(&settings.split(' ').collect::<Vec<_>>());
        command.arg("--data").arg(runtime.0.join("text"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let run = Training(command.spawn().unwrap());
        let socket = runtime.sockets().join(format!("{}.sock", run.0.id()));
        let began = Instant::now();
        while !socket.exists() {
            assert!(began.elapsed() < Duration::from_secs(60), "the run serves no figures");
            std::thread::sleep(Duration::from_millis(20));
        }
        run
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_run_is_listed_and_looked_at_until_it_ends() {
    let runtime = Runtime::new("top");
    let run = Training::start(&runtime);
    let pid = run.0.id().to_string();
    let row = |said: &str| said.lines().find(|line| line.contains(&pid)).map(str::to_string);

    let (status, said, _) = runtime.top(&[]);
    assert_eq!(status, Some(0));
    let listed = row(&said).unwrap_or_else(|| panic!("{pid} is not in\n{said}"));
    assert!(listed.contains("plimsoll train") && listed.contains("Plimsoll 0."), "{listed}");

    // Growth and time are known once two steps have ended while somebody looks, which on a busy
    // machine may take more than one look.
    let began = Instant::now();
    let frame = loop {
        let (status, frame, errors) = runtime.top(&[&pid]);
        assert_eq!((status, errors.as_str()), (Some(0), ""));
        let parameters = frame.lines().find(|line| line.starts_with("parameter "));
        if parameters.is_some_and(|line| !line.ends_with('-')) {
            break frame;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "no growth is told in\n{frame}");
    };
    assert!(frame.lines().all(|line| line.chars().count() <= 80), "{frame}");
    assert!(!frame.contains('\x1b'), "a pipe gets no colours: {frame}");
    assert!(frame.starts_with(&format!("plimsoll train  pid {pid}  Plimsoll ")), "{frame}");
    let words = |start: &str| -> Vec<String> {
        let line = frame.lines().find(|line| line.starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no line {start} in\n{frame}"));
        line.split_whitespace().map(str::to_string).collect()
    };
    assert!(frame.contains(" a step; process "), "{frame}");
    // The parameters of this model, whatever else is alive: exact, and they do not grow.
    let parameters = words("parameter ");
    assert_eq!(parameters[parameters.len() - 2..], ["0", "B"]);
    assert!(words("cpu ").len() >= 9, "{frame}");
    for part in ["by kind", "by module", "by line"] {
        assert!(frame.lines().any(|line| line.starts_with(part)), "{part} in\n{frame}");
    }
    assert!(frame.contains("model.rs:"), "{frame}");

    // A run of another test may lie in `/tmp`, where everybody looks; then both are named.
    let (status, by_name, errors) = runtime.top(&["plimsoll train", "--once"]);
    match status {
        Some(0) => assert!(by_name.starts_with(&format!("plimsoll train  pid {pid}")), "{by_name}"),
        _ => assert!(errors.contains("are called `plimsoll train`") && errors.contains(&pid)),
    }

    // Killed, it leaves its socket behind, which the next look removes.
    drop(run);
    let socket = runtime.sockets().join(format!("{pid}.sock"));
    assert!(socket.exists());
    let (status, _, errors) = runtime.top(&[&pid]);
    assert_eq!(status, Some(1));
    assert!(errors.contains(&format!("there is no process {pid}")), "{errors}");
    assert!(!socket.exists());
    let (_, said, _) = runtime.top(&[]);
    assert_eq!(row(&said), None);
}

#[test]
fn what_cannot_be_looked_at_says_why() {
    let runtime = Runtime::new("not");
    // No socket, and one that answers nothing that is understood.
    fs::write(runtime.sockets().join("4000001.sock"), "").unwrap();
    let silent = UnixListener::bind(runtime.sockets().join("4000002.sock")).unwrap();
    std::thread::spawn(move || {
        for stream in silent.incoming() {
            let mut stream = stream.unwrap();
            // Nothing comes of one that only looks whether somebody listens.
            let _ = BufReader::new(&stream).read_line(&mut String::new());
            let _ = stream.write_all(b"\x1b[2Jhello\n");
        }
    });
    let (_, listed, _) = runtime.top(&[]);
    assert!(listed.contains("4000001") && listed.contains("is not a socket"), "{listed}");
    assert!(listed.contains("4000002") && listed.contains("not with figures"), "{listed}");
    assert!(!listed.contains("\x1b[2J"));
    let (status, _, errors) = runtime.top(&["4000001"]);
    assert!(status == Some(1) && errors.contains("is not a socket"), "{errors}");
    let (status, _, errors) = runtime.top(&["4000002"]);
    assert!(status == Some(1) && errors.contains("not with figures"), "{errors}");
    let (status, _, errors) = runtime.top(&["no-such-program"]);
    assert!(status == Some(1) && errors.contains("is called `no-such-program`"), "{errors}");
}

#[test]
fn a_folder_that_others_may_enter_is_not_used() {
    let runtime = Runtime::new("open");
    fs::set_permissions(runtime.sockets(), fs::Permissions::from_mode(0o777)).unwrap();
    let _put_there = UnixListener::bind(runtime.sockets().join("4000003.sock")).unwrap();
    let (_, listed, _) = runtime.top(&[]);
    assert!(!listed.contains("4000003"), "{listed}");
}

#[test]
fn gpus_are_shown_or_why_they_cannot_be() {
    let runtime = Runtime::new("gpus");
    let (status, said, errors) = runtime.top(&["--device", "--once"]);
    match status {
        Some(0) => assert!(said.contains("GPU 0  ") || said.contains("no GPU"), "{said}"),
        _ => assert!(errors.starts_with("error: the GPUs cannot be read: "), "{errors}"),
    }
}
