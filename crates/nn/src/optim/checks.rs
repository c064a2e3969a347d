//! Checks of options, in PyTorch's words.

use plimsoll_tensor::{Error, Result};

fn refused(optimizer: &str, why: String) -> Error {
    Error::invalid_argument(why).in_operation(optimizer)
}

/// Refuses a number below 0, and a NaN.
pub(super) fn check_number(optimizer: &str, name: &str, value: f64) -> Result<()> {
    if value >= 0.0 {
        return Ok(());
    }
    Err(refused(optimizer, format!("Invalid {name}: {value}")))
}

/// Refuses shares outside of 0 to 1.
pub(super) fn check_betas(optimizer: &str, betas: (f64, f64)) -> Result<()> {
    for (index, beta) in [betas.0, betas.1].into_iter().enumerate() {
        if !(0.0..1.0).contains(&beta) {
            let why = format!("Invalid beta parameter at index {index}: {beta}");
            return Err(refused(optimizer, why));
        }
    }
    Ok(())
}

/// Refuses what `is_fine` does not hold for.
pub(super) fn check(optimizer: &str, is_fine: bool, why: impl FnOnce() -> String) -> Result<()> {
    if is_fine { Ok(()) } else { Err(refused(optimizer, why())) }
}
