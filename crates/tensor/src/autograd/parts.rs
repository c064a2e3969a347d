//! The gradient of a tensor that backward reaches through parts of it (`split`, `unbind`, slices):
//! laid together in one piece of memory, in which each part is written once. Zeros go only where no
//! part came.
//!
//! Parts whose gradients already lie side by side as those of one tensor (attention writes them so
//! for packed queries, keys and values; `cat` hands out slices of one) are not even copied: their
//! memory is the whole's, unless somebody else holds it by the time that all came. What overlaps,
//! or is looked at by hooks, goes the ordinary way: made whole by `Operation::vjp` and added up.

use std::ops::Range;

use plimsoll_core::{Dims, Error, Layout, Result};
use plimsoll_memory::{ModulePath, Site, resume_module, with_site};
use smallvec::SmallVec;

use super::node::Node;
use super::tasks::Task;
use super::{accumulate, mode};
use crate::Tensor;
use crate::operation::{Inferred, Needs, Operation};
use plimsoll_kernels::Meta;

/// A gradient of which some indices along one dimension are there.
pub(super) struct Parts {
    total: Tensor,
    /// Whether `total` is memory that was made for this. If not, the gradients of the parts were
    /// made in it, and some of them may still be on their way: it is only read, and copied in the
    /// end if others still hold it.
    own: bool,
    dim: usize,
    /// The indices that are there: ascending, with gaps between them.
    there: SmallVec<[Range<usize>; 2]>,
    /// The part that came first; what has to be made is made in its name.
    first: FirstPart,
}

struct FirstPart {
    name: &'static str,
    site: Site,
    module: ModulePath,
}

/// Where the gradient of a part goes.
pub(super) enum Place {
    /// It is added to the gradient that has arrived.
    Whole,
    /// These indices of a dimension, which nothing else has filled.
    Indices(usize, Range<usize>),
}

impl Task {
    /// Where `gradient`, of the part that `op` of `node` shows of the output, may be put; `None` if
    /// it has to be made whole.
    pub(super) fn place_for(
        &mut self,
        node: &Node,
        op: &dyn Operation,
        output: u32,
        gradient: &Tensor,
    ) -> Result<Option<Place>> {
        let input = &node.inputs[0];
        let is_plain = gradient.dtype() == input.dtype
            && gradient.shape() == node.outputs[0].shape()
            && std::ptr::eq(gradient.entry(), node.entry);
        let band = op.shows(input).filter(|_| is_plain);
        if let Some(at) = self.parts.iter().position(|(own, _)| *own == output) {
            match band {
                Some((dim, range)) if self.parts[at].1.takes(dim, &range) => {
                    return Ok(Some(Place::Indices(dim, range)));
                }
                _ => self.finish_one(at)?,
            }
        }
        Ok(match (self.grads.get(output as usize).and_then(Option::as_ref), band) {
            (Some(total), _) => accumulate::is_free(total).then_some(Place::Whole),
            // A part that comes alone is made whole in one go.
            (None, Some((dim, range)))
                if self.waits_for > 1 || range.len() == input.shape()[dim] =>
            {
                Some(Place::Indices(dim, range))
            }
            (None, _) => None,
        })
    }

    /// Puts the gradient of a part where [`Task::place_for`] said.
    pub(super) fn put(
        &mut self,
        place: Place,
        node: &Node,
        op: &dyn Operation,
        output: u32,
        gradient: &Tensor,
    ) -> Result<()> {
        let Place::Indices(dim, range) = place else {
            let total = self.grads.get(output as usize).and_then(Option::as_ref);
            let missing = || Error::autograd(node.name(), "the gradient to add to is missing");
            return op.add_vjp(gradient, total.ok_or_else(missing)?);
        };
        match self.parts.iter_mut().find(|(own, _)| *own == output) {
            Some((_, parts)) => parts.put(op, range, gradient),
            None => {
                let mut parts = Parts::begin(node, op, dim, gradient)?;
                parts.put(op, range, gradient)?;
                self.parts.push((output, parts));
                Ok(())
            }
        }
    }

    /// Takes away what was laid together for an output.
    pub(super) fn take_parts(&mut self, output: u32) -> Option<Parts> {
        let at = self.parts.iter().position(|(own, _)| *own == output)?;
        Some(self.parts.swap_remove(at).1)
    }

    /// Makes all that was laid together from parts the gradients that they are.
    pub(super) fn finish_parts(&mut self) -> Result<()> {
        while !self.parts.is_empty() {
            self.finish_one(self.parts.len() - 1)?;
        }
        Ok(())
    }

    fn finish_one(&mut self, at: usize) -> Result<()> {
        let (output, parts) = self.parts.swap_remove(at);
        let output = output as usize;
        if self.grads.len() <= output {
            self.grads.resize(output + 1, None);
        }
        self.grads[output] = Some(parts.finish()?);
        Ok(())
    }
}

impl Parts {
    /// An empty gradient of the input of `node`: the memory that its part's gradient lies in if
    /// that can be the whole's, else new memory.
    fn begin(node: &Node, op: &dyn Operation, dim: usize, gradient: &Tensor) -> Result<Parts> {
        let (input, name) = (&node.inputs[0], node.name());
        let (total, own) = match around(input, op, dim, gradient) {
            Some(total) => (total, false),
            None => (Tensor::empty_on(name, node.entry, dense(input))?, true),
        };
        let first = FirstPart { name, site: node.site, module: node.module };
        Ok(Parts { total, own, dim, there: SmallVec::new(), first })
    }

    /// Whether none of these indices is there yet.
    fn takes(&self, dim: usize, range: &Range<usize>) -> bool {
        let is_apart = |known: &Range<usize>| known.end <= range.start || range.end <= known.start;
        dim == self.dim && self.there.iter().all(is_apart)
    }

    /// Puts the gradient of these indices, which `op` shows.
    fn put(&mut self, op: &dyn Operation, range: Range<usize>, gradient: &Tensor) -> Result<()> {
        let mut place = self.total.viewed_by(op)?;
        let is_there =
            gradient.shares_storage_with(&place) && gradient.meta().is_same_view(place.meta());
        if self.own || !is_there {
            if !self.own {
                self.move_out()?;
                place = self.total.viewed_by(op)?;
            }
            place.copy_(gradient)?;
        }
        if !range.is_empty() {
            self.note(range);
        }
        Ok(())
    }

    /// Notes that indices are there, together with their neighbours.
    fn note(&mut self, mut range: Range<usize>) {
        let from = self.there.partition_point(|known| known.end < range.start);
        let to = self.there.partition_point(|known| known.start <= range.end);
        for known in self.there.drain(from..to) {
            range = range.start.min(known.start)..range.end.max(known.end);
        }
        self.there.insert(from, range);
    }

    /// Goes on in memory of its own: what came so far is copied there.
    fn move_out(&mut self) -> Result<()> {
        let (entry, meta) = (self.total.entry(), self.total.meta().clone());
        let own = Tensor::empty_on(self.first.name, entry, meta)?;
        for range in &self.there {
            narrow(&own, self.dim, range)?.copy_(&narrow(&self.total, self.dim, range)?)?;
        }
        (self.total, self.own) = (own, true);
        Ok(())
    }

    /// The whole gradient, with zeros where nothing came, in memory that nobody else holds.
    fn finish(mut self) -> Result<Tensor> {
        let size = self.total.shape()[self.dim];
        let starts = std::iter::once(0).chain(self.there.iter().map(|range| range.end));
        let ends = self.there.iter().map(|range| range.start).chain([size]);
        let gaps = starts.zip(ends).map(|(start, end)| start..end);
        let gaps: SmallVec<[Range<usize>; 2]> = gaps.filter(|gap| !gap.is_empty()).collect();
        // Memory that the caller, a hook or a gradient which is returned holds too stays theirs.
        let is_free = self.own || self.total.is_sole_owner();
        if gaps.is_empty() && is_free {
            return Ok(self.total);
        }
        let FirstPart { site, module, .. } = self.first;
        unrecorded(site, module, || {
            if !self.own {
                self.move_out()?;
            }
            for gap in &gaps {
                narrow(&self.total, self.dim, gap)?.zero_()?;
            }
            Ok(self.total)
        })
    }

    /// The sum of it and a gradient of the whole, in the memory of one of them if that is free to
    /// take.
    pub(super) fn add_to(self, whole: Tensor) -> Result<Tensor> {
        let is_like = whole.dtype() == self.total.dtype() && whole.shape() == self.total.shape();
        if !is_like || !accumulate::is_free(&whole) {
            return accumulate::sum(self.finish()?, whole);
        }
        let FirstPart { site, module, .. } = self.first;
        unrecorded(site, module, || {
            for range in &self.there {
                narrow(&whole, self.dim, range)?.add_(&narrow(&self.total, self.dim, range)?)?;
            }
            Ok(whole)
        })
    }
}

/// Runs `make` in the name of a line and module of forward.
fn unrecorded<R>(site: Site, module: ModulePath, make: impl FnOnce() -> Result<R>) -> Result<R> {
    with_site(site, || {
        let _module = resume_module(module);
        mode::with_grad(false, make)
    })
}

fn narrow(tensor: &Tensor, dim: usize, range: &Range<usize>) -> Result<Tensor> {
    tensor.narrow(dim as i64, range.start as i64, range.len() as i64)
}

/// A tensor like `input` in memory of its own: in the same order of dimensions, so that what turned
/// the input's dimensions is turned back by a view.
fn dense(input: &Meta) -> Meta {
    let layout = &input.layout;
    let layout = if layout.is_dense() { layout.at_start() } else { layout.made_contiguous() };
    Meta { layout, dtype: input.dtype }
}

/// A gradient of the whole `input` over the storage of `gradient`, if that is just as large and has
/// `gradient` where `op`, which shows indices of `dim`, looks for it.
fn around(input: &Meta, op: &dyn Operation, dim: usize, gradient: &Tensor) -> Option<Tensor> {
    if gradient.storage_nbytes() != input.layout.numel() * input.dtype.size_bytes() {
        return None;
    }
    let layout = dense_around(input.shape(), dim, gradient.layout())?;
    let whole = Meta { layout, dtype: input.dtype };
    let Ok(Inferred::View(part)) = op.infer(&[&whole], Needs::NONE) else { return None };
    part.is_same_view(gradient.meta()).then(|| gradient.alias(whole, None))
}

/// The layout of `shape` without holes that lies in all dimensions but `dim` as `part`, which shows
/// some or one of its indices there.
fn dense_around(shape: &[usize], dim: usize, part: &Layout) -> Option<Layout> {
    let mut strides = Dims::from(part.strides());
    if part.rank() < shape.len() {
        strides.insert(dim, 0);
    }
    let mut order: Dims = (0..shape.len()).filter(|&d| d != dim && shape[d] != 1).collect();
    order.sort_by_key(|&d| strides[d]);
    // The other dimensions leave room for `dim` in one place.
    let (mut step, mut room) = (1, None);
    for d in order {
        if strides[d] != step && room.is_none() {
            room = Some(step);
            step *= shape[dim];
        }
        if strides[d] != step {
            return None;
        }
        step *= shape[d];
    }
    strides[dim] = room.unwrap_or(step);
    Layout::strided(shape, &strides, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every part of every layout without holes leads back to the layout.
    #[test]
    fn a_part_tells_the_layout_around_it() {
        let shape = [2, 3, 1, 4];
        let orders = [[0, 1, 2, 3], [3, 1, 0, 2], [1, 3, 2, 0], [2, 0, 3, 1]];
        for order in orders {
            let mut strides = [0; 4];
            let mut step = 1;
            for d in order {
                strides[d] = step;
                step *= shape[d];
            }
            let whole = Layout::strided(&shape, &strides, 0).unwrap();
            for dim in [0, 1, 3] {
                let (dim_i64, last) = (dim as i64, shape[dim] as i64 - 1);
                let one = whole.select(dim_i64, last).unwrap();
                assert_eq!(dense_around(&shape, dim, &one).unwrap(), whole, "{dim} {order:?}");
                let some = whole.narrow(dim_i64, 1, last).unwrap();
                assert_eq!(dense_around(&shape, dim, &some).unwrap(), whole, "{dim} {order:?}");
            }
        }
    }

    #[test]
    fn layouts_with_holes_or_copies_are_around_nothing() {
        let holes = Layout::strided(&[2, 3], &[12, 2], 0).unwrap();
        assert!(dense_around(&[2, 2, 3], 1, &holes).is_none());
        let expanded = Layout::strided(&[2, 3], &[0, 0], 0).unwrap();
        assert!(dense_around(&[2, 2, 3], 1, &expanded).is_none());
    }
}
