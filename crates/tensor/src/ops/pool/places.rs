//! Elements to and from places in their channels: what comes back from a largest element, and
//! unpooling. Scattering and gathering are each other's derivatives.

use std::sync::Arc;

use plimsoll_core::{DType, Error, Result};
use smallvec::SmallVec;

use super::{check_dtype, info};
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Home, Inferred, Input, Needs, OpInfo, Operation, Saves,
};
use crate::ops::channels_last::{is_channels_last, laid_out};
use crate::ops::conv::space_of;
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::pool::{self as cpu, Window};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// Which of the operations it is to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    Internal,
    Unpool,
    MaxPoolBackward,
}

/// Inputs [values, places] -> channels of this size: zeros, and in them each value at its place. A
/// third input, what was pooled, is only kept in the graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScatterPlaces {
    pub(crate) rank: usize,
    /// The last `rank` count.
    pub(crate) size: [usize; 3],
    /// Whether values of one place are added up; otherwise the last one stays.
    pub(crate) accumulate: bool,
    pub(crate) channels_last: bool,
    /// The windows that the places came from, where that is sure.
    pub(crate) windows: Option<[Window; 3]>,
    pub(crate) called: Called,
}

/// Inputs [channels, places] -> the element at each place.
#[derive(Clone, Copy, Debug)]
struct GatherPlaces {
    rank: usize,
}

impl ScatterPlaces {
    /// What comes back to `x` from the largest of its windows.
    pub(crate) fn back_to(x: &Meta, rank: usize) -> ScatterPlaces {
        ScatterPlaces {
            rank,
            size: space_of(x.shape()),
            accumulate: true,
            channels_last: is_channels_last(&x.layout),
            windows: None,
            called: Called::Internal,
        }
    }
}

/// Refuses places that are not one for each value.
fn check_places(info: &OpInfo, values: &Meta, places: &Meta) -> Result<()> {
    if places.dtype != DType::I64 {
        return Err(Error::dtype(
            info.name,
            format!("elements in indices should be type int64 but got {}", places.dtype),
        ));
    }
    if values.shape() != places.shape() {
        return Err(Error::shape(
            info.name,
            format!(
                "expected shape of indices to be the same as that of the input of shape {:?}, but got {:?}",
                values.shape(),
                places.shape()
            ),
        ));
    }
    Ok(())
}

impl Operation for ScatterPlaces {
    fn info(&self) -> &'static OpInfo {
        match self.called {
            Called::Internal => &SCATTER_PLACES,
            Called::Unpool => [&MAX_UNPOOL1D, &MAX_UNPOOL2D, &MAX_UNPOOL3D][self.rank - 1],
            Called::MaxPoolBackward => &MAX_POOL2D_WITH_INDICES_BACKWARD,
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (values, places) = (inputs[0], inputs[1]);
        check_dtype(self.info(), values)?;
        check_places(self.info(), values, places)?;
        let size = &self.size[3 - self.rank..];
        let shape: SmallVec<[usize; 5]> = values.shape()[..2].iter().chain(size).copied().collect();
        Ok(Inferred::one(laid_out(&shape, values.dtype, self.channels_last)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(1)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::scatter_places(launch, self.accumulate)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::scatter_places(launch, self.accumulate, self.windows)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let grad = backward.grad()?;
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        grads[0] = backward.for_input(0, || {
            let op = GatherPlaces { rank: self.rank };
            apply_one(&op, &[grad, backward.input(1)?], Site::in_force())
        })?;
        // The values of what was pooled play no part, but PyTorch has a gradient for them.
        if let Some(pooled) = backward.inputs.get(2).filter(|_| backward.needs.has(2)) {
            let shape: SmallVec<[i64; 5]> = pooled.shape().iter().map(|&n| n as i64).collect();
            grads[2] = Some(Tensor::zeros(&shape, (pooled.dtype, grad.device()))?);
        }
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

impl Operation for GatherPlaces {
    fn info(&self) -> &'static OpInfo {
        &GATHER_PLACES
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        let (channels, places) = (inputs[0], inputs[1]);
        let channels_last = is_channels_last(&places.layout);
        Ok(Inferred::one(laid_out(places.shape(), channels.dtype, channels_last)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(1)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::gather_places(launch)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::gather_places(launch)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let op = ScatterPlaces::back_to(&backward.inputs[0], self.rank);
        let inputs = [backward.grad()?, backward.input(1)?];
        Ok(smallvec::smallvec![Some(apply_one(&op, &inputs, Site::in_force())?), None])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

macro_rules! unpool_rows {
    ($($row:ident, $name:literal;)*) => {$(
        pub(super) static $row: OpInfo = OpInfo {
            inputs: &[Input::Given, Input::Given],
            ..info($name, &[concat!(
                $name,
                "(Tensor input, Tensor indices, int[] kernel_size, int[]? stride=None, int[] padding=0, int[]? output_size=None) -> Tensor"
            )])
        };
    )*};
}
unpool_rows!(
    MAX_UNPOOL1D, "max_unpool1d";
    MAX_UNPOOL2D, "max_unpool2d";
    MAX_UNPOOL3D, "max_unpool3d";
);

pub(super) static MAX_POOL2D_WITH_INDICES_BACKWARD: OpInfo = OpInfo {
    home: Home::Torch,
    inputs: &[Input::Given, Input::Given],
    ..info(
        "max_pool2d_with_indices_backward",
        &[
            "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode, Tensor indices) -> Tensor",
        ],
    )
};
/// Internal: reached only through derivatives.
static SCATTER_PLACES: OpInfo = OpInfo {
    dtypes: DTypes::NUMBERS,
    inputs: &[Input::Given, Input::Given],
    ..info("max_pool_backward", &[])
};
static GATHER_PLACES: OpInfo = OpInfo {
    dtypes: DTypes::NUMBERS,
    inputs: &[Input::Given, Input::Given],
    ..info("max_pool_gather", &[])
};
