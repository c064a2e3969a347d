//! The triplet loss with a distance of the user's own. Other losses with margins:
//! `margin_loss.rs`.

use plimsoll_tensor::{Error, Reduction, Result, Tensor};

use crate::call::{at_caller, site_for};
use crate::loss::reduced;
use crate::margin_loss::above_zero;
use crate::{Forward, Hooks, Module, PairwiseDistance};

/// [`TripletMarginLoss`](crate::TripletMarginLoss) with a distance of one's own: any module from
/// two tensors to one.
///
/// ```
/// use plimsoll_nn::{CosineSimilarity, Forward, TripletMarginWithDistanceLoss};
/// use plimsoll_tensor::{DType, Tensor};
/// let x = Tensor::ones(&[2, 3], DType::F32)?;
/// let loss = TripletMarginWithDistanceLoss::new().call((&x, &x, &x))?;
/// assert_eq!(loss.item::<f32>()?, 1.0);
/// let own = TripletMarginWithDistanceLoss::with(CosineSimilarity::new()).margin(0.5);
/// assert_eq!(own.call((&x, &x, &x))?.item::<f32>()?, 0.5);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug, Module)]
#[module(builtin)]
pub struct TripletMarginWithDistanceLoss<D> {
    /// The distance.
    pub distance_function: D,
    margin: f64,
    swap: bool,
    reduction: Reduction,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl TripletMarginWithDistanceLoss<PairwiseDistance> {
    /// PyTorch's defaults: the distance of points.
    #[allow(clippy::new_without_default)]
    pub fn new() -> TripletMarginWithDistanceLoss<PairwiseDistance> {
        TripletMarginWithDistanceLoss::with(PairwiseDistance::new())
    }
}

impl<D: Module> TripletMarginWithDistanceLoss<D> {
    /// With a distance of one's own.
    pub fn with(distance_function: D) -> TripletMarginWithDistanceLoss<D> {
        TripletMarginWithDistanceLoss {
            distance_function,
            margin: 1.0,
            swap: false,
            reduction: Reduction::Mean,
            hooks: Hooks::default(),
        }
    }

    /// By how much the negative should be farther.
    #[must_use]
    pub fn margin(mut self, margin: f64) -> TripletMarginWithDistanceLoss<D> {
        self.margin = margin;
        self
    }

    /// Whether the positive's distance from the negative counts if it is less.
    #[must_use]
    pub fn swap(mut self, swap: bool) -> TripletMarginWithDistanceLoss<D> {
        self.swap = swap;
        self
    }

    /// What becomes of the elements.
    #[must_use]
    pub fn reduction(mut self, reduction: Reduction) -> TripletMarginWithDistanceLoss<D> {
        self.reduction = reduction;
        self
    }
}

impl<D> Forward<(&Tensor, &Tensor, &Tensor)> for TripletMarginWithDistanceLoss<D>
where
    D: for<'a> Forward<(&'a Tensor, &'a Tensor), Output = Tensor>,
{
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, (anchor, positive, negative): (&Tensor, &Tensor, &Tensor)) -> Result<Tensor> {
        let _site = at_caller();
        let distance = |a: &Tensor, b: &Tensor| {
            let _site = site_for(self.distance_function.as_dyn());
            self.distance_function.call((a, b))
        };
        if self.margin <= 0.0 {
            let what = format!("margin must be greater than 0, got {}", self.margin);
            return Err(Error::invalid_argument(what).in_operation("TripletMarginWithDistanceLoss"));
        }
        let near = distance(anchor, positive)?;
        let mut far = distance(anchor, negative)?;
        if self.swap {
            far = far.minimum(&distance(positive, negative)?)?;
        }
        reduced(&above_zero(&near.sub(&far)?.add(self.margin)?)?, self.reduction)
    }
}
