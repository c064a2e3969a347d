//! Factorizations of small matrices in the plainest way there is: Gauss's elimination with the
//! largest pivot, Jacobi's rotations, sums as they are defined. Of what has several right answers
//! only what they have in common.

use plimsoll_core::DType;

use super::{Array, Number};

/// One matrix, by rows.
pub type Matrix = Vec<Vec<f64>>;

/// The matrices of an array, its last two dimensions.
pub fn matrices(x: &Array) -> Vec<Matrix> {
    let [.., rows, columns] = *x.shape() else { unreachable!("two dimensions at least") };
    let numbers: Vec<f64> = x.values().iter().map(|value| value.to_f64()).collect();
    let count = x.shape()[..x.shape().len() - 2].iter().product();
    (0..count)
        .map(|at| {
            let row = |i: usize| {
                let first = (at * rows + i) * columns;
                numbers[first..first + columns].to_vec()
            };
            (0..rows).map(row).collect()
        })
        .collect()
}

/// An array of what `f` makes of each matrix, of sizes `inner`, behind the dimensions before.
pub fn each(x: &Array, inner: &[usize], f: impl Fn(&Matrix) -> Vec<f64>) -> Array {
    let lead = &x.shape()[..x.shape().len() - 2];
    let shape = [lead, inner].concat();
    let values = matrices(x).iter().flat_map(f).map(Number::Float).collect();
    Array::new(x.dtype(), &shape, values)
}

/// The same of two arrays.
pub fn each_pair(
    a: &Array,
    b: &Array,
    inner: &[usize],
    f: impl Fn(&Matrix, &Matrix) -> Vec<f64>,
) -> Array {
    let lead = &a.shape()[..a.shape().len() - 2];
    let shape = [lead, inner].concat();
    let pairs = matrices(a).into_iter().zip(matrices(b));
    let values = pairs.flat_map(|(a, b)| f(&a, &b)).map(Number::Float).collect();
    Array::new(a.dtype(), &shape, values)
}

/// Zeros of int32, one for each matrix: nothing was wrong.
pub fn all_well(x: &Array) -> Array {
    Array::zeros(DType::I32, &x.shape()[..x.shape().len() - 2])
}

/// By rows, one after the other.
pub fn flat(x: Matrix) -> Vec<f64> {
    x.into_iter().flatten().collect()
}

/// Ones on the diagonal.
pub fn identity(size: usize) -> Matrix {
    (0..size).map(|i| (0..size).map(|j| f64::from(u8::from(i == j))).collect()).collect()
}

/// The transpose.
pub fn turned(x: &Matrix) -> Matrix {
    let columns = x.first().map_or(0, Vec::len);
    (0..columns).map(|j| x.iter().map(|row| row[j]).collect()).collect()
}

/// The product of two matrices.
pub fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let bt = turned(b);
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    a.iter().map(|row| bt.iter().map(|column| dot(row, column)).collect()).collect()
}

/// The matrix with `shift` added on its diagonal.
pub fn shifted(x: &Matrix, shift: f64) -> Matrix {
    let mut x = x.clone();
    for (i, row) in x.iter_mut().enumerate() {
        if let Some(value) = row.get_mut(i) {
            *value += shift;
        }
    }
    x
}

/// A symmetric positive-definite matrix: `A A'` with `shift` on its diagonal.
pub fn definite(x: &Matrix, shift: f64) -> Matrix {
    shifted(&product(x, &turned(x)), shift)
}

/// X of `A X = B`, and the determinant of A.
pub fn eliminate(a: &Matrix, b: &Matrix) -> (Matrix, f64) {
    let size = a.len();
    let (mut a, mut b, mut determinant) = (a.clone(), b.clone(), 1.0);
    for k in 0..size {
        let largest = (k..size).max_by(|&i, &j| a[i][k].abs().total_cmp(&a[j][k].abs()));
        let pivot = largest.expect("a row");
        if pivot != k {
            a.swap(k, pivot);
            b.swap(k, pivot);
            determinant = -determinant;
        }
        determinant *= a[k][k];
        for row in (0..size).filter(|&row| row != k) {
            let (factor, above, right) = (a[row][k] / a[k][k], a[k].clone(), b[k].clone());
            a[row].iter_mut().zip(&above).for_each(|(x, above)| *x -= factor * above);
            b[row].iter_mut().zip(&right).for_each(|(x, right)| *x -= factor * right);
        }
    }
    for (row, values) in b.iter_mut().enumerate() {
        values.iter_mut().for_each(|value| *value /= a[row][row]);
    }
    (b, determinant)
}

/// The inverse, by elimination.
pub fn inverse(a: &Matrix) -> Matrix {
    eliminate(a, &identity(a.len())).0
}

/// Cholesky's lower factor.
pub fn cholesky(a: &Matrix) -> Matrix {
    let size = a.len();
    let mut l = vec![vec![0.0; size]; size];
    for i in 0..size {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| l[i][k] * l[j][k]).sum();
            l[i][j] = if i == j { (a[i][i] - sum).sqrt() } else { (a[i][j] - sum) / l[j][j] };
        }
    }
    l
}

/// Eigenvalues of a symmetric matrix in rising order, and its vectors as columns: every pair of
/// rows turned until nothing is left off the diagonal.
pub fn eigen(a: &Matrix) -> (Vec<f64>, Matrix) {
    let size = a.len();
    let (mut a, mut vectors) = (a.clone(), identity(size));
    for _ in 0..60 {
        for p in 0..size {
            for q in p + 1..size {
                if a[p][q] == 0.0 {
                    continue;
                }
                let angle = 0.5 * (2.0 * a[p][q]).atan2(a[q][q] - a[p][p]);
                let (sin, cos) = angle.sin_cos();
                let mut turn = identity(size);
                (turn[p][p], turn[q][q], turn[p][q], turn[q][p]) = (cos, cos, sin, -sin);
                a = product(&turned(&turn), &product(&a, &turn));
                vectors = product(&vectors, &turn);
            }
        }
    }
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&i, &j| a[i][i].total_cmp(&a[j][j]));
    let values = order.iter().map(|&i| a[i][i]).collect();
    let vectors = vectors.iter().map(|row| order.iter().map(|&i| row[i]).collect()).collect();
    (values, vectors)
}

/// Singular values in falling order.
pub fn singular_values(a: &Matrix) -> Vec<f64> {
    let at = turned(a);
    let square = if a.len() < at.len() { product(a, &at) } else { product(&at, a) };
    let (mut values, _) = eigen(&square);
    values.reverse();
    values.into_iter().map(|value| value.max(0.0).sqrt()).collect()
}

/// `V f(values) V'` of a symmetric matrix.
pub fn function(a: &Matrix, f: impl Fn(f64) -> f64) -> Matrix {
    let (values, vectors) = eigen(a);
    let mut scaled = vectors.clone();
    for row in &mut scaled {
        row.iter_mut().zip(&values).for_each(|(x, value)| *x *= f(*value));
    }
    product(&scaled, &turned(&vectors))
}

/// The pseudoinverse of a matrix whose columns, or rows, are independent.
pub fn pseudoinverse(a: &Matrix) -> Matrix {
    let at = turned(a);
    if a.len() >= at.len() {
        product(&inverse(&product(&at, a)), &at)
    } else {
        product(&at, &inverse(&product(a, &at)))
    }
}

/// The sum of the powers of a matrix by their factorials.
pub fn exponential(a: &Matrix) -> Matrix {
    let (mut sum, mut term) = (identity(a.len()), identity(a.len()));
    for n in 1..80 {
        term = product(&term, a);
        term.iter_mut().flatten().for_each(|value| *value /= f64::from(n));
        for (row, more) in sum.iter_mut().zip(&term) {
            row.iter_mut().zip(more).for_each(|(x, y)| *x += y);
        }
    }
    sum
}
