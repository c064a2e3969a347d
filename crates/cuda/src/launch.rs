//! What a kernel's launch is described by: its source text, its grid and its arguments; and what it
//! may find wrong. Plain values, which need no driver; `kernel.rs` and `fault.rs` take them to one.

use smallvec::SmallVec;

/// How sources are compiled and what is made sure of the result, as one word: cubins that were kept
/// under another are compiled anew.
const COMPILED: &str = "waits";

/// A CUDA source file.
#[derive(Debug)]
pub struct KernelSource {
    /// The file's name without its ending, as its CPU twin's.
    pub name: &'static str,
    /// The whole text.
    pub text: &'static str,
    /// The one compute capability whose own instructions the text uses, which those after it do not
    /// have; `None` if any will do.
    pub only_on: Option<u32>,
}

impl KernelSource {
    /// Whether a GPU of that compute capability runs it.
    ///
    /// ```
    /// use plimsoll_cuda::source_files::{ATTENTION_GROUPS_BF16_64, UNARY};
    /// assert!(UNARY.runs_on(80) && ATTENTION_GROUPS_BF16_64.runs_on(90));
    /// assert!(!ATTENTION_GROUPS_BF16_64.runs_on(100));
    /// ```
    pub fn runs_on(&self, capability: u32) -> bool {
        self.only_on.is_none_or(|only| only == capability)
    }

    /// What NVRTC calls the architecture that it is compiled for.
    ///
    /// ```
    /// use plimsoll_cuda::source_files::{ATTENTION_GROUPS_BF16_64, UNARY};
    /// assert_eq!(UNARY.architecture(90), "sm_90");
    /// assert_eq!(ATTENTION_GROUPS_BF16_64.architecture(90), "sm_90a");
    /// ```
    pub fn architecture(&self, capability: u32) -> String {
        let ending = if self.only_on.is_some() { "a" } else { "" };
        format!("sm_{capability}{ending}")
    }

    /// The file name of its cubin for a compute capability.
    pub fn cubin_name(&self, capability: u32) -> String {
        format!("{}-sm{capability}-{:016x}.cubin", self.name, self.hash())
    }

    /// The file name of the cubin of one kernel.
    pub fn kernel_name(&self, kernel: &str, capability: u32) -> String {
        format!("{}.{kernel}-sm{capability}-{:016x}.cubin", self.name, self.hash())
    }

    /// The text with one kernel alone: see `KERNEL` in `prelude.cuh`.
    ///
    /// ```
    /// let text = plimsoll_cuda::source_files::UNARY.text_of("exp_f32");
    /// assert!(text.starts_with("#define ONLY\n#define WANTED_exp_f32 ~, 1\n"));
    /// ```
    pub fn text_of(&self, kernel: &str) -> String {
        format!("#define ONLY\n#define WANTED_{kernel} ~, 1\n{}", self.text)
    }

    /// FNV-1a: any change of the text gives another.
    fn hash(&self) -> u64 {
        COMPILED.bytes().chain(self.text.bytes()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }
}

/// How many blocks of how many threads, and their shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Blocks in each dimension.
    pub blocks: (u32, u32, u32),
    /// Threads of a block.
    pub threads: u32,
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
}

/// What a kernel found wrong while it ran; `fault.rs` says how it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The number that the launch was given: whose work it was.
    pub origin: u32,
    /// What is wrong: 0 an index outside its dimension, 1 a value outside what the argument allows.
    pub wrong: u32,
    /// The index or value.
    pub value: i64,
    /// The dimension, or the place of the value; negative if there is none to name.
    pub dim: i64,
    /// The size of the dimension, or the bound of the value.
    pub size: i64,
}

/// One parameter of a kernel, as bytes in the layout that the kernel's source declares.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "arguments lie on the stack for one launch; a box would be an allocation in each"
)]
pub enum Argument {
    /// A pointer or a 64-bit integer.
    U64(u64),
    /// A 32-bit integer.
    I32(i32),
    /// A float.
    F32(f32),
    /// A double.
    F64(f64),
    /// A structure passed by value; 8-byte aligned.
    Words(Words),
}

/// The words of a structure that is passed by value; those of a layout (`Strided` in `prelude.cuh`)
/// and all shorter ones need no memory of their own.
pub type Words = SmallVec<[u64; 41]>;

/// The name of a kernel, in parts: the name in its source is their texts, and a number if there is
/// one, joined by `_`, the empty ones left out. Launches find their function by the addresses of
/// the parts, which is why they are static, and never by a text.
///
/// ```
/// use plimsoll_cuda::KernelName;
/// assert_eq!(KernelName::from(("exp", "f32")).text(), "exp_f32");
/// assert_eq!(KernelName::from(("attention", "", "bf16", 64)).text(), "attention_bf16_64");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct KernelName {
    parts: [&'static str; 4],
    number: Option<usize>,
}

impl KernelName {
    /// The name in the source.
    pub fn text(&self) -> String {
        let parts = self.parts.iter().filter(|part| !part.is_empty()).map(|part| part.to_string());
        let all: Vec<String> = parts.chain(self.number.map(|number| number.to_string())).collect();
        all.join("_")
    }

    /// What is different for different names: where the parts are, and the number.
    #[cfg(feature = "driver")]
    pub(crate) fn key(&self) -> [usize; 9] {
        let [a, b, c, d] = self.parts.map(|part| (part.as_ptr().addr(), part.len()));
        let number = self.number.map_or(usize::MAX, |number| number);
        [a.0, a.1, b.0, b.1, c.0, c.1, d.0, d.1, number]
    }
}

impl From<&'static str> for KernelName {
    fn from(name: &'static str) -> KernelName {
        KernelName { parts: [name, "", "", ""], number: None }
    }
}

impl From<(&'static str, &'static str)> for KernelName {
    fn from((a, b): (&'static str, &'static str)) -> KernelName {
        KernelName { parts: [a, b, "", ""], number: None }
    }
}

impl From<(&'static str, &'static str, &'static str)> for KernelName {
    fn from((a, b, c): (&'static str, &'static str, &'static str)) -> KernelName {
        KernelName { parts: [a, b, c, ""], number: None }
    }
}

impl From<(&'static str, &'static str, &'static str, &'static str)> for KernelName {
    fn from(parts: (&'static str, &'static str, &'static str, &'static str)) -> KernelName {
        KernelName { parts: parts.into(), number: None }
    }
}

impl From<(&'static str, usize)> for KernelName {
    fn from((a, number): (&'static str, usize)) -> KernelName {
        KernelName { parts: [a, "", "", ""], number: Some(number) }
    }
}

impl From<(&'static str, &'static str, usize)> for KernelName {
    fn from((a, b, number): (&'static str, &'static str, usize)) -> KernelName {
        KernelName { parts: [a, b, "", ""], number: Some(number) }
    }
}

impl From<(&'static str, &'static str, &'static str, usize)> for KernelName {
    fn from((a, b, c, number): (&'static str, &'static str, &'static str, usize)) -> KernelName {
        KernelName { parts: [a, b, c, ""], number: Some(number) }
    }
}

#[cfg(feature = "driver")]
impl Argument {
    pub(crate) fn pointer(&self) -> *mut std::ffi::c_void {
        match self {
            Argument::U64(value) => std::ptr::from_ref(value).cast_mut().cast(),
            Argument::I32(value) => std::ptr::from_ref(value).cast_mut().cast(),
            Argument::F32(value) => std::ptr::from_ref(value).cast_mut().cast(),
            Argument::F64(value) => std::ptr::from_ref(value).cast_mut().cast(),
            Argument::Words(words) => words.as_ptr().cast_mut().cast(),
        }
    }
}
