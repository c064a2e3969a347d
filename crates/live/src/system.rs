//! What the operating system is asked: who we are, to connect to a socket within a time, who is at
//! its other end, how large the terminal is, and to hand over keys as they are pressed. This is the
//! crate's `unsafe`; each call only reads or writes values of this file.

pub use system::{RawTerminal, terminal_size};
#[cfg(unix)]
pub(crate) use unix::{connect, peer, stop_listening, user_id};

#[cfg(not(unix))]
mod system {
    //! Elsewhere a terminal has 80 columns and no keys are read.

    use std::io;
    use std::time::Duration;

    /// Columns and rows of the terminal, if there is one.
    pub fn terminal_size() -> Option<(usize, usize)> {
        None
    }

    /// A terminal that hands over keys as they are pressed.
    #[derive(Debug)]
    pub struct RawTerminal;

    impl RawTerminal {
        /// Always an error here.
        pub fn enter() -> io::Result<RawTerminal> {
            Err(io::Error::new(io::ErrorKind::Unsupported, "keys are read on Unix only"))
        }

        /// Waits for a key.
        pub fn key(&self, _at_most: Duration) -> io::Result<Option<u8>> {
            Ok(None)
        }
    }
}

#[cfg(unix)]
use unix as system;

#[cfg(unix)]
mod unix {
    use std::io::{self, Read};
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::Path;
    use std::time::{Duration, Instant};

    /// The user that this process acts for.
    pub(crate) fn user_id() -> u32 {
        // SAFETY: the call takes nothing and cannot fail.
        unsafe { libc::geteuid() }
    }

    /// Lets nobody connect any more, and wakes whoever waits for one that does.
    pub(crate) fn stop_listening(listener: &UnixListener) {
        // SAFETY: `listener` keeps its descriptor open; the call touches no memory of ours.
        unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RDWR) };
    }

    /// Connects to a socket. Where so many wait there already that no more are let in, as in front
    /// of a program that was stopped, it tries again until `patience` is over; then the error is
    /// `WouldBlock`. The library's own way in would wait for ever.
    pub(crate) fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
        // SAFETY: all zeros is an address of no family, and every field is set below or is text
        // that ends with a zero.
        let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        let name = path.as_os_str().as_bytes();
        if name.len() >= address.sun_path.len() || name.contains(&0) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no socket can be called so"));
        }
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        for (to, from) in address.sun_path.iter_mut().zip(name) {
            *to = *from as libc::c_char;
        }
        let until = Instant::now() + patience;
        loop {
            // SAFETY: the call takes numbers, and what it gives is checked.
            let descriptor = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) };
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: the descriptor is a fresh socket that nobody else has.
            let stream = unsafe { UnixStream::from_raw_fd(descriptor) };
            stream.set_nonblocking(true)?;
            let bytes = size_of::<libc::sockaddr_un>() as libc::socklen_t;
            // SAFETY: the call sets a flag of a descriptor that `stream` keeps open.
            let flagged = unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
            // SAFETY: `stream` keeps the descriptor open; `address` is ours, and `bytes` its size.
            let failed =
                unsafe { libc::connect(descriptor, (&raw const address).cast(), bytes) } != 0;
            if !failed && flagged == 0 {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::WouldBlock || Instant::now() >= until {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// User and, where the system tells it, process at the other end of a socket.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn peer(stream: &UnixStream) -> io::Result<(u32, Option<u32>)> {
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: `stream` keeps its descriptor open; `peer` and `length` are ours, and `length` is
        // the size of `peer`, which the call does not write beyond.
        let failed = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut peer).cast(),
                &raw mut length,
            )
        };
        match failed {
            0 => Ok((peer.uid, u32::try_from(peer.pid).ok().filter(|pid| *pid != 0))),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// User and, where the system tells it, process at the other end of a socket.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn peer(stream: &UnixStream) -> io::Result<(u32, Option<u32>)> {
        let (mut user, mut group) = (0, 0);
        // SAFETY: `stream` keeps its descriptor open, and both results are ours.
        let failed = unsafe { libc::getpeereid(stream.as_raw_fd(), &raw mut user, &raw mut group) };
        if failed == 0 { Ok((user, None)) } else { Err(io::Error::last_os_error()) }
    }

    /// Columns and rows of the terminal that standard output is, if it is one.
    ///
    /// ```
    /// if let Some((columns, rows)) = plimsoll_live::terminal_size() {
    ///     assert!(columns > 0 && rows > 0);
    /// }
    /// ```
    pub fn terminal_size() -> Option<(usize, usize)> {
        let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the request writes a `winsize`, which `size` is; a descriptor that is no terminal
        // is an error and nothing is written.
        let failed = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
        let known = failed == 0 && size.ws_col > 0 && size.ws_row > 0;
        known.then_some((usize::from(size.ws_col), usize::from(size.ws_row)))
    }

    /// Standard input as a terminal that hands over keys as they are pressed and shows none of
    /// them, Ctrl-C (3) among them; what it was before comes back when this is dropped.
    ///
    /// ```
    /// // Fails where standard input is no terminal, as in a pipe.
    /// if let Ok(terminal) = plimsoll_live::RawTerminal::enter() {
    ///     let _key = terminal.key(std::time::Duration::ZERO)?;
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub struct RawTerminal {
        before: libc::termios,
    }

    impl std::fmt::Debug for RawTerminal {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("RawTerminal")
        }
    }

    impl RawTerminal {
        /// Changes the terminal.
        pub fn enter() -> io::Result<RawTerminal> {
            let mut before = MaybeUninit::<libc::termios>::uninit();
            // SAFETY: the call writes a whole `termios` where it succeeds, and only then is it
            // read.
            let before = unsafe {
                if libc::tcgetattr(libc::STDIN_FILENO, before.as_mut_ptr()) != 0 {
                    return Err(io::Error::last_os_error());
                }
                before.assume_init()
            };
            let mut raw = before;
            raw.c_lflag &= !(libc::ICANON | libc::ECHO | libc::ISIG);
            raw.c_cc[libc::VMIN] = 1;
            raw.c_cc[libc::VTIME] = 0;
            set(&raw)?;
            Ok(RawTerminal { before })
        }

        /// The next key, or `None` if none is pressed in that time. An error if standard input has
        /// ended.
        pub fn key(&self, at_most: Duration) -> io::Result<Option<u8>> {
            let mut waiting =
                libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
            let milliseconds = i32::try_from(at_most.as_millis()).unwrap_or(i32::MAX);
            // SAFETY: one entry is passed, and `waiting` is it.
            let ready = unsafe { libc::poll(&raw mut waiting, 1, milliseconds) };
            if ready <= 0 {
                return match io::Error::last_os_error() {
                    // A window that changes its size interrupts the wait.
                    error if ready < 0 && error.kind() != io::ErrorKind::Interrupted => Err(error),
                    _ => Ok(None),
                };
            }
            let mut key = [0];
            io::stdin().lock().read_exact(&mut key)?;
            Ok(Some(key[0]))
        }
    }

    impl Drop for RawTerminal {
        fn drop(&mut self) {
            let _ = set(&self.before);
        }
    }

    fn set(terminal: &libc::termios) -> io::Result<()> {
        // SAFETY: `terminal` came from `tcgetattr`, at most with flags changed.
        let failed = unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSAFLUSH, terminal) };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
