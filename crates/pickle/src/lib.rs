//! The bytes of Python's pickles: [`Reader`] takes them apart into [`Instruction`]s, [`Writer`]
//! makes some. Nothing here runs, imports or builds anything: what a global means, and which are
//! allowed, is up to who asks. Memory snapshots (the crate `report`) and PyTorch's files (the crate
//! `files`) are made of them.

#![forbid(unsafe_code)]

mod instruction;
pub mod opcode;
mod reader;
mod text_form;
mod writer;

pub use instruction::{Instruction, Number};
pub use reader::Reader;
pub use writer::Writer;

/// What is wrong with a pickle, without the place; who reads adds it.
pub type Fault = String;
