//! A batch: tensors, and whatever else goes with them, in tuples, lists and maps. This is how the
//! loader counts, pins and marks the tensors of a batch, and how a prefetcher moves them, without
//! knowing the program's types. How samples become a batch is `collate.rs`.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use plimsoll_tensor::{Result, Tensor};

/// What a loader hands out: something with tensors in it.
///
/// A type of the program's own says which of its fields hold tensors:
///
/// ```
/// use plimsoll_data::Batch;
/// use plimsoll_tensor::{DType, Result, Tensor};
///
/// struct Sentences {
///     tokens: Tensor,
///     texts: Vec<String>,
/// }
///
/// impl Batch for Sentences {
///     fn for_each_tensor(&self, visit: &mut dyn FnMut(&Tensor)) {
///         self.tokens.for_each_tensor(visit);
///     }
///
///     fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Sentences> {
///         Ok(Sentences { tokens: map(self.tokens)?, ..self })
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let batch = Sentences { tokens: Tensor::zeros(&[2, 8], DType::I64)?, texts: vec![] };
/// assert_eq!(plimsoll_data::batch_bytes(&batch), 512); // 128 bytes, as the ledger counts them
/// # assert!(batch.texts.is_empty());
/// # Ok(())
/// # }
/// ```
pub trait Batch: Sized + Send + 'static {
    /// Shows every tensor, in a fixed order.
    fn for_each_tensor(&self, visit: &mut dyn FnMut(&Tensor));

    /// The same with every tensor replaced.
    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Self>;
}

/// The step in which arenas hand out memory.
const BLOCK_UNIT_BYTES: usize = 512;

/// What a tensor of `bytes` takes in the ledger. (With `roundup_power2_divisions` it may be more.)
pub(crate) fn ledger_bytes(bytes: usize) -> usize {
    bytes.next_multiple_of(BLOCK_UNIT_BYTES)
}

/// The bytes of a batch's tensors as the ledger counts them. A view counts as if its elements were
/// all there is.
pub fn batch_bytes(batch: &impl Batch) -> usize {
    let mut bytes = 0;
    batch.for_each_tensor(&mut |tensor| bytes += ledger_bytes(tensor.nbytes()));
    bytes
}

impl Batch for Tensor {
    fn for_each_tensor(&self, visit: &mut dyn FnMut(&Tensor)) {
        visit(self);
    }

    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Tensor> {
        map(self)
    }
}

impl<T: Batch> Batch for Vec<T> {
    fn for_each_tensor(&self, visit: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|part| part.for_each_tensor(visit));
    }

    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Vec<T>> {
        self.into_iter().map(|part| part.map_tensors(map)).collect()
    }
}

impl<T: Batch> Batch for Option<T> {
    fn for_each_tensor(&self, visit: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|part| part.for_each_tensor(visit));
    }

    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Option<T>> {
        self.map(|part| part.map_tensors(map)).transpose()
    }
}

impl<K: Ord + Send + 'static, T: Batch> Batch for BTreeMap<K, T> {
    fn for_each_tensor(&self, visit: &mut dyn FnMut(&Tensor)) {
        self.values().for_each(|part| part.for_each_tensor(visit));
    }

    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<BTreeMap<K, T>> {
        self.into_iter().map(|(key, part)| Ok((key, part.map_tensors(map)?))).collect()
    }
}

impl<K, T, S> Batch for HashMap<K, T, S>
where
    K: Eq + Hash + Send + 'static,
    T: Batch,
    S: BuildHasher + Default + Send + 'static,
{
    fn for_each_tensor(&self, visit: &mut dyn FnMut(&Tensor)) {
        self.values().for_each(|part| part.for_each_tensor(visit));
    }

    fn map_tensors(
        self,
        map: &mut dyn FnMut(Tensor) -> Result<Tensor>,
    ) -> Result<HashMap<K, T, S>> {
        self.into_iter().map(|(key, part)| Ok((key, part.map_tensors(map)?))).collect()
    }
}

impl<A: Batch> Batch for (A,) {
    fn for_each_tensor(&self, visit: &mut dyn FnMut(&Tensor)) {
        self.0.for_each_tensor(visit);
    }

    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<(A,)> {
        Ok((self.0.map_tensors(map)?,))
    }
}

impl<A: Batch, B: Batch> Batch for (A, B) {
    fn for_each_tensor(&self, visit: &mut dyn FnMut(&Tensor)) {
        self.0.for_each_tensor(visit);
        self.1.for_each_tensor(visit);
    }

    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<(A, B)> {
        Ok((self.0.map_tensors(map)?, self.1.map_tensors(map)?))
    }
}

impl<A: Batch, B: Batch, C: Batch> Batch for (A, B, C) {
    fn for_each_tensor(&self, visit: &mut dyn FnMut(&Tensor)) {
        self.0.for_each_tensor(visit);
        self.1.for_each_tensor(visit);
        self.2.for_each_tensor(visit);
    }

    fn map_tensors(self, map: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<(A, B, C)> {
        Ok((self.0.map_tensors(map)?, self.1.map_tensors(map)?, self.2.map_tensors(map)?))
    }
}

/// Values without tensors, which a batch may carry along.
macro_rules! without_tensors {
    ($($type:ty),*) => {
        $(
            impl Batch for $type {
                fn for_each_tensor(&self, _: &mut dyn FnMut(&Tensor)) {}

                fn map_tensors(
                    self,
                    _: &mut dyn FnMut(Tensor) -> Result<Tensor>,
                ) -> Result<$type> {
                    Ok(self)
                }
            }
        )*
    };
}
without_tensors!((), String, bool, u8, i32, i64, u32, u64, usize, f32, f64);
