//! Convolutions by cuDNN, where it is found. The library is loaded when a convolution first asks
//! for it; without it, and for what it refuses, the caller has kernels of its own.
//!
//! Note [Which algorithms are taken]
//! Those that the library's heuristics name, in their order: the first that computes plain products
//! and gives the same bits from run to run, and that makes do with the workspace that there is.
//! Products through Fourier's or Winograd's transforms are left out: an infinity in one pixel would
//! reach windows that do not see it. `BWD_DATA_ALGO_0`, `BWD_FILTER_ALGO_0` and `BWD_FILTER_ALGO_3`
//! add in any order.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use cudarc::cudnn::result::{self, CudnnError};
use cudarc::cudnn::sys;
use plimsoll_core::Result;
use plimsoll_memory::StreamId;

use crate::blas::Factor;
use crate::dnn_descriptors::{Algorithm, Descriptors, Proposal, Refusable};
use crate::error::Told;
use crate::{BlasType, Context, Convolution, ConvolutionMemory};

/// The version of cuDNN, 91400 for 9.14.0, if there is one that these bindings are for: 9.
pub fn cudnn_version() -> Option<usize> {
    static VERSION: OnceLock<Option<usize>> = OnceLock::new();
    *VERSION.get_or_init(|| {
        // SAFETY: only tries to open the library, whose initialisers are safe to run once.
        if !unsafe { sys::is_culib_present() } {
            return None;
        }
        let version = result::get_version();
        (90_000..100_000).contains(&version).then_some(version)
    })
}

/// For tests: how many convolutions the library has computed in this process.
#[doc(hidden)]
pub fn cudnn_convolutions() -> usize {
    COMPUTED.load(Ordering::Relaxed)
}

static COMPUTED: AtomicUsize = AtomicUsize::new(0);

/// A GPU's handle of the library.
pub(crate) enum Dnn {
    /// Nobody asked for it yet.
    Unasked,
    /// It is not there, or does not start.
    Absent,
    Open(Library),
}

// SAFETY: cuDNN handles and descriptors may be used from any thread; the mutex around `Dnn` keeps
// them to one at a time.
unsafe impl Send for Dnn {}

/// The handle, and what was chosen for each shape seen; `None` where the library has nothing.
pub(crate) struct Library {
    handle: sys::cudnnHandle_t,
    plans: HashMap<Question, Option<Plan>>,
}

/// What an algorithm is chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Question {
    convolution: Convolution,
    workspace_bytes: usize,
}

struct Plan {
    descriptors: Descriptors,
    algorithm: Algorithm,
    wanted_bytes: usize,
}

impl Context {
    /// Whether cuDNN is there and computes `convolution` with a workspace of that size.
    pub fn can_convolve(&self, convolution: &Convolution, workspace_bytes: usize) -> Result<bool> {
        if !convolution.is_regular() || cudnn_version().is_none() {
            return Ok(false);
        }
        let _bound = self.bind()?;
        let mut dnn = self.dnn.lock();
        let question = Question { convolution: *convolution, workspace_bytes };
        Ok(dnn.library().is_some_and(|library| library.plan(&question).is_some()))
    }

    /// Queues a convolution that [`Context::can_convolve`]. Says whether cuDNN took it: what it
    /// refuses only now is not asked for again.
    ///
    /// # Safety
    /// `memory` holds addresses of this GPU's memory, multiples of 16, with the tensors as
    /// `convolution` describes them and a workspace of that size; the stream may read two of the
    /// tensors and write the third and the workspace.
    pub unsafe fn convolve(
        &self,
        stream: StreamId,
        convolution: &Convolution,
        memory: ConvolutionMemory,
    ) -> Result<bool> {
        let _bound = self.bind()?;
        let stream = self.handle(stream)?;
        let mut dnn = self.dnn.lock();
        let Some(library) = dnn.library() else { return Ok(false) };
        let workspace_bytes = memory.workspace_bytes;
        let question = Question { convolution: *convolution, workspace_bytes };
        let handle = library.handle;
        // SAFETY: both are alive; streams are never destroyed.
        unsafe { result::set_stream(handle, stream.cast()) }.told("cudnnSetStream")?;
        let Some(plan) = library.plan(&question) else { return Ok(false) };
        // SAFETY: the caller's promise; the plan was made for this very convolution.
        match unsafe { plan.run(handle, convolution.dtype, memory) } {
            Ok(()) => {
                COMPUTED.fetch_add(1, Ordering::Relaxed);
                Ok(true)
            }
            // Bad parameters and what is not supported: found before anything is queued.
            Err(CudnnError(status)) if (2000..4000).contains(&(status as u32)) => {
                library.plans.insert(question, None);
                Ok(false)
            }
            Err(error) => Err(error).told("a convolution"),
        }
    }

    /// For the GPU bundle: what was chosen for each convolution so far, a line each, and of those
    /// that were refused what the library proposed.
    #[doc(hidden)]
    pub fn convolution_plans(&self) -> Result<Vec<String>> {
        let _bound = self.bind()?;
        let dnn = self.dnn.lock();
        let Dnn::Open(library) = &*dnn else { return Ok(Vec::new()) };
        let told = library.plans.iter().map(|(question, plan)| {
            let Convolution { pass, dtype, channels_last, x, weight, .. } = question.convolution;
            let chosen = match plan {
                Some(plan) => format!("{:?} with {} bytes", plan.algorithm, plan.wanted_bytes),
                None => format!("refused {:?}", proposals(library.handle, question)),
            };
            format!(
                "{pass:?} {dtype:?} channels_last={channels_last} tf32={} x{x:?} weight{weight:?} of {} bytes: {chosen}",
                question.convolution.allow_tf32, question.workspace_bytes
            )
        });
        let mut told: Vec<String> = told.collect();
        told.sort();
        Ok(told)
    }
}

impl Dnn {
    fn library(&mut self) -> Option<&mut Library> {
        if let Dnn::Unasked = self {
            *self = match cudnn_version().map(|_| result::create_handle()) {
                Some(Ok(handle)) => Dnn::Open(Library { handle, plans: HashMap::new() }),
                // One of the library's parts is missing, or the driver is too old for it.
                Some(Err(_)) | None => Dnn::Absent,
            };
        }
        match self {
            Dnn::Open(library) => Some(library),
            Dnn::Unasked | Dnn::Absent => None,
        }
    }
}

impl Library {
    fn plan(&mut self, question: &Question) -> Option<&Plan> {
        let handle = self.handle;
        let plan = self.plans.entry(*question);
        plan.or_insert_with(|| choose(handle, question).ok().flatten()).as_ref()
    }
}

/// Everything that the heuristics propose.
fn proposals(handle: sys::cudnnHandle_t, question: &Question) -> Refusable<Vec<Proposal>> {
    let convolution = &question.convolution;
    Descriptors::new(convolution)?.proposals(handle, convolution.pass)
}

/// The first proposal that can be taken. What the library cannot even describe is refused too.
fn choose(handle: sys::cudnnHandle_t, question: &Question) -> Refusable<Option<Plan>> {
    let convolution = &question.convolution;
    let descriptors = Descriptors::new(convolution)?;
    // Without TF32 the heuristics' proposals are for plain float32, and stay so.
    let is_plain = convolution.dtype == BlasType::F32 && !convolution.allow_tf32;
    for proposal in descriptors.proposals(handle, convolution.pass)? {
        let Some(algorithm) = proposal.taken(convolution.pass) else { continue };
        if !is_plain {
            descriptors.window.set_math(proposal.math())?;
        }
        match descriptors.wanted_bytes(handle, algorithm) {
            Ok(wanted_bytes) if wanted_bytes <= question.workspace_bytes => {
                return Ok(Some(Plan { descriptors, algorithm, wanted_bytes }));
            }
            _ => {}
        }
    }
    Ok(None)
}

impl Plan {
    /// # Safety
    /// As for [`Context::convolve`].
    unsafe fn run(
        &self,
        handle: sys::cudnnHandle_t,
        dtype: BlasType,
        memory: ConvolutionMemory,
    ) -> Refusable<()> {
        let ConvolutionMemory { x, weight, y, workspace, workspace_bytes } = memory;
        let Descriptors { x: x_shape, weight: weight_shape, y: y_shape, window } =
            &self.descriptors;
        let (one, zero) = (Factor::of(dtype, 1.0), Factor::of(dtype, 0.0));
        let (alpha, beta) = (one.pointer(), zero.pointer());
        let scratch = workspace as *mut _;
        match self.algorithm {
            // SAFETY: descriptors belong to the plan and describe the caller's memory.
            Algorithm::Result(algorithm) => unsafe {
                result::convolution_forward(
                    handle,
                    alpha,
                    x_shape.0,
                    x as *const _,
                    weight_shape.0,
                    weight as *const _,
                    window.0,
                    algorithm,
                    scratch,
                    workspace_bytes,
                    beta,
                    y_shape.0,
                    y as *mut _,
                )
            },
            // SAFETY: as above.
            Algorithm::Input(algorithm) => unsafe {
                result::convolution_backward_data(
                    handle,
                    alpha,
                    weight_shape.0,
                    weight as *const _,
                    y_shape.0,
                    y as *const _,
                    window.0,
                    algorithm,
                    scratch,
                    workspace_bytes,
                    beta,
                    x_shape.0,
                    x as *mut _,
                )
            },
            // SAFETY: as above.
            Algorithm::Weight(algorithm) => unsafe {
                result::convolution_backward_filter(
                    handle,
                    alpha,
                    x_shape.0,
                    x as *const _,
                    y_shape.0,
                    y as *const _,
                    window.0,
                    algorithm,
                    scratch,
                    workspace_bytes,
                    beta,
                    weight_shape.0,
                    weight as *mut _,
                )
            },
        }
    }
}
