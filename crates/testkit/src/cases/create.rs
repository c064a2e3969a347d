//! Tensors from nothing. Random ones are in `random.rs`.

use plimsoll_core::DType;
use plimsoll_tensor::Tensor;

use super::input::any;
use super::{Case, NUMBERS};
use crate::oracle::create;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("full", "torch.full((2, 3), 7, dtype=dtype)", [])
            .run(|t| Tensor::full(&[2, 3], 7, (t.dtype, t.device)))
            .oracle(|x| create::full(x.dtype, &[2, 3], 7i64)),
        Case::new("full", "torch.full((), 1.5, dtype=dtype)", [])
            .run(|t| Tensor::full(&[], 1.5, (t.dtype, t.device)))
            .oracle(|x| create::full(x.dtype, &[], 1.5)),
        Case::new("full", "torch.full((0, 2), 1, dtype=dtype)", [])
            .run(|t| Tensor::full(&[0, 2], 1, (t.dtype, t.device)))
            .oracle(|x| create::full(x.dtype, &[0, 2], 1i64)),
        Case::new("zeros", "torch.zeros((2, 3), dtype=dtype)", [])
            .run(|t| Tensor::zeros(&[2, 3], (t.dtype, t.device)))
            .oracle(|x| create::full(x.dtype, &[2, 3], 0i64)),
        Case::new("ones", "torch.ones((3, 1, 2), dtype=dtype)", [])
            .run(|t| Tensor::ones(&[3, 1, 2], (t.dtype, t.device)))
            .oracle(|x| create::full(x.dtype, &[3, 1, 2], 1i64)),
        Case::new("arange", "torch.arange(2, 11, 3, dtype=dtype)", [])
            .run(|t| Tensor::arange(2, 11, 3, (t.dtype, t.device)))
            .oracle(|x| create::arange(x.dtype, 2.0, 11.0, 3.0))
            .dtypes(&NUMBERS),
        Case::new("arange", "torch.arange(0, 200, 1, dtype=dtype)", [])
            .run(|t| Tensor::arange(0, 200, 1, (t.dtype, t.device)))
            .oracle(|x| create::arange(x.dtype, 0.0, 200.0, 1.0))
            .dtypes(&NUMBERS),
        Case::new("arange", "torch.arange(5, 0, -2, dtype=dtype)", [])
            .run(|t| Tensor::arange(5, 0, -2, (t.dtype, t.device)))
            .oracle(|x| create::arange(x.dtype, 5.0, 0.0, -2.0))
            .dtypes(&NUMBERS),
        Case::new("arange", "torch.arange(0.5, 2.0, 0.25, dtype=dtype)", [])
            .run(|t| Tensor::arange(0.5, 2.0, 0.25, (t.dtype, t.device)))
            .oracle(|x| create::arange(x.dtype, 0.5, 2.0, 0.25))
            .dtypes(&[DType::F16, DType::BF16, DType::F32, DType::F64])
            .taking_only_these(),
        Case::new("eye", "torch.eye(3, dtype=dtype)", [])
            .run(|t| Tensor::eye(3, (t.dtype, t.device)))
            .oracle(|x| create::eye(x.dtype, 3)),
        Case::new("eye", "torch.eye(0, dtype=dtype)", [])
            .run(|t| Tensor::eye(0, (t.dtype, t.device)))
            .oracle(|x| create::eye(x.dtype, 0)),
        Case::new("zeros_like", "torch.zeros_like(a)", [any(&[2, 3, 4])])
            .run(|t| t[0].zeros_like())
            .oracle(|x| create::full(x.dtype, &[2, 3, 4], 0i64)),
        Case::new("ones_like", "torch.ones_like(a)", [any(&[2, 3, 4])])
            .run(|t| t[0].ones_like())
            .oracle(|x| create::full(x.dtype, &[2, 3, 4], 1i64)),
        Case::new("full_like", "torch.full_like(a, 5)", [any(&[2, 3, 4])])
            .run(|t| t[0].full_like(5))
            .oracle(|x| create::full(x.dtype, &[2, 3, 4], 5i64)),
    ]
}
