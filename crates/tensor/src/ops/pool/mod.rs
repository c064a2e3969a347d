//! Pooling: the largest element or the mean of each window of a channel. `max.rs` and `mean.rs` are
//! the operations with their derivatives, `places.rs` moves elements to and from the places that
//! the largest came from, `unfold.rs` copies windows out and back, `shape.rs` has the rules for
//! sizes. The methods that call these are in `api/pool.rs`.

pub(crate) mod max;
pub(crate) mod mean;
pub(crate) mod places;
pub(crate) mod shape;
pub(crate) mod unfold;

use plimsoll_core::{DType, Error, Result};
use plimsoll_cuda::source_files;
use plimsoll_kernels::Meta;
use plimsoll_kernels::cpu::pool::Window;
use smallvec::SmallVec;

use super::channels_last::{is_channels_last, laid_out};
use crate::operation::{DTypes, Home, OnCuda, OpInfo};

/// Windows of depth, height and width, of which the last `rank` count, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Windows {
    pub(crate) rank: usize,
    pub(crate) windows: [Window; 3],
    pub(crate) results: [usize; 3],
}

impl Windows {
    /// The result's shape beside [batch, channels, ..].
    pub(crate) fn shape(&self, x: &[usize]) -> SmallVec<[usize; 5]> {
        x[..2].iter().chain(&self.results[3 - self.rank..]).copied().collect()
    }

    /// A result of these windows over `x`, channels last if x is: of volumes too where PyTorch
    /// keeps it there.
    fn lay_out(&self, x: &Meta, volumes: bool) -> Result<Meta> {
        let channels_last = is_channels_last(&x.layout) && (self.rank < 3 || volumes);
        laid_out(&self.shape(x.shape()), x.dtype, channels_last)
    }
}

/// Refuses dtypes that the operation does not take.
fn check_dtype(info: &OpInfo, input: &Meta) -> Result<()> {
    if info.dtypes.contains(input.dtype) {
        return Ok(());
    }
    Err(Error::dtype(
        info.name,
        format!(
            "the input of shape {:?} is {}, which is not pooled; convert it with `to` first",
            input.shape(),
            input.dtype
        ),
    ))
}

/// Floats, and int64 where PyTorch has it.
const MEANS: DTypes = DTypes::of(&[DType::F16, DType::BF16, DType::F32, DType::F64, DType::I64]);

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "pool",
        signatures,
        differentiable: true,
        dtypes: DTypes::FLOATS,
        cuda: OnCuda::Kernels(&source_files::POOL),
        home: Home::Functional,
        ..OpInfo::BARE
    }
}

macro_rules! lp_rows {
    ($($row:ident, $name:literal, $dtypes:expr;)*) => {$(
        static $row: OpInfo = OpInfo {
            cuda: OnCuda::Composed,
            dtypes: $dtypes,
            ..info($name, &[concat!(
                $name,
                "(Tensor input, float norm_type, int[] kernel_size, int[]? stride=None, bool ceil_mode=False) -> Tensor"
            )])
        };
    )*};
}
lp_rows!(
    LP_POOL1D, "lp_pool1d", DTypes::FLOATS;
    LP_POOL2D, "lp_pool2d", DTypes::FLOATS;
    // Made of means, which PyTorch has no halves of over volumes.
    LP_POOL3D, "lp_pool3d", DTypes::of(&[DType::F32, DType::F64]);
);

pub(crate) static OPS: &[&OpInfo] = &[
    &max::MAX_POOL1D,
    &max::MAX_POOL2D,
    &max::MAX_POOL3D,
    &max::MAX_POOL1D_WITH_INDICES,
    &max::MAX_POOL2D_WITH_INDICES,
    &max::MAX_POOL3D_WITH_INDICES,
    &max::ADAPTIVE_MAX_POOL1D,
    &max::ADAPTIVE_MAX_POOL2D,
    &max::ADAPTIVE_MAX_POOL3D,
    &max::FRACTIONAL_MAX_POOL2D,
    &max::FRACTIONAL_MAX_POOL3D,
    &mean::AVG_POOL1D,
    &mean::AVG_POOL2D,
    &mean::AVG_POOL3D,
    &mean::ADAPTIVE_AVG_POOL1D,
    &mean::ADAPTIVE_AVG_POOL2D,
    &mean::ADAPTIVE_AVG_POOL3D,
    &places::MAX_UNPOOL1D,
    &places::MAX_UNPOOL2D,
    &places::MAX_UNPOOL3D,
    &places::MAX_POOL2D_WITH_INDICES_BACKWARD,
    &LP_POOL1D,
    &LP_POOL2D,
    &LP_POOL3D,
    &unfold::IM2COL,
    &unfold::COL2IM,
];
