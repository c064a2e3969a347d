//! What kernels see of a tensor: a pointer, a layout and a dtype. Never a slice, because operands
//! of one launch may overlap (`x.add_(&x)`), and overlapping `&mut [T]` and `&[T]` are undefined
//! behaviour.
//!
//! Operands are made by `dispatch` under a claim (see `storage/claim.rs`) and die with the launch.

use plimsoll_core::{DType, Layout};

use crate::element::Element;

/// Where a tensor's elements lie and what they are: all of a tensor but its bytes and its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Sizes, strides and offset in elements.
    pub layout: Layout,
    /// The type of the elements.
    pub dtype: DType,
}

impl Meta {
    /// A row-major tensor of `shape` from offset 0.
    pub fn contiguous(shape: &[usize], dtype: DType) -> plimsoll_core::Result<Meta> {
        Ok(Meta { layout: Layout::contiguous(shape)?, dtype })
    }

    /// The sizes.
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// Whether the two are the same elements in the same order, both over the same storage:
    /// dimensions of one element say nothing.
    ///
    /// ```
    /// # use plimsoll_core::{DType, Layout};
    /// use plimsoll_engine::Meta;
    /// let of = |stride| Layout::strided(&[1, 3], &[stride, 1], 0);
    /// let meta = |stride| of(stride).map(|layout| Meta { layout, dtype: DType::F32 });
    /// assert!(meta(3)?.is_same_view(&meta(9)?));
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn is_same_view(&self, other: &Meta) -> bool {
        self == other
            || self.dtype == other.dtype
                && self.layout.offset() == other.layout.offset()
                && long_dims(&self.layout).eq(long_dims(&other.layout))
    }

    /// Whether the two have a byte in common, both over the same storage.
    pub fn overlaps(&self, other: &Meta) -> bool {
        let (own, others) = (self.dtype.size_bytes(), other.dtype.size_bytes());
        self.layout.overlaps_as(own, &other.layout, others)
    }

    /// Bytes of storage that the layout reaches from the storage's start.
    pub fn span_bytes(&self) -> usize {
        self.layout.span() * self.dtype.size_bytes()
    }
}

/// Sizes and strides of the dimensions that have more or less than one element.
fn long_dims(layout: &Layout) -> impl Iterator<Item = (usize, usize)> {
    let dims = layout.shape().iter().copied().zip(layout.strides().iter().copied());
    dims.filter(|&(size, _)| size != 1)
}

/// One tensor as a kernel sees it.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    storage: *mut u8,
    meta: &'a Meta,
}

// SAFETY: an operand is an address and a description. Whoever dereferences the address does so
// under the launch's claim, which excludes other writers whatever thread of the pool the access
// happens on.
unsafe impl Send for Operand<'_> {}
// SAFETY: as for Send.
unsafe impl Sync for Operand<'_> {}

impl<'a> Operand<'a> {
    /// An operand over the storage that starts at `storage`.
    ///
    /// # Safety
    /// While the operand is used, `storage` must be resident and at least `meta.span_bytes()` long,
    /// and the claim of the launch must allow what the kernel does with it (reads of inputs, writes
    /// of outputs).
    pub unsafe fn new(storage: *mut u8, meta: &'a Meta) -> Operand<'a> {
        Operand { storage, meta }
    }

    /// Where the storage starts, for operands over parts of this one.
    pub fn storage(&self) -> *mut u8 {
        self.storage
    }

    /// Sizes, strides and offset.
    pub fn layout(&self) -> &'a Layout {
        &self.meta.layout
    }

    /// The sizes.
    pub fn shape(&self) -> &'a [usize] {
        self.meta.layout.shape()
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.meta.dtype
    }

    /// Layout and dtype together.
    pub fn meta(&self) -> &'a Meta {
        self.meta
    }

    /// The first element. Strides count from here.
    pub fn first<T: Element>(&self) -> *mut T {
        debug_assert_eq!(T::DTYPE, self.dtype(), "a kernel reads an operand as its own dtype");
        self.storage.cast::<T>().wrapping_add(self.meta.layout.offset())
    }

    /// The first element as bytes, for kernels that move elements without looking at them.
    pub fn first_byte(&self) -> *mut u8 {
        self.storage.wrapping_add(self.meta.layout.offset() * self.dtype().size_bytes())
    }
}

/// Everything one CPU kernel call works on.
#[derive(Debug)]
pub struct CpuLaunch<'a> {
    /// The operation's name, for errors that only the data can cause (an index out of range).
    pub operation: &'static str,
    /// Read only.
    pub inputs: &'a [Operand<'a>],
    /// Written, every element; not read, unless the operation's destination is in place and the
    /// same layout is also an input.
    pub outputs: &'a [Operand<'a>],
    /// Scratch of exactly `Operation::workspace_bytes`, 64-byte aligned, contents undefined.
    pub workspace: Workspace,
}

/// Scratch memory of one launch, from the allocator like every other byte.
#[derive(Clone, Copy, Debug)]
pub struct Workspace {
    pointer: *mut u8,
    bytes: usize,
}

impl Workspace {
    /// No memory.
    pub const NONE: Workspace =
        Workspace { pointer: std::ptr::without_provenance_mut(64), bytes: 0 };

    /// The `bytes` bytes from `pointer`.
    ///
    /// # Safety
    /// They must be writable and used by nobody else while the launch runs, and `pointer` must be
    /// aligned to 64 bytes. Addresses on a GPU are for launches on that GPU alone.
    pub const unsafe fn new(pointer: *mut u8, bytes: usize) -> Workspace {
        Workspace { pointer, bytes }
    }

    /// Its start, 64-byte aligned; dangling if there are no bytes.
    #[inline]
    pub const fn pointer(self) -> *mut u8 {
        self.pointer
    }

    /// Its length.
    #[inline]
    pub const fn bytes(self) -> usize {
        self.bytes
    }
}

// SAFETY: exclusive scratch of one launch; the kernel divides it among its own threads.
unsafe impl Send for Workspace {}
// SAFETY: as for Send.
unsafe impl Sync for Workspace {}

/// Where the second operand of a binary operation comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Second {
    /// Input 1.
    Tensor,
    /// A host number on the right: `x - 2`.
    Right(plimsoll_core::Scalar),
    /// A host number on the left: `2 - x`.
    Left(plimsoll_core::Scalar),
}
