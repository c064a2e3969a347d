//! Pooling: the largest (`max.rs`) or the mean (`mean.rs`) of each window of a channel, and moving
//! elements to and from the places that the largest came from (`places.rs`). Which elements a
//! window has, and how kernels go through windows side by side, is `window.rs`.

mod max;
mod mean;
mod places;
mod window;

#[cfg(test)]
mod tests;

pub use max::{max_pool, max_pool_fractional};
pub use mean::{MeanArgs, mean_pool, mean_pool_backward};
pub use places::{gather_places, scatter_places};
pub use window::Window;
