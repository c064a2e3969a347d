//! A convolution in cuDNN's words: descriptors of its tensors and windows, and the library's
//! answers to questions about them. `dnn.rs` chooses by these.

use std::ffi::c_int;

use cudarc::cudnn::result::{self, CudnnError};
use cudarc::cudnn::sys;

use crate::{BlasType, Convolution, Pass};

/// What the library gives, or its refusal.
pub(crate) type Refusable<T> = Result<T, CudnnError>;

/// How many proposals are asked for: more than the library has algorithms for a pass, with tensor
/// cores and without.
const PROPOSALS: usize = 16;

/// A tensor of the library's.
pub(crate) struct TensorShape(pub(crate) sys::cudnnTensorDescriptor_t);

impl Drop for TensorShape {
    fn drop(&mut self) {
        // SAFETY: made in `TensorShape::new`, and destroyed once.
        let _ = unsafe { result::destroy_tensor_descriptor(self.0) };
    }
}

/// A weight of the library's.
pub(crate) struct WeightShape(pub(crate) sys::cudnnFilterDescriptor_t);

impl Drop for WeightShape {
    fn drop(&mut self) {
        // SAFETY: made in `WeightShape::new`, and destroyed once.
        let _ = unsafe { result::destroy_filter_descriptor(self.0) };
    }
}

/// Strides, padding, dilation, groups and precision.
pub(crate) struct Window(pub(crate) sys::cudnnConvolutionDescriptor_t);

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: made in `Window::new`, and destroyed once.
        let _ = unsafe { result::destroy_convolution_descriptor(self.0) };
    }
}

/// Everything that a convolution is described by.
pub(crate) struct Descriptors {
    pub(crate) x: TensorShape,
    pub(crate) weight: WeightShape,
    pub(crate) y: TensorShape,
    pub(crate) window: Window,
}

/// Sizes as the library takes them: depth is left out where there is none.
fn dims(sizes: &[usize; 5], is_flat: bool) -> Vec<c_int> {
    let kept = sizes.iter().enumerate().filter(|(dim, _)| *dim != 2 || !is_flat);
    kept.map(|(_, &size)| size as c_int).collect()
}

/// Of depth, height and width those that there are.
fn spatial(numbers: &[usize; 3], is_flat: bool) -> Vec<c_int> {
    numbers[usize::from(is_flat)..].iter().map(|&number| number as c_int).collect()
}

/// Strides of a packed tensor [batch, channels, ..].
fn strides(dims: &[c_int], channels_last: bool) -> Vec<c_int> {
    let mut strides = vec![1; dims.len()];
    // From the innermost dimension outwards.
    let order: Vec<usize> = match channels_last {
        true => [1].into_iter().chain((2..dims.len()).rev()).chain([0]).collect(),
        false => (0..dims.len()).rev().collect(),
    };
    let mut step = 1;
    for dim in order {
        strides[dim] = step;
        step *= dims[dim];
    }
    strides
}

fn data_type(dtype: BlasType) -> sys::cudnnDataType_t {
    match dtype {
        BlasType::F32 => sys::cudnnDataType_t::CUDNN_DATA_FLOAT,
        BlasType::F64 => sys::cudnnDataType_t::CUDNN_DATA_DOUBLE,
        BlasType::F16 => sys::cudnnDataType_t::CUDNN_DATA_HALF,
        BlasType::BF16 => sys::cudnnDataType_t::CUDNN_DATA_BFLOAT16,
    }
}

impl TensorShape {
    fn new(dtype: BlasType, dims: &[c_int], channels_last: bool) -> Refusable<TensorShape> {
        let shape = TensorShape(result::create_tensor_descriptor()?);
        let strides = strides(dims, channels_last);
        let (count, dims, strides) = (dims.len() as c_int, dims.as_ptr(), strides.as_ptr());
        // SAFETY: the descriptor is alive, and both lists have as many numbers as is said.
        unsafe {
            result::set_tensornd_descriptor(shape.0, data_type(dtype), count, dims, strides)?;
        }
        Ok(shape)
    }
}

impl WeightShape {
    fn new(dtype: BlasType, dims: &[c_int], channels_last: bool) -> Refusable<WeightShape> {
        let shape = WeightShape(result::create_filter_descriptor()?);
        let format = match channels_last {
            true => sys::cudnnTensorFormat_t::CUDNN_TENSOR_NHWC,
            false => sys::cudnnTensorFormat_t::CUDNN_TENSOR_NCHW,
        };
        let (count, dims) = (dims.len() as c_int, dims.as_ptr());
        // SAFETY: the descriptor is alive, and the list has as many numbers as is said.
        unsafe {
            result::set_filternd_descriptor(shape.0, data_type(dtype), format, count, dims)?;
        }
        Ok(shape)
    }
}

impl Window {
    fn new(convolution: &Convolution, is_flat: bool) -> Refusable<Window> {
        let window = Window(result::create_convolution_descriptor()?);
        let padding = spatial(&convolution.padding, is_flat);
        let stride = spatial(&convolution.stride, is_flat);
        let dilation = spatial(&convolution.dilation, is_flat);
        // Halves are added up in float32.
        let sums = match convolution.dtype {
            BlasType::F64 => BlasType::F64,
            BlasType::F32 | BlasType::F16 | BlasType::BF16 => BlasType::F32,
        };
        // SAFETY: the descriptor is alive, and the lists have as many numbers as is said.
        unsafe {
            result::set_convolutionnd_descriptor(
                window.0,
                padding.len() as c_int,
                padding.as_ptr(),
                stride.as_ptr(),
                dilation.as_ptr(),
                sys::cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION,
                data_type(sums),
            )?;
            result::set_convolution_group_count(window.0, convolution.groups as c_int)?;
        }
        use sys::cudnnMathType_t as Math;
        window.set_math(match convolution.dtype {
            // The library's default for float32 is TF32.
            BlasType::F32 if !convolution.allow_tf32 => Math::CUDNN_FMA_MATH,
            BlasType::F32 | BlasType::F64 => Math::CUDNN_DEFAULT_MATH,
            BlasType::F16 | BlasType::BF16 => Math::CUDNN_TENSOR_OP_MATH,
        })?;
        Ok(window)
    }

    pub(crate) fn set_math(&self, math: sys::cudnnMathType_t) -> Refusable<()> {
        // SAFETY: the descriptor is alive.
        unsafe { result::set_convolution_math_type(self.0, math) }
    }
}

/// One of the library's algorithms.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Algorithm {
    Result(sys::cudnnConvolutionFwdAlgo_t),
    Input(sys::cudnnConvolutionBwdDataAlgo_t),
    Weight(sys::cudnnConvolutionBwdFilterAlgo_t),
}

impl Algorithm {
    /// The library's algorithm `number` for `pass`, if it is one that is taken.
    /// See Note [Which algorithms are taken] in `dnn.rs`.
    pub(crate) fn of(pass: Pass, number: u32) -> Option<Algorithm> {
        use sys::cudnnConvolutionBwdDataAlgo_t::CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 as INPUT;
        use sys::cudnnConvolutionBwdFilterAlgo_t::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 as WEIGHT;
        use sys::cudnnConvolutionFwdAlgo_t as Forward;
        let forward = [
            Forward::CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
            Forward::CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
            Forward::CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
        ];
        match pass {
            Pass::Result => {
                let known = forward.into_iter().find(|&known| known as u32 == number);
                known.map(Algorithm::Result)
            }
            Pass::Input => (INPUT as u32 == number).then_some(Algorithm::Input(INPUT)),
            Pass::Weight => (WEIGHT as u32 == number).then_some(Algorithm::Weight(WEIGHT)),
        }
    }
}

/// What the heuristics propose. Mirrors the library's three structures, which are alike, with
/// numbers where they have enumerations: those of a newer library may have more.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Proposal {
    algorithm: u32,
    status: u32,
    time: f32,
    memory: usize,
    determinism: u32,
    math: u32,
    reserved: [c_int; 3],
}

const _: () = assert!(size_of::<Proposal>() == size_of::<sys::cudnnConvolutionFwdAlgoPerf_t>());
const _: () = assert!(size_of::<Proposal>() == size_of::<sys::cudnnConvolutionBwdDataAlgoPerf_t>());
const _: () =
    assert!(size_of::<Proposal>() == size_of::<sys::cudnnConvolutionBwdFilterAlgoPerf_t>());

impl Proposal {
    /// Its algorithm, if it works, is one that is taken, and gives the same bits every time.
    pub(crate) fn taken(&self, pass: Pass) -> Option<Algorithm> {
        let works = self.status == sys::cudnnStatus_t::CUDNN_STATUS_SUCCESS as u32;
        let same = self.determinism == sys::cudnnDeterminism_t::CUDNN_DETERMINISTIC as u32;
        if works && same { Algorithm::of(pass, self.algorithm) } else { None }
    }

    /// The precision that it is for. None that would turn float32 into halves.
    pub(crate) fn math(&self) -> sys::cudnnMathType_t {
        use sys::cudnnMathType_t as Math;
        let known = [Math::CUDNN_TENSOR_OP_MATH, Math::CUDNN_FMA_MATH];
        let found = known.into_iter().find(|&known| known as u32 == self.math);
        found.unwrap_or(Math::CUDNN_DEFAULT_MATH)
    }
}

impl Descriptors {
    pub(crate) fn new(convolution: &Convolution) -> Refusable<Descriptors> {
        let Convolution { dtype, channels_last, x, weight, y, .. } = convolution;
        let is_flat = convolution.is_flat();
        Ok(Descriptors {
            x: TensorShape::new(*dtype, &dims(x, is_flat), *channels_last)?,
            weight: WeightShape::new(*dtype, &dims(weight, is_flat), *channels_last)?,
            y: TensorShape::new(*dtype, &dims(y, is_flat), *channels_last)?,
            window: Window::new(convolution, is_flat)?,
        })
    }

    /// What the heuristics propose, the fastest first.
    pub(crate) fn proposals(
        &self,
        handle: sys::cudnnHandle_t,
        pass: Pass,
    ) -> Refusable<Vec<Proposal>> {
        let mut proposals = [Proposal::default(); PROPOSALS];
        let (mut count, to) = (0, proposals.as_mut_ptr());
        let most = PROPOSALS as c_int;
        let Descriptors { x, weight, y, window } = self;
        // SAFETY: handle and descriptors are alive; the library fills in at most as many as there
        // is room for, laid out as `Proposal` says.
        unsafe {
            match pass {
                Pass::Result => result::get_convolution_forward_algorithm(
                    handle,
                    x.0,
                    weight.0,
                    window.0,
                    y.0,
                    most,
                    &raw mut count,
                    to.cast(),
                ),
                Pass::Input => result::get_convolution_backward_data_algorithm(
                    handle,
                    weight.0,
                    y.0,
                    window.0,
                    x.0,
                    most,
                    &raw mut count,
                    to.cast(),
                ),
                Pass::Weight => result::get_convolution_backward_filter_algorithm(
                    handle,
                    x.0,
                    y.0,
                    window.0,
                    weight.0,
                    most,
                    &raw mut count,
                    to.cast(),
                ),
            }?;
        }
        Ok(proposals[..(count.max(0) as usize).min(PROPOSALS)].to_vec())
    }

    /// Bytes of workspace that `algorithm` wants.
    pub(crate) fn wanted_bytes(
        &self,
        handle: sys::cudnnHandle_t,
        algorithm: Algorithm,
    ) -> Refusable<usize> {
        let Descriptors { x, weight, y, window } = self;
        // SAFETY: handle and descriptors are alive.
        unsafe {
            match algorithm {
                Algorithm::Result(algorithm) => result::get_convolution_forward_workspace_size(
                    handle, x.0, weight.0, window.0, y.0, algorithm,
                ),
                Algorithm::Input(algorithm) => {
                    result::get_convolution_backward_data_workspace_size(
                        handle, weight.0, y.0, window.0, x.0, algorithm,
                    )
                }
                Algorithm::Weight(algorithm) => {
                    result::get_convolution_backward_filter_workspace_size(
                        handle, x.0, y.0, window.0, weight.0, algorithm,
                    )
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_tensors_have_their_channels_outside_or_inside() {
        let flat = dims(&[2, 3, 1, 4, 5], true);
        assert_eq!(flat, [2, 3, 4, 5]);
        assert_eq!(strides(&flat, false), [60, 20, 5, 1]);
        assert_eq!(strides(&flat, true), [60, 1, 15, 3]);
        let deep = dims(&[2, 3, 4, 5, 6], false);
        assert_eq!(strides(&deep, true), [360, 1, 90, 18, 3]);
    }
}
