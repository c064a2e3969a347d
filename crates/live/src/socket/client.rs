//! The side that asks: which programs serve figures, and the figures of one. Whatever is at the
//! other end is not trusted: it must be the same user's, it must answer in time and within bounds,
//! and what it says is cleaned of what would steer a terminal.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_core::{Error, ErrorKind, Result};
use serde_json::{Value, json};

use crate::figures::{Figures, MOST_BYTES, VERSION};
use crate::{folder, system};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A socket in one of the folders, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The process that its name tells.
    pub pid: u32,
    /// Where it is.
    pub path: PathBuf,
}

/// The programs of this user that can be asked. Sockets that programs left behind are removed.
///
/// ```
/// for program in plimsoll_live::programs() {
///     assert!(program.path.ends_with(format!("{}.sock", program.pid)));
/// }
/// ```
pub fn programs() -> Vec<Found> {
    let mut found: Vec<Found> = folder::folders()
        .iter()
        .filter(|place| folder::check(place).is_ok())
        .flat_map(|place| clean(place))
        .collect();
    found.sort_by_key(|one| one.pid);
    found
}

/// Removes from a folder the sockets at which nobody listens; the others.
pub(super) fn clean(folder: &Path) -> Vec<Found> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let named = |path: PathBuf| {
        let name = path.file_name()?.to_str()?;
        let pid = name.strip_suffix(".sock")?.parse().ok()?;
        Some(Found { pid, path })
    };
    let mut found: Vec<Found> = entries.filter_map(|entry| named(entry.ok()?.path())).collect();
    found.retain(|one| {
        let is_left = is_socket(&one.path) && is_refused(&one.path);
        if is_left {
            let _ = fs::remove_file(&one.path);
        }
        !is_left
    });
    found
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| facts.file_type().is_socket())
}

/// Neither waits: a program that lets nobody in at the moment is there.
fn is_refused(path: &Path) -> bool {
    let tried = system::connect(path, Duration::ZERO);
    tried.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Whether somebody listens there.
pub(super) fn is_answered(path: &Path) -> bool {
    match system::connect(path, Duration::ZERO) {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

/// A program that is being asked.
#[derive(Debug)]
pub struct Connection {
    reader: BufReader<UnixStream>,
    path: PathBuf,
}

impl Connection {
    /// Connects to a program's socket; see [`Server`](crate::Server) for an example.
    pub fn open(path: &Path) -> Result<Connection> {
        Connection::open_within(path, PATIENCE)
    }

    fn open_within(path: &Path, patience: Duration) -> Result<Connection> {
        let failed =
            |what: String| Error::new(ErrorKind::Io, format!("`{}` {what}", path.display()));
        let stream = match fs::symlink_metadata(path) {
            Err(cause) => return Err(failed(format!("cannot be opened: {cause}"))),
            Ok(facts) if !facts.file_type().is_socket() => {
                return Err(failed("is not a socket".to_string()));
            }
            Ok(_) => system::connect(path, patience),
        };
        let stream = stream.map_err(|cause| {
            let what = match cause.kind() {
                io::ErrorKind::ConnectionRefused => {
                    "was left behind by a program that has ended".into()
                }
                io::ErrorKind::PermissionDenied => "belongs to another user".into(),
                io::ErrorKind::WouldBlock => {
                    "lets nobody in: the program may be stopped, and others wait for it".into()
                }
                _ => format!("cannot be opened: {cause}"),
            };
            failed(what)
        })?;
        let tried = stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
            .and_then(|()| system::peer(&stream));
        match tried {
            Ok((user, _)) if user == system::user_id() => {}
            Ok((user, _)) => return Err(failed(format!("is served by another user ({user})"))),
            Err(cause) => return Err(failed(format!("cannot be asked: {cause}"))),
        }
        Ok(Connection { reader: BufReader::new(stream), path: path.to_path_buf() })
    }

    /// What the program says now.
    pub fn figures(&mut self) -> Result<Figures> {
        let line = self.ask().map_err(|cause| {
            let what = match cause.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    format!(
                        "does not answer within {} s: the program may be stopped",
                        PATIENCE.as_secs()
                    )
                }
                io::ErrorKind::InvalidData => "answers with something that is not text".to_string(),
                _ => "is closed: the program has ended".to_string(),
            };
            self.failed(&what)
        })?;
        if line.is_empty() {
            return Err(self.failed("is closed: the program has ended"));
        }
        self.read(&line)
    }

    fn ask(&mut self) -> io::Result<String> {
        let request = json!({ "live": VERSION, "ask": "figures" });
        let sent = self.reader.get_mut().write_all(format!("{request}\n").as_bytes());
        let mut line = String::new();
        // Who refuses may have said why and closed before it was asked.
        let heard = self.reader.by_ref().take(MOST_BYTES).read_line(&mut line);
        if line.is_empty() {
            sent?;
        }
        heard.map(|_| line)
    }

    fn read(&self, line: &str) -> Result<Figures> {
        let not_figures = || self.failed("answers, but not with figures: it is not Plimsoll's");
        let mut said: Value = serde_json::from_str(line).map_err(|_| not_figures())?;
        let version = said["live"].as_u64().ok_or_else(not_figures)?;
        if version != u64::from(VERSION) {
            return Err(self.failed(&format!(
                "speaks version {version} of the protocol, this command version {VERSION}: use those of one release"
            )));
        }
        make_printable(&mut said);
        if let Some(why) = said["error"].as_str() {
            return Err(self.failed(&format!("refuses: {why}")));
        }
        serde_json::from_value(said).map_err(|_| not_figures())
    }

    fn failed(&self, what: &str) -> Error {
        Error::new(ErrorKind::Io, format!("`{}` {what}", self.path.display()))
    }
}

/// Takes what would steer a terminal out of every text.
fn make_printable(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().any(char::is_control) => {
            *text = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        }
        Value::Array(values) => values.iter_mut().for_each(make_printable),
        Value::Object(values) => values.values_mut().for_each(make_printable),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn place(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("plimsoll-live-ask-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// What is said of a program that answers with these bytes and then closes.
    fn told(name: &str, bytes: &'static [u8]) -> Result<Figures> {
        let folder = place(name);
        let path = folder.join("1.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let answers = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut asked = String::new();
            BufReader::new(&stream).read_line(&mut asked).unwrap();
            (&stream).write_all(bytes).unwrap();
        });
        let figures = Connection::open(&path).unwrap().figures();
        answers.join().unwrap();
        fs::remove_dir_all(folder).unwrap();
        figures
    }

    #[test]
    fn garbage_is_an_error_and_never_reaches_the_terminal() {
        let error = |name, bytes| told(name, bytes).unwrap_err().to_string();
        assert!(error("words", b"hello\n").contains("not with figures"));
        assert!(error("bytes", b"\xff\xfe\n").contains("not text"));
        assert!(error("none", b"").contains("has ended"));
        assert!(error("half", b"{\"live\": 1").contains("not with figures"));
        assert!(error("shape", b"{\"live\": 1, \"step\": \"x\"}\n").contains("not with figures"));
        assert!(error("later", b"{\"live\": 9}\n").contains("speaks version 9"));
        let refused = error("refused", b"{\"live\": 1, \"error\": \"no \\u001b[2J\"}\n");
        assert!(refused.contains("refuses: no \u{fffd}[2J"), "{refused}");
        let figures =
            told("steering", b"{\"live\": 1, \"process\": {\"name\": \"a\\u001b]0;b\\u0007\"}}\n");
        assert_eq!(figures.unwrap().process.name, "a\u{fffd}]0;b\u{fffd}");
    }

    #[test]
    fn a_refusal_is_heard_though_the_other_end_has_closed() {
        let folder = place("early");
        let path = folder.join("1.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let mut connection = Connection::open(&path).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"{\"live\": 1, \"error\": \"full\"}\n").unwrap();
        drop(stream);
        let refused = connection.figures().unwrap_err().to_string();
        assert!(refused.contains("refuses: full"), "{refused}");
        let gone = connection.figures().unwrap_err().to_string();
        assert!(gone.contains("has ended"), "{gone}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_program_that_lets_nobody_in_is_there_and_holds_nobody_up() {
        let folder = place("full");
        let path = folder.join("5.sock");
        let listener = UnixListener::bind(&path).unwrap();
        // Who connected waits to be let in, also after it has gone: until there is no room.
        let room = (0..100_000).take_while(|_| system::connect(&path, Duration::ZERO).is_ok());
        assert!(room.count() > 0);
        let full = system::connect(&path, Duration::ZERO).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(clean(&folder), [Found { pid: 5, path: path.clone() }]);
        assert!(is_answered(&path));
        let refused = Connection::open_within(&path, Duration::from_millis(1)).unwrap_err();
        assert!(refused.to_string().contains("lets nobody in"), "{refused}");
        // It is let in as soon as there is room again.
        drop(listener.accept().unwrap());
        assert!(Connection::open(&path).is_ok());
        drop(listener);
        assert!(!is_answered(&path));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_opened_says_why() {
        let folder = place("open");
        let error = |path: &Path| Connection::open(path).unwrap_err().to_string();
        assert!(error(&folder.join("2.sock")).contains("No such file"));
        let file = folder.join("3.sock");
        fs::write(&file, "").unwrap();
        assert!(error(&file).contains("is not a socket"));
        let left = folder.join("4.sock");
        drop(UnixListener::bind(&left).unwrap());
        assert!(error(&left).contains("left behind"));
        // What is left behind goes; what is no socket is not ours to remove.
        let found = clean(&folder);
        assert_eq!(found, [Found { pid: 3, path: file.clone() }]);
        assert!(file.exists() && !left.exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
