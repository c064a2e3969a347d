//! Kernels: a source text becomes a cubin, a module, a function, a launch.
//!
//! A cubin is looked for beside the program (`cubins/`, made by `cargo xtask gpu-bundle`), then in
//! the user's cache folder, and only then compiled, which takes about a quarter of a second a file.
//! Its name carries a hash of the source, so a stale one is never loaded.

use std::collections::HashMap;
use std::ffi::CString;
use std::path::PathBuf;

use cudarc::driver::{result, sys};
use parking_lot::Mutex;
use plimsoll_core::{Error, Result};
use plimsoll_memory::StreamId;

use crate::error::Told;
use crate::{Argument, Context, Grid, KernelSource, nvrtc};

impl KernelSource {
    fn cubin(&self, capability: u32) -> Result<Vec<u8>> {
        let name = self.cubin_name(capability);
        let beside = std::env::current_exe().ok().and_then(|p| Some(p.parent()?.join("cubins")));
        let cache = cache_folder();
        for folder in beside.iter().chain(&cache) {
            if let Ok(code) = std::fs::read(folder.join(&name)) {
                return Ok(code);
            }
        }
        let code = nvrtc::compile(self.name, self.text, capability)?;
        if let Some(folder) = cache {
            store(&folder, &name, &code);
        }
        Ok(code)
    }
}

fn cache_folder() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    Some(cache?.join("plimsoll").join("cubins"))
}

/// Keeps a cubin for the next run. A cache that cannot be written costs time, not correctness.
fn store(folder: &std::path::Path, name: &str, code: &[u8]) {
    let partial = folder.join(format!("{name}.{}", std::process::id()));
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&partial, code))
        .and_then(|()| std::fs::rename(&partial, folder.join(name)));
    if written.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
}

/// A function on the GPU.
#[derive(Clone, Copy, Debug)]
pub struct Kernel(sys::CUfunction);

// SAFETY: a function handle is a name that the driver accepts from any thread; modules are never
// unloaded.
unsafe impl Send for Kernel {}
// SAFETY: as for Send.
unsafe impl Sync for Kernel {}

/// Modules and functions that are loaded, by the address of their source and their name.
pub(crate) struct Kernels {
    functions: Mutex<HashMap<(usize, String), Kernel>>,
    modules: Mutex<HashMap<usize, Module>>,
}

#[derive(Clone, Copy)]
struct Module(sys::CUmodule);

// SAFETY: a module handle is a name that the driver accepts from any thread; modules are never
// unloaded.
unsafe impl Send for Module {}

impl Kernels {
    pub(crate) fn new() -> Kernels {
        Kernels { functions: Mutex::new(HashMap::new()), modules: Mutex::new(HashMap::new()) }
    }
}

impl Context {
    /// The function `name` of `source`, compiled and loaded at its first use.
    pub fn kernel(&self, source: &'static KernelSource, name: &str) -> Result<Kernel> {
        let key = (std::ptr::from_ref(source).addr(), name.to_string());
        if let Some(kernel) = self.kernels.functions.lock().get(&key) {
            return Ok(*kernel);
        }
        let _bound = self.bind()?;
        let module = self.module(source)?;
        let text = CString::new(name)
            .map_err(|_| Error::invalid_argument(format!("`{name}` is not a kernel's name")))?;
        // SAFETY: the module is loaded and never unloaded.
        let function = match unsafe { result::module::get_function(module.0, text) } {
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NOT_FOUND => {
                return Err(Error::unsupported(
                    source.name,
                    format!(
                        "`{name}` has no CUDA kernel yet; move the inputs to the CPU with `to` first"
                    ),
                ));
            }
            found => {
                found.told(&format!("cuModuleGetFunction of `{name}` in {}.cu", source.name))?
            }
        };
        self.kernels.functions.lock().insert(key, Kernel(function));
        Ok(Kernel(function))
    }

    fn module(&self, source: &'static KernelSource) -> Result<Module> {
        let key = std::ptr::from_ref(source).addr();
        let mut modules = self.kernels.modules.lock();
        if let Some(module) = modules.get(&key) {
            return Ok(*module);
        }
        let code = source.cubin(self.properties().capability)?;
        // SAFETY: `code` is a whole cubin; the driver copies it.
        let module = unsafe { result::module::load_data(code.as_ptr().cast()) }
            .told(&format!("cuModuleLoadData of {}.cu", source.name))?;
        modules.insert(key, Module(module));
        Ok(Module(module))
    }

    /// Queues a kernel.
    ///
    /// # Safety
    /// `arguments` are what the kernel declares, in order and type; every address in them is memory
    /// of this GPU that the stream may read or write as the kernel does.
    pub unsafe fn launch(
        &self,
        stream: StreamId,
        kernel: Kernel,
        grid: Grid,
        arguments: &[Argument],
    ) -> Result<()> {
        let _bound = self.bind()?;
        let handle = self.handle(stream)?;
        let mut pointers: Vec<_> = arguments.iter().map(Argument::pointer).collect();
        let threads = (grid.threads, 1, 1);
        // SAFETY: the caller's promise; the driver copies the arguments before it returns.
        unsafe {
            result::launch_kernel(
                kernel.0,
                grid.blocks,
                threads,
                grid.shared_bytes,
                handle,
                &mut pointers,
            )
        }
        .told("cuLaunchKernel")
    }
}
