//! What a name can hold, as far as rules care. `Unknown` is always allowed; everything else is a
//! claim that some line of the file supports.

use ruff_text_size::TextRange;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Value {
    #[default]
    Unknown,
    /// A number, a string, a bool: nothing that holds device memory.
    Plain,
    None,
    /// A list or dict made here.
    Container,
    /// A NumPy array or another thing in host memory that is no tensor.
    Array,
    Tensor(Tensor),
    Module(Module),
    Criterion,
    Optimizer,
    Loader(Loader),
    Scaler,
    Device(Residence),
    /// An object of a class of this file that is none of the above.
    Instance(usize),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Graph {
    #[default]
    Unknown,
    /// Results hang on a graph.
    Yes,
    No,
}

/// Where memory lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Residence {
    #[default]
    Unknown,
    Host,
    Cuda,
    /// On whatever a variable named `device` says, most likely not the host.
    Chosen,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) graph: Graph,
    /// Made here with `requires_grad`, so that autograd refuses in-place changes.
    pub(crate) leaf: bool,
    /// Fresh from a creating function: `requires_grad_()` makes it a leaf.
    pub(crate) fresh: bool,
    pub(crate) place: Residence,
    pub(crate) dims: Option<usize>,
    /// Known not to be contiguous (transposed or permuted).
    pub(crate) strided: bool,
    /// Of a strided tensor the least number of dimensions that `view` can reach: dimensions that
    /// still follow one another in memory can be merged, others cannot.
    pub(crate) runs: Option<usize>,
    /// The output of calling a module.
    pub(crate) output: bool,
    /// A number in a tensor, which devices may mix.
    pub(crate) scalar: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Module {
    /// Its class, if it is one of this file.
    pub(crate) class: Option<usize>,
    pub(crate) place: Residence,
    /// A layer inside it that behaves differently in evaluation.
    pub(crate) mode_layer: Option<String>,
    pub(crate) recurrent: bool,
    pub(crate) data_parallel: bool,
    /// Known by more than its name.
    pub(crate) certain: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loader {
    /// `pin_memory=`; nothing if it cannot be seen.
    pub(crate) pinned: Option<bool>,
    /// Where it is made.
    pub(crate) made: TextRange,
}

impl Value {
    pub(crate) fn tensor(&self) -> Option<&Tensor> {
        match self {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    pub(crate) fn has_graph(&self) -> bool {
        self.tensor().is_some_and(|tensor| tensor.graph == Graph::Yes)
    }

    pub(crate) fn place(&self) -> Residence {
        match self {
            Value::Tensor(tensor) => tensor.place,
            Value::Module(module) => module.place,
            Value::Device(place) => *place,
            _ => Residence::Unknown,
        }
    }

    /// What is known if either may be the case.
    pub(crate) fn or(self, other: Value) -> Value {
        match (self, other) {
            (a, b) if a == b => a,
            (Value::None, known) | (known, Value::None) => known,
            (Value::Tensor(a), Value::Tensor(b)) => Value::Tensor(Tensor {
                graph: if a.graph == b.graph { a.graph } else { Graph::Unknown },
                leaf: a.leaf && b.leaf,
                fresh: a.fresh && b.fresh,
                place: if a.place == b.place { a.place } else { Residence::Unknown },
                dims: a.dims.filter(|dims| b.dims == Some(*dims)),
                strided: a.strided && b.strided,
                runs: a.runs.filter(|runs| b.runs == Some(*runs)),
                output: a.output && b.output,
                scalar: a.scalar && b.scalar,
            }),
            (Value::Module(a), Value::Module(b)) => Value::Module(Module {
                class: a.class.filter(|class| b.class == Some(*class)),
                place: if a.place == b.place { a.place } else { Residence::Unknown },
                mode_layer: a.mode_layer.and(b.mode_layer),
                recurrent: a.recurrent && b.recurrent,
                data_parallel: a.data_parallel && b.data_parallel,
                certain: a.certain && b.certain,
            }),
            _ => Value::Unknown,
        }
    }
}

impl Residence {
    /// Device memory, by what the file says.
    pub(crate) fn is_device(self) -> bool {
        matches!(self, Residence::Cuda | Residence::Chosen)
    }
}
