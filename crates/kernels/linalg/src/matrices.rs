//! Batches of matrices as faer sees them, and the work on each with a part of the workspace.
//!
//! Operands of the launch are distinct tensors: a result is new memory, so a matrix that is written
//! is never one that is read.

use std::mem::MaybeUninit;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use faer::dyn_stack::{MemStack, StackReq};
use faer::traits::RealField;
use faer::{MatMut, MatRef};
use plimsoll_core::{DType, Error, Result};
use plimsoll_engine::{CpuLaunch, Element, Meta, Operand, parallel};

/// What is computed in.
pub(crate) trait Real:
    Element
    + RealField
    + Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    /// Without the sign.
    fn magnitude(self) -> Self {
        if self < Self::ZERO { -self } else { self }
    }
}

impl Real for f32 {}
impl Real for f64 {}

/// Multiplications that pay for waking one more thread.
const GRAIN: usize = 1 << 15;

#[cold]
pub(crate) fn misfit(launch: &CpuLaunch<'_>) -> Error {
    Error::invalid_argument("the kernel was launched with operands that do not fit together")
        .in_operation(launch.operation)
}

/// Runs `$body` with `$T` the float type of a dtype.
macro_rules! match_real {
    ($launch:expr, $T:ident => $body:expr) => {
        match plimsoll_engine::input_dtype($launch)? {
            plimsoll_core::DType::F32 => {
                type $T = f32;
                $body
            }
            plimsoll_core::DType::F64 => {
                type $T = f64;
                $body
            }
            other => Err(plimsoll_engine::wrong_dtype($launch.operation, other)),
        }
    };
}
pub(crate) use match_real;

/// The same for a question about metas, which has an answer for any dtype: operations refuse others
/// before they launch.
macro_rules! match_real_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {
        if $dtype == plimsoll_core::DType::F32 {
            type $T = f32;
            $body
        } else {
            type $T = f64;
            $body
        }
    };
}
pub(crate) use match_real_dtype;

/// Rows and columns of the matrices of `meta`, and how many there are.
pub(crate) fn sizes(meta: &Meta) -> (usize, usize, usize) {
    match meta.shape() {
        [lead @ .., rows, columns] => (*rows, *columns, lead.iter().product()),
        _ => (0, 0, 0),
    }
}

/// The matrices of an operand: its last `inner` dimensions, for each index of those before.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a, T> {
    first: *mut T,
    lead: (&'a [usize], &'a [usize]),
    rows: (usize, usize),
    columns: (usize, usize),
}

// SAFETY: an address and a description; the parts of a launch touch matrices of their own.
unsafe impl<T> Send for Batch<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Batch<'_, T> {}

impl<'a, T: Element> Batch<'a, T> {
    /// Of matrices.
    pub(crate) fn matrices(operand: &Operand<'a>) -> Batch<'a, T> {
        Batch::new(operand, 2)
    }

    /// Of vectors, each a matrix of one column.
    pub(crate) fn vectors(operand: &Operand<'a>) -> Batch<'a, T> {
        Batch::new(operand, 1)
    }

    /// Of numbers.
    pub(crate) fn numbers(operand: &Operand<'a>) -> Batch<'a, T> {
        Batch::new(operand, 0)
    }

    fn new(operand: &Operand<'a>, inner: usize) -> Batch<'a, T> {
        let (shape, strides) = (operand.shape(), operand.layout().strides());
        let lead = shape.len().saturating_sub(inner);
        let at = |place: usize| match (shape.get(lead + place), strides.get(lead + place)) {
            (Some(&size), Some(&stride)) if place < inner => (size, stride),
            _ => (1, 1),
        };
        let lead = (&shape[..lead], &strides[..lead]);
        Batch { first: operand.first::<T>(), lead, rows: at(0), columns: at(1) }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lead.0.iter().product()
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows.0
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns.0
    }

    /// The first element of matrix `index`, below [`Batch::count`].
    pub(crate) fn at(&self, index: usize) -> *mut T {
        let (mut left, mut offset) = (index, 0);
        for (&size, &stride) in self.lead.0.iter().zip(self.lead.1).rev() {
            offset += left % size * stride;
            left /= size;
        }
        self.first.wrapping_add(offset)
    }

    /// Matrix `index`, below [`Batch::count`], of an operand that nobody writes meanwhile.
    ///
    /// # Safety
    /// The operand is an input of the launch, or an output's matrix that this part writes.
    pub(crate) unsafe fn read(&self, index: usize) -> MatRef<'a, T> {
        let (rows, columns) = (self.rows, self.columns);
        let pointer = self.at(index).cast_const();
        // SAFETY: an operand's layout stays in its storage, which the launch has pinned.
        unsafe {
            MatRef::from_raw_parts(pointer, rows.0, columns.0, rows.1 as isize, columns.1 as isize)
        }
    }

    /// Matrix `index`, below [`Batch::count`], to be written.
    ///
    /// # Safety
    /// The operand is an output of the launch, and its matrix `index` is this part's alone.
    pub(crate) unsafe fn write(&self, index: usize) -> MatMut<'a, T> {
        let (rows, columns) = (self.rows, self.columns);
        let pointer = self.at(index);
        // SAFETY: as in `read`, and nobody else has this matrix.
        unsafe {
            MatMut::from_raw_parts_mut(
                pointer,
                rows.0,
                columns.0,
                rows.1 as isize,
                columns.1 as isize,
            )
        }
    }

    /// Element `row` of vector `index`.
    ///
    /// # Safety
    /// Both are in range, and nobody writes the element meanwhile.
    pub(crate) unsafe fn get(&self, index: usize, row: usize) -> T {
        // SAFETY: in range by the contract.
        unsafe { *self.at(index).add(row * self.rows.1) }
    }

    /// Sets element `row` of vector `index`.
    ///
    /// # Safety
    /// Both are in range, and the vector is this part's alone.
    pub(crate) unsafe fn set(&self, index: usize, row: usize, value: T) {
        // SAFETY: in range by the contract.
        unsafe { *self.at(index).add(row * self.rows.1) = value }
    }
}

/// Bytes of one part's stack: room for `need` from any address, in whole cache lines.
fn stack_bytes(need: StackReq) -> usize {
    match need.size_bytes() {
        0 => 0,
        _ => need.unaligned_bytes_required().next_multiple_of(64),
    }
}

/// How many parts a batch of `count` matrices is divided into, `cost` multiplications each.
fn parts(count: usize, cost: usize) -> usize {
    parallel::parts(count.saturating_mul(cost), GRAIN).min(count).max(1)
}

/// What [`for_each`] needs for `count` matrices.
pub(crate) fn workspace_bytes(count: usize, cost: usize, need: StackReq) -> usize {
    if count == 0 { 0 } else { parts(count, cost) * stack_bytes(need) }
}

/// Calls `body` with every index of a batch and a stack that holds `need`; an error if the
/// workspace has room for none.
pub(crate) fn for_each(
    launch: &CpuLaunch<'_>,
    count: usize,
    cost: usize,
    need: StackReq,
    body: impl Fn(usize, &mut MemStack) + Sync,
) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let (each, workspace) = (stack_bytes(need), launch.workspace);
    if workspace.bytes() < each {
        return Err(Error::invalid_argument(format!(
            "the kernel needs {each} bytes of workspace, but was launched with {}",
            workspace.bytes()
        ))
        .in_operation(launch.operation));
    }
    // As many as there is room for: the workspace was measured for the same number of threads.
    let parts = match each {
        0 => parts(count, cost),
        each => (workspace.bytes() / each).min(count).max(1),
    };
    parallel::fork(parts, |part| {
        let first = workspace.pointer().wrapping_add(part * each).cast::<MaybeUninit<u8>>();
        // SAFETY: the workspace has `parts` stacks of `each` bytes, and this one is the part's.
        let bytes = unsafe { std::slice::from_raw_parts_mut(first, each) };
        let stack = MemStack::new(bytes);
        for index in parallel::part_range(count, parts, part) {
            body(index, stack);
        }
    });
    Ok(())
}

/// Whether a launch has so many operands, all of them of one batch.
pub(crate) fn check(launch: &CpuLaunch<'_>, inputs: usize, outputs: usize) -> Result<()> {
    let fits = launch.inputs.len() == inputs && launch.outputs.len() == outputs;
    if fits { Ok(()) } else { Err(misfit(launch)) }
}

/// Of a batch whose matrix `index` failed with a number other than 0: the first, unless all are
/// well.
pub(crate) fn first_failure(info: &Operand<'_>) -> Option<(usize, i32)> {
    if info.dtype() != DType::I32 {
        return None;
    }
    let batch = Batch::<i32>::numbers(info);
    (0..batch.count()).find_map(|index| {
        // SAFETY: in range, and written by now.
        let found = unsafe { batch.get(index, 0) };
        (found != 0).then_some((index, found))
    })
}

/// "(batch element 2) " where there is a batch.
pub(crate) fn element(info: &Operand<'_>, index: usize) -> String {
    if info.shape().is_empty() { String::new() } else { format!("batch element {index}: ") }
}
