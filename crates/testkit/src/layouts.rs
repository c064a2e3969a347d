//! The same values laid out in memory in different ways. A [`Placed`] array is storage plus shape,
//! strides and offset; places that the layout does not reach hold a value that no test input has,
//! so that a kernel which reads or writes there is found out.

use plimsoll_core::DType;
use proptest::prelude::*;

use crate::oracle::{Array, Number, indices, round_to};

/// A way to lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arrangement {
    /// Row-major from offset 0.
    Contiguous,
    /// The last two dimensions exchanged in memory.
    Transposed,
    /// All dimensions in reverse order in memory (three or more).
    Reversed,
    /// Every second element of the last dimension, every third row of the first.
    Stepped,
    /// One dimension repeated with stride 0.
    Expanded,
    /// Row-major, but not from the storage's start.
    Offset,
}

impl Arrangement {
    /// Every arrangement.
    pub const ALL: [Arrangement; 6] = [
        Arrangement::Contiguous,
        Arrangement::Transposed,
        Arrangement::Reversed,
        Arrangement::Stepped,
        Arrangement::Expanded,
        Arrangement::Offset,
    ];

    /// Whether it differs from a simpler arrangement on this shape.
    pub fn applies_to(self, shape: &[usize]) -> bool {
        let empty = shape.contains(&0);
        let longer = shape.iter().filter(|&&size| size > 1).count();
        match self {
            Arrangement::Contiguous | Arrangement::Offset => true,
            Arrangement::Transposed => !empty && shape.len() >= 2,
            Arrangement::Reversed => !empty && shape.len() >= 3,
            Arrangement::Stepped => !empty && !shape.is_empty(),
            Arrangement::Expanded => !empty && longer > 0,
        }
    }

    /// A letter for names of instances.
    pub fn letter(self) -> char {
        match self {
            Arrangement::Contiguous => 'c',
            Arrangement::Transposed => 't',
            Arrangement::Reversed => 'r',
            Arrangement::Stepped => 's',
            Arrangement::Expanded => 'e',
            Arrangement::Offset => 'o',
        }
    }

    /// Strides and offset of `shape`, in elements.
    pub fn strides(self, shape: &[usize]) -> (Vec<usize>, usize) {
        let rank = shape.len();
        let mut order: Vec<usize> = (0..rank).collect();
        match self {
            Arrangement::Transposed if rank >= 2 => order.swap(rank - 2, rank - 1),
            Arrangement::Reversed => order.reverse(),
            _ => {}
        }
        let expanded = (self == Arrangement::Expanded)
            .then(|| shape.iter().position(|&size| size > 1))
            .flatten();
        let mut strides = vec![0; rank];
        let mut next = if self == Arrangement::Stepped { 2 } else { 1 };
        for &d in order.iter().rev() {
            if Some(d) == expanded {
                continue;
            }
            let spread = if self == Arrangement::Stepped && d == 0 && rank > 1 { 3 } else { 1 };
            strides[d] = next * spread;
            next = strides[d] * shape[d].max(1);
        }
        let offset = match self {
            Arrangement::Offset => 7,
            Arrangement::Stepped => 1,
            _ => 0,
        };
        (strides, offset)
    }
}

/// An array at a place in memory.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The dtype.
    pub dtype: DType,
    /// Every element of the storage, reached or not.
    pub storage: Vec<Number>,
    /// The sizes.
    pub shape: Vec<usize>,
    /// The strides in elements.
    pub strides: Vec<usize>,
    /// The first element's position.
    pub offset: usize,
}

/// What stands where no element lies; test inputs never hold it.
pub fn hole(dtype: DType) -> Number {
    match dtype {
        DType::Bool => Number::Int(1),
        _ => round_to(dtype, Number::Int(113)),
    }
}

impl Placed {
    /// Lays `array` out. In an expanded arrangement the first slice along the repeated dimension
    /// stands for all of them, so the content differs from `array`: read it back with
    /// [`Placed::array`].
    pub fn new(array: &Array, arrangement: Arrangement) -> Placed {
        let (dtype, shape) = (array.dtype(), array.shape().to_vec());
        let (strides, offset) = arrangement.strides(&shape);
        let mut placed = Placed { dtype, storage: vec![], shape, strides, offset };
        let reach = indices(&placed.shape).map(|i| placed.position(&i) + 1).max();
        // Two more than needed, so that the layout never ends with its storage unless it is
        // contiguous.
        let spare = if arrangement == Arrangement::Contiguous { 0 } else { 2 };
        placed.storage = vec![hole(dtype); reach.unwrap_or(placed.offset) + spare];
        let mut written = vec![false; placed.storage.len()];
        for index in indices(array.shape()) {
            let position = placed.position(&index);
            if !written[position] {
                written[position] = true;
                placed.storage[position] = array.at(&index);
            }
        }
        placed
    }

    /// Where the element at `index` lies in the storage.
    pub fn position(&self, index: &[usize]) -> usize {
        self.offset + index.iter().zip(&self.strides).map(|(i, s)| i * s).sum::<usize>()
    }

    /// The logical content.
    pub fn array(&self) -> Array {
        Array::build(self.dtype, &self.shape, |i| self.storage[self.position(i)])
    }

    /// The positions of the storage that no element lies at.
    pub fn holes(&self) -> Vec<usize> {
        let mut reached = vec![false; self.storage.len()];
        for index in indices(&self.shape) {
            reached[self.position(&index)] = true;
        }
        (0..reached.len()).filter(|&p| !reached[p]).collect()
    }

    /// The storage as the bytes of its dtype, little-endian.
    pub fn bytes(&self) -> Vec<u8> {
        self.storage.iter().flat_map(|&number| to_bytes(self.dtype, number)).collect()
    }
}

/// One value as the bytes of `dtype`, little-endian.
pub fn to_bytes(dtype: DType, number: Number) -> Vec<u8> {
    match dtype {
        DType::Bool => vec![u8::from(number.is_true())],
        DType::U8 => vec![number.to_i64() as u8],
        DType::I8 => (number.to_i64() as i8).to_le_bytes().to_vec(),
        DType::I16 => (number.to_i64() as i16).to_le_bytes().to_vec(),
        DType::I32 => (number.to_i64() as i32).to_le_bytes().to_vec(),
        DType::I64 => number.to_i64().to_le_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(number.to_f64()).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f64(number.to_f64()).to_le_bytes().to_vec(),
        DType::F32 => (number.to_f64() as f32).to_le_bytes().to_vec(),
        DType::F64 => number.to_f64().to_le_bytes().to_vec(),
    }
}

/// The value that `bytes` hold in `dtype`; as many bytes as the dtype has.
pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Number {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    match dtype {
        DType::Bool | DType::U8 => Number::Int(bits as i64),
        DType::I8 => Number::Int(i64::from(bits as u8 as i8)),
        DType::I16 => Number::Int(i64::from(bits as u16 as i16)),
        DType::I32 => Number::Int(i64::from(bits as u32 as i32)),
        DType::I64 => Number::Int(bits as i64),
        DType::F16 => Number::Float(half::f16::from_bits(bits as u16).to_f64()),
        DType::BF16 => Number::Float(half::bf16::from_bits(bits as u16).to_f64()),
        DType::F32 => Number::Float(f64::from(f32::from_bits(bits as u32))),
        DType::F64 => Number::Float(f64::from_bits(bits)),
    }
}

/// Shapes of up to four dimensions and `largest` elements a dimension, zero included.
pub fn shapes(largest: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..=largest, 0..=4)
}

/// Any arrangement.
pub fn arrangements() -> impl Strategy<Value = Arrangement> {
    prop::sample::select(Arrangement::ALL.to_vec())
}

/// Any dtype.
pub fn dtypes() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest! {
        #[test]
        fn content_survives_being_laid_out(
            shape in shapes(4), arrangement in arrangements(), dtype in dtypes()
        ) {
            let mut next = 0;
            let array = Array::build(dtype, &shape, |_| { next += 1; next % 100 });
            let placed = Placed::new(&array, arrangement);
            let back = placed.array();
            prop_assert_eq!(back.shape(), array.shape());
            if arrangement != Arrangement::Expanded {
                prop_assert_eq!(&back, &array);
            }
            for hole_at in placed.holes() {
                prop_assert_eq!(placed.storage[hole_at], hole(dtype));
            }
        }

        #[test]
        fn bytes_and_values_are_inverse(bits in any::<u64>(), dtype in dtypes()) {
            let bits = if dtype == DType::Bool { bits & 1 } else { bits };
            let bytes = &bits.to_le_bytes()[..dtype.size_bytes()];
            let number = from_bytes(dtype, bytes);
            if !number.to_f64().is_nan() {
                prop_assert_eq!(to_bytes(dtype, number), bytes);
            }
        }
    }

    #[test]
    fn arrangements_differ_where_they_apply() {
        for shape in [vec![2, 3, 4], vec![3, 2], vec![5], vec![], vec![0, 2]] {
            let mut seen: Vec<(Vec<usize>, usize)> = Vec::new();
            for arrangement in Arrangement::ALL {
                if arrangement.applies_to(&shape) {
                    let place = arrangement.strides(&shape);
                    assert!(!seen.contains(&place), "{arrangement:?} on {shape:?}");
                    seen.push(place);
                }
            }
        }
    }
}
