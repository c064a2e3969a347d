//! What grows from step to step, without tensors: how growth is judged ([`Growth`]), what is told
//! of it ([`Finding`]), and the words for causes and remedies ([`causes`]), which the reports of
//! snapshots share. Who lives and who holds it is known to the runtime: `tensor/src/memory/leak`.
//! The watch of PyTorch's programs is Python and judges by the same rules; a test holds both to the
//! same words.

#![forbid(unsafe_code)]

pub mod causes;
mod finding;
mod growth;
mod kind;
mod lengthening;
mod marks;

pub use causes::Cause;
pub use finding::{Finding, LeakReport};
pub use growth::{
    Alive, Growth, LEAST_STEPS, SETTLE_STEPS, Suspect, TOLERATED_BYTES, WARM_UP_STEPS,
};
pub use kind::GrowthKind;
pub use lengthening::{Lengthening, Longer};
pub use marks::Marks;
