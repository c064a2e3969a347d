//! Losses that ask for a margin between what is right and what is not. The one with a distance of
//! the user's own: `triplet_loss.rs`.

use plimsoll_tensor::{DType, Error, Reduction, Result, Tensor};

use crate::Buffer;
use crate::distance::pairwise_distance;
use crate::loss::reduced;
use crate::stateless::layers;

/// `x`, or 0 where that is more.
pub(crate) fn above_zero(x: &Tensor) -> Result<Tensor> {
    x.clamp_min(0.0)
}

layers! {
    /// `log(1 + exp(-target * input))` for targets of 1 and -1.
    SoftMarginLoss() {
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        reduced(&target.neg()?.mul(input)?.exp()?.log1p()?, this.reduction)
    }

    /// Distances of what is alike (target 1), and what others (target -1) lack to the margin.
    HingeEmbeddingLoss() {
        /// How far apart others should be.
        margin: f64 = 1.0,
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        let lacking = above_zero(&input.neg()?.add(this.margin)?)?;
        let lacking = lacking.masked_fill(&target.eq(1.0)?, 0.0)?;
        reduced(&lacking.add(&input.masked_fill(&target.eq(-1.0)?, 0.0)?)?, this.reduction)
    }

    /// What the first input lacks to be above the second (target 1) or below it (target -1).
    MarginRankingLoss() {
        /// By how much.
        margin: f64 = 0.0,
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
    }
    prints(_of) "";
    computes(this, (first, second, target) = (&Tensor, &Tensor, &Tensor)) -> Tensor {
        let lacking = target.neg()?.mul(&first.sub(second)?)?.add(this.margin)?;
        reduced(&above_zero(&lacking)?, this.reduction)
    }

    /// 1 minus the cosine of what is alike (target 1), and the cosine above the margin of others
    /// (target -1).
    CosineEmbeddingLoss() {
        /// The cosine that others may have.
        margin: f64 = 0.0,
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
    }
    prints(_of) "";
    computes(this, (first, second, target) = (&Tensor, &Tensor, &Tensor)) -> Tensor {
        let dim = target.rank();
        if dim > 1 || first.rank() != dim + 1 || second.rank() != dim + 1 {
            let what = format!(
                "{dim}D target tensor expects {}D input tensors, but found inputs with sizes {:?} and {:?}",
                dim + 1, first.shape(), second.shape()
            );
            return Err(Error::shape("CosineEmbeddingLoss", what));
        }
        let sum = |a: &Tensor, b: &Tensor| a.mul(b)?.sum_with(dim as i64);
        let squares = sum(first, first)?.add(1e-12)?.mul(&sum(second, second)?.add(1e-12)?)?;
        let cosine = sum(first, second)?.div(&squares.sqrt()?)?;
        let alike = cosine.neg()?.add(1.0)?.masked_fill(&target.ne(1.0)?, 0.0)?;
        let other = above_zero(&cosine.sub(this.margin)?)?.masked_fill(&target.ne(-1.0)?, 0.0)?;
        reduced(&alike.add(&other)?, this.reduction)
    }

    /// What the negative lacks to be farther from the anchor than the positive by the margin.
    TripletMarginLoss() {
        /// By how much.
        margin: f64 = 1.0,
        /// The power of the distance.
        p: f64 = 2.0,
        /// What is added to each difference.
        eps: f64 = 1e-6,
        /// Whether the positive's distance from the negative counts if it is less.
        swap: bool = false,
        /// What becomes of the elements.
        reduction: Reduction = Reduction::Mean,
    }
    prints(_of) "";
    computes(this, (anchor, positive, negative) = (&Tensor, &Tensor, &Tensor)) -> Tensor {
        let distance = |a: &Tensor, b: &Tensor| pairwise_distance(a, b, this.p, this.eps, false);
        let near = distance(anchor, positive)?;
        let mut far = distance(anchor, negative)?;
        if this.swap {
            far = far.minimum(&distance(positive, negative)?)?;
        }
        reduced(&above_zero(&near.sub(&far)?.add(this.margin)?)?, this.reduction)
    }

    /// What classes that are no labels lack to be below each label's score by 1, over the number of
    /// classes. A row of targets lists labels; -1 ends the list.
    MultiLabelMarginLoss() {
        /// What becomes of the samples' losses.
        reduction: Reduction = Reduction::Mean,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        let loss = multilabel_margin(input, target)?;
        reduced(&loss, this.reduction)
    }

    /// The mean over the classes of each label's cross entropy.
    MultiLabelSoftMarginLoss() {
        /// A factor of each class.
        weight: Option<Buffer> = None,
        /// What becomes of the samples' losses.
        reduction: Reduction = Reduction::Mean,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        let right = target.mul(&input.logsigmoid()?)?;
        let wrong = target.neg()?.add(1.0)?.mul(&input.neg()?.logsigmoid()?)?;
        let mut loss = right.add(&wrong)?.neg()?;
        if let Some(weight) = &this.weight {
            loss = loss.mul(&weight.tensor())?;
        }
        reduced(&loss.mean_with([-1])?, this.reduction)
    }

    /// What other classes lack to be below the target's score by the margin, over the number of
    /// classes.
    MultiMarginLoss() {
        /// The power: 1 or 2.
        p: i64 = 1,
        /// By how much.
        margin: f64 = 1.0,
        /// A factor of each class.
        weight: Option<Buffer> = None,
        /// What becomes of the samples' losses.
        reduction: Reduction = Reduction::Mean,
    }
    prints(_of) "";
    computes(this, (input, target) = (&Tensor, &Tensor)) -> Tensor {
        let wrong = |what: String| Err(Error::invalid_argument(what).in_operation("MultiMarginLoss"));
        if this.p != 1 && this.p != 2 {
            return wrong("only p == 1 and p == 2 supported".to_string());
        }
        let rows = if input.rank() == 2 { input.clone() } else { input.reshape(&[1, -1])? };
        let [count, classes] = *rows.shape() else { return wrong("the input is a matrix".to_string()) };
        if target.numel() != count {
            return wrong(format!(
                "an input of shape {:?} and a target of shape {:?} do not go together",
                input.shape(), target.shape()
            ));
        }
        let own = target.reshape(&[-1, 1])?;
        let mut lacking = above_zero(&rows.sub(&rows.gather(1, &own)?)?.add(this.margin)?)?;
        if this.p == 2 {
            lacking = lacking.mul(&lacking)?;
        }
        if let Some(weight) = &this.weight {
            lacking = lacking.mul(&weight.tensor().index_select(0, &target.reshape(&[-1])?)?.unsqueeze(1)?)?;
        }
        let places = Tensor::arange(0, classes as i64, 1, (own.dtype(), own.device()))?;
        let lacking = lacking.masked_fill(&own.eq(&places)?, 0.0)?;
        let loss = lacking.sum_with([1])?.div(classes as f64)?;
        let loss = if input.rank() == 2 { loss } else { loss.squeeze_with(0)? };
        reduced(&loss, this.reduction)
    }
}

/// The loss of each row, or of the only one.
fn multilabel_margin(input: &Tensor, target: &Tensor) -> Result<Tensor> {
    const OP: &str = "MultiLabelMarginLoss";
    if input.shape() != target.shape() || !(1..=2).contains(&input.rank()) {
        let (input, target) = (input.shape(), target.shape());
        let what = format!(
            "an input of shape {input:?} and a target of shape {target:?} do not go together: both are one row, or rows"
        );
        return Err(Error::shape(OP, what));
    }
    let classes = input.size(-1)?;
    let (rows, labels) = (input.reshape(&[-1, classes])?, target.reshape(&[-1, classes])?);
    let is_outside = labels.lt(-1)?.logical_or(&labels.ge(classes)?)?;
    if labels.numel() > 0 && is_outside.any()?.to_scalar()?.to_i64() != 0 {
        let what =
            format!("target out of range: labels are below {classes}, and -1 ends their list");
        return Err(Error::invalid_argument(what).in_operation(OP));
    }
    // A label counts if no -1 stands before it.
    let ended = labels.eq(-1)?.to(DType::I64)?.cumsum(1)?.gt(0)?;
    let counted = ended.logical_not()?.to(DType::I64)?.sum_with([1])?;
    // No row has more labels than this: what follows has a matrix of all classes for each.
    let most = if labels.numel() > 0 { counted.amax()?.item::<i64>()? } else { 0 };
    let (labels, ended) = (labels.narrow(1, 0, most)?, ended.narrow(1, 0, most)?);
    let places = Tensor::arange(0, classes, 1, (DType::I64, rows.device()))?;
    let named = labels.to(DType::I64)?.masked_fill(&ended, -1)?;
    let is_label = named.unsqueeze(2)?.eq(&places)?.any_with([1])?;
    let scores = rows.gather(1, &named.clamp_min(0)?)?;
    let lacking = rows.unsqueeze(1)?.sub(&scores.unsqueeze(2)?)?.add(1.0)?;
    let lacking = above_zero(&lacking)?
        .masked_fill(&is_label.unsqueeze(1)?, 0.0)?
        .masked_fill(&ended.unsqueeze(2)?, 0.0)?;
    let loss = lacking.sum_with([1, 2])?.div(classes as f64)?;
    if input.rank() == 2 { Ok(loss) } else { loss.squeeze_with(0) }
}
