//! The arguments of one call after they were matched (`bind.rs`), read in the kind that their
//! signature says.

use plimsoll_core::{DType, Device, Error, MemoryFormat, Result, Scalar};
use plimsoll_tensor::signature::{Kind, Signature};
use plimsoll_tensor::{Other, Tensor};
use smallvec::SmallVec;

use crate::defaults;

/// The arguments of one call, in the order of the signature.
#[derive(Debug)]
pub(crate) struct Arguments(pub(crate) SmallVec<[Value; 4]>);

/// One argument as Rust takes it.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    None,
    Tensor(Tensor),
    Tensors(Vec<Option<Tensor>>),
    Number(Scalar),
    Ints(SmallVec<[i64; 6]>),
    Floats(Vec<f64>),
    Bool(bool),
    Text(String),
    DType(DType),
    Device(Device),
    MemoryFormat(MemoryFormat),
}

/// Reads the arguments; the generator asks for each in the kind that the signature says.
impl Arguments {
    fn wrong(&self, index: usize) -> Error {
        Error::invalid_argument(format!("argument {index} is of another kind than its signature"))
    }

    pub(crate) fn tensor(&self, index: usize) -> Result<&Tensor> {
        match &self.0[index] {
            Value::Tensor(tensor) => Ok(tensor),
            _ => Err(self.wrong(index)),
        }
    }

    /// Writes a result into the first argument, whose class of dtype must hold it: no fraction
    /// becomes a whole number in silence.
    pub(crate) fn write_back(&self, result: &Tensor) -> Result<()> {
        let target = self.tensor(0)?;
        if result.dtype().class() > target.dtype().class() {
            return Err(Error::shape(
                "copy_",
                format!(
                    "the result is {} and can't be cast to the desired output type {}",
                    result.dtype(),
                    target.dtype()
                ),
            ));
        }
        target.copy_(result).map(drop)
    }

    pub(crate) fn optional_tensor(&self, index: usize) -> Option<&Tensor> {
        match &self.0[index] {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    pub(crate) fn other(&self, index: usize) -> Result<Other<'_>> {
        match &self.0[index] {
            Value::Tensor(tensor) => Ok(Other::Tensor(tensor)),
            Value::Number(number) => Ok(Other::Scalar(*number)),
            _ => Err(self.wrong(index)),
        }
    }

    pub(crate) fn tensors(&self, index: usize) -> Result<Vec<&Tensor>> {
        match &self.0[index] {
            Value::Tensors(tensors) => Ok(tensors.iter().flatten().collect()),
            _ => Err(self.wrong(index)),
        }
    }

    pub(crate) fn optional_tensors(&self, index: usize) -> Result<Vec<Option<&Tensor>>> {
        match &self.0[index] {
            Value::Tensors(tensors) => Ok(tensors.iter().map(Option::as_ref).collect()),
            _ => Err(self.wrong(index)),
        }
    }

    pub(crate) fn number(&self, index: usize) -> Result<Scalar> {
        match &self.0[index] {
            Value::Number(number) => Ok(*number),
            _ => Err(self.wrong(index)),
        }
    }

    pub(crate) fn optional_number(&self, index: usize) -> Option<Scalar> {
        self.number(index).ok()
    }

    /// The device that it draws for, if it draws: the one that is named, else its tensor's.
    pub(crate) fn place(&self) -> Device {
        let named = self.0.iter().find_map(|value| match value {
            Value::Device(device) => Some(*device),
            _ => None,
        });
        let tensors = self.0.iter().find_map(|value| match value {
            Value::Tensor(tensor) => Some(tensor.device()),
            _ => None,
        });
        named.or(tensors).unwrap_or_else(defaults::current)
    }

    pub(crate) fn optional_device(&self, index: usize) -> Option<Device> {
        match self.0[index] {
            Value::Device(device) => Some(device),
            _ => None,
        }
    }

    pub(crate) fn optional_memory_format(&self, index: usize) -> Option<MemoryFormat> {
        match self.0[index] {
            Value::MemoryFormat(format) => Some(format),
            _ => None,
        }
    }

    pub(crate) fn int(&self, index: usize) -> Result<i64> {
        Ok(self.number(index)?.to_i64())
    }

    pub(crate) fn optional_int(&self, index: usize) -> Option<i64> {
        self.number(index).ok().map(Scalar::to_i64)
    }

    pub(crate) fn float(&self, index: usize) -> Result<f64> {
        Ok(self.number(index)?.to_f64())
    }

    pub(crate) fn optional_float(&self, index: usize) -> Option<f64> {
        self.number(index).ok().map(Scalar::to_f64)
    }

    #[allow(dead_code, reason = "signatures come and go")]
    pub(crate) fn optional_floats(&self, index: usize) -> Option<&[f64]> {
        match &self.0[index] {
            Value::Floats(floats) => Some(floats),
            _ => None,
        }
    }

    #[allow(dead_code, reason = "signatures come and go")]
    pub(crate) fn floats(&self, index: usize) -> Result<&[f64]> {
        self.optional_floats(index).ok_or_else(|| self.wrong(index))
    }

    pub(crate) fn ints(&self, index: usize) -> Result<&[i64]> {
        match &self.0[index] {
            Value::Ints(ints) => Ok(ints),
            _ => Err(self.wrong(index)),
        }
    }

    pub(crate) fn optional_ints(&self, index: usize) -> Option<&[i64]> {
        self.ints(index).ok()
    }

    #[allow(dead_code, reason = "signatures come and go")]
    pub(crate) fn optional_bool(&self, index: usize) -> Option<bool> {
        self.bool(index).ok()
    }

    /// Every tensor among the arguments, those of lists too.
    pub(crate) fn all_tensors(&self) -> Vec<&Tensor> {
        let mut all = Vec::new();
        for value in &self.0 {
            match value {
                Value::Tensor(tensor) => all.push(tensor),
                Value::Tensors(list) => all.extend(list.iter().flatten()),
                _ => {}
            }
        }
        all
    }

    /// Whether a tensor among the arguments takes part in a graph.
    pub(crate) fn requires_grad(&self) -> bool {
        self.0.iter().any(|value| match value {
            Value::Tensor(tensor) => tensor.requires_grad(),
            Value::Tensors(list) => list.iter().flatten().any(Tensor::requires_grad),
            _ => false,
        })
    }

    /// Whether a tensor among the arguments has memory in common with another.
    pub(crate) fn overlaps(&self, other: &Tensor) -> bool {
        let width = |tensor: &Tensor| tensor.element_size();
        self.0.iter().any(|value| match value {
            Value::Tensor(tensor) => {
                tensor.shares_storage_with(other)
                    && tensor.layout().overlaps_as(width(tensor), other.layout(), width(other))
            }
            _ => false,
        })
    }

    /// The arguments with `dtype` where none was given.
    pub(crate) fn with_dtype(&self, signature: &Signature, dtype: DType) -> Arguments {
        let given = self.0.iter().zip(&signature.parameters).map(|(value, parameter)| {
            match (value, parameter.kind) {
                (Value::None, Kind::OptionalDType) => Value::DType(dtype),
                (value, _) => value.clone(),
            }
        });
        Arguments(given.collect())
    }

    pub(crate) fn bool(&self, index: usize) -> Result<bool> {
        match self.0[index] {
            Value::Bool(value) => Ok(value),
            _ => Err(self.wrong(index)),
        }
    }

    pub(crate) fn dtype(&self, index: usize) -> Result<DType> {
        self.optional_dtype(index).ok_or_else(|| self.wrong(index))
    }

    pub(crate) fn optional_dtype(&self, index: usize) -> Option<DType> {
        match self.0[index] {
            Value::DType(dtype) => Some(dtype),
            _ => None,
        }
    }

    /// A text as it was given.
    pub(crate) fn text(&self, index: usize) -> Result<&str> {
        match &self.0[index] {
            Value::Text(text) => Ok(text),
            _ => Err(self.wrong(index)),
        }
    }

    /// A word that stands for one of a few choices.
    pub(crate) fn word<T: std::str::FromStr<Err = Error>>(&self, index: usize) -> Result<T> {
        self.optional_word(index)?.ok_or_else(|| self.wrong(index))
    }

    pub(crate) fn optional_word<T: std::str::FromStr<Err = Error>>(
        &self,
        index: usize,
    ) -> Result<Option<T>> {
        match &self.0[index] {
            Value::Text(word) => word.parse().map(Some),
            _ => Ok(None),
        }
    }
}
