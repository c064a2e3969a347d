//! Attention of several heads, with its projections.

use std::ops::Deref;

use plimsoll_tensor::{DType, Error, Parameter, Result, ScaledDotProductAttentionOptions, Tensor};

use crate::call::at_caller;
use crate::linear::linear;
use crate::options::{layer_options, parameter};
use crate::{Forward, Hooks, Linear, LinearOptions, Module, Training, Values, Visitor, init};

layer_options! {
    /// How [`MultiheadAttention::with`] is made.
    MultiheadAttentionOptions {
        /// Probability that a weight is zeroed in training.
        dropout: f64 = 0.0,
        /// Whether projections have biases.
        bias: bool = true,
        /// Whether a trained key and value are added to the sequence.
        add_bias_kv: bool = false,
        /// Whether a key and value of zeros are added to the sequence.
        add_zero_attn: bool = false,
        /// Elements of a key, if not as many as of a query.
        kdim: Option<i64> = None,
        /// Elements of a value, if not as many as of a query.
        vdim: Option<i64> = None,
        /// Whether the batch is the first dimension, and not the sequence.
        batch_first: bool = false,
    }
}

/// What may not be looked at. A mask of truth hides what is true; one of numbers is added to the
/// scores.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttentionMasks<'a> {
    /// Of shape [queries, keys], or [batch * heads, queries, keys].
    pub attn_mask: Option<&'a Tensor>,
    /// Of shape [batch, keys].
    pub key_padding_mask: Option<&'a Tensor>,
    /// Whether a query sees no later key; `attn_mask` may be left away then.
    pub is_causal: bool,
}

impl Values for AttentionMasks<'_> {}

/// Which weights are given beside the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttentionWeights {
    /// None: the matrix of weights never exists.
    #[default]
    None,
    /// The mean over the heads, as PyTorch gives.
    Mean,
    /// Those of each head.
    EachHead,
}

impl Values for AttentionWeights {}

/// The layer after the heads, which PyTorch prints under a name of its own.
#[derive(Debug)]
pub struct NonDynamicallyQuantizableLinear(Linear);

impl Deref for NonDynamicallyQuantizableLinear {
    type Target = Linear;

    fn deref(&self) -> &Linear {
        &self.0
    }
}

impl Module for NonDynamicallyQuantizableLinear {
    fn visit<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
        self.0.visit(visitor);
    }

    fn as_dyn(&self) -> &dyn Module {
        self
    }

    fn type_name(&self) -> &'static str {
        "NonDynamicallyQuantizableLinear"
    }

    fn extra_repr(&self) -> String {
        self.0.extra_repr()
    }

    fn hooks(&self) -> Option<&Hooks> {
        self.0.hooks()
    }

    fn is_builtin(&self) -> bool {
        true
    }
}

impl Forward<&Tensor> for NonDynamicallyQuantizableLinear {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.0.forward(input)
    }
}

/// Queries look keys up and take the mean of their values, in several heads. Called with a query, a
/// key and a value it gives the result; with masks and a choice of weights, those too.
///
/// ```
/// use plimsoll_nn::{AttentionMasks, AttentionWeights, Forward, MultiheadAttention};
/// use plimsoll_tensor::{DType, Tensor};
/// let attention = MultiheadAttention::new(8, 2)?;
/// let x = Tensor::ones(&[5, 3, 8], DType::F32)?; // [sequence, batch, elements]
/// assert_eq!(attention.call((&x, &x, &x))?.shape(), [5, 3, 8]);
/// let masks = AttentionMasks { is_causal: true, ..Default::default() };
/// let (_, weights) = attention.call((&x, &x, &x, masks, AttentionWeights::Mean))?;
/// assert_eq!(weights.unwrap().shape(), [3, 5, 5]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Debug, Module)]
#[module(builtin)]
pub struct MultiheadAttention {
    /// The projections of queries, keys and values, one below the other, if all have one width.
    pub in_proj_weight: Option<Parameter>,
    /// The projection of queries, if widths differ.
    pub q_proj_weight: Option<Parameter>,
    /// The projection of keys, if widths differ.
    pub k_proj_weight: Option<Parameter>,
    /// The projection of values, if widths differ.
    pub v_proj_weight: Option<Parameter>,
    /// The biases of the projections.
    pub in_proj_bias: Option<Parameter>,
    /// The trained key.
    pub bias_k: Option<Parameter>,
    /// The trained value.
    pub bias_v: Option<Parameter>,
    /// The layer after the heads.
    pub out_proj: NonDynamicallyQuantizableLinear,
    /// Elements of a query.
    pub embed_dim: i64,
    /// How many heads.
    pub num_heads: i64,
    #[module(skip)]
    options: MultiheadAttentionOptions,
    /// Whether weights are dropped.
    pub training: Training,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl MultiheadAttention {
    /// PyTorch's defaults.
    #[track_caller]
    pub fn new(embed_dim: i64, num_heads: i64) -> Result<MultiheadAttention> {
        MultiheadAttention::with(embed_dim, num_heads, MultiheadAttentionOptions::new())
    }

    /// With other widths, dropout, or the batch first.
    #[track_caller]
    pub fn with(
        embed_dim: i64,
        num_heads: i64,
        options: MultiheadAttentionOptions,
    ) -> Result<MultiheadAttention> {
        let _site = at_caller();
        if embed_dim <= 0 || num_heads <= 0 || embed_dim % num_heads != 0 {
            let what = format!(
                "embed_dim must be divisible by num_heads, both above 0: got {embed_dim} and {num_heads}"
            );
            return Err(Error::invalid_argument(what).in_operation("MultiheadAttention"));
        }
        let kdim = options.kdim.unwrap_or(embed_dim);
        let vdim = options.vdim.unwrap_or(embed_dim);
        let is_one_width = kdim == embed_dim && vdim == embed_dim;
        let made = options.made();
        let weight =
            |is_there: bool, sizes: &[i64]| is_there.then(|| parameter(sizes, made)).transpose();
        let linear =
            LinearOptions { bias: options.bias, device: options.device, dtype: options.dtype };
        let layer = MultiheadAttention {
            in_proj_weight: weight(is_one_width, &[3 * embed_dim, embed_dim])?,
            q_proj_weight: weight(!is_one_width, &[embed_dim, embed_dim])?,
            k_proj_weight: weight(!is_one_width, &[embed_dim, kdim])?,
            v_proj_weight: weight(!is_one_width, &[embed_dim, vdim])?,
            in_proj_bias: weight(options.bias, &[3 * embed_dim])?,
            bias_k: weight(options.add_bias_kv, &[1, 1, embed_dim])?,
            bias_v: weight(options.add_bias_kv, &[1, 1, embed_dim])?,
            out_proj: NonDynamicallyQuantizableLinear(Linear::with(embed_dim, embed_dim, linear)?),
            embed_dim,
            num_heads,
            options,
            training: Training::default(),
            hooks: Hooks::default(),
        };
        layer.reset_parameters()?;
        Ok(layer)
    }

    /// Draws first values anew.
    pub fn reset_parameters(&self) -> Result<()> {
        let weights =
            [&self.in_proj_weight, &self.q_proj_weight, &self.k_proj_weight, &self.v_proj_weight];
        for weight in weights.into_iter().flatten() {
            init::xavier_uniform_(&weight.tensor(), 1.0)?;
        }
        for bias in self.in_proj_bias.iter().chain(&self.out_proj.bias) {
            init::zeros_(&bias.tensor())?;
        }
        for bias in self.bias_k.iter().chain(&self.bias_v) {
            init::xavier_normal_(&bias.tensor(), 1.0)?;
        }
        Ok(())
    }

    /// The three projections, of [batch, sequence, elements]; what is one tensor is projected in
    /// one product.
    fn projected(&self, [query, key, value]: [&Tensor; 3], same: [bool; 2]) -> Result<[Tensor; 3]> {
        let width = self.embed_dim;
        let bias = self.in_proj_bias.as_ref().map(Parameter::tensor);
        let part = |x: &Tensor, at: i64, count: i64| x.narrow(0, at * width, count * width);
        let bias_part =
            |at: i64, count: i64| bias.as_ref().map(|bias| part(bias, at, count)).transpose();
        let Some(weight) = &self.in_proj_weight else {
            let weights = [&self.q_proj_weight, &self.k_proj_weight, &self.v_proj_weight];
            let mut projected = Vec::with_capacity(3);
            for (at, (x, weight)) in [query, key, value].into_iter().zip(weights).enumerate() {
                let weight = weight.as_ref().map(Parameter::tensor);
                let weight =
                    weight.ok_or_else(|| Error::invalid_argument("a projection is missing"))?;
                projected.push(linear(x, &weight, bias_part(at as i64, 1)?.as_ref())?);
            }
            return projected.try_into().map_err(|_| Error::invalid_argument("three projections"));
        };
        let weight = weight.tensor();
        let cut = |x: &Tensor, at: i64| x.narrow(-1, at * width, width);
        if same == [true, true] {
            let all = linear(query, &weight, bias.as_ref())?;
            return Ok([cut(&all, 0)?, cut(&all, 1)?, cut(&all, 2)?]);
        }
        let q = linear(query, &part(&weight, 0, 1)?, bias_part(0, 1)?.as_ref())?;
        if same[1] {
            let both = linear(key, &part(&weight, 1, 2)?, bias_part(1, 2)?.as_ref())?;
            return Ok([q, cut(&both, 0)?, cut(&both, 1)?]);
        }
        let k = linear(key, &part(&weight, 1, 1)?, bias_part(1, 1)?.as_ref())?;
        Ok([q, k, linear(value, &part(&weight, 2, 1)?, bias_part(2, 1)?.as_ref())?])
    }

    /// Keys or values with what is added to the sequence.
    fn lengthened(&self, x: Tensor, trained: &Option<Parameter>) -> Result<Tensor> {
        let (batch, width) = (x.size(0)?, self.embed_dim);
        let mut parts = vec![x];
        if let Some(trained) = trained {
            parts.push(trained.tensor().expand(&[batch, 1, width])?);
        }
        if self.options.add_zero_attn {
            parts.push(Tensor::zeros(&[batch, 1, width], (parts[0].dtype(), parts[0].device()))?);
        }
        if parts.len() == 1 {
            return Ok(parts.swap_remove(0));
        }
        Tensor::cat(&parts.iter().collect::<Vec<_>>(), 1)
    }

    /// All masks as one that is added to scores of [batch, heads, queries, keys].
    fn mask(
        &self,
        masks: &AttentionMasks<'_>,
        [batch, queries, keys]: [i64; 3],
        dtype: DType,
    ) -> Result<Option<Tensor>> {
        let added = i64::from(self.bias_k.is_some()) + i64::from(self.options.add_zero_attn);
        let long = |mask: Tensor| {
            if added > 0 { mask.constant_pad_nd(&[0, added], 0.0) } else { Ok(mask) }
        };
        let mut whole = None;
        if let Some(mask) = masks.attn_mask {
            let mask = long(additive(mask, dtype)?)?;
            whole = Some(match mask.rank() {
                2 => mask,
                _ => mask.reshape(&[batch, self.num_heads, queries, keys + added])?,
            });
        } else if masks.is_causal {
            let later = Tensor::ones(&[queries, keys], DType::F32)?.triu(1)?.to(DType::Bool)?;
            whole = Some(long(additive(&later, dtype)?)?);
        }
        let Some(padding) = masks.key_padding_mask else { return Ok(whole) };
        let padding = long(additive(padding, dtype)?)?.reshape(&[batch, 1, 1, keys + added])?;
        match whole {
            Some(mask) => mask.add(&padding).map(Some),
            None => padding.expand(&[batch, 1, queries, keys + added]).map(Some),
        }
    }

    fn attend(
        &self,
        inputs: [&Tensor; 3],
        masks: &AttentionMasks<'_>,
        wanted: AttentionWeights,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let [query, key, value] = inputs;
        let single = query.rank() == 2;
        if !(2..=3).contains(&query.rank())
            || key.rank() != query.rank()
            || value.rank() != query.rank()
        {
            let what = format!(
                "query, key and value need 2 dimensions, or 3 with a batch, and have the shapes {:?}, {:?} and {:?}",
                query.shape(),
                key.shape(),
                value.shape()
            );
            return Err(Error::shape("MultiheadAttention", what));
        }
        let turned = !single && !self.options.batch_first;
        let batched = |x: &Tensor| match (single, turned) {
            (true, _) => x.unsqueeze(0),
            (_, true) => x.transpose(0, 1),
            _ => Ok(x.clone()),
        };
        let same = [std::ptr::eq(query, key), std::ptr::eq(key, value)];
        let lead = [batched(query)?, batched(key)?, batched(value)?];
        let (batch, queries, keys) = (lead[0].size(0)?, lead[0].size(1)?, lead[1].size(1)?);
        let [q, k, v] = self.projected([&lead[0], &lead[1], &lead[2]], same)?;
        let (k, v) = (self.lengthened(k, &self.bias_k)?, self.lengthened(v, &self.bias_v)?);
        let head = self.embed_dim / self.num_heads;
        let heads = |x: &Tensor| {
            let length = x.size(1)?;
            x.reshape(&[batch, length, self.num_heads, head])?.transpose(1, 2)
        };
        let (q, k, v) = (heads(&q)?, heads(&k)?, heads(&v)?);
        let p = if self.training.get() { self.options.dropout } else { 0.0 };
        let longer = k.size(2)? != keys;
        let is_plain = masks.attn_mask.is_none() && masks.key_padding_mask.is_none() && !longer;
        let (result, weights) = if wanted == AttentionWeights::None && p == 0.0 {
            let is_causal = masks.is_causal && is_plain;
            let mask =
                if is_causal { None } else { self.mask(masks, [batch, queries, keys], q.dtype())? };
            let options = ScaledDotProductAttentionOptions::new()
                .attn_mask(mask.as_ref())
                .is_causal(is_causal);
            (q.scaled_dot_product_attention_with(&k, &v, options)?, None)
        } else {
            let scaled = q.mul((1.0 / head as f64).sqrt())?;
            let mut scores = scaled.matmul(&k.transpose(-2, -1)?)?;
            if let Some(mask) = self.mask(masks, [batch, queries, keys], q.dtype())? {
                scores = scores.add(&mask)?;
            }
            let weights = scores.softmax(-1)?.dropout(p, p > 0.0)?;
            (weights.matmul(&v)?, Some(weights))
        };
        let joined = result.transpose(1, 2)?.reshape(&[batch, queries, self.embed_dim])?;
        let output = self.out_proj.call(&joined)?;
        let output = match (single, turned) {
            (true, _) => output.squeeze_with(0)?,
            (_, true) => output.transpose(0, 1)?,
            _ => output,
        };
        let weights = match (weights, wanted) {
            (Some(weights), AttentionWeights::Mean) => Some(weights.mean_with([1])?),
            (Some(weights), AttentionWeights::EachHead) => Some(weights),
            _ => None,
        };
        let weights = match weights {
            Some(weights) if single => Some(weights.squeeze_with(0)?),
            weights => weights,
        };
        Ok((output, weights))
    }
}

/// A mask as what is added to the scores.
fn additive(mask: &Tensor, dtype: DType) -> Result<Tensor> {
    if mask.dtype() != DType::Bool {
        return Ok(mask.clone());
    }
    let sizes: Vec<i64> = mask.shape().iter().map(|&size| size as i64).collect();
    Tensor::zeros(&sizes, (dtype, mask.device()))?.masked_fill(mask, f64::NEG_INFINITY)
}

impl Forward<(&Tensor, &Tensor, &Tensor)> for MultiheadAttention {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, (query, key, value): (&Tensor, &Tensor, &Tensor)) -> Result<Tensor> {
        let _site = at_caller();
        let masks = AttentionMasks::default();
        self.attend([query, key, value], &masks, AttentionWeights::None).map(|(output, _)| output)
    }
}

/// With masks, and with weights beside the result.
impl Forward<(&Tensor, &Tensor, &Tensor, AttentionMasks<'_>, AttentionWeights)>
    for MultiheadAttention
{
    type Output = (Tensor, Option<Tensor>);

    #[track_caller]
    fn forward(
        &self,
        (query, key, value, masks, wanted): (
            &Tensor,
            &Tensor,
            &Tensor,
            AttentionMasks<'_>,
            AttentionWeights,
        ),
    ) -> Result<Self::Output> {
        let _site = at_caller();
        self.attend([query, key, value], &masks, wanted)
    }
}
