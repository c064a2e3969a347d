//! Matrix products.

use super::array::broadcast;
use super::{Array, Number, views};

/// PyTorch's `matmul`: vectors are rows or columns that vanish afterwards, leading dimensions
/// broadcast.
pub fn matmul(a: &Array, b: &Array) -> Array {
    assert_eq!(a.dtype(), b.dtype(), "matmul takes one dtype");
    let (row, column) = (a.shape().len() == 1, b.shape().len() == 1);
    let a = if row { views::unsqueeze(a, 0) } else { a.clone() };
    let b = if column { views::unsqueeze(b, 1) } else { b.clone() };
    let (a_batch, a_matrix) = a.shape().split_at(a.shape().len() - 2);
    let (b_batch, b_matrix) = b.shape().split_at(b.shape().len() - 2);
    assert_eq!(a_matrix[1], b_matrix[0], "inner sizes");
    let mut shape = broadcast(a_batch, b_batch);
    shape.extend([a_matrix[0], b_matrix[1]]);
    let product = Array::build(a.dtype(), &shape, |index| {
        let (batch, ij) = index.split_at(index.len() - 2);
        let of = |x: &Array, p: usize, q: usize| x.at_broadcast(&[batch, &[p, q]].concat());
        dot((0..a_matrix[1]).map(|k| (element(&a, &of, ij[0], k), element(&b, &of, k, ij[1]))))
    });
    let product = if row { views::squeeze(&product, -2) } else { product };
    if column { views::squeeze(&product, -1) } else { product }
}

/// An element of a matrix whose last two sizes must not be broadcast even if they are 1.
fn element(x: &Array, of: &impl Fn(&Array, usize, usize) -> Number, p: usize, q: usize) -> Number {
    let [.., rows, columns] = *x.shape() else { unreachable!("two dimensions at least") };
    assert!(p < rows && q < columns, "inside the matrix");
    of(x, p, q)
}

fn dot(pairs: impl Iterator<Item = (Number, Number)>) -> Number {
    let (mut int, mut float, mut is_float) = (0i64, 0f64, false);
    for (x, y) in pairs {
        match (x, y) {
            (Number::Int(x), Number::Int(y)) => int = int.wrapping_add(x.wrapping_mul(y)),
            (x, y) => {
                is_float = true;
                float += x.to_f64() * y.to_f64();
            }
        }
    }
    if is_float { Number::Float(float) } else { Number::Int(int) }
}
