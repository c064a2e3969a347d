//! Sampling of images and volumes at places that a grid names. Sampling is linear in the image, and
//! so is the slope along the grid; the three operations here are each other's derivatives, with the
//! weights differentiated along a direction for those of second order.

use std::sync::Arc;

use plimsoll_core::{Dims, Error, Result};
use plimsoll_cuda::{Properties, source_files};
use smallvec::SmallVec;

use super::nn::check_float;
use crate::Tensor;
use crate::cuda::{self, CudaLaunch};
use crate::operation::{
    Backward, DTypes, Grads, Home, Inferred, Needs, OnCuda, OpInfo, Operation, Saves,
};
use crate::prepare::apply_one;
use plimsoll_kernels::cpu::grid::{self as cpu, GridArgs};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// [x of (batch, channels, 2 or 3 spatial dimensions), grid of (batch, places.., 2 or 3), direction
/// if `directed`] -> x at the places, or the derivative of that along the direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GridSample(pub(crate) GridArgs);

/// Without a direction.
fn plain(args: GridArgs) -> GridArgs {
    GridArgs { directed: false, ..args }
}

/// With a direction: those that have one already were differentiated twice.
fn directed(args: GridArgs) -> Result<GridArgs> {
    if args.directed {
        return Err(Error::autograd(
            GRID_SAMPLE.name,
            "it has derivatives up to the second, and this is a third",
        ));
    }
    Ok(GridArgs { directed: true, ..args })
}

fn run(op: &dyn Operation, inputs: &[&Tensor], direction: Option<&Tensor>) -> Result<Tensor> {
    let mut all: SmallVec<[&Tensor; 4]> = inputs.into();
    all.extend(direction);
    apply_one(op, &all, Site::in_force())
}

/// Checks x and grid.
fn check(x: &Meta, grid: &Meta) -> Result<()> {
    let name = GRID_SAMPLE.name;
    check_float(&GRID_SAMPLE, x)?;
    let (image, places) = (x.shape(), grid.shape());
    let wrong = |what: &str| {
        Err(Error::shape(
            name,
            format!("{what}: the input has the shape {image:?} and the grid {places:?}"),
        ))
    };
    if x.dtype != grid.dtype {
        return Err(Error::dtype(
            name,
            format!("the input is {} and the grid {}; convert one with `to`", x.dtype, grid.dtype),
        ));
    }
    if !(4..=5).contains(&image.len()) || places.len() != image.len() {
        return wrong("both need 4 dimensions, or 5");
    }
    if places[0] != image[0] {
        return wrong("both need the same batch");
    }
    if places[places.len() - 1] != image.len() - 2 {
        return wrong("the grid's last dimension needs a place for each spatial dimension");
    }
    if image[2..].contains(&0) {
        return wrong("spatial dimensions must not be empty");
    }
    Ok(())
}

fn samples(image: &[usize], grid: &[usize]) -> Dims {
    image[..2].iter().chain(&grid[1..grid.len() - 1]).copied().collect()
}

impl Operation for GridSample {
    fn info(&self) -> &'static OpInfo {
        &GRID_SAMPLE
    }

    fn node_name(&self, inputs: &[Meta]) -> Option<&'static str> {
        match inputs.first()?.shape().len() {
            4 => Some("GridSampler2DBackward0"),
            _ => Some("GridSampler3DBackward0"),
        }
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        check(inputs[0], inputs[1])?;
        let shape = samples(inputs[0].shape(), inputs[1].shape());
        Ok(Inferred::one(Meta::contiguous(&shape, inputs[0].dtype)?))
    }

    fn saves(&self, needs: Needs) -> Saves {
        let x = needs.has(1) || needs.has(2);
        Saves::input(0).when(x).and(Saves::input(1)).and(Saves::input(2).when(self.0.directed))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::grid_sample(launch, self.0)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::grid_sample(launch, self.0)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (grad, grid) = (&backward.grad()?.contiguous()?, backward.input(1)?);
        let direction = if self.0.directed { Some(backward.input(2)?) } else { None };
        let x = backward.for_input(0, || {
            let op = GridScatter { args: self.0, image: backward.inputs[0].shape().into() };
            run(&op, &[grad, grid], direction)
        })?;
        let places = backward.for_input(1, || {
            run(&GridSlope(self.0), &[grad, backward.input(0)?, grid], direction)
        })?;
        let mut grads: Grads = smallvec::smallvec![x, places];
        if self.0.directed {
            grads.push(backward.for_input(2, || {
                run(&GridSlope(plain(self.0)), &[grad, backward.input(0)?, grid], None)
            })?);
        }
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// [gradient of the samples, grid, direction if `directed`] -> the gradient of the image: the
/// transpose of sampling.
#[derive(Clone, Debug)]
struct GridScatter {
    args: GridArgs,
    image: Dims,
}

impl Operation for GridScatter {
    fn info(&self) -> &'static OpInfo {
        &GRID_SCATTER
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta::contiguous(&self.image, inputs[0].dtype)?))
    }

    fn saves(&self, needs: Needs) -> Saves {
        let grad = needs.has(1) || needs.has(2);
        Saves::input(0)
            .when(grad)
            .and(Saves::input(1))
            .and(Saves::input(2).when(self.args.directed))
    }

    fn workspace_bytes(&self, _inputs: &[&Meta], outputs: &[Meta]) -> usize {
        cpu::grid_scatter_workspace_bytes(outputs[0].dtype, outputs[0].shape())
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::grid_scatter(launch, self.args)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::grid_scatter_workspace_bytes(self.args, &self.image, inputs[1])
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::grid_scatter(launch, self.args)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let (image, grid) = (&backward.grad()?.contiguous()?, backward.input(1)?);
        let direction = if self.args.directed { Some(backward.input(2)?) } else { None };
        let samples =
            backward.for_input(0, || run(&GridSample(self.args), &[image, grid], direction))?;
        let places = backward.for_input(1, || {
            run(&GridSlope(self.args), &[backward.input(0)?, image, grid], direction)
        })?;
        let mut grads: Grads = smallvec::smallvec![samples, places];
        if self.args.directed {
            grads.push(backward.for_input(2, || {
                run(&GridSlope(plain(self.args)), &[backward.input(0)?, image, grid], None)
            })?);
        }
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(self.clone())
    }
}

/// [gradient of the samples, x, grid, direction if `directed`] -> the gradient of the grid.
#[derive(Clone, Copy, Debug)]
struct GridSlope(GridArgs);

impl Operation for GridSlope {
    fn info(&self) -> &'static OpInfo {
        &GRID_SLOPE
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        Ok(Inferred::one(Meta::contiguous(inputs[2].shape(), inputs[2].dtype)?))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(0).and(Saves::input(1)).and(Saves::input(2))
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::grid_slope(launch, self.0)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::grid_slope(launch, self.0)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let args = directed(self.0)?;
        let along = &backward.grad()?.contiguous()?;
        let (grad, x, grid) = (backward.input(0)?, backward.input(1)?, backward.input(2)?);
        let samples = backward.for_input(0, || run(&GridSample(args), &[x, grid], Some(along)))?;
        let image = backward.for_input(1, || {
            let op = GridScatter { args, image: x.shape().into() };
            run(&op, &[grad, grid], Some(along))
        })?;
        let places =
            backward.for_input(2, || run(&GridSlope(args), &[grad, x, grid], Some(along)))?;
        Ok(smallvec::smallvec![samples, image, places])
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        family: "grid",
        signatures,
        differentiable: true,
        dtypes: DTypes::FLOATS,
        cuda: OnCuda::Kernels(&source_files::GRID),
        ..OpInfo::BARE
    }
}

/// Sampling under another name.
const fn named(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { cuda: OnCuda::Composed, ..info(name, signatures) }
}

static GRID_SAMPLE: OpInfo = OpInfo {
    home: Home::Functional,
    ..info(
        "grid_sample",
        &[
            "grid_sample(Tensor self, Tensor grid, str grid_mode='bilinear', str grid_padding='zeros', bool align_corners=False) -> Tensor",
        ],
    )
};
static GRID_SAMPLER: OpInfo = named(
    "grid_sampler",
    &[
        "grid_sampler(Tensor self, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    ],
);
static GRID_SAMPLER_2D: OpInfo = named(
    "grid_sampler_2d",
    &[
        "grid_sampler_2d(Tensor self, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    ],
);
static GRID_SAMPLER_3D: OpInfo = named(
    "grid_sampler_3d",
    &[
        "grid_sampler_3d(Tensor self, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    ],
);
/// Internal: reached only through the derivatives.
static GRID_SCATTER: OpInfo = info("grid_scatter", &[]);
static GRID_SLOPE: OpInfo = info("grid_slope", &[]);

pub(crate) static OPS: &[&OpInfo] =
    &[&GRID_SAMPLE, &GRID_SAMPLER, &GRID_SAMPLER_2D, &GRID_SAMPLER_3D];
