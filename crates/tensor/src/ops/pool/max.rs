//! The largest element of each window, with the places that they came from where somebody asks for
//! them or backward will.

use std::sync::Arc;

use plimsoll_core::{DType, Error, Result};

use super::places::ScatterPlaces;
use super::{Windows, check_dtype, info};
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Home, Inferred, Metas, Needs, OpInfo, Operation, Saves,
};
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::pool::{self as cpu, Window};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// Which of the operations it is to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    Plain,
    WithIndices,
    Adaptive,
    Fractional,
}

/// Inputs [x], fractional [x, samples]; outputs [y] or [y, places].
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxPool {
    pub(crate) windows: Windows,
    pub(crate) called: Called,
}

impl MaxPool {
    /// Which sample is each dimension's: PyTorch has the width's first in an image.
    fn samples(&self) -> [usize; 3] {
        if self.windows.rank == 2 { [0, 1, 0] } else { [0, 1, 2] }
    }

    /// The samples are [batch, channels, dimensions].
    fn check_samples(&self, x: &Meta, samples: &Meta) -> Result<()> {
        let wanted = [x.shape()[0], x.shape()[1], self.windows.rank];
        if samples.shape() == wanted && samples.dtype == x.dtype {
            return Ok(());
        }
        Err(Error::shape(
            self.info().name,
            format!(
                "the samples should be {} of shape {wanted:?} for an input of shape {:?}, not {} of {:?}",
                x.dtype,
                x.shape(),
                samples.dtype,
                samples.shape()
            ),
        ))
    }
}

impl Operation for MaxPool {
    fn info(&self) -> &'static OpInfo {
        let at = self.windows.rank - 1;
        match self.called {
            Called::Plain => [&MAX_POOL1D, &MAX_POOL2D, &MAX_POOL3D][at],
            Called::WithIndices => {
                [&MAX_POOL1D_WITH_INDICES, &MAX_POOL2D_WITH_INDICES, &MAX_POOL3D_WITH_INDICES][at]
            }
            Called::Adaptive => {
                [&ADAPTIVE_MAX_POOL1D, &ADAPTIVE_MAX_POOL2D, &ADAPTIVE_MAX_POOL3D][at]
            }
            Called::Fractional if at == 1 => &FRACTIONAL_MAX_POOL2D,
            Called::Fractional => &FRACTIONAL_MAX_POOL3D,
        }
    }

    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred> {
        check_dtype(self.info(), inputs[0])?;
        let even = matches!(self.called, Called::Plain | Called::WithIndices);
        if self.called == Called::Fractional {
            self.check_samples(inputs[0], inputs[1])?;
        }
        // PyTorch has a way of its own for signals that no gradient is wanted of.
        let alone = self.called == Called::Plain && self.windows.rank == 1 && !needs.has(0);
        let y = if self.called == Called::Fractional || alone {
            Meta::contiguous(&self.windows.shape(inputs[0].shape()), inputs[0].dtype)?
        } else {
            self.windows.lay_out(inputs[0], even)?
        };
        let mut outputs: Metas = smallvec::smallvec![y];
        if self.called != Called::Plain || needs.has(0) {
            let places = Meta { dtype: DType::I64, ..outputs[0].clone() };
            outputs.push(places);
        }
        Ok(Inferred::Exact(outputs))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::output(1)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        match self.called {
            Called::Fractional => {
                cpu::max_pool_fractional(launch, self.windows.windows, self.samples())
            }
            _ => cpu::max_pool(launch, self.windows.windows),
        }
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::max_pool(launch, self.windows.windows, self.samples())
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let mut op = ScatterPlaces::back_to(&backward.inputs[0], self.windows.rank);
        op.windows = Some(self.windows.windows).filter(|_| self.called != Called::Fractional);
        let inputs = [backward.grad()?, backward.output(1)?];
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        grads[0] = backward.for_input(0, || apply_one(&op, &inputs, Site::in_force()))?;
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// Fractional windows of these sizes.
pub(crate) fn fractional(kernel: [usize; 3], rank: usize, results: [usize; 3]) -> Windows {
    let mut windows = [Window::NONE; 3];
    for d in 3 - rank..3 {
        windows[d] = Window::Fractional { kernel: kernel[d] };
    }
    Windows { rank, windows, results }
}

macro_rules! max_rows {
    ($($row:ident, $name:literal, $result:literal, $dtypes:expr, $home:ident;)*) => {$(
        pub(super) static $row: OpInfo = OpInfo {
            dtypes: $dtypes,
            home: Home::$home,
            ..info($name, &[concat!(
                $name,
                "(Tensor input, int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool ceil_mode=False) -> ",
                $result
            )])
        };
    )*};
}
max_rows!(
    MAX_POOL1D, "max_pool1d", "Tensor", DTypes::FLOATS, Torch;
    MAX_POOL2D, "max_pool2d", "Tensor", DTypes::NUMBERS, Torch;
    MAX_POOL3D, "max_pool3d", "Tensor", DTypes::NUMBERS, Torch;
    MAX_POOL1D_WITH_INDICES, "max_pool1d_with_indices", "(Tensor, Tensor)", DTypes::FLOATS, Torch;
    MAX_POOL2D_WITH_INDICES, "max_pool2d_with_indices", "(Tensor, Tensor)", DTypes::NUMBERS, Functional;
    MAX_POOL3D_WITH_INDICES, "max_pool3d_with_indices", "(Tensor, Tensor)", DTypes::NUMBERS, Functional;
);

macro_rules! adaptive_rows {
    ($($row:ident, $name:literal, $home:ident;)*) => {$(
        pub(super) static $row: OpInfo = OpInfo {
            home: Home::$home,
            ..info($name, &[concat!(
                $name,
                "(Tensor input, int[] output_size) -> (Tensor, Tensor)"
            )])
        };
    )*};
}
adaptive_rows!(
    ADAPTIVE_MAX_POOL1D, "adaptive_max_pool1d", Torch;
    ADAPTIVE_MAX_POOL2D, "adaptive_max_pool2d", Functional;
    ADAPTIVE_MAX_POOL3D, "adaptive_max_pool3d", Functional;
);

pub(super) static FRACTIONAL_MAX_POOL2D: OpInfo = info(
    "fractional_max_pool2d",
    &[
        "fractional_max_pool2d(Tensor input, int[] kernel_size, int[] output_size, Tensor random_samples) -> (Tensor, Tensor)",
    ],
);
pub(super) static FRACTIONAL_MAX_POOL3D: OpInfo = info(
    "fractional_max_pool3d",
    &[
        "fractional_max_pool3d(Tensor input, int[] kernel_size, int[] output_size, Tensor random_samples) -> (Tensor, Tensor)",
    ],
);
