//! The server of `plimsoll view --serve`: HTTP on loopback, for one snapshot and one secret. It
//! reads no file, writes none, and answers only its own routes (`routes.rs`), only GET, and only to
//! who knows the token of its address.

mod request;
mod routes;
mod token;

use std::fmt;
use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::{Error, ErrorKind, Result};

use super::scene::Scene;
use request::Request;
use routes::{Response, Routes};
use token::Token;

/// Connections that are answered at the same time; further ones are told to come back.
const MOST_CONNECTIONS: usize = 16;
/// Bytes of a request's lines and headers; there is never a body.
const MOST_REQUEST_BYTES: usize = 8 << 10;
/// How long a client may take to send its request, and to take its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server that is bound but does not answer yet.
///
/// ```no_run
/// # fn show(scene: &plimsoll_report::view::Scene<'_>) -> plimsoll_core::Result<()> {
/// let server = plimsoll_report::view::Server::bind(0)?;
/// println!("{}", server.url());
/// server.run(scene, "snapshot.pickle");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
    is_stopped: AtomicBool,
}

/// Where the page is. It contains the secret: whoever has it may look at the snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    port: u16,
    token: String,
}

impl Url {
    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path, from the first slash to the last.
    pub fn path(&self) -> String {
        format!("/{}/", self.token)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://127.0.0.1:{}{}", self.port, self.path())
    }
}

impl Server {
    /// Takes a port of 127.0.0.1; 0 takes a free one.
    pub fn bind(port: u16) -> Result<Server> {
        let failed = |cause: std::io::Error| {
            Error::new(ErrorKind::Io, format!("cannot serve on 127.0.0.1:{port}")).because(cause)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Server { listener, address, token: Token::new(), is_stopped: AtomicBool::new(false) })
    }

    /// Where the page is.
    pub fn url(&self) -> Url {
        Url { port: self.address.port(), token: self.token.text().to_string() }
    }

    /// Answers until [`Server::stop`].
    pub fn run(&self, scene: &Scene<'_>, title: &str) {
        let routes = Routes::new(scene, title);
        let busy = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while let Ok((stream, _)) = self.accept() {
                if self.is_stopped.load(Ordering::SeqCst) {
                    return;
                }
                if busy.fetch_add(1, Ordering::SeqCst) >= MOST_CONNECTIONS {
                    answer(stream, &Response::busy());
                    busy.fetch_sub(1, Ordering::SeqCst);
                    continue;
                }
                let (routes, busy) = (&routes, &busy);
                scope.spawn(move || {
                    self.converse(stream, routes);
                    busy.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
    }

    /// Lets [`Server::run`] return once the answers under way are sent.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        // Wakes `accept`; whether it connects does not matter.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }

    /// A connection. One that was given up before we took it is no reason to end.
    fn accept(&self) -> std::io::Result<(TcpStream, SocketAddr)> {
        loop {
            match self.listener.accept() {
                Err(error)
                    if matches!(
                        error.kind(),
                        IoErrorKind::ConnectionAborted | IoErrorKind::Interrupted
                    ) => {}
                other => return other,
            }
        }
    }

    /// One request, one answer.
    fn converse(&self, mut stream: TcpStream, routes: &Routes<'_, '_>) {
        let Some(head) = read_head(&mut stream) else { return };
        let response = match Request::parse(&head) {
            Err(status) => Response::refusal(status),
            Ok(request) if !request.is_for(self.address.port()) => Response::refusal(403),
            Ok(request) => match self.token.unlock(request.path) {
                Some(route) => routes.answer(route, request.query),
                None => Response::refusal(404),
            },
        };
        answer(stream, &response);
    }
}

/// The request up to its empty line, and no more than that much; none if the client is too slow or
/// goes away.
fn read_head(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let deadline = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut buffer = [0u8; 2048];
    loop {
        let left = deadline.checked_duration_since(Instant::now()).filter(|d| !d.is_zero())?;
        stream.set_read_timeout(Some(left)).ok()?;
        let taken = stream.read(&mut buffer).ok().filter(|taken| *taken > 0)?;
        head.extend_from_slice(&buffer[..taken]);
        let is_whole = head.windows(4).any(|window| window == b"\r\n\r\n");
        if is_whole || head.len() > MOST_REQUEST_BYTES {
            return Some(head);
        }
    }
}

fn answer(mut stream: TcpStream, response: &Response) {
    // A client that went away needs no answer.
    let _ = stream.set_write_timeout(Some(PATIENCE));
    if stream.write_all(&response.bytes()).is_ok() {
        let _ = stream.shutdown(Shutdown::Write);
        // Taking what the client still sends keeps the answer from being cut off by a reset.
        let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
        let _ = stream.take(1 << 16).read_to_end(&mut Vec::new());
    }
}
