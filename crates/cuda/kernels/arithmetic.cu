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
extern "C" __global__ void nextafter_f64(i64 n, Strided s, i32 dense, u64 codes, void *out, const void *a, const void *b, const void *c,
                                         f64 ra, f64 rb, f64 rc, i64 wa, i64 wb, i64 wc, f64 p, f64 q, f64 r) {
  Numbers<f64> given = {ra, rb, rc};
  tail<f64>(n, s, dense, codes, out, a, b, c, given, [](f64 x, f64 y, f64) { return next(x, y); });
}
extern "C" __global__ void nextafter_f32(i64 n, Strided s, i32 dense, u64 codes, void *out, const void *a, const void *b, const void *c,
                                         f64 ra, f64 rb, f64 rc, i64 wa, i64 wb, i64 wc, f64 p, f64 q, f64 r) {
  Numbers<f32> given = {(f32)ra, (f32)rb, (f32)rc};
  i32 code = (i32)(codes & 255);
  tail<f32>(n, s, dense, codes, out, a, b, c, given, [=](f32 x, f32 y, f32) {
    return code == F16 ? next_half<f16>(x, y) : code == BF16 ? next_half<bf16>(x, y) : next(x, y);
  });
}
