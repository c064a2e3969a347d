//! The momentum that cyclic schedulers move against the rates: `momentum`, or the first of `betas`.

use plimsoll_tensor::{Error, Result};

use super::scheduler::one_each;
use crate::optim::Optimizer;

/// The least and the largest momentum of each group; the groups begin with the largest.
pub(super) fn first_momenta(
    scheduler: &str,
    optimizer: &mut dyn Optimizer,
    least: &[f64],
    largest: &[f64],
) -> Result<(Vec<f64>, Vec<f64>)> {
    if (0..optimizer.num_groups()).any(|group| optimizer.momentum(group).is_none()) {
        let why = "optimizer must support momentum or beta1 with `cycle_momentum` option enabled";
        return Err(Error::invalid_argument(why).in_operation(scheduler));
    }
    let least = one_each("base_momentum", optimizer, least)?;
    let largest = one_each("max_momentum", optimizer, largest)?;
    for (group, (low, high)) in least.iter().zip(&largest).enumerate() {
        optimizer.set_momentum(group, *high);
        optimizer.set_number(group, "max_momentum", *high);
        optimizer.set_number(group, "base_momentum", *low);
    }
    Ok((least, largest))
}
