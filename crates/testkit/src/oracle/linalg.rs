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

/// The product of arrays whose dimensions have letters, element by element of the result and term
/// by term of the sum: `"ij,jk->ik"`.
pub fn einsum(equation: &str, arrays: &[&Array]) -> Array {
    let (sources, result) = equation.split_once("->").expect("a result");
    let terms: Vec<Vec<char>> = sources.split(',').map(|term| term.chars().collect()).collect();
    let size = |letter: char| {
        let found = terms.iter().zip(arrays).flat_map(|(term, array)| {
            term.iter().zip(array.shape()).filter(|(own, _)| **own == letter).map(|(_, &size)| size)
        });
        found.max().expect("a letter of an operand")
    };
    let kept: Vec<char> = result.chars().collect();
    let mut summed: Vec<char> = terms.concat();
    summed.retain(|letter| !kept.contains(letter));
    summed.sort_unstable();
    summed.dedup();
    let sizes: Vec<usize> = summed.iter().map(|&letter| size(letter)).collect();
    let shape: Vec<usize> = kept.iter().map(|&letter| size(letter)).collect();
    Array::build(arrays[0].dtype(), &shape, |index| {
        let (mut int, mut float) = (0i64, 0f64);
        for inner in super::array::indices(&sizes) {
            let at = |letter: char| {
                let outer = kept.iter().position(|&own| own == letter).map(|at| index[at]);
                outer.unwrap_or_else(|| {
                    inner[summed.iter().position(|&own| own == letter).expect("a summed letter")]
                })
            };
            let (mut int_term, mut float_term) = (1i64, 1f64);
            for (term, array) in terms.iter().zip(arrays) {
                let place: Vec<usize> = term.iter().map(|&letter| at(letter)).collect();
                let value = array.at_broadcast(&place);
                int_term = int_term.wrapping_mul(value.to_i64());
                float_term *= value.to_f64();
            }
            int = int.wrapping_add(int_term);
            float += float_term;
        }
        if arrays[0].dtype().is_float() { Number::Float(float) } else { Number::Int(int) }
    })
}

/// `beta` times an array, stretched, plus `alpha` times another.
pub fn scaled_sum(beta: f64, x: &Array, alpha: f64, product: &Array) -> Array {
    Array::build(product.dtype(), product.shape(), |index| {
        let (own, other) = (x.at_broadcast(index), product.at_broadcast(index));
        match (own, other) {
            (Number::Int(own), Number::Int(other)) => {
                let own = own.wrapping_mul(beta as i64);
                Number::Int(own.wrapping_add(other.wrapping_mul(alpha as i64)))
            }
            _ => Number::Float(beta * own.to_f64() + alpha * other.to_f64()),
        }
    })
}

/// Each element of one array times the whole of another.
pub fn kron(a: &Array, b: &Array) -> Array {
    let shape: Vec<usize> = a.shape().iter().zip(b.shape()).map(|(x, y)| x * y).collect();
    Array::build(a.dtype(), &shape, |index| {
        let outer: Vec<usize> = index.iter().zip(b.shape()).map(|(i, size)| i / size).collect();
        let inner: Vec<usize> = index.iter().zip(b.shape()).map(|(i, size)| i % size).collect();
        dot([(a.at_broadcast(&outer), b.at_broadcast(&inner))].into_iter())
    })
}

/// The cross product along dimension `dim` of size 3.
pub fn cross(a: &Array, b: &Array, dim: usize) -> Array {
    Array::build(a.dtype(), a.shape(), |index| {
        let of = |x: &Array, step: usize| {
            let mut place = index.to_vec();
            place[dim] = (index[dim] + step) % 3;
            x.at_broadcast(&place)
        };
        match (of(a, 1), of(b, 2), of(a, 2), of(b, 1)) {
            (Number::Int(a1), Number::Int(b2), Number::Int(a2), Number::Int(b1)) => {
                Number::Int(a1.wrapping_mul(b2).wrapping_sub(a2.wrapping_mul(b1)))
            }
            (a1, b2, a2, b1) => {
                Number::Float(a1.to_f64() * b2.to_f64() - a2.to_f64() * b1.to_f64())
            }
        }
    })
}
