//! Tensors cut along a dimension into views: by sizes, into equal parts, at places, one by one.

use plimsoll_core::{Error, Result, normalize_dim};
use plimsoll_memory::{Site, SystemMemory, enter_operation, with_site};

use crate::Tensor;

/// How [`Tensor::tensor_split`] and those like it cut: into so many parts, or before these indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sections {
    /// Into parts that differ by one element at most.
    Count(i64),
    /// Before each of these; negative ones count from the end.
    Indices(Vec<i64>),
}

impl From<i64> for Sections {
    fn from(count: i64) -> Sections {
        Sections::Count(count)
    }
}

impl From<&[i64]> for Sections {
    fn from(indices: &[i64]) -> Sections {
        Sections::Indices(indices.to_vec())
    }
}

impl<const N: usize> From<&[i64; N]> for Sections {
    fn from(indices: &[i64; N]) -> Sections {
        Sections::Indices(indices.to_vec())
    }
}

impl Tensor {
    /// Parts of `split_size` along `dim`; the last may be smaller.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let parts = Tensor::arange(0, 5, 1, DType::I64)?.split(2, 0)?;
    /// assert_eq!((parts.len(), parts[2].to_vec::<i64>()?), (3, vec![4]));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn split(&self, split_size: i64, dim: i64) -> Result<Vec<Tensor>> {
        Ok(together(self.unsafe_split(split_size, dim)?))
    }

    /// [`Tensor::split`] whose parts may be written in place where they are recorded.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[4], DType::F32)?.unsafe_split(3, 0)?.len(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unsafe_split(&self, split_size: i64, dim: i64) -> Result<Vec<Tensor>> {
        let _named = enter_operation("split");
        let size = cut_size("split", self, dim)?;
        if split_size < 0 || split_size == 0 && size != 0 {
            return Err(Error::shape(
                "split",
                format!("parts of {split_size} do not make up dimension {dim} of size {size}"),
            ));
        }
        let count = if split_size == 0 { 1 } else { (size + split_size - 1) / split_size };
        let part = |at: i64| split_size.min(size - at * split_size);
        parts(self, dim, (0..count.max(1)).map(part), Site::caller())
    }

    /// Parts of these sizes along `dim`, which add up to its size.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let parts = Tensor::arange(0, 5, 1, DType::I64)?.split_with_sizes(&[2, 3], 0)?;
    /// assert_eq!(parts[1].to_vec::<i64>()?, [2, 3, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn split_with_sizes(&self, sizes: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        Ok(together(self.unsafe_split_with_sizes(sizes, dim)?))
    }

    /// [`Tensor::split_with_sizes`] whose parts may be written in place where they are recorded.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::zeros(&[4], DType::F32)?;
    /// assert_eq!(x.unsafe_split_with_sizes(&[1, 3], 0)?.len(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unsafe_split_with_sizes(&self, sizes: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        let _named = enter_operation("split_with_sizes");
        let size = cut_size("split_with_sizes", self, dim)?;
        let sum = sizes.iter().try_fold(0i64, |sum, &part| sum.checked_add(part));
        if sum != Some(size) || sizes.iter().any(|&part| part < 0) {
            return Err(Error::shape(
                "split_with_sizes",
                format!("{sizes:?} do not add up to dimension {dim} of size {size}"),
            ));
        }
        parts(self, dim, sizes.iter().copied(), Site::caller())
    }

    /// At most `chunks` parts of one size along `dim`; the last may be smaller.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let parts = Tensor::arange(0, 5, 1, DType::I64)?.chunk(3, 0)?;
    /// assert_eq!((parts.len(), parts[0].numel()), (3, 2));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn chunk(&self, chunks: i64, dim: i64) -> Result<Vec<Tensor>> {
        Ok(together(self.unsafe_chunk(chunks, dim)?))
    }

    /// [`Tensor::chunk`] whose parts may be written in place where they are recorded.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[4], DType::F32)?.unsafe_chunk(2, 0)?.len(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unsafe_chunk(&self, chunks: i64, dim: i64) -> Result<Vec<Tensor>> {
        let _named = enter_operation("chunk");
        let size = cut_size("chunk", self, dim)?;
        if chunks <= 0 {
            let why = format!("chunk expects `chunks` to be greater than 0, got: {chunks}");
            return Err(Error::shape("chunk", why));
        }
        if size == 0 {
            let none = (0..chunks).map(|_| 0);
            return parts(self, dim, none, Site::caller());
        }
        self.unsafe_split((size - 1) / chunks + 1, dim)
    }

    /// Exactly so many parts along `dim`, the first ones one longer where it does not come out
    /// even; or cut before given indices.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let x = Tensor::arange(0, 5, 1, DType::I64)?;
    /// assert_eq!(x.tensor_split(2, 0)?[0].to_vec::<i64>()?, [0, 1, 2]);
    /// assert_eq!(x.tensor_split(&[1, 4], 0)?[1].to_vec::<i64>()?, [1, 2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn tensor_split(&self, sections: impl Into<Sections>, dim: i64) -> Result<Vec<Tensor>> {
        tensor_split("tensor_split", self, sections.into(), dim, Site::caller())
    }

    /// [`Tensor::tensor_split`] by a tensor on the host: a number of parts, or indices.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let at = Tensor::full(&[1], 2, DType::I64)?;
    /// let parts = Tensor::arange(0, 5, 1, DType::I64)?.tensor_split_by(&at, 0)?;
    /// assert_eq!(parts[0].to_vec::<i64>()?, [0, 1]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn tensor_split_by(&self, sections: &Tensor, dim: i64) -> Result<Vec<Tensor>> {
        const OP: &str = "tensor_split";
        let refuse = |why: String| Err(Error::shape(OP, why));
        if !sections.device().is_cpu() || sections.dtype() != plimsoll_core::DType::I64 {
            return refuse(format!(
                "the indices must be int64 on the CPU, and are {} on {}",
                sections.dtype(),
                sections.device()
            ));
        }
        let list = || sections.to_vec::<i64>();
        let sections = match sections.rank() {
            0 => Sections::Count(list()?[0]),
            1 => Sections::Indices(list()?),
            rank => return refuse(format!("the indices have {rank} dimensions; give 0 or 1")),
        };
        tensor_split(OP, self, sections, dim, Site::caller())
    }

    /// Parts side by side: along the second dimension, or the only one.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[2, 4], DType::F32)?.hsplit(2)?[1].shape(), [2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn hsplit(&self, sections: impl Into<Sections>) -> Result<Vec<Tensor>> {
        let dim = if self.rank() == 1 { 0 } else { 1 };
        even_split("hsplit", self, sections.into(), dim, 1, Site::caller())
    }

    /// Parts below each other: along the first dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[4, 2], DType::F32)?.vsplit(2)?[1].shape(), [2, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn vsplit(&self, sections: impl Into<Sections>) -> Result<Vec<Tensor>> {
        even_split("vsplit", self, sections.into(), 0, 2, Site::caller())
    }

    /// Parts behind each other: along the third dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// assert_eq!(Tensor::zeros(&[1, 1, 4], DType::F32)?.dsplit(&[1])?[1].shape(), [1, 1, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn dsplit(&self, sections: impl Into<Sections>) -> Result<Vec<Tensor>> {
        even_split("dsplit", self, sections.into(), 2, 3, Site::caller())
    }

    /// Every index of a dimension by itself, without that dimension.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let rows = Tensor::arange(0, 4, 1, DType::I64)?.view(&[2, 2])?.unbind(0)?;
    /// assert_eq!(rows[1].to_vec::<i64>()?, [2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn unbind(&self, dim: i64) -> Result<Vec<Tensor>> {
        let _named = enter_operation("unbind");
        if self.rank() == 0 {
            normalize_dim("unbind", dim, 0)?;
            let why = format!("Dimension specified as {dim} but tensor has no dimensions");
            return Err(Error::index("unbind", why));
        }
        let size = cut_size("unbind", self, dim)?;
        let one = |at| Ok(self.select(dim, at)?.as_one_of_several());
        with_site(Site::caller(), || (0..size).map(one).collect())
    }
}

/// Parts as what one function returned: PyTorch refuses writes to them where they are recorded.
fn together(parts: Vec<Tensor>) -> Vec<Tensor> {
    parts.iter().map(Tensor::as_one_of_several).collect()
}

/// The size of a dimension that is cut; a tensor without dimensions has none.
fn cut_size(op: &'static str, x: &Tensor, dim: i64) -> Result<i64> {
    let dim = normalize_dim(op, dim, x.rank())?;
    match x.shape().get(dim) {
        Some(&size) => Ok(size as i64),
        None => {
            let why = format!(
                "{op} expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
            );
            Err(Error::shape(op, why))
        }
    }
}

fn parts(
    x: &Tensor,
    dim: i64,
    sizes: impl Iterator<Item = i64>,
    site: Site,
) -> Result<Vec<Tensor>> {
    let mut start = 0;
    let one = |size: i64| {
        let part = x.narrow(dim, start, size);
        start += size;
        part
    };
    with_site(site, || sizes.map(one).collect())
}

fn tensor_split(
    op: &'static str,
    x: &Tensor,
    sections: Sections,
    dim: i64,
    site: Site,
) -> Result<Vec<Tensor>> {
    let _named = enter_operation(op);
    let size = cut_size(op, x, dim)?;
    match sections {
        Sections::Count(count) if count <= 0 => {
            Err(Error::shape(op, format!("number of sections must be larger than 0, got {count}")))
        }
        Sections::Count(count) => {
            check_room(op, count, size)?;
            let length = |at: i64| size / count + i64::from(at < size % count);
            parts(x, dim, (0..count).map(length), site)
        }
        Sections::Indices(indices) => with_site(site, || {
            let starts = std::iter::once(0).chain(indices.iter().copied());
            let ends = indices.iter().copied().chain([i64::MAX]);
            starts.zip(ends).map(|(start, end)| x.slice(dim, start, end, 1)).collect()
        }),
    }
}

/// Refuses to make more tensors than the machine has memory for. Most of them would be empty, so
/// nothing else stops it.
fn check_room(op: &'static str, count: i64, size: i64) -> Result<()> {
    /// Bytes that a view takes at least: its layout, its hold on the memory, its handle.
    const LEAST: usize = 128;
    if count <= size.max(1 << 16) {
        return Ok(());
    }
    let needed = (count as usize).saturating_mul(LEAST);
    match SystemMemory::read().total_bytes() {
        Some(total) if needed > total => Err(Error::shape(
            op,
            format!(
                "{count} sections of {size} elements are at least {needed} bytes of tensors alone, and the machine \
                 has {total}; ask for fewer"
            ),
        )),
        _ => Ok(()),
    }
}

/// As [`tensor_split`], where parts must be of one size.
fn even_split(
    op: &'static str,
    x: &Tensor,
    sections: Sections,
    dim: i64,
    least: usize,
    site: Site,
) -> Result<Vec<Tensor>> {
    if x.rank() < least {
        return Err(Error::shape(
            op,
            format!("it cuts tensors of {least} dimensions or more, and this has {}", x.rank()),
        ));
    }
    if let Sections::Count(count) = sections
        && (count <= 0 || cut_size(op, x, dim)? % count != 0)
    {
        return Err(Error::shape(
            op,
            format!("dimension {dim} of shape {:?} has no {count} equal parts", x.shape()),
        ));
    }
    tensor_split(op, x, sections, dim, site)
}
