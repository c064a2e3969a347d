//! Typed elementwise loops: a function of one, two or three elements applied over whatever tiles
//! the engine (`iterate.rs`) cuts. Kernels give the function as a value of a small type, so that
//! each becomes its own vectorised loop for each instruction set.
//!
//! The contiguous loops exist twice where an output may be its own input: the compiler's overlap
//! check would send the identical pointers to the scalar loop.

use plimsoll_core::{Error, Result};

use crate::Element;
use crate::iterate::{self, Tile};
use crate::simd::{self, Level, LevelKernel};
use crate::{CpuLaunch, Operand};

/// A function of one element.
pub trait Map1: Copy + Sync {
    /// The input's elements.
    type A: Element;
    /// The output's elements.
    type Out: Element;
    /// The value for one element. Implementations are `#[inline(always)]`.
    fn call<L: Level>(self, a: Self::A) -> Self::Out;
}

/// A function of two elements.
pub trait Map2: Copy + Sync {
    /// The first input's elements.
    type A: Element;
    /// The second input's elements.
    type B: Element;
    /// The output's elements.
    type Out: Element;
    /// The value for one pair. Implementations are `#[inline(always)]`.
    fn call<L: Level>(self, a: Self::A, b: Self::B) -> Self::Out;
}

/// A function of three elements.
pub trait Map3: Copy + Sync {
    /// The first input's elements.
    type A: Element;
    /// The second input's elements.
    type B: Element;
    /// The third input's elements.
    type C: Element;
    /// The output's elements.
    type Out: Element;
    /// The value for one triple. Implementations are `#[inline(always)]`.
    fn call<L: Level>(self, a: Self::A, b: Self::B, c: Self::C) -> Self::Out;
}

/// The first output and the first `N - 1` inputs of a launch, in the engine's order.
#[inline(always)]
pub fn operands<'a, const N: usize>(launch: &CpuLaunch<'a>) -> Result<[Operand<'a>; N]> {
    let (Some(out), true) = (launch.outputs.first(), launch.inputs.len() + 1 >= N) else {
        return Err(too_few_operands(launch, N - 1));
    };
    Ok(std::array::from_fn(|i| if i == 0 { *out } else { launch.inputs[i - 1] }))
}

#[cold]
fn too_few_operands(launch: &CpuLaunch<'_>, inputs: usize) -> Error {
    Error::invalid_argument(format!(
        "the kernel needs {inputs} inputs and an output, but was launched with {} and {}",
        launch.inputs.len(),
        launch.outputs.len()
    ))
    .in_operation(launch.operation)
}

/// Whether an operand holds `T`; kernels that read bytes typed make sure of it here.
#[inline]
pub fn check<T: Element>(launch: &CpuLaunch<'_>, operand: &Operand<'_>) -> Result<()> {
    if operand.dtype() == T::DTYPE {
        Ok(())
    } else {
        Err(crate::wrong_dtype(launch.operation, operand.dtype()))
    }
}

/// `out = f(input 0)`.
#[inline]
pub fn map1<F: Map1>(launch: &CpuLaunch<'_>, f: F) -> Result<()> {
    let all = operands::<2>(launch)?;
    check::<F::Out>(launch, &all[0])?;
    check::<F::A>(launch, &all[1])?;
    iterate::run(all, |tile| simd::dispatch_level(Loop1(f, tile)));
    Ok(())
}

/// `out = f(input 0, input 1)`.
#[inline]
pub fn map2<F: Map2>(launch: &CpuLaunch<'_>, f: F) -> Result<()> {
    let all = operands::<3>(launch)?;
    check::<F::Out>(launch, &all[0])?;
    check::<F::A>(launch, &all[1])?;
    check::<F::B>(launch, &all[2])?;
    iterate::run(all, |tile| simd::dispatch_level(Loop2(f, tile)));
    Ok(())
}

/// `out = f(input 0, input 1, input 2)`.
#[inline]
pub fn map3<F: Map3>(launch: &CpuLaunch<'_>, f: F) -> Result<()> {
    let all = operands::<4>(launch)?;
    check::<F::Out>(launch, &all[0])?;
    check::<F::A>(launch, &all[1])?;
    check::<F::B>(launch, &all[2])?;
    check::<F::C>(launch, &all[3])?;
    iterate::run(all, |tile| simd::dispatch_level(Loop3(f, tile)));
    Ok(())
}

struct Loop1<'a, F>(F, &'a Tile<2>);

impl<F: Map1> LevelKernel for Loop1<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Loop1(f, tile) = self;
        for row in 0..tile.rows {
            let [out, a] = tile.row(row);
            // SAFETY: the tile covers elements that its operands' layouts reach (the engine's
            // promise) and `map1` checked that they are `Out` and `A`.
            unsafe { row1::<F, L>(f, out.cast(), a.cast(), tile.inner, tile.len) }
        }
    }
}

/// # Safety
/// `len` elements at `strides` (bytes) from the pointers must be writable and readable.
#[inline(always)]
unsafe fn row1<F: Map1, L: Level>(
    f: F,
    out: *mut F::Out,
    a: *const F::A,
    strides: [usize; 2],
    len: usize,
) {
    let dense = strides[0] == size_of::<F::Out>();
    // SAFETY: every index is below `len`; the caller vouches for those elements.
    unsafe {
        if dense && strides[1] == size_of::<F::A>() {
            if out.addr() == a.addr() && size_of::<F::Out>() == size_of::<F::A>() {
                let a = out.cast::<F::A>();
                for i in 0..len {
                    *out.add(i) = f.call::<L>(*a.add(i));
                }
            } else {
                for i in 0..len {
                    *out.add(i) = f.call::<L>(*a.add(i));
                }
            }
        } else {
            for i in 0..len {
                *out.byte_add(i * strides[0]) = f.call::<L>(*a.byte_add(i * strides[1]));
            }
        }
    }
}

struct Loop2<'a, F>(F, &'a Tile<3>);

impl<F: Map2> LevelKernel for Loop2<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Loop2(f, tile) = self;
        for row in 0..tile.rows {
            let [out, a, b] = tile.row(row);
            // SAFETY: as in `Loop1`.
            unsafe { row2::<F, L>(f, out.cast(), a.cast(), b.cast(), tile.inner, tile.len) }
        }
    }
}

/// # Safety
/// `len` elements at `strides` (bytes) from the pointers must be writable and readable.
#[inline(always)]
unsafe fn row2<F: Map2, L: Level>(
    f: F,
    out: *mut F::Out,
    a: *const F::A,
    b: *const F::B,
    strides: [usize; 3],
    len: usize,
) {
    let dense = strides[0] == size_of::<F::Out>();
    let (a_dense, b_dense) = (strides[1] == size_of::<F::A>(), strides[2] == size_of::<F::B>());
    let in_place = out.addr() == a.addr() && size_of::<F::Out>() == size_of::<F::A>();
    // SAFETY: every index is below `len`; the caller vouches for those elements.
    unsafe {
        if dense && a_dense && b_dense {
            if in_place {
                let a = out.cast::<F::A>();
                for i in 0..len {
                    *out.add(i) = f.call::<L>(*a.add(i), *b.add(i));
                }
            } else {
                for i in 0..len {
                    *out.add(i) = f.call::<L>(*a.add(i), *b.add(i));
                }
            }
        } else if dense && a_dense && strides[2] == 0 && len > 0 {
            let b = *b;
            if in_place {
                let a = out.cast::<F::A>();
                for i in 0..len {
                    *out.add(i) = f.call::<L>(*a.add(i), b);
                }
            } else {
                for i in 0..len {
                    *out.add(i) = f.call::<L>(*a.add(i), b);
                }
            }
        } else if dense && b_dense && strides[1] == 0 && len > 0 {
            let a = *a;
            for i in 0..len {
                *out.add(i) = f.call::<L>(a, *b.add(i));
            }
        } else {
            for i in 0..len {
                let (a, b) = (*a.byte_add(i * strides[1]), *b.byte_add(i * strides[2]));
                *out.byte_add(i * strides[0]) = f.call::<L>(a, b);
            }
        }
    }
}

struct Loop3<'a, F>(F, &'a Tile<4>);

impl<F: Map3> LevelKernel for Loop3<'_, F> {
    type Output = ();
    #[inline(always)]
    fn run<L: Level>(self) {
        let Loop3(f, tile) = self;
        for row in 0..tile.rows {
            let [out, a, b, c] = tile.row(row);
            let strides = tile.inner;
            // SAFETY: as in `Loop1`.
            unsafe {
                row3::<F, L>(f, out.cast(), a.cast(), b.cast(), c.cast(), strides, tile.len);
            }
        }
    }
}

/// # Safety
/// `len` elements at `strides` (bytes) from the pointers must be writable and readable.
#[inline(always)]
unsafe fn row3<F: Map3, L: Level>(
    f: F,
    out: *mut F::Out,
    a: *const F::A,
    b: *const F::B,
    c: *const F::C,
    strides: [usize; 4],
    len: usize,
) {
    let widths = [size_of::<F::Out>(), size_of::<F::A>(), size_of::<F::B>(), size_of::<F::C>()];
    // SAFETY: every index is below `len`; the caller vouches for those elements.
    unsafe {
        if strides == widths {
            for i in 0..len {
                *out.add(i) = f.call::<L>(*a.add(i), *b.add(i), *c.add(i));
            }
        } else {
            for i in 0..len {
                *out.byte_add(i * strides[0]) = f.call::<L>(
                    *a.byte_add(i * strides[1]),
                    *b.byte_add(i * strides[2]),
                    *c.byte_add(i * strides[3]),
                );
            }
        }
    }
}
