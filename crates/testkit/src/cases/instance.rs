//! A case in one dtype (or pair) with each input in one arrangement: what tests run.

use plimsoll_core::DType;

use super::{Arrays, Case, Wanted};
use crate::layouts::{Arrangement, Placed};

/// A case made concrete.
#[derive(Clone, Debug)]
pub struct Instance<'a> {
    /// The row.
    pub case: &'a Case,
    /// The dtype of inputs that follow the instance.
    pub dtype: DType,
    /// The dtype of second operands, where a case runs over pairs.
    pub other: DType,
    /// How each input lies in memory.
    pub arrangements: Vec<Arrangement>,
    /// Whether the call takes this dtype; if not, it must be refused.
    pub taken: bool,
}

impl<'a> Instance<'a> {
    pub(super) fn of(case: &'a Case) -> Vec<Instance<'a>> {
        let mut instances = Vec::new();
        for (dtype, other, taken) in dtypes(case) {
            for arrangements in arrangements(case) {
                let plain = arrangements.iter().all(|&a| a == Arrangement::Contiguous);
                if taken || (plain && !case.silent_otherwise) {
                    instances.push(Instance { case, dtype, other, arrangements, taken });
                }
            }
        }
        instances
    }

    /// A name that no other instance has: the call, its operands' dtypes, shapes and arrangements.
    pub fn name(&self) -> String {
        let operands: Vec<String> = (0..self.case.inputs.len())
            .map(|i| {
                let (dtype, shape) = (self.input_dtype(i), &self.case.inputs[i].shape);
                let kind = self.case.inputs[i].values;
                format!("{dtype}{shape:?}{}{kind:?}", self.arrangements[i].letter())
            })
            .collect();
        let (dtype, other) = (self.dtype, self.other);
        let dtypes = if dtype == other { dtype.to_string() } else { format!("{dtype}, {other}") };
        format!("{} {} [{dtypes}] {}", self.case.op, self.case.torch, operands.join(" "))
    }

    /// A number that stands for the name in the golden files (FNV-1a).
    pub fn key(&self) -> u64 {
        fingerprint(self.name().as_bytes())
    }

    fn input_dtype(&self, input: usize) -> DType {
        match self.case.inputs[input].wanted {
            Wanted::Same => self.dtype,
            Wanted::Other => self.other,
            Wanted::Fixed(dtype) => dtype,
        }
    }

    /// The inputs in memory.
    pub fn inputs(&self) -> Vec<Placed> {
        let key = self.key();
        (0..self.case.inputs.len())
            .map(|i| {
                let seed = key ^ fingerprint(&[i as u8]);
                let array = self.case.inputs[i].array(self.input_dtype(i), seed);
                Placed::new(&array, self.arrangements[i])
            })
            .collect()
    }

    /// The inputs as the oracle sees them.
    pub fn arrays(&self) -> Arrays {
        let arrays = self.inputs().iter().map(Placed::array).collect();
        Arrays { arrays, dtype: self.dtype, other: self.other }
    }

    /// Whether the call writes to a tensor whose elements share memory, which is refused
    /// everywhere.
    pub fn writes_to_expanded(&self) -> bool {
        self.case.writes.iter().any(|&target| self.arrangements[target] == Arrangement::Expanded)
    }
}

/// FNV-1a, 64 bits.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn dtypes(case: &Case) -> Vec<(DType, DType, bool)> {
    let Some(takes) = case.pairs else {
        // A call without inputs that follow the dtype and without a use of it runs once for each
        // dtype all the same; that is cheap and keeps the rule simple.
        return DType::ALL.iter().map(|&d| (d, d, case.dtypes.contains(&d))).collect();
    };
    DType::ALL.iter().flat_map(|&a| DType::ALL.iter().map(move |&b| (a, b, takes(a, b)))).collect()
}

/// All inputs in the same arrangement, for each one that applies to some input; then a mixture.
fn arrangements(case: &Case) -> Vec<Vec<Arrangement>> {
    let fit = |input: usize, arrangement: Arrangement| {
        if arrangement.applies_to(&case.inputs[input].shape) {
            arrangement
        } else {
            Arrangement::Contiguous
        }
    };
    let count = case.inputs.len();
    let mut lists: Vec<Vec<Arrangement>> =
        case.arrangements.iter().map(|&a| (0..count).map(|i| fit(i, a)).collect()).collect();
    if count > 1 && case.arrangements.len() > 2 {
        for shift in [1, 4] {
            let turn = |i: usize| case.arrangements[(i * 2 + shift) % case.arrangements.len()];
            lists.push((0..count).map(|i| fit(i, turn(i))).collect());
        }
    }
    lists.sort();
    lists.dedup();
    lists
}
