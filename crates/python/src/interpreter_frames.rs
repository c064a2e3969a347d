//! The Python frames of this thread, read where CPython keeps them. Its own functions make an
//! object for a frame, and one for the number of the instruction in it: with what it takes to free
//! them that was an eighth of a small operation, and more where functions of this package lie
//! between.
//!
//! Where things lie is fixed within a minor version of CPython. Those of [`KNOWN`] are read, in
//! builds without options that change objects; before the first read all frames of a stack are
//! compared with what CPython's functions say of them. Everywhere else `frames.rs` asks those
//! functions.

use std::sync::OnceLock;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::{Borrowed, ffi};

/// Where things lie, in bytes.
struct Places {
    /// The minor version: 3.this.
    minor: u8,
    /// In the thread's state: the innermost frame, or what has it.
    in_thread: usize,
    /// In that: the innermost frame.
    in_call: Option<usize>,
    /// In a frame: its code, the frame that called it, its instruction and what owns it.
    code: usize,
    caller: usize,
    instruction: usize,
    owner: usize,
    /// In a code object: its first instruction, and the number of the first that counts as running.
    first_instruction: usize,
    first_traceable: usize,
}

/// `Include/cpython/pystate.h`, `Include/cpython/code.h` and `Include/internal/pycore_frame.h` of
/// each version.
#[cfg(target_pointer_width = "64")]
static KNOWN: [Places; 3] = [
    Places {
        minor: 11,
        in_thread: 56,
        in_call: Some(8),
        code: 32,
        caller: 48,
        instruction: 56,
        owner: 69,
        first_instruction: 184,
        first_traceable: 168,
    },
    Places {
        minor: 12,
        in_thread: 56,
        in_call: Some(0),
        code: 0,
        caller: 8,
        instruction: 56,
        owner: 70,
        first_instruction: 192,
        first_traceable: 176,
    },
    Places {
        minor: 13,
        in_thread: 72,
        in_call: None,
        code: 0,
        caller: 8,
        instruction: 56,
        owner: 70,
        first_instruction: 200,
        first_traceable: 184,
    },
];

#[cfg(not(target_pointer_width = "64"))]
static KNOWN: [Places; 0] = [];

/// The owner of a frame that is a call from C, and runs no code of anybody's.
const OWNED_BY_C: u8 = 3;
/// The owner of a generator's frame, which runs from its first instruction on.
const OWNED_BY_GENERATOR: u8 = 1;
/// Bytes of an instruction.
const INSTRUCTION_BYTES: i32 = 2;

/// Set once, by [`prepare`].
static PLACES: OnceLock<Option<&'static Places>> = OnceLock::new();

/// A frame of this thread that is running, or waits for one that it called.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'py> {
    address: *const u8,
    places: &'static Places,
    py: Python<'py>,
}

/// Finds out whether frames can be read here. Before it was called none can.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    let places = KNOWN.iter().find(|places| {
        let version = py.version_info();
        // Before the candidates for a release things still move.
        let settled = version.suffix.is_none_or(|word| word == "+" || word.starts_with("rc"));
        version.major == 3 && version.minor == places.minor && settled
    });
    let places = match places {
        Some(places) if is_usual_build(py)? && agree(py, places)? => Some(places),
        _ => None,
    };
    let _ = PLACES.set(places);
    Ok(())
}

/// Whether the interpreter is CPython, without the options that change how objects lie.
fn is_usual_build(py: Python<'_>) -> PyResult<bool> {
    let sys = py.import("sys")?;
    let implementation: String = sys.getattr("implementation")?.getattr("name")?.extract()?;
    // Windows has no flags, and says of a debug build only that it counts references.
    let flags: String = match sys.getattr_opt("abiflags")? {
        Some(flags) => flags.extract()?,
        None => String::new(),
    };
    let counts = sys.hasattr("gettotalrefcount")? || sys.hasattr("getobjects")?;
    Ok(implementation == "cpython" && flags.is_empty() && !counts)
}

/// Whether the frames as they are read are those that CPython's functions give, to the last.
fn agree(py: Python<'_>, places: &'static Places) -> PyResult<bool> {
    let mut read = Frame::innermost_at(py, places);
    let mut told = py.import("sys")?.getattr("_getframe")?.call0()?;
    loop {
        let Some(frame) = read else { return Ok(told.is_none()) };
        if told.is_none()
            || !frame.code().is(&told.getattr("f_code")?)
            || frame.offset() != told.getattr("f_lasti")?.extract::<i32>()?
        {
            return Ok(false);
        }
        read = frame.caller();
        told = told.getattr("f_back")?;
    }
}

/// The innermost frame, if frames can be read.
#[inline]
pub(crate) fn innermost(py: Python<'_>) -> Option<Option<Frame<'_>>> {
    let places = (*PLACES.get()?)?;
    Some(Frame::innermost_at(py, places))
}

impl<'py> Frame<'py> {
    #[inline]
    fn innermost_at(py: Python<'py>, places: &'static Places) -> Option<Frame<'py>> {
        // SAFETY: attached, so this thread has a state, whose memory is as `places` says; `prepare`
        // chose them by the version.
        let address = unsafe {
            let state = ffi::PyThreadState_Get().cast::<u8>();
            let found = state.add(places.in_thread).cast::<*const u8>().read();
            match places.in_call {
                Some(in_call) => found.add(in_call).cast::<*const u8>().read(),
                None => found,
            }
        };
        Frame::from(py, places, address)
    }

    /// The frame at an address, or the first further out that runs code.
    #[inline]
    fn from(py: Python<'py>, places: &'static Places, address: *const u8) -> Option<Frame<'py>> {
        let mut frame = Frame { address, places, py };
        while !frame.address.is_null() {
            if frame.runs_code() {
                return Some(frame);
            }
            frame.address = frame.caller_address();
        }
        None
    }

    /// Not one of C, nor one that is still being set up, nor one that the interpreter puts under an
    /// `__init__` (3.13): those that its own functions show.
    #[inline]
    fn runs_code(&self) -> bool {
        // SAFETY: a frame of this thread, which stays while we do not return to it.
        let owner = unsafe { self.address.add(self.places.owner).read() };
        if owner == OWNED_BY_C || owner == OWNED_BY_GENERATOR {
            return owner == OWNED_BY_GENERATOR;
        }
        let code = self.code_address().cast::<u8>();
        // SAFETY: a frame that is not C's has a code object, whose memory is as `places` says.
        let first = unsafe { code.add(self.places.first_traceable).cast::<i32>().read() };
        self.offset() >= INSTRUCTION_BYTES * first
    }

    #[inline]
    fn caller_address(&self) -> *const u8 {
        // SAFETY: as in `runs_code`; null in the outermost.
        unsafe { self.address.add(self.places.caller).cast::<*const u8>().read() }
    }

    #[inline]
    fn code_address(&self) -> *mut ffi::PyObject {
        // SAFETY: as in `runs_code`.
        unsafe { self.address.add(self.places.code).cast::<*mut ffi::PyObject>().read() }
    }

    /// The code that it runs, alive as long as it does.
    #[inline]
    pub(crate) fn code(&self) -> Borrowed<'_, 'py, PyAny> {
        // SAFETY: a frame that runs code has a code object, and keeps it alive.
        unsafe { Borrowed::from_ptr(self.py, self.code_address()) }
    }

    /// The offset of its instruction in its code, in bytes: `f_lasti`.
    #[inline]
    pub(crate) fn offset(&self) -> i32 {
        // SAFETY: as in `runs_code`.
        let at = unsafe { self.address.add(self.places.instruction).cast::<usize>().read() };
        let first = self.code_address().addr() + self.places.first_instruction;
        at.wrapping_sub(first) as i32
    }

    /// The frame that called it.
    #[inline]
    pub(crate) fn caller(&self) -> Option<Frame<'py>> {
        Frame::from(self.py, self.places, self.caller_address())
    }
}

/// Whether lines are read from frames themselves, and whether those agree with CPython's functions
/// for the frames that run now; for tests.
#[pyfunction]
pub(crate) fn _reads_frames(py: Python<'_>) -> PyResult<bool> {
    let Some(Some(places)) = PLACES.get() else { return Ok(false) };
    match agree(py, places)? {
        true => Ok(true),
        false => Err(PyRuntimeError::new_err("frames were read that are not those that run")),
    }
}
