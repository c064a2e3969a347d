//! Memory mistakes in PyTorch source, found before they run: the engine behind `plimsoll lint`.
//!
//! A file goes `discover` -> `source` (decoding, notebooks) -> `nesting`, `magics` -> ruff's parser
//! -> `model` (scopes, loops, regions, what each name holds) -> `rules` (one file each) ->
//! `suppress` (ignore comments) -> `render`. Nothing here runs or imports the code that it reads,
//! and nothing depends on tensors or a GPU.
//!
//! ```
//! use plimsoll_lint::{Selection, Source, check};
//!
//! let text = "\
//! losses = []
//! for batch in loader:
//!     loss = model(batch)
//!     loss.backward()
//!     losses.append(loss)
//! ";
//! let source = Source::python("train.py", text);
//! let found = check(&source, &Selection::default()).unwrap();
//! assert!(found.iter().any(|finding| finding.rule == "graph-kept"));
//! ```

#![forbid(unsafe_code)]

mod check;
mod configuration;
mod discover;
mod encoding;
mod finding;
mod fix;
mod magics;
mod model;
mod nesting;
mod notebook;
mod render;
mod rules;
mod run;
mod selection;
mod source;
mod suppress;
mod unified_diff;

pub use check::check;
pub use configuration::Configuration;
pub use finding::{Edit, Finding, Problem};
pub use fix::{apply, fixed};
pub use render::Format;
pub use rules::{RULES, Rule, find};
pub use run::{Options, Outcome, run};
pub use selection::Selection;
pub use source::Source;
pub use unified_diff::unified_diff;
