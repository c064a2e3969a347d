//! Elementwise methods of one input that take options. The others are declared with their rows, in
//! `ops/unary/functions.rs`.

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;

use super::options::options;
use crate::Tensor;
use crate::ops::unary::{self, Unary, UnaryRow, in_place, into};
use crate::prepare::apply_one;

options! {
    /// How [`Tensor::gelu_with`] computes.
    GeluOptions {
        /// Exactly, or by tanh.
        approximate: Approximate = Approximate::None,
    }
}

/// Whether `gelu` is approximated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approximate {
    /// By the error function.
    None,
    /// By tanh, as GPT-2 does.
    Tanh,
}

impl std::str::FromStr for Approximate {
    type Err = Error;

    fn from_str(word: &str) -> Result<Approximate> {
        match word {
            "none" => Ok(Approximate::None),
            "tanh" => Ok(Approximate::Tanh),
            _ => Err(Error::invalid_argument(format!(
                "approximate is \"none\" or \"tanh\", and not {word:?}"
            ))
            .in_operation("gelu")),
        }
    }
}

impl Tensor {
    /// [`Tensor::gelu`], exactly or by tanh.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::ones(&[1], DType::F64)?;
    /// let y = x.gelu_with(GeluOptions::new().approximate(Approximate::Tanh))?;
    /// assert!((y.item::<f64>()? - 0.841_19).abs() < 1e-5);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn gelu_with(&self, options: GeluOptions) -> Result<Tensor> {
        apply_one(&Unary(gelu(&options)), &[self], Site::caller())
    }

    /// [`Tensor::gelu_with`] in place.
    #[track_caller]
    pub fn gelu_with_(&self, options: GeluOptions) -> Result<&Tensor> {
        in_place(gelu(&options), self, Site::caller())
    }

    /// [`Tensor::gelu_with`] into `out`.
    #[track_caller]
    pub fn gelu_with_out(&self, options: GeluOptions, out: &Tensor) -> Result<()> {
        into(gelu(&options), self, out, Site::caller())
    }
}

fn gelu(options: &GeluOptions) -> &'static UnaryRow {
    match options.approximate {
        Approximate::None => &unary::GELU,
        Approximate::Tanh => &unary::GELU_TANH,
    }
}
