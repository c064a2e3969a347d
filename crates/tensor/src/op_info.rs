//! The static facts of an operation: one row of the registry. What users may call, what `prepare`
//! does with the operands before the operation runs, and what tests and bindings need to know.
//!
//! What an operation computes is a value in `ops/` (`operation.rs` says what that is).

use plimsoll_core::DType;
use plimsoll_cuda::KernelSource;

use crate::summaries::SUMMARIES;

/// One row of the registry.
#[derive(Debug)]
pub struct OpInfo {
    /// PyTorch's name; those outside the top level have their module's before it, as in PyTorch's
    /// own registry (`special_i0e`).
    pub name: &'static str,
    /// The Python module that has its function.
    pub home: Home,
    /// The file under `ops/`, `api/` and `kernels/` that it lives in.
    pub family: &'static str,
    /// PyTorch's signatures, from which the Python functions and stubs are generated. Empty for
    /// operations that are reached only through others.
    pub signatures: &'static [&'static str],
    /// Whether it has a derivative.
    pub differentiable: bool,
    /// Whether `name_` exists.
    pub in_place: bool,
    /// The `out=` form.
    pub out: Out,
    /// Whether each element is read before it is written and never after, so that a target may be
    /// the same view as an input. Other operations refuse targets that share memory with an input.
    pub elementwise: bool,
    /// What computes it on CUDA.
    pub cuda: OnCuda,
    /// The dtypes that it computes in.
    pub dtypes: DTypes,
    /// What each input is to the operation; the last entry stands for all that follow.
    pub inputs: &'static [Input],
    /// How the operands' dtypes are brought together.
    pub promotion: Promotion,
}

impl OpInfo {
    /// A row with nothing in it, to be filled in by `..OpInfo::BARE`.
    pub const BARE: OpInfo = OpInfo {
        name: "",
        home: Home::Torch,
        family: "",
        signatures: &[],
        differentiable: false,
        in_place: false,
        out: Out::None,
        elementwise: false,
        cuda: OnCuda::Nothing,
        dtypes: DTypes::ALL,
        inputs: &[Input::Given],
        promotion: Promotion::None,
    };

    /// One line of documentation: the first sentence of the method's.
    pub fn summary(&self) -> &'static str {
        let found = SUMMARIES.binary_search_by_key(&self.name, |(name, _)| name);
        found.map_or("", |at| SUMMARIES[at].1)
    }

    /// What input `index` is to the operation.
    pub fn input(&self, index: usize) -> Input {
        let last = self.inputs.last().copied().unwrap_or(Input::Given);
        self.inputs.get(index).copied().unwrap_or(last)
    }
}

/// What computes an operation on CUDA.
#[derive(Clone, Copy, Debug)]
pub enum OnCuda {
    /// Nothing yet: it is refused there.
    Nothing,
    /// Kernels of this file.
    Kernels(&'static KernelSource),
    /// The driver or a library; or it is a view, and there is nothing to compute.
    Library,
    /// Other operations: it is made of them, and runs where they do. Its forms in place and with
    /// `out=` are the result, copied.
    Composed,
}

impl OnCuda {
    /// Whether it runs there.
    pub const fn exists(self) -> bool {
        !matches!(self, OnCuda::Nothing)
    }
}

/// The Python module in which PyTorch has an operation's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// `torch` itself.
    Torch,
    /// `torch.nn.functional`.
    Functional,
    /// `torch.special`.
    Special,
    /// `torch.linalg`.
    Linalg,
    /// `torch.fft`.
    Fft,
}

impl Home {
    /// What names of its operations start with in the registry.
    pub const fn prefix(self) -> &'static str {
        match self {
            Home::Torch | Home::Functional => "",
            Home::Special => "special_",
            Home::Linalg => "linalg_",
            Home::Fft => "fft_",
        }
    }
}

/// What an input is to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A tensor that is taken as it is.
    Given,
    /// A number: it takes part in promotion, and a zero-dimensional one on the CPU goes along with
    /// any device.
    Operand,
    /// Positions: int64, or int32, which is converted.
    Index,
    /// Whether something holds: bool, or uint8, PyTorch's bool of old.
    Condition,
}

/// How the dtypes of [`Input::Operand`]s are brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promotion {
    /// Not at all.
    None,
    /// To the dtype that PyTorch's promotion finds.
    Common,
    /// The same, and integers become float32.
    Float,
}

/// Whether an operation writes into given tensors, and of which dtypes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Out {
    /// There is no `out=` form.
    None,
    /// Of the result's dtype only.
    Exact,
    /// Of any dtype that the result can be cast to.
    Cast,
    /// The bindings copy the result there, as they do for composed operations.
    Copied,
}

impl Out {
    /// Whether there is an `out=` form.
    pub const fn exists(self) -> bool {
        !matches!(self, Out::None)
    }
}

/// A set of dtypes.
///
/// ```
/// use plimsoll_tensor::DType;
/// use plimsoll_tensor::operation::DTypes;
/// assert!(DTypes::FLOATS.contains(DType::BF16) && !DTypes::FLOATS.contains(DType::I64));
/// assert_eq!(DTypes::NUMBERS.iter().count(), 9);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DTypes(u32);

impl DTypes {
    /// Every dtype.
    pub const ALL: DTypes = DTypes::of(&DType::ALL);
    /// Floating point.
    pub const FLOATS: DTypes = DTypes::of(&DType::FLOATS);
    /// Integers.
    pub const INTEGERS: DTypes =
        DTypes::of(&[DType::U8, DType::I8, DType::I16, DType::I32, DType::I64]);
    /// Integers and bools.
    pub const BITS: DTypes = DTypes(DTypes::INTEGERS.0 | 1 << DType::Bool as u32);
    /// Integers and floating point.
    pub const NUMBERS: DTypes = DTypes::of(&DType::NUMBERS);

    /// Just these.
    pub const fn of(dtypes: &[DType]) -> DTypes {
        let mut set = 0;
        let mut at = 0;
        while at < dtypes.len() {
            set |= 1 << dtypes[at] as u32;
            at += 1;
        }
        DTypes(set)
    }

    /// Whether `dtype` is in the set.
    #[inline]
    pub const fn contains(self, dtype: DType) -> bool {
        self.0 & 1 << dtype as u32 != 0
    }

    /// Its dtypes, in promotion order.
    pub fn iter(self) -> impl Iterator<Item = DType> {
        DType::ALL.into_iter().filter(move |&dtype| self.contains(dtype))
    }

    /// Their names, with commas between.
    pub fn names(self) -> String {
        self.iter().map(DType::name).collect::<Vec<_>>().join(", ")
    }
}

impl std::fmt::Debug for DTypes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
