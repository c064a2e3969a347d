// Functions of one input of the long tail: exponentials, angles, rounding, questions. x is the
// element, T what it is computed in.

#define REAL(name, value) TAIL_REAL(name, return value;)

REAL(exp2, ::exp2(x))
REAL(expm1, ::expm1(x))
REAL(log10, ::log10(x))
REAL(log2, ::log2(x))
REAL(acos, ::acos(x))
REAL(acosh, ::acosh(x))
REAL(angle, x != x ? x : x < 0 ? (T)3.14159265358979323846 : (T)0)
REAL(asin, ::asin(x))
REAL(asinh, ::asinh(x))
REAL(atan, ::atan(x))
REAL(atanh, ::atanh(x))
REAL(cos, ::cos(x))
REAL(cosh, ::cosh(x))
REAL(sin, ::sin(x))
REAL(sinh, ::sinh(x))
REAL(tan, ::tan(x))

#define NUMBER(name, value) REAL(name, value) TAIL_WHOLE(name, return x;)

NUMBER(ceil, ::ceil(x))
NUMBER(floor, ::floor(x))
NUMBER(round, ::rint(x))
NUMBER(trunc, ::trunc(x))
REAL(frac, x - ::trunc(x))
// p is the number of decimals.
TAIL_REAL(round_decimals, {
  T ten = (T)::pow(10.0, (f64)(p < 0 ? -p : p));
  return p < 0 ? ::rint(x / ten) * ten : ::rint(x * ten) / ten;
})

// Answers are 0 and 1.
#define QUESTION(name, real, whole) TAIL_REAL(name, return (T)(real);) TAIL_WHOLE(name, return (T)(whole);)

QUESTION(isfinite, x - x == 0, 1)
QUESTION(isinf, x == x && x - x != 0, 0)
QUESTION(isnan, x != x, 0)
QUESTION(isneginf, x < 0 && x == x && x - x != 0, 0)
QUESTION(isposinf, x > 0 && x - x != 0, 0)
QUESTION(logical_not, x == 0, x == 0)
QUESTION(signbit, ::copysign((T)1, x) < 0, x < 0)

// p, q and r stand for NaN, infinity and minus infinity.
NUMBER(nan_to_num, x != x ? p : x - x == 0 ? x : x > 0 ? q : r)

// p says which part: the fraction, or the exponent of 2.
TAIL_REAL(frexp, {
  int exponent = 0;
  T fraction = ::frexp(x, &exponent);
  return p == 0 ? fraction : x - x == 0 ? (T)exponent : (T)0;
})
