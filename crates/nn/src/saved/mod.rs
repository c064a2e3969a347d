//! What is saved of a training run: Python's plain values and tensors, in PyTorch's layout, so that
//! a checkpoint of PyTorch fits and the other way round. How such a tree becomes a file is the
//! crate `plimsoll-files`.

mod dict;
mod state_dict;
mod value;

pub use dict::Dict;
pub use value::Value;
