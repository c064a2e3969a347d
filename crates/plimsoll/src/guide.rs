//! The guide, one page a task. The same pages are in `docs/guide`; their Rust blocks are tests of
//! this crate.

#[doc = include_str!("../guide/see-where-memory-goes.md")]
pub mod see_where_memory_goes {}

#[doc = include_str!("../guide/read-an-out-of-memory-error.md")]
pub mod read_an_out_of_memory_error {}

#[doc = include_str!("../guide/set-a-limit.md")]
pub mod set_a_limit {}

#[doc = include_str!("../guide/know-the-peak-before-you-run.md")]
pub mod know_the_peak_before_you_run {}

#[doc = include_str!("../guide/take-a-snapshot.md")]
pub mod take_a_snapshot {}

#[doc = include_str!("../guide/share-memory.md")]
pub mod share_memory {}

#[doc = include_str!("../guide/write-your-own-gradients.md")]
pub mod write_your_own_gradients {}

#[doc = include_str!("../guide/train-a-model.md")]
pub mod train_a_model {}

#[doc = include_str!("../guide/save-and-load.md")]
pub mod save_and_load {}

#[doc = include_str!("../guide/optimize-a-model.md")]
pub mod optimize_a_model {}

#[doc = include_str!("../guide/load-data.md")]
pub mod load_data {}

#[doc = include_str!("../guide/checkpointing.md")]
pub mod checkpointing {}

#[doc = include_str!("../guide/capture-a-graph.md")]
pub mod capture_a_graph {}

#[doc = include_str!("../guide/find-a-leak.md")]
pub mod find_a_leak {}

#[doc = include_str!("../guide/profile-a-program.md")]
pub mod profile_a_program {}

#[doc = include_str!("../guide/what-pytorch-really-does.md")]
pub mod what_pytorch_really_does {}
