//! Is there a driver, and a GPU? Asked before anything else: the bindings panic when the library is
//! missing.

use std::sync::OnceLock;

use cudarc::driver::{result, sys};

static STATE: OnceLock<Result<usize, String>> = OnceLock::new();

fn state() -> &'static Result<usize, String> {
    STATE.get_or_init(|| {
        // SAFETY: only tries to open the driver's library, whose initialisers are safe to run once.
        if !unsafe { sys::is_culib_present() } {
            return Err("the CUDA driver library (libcuda.so.1) is not installed".to_string());
        }
        result::init().map_err(|error| format!("the CUDA driver does not start: {error}"))?;
        match result::device::get_count() {
            Ok(count) if count > 0 => Ok(count as usize),
            Ok(_) => Err("the CUDA driver is there, but it sees no GPU".to_string()),
            Err(error) => Err(format!("the CUDA driver cannot list its GPUs: {error}")),
        }
    })
}

/// How many GPUs there are.
pub fn count() -> usize {
    state().as_ref().copied().unwrap_or(0)
}

/// The newest CUDA that the driver speaks, 13000 for 13.0; 0 if there is no GPU to use.
pub(crate) fn driver_version() -> i32 {
    let mut version = 0;
    if count() > 0 {
        // SAFETY: the driver's library is there, and the driver fills in a number.
        let _ = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    }
    version
}

/// Why there is no GPU to use; `None` if there is one.
///
/// ```
/// match plimsoll_cuda::unavailable() {
///     Some(why) => assert!(plimsoll_cuda::count() == 0 && !why.is_empty()),
///     None => assert!(plimsoll_cuda::count() > 0),
/// }
/// ```
pub fn unavailable() -> Option<&'static str> {
    state().as_ref().err().map(String::as_str)
}
