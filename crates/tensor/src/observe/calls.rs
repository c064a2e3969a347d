//! Calls, as observers hear of them: what a user called by name, the operations it is made of,
//! nodes of a graph that runs backward, waits of the host for a device, and parts of a program that
//! have names of their own ([`range`]). Calls of one thread lie in each other. What is launched on
//! a device inside them is in `mod.rs`.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use plimsoll_core::{Device, DeviceKind};
use plimsoll_memory::{CallHook, OriginId, Site};

use super::{ON, tell};
use crate::Tensor;

/// What sort of call one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallKind {
    /// What the user called (`zeros`, `cross_entropy`), where other operations do the work.
    Named,
    /// An operation of the registry.
    Operation {
        /// It writes over its first operand.
        in_place: bool,
    },
    /// The engine handles one node: hooks, derivative, sums of gradients.
    Evaluation,
    /// The derivative of a node alone.
    Node,
    /// The host waits for a device.
    Wait,
    /// A part of a program under a name of its own; see [`range`].
    Range,
}

/// A call that begins.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The operation's name, or the node's: `add`, `AddBackward0`.
    pub name: Cow<'static, str>,
    /// What it is.
    pub kind: CallKind,
    /// Who asked for it; of a node, who ran the forward operation.
    pub origin: OriginId,
    /// Where it runs, where that is known.
    pub device: Option<Device>,
    /// What it is given.
    pub inputs: &'a [&'a Tensor],
    /// Tensors that were there before, and that it is about to write.
    pub written: &'a [&'a Tensor],
}

impl<'a> Call<'a> {
    /// An operation that runs now.
    pub(crate) fn operation(
        name: &'static str,
        in_place: bool,
        site: Site,
        device: Device,
        inputs: &'a [&'a Tensor],
        written: &'a [&'a Tensor],
    ) -> Call<'a> {
        Call {
            name: Cow::Borrowed(name),
            kind: CallKind::Operation { in_place },
            origin: OriginId::intern(name, site),
            device: Some(device),
            inputs,
            written,
        }
    }
}

/// A call that was told of; dropping it tells of its end.
#[derive(Debug)]
pub(crate) struct Entered {
    // Calls lie in each other on one thread.
    not_send: PhantomData<*const ()>,
}

/// Whether anybody listens.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Tells observers that a call begins. For whoever has asked [`is_on`].
pub(crate) fn enter(call: &Call<'_>) -> Entered {
    tell(|observer| observer.enter(call));
    Entered { not_send: PhantomData }
}

impl Entered {
    /// It ends, with these results.
    pub(crate) fn leave(self, outputs: &[Tensor]) {
        std::mem::forget(self);
        tell(|observer| observer.leave(outputs));
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        tell(|observer| observer.leave(&[]));
    }
}

/// A part of backward: `part` gives its name, kind and who ran forward.
#[inline]
pub(crate) fn backward(part: impl FnOnce() -> (String, CallKind, OriginId)) -> Option<Entered> {
    if !is_on() {
        return None;
    }
    let (name, kind, origin) = part();
    Some(enter(&Call {
        name: Cow::Owned(name),
        kind,
        origin,
        device: None,
        inputs: &[],
        written: &[],
    }))
}

/// A part of a program under a name of its own, open until it is dropped.
#[derive(Debug)]
#[must_use = "the range ends when this is dropped"]
pub struct Range {
    _entered: Option<Entered>,
}

/// Opens a part of a program under a name of its own: the parts of a training loop that PyTorch's
/// profiler names, such as `Optimizer.step#Adam.step`. `site` is the line that asked for it. The
/// name is made only while somebody listens; else this costs one load.
///
/// ```
/// use plimsoll_memory::Site;
/// use plimsoll_tensor::observe::{Call, CallKind, Observer, observe, range};
/// use std::sync::{Arc, Mutex};
///
/// #[derive(Default)]
/// struct Ranges(Mutex<Vec<String>>);
/// impl Observer for Ranges {
///     fn enter(&self, call: &Call<'_>) {
///         if call.kind == CallKind::Range {
///             self.0.lock().unwrap().push(call.name.to_string());
///         }
///     }
/// }
///
/// let heard = Arc::new(Ranges::default());
/// drop(range(Site::caller(), || unreachable!("nobody listens")));
/// let observing = observe(heard.clone());
/// drop(range(Site::caller(), || "batch".into()));
/// drop(observing);
/// assert_eq!(*heard.0.lock().unwrap(), ["batch"]);
/// ```
#[inline]
pub fn range(site: Site, name: impl FnOnce() -> Cow<'static, str>) -> Range {
    Range { _entered: is_on().then(|| begin_range(site, name())) }
}

#[cold]
fn begin_range(site: Site, name: Cow<'static, str>) -> Entered {
    let origin = OriginId::intern("range", site);
    enter(&Call { name, kind: CallKind::Range, origin, device: None, inputs: &[], written: &[] })
}

/// What the host waits for.
#[derive(Clone, Copy)]
pub(crate) enum WaitFor {
    Stream,
    Device,
    Event,
}

/// The host begins to wait for `device`; it ends when the result is dropped.
#[inline]
pub(crate) fn wait(device: Device, what: WaitFor) -> Option<Entered> {
    is_on().then(|| begin_wait(device, what))
}

#[cold]
fn begin_wait(device: Device, what: WaitFor) -> Entered {
    // The driver's own names, by which PyTorch's profiler shows them.
    let name = match (device.kind(), what) {
        (DeviceKind::Cuda, WaitFor::Stream) => "cudaStreamSynchronize",
        (DeviceKind::Cuda, WaitFor::Device) => "cudaDeviceSynchronize",
        (DeviceKind::Cuda, WaitFor::Event) => "cudaEventSynchronize",
        (_, WaitFor::Stream) => "streamSynchronize",
        (_, WaitFor::Device) => "deviceSynchronize",
        (_, WaitFor::Event) => "eventSynchronize",
    };
    enter(&Call {
        name: Cow::Borrowed(name),
        kind: CallKind::Wait,
        origin: OriginId::intern("synchronize", Site::in_force()),
        device: Some(device),
        inputs: &[],
        written: &[],
    })
}

/// How the memory crate tells of calls by name.
pub(super) const NAMED: CallHook = CallHook { entered: named_begins, left: named_ends };

fn named_begins(name: &'static str) {
    let call = Call {
        name: Cow::Borrowed(name),
        kind: CallKind::Named,
        origin: OriginId::intern(name, Site::in_force()),
        device: None,
        inputs: &[],
        written: &[],
    };
    tell(|observer| observer.enter(&call));
}

fn named_ends() {
    tell(|observer| observer.leave(&[]));
}
