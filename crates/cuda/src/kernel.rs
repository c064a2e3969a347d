//! Kernels: a source text becomes a cubin, a module, a function, a launch.
//!
//! A cubin of the whole file is looked for beside the program (`cubins/`, made by `cargo xtask
//! gpu-bundle`) and in the user's cache folder. If there is none, the one kernel that is asked for
//! is compiled, which takes about a fifth of a second, and kept in the cache folder: whole files
//! take up to ten seconds, and programs use few of their kernels. A cubin's name carries a hash of
//! the source, so a stale one is never loaded.
//!
//! Note [Launches that overlap]
//! From compute capability 9.0 and CUDA 12.3 on a kernel is brought to the GPU as soon as the
//! blocks of the one before it in its stream have left (or have said that it may come, as some of
//! libraries do), and not once what they wrote has arrived: that it waits for itself. Every kernel
//! begins with that wait (`in_turn` in `prelude.cuh`; a test of `source_files.rs` holds all sources
//! to it, and `turn.rs` whatever a compiler makes of them), so a stream's order is what it was, and
//! what is saved is a part of the time between two kernels. Kernels of libraries, copies and events
//! wait as they always did. Why blocks of ours do not come while others still run:
//! `docs/decisions.md`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CString;
use std::hash::{BuildHasherDefault, Hasher};

use cudarc::driver::{result, sys};
use parking_lot::Mutex;
use plimsoll_core::{Error, Result};
use plimsoll_memory::StreamId;
use smallvec::SmallVec;

use crate::error::Told;
use crate::{Argument, Context, Grid, KernelName, KernelSource, cache, nvrtc};

/// What a cubin has: every kernel of its file, or one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Kernel,
}

impl KernelSource {
    /// A cubin that has `kernel`, if the file has it.
    fn cubin(&self, kernel: &str, capability: u32) -> Result<(Vec<u8>, Part)> {
        let (whole, one) = (self.cubin_name(capability), self.kernel_name(kernel, capability));
        let beside = std::env::current_exe().ok().and_then(|p| Some(p.parent()?.join("cubins")));
        let cache = cache::folder("cubins");
        for folder in beside.iter().chain(&cache) {
            if let Ok(code) = std::fs::read(folder.join(&whole)) {
                return Ok((code, Part::Whole));
            }
        }
        if let Some(Ok(code)) = cache.as_ref().map(|folder| std::fs::read(folder.join(&one))) {
            return Ok((code, Part::Kernel));
        }
        let architecture = self.architecture(capability);
        let code = nvrtc::compile(self.name, &self.text_of(kernel), &architecture)?;
        if let Some(folder) = cache {
            store(&folder, &one, &code);
        }
        Ok((code, Part::Kernel))
    }
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

/// Functions and modules that are loaded, by the address of their source and their name. A module
/// of a whole file has none.
pub(crate) struct Kernels {
    functions: Mutex<HashMap<(usize, String), Kernel>>,
    modules: Mutex<HashMap<(usize, String), Module>>,
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

/// A function that this thread has launched before: its GPU, its source and the parts of its name
/// ([`KernelName::key`]).
#[derive(PartialEq, Eq, Hash)]
struct Known {
    context: usize,
    source: usize,
    name: [usize; 9],
}

/// Addresses differ in their middle bits; a multiplication spreads those.
#[derive(Default)]
struct ByAddress(u64);

impl Hasher for ByAddress {
    fn write(&mut self, bytes: &[u8]) {
        // An array of numbers comes as its bytes.
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|&word| self.write_u64(u64::from_ne_bytes(word)));
        rest.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

thread_local! {
    static KNOWN: RefCell<HashMap<Known, Kernel, BuildHasherDefault<ByAddress>>> =
        RefCell::default();
}

impl Context {
    /// The function `name` of `source`, compiled and loaded at its first use. From a thread's
    /// second use on neither a lock is taken nor a text looked at.
    pub fn kernel(
        &self,
        source: &'static KernelSource,
        name: impl Into<KernelName>,
    ) -> Result<Kernel> {
        let name = name.into();
        let known = Known {
            context: std::ptr::from_ref(self).addr(),
            source: std::ptr::from_ref(source).addr(),
            name: name.key(),
        };
        if let Some(kernel) = KNOWN.with_borrow(|all| all.get(&known).copied()) {
            return Ok(kernel);
        }
        let kernel = self.find(source, &name.text())?;
        KNOWN.with_borrow_mut(|all| all.insert(known, kernel));
        Ok(kernel)
    }

    /// The function by its whole name.
    #[cold]
    fn find(&self, source: &'static KernelSource, name: &str) -> Result<Kernel> {
        let key = (std::ptr::from_ref(source).addr(), name.to_string());
        if let Some(kernel) = self.kernels.functions.lock().get(&key) {
            return Ok(*kernel);
        }
        let _bound = self.bind()?;
        let module = self.module(source, name)?;
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
        self.allow_shared_memory(function)?;
        self.kernels.functions.lock().insert(key, Kernel(function));
        Ok(Kernel(function))
    }

    /// Lets launches ask for all shared memory that a block can have beside what the function
    /// declares itself. Unasked, both together may have 48 KiB. Once for each function: launches of
    /// different sizes from several threads would set it for each other.
    fn allow_shared_memory(&self, function: sys::CUfunction) -> Result<()> {
        use sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN as MOST;
        use sys::CUfunction_attribute as Of;
        let declared = Of::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
        let dynamic = Of::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let device = result::device::get(self.ordinal() as i32).told("cuDeviceGet")?;
        // SAFETY: the device came from the driver; the function is of a module that is loaded and
        // never unloaded.
        unsafe {
            let most = result::device::get_attribute(device, MOST).told("cuDeviceGetAttribute")?;
            let own = result::function::get_function_attribute(function, declared)
                .told("cuFuncGetAttribute")?;
            result::function::set_function_attribute(function, dynamic, (most - own).max(0))
                .told("cuFuncSetAttribute")
        }
    }

    /// The module with kernel `name`.
    fn module(&self, source: &'static KernelSource, name: &str) -> Result<Module> {
        let address = std::ptr::from_ref(source).addr();
        let mut modules = self.kernels.modules.lock();
        for key in [String::new(), name.to_string()] {
            if let Some(module) = modules.get(&(address, key)) {
                return Ok(*module);
            }
        }
        let (code, part) = source.cubin(name, self.properties().capability)?;
        // SAFETY: `code` is a whole cubin; the driver copies it.
        let module = unsafe { result::module::load_data(code.as_ptr().cast()) }
            .told(&format!("cuModuleLoadData of {}.cu", source.name))?;
        let key = if part == Part::Whole { String::new() } else { name.to_string() };
        modules.insert((address, key), Module(module));
        Ok(Module(module))
    }

    /// Queues a kernel.
    ///
    /// # Safety
    /// `arguments` are what the kernel declares, in order and type; every address in them is memory
    /// of this GPU that the stream may read or write as the kernel does. The kernel waits for its
    /// turn before it touches memory, as all of [`crate::source_files`] do: see
    /// Note [Launches that overlap].
    pub unsafe fn launch(
        &self,
        stream: StreamId,
        kernel: Kernel,
        grid: Grid,
        arguments: &[Argument],
    ) -> Result<()> {
        let _bound = self.bind()?;
        let handle = self.handle(stream)?;
        let mut pointers: SmallVec<[_; 24]> = arguments.iter().map(Argument::pointer).collect();
        if !self.overlaps {
            let threads = (grid.threads, 1, 1);
            let (blocks, shared) = (grid.blocks, grid.shared_bytes);
            // SAFETY: the caller's promise; the driver copies the arguments before it returns.
            return unsafe {
                result::launch_kernel(kernel.0, blocks, threads, shared, handle, &mut pointers)
            }
            .told("cuLaunchKernel");
        }
        let mut early = may_begin_early();
        let launch = sys::CUlaunchConfig {
            gridDimX: grid.blocks.0,
            gridDimY: grid.blocks.1,
            gridDimZ: grid.blocks.2,
            blockDimX: grid.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: grid.shared_bytes,
            hStream: handle,
            attrs: &raw mut early,
            numAttrs: 1,
        };
        let pointers = pointers.as_mut_ptr();
        // SAFETY: the caller's promise; the driver copies the description, its one attribute and
        // the arguments before it returns. What the kernel does before its turn touches no memory,
        // as the caller promised.
        unsafe {
            sys::cuLaunchKernelEx(&raw const launch, kernel.0, pointers, std::ptr::null_mut())
        }
        .result()
        .told("cuLaunchKernelEx")
    }
}

/// What lets a launch be made ready before what the one before it in its stream wrote has arrived.
fn may_begin_early() -> sys::CUlaunchAttribute {
    sys::CUlaunchAttribute {
        id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
    }
}
