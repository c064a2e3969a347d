//! View rules: each view operation as a function from a layout to a layout. The only place where
//! strides are computed; `tensor` adds sharing, autograd and errors' origins on top.

use smallvec::smallvec;

use crate::layout::contiguous_strides;
use crate::{Dims, Error, Layout, Result, checked_numel, normalize_dim};

impl Layout {
    /// The layout of the same bytes as elements of `to` bytes instead of `from`: of the same number
    /// if the sizes are equal, else with the last dimension longer or shorter, which then must be
    /// dense.
    ///
    /// ```
    /// use plimsoll_core::Layout;
    /// let wide = Layout::contiguous(&[2, 3])?.with_element_size(8, 4)?;
    /// assert_eq!((wide.shape(), wide.strides()), (&[2, 6][..], &[6, 1][..]));
    /// # Ok::<(), plimsoll_core::Error>(())
    /// ```
    pub fn with_element_size(&self, from: usize, to: usize) -> Result<Layout> {
        if from == to {
            return Ok(self.clone());
        }
        let refuse = |why: String| Err(Error::shape("view", why));
        let Some(last) = self.rank().checked_sub(1) else {
            return refuse(format!(
                "a tensor without dimensions cannot be seen in elements of {to} bytes instead of {from}"
            ));
        };
        if self.strides()[last] != 1 && self.shape()[last] != 1 {
            return refuse(format!(
                "the last dimension must be dense to be seen in elements of {to} bytes instead of {from}, and has \
                 stride {}",
                self.strides()[last]
            ));
        }
        let (mut shape, mut strides) = (Dims::from(self.shape()), Dims::from(self.strides()));
        if from > to {
            let ratio = from / to;
            shape[last] *= ratio;
            strides[..last].iter_mut().for_each(|stride| *stride *= ratio);
            strides[last] = 1;
            return Layout::strided(&shape, &strides, self.offset() * ratio);
        }
        let ratio = to / from;
        let whole = |value: usize| value.is_multiple_of(ratio);
        let odd = strides[..last].iter().any(|&stride| !whole(stride));
        if odd || !whole(shape[last]) || !whole(self.offset()) {
            return refuse(format!(
                "shape {:?} with strides {:?} from element {} on cannot be seen in elements of {to} bytes instead of \
                 {from}: the last size, the first element and the other strides must be multiples of {ratio}",
                self.shape(),
                self.strides(),
                self.offset()
            ));
        }
        shape[last] /= ratio;
        strides[..last].iter_mut().for_each(|stride| *stride /= ratio);
        strides[last] = 1;
        Layout::strided(&shape, &strides, self.offset() / ratio)
    }

    /// `view`: new sizes over the same elements without moving them. One size may be -1.
    ///
    /// Possible iff each new dimension lies within old dimensions that are contiguous with each
    /// other; otherwise the error says to use `reshape` or `contiguous`.
    ///
    /// ```
    /// use plimsoll_core::Layout;
    /// let x = Layout::contiguous(&[2, 6]).unwrap();
    /// assert_eq!(x.view(&[3, -1]).unwrap().shape(), [3, 4]);
    /// assert!(x.transpose(0, 1).unwrap().view(&[12]).unwrap_err().is_shape());
    /// ```
    pub fn view(&self, sizes: &[i64]) -> Result<Layout> {
        let shape = self.infer_sizes("view", sizes)?;
        self.view_strides(&shape).ok_or_else(|| {
            Error::shape(
                "view",
                format!(
                    "a tensor of shape {:?} with strides {:?} cannot be viewed as {sizes:?}: the \
                     dimensions to merge are not contiguous with each other; use `reshape`, which copies \
                     when it must, or `contiguous` first",
                    self.shape(),
                    self.strides()
                ),
            )
        })
    }

    /// The layout that `reshape` may share, or `None` if it has to copy.
    pub fn reshape(&self, sizes: &[i64]) -> Result<(Dims, Option<Layout>)> {
        let shape = self.infer_sizes("reshape", sizes)?;
        let shared = self.view_strides(&shape);
        Ok((shape, shared))
    }

    fn infer_sizes(&self, op: &str, sizes: &[i64]) -> Result<Dims> {
        let misfit = |why: &str| {
            Error::shape(
                op,
                format!(
                    "shape {:?} ({} elements) cannot become {sizes:?}: {why}",
                    self.shape(),
                    self.numel()
                ),
            )
        };
        let mut shape = Dims::new();
        let mut rest = None;
        for (axis, &size) in sizes.iter().enumerate() {
            match size {
                -1 if rest.is_some() => return Err(misfit("only one size can be -1")),
                -1 => {
                    rest = Some(axis);
                    shape.push(1);
                }
                size if size < 0 => return Err(misfit("a size is negative")),
                size => shape.push(size as usize),
            }
        }
        let known = checked_numel(&shape).map_err(|e| e.in_operation(op))?;
        if let Some(axis) = rest {
            if known == 0 {
                return Err(misfit(
                    "another size is 0, because the unspecified dimension size -1 can be any value and is ambiguous",
                ));
            }
            if !self.numel().is_multiple_of(known) {
                return Err(misfit("the sizes given do not divide the number of elements"));
            }
            shape[axis] = self.numel() / known;
        } else if known != self.numel() {
            return Err(misfit("the number of elements differs"));
        }
        Ok(shape)
    }

    /// Strides for `shape` over the same elements, if they exist. Old dimensions are taken from the
    /// last in chunks that are contiguous with each other; each chunk must be used up by whole new
    /// dimensions.
    fn view_strides(&self, shape: &[usize]) -> Option<Layout> {
        let offset = self.offset();
        if self.numel() == 0 {
            let strides = if shape == self.shape() {
                self.strides().into()
            } else {
                contiguous_strides(shape)
            };
            return Some(Layout::inside(shape.into(), strides, offset));
        }
        let mut strides: Dims = smallvec![0; shape.len()];
        let mut new = shape.len();
        let mut old = self.rank();
        while old > 0 {
            let base_stride = self.strides()[old - 1];
            let mut chunk = self.shape()[old - 1];
            old -= 1;
            while old > 0
                && (self.shape()[old - 1] == 1 || self.strides()[old - 1] == chunk * base_stride)
            {
                chunk *= self.shape()[old - 1];
                old -= 1;
            }
            let mut used = 1;
            while new > 0 && (used < chunk || shape[new - 1] == 1) {
                // Saturating: a chunk that is overrun is refused below, whatever was written here.
                strides[new - 1] = used.saturating_mul(base_stride);
                used *= shape[new - 1];
                new -= 1;
            }
            if used != chunk {
                return None;
            }
        }
        // What is left are sizes of 1 (a scalar viewed as [1, 1], say).
        for axis in (0..new).rev() {
            strides[axis] = 1;
        }
        Some(Layout::inside(shape.into(), strides, offset))
    }

    /// `permute`: dimensions in another order.
    pub fn permute(&self, dims: &[i64]) -> Result<Layout> {
        if dims.len() != self.rank() {
            return Err(Error::shape(
                "permute",
                format!("{dims:?} must name each of the {} dimensions once", self.rank()),
            ));
        }
        let mut seen: Dims = smallvec![0; self.rank()];
        let (mut shape, mut strides) = (Dims::new(), Dims::new());
        for &dim in dims {
            let dim = normalize_dim("permute", dim, self.rank())?;
            seen[dim] += 1;
            if seen[dim] > 1 {
                return Err(Error::shape(
                    "permute",
                    format!("dimension {dim} appears twice in {dims:?}"),
                ));
            }
            shape.push(self.shape()[dim]);
            strides.push(self.strides()[dim]);
        }
        Ok(Layout::inside(shape, strides, self.offset()))
    }

    /// `transpose`: two dimensions swapped.
    pub fn transpose(&self, a: i64, b: i64) -> Result<Layout> {
        let a = normalize_dim("transpose", a, self.rank())?;
        let b = normalize_dim("transpose", b, self.rank())?;
        let (mut shape, mut strides) = (Dims::from(self.shape()), Dims::from(self.strides()));
        if self.rank() > 0 {
            shape.swap(a, b);
            strides.swap(a, b);
        }
        Ok(Layout::inside(shape, strides, self.offset()))
    }

    /// `expand`: sizes of 1 stretched by a stride of 0; -1 keeps a size; new leading dimensions.
    pub fn expand(&self, sizes: &[i64]) -> Result<Layout> {
        let misfit = |why: String| {
            let own = self.shape();
            Error::shape("expand", format!("{why}. Target sizes: {sizes:?}. Tensor sizes: {own:?}"))
        };
        let lead = sizes.len().checked_sub(self.rank()).ok_or_else(|| {
            let (given, rank) = (sizes.len(), self.rank());
            misfit(format!(
                "the number of sizes provided ({given}) must be greater or equal to the number of dimensions in the \
                 tensor ({rank})"
            ))
        })?;
        let (mut shape, mut strides) = (Dims::new(), Dims::new());
        // From the last dimension: a new one of size 1 steps over all that is behind it, as in
        // PyTorch.
        let mut step = 1;
        for (axis, &size) in sizes.iter().enumerate().rev() {
            let own = axis.checked_sub(lead).map(|d| (self.shape()[d], self.strides()[d]));
            let (size, stride) = match (size, own) {
                (-1, Some(kept)) => kept,
                (size, _) if size < 0 => {
                    let why = "isn't allowed: -1 keeps the size of a dimension that is there";
                    return Err(misfit(format!(
                        "The expanded size of the tensor ({size}) {why}, and {axis} is not"
                    )));
                }
                (size, Some((have, stride))) if size as usize == have => (have, stride),
                (1, None) => (1, step),
                (size, None | Some((1, _))) => (size as usize, 0),
                (size, Some((have, _))) => {
                    return Err(misfit(format!(
                        "The expanded size of the tensor ({size}) must match the existing size ({have}) at \
                         non-singleton dimension {axis}"
                    )));
                }
            };
            step = size.saturating_mul(stride);
            shape.insert(0, size);
            strides.insert(0, stride);
        }
        checked_numel(&shape).map_err(|e| e.in_operation("expand"))?;
        Ok(Layout::inside(shape, strides, self.offset()))
    }

    /// Broadcast to sizes that are known to fit, as binary operations do with their operands.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Layout> {
        checked_numel(shape)?;
        let sizes: smallvec::SmallVec<[i64; 6]> = shape.iter().map(|&s| s as i64).collect();
        self.expand(&sizes)
    }

    /// `narrow`: `length` elements of a dimension from `start`; a negative start counts from the
    /// end.
    pub fn narrow(&self, dim: i64, start: i64, length: i64) -> Result<Layout> {
        let dim = self.existing_dim("narrow", dim)?;
        let size = self.shape()[dim] as i64;
        let from = if start < 0 { start.saturating_add(size) } else { start };
        if from < 0 || length < 0 || from > size || length > size - from {
            return Err(Error::shape(
                "narrow",
                format!(
                    "start {start} and length {length} do not fit dimension {dim} of size {size} (shape {:?})",
                    self.shape()
                ),
            ));
        }
        Ok(self.cut(dim, from as usize, length as usize, 1))
    }

    /// `x[start:end:step]` in one dimension, with Python's clamping; the step is positive.
    pub fn slice(&self, dim: i64, start: i64, end: i64, step: i64) -> Result<Layout> {
        let dim = self.existing_dim("slice", dim)?;
        if step <= 0 {
            return Err(Error::shape(
                "slice",
                format!("step {step} must be positive; use `flip` to turn a dimension around"),
            ));
        }
        let size = self.shape()[dim] as i64;
        let clamp = |at: i64| (if at < 0 { at.saturating_add(size) } else { at }).clamp(0, size);
        let (start, end) = (clamp(start), clamp(end));
        let length = if end > start { (end - start - 1) / step + 1 } else { 0 };
        let start = if length == 0 { start.min(size) } else { start };
        Ok(self.cut(dim, start as usize, length as usize, step as usize))
    }

    /// `select`: one index of a dimension, which goes away.
    pub fn select(&self, dim: i64, index: i64) -> Result<Layout> {
        let dim = self.existing_dim("select", dim)?;
        let size = self.shape()[dim] as i64;
        let at = if index < 0 { index.saturating_add(size) } else { index };
        if at < 0 || at >= size {
            return Err(Error::index(
                "select",
                format!(
                    "index {index} out of range for tensor of size {:?} at dimension {dim}",
                    self.shape()
                ),
            ));
        }
        let cut = self.cut(dim, at as usize, 1, 1);
        let (mut shape, mut strides) = (Dims::from(cut.shape()), Dims::from(cut.strides()));
        shape.remove(dim);
        strides.remove(dim);
        Ok(Layout::inside(shape, strides, cut.offset()))
    }

    /// `squeeze`: a dimension of size 1 removed; others are left alone, as in PyTorch.
    pub fn squeeze(&self, dim: i64) -> Result<Layout> {
        let dim = normalize_dim("squeeze", dim, self.rank())?;
        let (mut shape, mut strides) = (Dims::from(self.shape()), Dims::from(self.strides()));
        if self.rank() > 0 && shape[dim] == 1 {
            shape.remove(dim);
            strides.remove(dim);
        }
        Ok(Layout::inside(shape, strides, self.offset()))
    }

    /// `unsqueeze`: a new dimension of size 1 at `dim`.
    pub fn unsqueeze(&self, dim: i64) -> Result<Layout> {
        let dim = normalize_dim("unsqueeze", dim, self.rank() + 1)?;
        let (mut shape, mut strides) = (Dims::from(self.shape()), Dims::from(self.strides()));
        let stride = if dim < self.rank() { shape[dim].saturating_mul(strides[dim]) } else { 1 };
        shape.insert(dim, 1);
        strides.insert(dim, stride);
        Ok(Layout::inside(shape, strides, self.offset()))
    }

    /// `as_strided`: any sizes and strides within a storage of `storage_numel` elements.
    pub fn as_strided(
        sizes: &[i64],
        strides: &[i64],
        offset: i64,
        storage_numel: usize,
    ) -> Result<Layout> {
        let refuse = |why: String| Error::shape("as_strided", why);
        let whole = |name: &str, values: &[i64]| -> Result<Dims> {
            values
                .iter()
                .map(|&v| {
                    usize::try_from(v)
                        .map_err(|_| refuse(format!("{name} {values:?} has a negative")))
                })
                .collect()
        };
        let (shape, steps) = (whole("size", sizes)?, whole("stride", strides)?);
        let offset =
            usize::try_from(offset).map_err(|_| refuse(format!("offset {offset} is negative")))?;
        let layout =
            Layout::strided(&shape, &steps, offset).map_err(|e| e.in_operation("as_strided"))?;
        if layout.span() > storage_numel {
            return Err(refuse(format!(
                "size {sizes:?} with stride {strides:?} at offset {offset} reaches element {}, but the \
                 storage holds {storage_numel}",
                layout.span() - 1
            )));
        }
        Ok(layout)
    }

    fn existing_dim(&self, op: &str, dim: i64) -> Result<usize> {
        if self.rank() == 0 {
            return Err(Error::index(op, "a zero-dimensional tensor has no dimension to cut"));
        }
        normalize_dim(op, dim, self.rank())
    }

    fn cut(&self, dim: usize, start: usize, length: usize, step: usize) -> Layout {
        let (mut shape, mut strides) = (Dims::from(self.shape()), Dims::from(self.strides()));
        // The strides of an empty tensor and of a size of 1 need not be checked ones, so a cut that
        // names no element stays where it is if it cannot move.
        let landed =
            start.checked_mul(strides[dim]).and_then(|moved| moved.checked_add(self.offset()));
        let landed = if self.numel() == 0 { None } else { landed };
        shape[dim] = length;
        strides[dim] = strides[dim].saturating_mul(step);
        Layout::inside(shape, strides, landed.unwrap_or(self.offset()))
    }
}
