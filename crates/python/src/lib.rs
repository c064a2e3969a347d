//! The Python module `plimsoll._plimsoll`: the same tensors, operations and memory functions, for
//! Python. The package around it (`python/plimsoll`) adds what is shorter in Python.
//!
//! Operations are tables in `generated/`, which `cargo xtask generate` writes from the registry;
//! `function.rs` is the page to read first: it matches arguments against PyTorch's signatures and
//! calls Rust (`call.rs`) with the interpreter released and the Python line of the caller noted
//! (`frames.rs`).

mod arguments;
mod attached;
mod autocast;
mod autograd;
mod backends;
mod bind;
mod bound_arguments;
mod call;
mod checkpoint;
mod command;
mod companion;
mod construct;
mod constructors;
mod convert;
mod copy;
mod create;
mod custom;
mod data;
mod defaults;
mod device;
mod dlpack;
mod dtype;
mod error;
mod exchange;
mod file_values;
mod files;
mod frames;
mod function;
#[allow(clippy::unsafe_removed_from_name, reason = "`unsafe_chunk` is PyTorch's name")]
mod generated;
mod graph;
mod hooks;
mod in_place_views;
mod index;
mod interpreter_frames;
mod leak;
mod live;
mod memory;
mod memory_format;
mod modules;
mod monitor;
mod namespace;
mod new_like;
mod new_object;
mod node;
mod numpy;
mod object;
mod old_forms;
mod operators;
mod optim;
mod optimizer;
mod overrides;
mod pool;
mod prefetch;
mod profiler;
mod random;
mod said_once;
mod saved_hooks;
mod select;
mod size;
mod storage;
mod stream;
mod subclass;
mod targets;
mod tensor;
mod writes;

use pyo3::prelude::*;

// What is read and written while attached relies on the interpreter's lock.
#[pymodule(gil_used = true)]
fn _plimsoll(module: &Bound<'_, PyModule>) -> PyResult<()> {
    frames::install(module.py())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    frames::register(module)?;
    error::register(module)?;
    module.add_class::<tensor::PyTensor>()?;
    storage::register(module)?;
    dtype::register(module)?;
    memory_format::register(module)?;
    defaults::register(module)?;
    device::register(module)?;
    namespace::register(module)?;
    stream::register(module)?;
    command::register(module)?;
    copy::register(module)?;
    constructors::register(module)?;
    create::register(module)?;
    select::register(module)?;
    in_place_views::register_functions(module)?;
    generated::register(module)?;
    autocast::register(module)?;
    autograd::register(module)?;
    backends::register(module)?;
    checkpoint::register(module)?;
    optim::register(module)?;
    optimizer::register(module)?;
    overrides::register(module)?;
    custom::register(module)?;
    files::register(module)?;
    hooks::register(module)?;
    leak::register(module)?;
    node::register(module)?;
    graph::register(module)?;
    pool::register(module)?;
    prefetch::register(module)?;
    profiler::register(module)?;
    random::register(module)?;
    saved_hooks::register(module)?;
    writes::register(module)?;
    subclass::register(module)?;
    live::register(module)?;
    memory::register(module)?;
    monitor::register(module)?;
    modules::register(module)
}
