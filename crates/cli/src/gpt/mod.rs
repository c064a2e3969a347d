//! The GPT of `plimsoll train`: its settings, the model, the text that it learns, its vocabulary
//! and batches, what a step takes before it is run, a run in a file, its losses, and the text that
//! the model writes in the end. The loop is in `commands/train.rs`. It uses nothing that users
//! cannot.

pub(crate) mod batches;
pub(crate) mod captured;
pub(crate) mod forecast;
pub(crate) mod losses;
pub(crate) mod model;
pub(crate) mod pairs;
pub(crate) mod sample;
pub(crate) mod saved_run;
pub(crate) mod schedule;
pub(crate) mod settings;
pub(crate) mod step;
pub(crate) mod text;
pub(crate) mod vocabulary;
