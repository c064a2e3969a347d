//! Tensors overwritten with random numbers of many distributions, and samples. The plain ones are
//! in `random.rs`.

use plimsoll_core::{DType, Error, Result};
use plimsoll_memory::{Site, enter_operation, with_site};

use super::options::TensorOptions;
use super::random::overwrite;
use super::reshape::sizes_of;
use super::search::SearchsortedOptions;
use crate::Tensor;
use crate::launch::PinnedOperands;
use crate::ops::random::{Distribution, Formula};
use crate::promotion::Other;

impl Tensor {
    /// Overwrites every element with a waiting time, of `lambd` events in a unit of time.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[50], DType::F32)?;
    /// assert!(x.exponential_(2.0)?.to_vec::<f32>()?.iter().all(|&x| x >= 0.0));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn exponential_(&self, lambd: f64) -> Result<&Tensor> {
        let op = "exponential_";
        check(op, lambd > 0.0, || format!("the rate must be positive, and is {lambd}"))?;
        overwrite(op, self, Distribution::By(Formula::Exponential(lambd)), Site::caller())
    }

    /// Overwrites every element with a number from Cauchy's distribution.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[50], DType::F64)?;
    /// assert!(x.cauchy_(0.0, 1.0)?.to_vec::<f64>()?.iter().all(|x| x.is_finite()));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn cauchy_(&self, median: f64, sigma: f64) -> Result<&Tensor> {
        let op = "cauchy_";
        check(op, sigma > 0.0, || format!("sigma must be positive, and is {sigma}"))?;
        let formula = Formula::Cauchy { median, sigma };
        overwrite(op, self, Distribution::By(formula), Site::caller())
    }

    /// Overwrites every element with a number whose logarithm is normal.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[50], DType::F32)?;
    /// assert!(x.log_normal_(0.0, 1.0)?.to_vec::<f32>()?.iter().all(|&x| x > 0.0));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn log_normal_(&self, mean: f64, deviation: f64) -> Result<&Tensor> {
        let _named = enter_operation("log_normal_");
        check("log_normal_", deviation > 0.0, || {
            format!("the standard deviation must be positive, and is {deviation}")
        })?;
        // Home for both steps: what was written is not left half done by memory that runs out.
        let written = [self];
        let _home = PinnedOperands::inputs(&written)?;
        self.normal_(mean, deviation)?.exp_()
    }

    /// Overwrites every element with how many trials it takes until one succeeds, with
    /// probability `p`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[50], DType::I64)?;
    /// assert!(x.geometric_(0.5)?.to_vec::<i64>()?.iter().all(|&x| x >= 1));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn geometric_(&self, p: f64) -> Result<&Tensor> {
        let op = "geometric_";
        check(op, p > 0.0 && p < 1.0, || {
            format!("the probability must be between 0 and 1, not {p}")
        })?;
        overwrite(op, self, Distribution::By(Formula::Geometric(p)), Site::caller())
    }

    /// Overwrites every element with 1 with probability `p`, a number or a tensor that broadcasts,
    /// and with 0 otherwise.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[3], DType::F32)?;
    /// assert_eq!(x.bernoulli_(1.0)?.to_vec::<f32>()?, [1.0; 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn bernoulli_<'a>(&self, p: impl Into<Other<'a>>) -> Result<&Tensor> {
        let op = "bernoulli_";
        match p.into() {
            Other::Scalar(p) => {
                let p = p.to_f64();
                check(op, (0.0..=1.0).contains(&p), || format!("no probability is {p}"))?;
                overwrite(op, self, Distribution::By(Formula::Bernoulli(p)), Site::caller())
            }
            Other::Tensor(p) => {
                let _named = enter_operation(op);
                self.copy_(&p.detach().expand(&sizes_of(self))?.bernoulli(None)?)
            }
        }
    }

    /// 1 with the probability that each element is, or with `p`, and 0 otherwise.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::eye(2, DType::F32)?;
    /// assert_eq!(x.bernoulli(None)?.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn bernoulli(&self, p: Option<f64>) -> Result<Tensor> {
        let _named = enter_operation("bernoulli");
        if let Some(p) = p {
            let drawn = self.detach().zeros_like()?;
            drawn.bernoulli_(p)?;
            return overwritten(self, &drawn);
        }
        if !self.dtype().is_float() {
            return Err(Error::unsupported(
                "bernoulli",
                format!("{} is no probability", self.dtype()),
            ));
        }
        check_values("bernoulli", self, "probabilities are from 0 to 1", |p| {
            p.ge(0.0)?.logical_and(&p.le(1.0)?)
        })?;
        // Half types draw too few bits to be compared with.
        let wide = if self.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
        let chosen = self.detach().rand_like_with(wide)?.lt(&self.detach())?;
        overwritten(self, &chosen.to(self.dtype())?)
    }

    /// Overwrites every element with a whole number from 0 to before `to`, or to the largest that
    /// the dtype counts to.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[50], DType::I64)?;
    /// assert!(x.random_(Some(3))?.to_vec::<i64>()?.iter().all(|x| (0..3).contains(x)));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn random_(&self, to: Option<i64>) -> Result<&Tensor> {
        self.random_between_(0, Some(to.unwrap_or(past_all(self.dtype()))))
    }

    /// [`Tensor::random_`] from another number than 0 on.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let drawn = Tensor::zeros(&[50], DType::F32)?.random_between_(5, Some(7))?.to_vec::<f32>()?;
    /// assert!(drawn.iter().all(|x| [5.0, 6.0].contains(x)));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn random_between_(&self, from: i64, to: Option<i64>) -> Result<&Tensor> {
        let (op, to) = ("random_", to.unwrap_or(i64::MAX));
        check(op, from < to, || format!("there is no number from {from} to before {to}"))?;
        let dtype = self.dtype();
        if to != i64::MAX && !dtype.is_float() {
            let past = past_all(dtype);
            let least = match dtype {
                DType::Bool | DType::U8 => 0,
                DType::I64 => i64::MIN,
                _ => -past,
            };
            let fits = from >= least && to <= past;
            check(op, fits, || format!("{from} to before {to} is out of bounds for {dtype}"))?;
        }
        if self.dtype() == DType::Bool {
            let _named = enter_operation(op);
            let bytes = self.zeros_like_with(DType::U8)?;
            return self.copy_(bytes.random_between_(from, Some(to))?);
        }
        overwrite(op, self, Distribution::Integer { low: from, high: to }, Site::caller())
    }

    /// Normal random numbers, of one mean and deviation each.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let mean = Tensor::full(&[3], 7, DType::F32)?;
    /// assert_eq!(Tensor::normal(&mean, 0.0)?.to_vec::<f32>()?, [7.0; 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn normal<'a, 'b>(
        mean: impl Into<Other<'a>>,
        deviation: impl Into<Other<'b>>,
    ) -> Result<Tensor> {
        let _named = enter_operation("normal");
        let (mean, deviation) = (mean.into(), deviation.into());
        match (mean, deviation) {
            (Other::Tensor(mean), Other::Scalar(by)) => {
                check_deviation(by.to_f64())?;
                let plain = mean.detach();
                let drawn = plain.randn_like()?;
                overwritten(mean, drawn.mul_(by)?.add_(&plain)?)
            }
            (Other::Scalar(mean), Other::Tensor(by)) => {
                check_deviations(by)?;
                let plain = by.detach();
                let drawn = plain.randn_like()?;
                overwritten(by, drawn.mul_(&plain)?.add_(mean)?)
            }
            (Other::Tensor(mean), Other::Tensor(by)) => {
                check_deviations(by)?;
                let both = Tensor::broadcast_tensors(&[mean, by])?;
                let drawn = both[0].detach().contiguous()?.randn_like()?;
                overwritten(&both[0], drawn.mul_(&by.detach())?.add_(&mean.detach())?)
            }
            (Other::Scalar(_), Other::Scalar(_)) => {
                Err(Error::shape("normal", "two numbers have no shape; give a size"))
            }
        }
    }

    /// Normal random numbers of one mean and deviation, of given sizes.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::normal_of_size(1.0, 0.0, &[2], DType::F32)?.to_vec::<f32>()?, [1.0; 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn normal_of_size(
        mean: f64,
        deviation: f64,
        sizes: &[i64],
        options: impl Into<TensorOptions>,
    ) -> Result<Tensor> {
        let _named = enter_operation("normal");
        check_deviation(deviation)?;
        let options = options.into();
        let plain = TensorOptions { requires_grad: false, ..options };
        let drawn = Tensor::empty(sizes, plain)?;
        drawn.normal_(mean, deviation)?;
        drawn.finished(options)
    }

    /// Indices drawn with the probabilities that each row's weights give, `num_samples` of each
    /// row; one more than once only with `replacement`.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let weights = Tensor::from_slice(&[0.0f32, 3.0], &[2], Device::cpu())?;
    /// assert_eq!(weights.multinomial(2, true)?.to_vec::<i64>()?, [1, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn multinomial(&self, num_samples: i64, replacement: bool) -> Result<Tensor> {
        const OP: &str = "multinomial";
        let _named = enter_operation(OP);
        let weights = self.detach();
        let refuse = |why: String| Err(Error::shape(OP, why));
        let Some(&count) = weights.shape().last().filter(|_| weights.rank() <= 2) else {
            return refuse(format!("weights are rows, not of shape {:?}", weights.shape()));
        };
        if !weights.dtype().is_float() {
            return refuse(format!("weights are floats, not {}", weights.dtype()));
        }
        if num_samples <= 0
            || count == 0
            || count > 1 << 24
            || !replacement && num_samples > count as i64
        {
            return refuse(format!("{num_samples} samples of {count} weights cannot be drawn"));
        }
        let bounds = [weights.ge(0)?.all()?, weights.lt(f64::INFINITY)?.all()?];
        let sums = weights.sum_with([-1])?.gt(0)?.all()?;
        for holds in bounds.iter().chain([&sums]) {
            // A dry run has no weights to look at.
            if !weights.device().is_dry() && !holds.item::<crate::Truth>()?.get() {
                let why = "weights must be finite, not negative, and not all zero";
                return refuse(why.to_string());
            }
        }
        drop((bounds, sums));
        with_site(Site::caller(), || {
            let wide = weights.to(DType::F64)?;
            if !replacement {
                // Those with the shortest waiting times at their rates come first with their
                // probabilities.
                let waits = wide.empty_like()?;
                waits.exponential_(1.0)?;
                let options = crate::SortOptions::new().dim(-1).descending(true);
                let (_, order) = wide.div(&waits)?.sort_with(options)?;
                return order.narrow(-1, 0, num_samples)?.contiguous();
            }
            // Where a point falls that is drawn evenly from the weights laid end to end.
            let ends = wide.cumsum(-1)?;
            let total = ends.narrow(-1, count as i64 - 1, 1)?;
            let mut sizes = sizes_of(&wide);
            if let Some(last) = sizes.last_mut() {
                *last = num_samples;
            }
            let points = Tensor::rand(&sizes, (DType::F64, wide.device()))?.mul(&total)?;
            let found = ends.searchsorted_with(&points, SearchsortedOptions::new().right(true))?;
            // A point that was rounded to the very end belongs to the last that has a weight.
            found.minimum(&ends.searchsorted(&total.contiguous()?)?)
        })
    }

    /// The numbers from 0 to before `n` in random order; int64 unless a dtype is given.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let mut order = Tensor::randperm(4, Device::cpu())?.to_vec::<i64>()?;
    /// order.sort();
    /// assert_eq!(order, [0, 1, 2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn randperm(n: i64, options: impl Into<TensorOptions>) -> Result<Tensor> {
        let _named = enter_operation("randperm");
        check("randperm", n >= 0, || format!("there are no {n} numbers"))?;
        let options = options.into();
        let dtype = options.dtype_or(DType::I64);
        check("randperm", n <= past_all(dtype), || format!("{dtype} does not hold {n} numbers"))?;
        let keys = Tensor::randint(0, i64::MAX, &[n], (DType::I64, options.device_or_cpu()))?;
        let (_, order) = keys.sort()?;
        order.to(dtype)?.finished(options)
    }
}

/// One past the last whole number that a dtype holds, or that floats count to without gaps.
fn past_all(dtype: DType) -> i64 {
    match dtype {
        DType::Bool => 2,
        DType::U8 => 1 << 8,
        DType::I8 => 1 << 7,
        DType::I16 => 1 << 15,
        DType::I32 => 1 << 31,
        DType::I64 => i64::MAX,
        DType::F16 => (1 << 11) + 1,
        DType::BF16 => (1 << 8) + 1,
        DType::F32 => (1 << 24) + 1,
        DType::F64 => (1 << 53) + 1,
    }
}

/// Refuses a tensor on the host with an element that does not pass; other devices would have to be
/// waited for.
fn check_values(
    op: &'static str,
    x: &Tensor,
    rule: &str,
    passes: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<()> {
    if !x.device().is_cpu() || x.device().is_dry() {
        return Ok(());
    }
    check(op, passes(&x.detach())?.all()?.to_scalar()?.to_i64() != 0, || rule.to_string())
}

/// What was drawn, in the graph of what it was drawn by: the derivative is zero, as in PyTorch.
#[track_caller]
fn overwritten(by: &Tensor, drawn: &Tensor) -> Result<Tensor> {
    if !by.requires_grad() {
        return Ok(drawn.clone());
    }
    let copy = by.clone_with(plimsoll_core::MemoryFormat::Contiguous)?;
    copy.copy_(drawn)?;
    Ok(copy)
}

fn check(op: &'static str, holds: bool, why: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::invalid_argument(why()).in_operation(op)) }
}

fn check_deviations(by: &Tensor) -> Result<()> {
    check_values("normal", by, "standard deviations must not be negative", |by| by.ge(0.0))
}

fn check_deviation(deviation: f64) -> Result<()> {
    check("normal", deviation >= 0.0, || {
        format!("the standard deviation must not be negative, and is {deviation}")
    })
}
