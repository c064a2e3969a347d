//! Origins as Python lines. A call notes where it came from as (code object, instruction offset),
//! which is cheap, and gets a small number for it; the file, line and function behind a number are
//! looked up only when a report wants them.
//!
//! The table keeps the code objects that it has seen alive, so that an address is never taken for
//! another function's. It grows with the number of places in the program that call operations, not
//! with the number of calls.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Mutex;

use plimsoll_memory::{ResolvedSite, Site, set_foreign_resolver};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::{ffi, intern};

use crate::interpreter_frames;

/// One place in a Python program.
struct CodeLine {
    code: Py<PyAny>,
    /// Offset of the instruction in bytes.
    offset: i32,
}

#[derive(Default)]
struct CodeLines {
    numbers: HashMap<(usize, i32), u32>,
    places: Vec<CodeLine>,
    /// Code of this package that was met, by its address.
    own: HashMap<usize, Py<PyAny>>,
}

static PLACES: Mutex<Option<CodeLines>> = Mutex::new(None);

/// No place: what a thread that works for none has adopted.
const NOBODY: u32 = u32::MAX - 1;

thread_local! {
    /// The place for which this thread works, where none of its own frames is a program's.
    static ADOPTED: Cell<u32> = const { Cell::new(NOBODY) };
}

/// The number of the line that is running now, for a thread that is started to work for it.
#[pyfunction]
fn _line(py: Python<'_>) -> u32 {
    match here(py) {
        Site::Foreign(number) => number,
        _ => NOBODY,
    }
}

/// Makes this thread work for a line of another thread: what it asks for in no program's own frame
/// has that line as its origin.
#[pyfunction]
fn _adopt_line(number: u32) {
    ADOPTED.set(number);
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_line, module)?)?;
    module.add_function(wrap_pyfunction!(_adopt_line, module)?)?;
    module.add_function(wrap_pyfunction!(interpreter_frames::_reads_frames, module)?)
}

/// Whether code is the standard library's, at the bottom of every thread that Python starts.
fn is_start_of_thread(code: &Bound<'_, PyAny>) -> bool {
    let file = code.getattr(intern!(code.py(), "co_filename"));
    let file = file.and_then(|file| file.extract::<String>()).unwrap_or_default();
    file.rsplit(['/', '\\']).next() == Some("threading.py")
}

/// Stands for every place in this package.
const OWN: u32 = u32::MAX - 2;

/// Set in the numbers of places in libraries: Python's own modules and what is installed.
const LIBRARY: u32 = 1 << 30;

/// Entries of the cache in front of the table, on each thread.
const CACHE: usize = 64;

thread_local! {
    /// Code address, offset and number; number 0 is an empty entry.
    static RECENT: [Cell<(usize, i32, u32)>; CACHE] = const { [const { Cell::new((0, 0, 0)) }; CACHE] };
}

/// Tells the memory crate how to read the numbers of Python lines, and finds out how to get them.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    set_foreign_resolver(resolve);
    interpreter_frames::prepare(py)
}

/// The Python line that is running now: the innermost one of the program, or, where there is none,
/// of a library. This package's own never counts.
pub(crate) fn here(py: Python<'_>) -> Site {
    let mut library = None;
    let program = each_outwards(py, |site, is_library| {
        if is_library {
            library.get_or_insert(site);
        }
        (!is_library).then_some(site)
    });
    program.or(library).unwrap_or_default()
}

/// All Python lines that are running now and are not this package's own, innermost first.
pub(crate) fn stack(py: Python<'_>) -> Vec<Site> {
    let mut lines = Vec::new();
    each_outwards::<()>(py, |site, _| {
        lines.push(site);
        None
    });
    lines
}

/// Shows `look` the lines that are not this package's, innermost first, and whether each is a
/// library's, until it finds what it looks for.
#[inline]
fn each_outwards<R>(py: Python<'_>, mut look: impl FnMut(Site, bool) -> Option<R>) -> Option<R> {
    let Some(mut next) = interpreter_frames::innermost(py) else {
        return each_object_outwards(py, look);
    };
    while let Some(frame) = next {
        if let Break(found) = show(&frame.code(), frame.offset(), &mut look) {
            return found;
        }
        next = frame.caller();
    }
    None
}

/// The same by the interpreter's own functions, which make objects of frames.
#[cold]
fn each_object_outwards<R>(
    py: Python<'_>,
    mut look: impl FnMut(Site, bool) -> Option<R>,
) -> Option<R> {
    // SAFETY: the interpreter is attached; the result is null or a frame, a Python object that
    // lives while we do not return to it.
    let innermost = unsafe {
        Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast::<ffi::PyObject>())
    };
    let mut next = innermost;
    while let Some(frame) = next {
        // SAFETY: `frame` is a live frame; a frame always has a code object, and we own the new
        // reference.
        let code = unsafe {
            let code = ffi::PyFrame_GetCode(frame.as_ptr().cast());
            Bound::from_owned_ptr_or_opt(py, code.cast::<ffi::PyObject>())
        };
        let code = code?;
        let offset = frame
            .getattr(intern!(py, "f_lasti"))
            .and_then(|offset| offset.extract::<i32>())
            .unwrap_or(-1);
        if let Break(found) = show(&code, offset, &mut look) {
            return found;
        }
        next = frame.getattr(intern!(py, "f_back")).ok().filter(|f| !f.is_none());
    }
    None
}

/// Shows `look` one line, if it is not this package's; breaks where no further one counts.
#[inline]
fn show<R>(
    code: &Bound<'_, PyAny>,
    offset: i32,
    look: &mut impl FnMut(Site, bool) -> Option<R>,
) -> ControlFlow<Option<R>> {
    let adopted = ADOPTED.get();
    if adopted != NOBODY && is_start_of_thread(code) {
        return Break(look(Site::Foreign(adopted), false));
    }
    let found = match number(code, offset) {
        Some(OWN) => None,
        Some(number) => look(Site::Foreign(number & !LIBRARY), number & LIBRARY != 0),
        None => look(Site::Unknown, false),
    };
    if found.is_some() { Break(found) } else { Continue(()) }
}

/// Whether code is Python's own or an installed package's. What it asks for has the program's line
/// as its origin: `copy.deepcopy(model)` is where the copy is made.
fn is_library(code: &Bound<'_, PyAny>) -> bool {
    static FOLDERS: PyOnceLock<Vec<String>> = PyOnceLock::new();
    let py = code.py();
    let folders = FOLDERS.get_or_try_init(py, || -> PyResult<Vec<String>> {
        let get_path = py.import("sysconfig")?.getattr("get_path")?;
        let mut folders = vec!["<frozen ".to_string()];
        for name in ["stdlib", "platstdlib", "purelib", "platlib"] {
            let folder: String = get_path.call1((name,))?.extract()?;
            folders.push(format!("{folder}{}", std::path::MAIN_SEPARATOR));
        }
        Ok(folders)
    });
    let file = code.getattr(intern!(py, "co_filename")).and_then(|file| file.extract::<String>());
    match (folders, file) {
        (Ok(folders), Ok(file)) => folders.iter().any(|folder| file.starts_with(folder.as_str())),
        _ => false,
    }
}

/// Whether code lies in the folder of this package. A wrapper in Python is nobody's origin.
fn is_own(code: &Bound<'_, PyAny>) -> bool {
    static FOLDER: PyOnceLock<String> = PyOnceLock::new();
    let py = code.py();
    let folder = FOLDER.get_or_try_init(py, || -> PyResult<String> {
        let file: String = py.import("plimsoll._plimsoll")?.getattr("__file__")?.extract()?;
        let end = file.rfind(['/', '\\']).map_or(0, |end| end + 1);
        Ok(file[..end].to_string())
    });
    let file = code.getattr(intern!(py, "co_filename")).and_then(|file| file.extract::<String>());
    match (folder, file) {
        (Ok(folder), Ok(file)) => !folder.is_empty() && file.starts_with(folder.as_str()),
        _ => false,
    }
}

/// The number of a place, with [`LIBRARY`] for those of libraries; [`OWN`] for all places in this
/// package.
#[inline]
fn number(code: &Bound<'_, PyAny>, offset: i32) -> Option<u32> {
    let address = code.as_ptr().addr();
    let entry = (address >> 5 ^ offset as usize) % CACHE;
    let known = RECENT.with(|recent| recent[entry].get());
    if known.2 != 0 && (known.0, known.1) == (address, offset) {
        return Some(known.2 - 1);
    }
    let number = number_in_table(code, offset)?;
    RECENT.with(|recent| recent[entry].set((address, offset, number + 1)));
    Some(number)
}

#[cold]
fn number_in_table(code: &Bound<'_, PyAny>, offset: i32) -> Option<u32> {
    let address = code.as_ptr().addr();
    // Before the lock: this runs Python, which may let another thread go on.
    let (own, library) = (is_own(code), is_library(code));
    let mut places = PLACES.lock().ok()?;
    let places = places.get_or_insert_default();
    if own {
        places.own.entry(address).or_insert_with(|| code.clone().unbind());
        return Some(OWN);
    }
    let next = places.places.len() as u32;
    let known = *places.numbers.entry((address, offset)).or_insert(next);
    if known == next {
        places.places.push(CodeLine { code: code.clone().unbind(), offset });
    }
    Some(if library { known | LIBRARY } else { known })
}

/// File, line and function of a number; called when a report is made, on any thread, attached or
/// not.
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
