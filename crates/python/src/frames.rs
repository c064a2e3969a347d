//! Origins as Python lines. A call notes where it came from as (code object, instruction offset), which is cheap, and gets a
//! small number for it; the file, line and function behind a number are looked up only when a report wants them.
//!
//! The table keeps the code objects that it has seen alive, so that an address is never taken for another function's. It grows
//! with the number of places in the program that call operations, not with the number of calls.

use std::cell::Cell;
use std::collections::HashMap;

use plimsoll_memory::{ResolvedSite, Site, set_foreign_resolver};
use pyo3::prelude::*;
use pyo3::{ffi, intern};
use std::sync::Mutex;

/// One place in a Python program.
struct Place {
    code: Py<PyAny>,
    /// Offset of the instruction in bytes.
    offset: i32,
}

#[derive(Default)]
struct Places {
    numbers: HashMap<(usize, i32), u32>,
    places: Vec<Place>,
}

static PLACES: Mutex<Option<Places>> = Mutex::new(None);

/// Entries of the cache in front of the table, on each thread.
const CACHE: usize = 64;

thread_local! {
    /// Code address, offset and number; number 0 is an empty entry.
    static RECENT: [Cell<(usize, i32, u32)>; CACHE] = const { [const { Cell::new((0, 0, 0)) }; CACHE] };
}

/// Tells the memory crate how to read the numbers of Python lines.
pub(crate) fn install() {
    set_foreign_resolver(resolve);
}

/// The Python line that is running now.
pub(crate) fn here(py: Python<'_>) -> Site {
    // SAFETY: the interpreter is attached; the result is null or a frame that lives while we do not return to it.
    let frame = unsafe { ffi::PyEval_GetFrame() };
    if frame.is_null() {
        return Site::Unknown;
    }
    // SAFETY: `frame` is a live frame, checked above; a frame always has a code object, and we own the new reference.
    let code = unsafe {
        Bound::from_owned_ptr_or_opt(py, ffi::PyFrame_GetCode(frame).cast::<ffi::PyObject>())
    };
    let Some(code) = code else { return Site::Unknown };
    // SAFETY: every frame is a Python object, and the reference stays borrowed from the running call.
    let frame = unsafe { Bound::from_borrowed_ptr(py, frame.cast::<ffi::PyObject>()) };
    let offset = frame
        .getattr(intern!(py, "f_lasti"))
        .and_then(|offset| offset.extract::<i32>())
        .unwrap_or(-1);
    number(code, offset).map_or(Site::Unknown, Site::Foreign)
}

fn number(code: Bound<'_, PyAny>, offset: i32) -> Option<u32> {
    let address = code.as_ptr().addr();
    let entry = (address >> 5 ^ offset as usize) % CACHE;
    let known = RECENT.with(|recent| recent[entry].get());
    if known.2 != 0 && (known.0, known.1) == (address, offset) {
        return Some(known.2 - 1);
    }
    let mut places = PLACES.lock().ok()?;
    let places = places.get_or_insert_default();
    let next = places.places.len() as u32;
    let number = *places.numbers.entry((address, offset)).or_insert(next);
    if number == next {
        places.places.push(Place { code: code.unbind(), offset });
    }
    RECENT.with(|recent| recent[entry].set((address, offset, number + 1)));
    Some(number)
}

/// File, line and function of a number; called when a report is made, on any thread, attached or not.
fn resolve(number: u32) -> Option<ResolvedSite> {
    Python::attach(|py| {
        let (code, offset) = {
            let places = PLACES.lock().ok()?;
            let place = places.as_ref()?.places.get(number as usize)?;
            (place.code.clone_ref(py), place.offset)
        };
        let code = code.bind(py);
        Some(ResolvedSite {
            file: code.getattr("co_filename").ok()?.extract().ok()?,
            line: line_at(code, offset).unwrap_or(0),
            function: code.getattr("co_name").ok()?.extract().ok()?,
        })
    })
}

/// The line of an instruction: `co_lines` lists (first offset, end offset, line).
fn line_at(code: &Bound<'_, PyAny>, offset: i32) -> Option<u32> {
    for entry in code.call_method0("co_lines").ok()?.try_iter().ok()? {
        let (first, end, line): (i32, i32, Option<u32>) = entry.ok()?.extract().ok()?;
        if (first..end).contains(&offset) {
            return line;
        }
    }
    code.getattr("co_firstlineno").ok()?.extract().ok()
}
