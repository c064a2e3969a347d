//! The socket of a program: who serves figures on it, and who asks. What is said is in
//! `figures.rs`.

mod client;
mod server;

pub use client::{Connection, Found, programs};
pub use server::Server;
