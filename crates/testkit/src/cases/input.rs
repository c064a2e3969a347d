//! What an input of a case holds: a shape, a dtype (the instance's, or its own) and a kind of
//! values. Values are a function of the instance's name, so the list never changes by itself and
//! rows do not disturb each other.

use plimsoll_core::DType;

use crate::oracle::{Array, Number, indices};

/// What sort of numbers an input holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values {
    /// Small numbers of both signs.
    Any,
    /// Numbers from 1/4 to 4; integers from 1 to 9.
    Positive,
    /// Small numbers of both signs, none near zero.
    Nonzero,
    /// No two alike and well apart, in random order.
    Distinct,
    /// NaN, infinities, both zeros, the smallest and the largest; for integers their ends.
    Special,
    /// As `Special`, without NaN and the infinities.
    Edges,
    /// Indices from 0 to below this.
    Below(usize),
    /// Indices from minus this to below this, no two naming the same place.
    Places(usize),
}

/// Which dtype an input has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wanted {
    /// The instance's.
    Same,
    /// The instance's second dtype, where a case runs over pairs.
    Other,
    /// Always this one.
    Fixed(DType),
}

/// An input of a case.
#[derive(Clone, Debug)]
pub struct Input {
    /// The sizes.
    pub shape: Vec<usize>,
    /// The numbers.
    pub values: Values,
    /// The dtype.
    pub wanted: Wanted,
}

/// Small numbers.
pub(crate) fn any(shape: &[usize]) -> Input {
    Input { shape: shape.to_vec(), values: Values::Any, wanted: Wanted::Same }
}

/// Positive numbers.
pub(crate) fn positive(shape: &[usize]) -> Input {
    Input { values: Values::Positive, ..any(shape) }
}

/// Numbers away from zero.
pub(crate) fn nonzero(shape: &[usize]) -> Input {
    Input { values: Values::Nonzero, ..any(shape) }
}

/// Numbers that all differ.
pub(crate) fn distinct(shape: &[usize]) -> Input {
    Input { values: Values::Distinct, ..any(shape) }
}

/// The numbers at the edges of a dtype.
pub(crate) fn special(shape: &[usize]) -> Input {
    Input { values: Values::Special, ..any(shape) }
}

/// The finite numbers at the edges of a dtype.
pub(crate) fn edges(shape: &[usize]) -> Input {
    Input { values: Values::Edges, ..any(shape) }
}

/// Indices below `size`.
pub(crate) fn below(size: usize, shape: &[usize]) -> Input {
    Input { values: Values::Below(size), wanted: Wanted::Fixed(DType::I64), ..any(shape) }
}

/// Indices into `size` places, some counted from the end, none twice.
pub(crate) fn places(size: usize, shape: &[usize]) -> Input {
    Input { values: Values::Places(size), wanted: Wanted::Fixed(DType::I64), ..any(shape) }
}

/// A bool mask.
pub(crate) fn mask(shape: &[usize]) -> Input {
    any(shape).of(DType::Bool)
}

impl Input {
    /// With a dtype of its own.
    pub(crate) fn of(self, dtype: DType) -> Input {
        Input { wanted: Wanted::Fixed(dtype), ..self }
    }

    /// With the instance's second dtype.
    pub(crate) fn other(self) -> Input {
        Input { wanted: Wanted::Other, ..self }
    }

    /// The values of this input in `dtype`, from `seed`.
    pub fn array(&self, dtype: DType, seed: u64) -> Array {
        let mut random = Random(seed);
        let count = indices(&self.shape).count();
        let order = random.order(count);
        let numbers = order.iter().enumerate().map(|(i, &rank)| match self.values {
            Values::Any => random.any(dtype),
            Values::Positive => random.positive(dtype),
            Values::Nonzero => random.nonzero(dtype),
            Values::Distinct => apart(dtype, rank, count),
            Values::Special => edge(dtype, i),
            Values::Edges => finite_edge(dtype, i),
            Values::Below(size) => Number::Int(random.below(size as u64) as i64),
            Values::Places(size) => {
                let place = (rank % size) as i64;
                Number::Int(if random.below(2) == 0 { place } else { place - size as i64 })
            }
        });
        let numbers = numbers.collect();
        Array::new(dtype, &self.shape, numbers)
    }
}

/// The `rank`-th of `count` numbers that are well apart. Halves hold 1/4 steps up to 64 exactly.
fn apart(dtype: DType, rank: usize, count: usize) -> Number {
    let centred = rank as i64 - count as i64 / 2;
    match dtype {
        DType::Bool | DType::U8 => Number::Int(rank as i64),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => Number::Int(centred),
        _ => Number::Float(centred as f64 * 0.25 + 0.125),
    }
}

/// The `i`-th number at the edges of `dtype`, over and over.
fn edge(dtype: DType, i: usize) -> Number {
    let (tiny, largest) = match dtype {
        DType::F16 => (2f64.powi(-24), 65504.0),
        DType::BF16 => (2f64.powi(-133), 3.3895313892515355e38),
        DType::F32 => (f64::from(f32::from_bits(1)), f64::from(f32::MAX)),
        _ => (f64::from_bits(1), f64::MAX),
    };
    let (low, high) = match dtype {
        DType::Bool => (0, 1),
        DType::U8 => (0, 255),
        DType::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
        DType::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let floats = [
        1.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        -1.0,
        tiny,
        -tiny,
        largest,
        -largest,
        0.5,
        -20.0,
        20.0,
        88.0,
        -88.0,
        3.0,
    ];
    let ints = [1, 0, high, low, 2, high - 1, low + 1];
    if dtype.is_float() {
        Number::Float(floats[i % floats.len()])
    } else {
        Number::Int(ints[i % ints.len()])
    }
}

fn finite_edge(dtype: DType, i: usize) -> Number {
    match edge(dtype, i) {
        Number::Float(x) if !x.is_finite() => Number::Float(2.0),
        number => number,
    }
}

/// SplitMix64 (Steele, Lea, Flood): a few lines that give the same numbers for ever.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// 0 to `count` in random order.
    fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for i in (1..count).rev() {
            order.swap(i, self.below(i as u64 + 1) as usize);
        }
        order
    }

    fn any(&mut self, dtype: DType) -> Number {
        match dtype {
            DType::Bool => Number::Int(self.below(2) as i64),
            DType::U8 => Number::Int(self.below(13) as i64),
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                Number::Int(self.below(13) as i64 - 6)
            }
            _ => Number::Float(self.uniform(-3.0, 3.0)),
        }
    }

    fn positive(&mut self, dtype: DType) -> Number {
        match dtype {
            DType::Bool => Number::Int(1),
            DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                Number::Int(1 + self.below(9) as i64)
            }
            _ => Number::Float(self.uniform(0.25, 4.0)),
        }
    }

    fn nonzero(&mut self, dtype: DType) -> Number {
        let negative = self.below(2) == 1;
        match dtype {
            DType::Bool => Number::Int(1),
            DType::U8 => Number::Int(1 + self.below(9) as i64),
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                let size = 1 + self.below(6) as i64;
                Number::Int(if negative { -size } else { size })
            }
            _ => {
                let size = self.uniform(0.25, 3.0);
                Number::Float(if negative { -size } else { size })
            }
        }
    }
}
