//! Compiling kernel sources to machine code by NVRTC, which needs neither a GPU nor a driver.

use std::ffi::{CStr, CString, c_char};

use cudarc::nvrtc::{result, sys};
use plimsoll_core::{Error, Result};

use crate::turn::{OVERLAPS_FROM, out_of_turn};

/// A cubin of `source` for an architecture (`sm_90`), whose kernels wait for their turn: see
/// Note [Launches that overlap] in `kernel.rs`.
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
    let waits = waits(architecture);
    let mut breach = String::new();
    // That nothing else changes what a kernel reads is a promise that a compiler may take for the
    // time before its turn too. One that does is told nothing.
    for promise in [Some("--restrict"), None] {
        let made = compile_by(name, &text, architecture, promise)?;
        match waits.then(|| out_of_turn(&made.assembly)).flatten() {
            None => return Ok(made.cubin),
            Some(found) => breach = found,
        }
    }
    Err(Error::driver(format!(
        "NVRTC made of `{name}` a kernel for {architecture} that does not wait for its turn: {breach}; begin it with \
         `in_turn()`, or, if it does, use another version of NVRTC"
    )))
}

/// Whether kernels for an architecture may be launched early.
fn waits(architecture: &str) -> bool {
    let digits: String = architecture.chars().filter(char::is_ascii_digit).collect();
    digits.parse().is_ok_and(|capability: u32| capability >= OVERLAPS_FROM)
}

struct Made {
    cubin: Vec<u8>,
    assembly: String,
}

fn compile_by(name: &str, text: &CStr, architecture: &str, promise: Option<&str>) -> Result<Made> {
    let failed = |what: &str, error: result::NvrtcError| {
        Error::driver(format!("NVRTC could not {what} the kernel `{name}`: {error:?}"))
    };
    let program = result::create_program(text, None).map_err(|e| failed("read", e))?;
    let mut options = vec![
        format!("--gpu-architecture={architecture}"),
        "--std=c++17".to_string(),
        // NVRTC 13.0 takes a lambda with `auto` inside a device function for the host's.
        "--device-as-default-execution-space".to_string(),
        "--extra-device-vectorization".to_string(),
    ];
    options.extend(promise.map(str::to_string));
    // SAFETY: `program` was just created, and is destroyed once below.
    let compiled = unsafe { result::compile_program(program, &options) };
    let outcome = match compiled {
        Ok(()) => made(program).map_err(|e| failed("emit", e)),
        Err(error) => {
            // SAFETY: as above.
            let log = unsafe { result::get_program_log(program) }.unwrap_or_default();
            Err(failed("compile", error).because(text_of(log)))
        }
    };
    // SAFETY: as above.
    let _ = unsafe { result::destroy_program(program) };
    outcome
}

fn made(program: sys::nvrtcProgram) -> std::result::Result<Made, result::NvrtcError> {
    // SAFETY: the program was compiled.
    let assembly = unsafe { result::get_ptx(program) }?;
    Ok(Made { cubin: cubin(program)?, assembly: text_of(assembly) })
}

/// What the library has written, up to its NUL.
fn text_of(written: Vec<c_char>) -> String {
    let bytes: Vec<u8> = written.into_iter().map(|c| c as u8).collect();
    CStr::from_bytes_until_nul(&bytes).map(CStr::to_string_lossy).unwrap_or_default().into_owned()
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
