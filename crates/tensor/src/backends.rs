//! Settings of the whole process for the libraries that compute on GPUs, with PyTorch's names and
//! defaults (`torch.backends`). A launch reads them when it is queued.

use std::sync::atomic::{AtomicBool, Ordering};

/// A setting that is on or off, for all threads.
#[derive(Debug)]
pub struct Switch(AtomicBool);

impl Switch {
    const fn new(on: bool) -> Switch {
        Switch(AtomicBool::new(on))
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Turns it on or off for launches from now on, and says what it was.
    ///
    /// ```
    /// use plimsoll_tensor::backends::matmul;
    /// assert!(!matmul::ALLOW_TF32.set(true));
    /// assert!(matmul::ALLOW_TF32.is_on());
    /// matmul::ALLOW_TF32.set(false);
    /// ```
    pub fn set(&self, on: bool) -> bool {
        self.0.swap(on, Ordering::Relaxed)
    }
}

/// Whether results are the same bits on every GPU (`torch.use_deterministic_algorithms`). On one
/// machine they are from run to run in any case, so that there is nothing to refuse. On, products
/// and convolutions are computed by kernels of our own, whose sums are cut into parts by the sizes
/// alone, since what cuBLASLt and cuDNN choose is another from GPU to GPU. That takes longer.
pub static DETERMINISTIC_ALGORITHMS: Switch = Switch::new(false);

/// Convolutions by cuDNN, where it is found (`torch.backends.cudnn`).
pub mod cudnn {
    use super::Switch;

    /// Whether convolutions are computed by cuDNN. Off, they are computed by kernels of our own,
    /// and take no workspace for the library.
    pub static ENABLED: Switch = Switch::new(true);

    /// Whether convolutions of float32 may round their factors to TF32, which has the range of
    /// float32 and 10 bits of fraction. Sums are float32 still.
    pub static ALLOW_TF32: Switch = Switch::new(true);

    /// Whether only algorithms are taken that give the same bits from run to run. They are the only
    /// ones taken even if it is off.
    pub static DETERMINISTIC: Switch = Switch::new(false);

    /// Whether to choose algorithms by trying them. It has no effect: the library's heuristics
    /// choose, so that a run takes the same algorithms, and bytes, as the one before.
    pub static BENCHMARK: Switch = Switch::new(false);

    /// Whether the library is found.
    ///
    /// ```
    /// use plimsoll_tensor::backends::cudnn;
    /// assert_eq!(cudnn::is_available(), cudnn::version().is_some());
    /// ```
    pub fn is_available() -> bool {
        version().is_some()
    }

    /// Its version, 91400 for 9.14.0.
    pub fn version() -> Option<usize> {
        plimsoll_cuda::cudnn_version()
    }
}

/// Matrix products by cuBLASLt (`torch.backends.cuda.matmul`).
pub mod matmul {
    use super::Switch;

    /// Whether products of float32 may round their factors to TF32.
    pub static ALLOW_TF32: Switch = Switch::new(false);
}
