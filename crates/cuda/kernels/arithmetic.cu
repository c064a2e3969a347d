// The rarer functions of two operands, x and y.

#define REAL(name, value) TAIL_REAL(name, return value;)
#define BOTH(name, real, whole) REAL(name, real) TAIL_WHOLE(name, return whole;)

REAL(atan2, ::atan2(x, y))
REAL(copysign, ::copysign(x, y))
REAL(hypot, ::hypot(x, y))
BOTH(fmax, x > y || y != y ? x : y, x > y ? x : y)
BOTH(fmin, x < y || y != y ? x : y, x < y ? x : y)
BOTH(heaviside, x == 0 ? y : (T)(x > 0), x == 0 ? y : (T)(x > 0))
// Integers divided by zero give 0 here; the CPU says so.
BOTH(fmod, ::fmod(x, y), y == 0 ? 0 : y == -1 ? 0 : x % y)
TAIL_REAL(remainder, {
  T left = ::fmod(x, y);
  return left != 0 && (y < 0) != (left < 0) ? left + y : left;
})
TAIL_WHOLE(remainder, {
  T left = y == 0 || y == -1 ? 0 : x % y;
  return left != 0 && (y < 0) != (left < 0) ? left + y : left;
})
REAL(logaddexp, x == y && x - x != 0 ? x : (x != x || y != y) ? x + y : ::fmax(x, y) + ::log1p(::exp(-::fabs(x - y))))
REAL(logaddexp2,
     x == y && x - x != 0 ? x : (x != x || y != y) ? x + y
                                                   : ::fmax(x, y) + ::log1p(::exp2(-::fabs(x - y))) * (T)1.44269504088896340736)
REAL(xlogy, y != y ? y : x == 0 ? (T)0 : x * ::log(y))

// To the precision of the output's dtype.
__device__ f32 rounded(f32 x, i32 code) {
  return code == F16 ? load(Store<f16>::from(x)) : code == BF16 ? load(Store<bf16>::from(x)) : x;
}
__device__ f64 rounded(f64 x, i32 code) { return x; }

// Quotients made whole: rounded down if q says so, else toward zero. Down goes by what is left
// over, so that a quotient that rounds up to a whole number is not one too large; a half type's
// quotient is rounded before it is cut. Integers divided by zero give 0.
TAIL_REAL(div, {
  if (q == 0) return ::trunc(rounded(x / y, (i32)(codes & 255)));
  if (y == 0) return x / y;
  T left = ::fmod(x, y);
  T quotient = (x - left) / y;
  if (left != 0 && (y < 0) != (left < 0)) quotient -= 1;
  if (quotient == 0) return ::copysign((T)0, x / y);
  T down = ::floor(quotient);
  return quotient - down > (T)0.5 ? down + 1 : down;
})
TAIL_WHOLE(div, {
  if (y == 0) return 0;
  if (y == -1) return (i64)(0 - (u64)x);
  i64 quotient = x / y;
  return q != 0 && x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
})

// Squares, cubes and roots that every element shares are exact or nearly so.
TAIL_REAL(pow, {
  if (!b) {
    if (y == 2) return x * x;
    if (y == 3) return x * x * x;
    if (y == (T)0.5) return ::sqrt(x);
    if (y == (T)-0.5) return 1 / ::sqrt(x);
    if (y == -1) return 1 / x;
  }
  return ::pow(x, y);
})
// What is left of 1 over a power: 0, or 1 and -1 for the bases 1 and -1.
TAIL_WHOLE(pow, {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
  u64 power = 1, square = (u64)x, left = (u64)y;
  for (; left > 0; left >>= 1) {
    if (left & 1) power *= square;
    square *= square;
  }
  return (i64)power;
})

// The next number of the output's dtype. A half type's bits of one sign are in the order of their
// values.
__device__ f64 next(f64 x, f64 y) { return ::nextafter(x, y); }
__device__ f32 next(f32 x, f32 y) { return ::nextafterf(x, y); }
template <typename H> __device__ f32 next_half(f32 x, f32 y) {
  if (x != x || y != y) return x + y;
  if (x == y) return y;
  H h = Store<H>::from(x);
  if (x == 0) h.bits = y < 0 ? 0x8001 : 1;
  else h.bits += (x < y) == (x > 0) ? 1 : -1;
  return load(h);
}
KERNEL(nextafter_f64)(i64 n, Strided s, i32 dense, u64 codes, void *out, const void *a, const void *b, const void *c,
                                         f64 ra, f64 rb, f64 rc, i64 wa, i64 wb, i64 wc, f64 p, f64 q, f64 r) {
  in_turn();
  Numbers<f64> given = {ra, rb, rc};
  tail<false, f64>(n, s, dense, codes, out, a, b, c, given, [](f64 x, f64 y, f64) { return next(x, y); });
}
KERNEL(nextafter_f32)(i64 n, Strided s, i32 dense, u64 codes, void *out, const void *a, const void *b, const void *c,
                                         f64 ra, f64 rb, f64 rc, i64 wa, i64 wb, i64 wc, f64 p, f64 q, f64 r) {
  in_turn();
  Numbers<f32> given = {(f32)ra, (f32)rb, (f32)rc};
  i32 code = (i32)(codes & 255);
  tail<false, f32>(n, s, dense, codes, out, a, b, c, given, [=](f32 x, f32 y, f32) {
    return code == F16 ? next_half<f16>(x, y) : code == BF16 ? next_half<bf16>(x, y) : next(x, y);
  });
}
