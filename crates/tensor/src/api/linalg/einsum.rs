//! Einstein summation: a product of tensors written as labels of their dimensions. Operands are
//! taken from the left, two at a time, and each pair becomes one batched matrix product.

use plimsoll_core::{Error, Result};
use plimsoll_memory::Site;

use crate::Tensor;
use crate::api::composed;

const OP: &str = "einsum";

/// A dimension's label: a letter, or one of the dimensions that an ellipsis stands for, counted
/// from the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Hidden(usize),
    Letter(char),
}

/// An operand whose dimensions are labelled, each label once.
#[derive(Clone)]
struct Labelled {
    tensor: Tensor,
    labels: Vec<Label>,
}

/// One side of the equation: letters, and where the ellipsis stands.
struct Term {
    letters: Vec<char>,
    ellipsis: Option<usize>,
}

fn refuse<T>(why: String) -> Result<T> {
    Err(Error::shape(OP, why))
}

impl Term {
    fn parse(text: &str) -> Result<Term> {
        let mut term = Term { letters: Vec::new(), ellipsis: None };
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix("...") {
                if term.ellipsis.replace(term.letters.len()).is_some() {
                    return refuse(format!("`{text}` has two ellipses"));
                }
                rest = after;
                continue;
            }
            if !first.is_ascii_alphabetic() {
                return refuse(format!("`{first}` in `{text}` is no letter from a to z or A to Z"));
            }
            term.letters.push(first);
            rest = &rest[first.len_utf8()..];
        }
        Ok(term)
    }

    /// Its labels where an ellipsis stands for `hidden` dimensions.
    fn labels(&self, hidden: usize) -> Vec<Label> {
        let mut labels: Vec<Label> = self.letters.iter().map(|&c| Label::Letter(c)).collect();
        if let Some(at) = self.ellipsis {
            labels.splice(at..at, (0..hidden).rev().map(Label::Hidden));
        }
        labels
    }
}

impl Labelled {
    fn new(tensor: &Tensor, term: &Term) -> Result<Labelled> {
        let (rank, letters) = (tensor.rank(), term.letters.len());
        if letters > rank || (letters < rank && term.ellipsis.is_none()) {
            return refuse(format!(
                "{letters} labels for an operand of shape {:?} with {rank} dimensions",
                tensor.shape()
            ));
        }
        let mut operand = Labelled { tensor: tensor.clone(), labels: term.labels(rank - letters) };
        operand.take_diagonals()?;
        Ok(operand)
    }

    /// A label that stands twice means the diagonal of its dimensions.
    fn take_diagonals(&mut self) -> Result<()> {
        let mut at = 0;
        while at < self.labels.len() {
            let label = self.labels[at];
            let Some(again) = self.labels[at + 1..].iter().position(|&other| other == label) else {
                at += 1;
                continue;
            };
            let again = at + 1 + again;
            let (x, shape) = (&self.tensor, self.tensor.shape());
            if shape[at] != shape[again] {
                return refuse(format!(
                    "dimensions {at} and {again} of {shape:?} have one label and differ in size"
                ));
            }
            let signed = |values: &[usize]| values.iter().map(|&v| v as i64).collect::<Vec<_>>();
            let (mut sizes, mut strides) = (signed(shape), signed(x.strides()));
            strides[at] += strides[again];
            sizes.remove(again);
            strides.remove(again);
            self.tensor = x.as_strided(&sizes, &strides, x.storage_offset() as i64)?;
            self.labels.remove(again);
        }
        Ok(())
    }

    fn size(&self, label: Label) -> Option<usize> {
        self.place(label).map(|at| self.tensor.shape()[at])
    }

    fn place(&self, label: Label) -> Option<usize> {
        self.labels.iter().position(|&other| other == label)
    }

    /// The sum over the labels for which `gone` holds.
    fn sum(self, gone: impl Fn(Label) -> bool) -> Result<Labelled> {
        let dims: Vec<i64> = (0..self.labels.len())
            .filter(|&at| gone(self.labels[at]))
            .map(|at| at as i64)
            .collect();
        if dims.is_empty() {
            return Ok(self);
        }
        let tensor = self.tensor.sum_over(&dims, false)?;
        let labels = self.labels.into_iter().filter(|&label| !gone(label)).collect();
        Ok(Labelled { tensor, labels })
    }

    /// Its dimensions in the order of `labels`, all of which it has.
    fn permute(&self, labels: &[Label]) -> Result<Tensor> {
        let order: Vec<i64> =
            labels.iter().filter_map(|&label| self.place(label)).map(|at| at as i64).collect();
        if order.iter().enumerate().all(|(at, &dim)| at as i64 == dim) {
            return Ok(self.tensor.clone());
        }
        self.tensor.permute(&order)
    }
}

/// The product of two operands, summed over labels that are not kept.
fn contract(
    left: Labelled,
    right: Labelled,
    kept: &dyn Fn(Label) -> bool,
    wanted: &[Label],
) -> Result<Labelled> {
    // What only one of them has and nobody keeps, and what one of them has only once.
    let alone = |own: &Labelled, other: &Labelled, label: Label| {
        let stretched = other.size(label) == Some(1) && own.size(label) != Some(1);
        !kept(label) && (other.place(label).is_none() || stretched)
    };
    let (l, r) = (left.clone(), right.clone());
    let left = left.sum(|label| alone(&l, &r, label))?;
    let right = right.sum(|label| alone(&r, &l, label))?;
    // A dimension of size 1 that the other side has lost by that goes as well.
    let lost = |own: &Labelled, other: &Labelled, label: Label| {
        !kept(label) && other.place(label).is_none() && own.size(label) == Some(1)
    };
    let (l, r) = (left.clone(), right.clone());
    let left = left.sum(|label| lost(&l, &r, label))?;
    let right = right.sum(|label| lost(&r, &l, label))?;

    let both = |label: &&Label| right.place(**label).is_some();
    let batch: Vec<Label> = left.labels.iter().filter(both).copied().filter(|&l| kept(l)).collect();
    let summed: Vec<Label> =
        left.labels.iter().filter(both).copied().filter(|&l| !kept(l)).collect();
    let only = |own: &Labelled, other: &Labelled| -> Vec<Label> {
        own.labels.iter().copied().filter(|&label| other.place(label).is_none()).collect()
    };
    let (rows, columns) = (only(&left, &right), only(&right, &left));
    let size = |label: Label| {
        left.size(label).into_iter().chain(right.size(label)).max().unwrap_or(1) as i64
    };
    let sizes = |labels: &[Label]| labels.iter().map(|&label| size(label)).collect::<Vec<i64>>();
    let matrix = |own: &Labelled, order: [&[Label]; 3]| -> Result<Tensor> {
        let whole = order.concat();
        let shape = order.map(|labels| sizes(labels).iter().product());
        own.permute(&whole)?.expand(&sizes(&whole))?.reshape(&shape)
    };
    let place = |label: &Label| wanted.iter().position(|own| own == label).unwrap_or(wanted.len());
    if summed.is_empty() {
        let mut labels = [batch, rows, columns].concat();
        labels.sort_by_key(place);
        // Nothing is added up: every element is one product.
        let spread = |own: &Labelled| -> Result<Tensor> {
            let shape: Vec<i64> =
                labels.iter().map(|&label| own.size(label).unwrap_or(1) as i64).collect();
            own.permute(&labels)?.reshape(&shape)
        };
        return Ok(Labelled { tensor: spread(&left)?.mul(&spread(&right)?)?, labels });
    }
    // The side whose dimensions come first in the result is the left one, so that it is row-major.
    let first = |labels: &[Label]| labels.iter().map(place).min();
    let swapped = !columns.is_empty() && !rows.is_empty() && first(&columns) < first(&rows);
    let (left, rows, right, columns) =
        if swapped { (&right, columns, &left, rows) } else { (&left, rows, &right, columns) };
    let a = matrix(left, [&batch, &rows, &summed])?;
    let b = matrix(right, [&batch, &summed, &columns])?;
    let labels = [batch, rows, columns].concat();
    let tensor = a.bmm(&b)?.view(&sizes(&labels))?;
    Ok(Labelled { tensor, labels })
}

/// Sizes of one label are equal or 1.
fn check_sizes(operands: &[Labelled]) -> Result<()> {
    let mut known: Vec<(Label, usize)> = Vec::new();
    for operand in operands {
        for (&label, &size) in operand.labels.iter().zip(operand.tensor.shape()) {
            match known.iter_mut().find(|(other, _)| *other == label) {
                None => known.push((label, size)),
                Some((_, other)) if *other == 1 => *other = size,
                Some((_, other)) if size == *other || size == 1 => {}
                Some((_, other)) => {
                    return refuse(format!(
                        "{label:?} has size {other} in one operand and {size} in another"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The labels of the result: what the equation says, or the ellipsis and each letter that stands
/// once, in alphabetical order.
fn result_labels(given: Option<&str>, terms: &[Term], hidden: usize) -> Result<Vec<Label>> {
    let Some(text) = given else {
        let mut once: Vec<char> = Vec::new();
        let all: Vec<char> = terms.iter().flat_map(|term| term.letters.iter().copied()).collect();
        once.extend(all.iter().filter(|c| all.iter().filter(|other| other == c).count() == 1));
        once.sort_unstable();
        let letters = once.into_iter().map(Label::Letter);
        return Ok((0..hidden).rev().map(Label::Hidden).chain(letters).collect());
    };
    let term = Term::parse(text)?;
    for (at, letter) in term.letters.iter().enumerate() {
        if term.letters[..at].contains(letter) {
            return refuse(format!("`{letter}` stands twice in the result `{text}`"));
        }
        if !terms.iter().any(|term| term.letters.contains(letter)) {
            return refuse(format!("`{letter}` of the result `{text}` is in no operand"));
        }
    }
    Ok(term.labels(hidden))
}

impl Tensor {
    /// The product of tensors whose dimensions are labelled by letters: what has one letter is
    /// multiplied together, and summed over unless the result has the letter.
    ///
    /// ```
    /// # use plimsoll_tensor::*;
    /// let a = Tensor::arange(0, 6, 1, DType::F32)?.view(&[2, 3])?;
    /// let products = Tensor::einsum("ij,kj->ik", &[&a, &a])?;
    /// assert_eq!(products.to_vec::<f32>()?, [5.0, 14.0, 14.0, 50.0]);
    /// assert_eq!(Tensor::einsum("ij->j", &[&a])?.to_vec::<f32>()?, [3.0, 5.0, 7.0]);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn einsum(equation: &str, tensors: &[&Tensor]) -> Result<Tensor> {
        composed(OP, Site::caller(), || {
            let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
            let (sources, result) = match text.split_once("->") {
                Some((sources, result)) => (sources, Some(result)),
                None => (text.as_str(), None),
            };
            let terms: Vec<Term> = sources.split(',').map(Term::parse).collect::<Result<_>>()?;
            if terms.len() != tensors.len() {
                return refuse(format!(
                    "the equation `{equation}` has {} operands, and {} were given",
                    terms.len(),
                    tensors.len()
                ));
            }
            let operands: Vec<Labelled> = tensors
                .iter()
                .zip(&terms)
                .map(|(tensor, term)| Labelled::new(tensor, term))
                .collect::<Result<_>>()?;
            check_sizes(&operands)?;
            let hidden = |operand: &Labelled| {
                operand.labels.iter().filter(|label| matches!(label, Label::Hidden(_))).count()
            };
            let hidden = operands.iter().map(hidden).max().unwrap_or(0);
            let wanted = result_labels(result, &terms, hidden)?;
            let mut rest = operands.into_iter();
            let Some(mut product) = rest.next() else {
                return refuse("there is no operand".to_string());
            };
            while let Some(next) = rest.next() {
                let later: Vec<Label> =
                    rest.as_slice().iter().flat_map(|operand| operand.labels.clone()).collect();
                let kept = |label: Label| wanted.contains(&label) || later.contains(&label);
                product = contract(product, next, &kept, &wanted)?;
            }
            product.sum(|label| !wanted.contains(&label))?.permute(&wanted)
        })
    }
}
