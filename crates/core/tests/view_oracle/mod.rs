//! The naive truth about view rules: a tensor as the plain list of storage positions of its
//! elements in row-major order. Every rule is carried out on indices and lists, never on strides,
//! so that an error in `plimsoll_core`'s stride arithmetic cannot hide here too. Shared by the
//! property tests (`view_rules.rs`) and the fuzz target `layouts`.

use plimsoll_core::{Layout, Result};

/// One view operation with its arguments as a user gives them, right or wrong.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    View(Vec<i64>),
    Reshape(Vec<i64>),
    Permute(Vec<i64>),
    Transpose(i64, i64),
    Expand(Vec<i64>),
    Narrow(i64, i64, i64),
    Slice(i64, i64, i64, i64),
    Select(i64, i64),
    Squeeze(i64),
    Unsqueeze(i64),
}

/// Sizes, and the storage position of each element in row-major order of indices.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Positions {
    pub(crate) shape: Vec<usize>,
    pub(crate) at: Vec<usize>,
}

/// All indices of `shape` in row-major order: one (empty) index for rank 0, none if a size is 0.
pub(crate) fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    if shape.contains(&0) {
        return Vec::new();
    }
    let mut all = vec![Vec::new()];
    for &size in shape {
        all = all
            .iter()
            .flat_map(|head| (0..size).map(|i| [head.as_slice(), &[i]].concat()))
            .collect();
    }
    all
}

impl Positions {
    /// What a layout claims, element by element.
    pub(crate) fn of(layout: &Layout) -> Positions {
        let at = indices(layout.shape())
            .iter()
            .map(|index| {
                layout.offset()
                    + index
                        .iter()
                        .zip(layout.strides())
                        .map(|(i, stride)| i * stride)
                        .sum::<usize>()
            })
            .collect();
        Positions { shape: layout.shape().to_vec(), at }
    }

    fn get(&self, index: &[usize]) -> usize {
        assert!(index.len() == self.shape.len(), "the oracle indexes with one number a dimension");
        let row = index.iter().zip(&self.shape).fold(0, |row, (&i, &size)| {
            assert!(i < size, "the oracle indexes within its shape");
            row * size + i
        });
        self.at[row]
    }

    fn gather(&self, shape: Vec<usize>, source: impl Fn(&[usize]) -> Vec<usize>) -> Positions {
        let at = indices(&shape).iter().map(|index| self.get(&source(index))).collect();
        Positions { shape, at }
    }

    fn dim(&self, dim: i64) -> Option<usize> {
        let rank = self.shape.len().max(1) as i64;
        (-rank..rank).contains(&dim).then(|| if dim < 0 { dim + rank } else { dim } as usize)
    }

    /// A dimension that exists: a scalar has none to cut.
    fn cut_dim(&self, dim: i64) -> Option<usize> {
        if self.shape.is_empty() { None } else { self.dim(dim) }
    }

    /// The new sizes of a view, if the element count allows them.
    fn regrouped_sizes(&self, sizes: &[i64]) -> Option<Vec<usize>> {
        let product = |candidate: i64| -> Option<(Vec<usize>, usize)> {
            let filled: Vec<usize> = sizes
                .iter()
                .map(|&s| usize::try_from(if s == -1 { candidate } else { s }).ok())
                .collect::<Option<_>>()?;
            let numel = filled.iter().fold(1usize, |numel, &size| numel.saturating_mul(size));
            let numel = if filled.contains(&0) { 0 } else { numel };
            Some((filled, numel))
        };
        match sizes.iter().filter(|&&s| s == -1).count() {
            0 => product(0).filter(|(_, numel)| *numel == self.at.len()).map(|(s, _)| s),
            1 => {
                let mut fits = (0..=self.at.len() as i64)
                    .filter_map(product)
                    .filter(|(_, numel)| *numel == self.at.len());
                // A zero elsewhere leaves the -1 open: every candidate gives no elements.
                let open = sizes.contains(&0);
                fits.next().filter(|_| !open).map(|(s, _)| s)
            }
            _ => None,
        }
    }

    /// Whether some strides give exactly these positions: step along each dimension once, then
    /// check that every element lies where those steps say.
    fn has_strides(&self) -> bool {
        let Some(&first) = self.at.first() else { return true };
        let steps: Vec<Option<usize>> = (0..self.shape.len())
            .map(|d| {
                let mut unit = vec![0; self.shape.len()];
                unit[d] = 1;
                if self.shape[d] == 1 { Some(0) } else { self.get(&unit).checked_sub(first) }
            })
            .collect();
        let Some(steps) = steps.into_iter().collect::<Option<Vec<usize>>>() else { return false };
        indices(&self.shape).iter().zip(&self.at).all(|(index, &at)| {
            at == first + index.iter().zip(&steps).map(|(i, s)| i * s).sum::<usize>()
        })
    }

    /// Carries out a step, or `None` where it must be refused.
    pub(crate) fn apply(&self, step: &Step) -> Option<Positions> {
        match step {
            Step::View(sizes) | Step::Reshape(sizes) => {
                let shape = self.regrouped_sizes(sizes)?;
                let viewed = Positions { shape, at: self.at.clone() };
                viewed.has_strides().then_some(viewed)
            }
            Step::Permute(dims) => self.permute(dims),
            Step::Transpose(a, b) => self.transpose(*a, *b),
            Step::Expand(sizes) => self.expand(sizes),
            Step::Narrow(dim, start, length) => self.narrow(*dim, *start, *length),
            Step::Slice(dim, start, end, step) => self.slice(*dim, *start, *end, *step),
            Step::Select(dim, index) => self.select(*dim, *index),
            Step::Squeeze(dim) => {
                let dim = self.dim(*dim)?;
                let mut shape = self.shape.clone();
                if shape.get(dim) == Some(&1) {
                    shape.remove(dim);
                }
                Some(Positions { shape, at: self.at.clone() })
            }
            Step::Unsqueeze(dim) => {
                let rank = self.shape.len() as i64 + 1;
                let dim = (-rank..rank).contains(dim).then(|| dim.rem_euclid(rank) as usize)?;
                let mut shape = self.shape.clone();
                shape.insert(dim, 1);
                Some(Positions { shape, at: self.at.clone() })
            }
        }
    }

    fn permute(&self, dims: &[i64]) -> Option<Positions> {
        if dims.len() != self.shape.len() {
            return None;
        }
        let order: Vec<usize> = dims.iter().map(|&d| self.dim(d)).collect::<Option<_>>()?;
        if (0..order.len()).any(|d| !order.contains(&d)) {
            return None;
        }
        let shape = order.iter().map(|&d| self.shape[d]).collect();
        Some(self.gather(shape, |new| {
            let mut old = vec![0; new.len()];
            order.iter().zip(new).for_each(|(&d, &i)| old[d] = i);
            old
        }))
    }

    fn transpose(&self, a: i64, b: i64) -> Option<Positions> {
        let (a, b) = (self.dim(a)?, self.dim(b)?);
        if self.shape.is_empty() {
            return Some(self.clone());
        }
        let mut shape = self.shape.clone();
        shape.swap(a, b);
        Some(self.gather(shape, |new| {
            let mut old = new.to_vec();
            old.swap(a, b);
            old
        }))
    }

    fn expand(&self, sizes: &[i64]) -> Option<Positions> {
        let lead = sizes.len().checked_sub(self.shape.len())?;
        let mut shape = Vec::new();
        for (axis, &size) in sizes.iter().enumerate() {
            let own = axis.checked_sub(lead).map(|d| self.shape[d]);
            shape.push(match (size, own) {
                (-1, Some(own)) => own,
                (size, Some(own)) if size >= 0 && (own == size as usize || own == 1) => {
                    size as usize
                }
                (size, None) if size >= 0 => size as usize,
                _ => return None,
            });
        }
        Some(self.gather(shape, |new| {
            new[lead..]
                .iter()
                .zip(&self.shape)
                .map(|(&i, &own)| if own == 1 { 0 } else { i })
                .collect()
        }))
    }

    /// Keeps the listed indices of one dimension.
    fn keep(&self, dim: usize, kept: &[usize]) -> Positions {
        let mut shape = self.shape.clone();
        shape[dim] = kept.len();
        self.gather(shape, |new| {
            let mut old = new.to_vec();
            old[dim] = kept[new[dim]];
            old
        })
    }

    fn narrow(&self, dim: i64, start: i64, length: i64) -> Option<Positions> {
        let dim = self.cut_dim(dim)?;
        let size = self.shape[dim] as i64;
        let start = if start < 0 { start.checked_add(size)? } else { start };
        if start < 0 || length < 0 || i128::from(start) + i128::from(length) > i128::from(size) {
            return None;
        }
        Some(self.keep(dim, &(start as usize..(start + length) as usize).collect::<Vec<_>>()))
    }

    fn slice(&self, dim: i64, start: i64, end: i64, step: i64) -> Option<Positions> {
        let dim = self.cut_dim(dim)?;
        if step <= 0 {
            return None;
        }
        let size = self.shape[dim];
        let bound = |at: i64| if at < 0 { i128::from(at) + size as i128 } else { i128::from(at) };
        let (start, end) = (bound(start).max(0), bound(end));
        // Python's rule, one candidate at a time.
        let kept: Vec<usize> = (0..size)
            .filter(|&i| {
                let i = i as i128;
                i >= start && i < end && (i - start) % i128::from(step) == 0
            })
            .collect();
        Some(self.keep(dim, &kept))
    }

    fn select(&self, dim: i64, index: i64) -> Option<Positions> {
        let dim = self.cut_dim(dim)?;
        let size = self.shape[dim] as i64;
        let at = (0..size).find(|&i| i == index || i - size == index)?;
        let mut kept = self.keep(dim, &[at as usize]);
        kept.shape.remove(dim);
        Some(kept)
    }
}

/// The same step by the rules under test.
pub(crate) fn apply(layout: &Layout, step: &Step) -> Result<Layout> {
    match step {
        Step::View(sizes) => layout.view(sizes),
        Step::Reshape(sizes) => {
            let (shape, shared) = layout.reshape(sizes)?;
            match shared {
                Some(shared) => {
                    assert_eq!(
                        shared.shape(),
                        shape.as_slice(),
                        "reshape names the shape it shares"
                    );
                    Ok(shared)
                }
                None => layout.view(sizes),
            }
        }
        Step::Permute(dims) => layout.permute(dims),
        Step::Transpose(a, b) => layout.transpose(*a, *b),
        Step::Expand(sizes) => layout.expand(sizes),
        Step::Narrow(dim, start, length) => layout.narrow(*dim, *start, *length),
        Step::Slice(dim, start, end, step) => layout.slice(*dim, *start, *end, *step),
        Step::Select(dim, index) => layout.select(*dim, *index),
        Step::Squeeze(dim) => layout.squeeze(*dim),
        Step::Unsqueeze(dim) => layout.unsqueeze(*dim),
    }
}

/// Runs `steps` from `start` by the rules and by the oracle; they must refuse the same steps and
/// name the same positions in the same order. A refused step leaves both where they were. With
/// `from_views` the self-overlap answer must be exact; otherwise it may only err on the safe side.
pub(crate) fn check_program(start: Layout, steps: &[Step], from_views: bool, numel_max: usize) {
    let mut layout = start;
    let mut truth = Positions::of(&layout);
    check_claims(&layout, &truth, from_views);
    for step in steps {
        if too_large(&truth, step, numel_max) {
            continue;
        }
        match (apply(&layout, step), truth.apply(step)) {
            (Ok(viewed), Some(positions)) => {
                assert_eq!(Positions::of(&viewed), positions, "{step:?} of {layout:?}");
                check_claims(&viewed, &positions, from_views);
                (layout, truth) = (viewed, positions);
            }
            (Err(error), None) => assert!(!error.to_string().is_empty()),
            (ours, naive) => panic!("{step:?} of {layout:?}: {ours:?}, but the oracle: {naive:?}"),
        }
    }
}

/// Steps that name a size too long to list are left out, and so are those that make too many
/// elements (only `expand` makes elements).
fn too_large(truth: &Positions, step: &Step, numel_max: usize) -> bool {
    let (Step::Expand(sizes) | Step::View(sizes) | Step::Reshape(sizes)) = step else {
        return false;
    };
    if sizes.iter().any(|&size| size > numel_max as i64) {
        return true;
    }
    let lead = sizes.len().saturating_sub(truth.shape.len());
    let numel = sizes.iter().enumerate().fold(1i128, |product, (axis, &size)| {
        let kept = axis.checked_sub(lead).and_then(|d| truth.shape.get(d)).copied().unwrap_or(1);
        product.saturating_mul(if size < 0 { kept as i128 } else { i128::from(size) })
    });
    matches!(step, Step::Expand(_)) && numel > numel_max as i128
}

/// What a layout says about itself, against its enumerated positions.
pub(crate) fn check_claims(layout: &Layout, truth: &Positions, from_views: bool) {
    let numel = truth.at.len();
    assert_eq!(layout.numel(), numel);
    assert_eq!(layout.span(), truth.at.iter().max().map_or(0, |last| last + 1), "{layout:?}");
    let mut sorted = truth.at.clone();
    sorted.sort_unstable();
    let dense = sorted.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let in_order = truth.at.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let collides = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    assert_eq!(layout.is_contiguous(), in_order, "is_contiguous of {layout:?}");
    assert_eq!(layout.is_dense(), dense, "is_dense of {layout:?}");
    if from_views {
        assert_eq!(layout.may_overlap_itself(), collides, "overlap of {layout:?}");
    } else {
        assert!(layout.may_overlap_itself() || !collides, "overlap of {layout:?}");
    }
}
