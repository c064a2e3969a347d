//! One row of the list: a call on inputs, and how closely its result must agree.

use std::fmt;
use std::ops::Index;

use plimsoll_core::{DType, Device, Result};
use plimsoll_tensor::Tensor;

use super::{Input, Instance};
use crate::layouts::Arrangement;
use crate::oracle::Array;

/// What a case's Plimsoll call sees: `t[0]`, `t[1]`, .. and, for creation, where and what to make.
#[derive(Debug)]
pub struct Inputs {
    /// The inputs in order.
    pub tensors: Vec<Tensor>,
    /// The device under test.
    pub device: Device,
    /// The instance's dtype.
    pub dtype: DType,
    /// The instance's second dtype.
    pub other: DType,
}

impl Index<usize> for Inputs {
    type Output = Tensor;

    fn index(&self, index: usize) -> &Tensor {
        &self.tensors[index]
    }
}

/// What a case's oracle sees: the same inputs as arrays.
#[derive(Clone, Debug)]
pub struct Arrays {
    /// The inputs in order.
    pub arrays: Vec<Array>,
    /// The instance's dtype.
    pub dtype: DType,
    /// The instance's second dtype.
    pub other: DType,
}

impl Index<usize> for Arrays {
    type Output = Array;

    fn index(&self, index: usize) -> &Array {
        &self.arrays[index]
    }
}

/// The results of a call, one or several.
pub type Outputs<T> = Vec<T>;

/// One result or a few, so that rows read like calls.
pub trait IntoOutputs<T> {
    /// As a list.
    fn into_outputs(self) -> Outputs<T>;
}

impl IntoOutputs<Tensor> for Tensor {
    fn into_outputs(self) -> Outputs<Tensor> {
        vec![self]
    }
}

impl IntoOutputs<Array> for Array {
    fn into_outputs(self) -> Outputs<Array> {
        vec![self]
    }
}

impl<T> IntoOutputs<T> for Vec<T> {
    fn into_outputs(self) -> Outputs<T> {
        self
    }
}

impl<T> IntoOutputs<T> for (T, T, T) {
    fn into_outputs(self) -> Outputs<T> {
        vec![self.0, self.1, self.2]
    }
}

impl<T> IntoOutputs<T> for (T, T) {
    fn into_outputs(self) -> Outputs<T> {
        vec![self.0, self.1]
    }
}

/// How far a float result may lie from the truth: `ulps` units of the dtype's precision, at the
/// size of the expected value or of `floor`, whichever is larger. Integers and bools must be equal.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// Units of relative precision, for `float32` and `float64`; halves, which are rounded once,
    /// get 2.
    pub ulps: f64,
    /// The size of what was added up to get the value; 0 where nothing cancels.
    pub floor: f64,
}

type Run = Box<dyn Fn(&Inputs) -> Result<Outputs<Tensor>> + Send + Sync>;
type Oracle = Box<dyn Fn(&Arrays) -> Outputs<Array> + Send + Sync>;

/// One row.
pub struct Case {
    /// The operation's name in the registry.
    pub op: &'static str,
    /// The file that the row and its golden results are in.
    pub family: &'static str,
    /// The call in PyTorch, on inputs `a`, `b`, `c`, ..
    pub torch: String,
    /// The inputs.
    pub inputs: Vec<Input>,
    /// The dtypes that the call takes; PyTorch and Plimsoll must both refuse the others.
    pub dtypes: Vec<DType>,
    /// Whether dtypes that the call does not take are left out rather than expected to be refused.
    pub silent_otherwise: bool,
    /// Whether the case runs over pairs of dtypes, and which ones the call takes.
    pub pairs: Option<fn(DType, DType) -> bool>,
    /// The arrangements that its inputs come in.
    pub arrangements: Vec<Arrangement>,
    /// The inputs that the call writes to.
    pub writes: Vec<usize>,
    /// Whether the results are those inputs; otherwise the call writes to them besides.
    pub returns_written: bool,
    /// Whether it draws random numbers, so that PyTorch's result has the same dtype and place but
    /// other values.
    pub random: bool,
    /// Whether the result is row-major here while PyTorch's strides are an accident of how it
    /// computes.
    pub row_major: bool,
    /// Whether some arrangements are refused (`view` of a transposed tensor), as PyTorch does.
    pub may_refuse: bool,
    /// The inputs that have a derivative.
    pub gradients: Vec<usize>,
    /// Whether the derivative has one too; PyTorch's own does not everywhere.
    pub twice: bool,
    /// How closely results must agree.
    pub tolerance: Tolerance,
    run: Option<Run>,
    oracle: Option<Oracle>,
}

impl Case {
    /// A row for `op`: the call in PyTorch, and its inputs.
    pub(crate) fn new<const N: usize>(
        op: &'static str,
        torch: impl Into<String>,
        inputs: [Input; N],
    ) -> Case {
        Case {
            op,
            family: "",
            torch: torch.into(),
            inputs: inputs.into(),
            dtypes: DType::ALL.to_vec(),
            silent_otherwise: false,
            pairs: None,
            arrangements: Arrangement::ALL.to_vec(),
            writes: vec![],
            returns_written: false,
            random: false,
            row_major: false,
            may_refuse: false,
            gradients: vec![],
            twice: true,
            tolerance: Tolerance { ulps: 4.0, floor: 0.0 },
            run: None,
            oracle: None,
        }
    }

    /// The call in Plimsoll.
    pub(crate) fn run<O: IntoOutputs<Tensor>>(
        mut self,
        f: impl Fn(&Inputs) -> Result<O> + Send + Sync + 'static,
    ) -> Case {
        self.run = Some(Box::new(move |t| Ok(f(t)?.into_outputs())));
        self
    }

    /// The call in Plimsoll, where it writes to input `target`: the result is that input
    /// afterwards.
    pub(crate) fn writes(
        self,
        target: usize,
        f: impl Fn(&Inputs) -> Result<()> + Send + Sync + 'static,
    ) -> Case {
        self.writes_all(&[target], f)
    }

    /// The call in Plimsoll, where it writes to several inputs, which are its results.
    pub(crate) fn writes_all(
        mut self,
        targets: &[usize],
        f: impl Fn(&Inputs) -> Result<()> + Send + Sync + 'static,
    ) -> Case {
        self.writes = targets.to_vec();
        self.returns_written = true;
        let targets = targets.to_vec();
        self.run = Some(Box::new(move |t| {
            f(t)?;
            Ok(targets.iter().map(|&target| t[target].clone()).collect())
        }));
        self
    }

    /// The call writes to these inputs besides making its results.
    pub(crate) fn mutates(mut self, targets: &[usize]) -> Case {
        self.writes = targets.to_vec();
        self
    }

    /// The result is row-major here; PyTorch's strides are an accident of how it computes.
    pub(crate) fn row_major(mut self) -> Case {
        self.row_major = true;
        self
    }

    /// The call draws random numbers: the oracle tells each one, PyTorch's are others.
    pub(crate) fn random(mut self) -> Case {
        self.random = true;
        self
    }

    /// The call in the oracle.
    pub(crate) fn oracle<O: IntoOutputs<Array>>(
        mut self,
        f: impl Fn(&Arrays) -> O + Send + Sync + 'static,
    ) -> Case {
        self.oracle = Some(Box::new(move |a| f(a).into_outputs()));
        self
    }

    /// The inputs that have a derivative.
    pub(crate) fn gradient(mut self, inputs: &[usize]) -> Case {
        self.gradients = inputs.to_vec();
        self
    }

    /// The derivative has none of its own.
    pub(crate) fn once(mut self) -> Case {
        self.twice = false;
        self
    }

    /// The dtypes that the call takes.
    pub(crate) fn dtypes(mut self, dtypes: &[DType]) -> Case {
        self.dtypes = dtypes.to_vec();
        self
    }

    /// Says nothing about other dtypes: they are not run, where they would need another result.
    pub(crate) fn taking_only_these(mut self) -> Case {
        self.silent_otherwise = true;
        self
    }

    /// Runs over all pairs of dtypes; `takes` says which ones the call takes.
    pub(crate) fn pairs(mut self, takes: fn(DType, DType) -> bool) -> Case {
        self.pairs = Some(takes);
        self.only(&[Arrangement::Contiguous])
    }

    /// The arrangements that the inputs come in.
    pub(crate) fn only(mut self, arrangements: &[Arrangement]) -> Case {
        self.arrangements = arrangements.to_vec();
        self
    }

    /// A row beside a fuller one of the same operation: contiguous and transposed only.
    pub(crate) fn brief(self) -> Case {
        self.only(&[Arrangement::Contiguous, Arrangement::Transposed])
    }

    /// Row-major inputs only.
    pub(crate) fn plain(self) -> Case {
        self.only(&[Arrangement::Contiguous])
    }

    /// Some arrangements are refused, as PyTorch refuses them.
    pub(crate) fn may_refuse(mut self) -> Case {
        self.may_refuse = true;
        self
    }

    /// How closely results must agree.
    pub(crate) fn tolerance(mut self, ulps: f64, floor: f64) -> Case {
        self.tolerance = Tolerance { ulps, floor };
        self
    }

    pub(super) fn in_family(mut self, family: &'static str) -> Case {
        self.family = family;
        self
    }

    /// Calls Plimsoll.
    pub fn call(&self, inputs: &Inputs) -> Result<Outputs<Tensor>> {
        (self.run.as_ref().expect("every row has a call"))(inputs)
    }

    /// Asks the oracle.
    pub fn expected(&self, inputs: &Arrays) -> Outputs<Array> {
        (self.oracle.as_ref().expect("every row has an oracle"))(inputs)
    }

    /// The row in every dtype and arrangement that it is for.
    pub fn instances(&self) -> Vec<Instance<'_>> {
        Instance::of(self)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}` on {:?}", self.op, self.torch, self.inputs)
    }
}
