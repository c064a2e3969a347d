//! What a GPU is, apart from the GPU itself: memory, multiprocessors, compute capability, caches.
//! Everything that decides how many bytes an operation takes reads it from here, so that a dry run
//! needs a name and no device.

/// The facts of a GPU model.
///
/// ```
/// use plimsoll_cuda::Properties;
/// let h200 = Properties::named("h200").expect("it is in the table");
/// assert_eq!((h200.capability, h200.multiprocessors), (90, 132));
/// assert!(Properties::named("abacus").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The name as the driver gives it.
    pub name: String,
    /// Bytes of memory that a process can see, as the driver counts them.
    pub memory_bytes: usize,
    /// How many multiprocessors it has: enough blocks for each is what fills the GPU.
    pub multiprocessors: u32,
    /// Compute capability, 90 for 9.0.
    pub capability: u32,
    /// Bytes of the cache that all multiprocessors share.
    pub l2_bytes: usize,
}

/// A row of the table: the word that users write, and the facts.
struct Model {
    word: &'static str,
    name: &'static str,
    memory_bytes: usize,
    multiprocessors: u32,
    capability: u32,
    l2_bytes: usize,
}

const MIB: usize = 1 << 20;

/// Memory is what the driver reports, which is less than what is printed on the box. L2 likewise.
static MODELS: [Model; 5] = [
    Model {
        word: "h200",
        name: "NVIDIA H200",
        memory_bytes: 150_109_880_320,
        multiprocessors: 132,
        capability: 90,
        l2_bytes: 60 * MIB,
    },
    Model {
        word: "h100",
        name: "NVIDIA H100 80GB HBM3",
        memory_bytes: 81_079 * MIB,
        multiprocessors: 132,
        capability: 90,
        l2_bytes: 50 * MIB,
    },
    Model {
        word: "a100",
        name: "NVIDIA A100-SXM4-80GB",
        memory_bytes: 81_153 * MIB,
        multiprocessors: 108,
        capability: 80,
        l2_bytes: 40 * MIB,
    },
    Model {
        word: "l40s",
        name: "NVIDIA L40S",
        memory_bytes: 45_373 * MIB,
        multiprocessors: 142,
        capability: 89,
        l2_bytes: 96 * MIB,
    },
    Model {
        word: "rtx4090",
        name: "NVIDIA GeForce RTX 4090",
        memory_bytes: 24_081 * MIB,
        multiprocessors: 128,
        capability: 89,
        l2_bytes: 72 * MIB,
    },
];

impl Properties {
    /// The GPU model that `word` names (`h200`, in any case), if the table has it.
    pub fn named(word: &str) -> Option<Properties> {
        let model = MODELS.iter().find(|model| model.word.eq_ignore_ascii_case(word))?;
        Some(Properties {
            name: model.name.to_string(),
            memory_bytes: model.memory_bytes,
            multiprocessors: model.multiprocessors,
            capability: model.capability,
            l2_bytes: model.l2_bytes,
        })
    }

    /// The words that [`Properties::named`] knows.
    ///
    /// ```
    /// assert!(plimsoll_cuda::Properties::names().any(|word| word == "a100"));
    /// ```
    pub fn names() -> impl Iterator<Item = &'static str> {
        MODELS.iter().map(|model| model.word)
    }

    /// Bytes of workspace that NVIDIA advises for matrix products: 32 MiB from Hopper on, 12 MiB on
    /// Blackwell's smaller chips, 4 MiB before. Taken for every product, so that a dry run takes
    /// the same.
    ///
    /// ```
    /// use plimsoll_cuda::Properties;
    /// let bytes = |word| Properties::named(word).map(|gpu| gpu.matmul_workspace_bytes());
    /// assert_eq!((bytes("h200"), bytes("a100")), (Some(32 << 20), Some(4 << 20)));
    /// ```
    pub fn matmul_workspace_bytes(&self) -> usize {
        match self.capability {
            120.. => 12 * MIB,
            90.. => 32 * MIB,
            _ => 4 * MIB,
        }
    }

    /// Bytes of shared memory that a block can ask for.
    ///
    /// ```
    /// use plimsoll_cuda::Properties;
    /// let bytes = |word| Properties::named(word).map(|gpu| gpu.block_shared_bytes());
    /// assert_eq!((bytes("h200"), bytes("a100")), (Some(227 << 10), Some(163 << 10)));
    /// ```
    pub fn block_shared_bytes(&self) -> usize {
        let kib = match self.capability {
            80 | 87 => 163,
            86 | 89 | 120.. => 99,
            90..120 => 227,
            75 => 64,
            70..80 => 96,
            _ => 48,
        };
        kib << 10
    }
}
