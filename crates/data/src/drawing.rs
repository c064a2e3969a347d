//! Random orders, by the runtime's own operations: `randperm`, `randint` and `multinomial` with a
//! generator that is a function of a seed and an epoch. The numbers lie in a tensor, so a
//! permutation of a large dataset is in the book; they are read a piece at a time.

use plimsoll_tensor::{
    DType, Device, Generator, Result, RngState, Tensor, no_grad, with_generator,
};

/// Numbers drawn in one epoch: its own part of the seed's stream.
#[derive(Debug)]
pub(crate) struct Drawing(Generator);

/// Counters between the parts of two epochs; each gives four draws, so no epoch gets to the next
/// one's part.
const COUNTERS_OF_EPOCH: u64 = 1 << 40;

impl Drawing {
    pub(crate) fn new(seed: u64, epoch: u64) -> Drawing {
        let generator = Generator::new(Device::cpu(), seed);
        generator.set_state(RngState { seed, offset: epoch.wrapping_mul(COUNTERS_OF_EPOCH) });
        Drawing(generator)
    }

    fn draw(&self, make: impl FnOnce() -> Result<Tensor>) -> Result<Numbers> {
        Ok(Numbers::of(with_generator(&self.0, || no_grad(make))?))
    }

    /// 0 to `len` - 1 in random order.
    #[track_caller]
    pub(crate) fn permutation(&self, len: usize) -> Result<Numbers> {
        let site = plimsoll_memory::Site::caller();
        plimsoll_memory::with_site(site, || {
            self.draw(|| Tensor::randperm(len as i64, Device::cpu()))
        })
    }

    /// `count` numbers below `len`, each as likely as the others.
    pub(crate) fn uniform(&self, len: usize, count: usize) -> Result<Numbers> {
        self.draw(|| Tensor::randint(0, len as i64, &[count as i64], DType::I64))
    }

    /// `count` places of `weights`, each as likely as its weight says.
    pub(crate) fn weighted(
        &self,
        weights: &Tensor,
        count: usize,
        replacement: bool,
    ) -> Result<Numbers> {
        self.draw(|| weights.multinomial(count as i64, replacement))
    }
}

/// Numbers of a tensor of int64, read a piece at a time. With the last piece the tensor goes.
#[derive(Debug)]
pub(crate) struct Numbers {
    tensor: Option<Tensor>,
    at: usize,
    piece: std::vec::IntoIter<i64>,
}

/// Numbers that are read at once: 32 KiB.
pub(crate) const PIECE: usize = 4096;

impl Numbers {
    fn of(tensor: Tensor) -> Numbers {
        Numbers { tensor: Some(tensor), at: 0, piece: Vec::new().into_iter() }
    }
}

impl Iterator for Numbers {
    type Item = Result<usize>;

    fn next(&mut self) -> Option<Result<usize>> {
        if let Some(number) = self.piece.next() {
            return Some(Ok(number as usize));
        }
        let tensor = self.tensor.take()?;
        let count = PIECE.min(tensor.numel() - self.at);
        let piece = tensor.narrow(0, self.at as i64, count as i64);
        match piece.and_then(|piece| piece.to_vec::<i64>()) {
            Ok(piece) => {
                self.at += count;
                self.piece = piece.into_iter();
                self.tensor = Some(tensor).filter(|tensor| self.at < tensor.numel());
                self.piece.next().map(|number| Ok(number as usize))
            }
            // Told once; the rest cannot be read.
            Err(error) => Some(Err(error)),
        }
    }
}
