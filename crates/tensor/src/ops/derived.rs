//! Rows of elementwise operations that are made of others, and of those that give a real tensor
//! back as it is. They have no kernels; the methods are in `api/derived.rs`, `api/numeric.rs` and
//! `api/activation.rs`.

use plimsoll_core::DType;

use crate::operation::{DTypes, Home, OnCuda, OpInfo, Out};

/// A composition that has a derivative by its parts.
const COMPOSED: OpInfo = OpInfo {
    family: "derived",
    differentiable: true,
    cuda: OnCuda::Composed,
    dtypes: DTypes::ALL,
    ..OpInfo::BARE
};

const fn new(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { name, signatures, ..COMPOSED }
}

/// With forms in place and with `out=`, which are copies.
const fn written(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { in_place: true, out: Out::Cast, ..new(name, signatures) }
}

/// A function of numbers.
const fn number(info: OpInfo) -> OpInfo {
    OpInfo { dtypes: DTypes::NUMBERS, ..info }
}

/// Without a derivative.
const fn flat(info: OpInfo) -> OpInfo {
    OpInfo { differentiable: false, ..info }
}

/// An activation of floats in `torch.nn.functional`.
const fn functional(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { home: Home::Functional, dtypes: DTypes::FLOATS, ..new(name, signatures) }
}

/// An activation of floats that `torch` has too.
const fn activation(name: &'static str, signatures: &'static [&'static str]) -> OpInfo {
    OpInfo { dtypes: DTypes::FLOATS, ..new(name, signatures) }
}

static TRUE_DIVIDE: OpInfo =
    written("true_divide", &["true_divide(Tensor self, Tensor|Scalar other) -> Tensor"]);
static FLOOR_DIVIDE: OpInfo = number(flat(written(
    "floor_divide",
    &["floor_divide(Tensor self, Tensor|Scalar other) -> Tensor"],
)));
static RSUB: OpInfo =
    number(new("rsub", &["rsub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor"]));
static FLOAT_POWER: OpInfo = written(
    "float_power",
    &[
        "float_power(Tensor self, Tensor|Scalar exponent) -> Tensor",
        "float_power(Scalar self, Tensor exponent) -> Tensor",
    ],
);
static LDEXP: OpInfo = written("ldexp", &["ldexp(Tensor self, Tensor other) -> Tensor"]);
static ISCLOSE: OpInfo = flat(new(
    "isclose",
    &[
        "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
    ],
));
static ALLCLOSE: OpInfo = flat(new(
    "allclose",
    &[
        "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
    ],
));
static EQUAL: OpInfo = flat(new("equal", &["equal(Tensor self, Tensor other) -> bool"]));
static SQUARE: OpInfo = written("square", &["square(Tensor self) -> Tensor"]);
static DEG2RAD: OpInfo = written("deg2rad", &["deg2rad(Tensor self) -> Tensor"]);
static RAD2DEG: OpInfo = written("rad2deg", &["rad2deg(Tensor self) -> Tensor"]);
static POSITIVE: OpInfo = number(new("positive", &["positive(Tensor self) -> Tensor"]));
static ISREAL: OpInfo = flat(new("isreal", &["isreal(Tensor self) -> Tensor"]));
static MVLGAMMA: OpInfo = OpInfo {
    dtypes: DTypes::of(&[DType::F32, DType::F64]),
    ..written("mvlgamma", &["mvlgamma(Tensor self, int p) -> Tensor"])
};
static SGN: OpInfo = OpInfo { out: Out::Exact, ..written("sgn", &["sgn(Tensor self) -> Tensor"]) };
static CONJ: OpInfo = new("conj", &["conj(Tensor self) -> Tensor"]);
static CONJ_PHYSICAL: OpInfo = OpInfo {
    out: Out::Exact,
    ..written("conj_physical", &["conj_physical(Tensor self) -> Tensor"])
};
static REAL: OpInfo = new("real", &["real(Tensor self) -> Tensor"]);
static RESOLVE_CONJ: OpInfo = new("resolve_conj", &["resolve_conj(Tensor self) -> Tensor"]);
static RESOLVE_NEG: OpInfo = new("resolve_neg", &["resolve_neg(Tensor self) -> Tensor"]);
static CELU: OpInfo =
    activation("celu", &["celu(Tensor self, float alpha=1.0, bool inplace=False) -> Tensor"]);
static SELU: OpInfo = activation("selu", &["selu(Tensor self, bool inplace=False) -> Tensor"]);
static RRELU: OpInfo = activation(
    "rrelu",
    &[
        "rrelu(Tensor self, float lower=0.125, float upper=0.3333333333333333, bool training=False, bool \
         inplace=False, *, Generator? generator=None) -> Tensor",
    ],
);
static RELU6: OpInfo = functional("relu6", &["relu6(Tensor input, bool inplace=False) -> Tensor"]);
static GLU: OpInfo = functional("glu", &["glu(Tensor input, int dim=-1) -> Tensor"]);
static SOFTSIGN: OpInfo = functional("softsign", &["softsign(Tensor input) -> Tensor"]);
static TANHSHRINK: OpInfo = functional("tanhshrink", &["tanhshrink(Tensor input) -> Tensor"]);
static SOFTMIN: OpInfo = functional(
    "softmin",
    &["softmin(Tensor input, int? dim=None, int _stacklevel=3, DType? dtype=None) -> Tensor"],
);

pub(crate) static OPS: &[&OpInfo] = &[
    &TRUE_DIVIDE,
    &FLOOR_DIVIDE,
    &RSUB,
    &FLOAT_POWER,
    &LDEXP,
    &ISCLOSE,
    &ALLCLOSE,
    &EQUAL,
    &SQUARE,
    &DEG2RAD,
    &RAD2DEG,
    &POSITIVE,
    &ISREAL,
    &MVLGAMMA,
    &SGN,
    &CONJ,
    &CONJ_PHYSICAL,
    &REAL,
    &RESOLVE_CONJ,
    &RESOLVE_NEG,
    &CELU,
    &SELU,
    &RRELU,
    &RELU6,
    &GLU,
    &SOFTSIGN,
    &TANHSHRINK,
    &SOFTMIN,
];
