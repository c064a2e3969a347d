//! Named spans of time beside the events: training steps, phases, and whatever the program marks.
//! Snapshots carry them as PyTorch's `external_annotations`. Recorded only while some arena records
//! events; bounded, oldest dropped first.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::platform::clock::system_ns;
use crate::platform::lock::Lock;

/// The start or end of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// What the span is called: `step 3`, `backward`, or the program's own word.
    pub name: Cow<'static, str>,
    /// Whether it starts or ends here.
    pub stage: Stage,
    /// When, in microseconds since 1970.
    pub time_us: u64,
}

/// Which end of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It starts.
    Start,
    /// It ends.
    End,
}

/// The spans' ends kept: steps and phases of some thousands of steps.
const ANNOTATIONS_MAX: usize = 20_000;

/// How many arenas record events.
static RECORDING: AtomicUsize = AtomicUsize::new(0);

pub(crate) static ANNOTATIONS: Lock<VecDeque<Annotation>> = Lock::new(VecDeque::new());

/// An arena began (`true`) or ceased to record events. When none does any more, the spans are
/// forgotten as the events are.
pub(crate) fn recording(began: bool) {
    if began {
        RECORDING.fetch_add(1, Ordering::Relaxed);
    } else if RECORDING.fetch_sub(1, Ordering::Relaxed) == 1 {
        ANNOTATIONS.lock().clear();
    }
}

#[inline]
pub(crate) fn mark(stage: Stage, name: impl FnOnce() -> Cow<'static, str>) {
    if RECORDING.load(Ordering::Relaxed) > 0 {
        push(Annotation { name: name(), stage, time_us: system_ns() / 1000 });
    }
}

#[cold]
fn push(annotation: Annotation) {
    let mut kept = ANNOTATIONS.lock();
    if kept.len() == ANNOTATIONS_MAX {
        kept.pop_front();
    }
    kept.push_back(annotation);
}

/// The annotations kept, oldest first.
pub(crate) fn kept() -> Vec<Annotation> {
    ANNOTATIONS.lock().iter().cloned().collect()
}

/// While this guard lives, the program is inside the span that it was made with.
#[derive(Debug)]
pub struct AnnotationScope {
    name: Cow<'static, str>,
    // A span belongs to the thread that opened it.
    not_send: PhantomData<*const ()>,
}

/// Opens a span that snapshots show, until the guard drops.
///
/// ```
/// let _span = plimsoll_memory::annotate("evaluation");
/// ```
#[must_use = "the span ends when the guard drops"]
pub fn annotate(name: impl Into<Cow<'static, str>>) -> AnnotationScope {
    let name = name.into();
    mark(Stage::Start, || name.clone());
    AnnotationScope { name, not_send: PhantomData }
}

impl Drop for AnnotationScope {
    fn drop(&mut self) {
        mark(Stage::End, || self.name.clone());
    }
}
