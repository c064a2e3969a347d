//! What grows from step to step in a program of tensors, exact, because the books know every block:
//! its line, kind and module, the step that made it, and who holds it. `growth_watch.rs` reads the
//! books, `ownership.rs` finds holders, `naming.rs` makes findings of both; the rules and the words
//! are the crate `plimsoll-watch`'s. PyTorch's programs are watched by the Python package.

pub(crate) mod graph_walk;
pub(crate) mod growth_watch;
mod line_growth;
mod movable;
mod naming;
pub(crate) mod ownership;
mod rebuilds;
pub(crate) mod shares;

use std::collections::HashSet;
use std::io::Write as _;
use std::time::Instant;

use plimsoll_core::Device;
use plimsoll_memory::OriginId;
use plimsoll_watch::{Finding, Growth, GrowthKind, LeakReport};

use growth_watch::GrowthWatch;
use naming::Named;
use ownership::Ownership;

/// Watches a loop: [`LeakWatch::step`] at the end of each step, and at the end the verdict.
///
/// Bytes that stay of most steps, beyond the steps that made them, grow: at least 1 KiB a step, and
/// longer than the same line has kept anything that it let go of. The first three steps are not
/// judged, and ten are needed before anything is said. A list that is cleared each epoch is no leak
/// then, nor is a buffer that is full; gradients and state that come late are none either. A tensor
/// that is joined with itself in each step, longer every time, grows too, and so does a container
/// that is copied in each step, with more in it every time. Memory that was taken away, spilled to
/// the host or dropped with a recipe, counts with the bytes that it would have.
///
/// While it lives, every new tensor is registered ([`track_holders`](super::track_holders)), so
/// that holders can be named, and the process's step counts on with each [`LeakWatch::step`].
///
/// ```
/// use plimsoll_tensor::memory::{GrowthKind, LeakWatch};
/// use plimsoll_tensor::{DType, Tensor, device};
/// let own = device::private_cpu(&Default::default())?;
/// let weight = Tensor::ones(&[1024], (DType::F32, own))?.requires_grad_(true)?;
/// let mut watch = LeakWatch::on(own);
/// let mut history = Vec::new();
/// for _ in 0..20 {
///     let loss = weight.exp()?.sum()?;
///     history.push(loss); // with its graph: `loss.item::<f32>()?` would do
///     watch.step();
/// }
/// let report = watch.finish();
/// let leak = report.verdicts().next().expect("it leaks");
/// assert_eq!(leak.bytes_per_step, 4096 + 512); // what `exp` saved, and the loss
/// assert_eq!(leak.kind, GrowthKind::Activation);
/// assert_eq!(leak.cause.name, "a graph is kept alive by a loss that is kept");
/// assert!(leak.held_by.starts_with("20 tensors made by sum at "), "{report}");
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug)]
pub struct LeakWatch {
    watch: GrowthWatch,
    nodes: Growth<OriginId>,
    found: Vec<Named>,
    tells: bool,
}

impl LeakWatch {
    /// Watches all devices from now on.
    #[expect(clippy::new_without_default, reason = "a watch that begins by default surprises")]
    pub fn new() -> LeakWatch {
        LeakWatch::begin(None)
    }

    /// Watches one device from now on. What is spilled or dropped of it counts as if it were there.
    pub fn on(device: Device) -> LeakWatch {
        LeakWatch::begin(Some(device))
    }

    fn begin(device: Option<Device>) -> LeakWatch {
        LeakWatch {
            watch: GrowthWatch::new(device),
            nodes: Growth::default(),
            found: Vec::new(),
            tells: false,
        }
    }

    /// Writes the report to standard error when this is dropped, if something leaks: a guard for a
    /// whole function. Dropping never panics; tests have
    /// [`assert_no_leak!`](crate::assert_no_leak).
    ///
    /// ```
    /// use plimsoll_tensor::memory::LeakWatch;
    /// let mut guard = LeakWatch::new().telling();
    /// for _ in 0..20 {
    ///     // a step of training
    ///     guard.step();
    /// }
    /// ```
    #[must_use]
    pub fn telling(mut self) -> LeakWatch {
        self.tells = true;
        self
    }

    /// Ends a step.
    pub fn step(&mut self) {
        if self.watch.step() {
            self.name();
        } else {
            self.let_go();
        }
    }

    /// Steps that have ended.
    pub fn steps(&self) -> u64 {
        self.watch.steps()
    }

    fn name(&mut self) {
        let began = Instant::now();
        self.found = naming::findings(&self.watch, &Ownership::look(), &mut self.nodes);
        self.watch.named_since(began);
    }

    /// Forgets findings of lines that no longer grow, and knows which have grown for long enough.
    fn let_go(&mut self) {
        let growing = self.watch.growing();
        self.found.retain_mut(|named| {
            let lines: Vec<&bool> =
                named.lines.iter().filter_map(|line| growing.get(line)).collect();
            named.finding.is_verdict |= lines.iter().any(|is_verdict| **is_verdict);
            named.finding.kind == GrowthKind::Nodes || !lines.is_empty()
        });
    }

    /// What grows so far, judged now; the largest first.
    ///
    /// ```
    /// use plimsoll_tensor::{DType, Tensor, device, memory::LeakWatch};
    /// let own = device::private_cpu(&Default::default())?;
    /// let mut watch = LeakWatch::on(own);
    /// let mut kept = Vec::new();
    /// for _ in 0..12 {
    ///     kept.push(Tensor::zeros(&[256], (DType::F32, own))?);
    ///     watch.step();
    /// }
    /// assert_eq!(watch.growing()[0].bytes_per_step, 1024);
    /// kept.clear();
    /// assert!(watch.growing().is_empty());
    /// # Ok::<(), plimsoll_tensor::Error>(())
    /// ```
    pub fn growing(&mut self) -> Vec<Finding> {
        self.watch.look();
        self.name();
        self.found.iter().map(|named| named.finding.clone()).collect()
    }

    /// The report so far, as text of 80 columns when printed.
    pub fn so_far(&mut self) -> LeakReport {
        LeakReport::new(self.growing(), self.steps(), false)
    }

    /// Ends the watch: what grows is a verdict if it has been judged for long enough. That the
    /// program let go of it after its last step changes nothing: it grew until then.
    pub fn finish(mut self) -> LeakReport {
        self.tells = false;
        self.verdict()
    }

    fn verdict(&mut self) -> LeakReport {
        let lines =
            |watch: &GrowthWatch| -> HashSet<OriginId> { watch.growing().into_keys().collect() };
        let growing = lines(&self.watch);
        self.watch.look();
        if growing == lines(&self.watch) {
            let before = std::mem::take(&mut self.found);
            self.name();
            if self.found.len() < before.len() {
                self.found = before;
            }
        }
        let found = self.found.iter().map(|named| named.finding.clone()).collect();
        LeakReport::new(found, self.steps(), true)
    }
}

impl Drop for LeakWatch {
    fn drop(&mut self) {
        if self.tells {
            let report = self.verdict();
            if !report.is_clean() {
                // A guard cannot fail, not even where nobody reads.
                let _ = write!(std::io::stderr(), "{report}");
            }
        }
    }
}

/// Fails a test if something grows from step to step, with the finding as its message. Either runs
/// a block as often as told, a step each, or ends a [`LeakWatch`](crate::memory::LeakWatch) that
/// has watched a loop. What other threads' tensors grow by counts too: tests that run side by side
/// watch a device of their own each ([`LeakWatch::on`](crate::memory::LeakWatch::on)).
///
/// ```
/// use plimsoll_tensor::{DType, Tensor, assert_no_leak, memory::LeakWatch};
/// let x = Tensor::ones(&[1024], DType::F32)?;
/// assert_no_leak!(30, {
///     x.exp()?.sum()?;
/// });
///
/// let mut watch = LeakWatch::new();
/// for _ in 0..30 {
///     x.add(1.0)?;
///     watch.step();
/// }
/// assert_no_leak!(watch);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[macro_export]
macro_rules! assert_no_leak {
    ($watch:expr $(,)?) => {{
        let report = $crate::memory::LeakWatch::finish($watch);
        assert!(report.is_clean(), "{report}");
    }};
    ($steps:expr, $body:block $(,)?) => {{
        let mut watch = $crate::memory::LeakWatch::new();
        for _ in 0..$steps {
            $body
            watch.step();
        }
        $crate::assert_no_leak!(watch);
    }};
}
