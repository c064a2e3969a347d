//! Attention: `softmax(query key^T * scale + mask) value`, in which the matrix of scores never
//! exists whole. For backward it keeps its operands, the result and one number a row.

use std::sync::Arc;

use plimsoll_core::{DType, Dims, Error, Layout, Result};
use plimsoll_cuda::{Properties, source_files};
use smallvec::SmallVec;

use super::elementwise::output_layout;
use super::nn::check_float;
use crate::Tensor;
use crate::autograd::is_grad_enabled;
use crate::cuda::{self, CudaLaunch};
use crate::dispatch::{Dest, apply_on};
use crate::operation::{
    Backward, DTypes, Grads, Home, Inferred, Metas, Needs, OnCuda, OpInfo, Operation, Saves,
};
use crate::prepare::apply;
use plimsoll_kernels::cpu::attention::{self as cpu, AttentionArgs};
use plimsoll_kernels::{CpuLaunch, Meta};
use plimsoll_memory::Site;

/// Inputs [query, key, value, mask?], with the same leading dimensions but for the heads of keys
/// that `group` heads of queries share. Outputs [result], and [logarithm of each row's sum] if
/// backward will want it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention(pub(crate) AttentionArgs);

impl Attention {
    fn check(&self, inputs: &[&Meta]) -> Result<()> {
        let info = &SCALED_DOT_PRODUCT_ATTENTION;
        check_float(info, inputs[0])?;
        let [query, key, value] = [0, 1, 2].map(|index| inputs[index].shape());
        let wrong = |what: &str| {
            Err(Error::shape(
                info.name,
                format!("{what}: query has the shape {query:?}, key {key:?} and value {value:?}"),
            ))
        };
        let (Some([_, width]), Some([keys, own]), Some([values, _])) =
            (query.last_chunk::<2>(), key.last_chunk::<2>(), value.last_chunk::<2>())
        else {
            return wrong("they need two or more dimensions");
        };
        if width != own {
            return wrong("the last dimension of query and key must be the same");
        }
        if keys != values {
            return wrong("key and value must have as many rows as the other");
        }
        let heads = |shape: &[usize]| shape[..shape.len() - 2].iter().product::<usize>();
        let group = self.0.group;
        if heads(key) * group != heads(query) || key[..key.len() - 2] != value[..value.len() - 2] {
            return wrong("the dimensions before the last two must go together");
        }
        if inputs[1].dtype != inputs[0].dtype || inputs[2].dtype != inputs[0].dtype {
            return Err(Error::dtype(
                info.name,
                format!(
                    "query, key and value must have one dtype, and have {}, {} and {}; convert them with `to`",
                    inputs[0].dtype, inputs[1].dtype, inputs[2].dtype
                ),
            ));
        }
        match inputs.get(3).filter(|_| self.0.mask) {
            Some(mask) if mask.dtype != DType::Bool && mask.dtype != inputs[0].dtype => {
                Err(Error::dtype(
                    info.name,
                    format!(
                        "the mask must be bool or the query's dtype {}, and is {}",
                        inputs[0].dtype, mask.dtype
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    /// The gradients of query, key and value from differentiable operations; the scores exist
    /// whole.
    fn composite(&self, backward: &Backward<'_>) -> Result<[Tensor; 3]> {
        let AttentionArgs { causal, scale, group, mask } = self.0;
        let [query, key, value] = [backward.input(0)?, backward.input(1)?, backward.input(2)?];
        let grad = backward.grad()?;
        // Heads that share keys become rows of one.
        let per_key = |x: &Tensor| -> Result<Tensor> {
            if group == 1 {
                return Ok(x.clone());
            }
            let mut sizes: SmallVec<[i64; 6]> = x.shape().iter().map(|&s| s as i64).collect();
            let at = sizes.len() - 3;
            sizes[at] /= group as i64;
            sizes.insert(at + 1, group as i64);
            x.reshape(&sizes)
        };
        let shared = |x: &Tensor| if group == 1 { Ok(x.clone()) } else { x.unsqueeze(-3) };
        let summed = |x: Tensor| if group == 1 { Ok(x) } else { x.sum_over(&[-3], false) };
        let (queries, grads) = (per_key(query)?, per_key(grad)?);
        let (keys, values) = (shared(key)?, shared(value)?);
        let mut scores = queries.matmul(&keys.transpose(-1, -2)?)?.mul(scale)?;
        if mask {
            let mask = per_key(backward.input(3)?)?;
            scores = match mask.dtype() {
                DType::Bool => Tensor::where_(&mask, &scores, f64::NEG_INFINITY)?,
                _ => scores.add(&mask)?,
            };
        }
        if causal {
            let options = (DType::I64, query.device());
            let [rows, columns] = [query.shape(), key.shape()].map(|s| s[s.len() - 2] as i64);
            let after = Tensor::arange(0, rows, 1, options)?
                .unsqueeze(-1)?
                .lt(&Tensor::arange(0, columns, 1, options)?)?;
            scores = Tensor::where_(&after, f64::NEG_INFINITY, &scores)?;
        }
        // A row that sees nothing is no distribution: it has no weights.
        let visible = Tensor::where_(&scores.eq(f64::NEG_INFINITY)?, 0.0, 1.0)?;
        let blind = visible.sum_over(&[-1], true)?.eq(0.0)?;
        let seen = Tensor::where_(&blind, 0.0, &scores)?;
        let weights = Tensor::where_(&blind, 0.0, &seen.softmax(-1)?)?;
        let of_values = summed(weights.transpose(-1, -2)?.matmul(&grads)?)?;
        let of_weights = grads.matmul(&values.transpose(-1, -2)?)?;
        let along = of_weights.mul(&weights)?.sum_over(&[-1], true)?;
        let slopes = of_weights.sub(&along)?.mul(&weights)?.mul(scale)?;
        let sizes: SmallVec<[i64; 6]> = query.shape().iter().map(|&s| s as i64).collect();
        let of_queries = slopes.matmul(&keys)?.reshape(&sizes)?;
        let of_keys = summed(slopes.transpose(-1, -2)?.matmul(&queries)?)?;
        Ok([of_queries, of_keys, of_values])
    }
}

impl Operation for Attention {
    fn info(&self) -> &'static OpInfo {
        &SCALED_DOT_PRODUCT_ATTENTION
    }

    fn infer(&self, inputs: &[&Meta], needs: Needs) -> Result<Inferred> {
        self.check(inputs)?;
        let dtype = inputs[0].dtype;
        let mut shape = Dims::from(inputs[0].shape());
        let rank = shape.len();
        shape[rank - 1] = inputs[2].shape()[inputs[2].shape().len() - 1];
        let mut metas: Metas = smallvec::smallvec![Meta { layout: layout(inputs, &shape)?, dtype }];
        if needs.any() {
            let wide = if dtype.size_bytes() < 4 { DType::F32 } else { dtype };
            metas.push(Meta::contiguous(&shape[..rank - 1], wide)?);
        }
        Ok(Inferred::Exact(metas))
    }

    fn saves(&self, _needs: Needs) -> Saves {
        Saves::input(0)
            .and(Saves::input(1))
            .and(Saves::input(2))
            .and(Saves::input(3).when(self.0.mask))
            .and(Saves::output(0))
            .and(Saves::output(1))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        let (query, value) = (inputs[0].shape(), inputs[2].shape());
        cpu::attention_workspace_bytes(inputs[0].dtype, query, value, false)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::attention(launch, self.0)
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::attention(launch, self.0)
    }

    fn vjp(&self, backward: &Backward<'_>) -> Result<Grads> {
        let mut grads: Grads = smallvec::smallvec![None; backward.inputs.len()];
        if is_grad_enabled() {
            for (place, grad) in grads.iter_mut().zip(self.composite(backward)?) {
                *place = Some(grad);
            }
            return Ok(grads);
        }
        let mut inputs: SmallVec<[&Tensor; 7]> = smallvec::smallvec![backward.grad()?];
        for index in 0..3 {
            inputs.push(backward.input(index)?);
        }
        inputs.extend([backward.output(0)?, backward.output(1)?]);
        if self.0.mask {
            inputs.push(backward.input(3)?);
        }
        let (op, site) = (AttentionBackward(self.0), Site::in_force());
        let results = match packed_gradients(backward)? {
            // Known to be apart, which `apply` would ask again.
            Some(packed) => {
                let dest = Dest::Out(&packed.each_ref());
                apply_on(inputs[0].entry(), &op, &inputs, dest, site)?
            }
            None => apply(&op, &inputs, Dest::New, site)?,
        };
        for (place, grad) in grads.iter_mut().zip(results) {
            *place = Some(grad);
        }
        Ok(grads)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

/// PyTorch's: in the query's order of dimensions where values are as wide and rows dense, so that
/// heads that were turned for attention turn back into a view. Row-major otherwise.
fn layout(inputs: &[&Meta], shape: &[usize]) -> Result<Layout> {
    let is_dense = |meta: &Meta| meta.layout.strides().last() == Some(&1);
    let has_heads = matches!(shape.len(), 3 | 4) && inputs[..3].iter().all(|meta| is_dense(meta));
    if has_heads && inputs[0].shape() == shape {
        return output_layout(SCALED_DOT_PRODUCT_ATTENTION.name, &inputs[..1]);
    }
    Layout::contiguous(shape)
}

/// Memory for the gradients of query, key and value where these are the parts of one tensor, and
/// nothing else is in its storage: parts of one tensor too, in the same places, so that they need
/// not be put together (`autograd/parts.rs`).
fn packed_gradients(backward: &Backward<'_>) -> Result<Option<[Tensor; 3]>> {
    let parts = [backward.input(0)?, backward.input(1)?, backward.input(2)?];
    let query = parts[0];
    // The gradients of leaves stay apart, each in memory of its own.
    let is_part = |index: usize| {
        let part = parts[index];
        backward.needs.has(index)
            && !part.is_leaf()
            && part.shares_storage_with(query)
            && !part.layout().may_overlap_itself()
    };
    let numel = parts.iter().map(|part| part.numel()).sum::<usize>();
    if !(0..3).all(is_part)
        || numel * query.element_size() != query.storage_nbytes()
        || !are_apart(parts.map(Tensor::layout), numel)
    {
        return Ok(None);
    }
    let whole = Meta::contiguous(&[numel], query.dtype())?;
    let whole = Tensor::empty_on(ATTENTION_BACKWARD.name, query.entry(), whole)?;
    Ok(Some(parts.map(|part| whole.alias(part.meta().clone(), None))))
}

/// Whether parts of a storage of `numel` elements share none, as far as rows tell: where the
/// storage is cut into rows of one length, each part has columns of its own. `Layout::overlaps`
/// knows all layouts, but gives up on interleaved ones of this size.
fn are_apart(parts: [&Layout; 3], numel: usize) -> bool {
    let columns = |part: &Layout, row: usize| -> Option<[usize; 2]> {
        let first = part.offset() % row;
        let mut end = first + 1;
        for (&size, &stride) in part.shape().iter().zip(part.strides()) {
            if stride < row {
                end += size.checked_sub(1)? * stride;
            } else if size > 1 && !stride.is_multiple_of(row) {
                return None;
            }
        }
        (end <= row).then_some([first, end])
    };
    let rows = parts[0].strides().iter().copied().chain([numel]).filter(|&row| row > 0);
    rows.into_iter().any(|row| {
        let [Some(a), Some(b), Some(c)] = parts.map(|part| columns(part, row)) else {
            return false;
        };
        let mut found = [a, b, c];
        found.sort_unstable();
        found[0][1] <= found[1][0] && found[1][1] <= found[2][0]
    })
}

/// The gradients of query, key and value in one kernel, for backward passes that nobody
/// differentiates again.
#[derive(Clone, Copy, Debug)]
struct AttentionBackward(AttentionArgs);

impl Operation for AttentionBackward {
    fn info(&self) -> &'static OpInfo {
        &ATTENTION_BACKWARD
    }

    fn infer(&self, inputs: &[&Meta], _needs: Needs) -> Result<Inferred> {
        // As their operands, so that heads that were turned for attention turn back into a view.
        let like = |input: &&Meta| -> Result<Meta> {
            Ok(Meta { layout: output_layout(self.info().name, &[*input])?, dtype: input.dtype })
        };
        let metas: Result<Metas> = inputs[1..4].iter().map(like).collect();
        Ok(Inferred::Exact(metas?))
    }

    fn workspace_bytes(&self, inputs: &[&Meta], _outputs: &[Meta]) -> usize {
        let (query, value) = (inputs[1].shape(), inputs[3].shape());
        cpu::attention_workspace_bytes(inputs[1].dtype, query, value, true)
    }

    fn cpu(&self, launch: &CpuLaunch<'_>) -> Result<()> {
        cpu::attention_backward(launch, self.0)
    }

    fn cuda_workspace_bytes(
        &self,
        _gpu: &Properties,
        inputs: &[&Meta],
        _outputs: &[Meta],
    ) -> usize {
        cuda::attention_backward_workspace_bytes(inputs[1])
    }

    fn cuda(&self, launch: &CudaLaunch<'_>) -> Result<()> {
        cuda::attention_backward(launch, self.0)
    }

    fn share(&self) -> Arc<dyn Operation> {
        Arc::new(*self)
    }
}

const fn info(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo {
        name,
        home: Home::Functional,
        family: "attention",
        signatures,
        differentiable: true,
        dtypes: DTypes::FLOATS,
        cuda: OnCuda::Kernels(&source_files::ATTENTION),
        ..OpInfo::BARE
    }
}

static SCALED_DOT_PRODUCT_ATTENTION: OpInfo = info(
    "scaled_dot_product_attention",
    &[
        "scaled_dot_product_attention(Tensor self, Tensor key, Tensor value, Tensor? attn_mask=None, bool is_causal=False, float? scale=None, bool enable_gqa=False) -> Tensor",
    ],
);
/// Internal: reached only through the derivative.
static ATTENTION_BACKWARD: OpInfo =
    OpInfo { differentiable: false, ..info("attention_backward", &[]) };

pub(crate) static OPS: &[&OpInfo] = &[&SCALED_DOT_PRODUCT_ATTENTION];

#[cfg(test)]
mod tests {
    use super::*;

    /// Queries, keys and values of GPT-2's product, cut in every way.
    #[test]
    fn parts_of_a_product_are_apart() {
        let [batch, length, heads, width] = [16i64, 1024, 12, 64];
        let whole = |sizes: &[i64]| {
            let sizes: Vec<usize> = sizes.iter().map(|&size| size as usize).collect();
            Layout::contiguous(&sizes).unwrap()
        };
        let product = whole(&[batch, length, 3 * heads * width]);
        let rows = whole(&[batch, length, heads, 3 * width]);
        let apart = whole(&[3, batch, heads, length, width]);
        let cut = |at: i64| {
            let part = product.narrow(2, at * heads * width, heads * width).unwrap();
            let part = part.view(&[batch, length, heads, width]).unwrap();
            let of_rows = rows.narrow(3, at * width, width).unwrap();
            [
                part.transpose(1, 2).unwrap(),
                of_rows.transpose(1, 2).unwrap(),
                apart.select(0, at).unwrap(),
            ]
        };
        let [q, k, v] = [cut(0), cut(1), cut(2)];
        for way in 0..3 {
            let numel = product.numel();
            assert!(are_apart([&v[way], &q[way], &k[way]], numel), "{way}");
            assert!(!are_apart([&v[way], &q[way], &q[way]], numel), "{way}");
            assert!(!are_apart([&v[way], &q[(way + 1) % 3], &k[way]], numel), "{way}");
        }
        // Fewer heads of keys, which lie behind the queries'.
        let cut = |start: i64, heads: i64| {
            let part = product.narrow(2, start * width, heads * width).unwrap();
            part.view(&[batch, length, heads, width]).unwrap().transpose(1, 2).unwrap()
        };
        assert!(are_apart([&cut(0, 24), &cut(24, 6), &cut(30, 6)], product.numel()));
        assert!(!are_apart([&cut(0, 25), &cut(24, 6), &cut(30, 6)], product.numel()));
    }
}
