//! Driver and library results as Plimsoll errors.

use cudarc::cublaslt::result::CublasError;
use cudarc::cudnn::result::CudnnError;
use cudarc::driver::DriverError;
use plimsoll_core::{Error, Result};

/// Names the call that failed and what the driver said.
pub(crate) trait Told<T> {
    fn told(self, call: &str) -> Result<T>;
}

impl<T> Told<T> for std::result::Result<T, DriverError> {
    fn told(self, call: &str) -> Result<T> {
        self.map_err(|error| {
            Error::driver(format!(
                "the CUDA driver refused {call}: {error}. If an earlier kernel failed, this is where it shows: run \
                 with CUDA_LAUNCH_BLOCKING=1 to see which"
            ))
        })
    }
}

impl<T> Told<T> for std::result::Result<T, CublasError> {
    fn told(self, call: &str) -> Result<T> {
        self.map_err(|error| Error::driver(format!("cuBLASLt refused {call}: {error}")))
    }
}

impl<T> Told<T> for std::result::Result<T, CudnnError> {
    fn told(self, call: &str) -> Result<T> {
        self.map_err(|error| {
            Error::driver(format!(
                "cuDNN refused {call}: {error}. The kernels of Plimsoll's own do without it: switch it off with \
                 `backends.cudnn.enabled = False`"
            ))
        })
    }
}
