//! Floating point operations of an operation, from shapes: products, convolutions, sums and
//! products of elements as PyTorch's profiler counts them with `with_flops`, and attention as its
//! `FlopCounterMode` does. A multiplication and an addition are two. What is not here counts as 0.

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
        "scaled_dot_product_attention" => attention(shape(0), shape(1), shape(2)),
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

/// Each of `places` meets a whole filter: its channels and its window.
fn per_weight(places: Option<u64>, weight: Option<&[usize]>) -> Option<u64> {
    Some(2 * places? * elements(weight?.get(1..)?))
}

/// Two products: of queries and keys, and of their weights and the values.
fn attention(
    query: Option<&[usize]>,
    key: Option<&[usize]>,
    value: Option<&[usize]>,
) -> Option<u64> {
    let [lead @ .., queries, width] = query? else { return None };
    let [.., keys, _] = key? else { return None };
    let [.., value_width] = value? else { return None };
    Some(2 * elements(lead) * elements(&[*queries, *keys]) * (*width + *value_width) as u64)
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
        assert_eq!(of("exp", &[&[4]], &[4]), 0);
    }

    #[test]
    fn what_failed_counts_nothing() {
        assert_eq!(count("mm", &[], &[]), 0);
        let scalar = InputMeta { shape: vec![], dtype: DType::F32 };
        assert_eq!(count("conv2d", &[scalar.clone(), scalar], &[vec![1]]), 0);
    }
}
