//! Floating point operations of an operation, from shapes: products, convolutions, sums and
//! products of elements as PyTorch's profiler counts them with `with_flops`, and attention and the
//! gradients of convolutions and attention as its `FlopCounterMode` does. A multiplication and an
//! addition are two. What is not here counts as 0.

use crate::log::InputMeta;

/// The count for `operation`, as the registry names it.
pub(crate) fn count(operation: &str, inputs: &[InputMeta], outputs: &[Vec<usize>]) -> u64 {
    let shape = |index: usize| inputs.get(index).map(|input| input.shape.as_slice());
    let result = outputs.first().map(|shape| elements(shape));
    let counted = match operation {
        "mm" | "bmm" | "matmul" | "linear" | "mv" => product(result, shape(0)),
        "addmm" | "baddbmm" | "addmv" => product(result, shape(1)),
        "conv1d" | "conv2d" | "conv3d" | "convolution" => per_weight(result, shape(1)),
        "conv_transpose1d" | "conv_transpose2d" | "conv_transpose3d" => {
            per_weight(shape(0).map(elements), shape(1))
        }
        "convolution_input" => per_weight(shape(0).map(elements), shape(1)),
        "convolution_result" => per_weight(result, shape(1)),
        "convolution_weight" => filter(shape(0), shape(1), outputs.first().map(Vec::as_slice)),
        "scaled_dot_product_attention" => attention(&shape, 0, [1, 1]),
        "attention_backward" => attention(&shape, 1, [3, 2]),
        "linear_cross_entropy" | "linear_cross_entropy_backward" => {
            linear_loss(outputs, shape(0), shape(1))
        }
        "add" | "mul" => shape(0).map(elements),
        _ => None,
    };
    counted.unwrap_or(0)
}

fn elements(shape: &[usize]) -> u64 {
    shape.iter().map(|&size| size as u64).product()
}

/// Each element of the result is a sum over the last dimension of the left operand.
fn product(result: Option<u64>, left: Option<&[usize]>) -> Option<u64> {
    Some(2 * result? * *left?.last()? as u64)
}

/// The scores, and a product for each gradient that comes with the loss. PyTorch counts no such
/// operation.
fn linear_loss(
    outputs: &[Vec<usize>],
    x: Option<&[usize]>,
    weight: Option<&[usize]>,
) -> Option<u64> {
    let gradients = outputs.iter().filter(|shape| shape.len() == 2).count() as u64;
    Some(2 * (1 + gradients) * elements(x?) * *weight?.first()? as u64)
}

/// Each of `places` meets a whole filter: its channels and its window.
fn per_weight(places: Option<u64>, weight: Option<&[usize]>) -> Option<u64> {
    Some(2 * places? * elements(weight?.get(1..)?))
}

/// Each place of the filter that comes out meets all of the second operand, once for each channel
/// of the first. PyTorch counts all channels, whatever the groups.
fn filter(
    first: Option<&[usize]>,
    second: Option<&[usize]>,
    weight: Option<&[usize]>,
) -> Option<u64> {
    let channels = *first?.get(1)? as u64;
    Some(2 * channels * elements(second?) * elements(weight?.get(2..)?))
}

/// Products of every query with every key, so many over the width of the queries and so many over
/// that of the values. Forward: of queries and keys, and of their weights and the values. Backward,
/// the weights are computed again. The query is the operand `at`, key and value follow.
fn attention<'a>(
    shape: &impl Fn(usize) -> Option<&'a [usize]>,
    at: usize,
    [over_width, over_values]: [usize; 2],
) -> Option<u64> {
    let [lead @ .., queries, width] = shape(at)? else { return None };
    let [.., keys, _] = shape(at + 1)? else { return None };
    let [.., value_width] = shape(at + 2)? else { return None };
    let widths = (over_width * *width + over_values * *value_width) as u64;
    Some(2 * elements(lead) * elements(&[*queries, *keys]) * widths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::DType;

    fn of(operation: &str, inputs: &[&[usize]], output: &[usize]) -> u64 {
        let meta = |shape: &&[usize]| InputMeta { shape: shape.to_vec(), dtype: DType::F32 };
        count(operation, &inputs.iter().map(meta).collect::<Vec<_>>(), &[output.to_vec()])
    }

    /// The figures are PyTorch's for the same shapes.
    #[test]
    fn counts_are_pytorchs() {
        assert_eq!(of("mm", &[&[2, 3], &[3, 5]], &[2, 5]), 60);
        assert_eq!(of("addmm", &[&[5], &[2, 3], &[3, 5]], &[2, 5]), 60);
        assert_eq!(of("bmm", &[&[7, 2, 3], &[7, 3, 5]], &[7, 2, 5]), 420);
        assert_eq!(of("conv2d", &[&[5, 4, 10, 10], &[6, 2, 3, 3]], &[5, 6, 8, 8]), 69120);
        assert_eq!(of("mul", &[&[4, 4], &[4, 4]], &[4, 4]), 16);
        let attention = "scaled_dot_product_attention";
        let (q, k, v) = ([2, 4, 8, 16], [2, 4, 10, 16], [2, 4, 10, 12]);
        let expected = 2 * 8 * 8 * 10 * 16 + 2 * 8 * 8 * 10 * 12;
        assert_eq!(of(attention, &[&q, &k, &v], &[2, 4, 8, 12]), expected);
        let (grad, lse): (&[usize], &[usize]) = (&[2, 4, 8, 12], &[2, 4, 8]);
        let inputs: [&[usize]; 6] = [grad, &q, &k, &v, grad, lse];
        let expected = 2 * 8 * 8 * 10 * (3 * 16 + 2 * 12);
        assert_eq!(of("attention_backward", &inputs, &q), expected);
        assert_eq!(of("exp", &[&[4]], &[4]), 0);
    }

    /// PyTorch's for `conv2d(x, w, groups=2)` and `conv_transpose2d(x, w)`, input and weight apart.
    #[test]
    fn counts_of_gradients_are_pytorchs() {
        let (x, w, grad) = ([5, 4, 10, 10], [6, 2, 3, 3], [5, 6, 8, 8]);
        assert_eq!(of("convolution_input", &[&grad, &w], &x), 69120);
        assert_eq!(of("convolution_weight", &[&x, &grad], &w), 138_240);
        let (x, w, grad) = ([2, 3, 8, 8], [3, 4, 3, 3], [2, 4, 10, 10]);
        assert_eq!(of("convolution_result", &[&grad, &w], &x), 27648);
        assert_eq!(of("convolution_weight", &[&grad, &x], &w), 27648);
    }

    #[test]
    fn what_failed_counts_nothing() {
        assert_eq!(count("mm", &[], &[]), 0);
        let scalar = InputMeta { shape: vec![], dtype: DType::F32 };
        assert_eq!(count("conv2d", &[scalar.clone(), scalar], &[vec![1]]), 0);
    }
}
