//! Where there are no Unix sockets nothing can be served or asked; every call says so.

use std::path::{Path, PathBuf};

use plimsoll_core::{Error, ErrorKind, Result};

use crate::figures::Figures;

fn nothing<T>() -> Result<T> {
    let message = "live figures need Unix sockets, which this system has not";
    Err(Error::new(ErrorKind::Unsupported, message.to_string()))
}

/// A socket in one of the folders, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The process that its name tells.
    pub pid: u32,
    /// Where it is.
    pub path: PathBuf,
}

/// The programs that can be asked: none here.
pub fn programs() -> Vec<Found> {
    Vec::new()
}

/// Serves a program's figures; never begins here.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
}

impl Server {
    /// Always an error here.
    pub fn start(_: impl Fn() -> Figures + Send + Sync + 'static) -> Result<Server> {
        nothing()
    }

    /// Always an error here.
    pub fn start_in(_: &Path, _: impl Fn() -> Figures + Send + Sync + 'static) -> Result<Server> {
        nothing()
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A program that is being asked; there is none here.
#[derive(Debug)]
pub struct Connection(());

impl Connection {
    /// Always an error here.
    pub fn open(_: &Path) -> Result<Connection> {
        nothing()
    }

    /// Always an error here.
    pub fn figures(&mut self) -> Result<Figures> {
        nothing()
    }
}
