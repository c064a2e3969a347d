//! Compiling kernel sources to machine code by NVRTC, which needs neither a GPU nor a driver.

use std::ffi::{CStr, CString};

use cudarc::nvrtc::{result, sys};
use plimsoll_core::{Error, Result};

/// A cubin of `source` for an architecture (`sm_90`).
pub fn compile(name: &str, source: &str, architecture: &str) -> Result<Vec<u8>> {
    // SAFETY: only tries to open the library.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::unsupported(
            "nvrtc",
            format!(
                "the kernel `{name}` has to be compiled, and the NVRTC library (libnvrtc.so) is not installed; install \
                 it, or put the cubins of `cargo xtask gpu-bundle` beside the program"
            ),
        ));
    }
    let text = CString::new(source)
        .map_err(|_| Error::invalid_argument(format!("the source of `{name}` holds a NUL byte")))?;
    let failed = |what: &str, error: result::NvrtcError| {
        Error::driver(format!("NVRTC could not {what} the kernel `{name}`: {error:?}"))
    };
    let program = result::create_program(&text, None).map_err(|e| failed("read", e))?;
    let options = [
        format!("--gpu-architecture={architecture}"),
        "--std=c++17".to_string(),
        // NVRTC 13.0 takes a lambda with `auto` inside a device function for the host's.
        "--device-as-default-execution-space".to_string(),
        "--restrict".to_string(),
        "--extra-device-vectorization".to_string(),
    ];
    // SAFETY: `program` was just created, and is destroyed once below.
    let compiled = unsafe { result::compile_program(program, &options) };
    let outcome = match compiled {
        Ok(()) => cubin(program).map_err(|e| failed("emit", e)),
        Err(error) => {
            // SAFETY: as above.
            let log = unsafe { result::get_program_log(program) }.unwrap_or_default();
            let log: Vec<u8> = log.into_iter().map(|c| c as u8).collect();
            let log =
                CStr::from_bytes_until_nul(&log).map(CStr::to_string_lossy).unwrap_or_default();
            Err(failed("compile", error).because(log.into_owned()))
        }
    };
    // SAFETY: as above.
    let _ = unsafe { result::destroy_program(program) };
    outcome
}

fn cubin(program: sys::nvrtcProgram) -> std::result::Result<Vec<u8>, result::NvrtcError> {
    let mut bytes = 0usize;
    // SAFETY: the program was compiled for a real architecture, so it has a cubin, of which this is
    // the size.
    unsafe { sys::nvrtcGetCUBINSize(program, &mut bytes) }.result()?;
    let mut code = vec![0u8; bytes];
    // SAFETY: `code` has the size that the library asked for.
    unsafe { sys::nvrtcGetCUBIN(program, code.as_mut_ptr().cast()) }.result()?;
    Ok(code)
}
