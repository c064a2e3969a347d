//! The tensor handle: a storage seen through a layout, with a place in the autograd graph. Cheap to
//! clone, shared between threads, and freed the moment the last handle drops. What can be done with
//! it is in `api/`.

pub(crate) mod registry;
pub(crate) mod versions;

use std::sync::{Arc, Weak};

use plimsoll_core::{DType, Device, Error, Layout, Result, normalize_dim};
use plimsoll_memory::OriginId;

use crate::autograd::slot::Slot;
use crate::autograd::views::ViewOf;
use crate::companion::Companion;
use crate::device::Entry;
use crate::storage::Storage;
use crate::tensor::versions::Versions;
use plimsoll_kernels::Meta;

/// A tensor.
///
/// Cloning the handle does not copy memory, as in Python; [`Tensor::clone_tensor`] does. The layout
/// of a handle never changes; in-place operations write through it.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor};
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2], plimsoll_tensor::Device::cpu())?;
/// let y = x.transpose(0, 1)?.add(1.0)?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0, 4.0, 3.0, 5.0]);
/// assert_eq!((y.dtype(), y.shape()), (DType::F32, &[2, 2][..]));
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    storage: Arc<Storage>,
    meta: Meta,
    /// Which writes it counts.
    versions: Versions,
    /// Made in inference mode: no version is kept for autograd, and it may never enter a graph.
    inference: bool,
    /// In the registry of live tensors (`registry.rs`), which then has a weak hold on it.
    registered: bool,
    /// What this is a view of, if it is one.
    view: Option<Arc<ViewOf>>,
    /// Gradient, graph node and hooks; empty for most tensors.
    slot: Slot,
    /// What another language keeps beside it; see `companion.rs`.
    companion: Companion,
}

impl Tensor {
    /// A tensor of its own over `storage`.
    pub(crate) fn new(storage: Arc<Storage>, meta: Meta) -> Tensor {
        Tensor::counting(Versions::default(), storage, meta)
    }

    /// [`Tensor::new`] that counts its writes in `versions`.
    pub(crate) fn counting(versions: Versions, storage: Arc<Storage>, meta: Meta) -> Tensor {
        debug_assert!(
            meta.span_bytes() <= storage.nbytes(),
            "a tensor lies within its storage: {meta:?} in {storage:?}"
        );
        let inference = crate::autograd::mode::is_inference_mode_enabled();
        let registered = registry::is_on();
        let (slot, companion) = (Slot::new(), Companion::new());
        let view = None;
        let inner = Inner { storage, meta, versions, inference, registered, view, slot, companion };
        Tensor { inner: Arc::new(inner) }.listed()
    }

    /// Another layout over this tensor's storage; `view` says how autograd sees it.
    pub(crate) fn alias(&self, meta: Meta, view: Option<Arc<ViewOf>>) -> Tensor {
        self.alias_counting(self.inner.versions.clone(), meta, view)
    }

    /// [`Tensor::alias`] that counts its writes in `versions`.
    pub(crate) fn alias_counting(
        &self,
        versions: Versions,
        meta: Meta,
        view: Option<Arc<ViewOf>>,
    ) -> Tensor {
        debug_assert!(
            meta.span_bytes() <= self.inner.storage.nbytes(),
            "a view lies within its base"
        );
        Tensor {
            inner: Arc::new(Inner {
                storage: self.inner.storage.clone(),
                meta,
                versions,
                inference: self.inner.inference,
                registered: registry::is_on(),
                view,
                slot: Slot::new(),
                companion: Companion::new(),
            }),
        }
        .listed()
    }

    /// Adds a new tensor to the registry, if that is on.
    #[inline]
    fn listed(self) -> Tensor {
        if self.inner.registered {
            registry::add(&self);
        }
        self
    }

    /// The memory and layout of `data` with this tensor's companion and these versions; for
    /// `api/data.rs`.
    pub(crate) fn over_memory_of(&self, data: &Tensor, versions: Versions) -> Tensor {
        Tensor {
            inner: Arc::new(Inner {
                storage: data.inner.storage.clone(),
                meta: data.inner.meta.clone(),
                versions,
                inference: data.inner.inference,
                registered: registry::is_on(),
                view: None,
                slot: Slot::new(),
                companion: self.inner.companion.share(),
            }),
        }
        .listed()
    }

    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.inner.storage
    }

    pub(crate) fn versions(&self) -> &Versions {
        &self.inner.versions
    }

    /// Counts a write by `writer`. Called under a write claim.
    pub(crate) fn written_by(&self, writer: OriginId) {
        self.inner.versions.written_by(&self.inner.storage, writer);
    }

    pub(crate) fn entry(&self) -> &'static Entry {
        self.inner.storage.entry()
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.inner.meta
    }

    pub(crate) fn slot(&self) -> &Slot {
        &self.inner.slot
    }

    pub(crate) fn companion_slot(&self) -> &Companion {
        &self.inner.companion
    }

    pub(crate) fn view_of(&self) -> Option<&Arc<ViewOf>> {
        self.inner.view.as_ref()
    }

    /// Whether both are one tensor object: clones are, views are not.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[4], DType::F32)?;
    /// assert!(x.is(&x.clone()) && !x.is(&x.detach()));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Tells tensor objects apart while they live.
    pub(crate) fn object_id(&self) -> usize {
        Arc::as_ptr(&self.inner).addr()
    }

    /// How many handles there are.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.inner)
    }

    /// Whether nobody else holds this tensor object or its storage, so that its memory may be taken
    /// over.
    pub(crate) fn is_sole_owner(&self) -> bool {
        Arc::strong_count(&self.inner) == 1
            && Arc::weak_count(&self.inner) == usize::from(self.inner.registered)
            && Arc::strong_count(&self.inner.storage) == 1
    }

    /// Whether this is the only handle of the tensor. Other threads may change the answer at any
    /// time.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2], DType::F32)?;
    /// assert!(x.is_sole_handle());
    /// let view = x.view(&[2, 1])?; // a view holds its base
    /// assert!(!x.is_sole_handle() && view.is_sole_handle());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_sole_handle(&self) -> bool {
        Arc::strong_count(&self.inner) == 1
    }

    /// What this tensor is a view of: never itself a view, and nothing for a tensor that owns its
    /// memory or was detached.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[4], DType::F32)?;
    /// let view = x.view(&[2, 2])?.select(0, 1)?;
    /// assert_eq!(view.base().map(|base| base.shape().to_vec()), Some(vec![4]));
    /// assert!(x.base().is_none() && view.detach().base().is_none());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn base(&self) -> Option<Tensor> {
        self.view_of().map(|view| view.base().clone())
    }

    /// Whether it was made in inference mode.
    pub fn is_inference(&self) -> bool {
        self.inner.inference
    }

    /// Sizes, strides and offset in elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 3], DType::F32)?.layout().span(), 6);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn layout(&self) -> &Layout {
        &self.inner.meta.layout
    }

    /// The sizes.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 3], DType::F32)?.shape(), [2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn shape(&self) -> &[usize] {
        self.inner.meta.layout.shape()
    }

    /// The strides, in elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 3], DType::F32)?.t()?.strides(), [1, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn strides(&self) -> &[usize] {
        self.inner.meta.layout.strides()
    }

    /// Where the first element lies in the storage, in elements.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[4], DType::F32)?.narrow(0, 3, 1)?.storage_offset(), 3);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn storage_offset(&self) -> usize {
        self.inner.meta.layout.offset()
    }

    /// The size of one dimension; a negative one counts from the end.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 3], DType::F32)?.size(-1)?, 3);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn size(&self, dim: i64) -> Result<i64> {
        if self.rank() == 0 {
            return Err(Error::shape("size", "a zero-dimensional tensor has no sizes"));
        }
        Ok(self.shape()[normalize_dim("size", dim, self.rank())?] as i64)
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape().len()
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.inner.meta.layout.numel()
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.inner.meta.dtype
    }

    /// Bytes of one element.
    pub fn element_size(&self) -> usize {
        self.dtype().size_bytes()
    }

    /// Bytes of the elements: `numel * element_size`. A view counts its own elements, not its
    /// storage.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[4], DType::F32)?.narrow(0, 0, 1)?.nbytes(), 4);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn nbytes(&self) -> usize {
        self.numel() * self.element_size()
    }

    /// Whether its elements can be read at once: they are in the host's memory, have not been taken
    /// away to make room, and no copy from or to a device is under way.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor, device};
    /// assert!(Tensor::ones(&[2], DType::F32)?.is_at_hand());
    /// let stand_in = device::stand_in(Default::default())?;
    /// assert!(!Tensor::ones(&[2], (DType::F32, stand_in))?.is_at_hand());
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    #[inline]
    pub fn is_at_hand(&self) -> bool {
        self.device() == Device::CPU && self.storage().is_at_hand()
    }

    /// Bytes of the whole storage, which any tensor on it keeps alive.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let row = Tensor::zeros(&[1000], DType::F32)?.narrow(0, 0, 1)?;
    /// assert_eq!((row.nbytes(), row.storage_nbytes()), (4, 4000)); // a slice keeps it all
    /// # Ok::<(), Error>(())
    /// ```
    pub fn storage_nbytes(&self) -> usize {
        self.inner.storage.nbytes()
    }

    /// Whether two tensors lie in the same storage.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[4], DType::F32)?;
    /// assert!(x.view(&[2, 2])?.shares_storage_with(&x));
    /// assert!(!x.clone_tensor()?.shares_storage_with(&x));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn shares_storage_with(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.inner.storage, &other.inner.storage)
    }

    /// A number that tells the storage apart from all others that are alive: equal where
    /// [`Tensor::shares_storage_with`] holds.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[4], DType::F32)?;
    /// assert_eq!(x.view(&[2, 2])?.storage_id(), x.storage_id());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn storage_id(&self) -> usize {
        Arc::as_ptr(&self.inner.storage).addr()
    }

    /// The device that holds it.
    pub fn device(&self) -> Device {
        self.inner.storage.device()
    }

    /// Row-major without holes.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert!(!Tensor::zeros(&[2, 3], DType::F32)?.t()?.is_contiguous());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_contiguous(&self) -> bool {
        self.inner.meta.layout.is_contiguous()
    }

    /// How many in-place writes its storage has seen; shared by all tensors on it, but for those
    /// of [`Tensor::data`], which count apart.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2], DType::F32)?;
    /// x.add_(1)?;
    /// assert_eq!(x.view(&[1, 2])?.version(), 1);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn version(&self) -> u32 {
        self.inner.versions.now(&self.inner.storage)
    }

    /// A handle that does not keep the tensor alive.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[2], DType::F32)?;
    /// let weak = x.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(x);
    /// assert!(weak.upgrade().is_none());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn downgrade(&self) -> WeakTensor {
        WeakTensor { inner: Arc::downgrade(&self.inner) }
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor({:?}, {} on {})", self.shape(), self.dtype(), self.device())
    }
}

/// A handle that does not keep its tensor alive.
///
/// ```
/// use plimsoll_tensor::{DType, Tensor};
/// let x = Tensor::zeros(&[2], DType::F32)?;
/// let weak = x.downgrade();
/// assert!(weak.upgrade().is_some());
/// drop(x);
/// assert!(weak.upgrade().is_none());
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone)]
pub struct WeakTensor {
    inner: Weak<Inner>,
}

impl WeakTensor {
    /// Whether someone still holds the tensor.
    pub(crate) fn is_alive(&self) -> bool {
        self.inner.strong_count() > 0
    }

    /// The tensor, if someone still holds it.
    pub fn upgrade(&self) -> Option<Tensor> {
        self.inner.upgrade().map(|inner| Tensor { inner })
    }
}

impl std::fmt::Debug for WeakTensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.inner.strong_count() > 0 {
            "WeakTensor(alive)"
        } else {
            "WeakTensor(gone)"
        })
    }
}
