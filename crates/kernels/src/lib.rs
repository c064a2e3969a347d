//! Kernels: the loops that touch bytes. They are handed operands (pointer, layout, dtype) that
//! dispatch has checked; they never allocate, never look at a tensor and never start another
//! operation. Everything here is a function of a [`CpuLaunch`].
//!
//! A crate of its own, because compiling every operation for every dtype and instruction set takes
//! minutes and changes rarely.

pub mod cpu;
mod element;
mod operand;
pub mod parallel;

pub use element::{Element, Truth};
pub use operand::{CpuLaunch, Meta, Operand, Second, Workspace};
