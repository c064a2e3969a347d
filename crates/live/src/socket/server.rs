//! The side of the program: a thread that waits for somebody who asks, and costs nothing while
//! nobody does. Only the same user is answered: the folder and the socket can be opened by nobody
//! else, and who connects is checked once more.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use plimsoll_core::{Error, ErrorKind, Result};
use serde_json::{Value, json};

use super::client;
use crate::figures::{Figures, VERSION};
use crate::{folder, steps, system};

/// Connections that are answered at a time.
const MOST_CONNECTIONS: usize = 8;
/// A request has at most so many bytes.
const MOST_ASKED: u64 = 4096;
/// Who has asked nothing for so long is let go.
const PATIENCE: Duration = Duration::from_secs(60);

type Source = Arc<dyn Fn() -> Figures + Send + Sync>;
type Connections = Arc<Mutex<Vec<(UnixStream, JoinHandle<()>)>>>;

/// Serves a program's figures until it is dropped, which removes the socket.
///
/// ```
/// use plimsoll_live::{Connection, Figures, Server, VERSION};
/// let folder = std::env::temp_dir().join(format!("plimsoll-live-doc-{}", std::process::id()));
/// std::fs::create_dir(&folder)?;
/// # use std::os::unix::fs::PermissionsExt;
/// # std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))?;
/// let seven = || Figures { live: VERSION, step: 7, ..Figures::default() };
/// let server = Server::start_in(&folder, seven)?;
/// let mut connection = Connection::open(server.path())?;
/// assert_eq!(connection.figures()?.step, 7);
/// drop(server);
/// assert!(std::fs::remove_dir(&folder).is_ok(), "nothing is left");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    pid: u32,
    listener: Arc<UnixListener>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    connections: Connections,
}

impl Server {
    /// Begins to serve what `source` says, in the first of [`folders`](crate::folders) that can be
    /// used. A process serves once.
    pub fn start(source: impl Fn() -> Figures + Send + Sync + 'static) -> Result<Server> {
        let folder = folder::opened()?;
        client::clean(&folder);
        Server::start_in(&folder, source)
    }

    /// The same in a folder that is there.
    pub fn start_in(
        folder: &Path,
        source: impl Fn() -> Figures + Send + Sync + 'static,
    ) -> Result<Server> {
        folder::check(folder)?;
        let pid = std::process::id();
        let path = folder.join(format!("{pid}.sock"));
        let failed = |cause: io::Error| {
            let message = format!("cannot serve figures at `{}`: {cause}", path.display());
            Error::new(ErrorKind::Io, message)
        };
        if client::is_answered(&path) {
            return Err(failed(io::Error::other("this process serves them already")));
        }
        let listener = Arc::new(bound(folder, pid, &path).map_err(failed)?);
        let is_over = Arc::new(AtomicBool::new(false));
        let connections = Connections::default();
        let (over, open, source) =
            (is_over.clone(), connections.clone(), Arc::new(source) as Source);
        let listening = listener.clone();
        let thread = thread::Builder::new()
            .name("plimsoll live".to_string())
            .spawn(move || accept(&listening, &over, &open, &source))
            .map_err(failed)?;
        steps::follow(true);
        Ok(Server { path, pid, listener, is_over, thread: Some(thread), connections })
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A forked process has a copy of this, and neither the thread nor the socket's file.
        if self.pid != std::process::id() {
            return;
        }
        steps::follow(false);
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread: by its name where the system asks for that, and by the socket itself
        // where somebody has removed the file.
        let _ = UnixStream::connect(&self.path);
        system::stop_listening(&self.listener);
        let _ = fs::remove_file(&self.path);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for (stream, thread) in self.connections.lock().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
            let _ = thread.join();
        }
    }
}

/// A socket that appears under its name only when it listens: one that does not is taken for left
/// behind, and removed.
fn bound(folder: &Path, pid: u32, path: &Path) -> io::Result<UnixListener> {
    let early = folder.join(format!(".{pid}.new"));
    match fs::remove_file(&early) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&early)?;
    fs::set_permissions(&early, fs::Permissions::from_mode(0o600))?;
    fs::rename(&early, path)?;
    Ok(listener)
}

fn accept(listener: &UnixListener, is_over: &AtomicBool, open: &Connections, source: &Source) {
    for stream in listener.incoming() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else {
            // Too many open files, say: whoever opened them may close them.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        if !system::peer(&stream).is_ok_and(|(user, _)| user == system::user_id()) {
            continue;
        }
        let mut open = open.lock();
        open.retain(|(_, thread)| !thread.is_finished());
        if open.len() >= MOST_CONNECTIONS {
            let full = format!("{MOST_CONNECTIONS} others are looking at this program already");
            let _ = answer(&stream, &refusal(&full));
            continue;
        }
        let source = source.clone();
        let builder = thread::Builder::new().name("plimsoll live answers".to_string());
        if let Ok(kept) = stream.try_clone()
            && let Ok(thread) = builder.spawn(move || {
                // It ends with an error; what is kept of it must not hold it open.
                let _ = converse(&stream, &source);
                let _ = stream.shutdown(Shutdown::Both);
            })
        {
            open.push((kept, thread));
        }
    }
}

/// Answers until the other end is closed, or says what is no request.
fn converse(stream: &UnixStream, source: &Source) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.by_ref().take(MOST_ASKED).read_line(&mut line)? == 0 {
            return Ok(());
        }
        match request(&line) {
            Ok(()) => {
                steps::asked();
                answer(stream, &serde_json::to_string(&source())?)?;
            }
            Err(why) => return answer(stream, &refusal(&why)),
        }
    }
}

/// Whether a line asks for figures.
fn request(line: &str) -> Result<(), String> {
    let asked: Value =
        serde_json::from_str(line).map_err(|_| "a request is a line of JSON".to_string())?;
    match (asked["live"].as_u64(), asked["ask"].as_str()) {
        (Some(version), _) if version != u64::from(VERSION) => {
            Err(format!("this program speaks version {VERSION} of the protocol, not {version}"))
        }
        (Some(_), Some("figures")) => Ok(()),
        _ => Err("nothing else can be asked for than figures".to_string()),
    }
}

fn refusal(why: &str) -> String {
    json!({ "live": VERSION, "error": why }).to_string()
}

fn answer(mut stream: &UnixStream, text: &str) -> io::Result<()> {
    stream.write_all(format!("{text}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Connection;

    fn scratch(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("plimsoll-live-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        folder
    }

    fn seven() -> Figures {
        Figures { live: VERSION, step: 7, ..Figures::default() }
    }

    #[test]
    fn a_server_ends_although_its_file_is_gone() {
        let folder = scratch("gone");
        let server = Server::start_in(&folder, seven).unwrap();
        let mut open = Connection::open(server.path()).unwrap();
        assert_eq!(open.figures().unwrap(), seven());
        fs::remove_file(server.path()).unwrap();
        drop(server);
        assert!(open.figures().is_err());
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn a_server_answers_while_it_lives_and_leaves_nothing() {
        let folder = scratch("server");
        let server = Server::start_in(&folder, seven).unwrap();
        let mode = fs::metadata(server.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut first = Connection::open(server.path()).unwrap();
        let mut second = Connection::open(server.path()).unwrap();
        for _ in 0..3 {
            assert_eq!(first.figures().unwrap(), seven());
            assert_eq!(second.figures().unwrap(), seven());
        }
        let twice = Server::start_in(&folder, seven).unwrap_err().to_string();
        assert!(twice.contains("serves them already"), "{twice}");
        let path = server.path().to_path_buf();
        drop(server);
        let gone = first.figures().unwrap_err().to_string();
        assert!(gone.contains("has ended"), "{gone}");
        assert!(!path.exists());
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn what_is_no_request_is_told_so() {
        let folder = scratch("request");
        let server = Server::start_in(&folder, seven).unwrap();
        for (sent, told) in [
            ("figures please\n", "a line of JSON"),
            ("{\"live\": 2, \"ask\": \"figures\"}\n", "version 1 of the protocol, not 2"),
            ("{\"live\": 1, \"ask\": \"tensors\"}\n", "nothing else"),
            ("[]\n", "nothing else"),
        ] {
            let stream = UnixStream::connect(server.path()).unwrap();
            (&stream).write_all(sent.as_bytes()).unwrap();
            let mut said = String::new();
            // It closes the connection then.
            (&stream).read_to_string(&mut said).unwrap();
            assert!(said.contains(told), "{sent}: {said}");
        }
        drop(server);
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn only_so_many_are_answered_at_a_time() {
        let folder = scratch("many");
        let server = Server::start_in(&folder, seven).unwrap();
        let mut all: Vec<Connection> =
            (0..MOST_CONNECTIONS).map(|_| Connection::open(server.path()).unwrap()).collect();
        for one in &mut all {
            one.figures().unwrap();
        }
        let mut late = Connection::open(server.path()).unwrap();
        let error = late.figures().unwrap_err().to_string();
        assert!(error.contains("8 others are looking"), "{error}");
        drop(all);
        drop(server);
        fs::remove_dir(&folder).unwrap();
    }
}
