//! Plimsoll's data loading: datasets, samplers, loaders, prefetchers, and inputs in chunks.
//!
//! A [`Dataset`] gives samples by number, a [`Sampler`] says in which order, [`Collate`] makes
//! batches of them, and a [`DataLoader`] does all that ahead on threads, bounded in batches and in
//! bytes of the ledger. [`Prefetcher`] brings batches to a device while it computes, and
//! [`process_in_chunks`] takes an input through a device that has no room for all of it. Read
//! `loader.rs` first, then `workers.rs`.

#![forbid(unsafe_code)]

mod batch;
mod by_length;
mod chunks;
mod collate;
mod dataset;
mod drawing;
mod epoch;
mod epochs;
mod failure;
mod gate;
mod loader;
mod mapped;
mod plan;
mod prefetch;
mod sampler;
mod subset;
mod tensor_dataset;
mod tokens;
mod workers;

pub use batch::{Batch, batch_bytes};
pub use by_length::{LengthOptions, LengthSampler};
pub use chunks::{
    ChunkOptions, EvaluateOptions, evaluate, evaluate_with, process_in_chunks,
    process_in_chunks_with,
};
pub use collate::{Collate, Misfit, Stack, Stacked};
pub use dataset::{ChainDataset, ConcatDataset, Dataset, InMemory, IterableDataset, Samples};
pub use epoch::Epoch;
pub use epochs::Epochs;
pub use failure::BatchFailure;
pub use loader::{DataLoader, LoaderOptions, Position};
pub use mapped::{RecordDataset, RecordOptions};
pub use prefetch::{PrefetchOptions, Prefetcher, copied_to};
pub use sampler::{
    BatchSampler, Order, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler,
    WeightedRandomSampler,
};
pub use subset::{Lengths, Subset, random_split};
pub use tensor_dataset::TensorDataset;
pub use tokens::{TokenDataset, TokenOptions, TokenWidth};
