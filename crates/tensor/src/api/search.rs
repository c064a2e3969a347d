//! Searches in sorted sequences, and histograms.

use plimsoll_core::{DType, Error, Result, Scalar, promote_dtypes};
use plimsoll_memory::Site;

use super::options::{options, options_with_tensors};
use crate::Tensor;
use crate::api::composed;
use crate::ops::search::{Histogram, SearchSorted};
use crate::prepare::apply_one;
use crate::promotion::Other;
use plimsoll_kernels::cpu::search::Bins;

options_with_tensors! {
    /// How [`Tensor::searchsorted_with`] searches.
    SearchsortedOptions {
        /// Whether places are int32.
        out_int32: bool = false,
        /// Whether a value belongs after elements that equal it.
        right: bool = false,
        /// The same by a word.
        side: Option<Side> = None,
        /// The order of a sequence that is not sorted itself.
        sorter: Option<&'a Tensor> = None,
    }
}

options! {
    /// How [`Tensor::bucketize_with`] searches.
    BucketizeOptions {
        /// Whether places are int32.
        out_int32: bool = false,
        /// Whether a value belongs after boundaries that equal it.
        right: bool = false,
    }
}

options_with_tensors! {
    /// What [`Tensor::bincount_with`] counts.
    BincountOptions {
        /// What each element counts for.
        weights: Option<&'a Tensor> = None,
        /// Bins at least.
        minlength: i64 = 0,
    }
}

options! {
    /// The bins of [`Tensor::histc_with`].
    HistcOptions {
        /// How many.
        bins: i64 = 100,
        /// Where they begin.
        min: Scalar = Scalar::Int(0),
        /// Where they end; where both are equal the elements say it.
        max: Scalar = Scalar::Int(0),
    }
}

options_with_tensors! {
    /// The bins of [`Tensor::histogram_with`], and what they count.
    HistogramOptions {
        /// How many.
        bins: i64 = 100,
        /// Where they begin and end; none means as the elements do.
        range: Option<&'a [f64]> = None,
        /// What each element counts for.
        weight: Option<&'a Tensor> = None,
        /// Whether counts become a density, whose integral is 1.
        density: bool = false,
    }
}

/// Where a value goes that equals an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before it.
    Left,
    /// After it.
    Right,
}

impl std::str::FromStr for Side {
    type Err = Error;

    fn from_str(word: &str) -> Result<Side> {
        match word {
            "left" => Ok(Side::Left),
            "right" => Ok(Side::Right),
            _ => Err(Error::shape("searchsorted", format!("side is left or right, not {word:?}"))),
        }
    }
}

impl Tensor {
    /// For each value the place in the sorted sequence before which it belongs.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[1.0f32, 3.0, 5.0], &[3], Device::cpu())?;
    /// let values = Tensor::from_slice(&[3.0f32, 9.0], &[2], Device::cpu())?;
    /// assert_eq!(x.searchsorted(&values)?.to_vec::<i64>()?, [1, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn searchsorted<'a>(&self, values: impl Into<Other<'a>>) -> Result<Tensor> {
        self.searchsorted_with(values, SearchsortedOptions::new())
    }

    /// [`Tensor::searchsorted`] from the other side, or in a sequence that comes with its order.
    #[track_caller]
    pub fn searchsorted_with<'a>(
        &self,
        values: impl Into<Other<'a>>,
        options: SearchsortedOptions<'_>,
    ) -> Result<Tensor> {
        let (values, site) = (values.into(), Site::caller());
        composed("searchsorted", site, || searchsorted(self, values, options, site))
    }

    /// For each value the bucket between sorted boundaries that it belongs to.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let boundaries = Tensor::from_slice(&[1.0f32, 3.0, 5.0], &[3], Device::cpu())?;
    /// assert_eq!(Tensor::bucketize(4.0, &boundaries)?.item::<i64>()?, 2);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn bucketize<'a>(values: impl Into<Other<'a>>, boundaries: &Tensor) -> Result<Tensor> {
        Tensor::bucketize_with(values, boundaries, BucketizeOptions::new())
    }

    /// [`Tensor::bucketize`] from the other side.
    #[track_caller]
    pub fn bucketize_with<'a>(
        values: impl Into<Other<'a>>,
        boundaries: &Tensor,
        options: BucketizeOptions,
    ) -> Result<Tensor> {
        let (values, site) = (values.into(), Site::caller());
        let BucketizeOptions { out_int32, right } = options;
        if boundaries.rank() != 1 {
            return Err(Error::shape(
                "bucketize",
                format!("boundaries are one line, and these have shape {:?}", boundaries.shape()),
            ));
        }
        let options = SearchsortedOptions::new().out_int32(out_int32).right(right);
        composed("bucketize", site, || searchsorted(boundaries, values, options, site))
    }

    /// How often each number from 0 on occurs among integers.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0i64, 2, 2], &[3], Device::cpu())?;
    /// assert_eq!(x.bincount()?.to_vec::<i64>()?, [1, 0, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn bincount(&self) -> Result<Tensor> {
        self.bincount_with(BincountOptions::new())
    }

    /// [`Tensor::bincount`] with weights, or with some bins at least.
    #[track_caller]
    pub fn bincount_with(&self, options: BincountOptions<'_>) -> Result<Tensor> {
        let site = Site::caller();
        composed("bincount", site, || bincount(self, options, site))
    }

    /// How many elements fall into each of 100 bins of one width between the smallest and the
    /// largest.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0, 2.0], &[3], Device::cpu())?;
    /// assert_eq!(x.histc_with(HistcOptions::new().bins(2))?.to_vec::<f32>()?, [1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn histc(&self) -> Result<Tensor> {
        self.histc_with(HistcOptions::new())
    }

    /// [`Tensor::histc`] with other bins.
    #[track_caller]
    pub fn histc_with(&self, options: HistcOptions) -> Result<Tensor> {
        let HistcOptions { bins, min, max } = options;
        let site = Site::caller();
        composed("histc", site, || {
            let (low, high) = ends("histc", self, bins, (min.to_f64(), max.to_f64()))?;
            let count = bins as usize;
            let op = Histogram {
                bins: Bins::Even { low, high },
                count,
                weighted: false,
                dtype: self.dtype(),
            };
            apply_one(&op, &[&self.detach().contiguous()?], site)
        })
    }

    /// How many elements fall into each of 100 bins of one width, and the edges of the bins.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::from_slice(&[0.0f32, 1.0, 2.0], &[3], Device::cpu())?;
    /// let (counts, edges) = x.histogram_with(HistogramOptions::new().bins(2))?;
    /// assert_eq!(counts.to_vec::<f32>()?, [1.0, 2.0]);
    /// assert_eq!(edges.to_vec::<f32>()?, [0.0, 1.0, 2.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn histogram(&self) -> Result<(Tensor, Tensor)> {
        self.histogram_with(HistogramOptions::new())
    }

    /// [`Tensor::histogram`] with other bins, weights, or as a density.
    #[track_caller]
    pub fn histogram_with(&self, options: HistogramOptions<'_>) -> Result<(Tensor, Tensor)> {
        let site = Site::caller();
        composed("histogram", site, || {
            let range = match options.range {
                None => None,
                Some(&[low, high]) => Some((low, high)),
                Some(_) => return Err(Error::shape("histogram", "a range is two numbers")),
            };
            let (low, high) = outer_edges("histogram", self, options.bins, range)?;
            let edges = even_edges(self, low, high, options.bins as usize)?;
            let counts = histogram(self, &edges, &options, site)?;
            Ok((counts, edges))
        })
    }

    /// [`Tensor::histogram`] between given edges.
    #[track_caller]
    pub fn histogram_between(
        &self,
        bins: &Tensor,
        options: HistogramOptions<'_>,
    ) -> Result<(Tensor, Tensor)> {
        let site = Site::caller();
        composed("histogram", site, || {
            if bins.rank() != 1 || bins.numel() == 0 || bins.dtype() != self.dtype() {
                return Err(Error::shape(
                    "histogram",
                    format!(
                        "edges are one line of {}, and these are {} of shape {:?}",
                        self.dtype(),
                        bins.dtype(),
                        bins.shape()
                    ),
                ));
            }
            if bins.numel() < 2 {
                let why = "bins must be > 0, but got 0: a bin needs two edges; give two or more";
                return Err(Error::shape("histogram", why));
            }
            let edges = bins.detach().contiguous()?;
            let counts = histogram(self, &edges, &options, site)?;
            Ok((counts, bins.clone_tensor()?))
        })
    }
}

fn searchsorted(
    sequence: &Tensor,
    values: Other<'_>,
    options: SearchsortedOptions<'_>,
    site: Site,
) -> Result<Tensor> {
    let wrong = |why: String| Err(Error::shape("searchsorted", why));
    let SearchsortedOptions { out_int32, right, side, sorter } = options;
    if side == Some(Side::Left) && right {
        return wrong("side is left and right is true; give one of them".to_string());
    }
    let values = match values {
        Other::Tensor(values) => values.detach(),
        Other::Scalar(value) => {
            let dtype = crate::default_dtype::dtype_beside_number(sequence.dtype(), value);
            Tensor::full(&[], value, (dtype, sequence.device()))?
        }
    };
    let number = values.rank() == 0;
    if values.device() != sequence.device() {
        return wrong("the sequence and the values are on different devices".to_string());
    }
    let lead = |x: &Tensor| x.shape()[..x.rank().saturating_sub(1)].to_vec();
    let fits = sequence.rank() == 1
        || (!number && values.rank() == sequence.rank() && lead(&values) == lead(sequence));
    if sequence.rank() == 0 || !fits {
        return wrong(format!(
            "values of shape {:?} need one sequence or one for each row, not shape {:?}",
            values.shape(),
            sequence.shape()
        ));
    }
    let mut sequence = sequence.detach();
    if let Some(sorter) = sorter {
        if sorter.shape() != sequence.shape() || sorter.dtype() != DType::I64 {
            return wrong(format!(
                "the order must be int64 of shape {:?}, and is {} of shape {:?}",
                sequence.shape(),
                sorter.dtype(),
                sorter.shape()
            ));
        }
        sequence = sequence.gather(-1, sorter)?;
    }
    let common = promote_dtypes(sequence.dtype(), values.dtype());
    let values = if number { values } else { values.to(common)? };
    let sequence = if number { sequence } else { sequence.to(common)? };
    let dtype = if out_int32 { DType::I32 } else { DType::I64 };
    let right = right || side == Some(Side::Right);
    let op = SearchSorted { right, dtype };
    apply_one(&op, &[&sequence.contiguous()?, &values.contiguous()?], site)
}

fn bincount(x: &Tensor, options: BincountOptions<'_>, site: Site) -> Result<Tensor> {
    let wrong = |why: String| Err(Error::shape("bincount", why));
    let BincountOptions { weights, minlength } = options;
    if x.dtype().is_float() || x.dtype() == DType::Bool {
        return wrong(format!("numbers of bins are integers, and these are {}", x.dtype()));
    }
    if minlength < 0 {
        return wrong(format!("the number of bins must not be negative, and is {minlength}"));
    }
    if x.rank() != 1 {
        return wrong(format!("one line of numbers is needed, not shape {:?}", x.shape()));
    }
    if weights.is_some_and(|weights| weights.shape() != x.shape()) {
        return wrong(format!("each element of shape {:?} needs a weight", x.shape()));
    }
    let mut count = minlength;
    if x.numel() > 0 {
        let (least, most) = x.detach().aminmax()?;
        if least.to_scalar()?.to_i64() < 0 {
            return wrong("numbers of bins must not be negative".to_string());
        }
        let most = most.to_scalar()?.to_i64();
        let Some(bins) = most.checked_add(1) else {
            return wrong(format!("there are no bins up to {most}"));
        };
        count = count.max(bins);
    }
    let weights = match weights {
        None => None,
        Some(w) if w.dtype() == DType::F32 => Some(w.detach().contiguous()?),
        Some(w) => Some(w.detach().double()?.contiguous()?),
    };
    let dtype = weights.as_ref().map_or(DType::I64, Tensor::dtype);
    let op = Histogram {
        bins: Bins::Numbered,
        count: count as usize,
        weighted: weights.is_some(),
        dtype,
    };
    let x = x.contiguous()?;
    match &weights {
        Some(weights) => apply_one(&op, &[&x, weights], site),
        None => apply_one(&op, &[&x], site),
    }
}

/// Where bins begin and end: where both are equal, as the elements do.
fn ends(name: &'static str, x: &Tensor, bins: i64, (low, high): (f64, f64)) -> Result<(f64, f64)> {
    check_bins(name, x, bins)?;
    let (mut low, mut high) = (low, high);
    if low == high && x.numel() > 0 {
        (low, high) = extent(x)?;
    }
    if low == high {
        (low, high) = (low - 1.0, high + 1.0);
    }
    check_range(name, low, high)
}

/// Where the first bin of a histogram with edges begins and the last one ends: as the elements do
/// if nothing is given, half a unit around a single number, and from 0 to 1 if there is none.
pub(super) fn outer_edges(
    name: &'static str,
    x: &Tensor,
    bins: i64,
    range: Option<(f64, f64)>,
) -> Result<(f64, f64)> {
    check_bins(name, x, bins)?;
    let (low, high) = match range {
        Some(range) => range,
        None if x.numel() > 0 => extent(x)?,
        None => (0.0, 1.0),
    };
    let (low, high) = check_range(name, low, high)?;
    Ok(if low == high { (low - 0.5, high + 0.5) } else { (low, high) })
}

fn check_bins(name: &'static str, x: &Tensor, bins: i64) -> Result<()> {
    if bins <= 0 {
        let why = format!("the number of bins must be positive, and is {bins}");
        return Err(Error::shape(name, why));
    }
    if !x.dtype().is_float() {
        return Err(Error::dtype(name, format!("floats are needed, not {}", x.dtype())));
    }
    Ok(())
}

/// The smallest and the largest element.
fn extent(x: &Tensor) -> Result<(f64, f64)> {
    let (least, most) = x.detach().aminmax()?;
    Ok((least.to_scalar()?.to_f64(), most.to_scalar()?.to_f64()))
}

fn check_range(name: &'static str, low: f64, high: f64) -> Result<(f64, f64)> {
    if !low.is_finite() || !high.is_finite() || low > high {
        return Err(Error::shape(
            name,
            format!("the range from {low} to {high} must be finite and not end before it starts"),
        ));
    }
    Ok((low, high))
}

/// `count + 1` edges of one distance, in the arithmetic of the dtype and from both ends, as PyTorch
/// counts: elements lie on edges.
pub(super) fn even_edges(x: &Tensor, low: f64, high: f64, count: usize) -> Result<Tensor> {
    let from_start = |i: usize| i < count.div_ceil(2);
    let edges: Vec<f64> = if x.dtype() == DType::F64 {
        let step = (high - low) / count as f64;
        let edge = |i: usize| match from_start(i) {
            true => low + step * i as f64,
            false => high - step * (count - i) as f64,
        };
        (0..=count).map(edge).collect()
    } else {
        let (low, high) = (low as f32, high as f32);
        let step = (high - low) / count as f32;
        let edge = |i: usize| match from_start(i) {
            true => low + step * i as f32,
            false => high - step * (count - i) as f32,
        };
        (0..=count).map(|i| f64::from(edge(i))).collect()
    };
    let edges = Tensor::from_slice(&edges, &[count as i64 + 1], plimsoll_core::Device::CPU)?;
    edges.to((x.dtype(), x.device()))
}

fn histogram(
    x: &Tensor,
    edges: &Tensor,
    options: &HistogramOptions<'_>,
    site: Site,
) -> Result<Tensor> {
    if !matches!(x.dtype(), DType::F32 | DType::F64) {
        return Err(Error::dtype(
            "histogram",
            format!("float32 or float64 is needed, not {}", x.dtype()),
        ));
    }
    let weights = match options.weight {
        Some(w) if w.shape() != x.shape() || w.dtype() != x.dtype() => {
            return Err(Error::shape(
                "histogram",
                format!(
                    "each element of shape {:?} needs a weight of {}, and these are {} of shape {:?}",
                    x.shape(),
                    x.dtype(),
                    w.dtype(),
                    w.shape()
                ),
            ));
        }
        Some(w) => Some(w.detach().contiguous()?),
        None => None,
    };
    let op = Histogram {
        bins: Bins::Edges,
        count: edges.numel() - 1,
        weighted: weights.is_some(),
        dtype: x.dtype(),
    };
    let x = x.detach().contiguous()?;
    let counts = match &weights {
        Some(weights) => apply_one(&op, &[&x, edges, weights], site)?,
        None => apply_one(&op, &[&x, edges], site)?,
    };
    if !options.density {
        return Ok(counts);
    }
    counts.div(&counts.sum()?)?.div(&edges.diff()?)
}
