//! Files of tensors: PyTorch's `.pt`, safetensors, and checkpoints of training.
//!
//! ```text
//! Value (a tree of containers, numbers, texts and tensors)
//!   -> pt/    zip archive of a pickle and its storages     save, load
//!   -> safetensors/    a header of JSON, then bytes        safetensors::save_file, load_file
//! atomic.rs   how a file is replaced     source.rs   how bytes of a file become tensors
//! ```
//!
//! Nothing in a file is ever run: `pt/machine.rs` makes data, and refuses every global that is not
//! in the list of `pt/globals.rs`. A file that lies is an error that names the entry, and memory is
//! bounded by the file's size.
//!
//! ```
//! use plimsoll_files::{Dict, Value, load, save};
//! use plimsoll_tensor::{DType, Device, Tensor};
//!
//! let path = std::env::temp_dir().join(format!("plimsoll-doc-{}.pt", std::process::id()));
//! let mut state = Dict::new();
//! state.insert("weight", Tensor::ones(&[2, 3], DType::F32)?);
//! state.insert("step", 7);
//! save(&path, &Value::from(state))?; // torch.load(path) reads it
//!
//! let state = load(&path, Device::cpu())?;
//! assert_eq!(state.get("step").and_then(Value::as_int), Some(7));
//! assert_eq!(state.get("weight").and_then(Value::as_tensor).unwrap().shape(), [2, 3]);
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), plimsoll_tensor::Error>(())
//! ```

mod atomic;
mod bytes_of;
mod checkpoint;
mod fault;
mod pt;
pub mod safetensors;
mod source;
mod zip;

pub use atomic::replace;
pub use checkpoint::{Checkpoint, RandomState};
pub use fault::Unpickling;
pub use plimsoll_nn::saved::{Dict, Value};
pub use pt::{LoadOptions, load, load_from, load_with, save, write};
pub use source::Source;
