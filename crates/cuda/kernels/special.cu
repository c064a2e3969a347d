// Special functions, all of them computed in f64, which these GPUs are fast in; formulas as in the
// CPU's `special/`.

#undef TAIL_QUADS
#define TAIL_QUADS false
// One kernel serves all floats.
#define ONE(name, value) TAIL_IN(name, f64, { f64 v = x; return value; })
#define TWO(name, value) TAIL_IN(name, f64, { f64 v = x, w = y; return value; })

__device__ const f64 PI = 3.14159265358979323846;
__device__ __forceinline__ f64 not_a_number() { return __longlong_as_double(0x7ff8000000000000LL); }
__device__ __forceinline__ f64 infinity() { return __longlong_as_double(0x7ff0000000000000LL); }
__device__ __forceinline__ bool finite(f64 x) { return x - x == 0; }

__device__ f64 digamma_of(f64 x) {
  f64 sum = 0;
  if (x == 0) return ::copysign(infinity(), -x);
  if (x < 0) {
    if (x == ::trunc(x)) return not_a_number();
    sum = -PI / ::tan(PI * (x - ::trunc(x)));
    x = 1 - x;
  }
  for (; x < 10; x += 1) sum -= 1 / x;
  const f64 series[7] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
  f64 square = 1 / (x * x), rest = 0;
  for (int k = 6; k >= 0; --k) rest = (rest + series[k]) * square;
  return sum + ::log(x) - 0.5 / x - rest;
}

__device__ f64 zeta_of(f64 x, f64 q) {
  if (x == 1) return infinity();
  if (x != x || q != q || x < 1) return not_a_number();
  if (q <= 0) {
    if (q == ::floor(q)) return infinity();
    if (x != ::floor(x)) return not_a_number();
  }
  f64 a = q, sum = 0;
  for (int k = 0; k < 12 || a <= 12; ++k) {
    f64 term = ::pow(a, -x);
    sum += term;
    a += 1;
    if (::fabs(term) < 1e-17 * ::fabs(sum)) return sum;
  }
  const f64 divisors[12] = {12, -720, 30240, -1209600, 47900160, -1.8924375803183792e9, 7.47242496e10, -2.950130727918164e12,
                            1.1646782814350067e14, -4.5979787224074726e15, 1.8152105401943546e17, -7.166165256175667e18};
  f64 last = ::pow(a, -x);
  sum += last * a / (x - 1) + 0.5 * last;
  f64 factor = 1, power = last, order = 0;
  for (int k = 0; k < 12; ++k) {
    factor *= x + order;
    power /= a;
    f64 term = factor * power / divisors[k];
    sum += term;
    if (::fabs(term) < 1e-17 * ::fabs(sum)) break;
    factor *= x + order + 1;
    power /= a;
    order += 2;
  }
  return sum;
}

__device__ f64 trigamma_of(f64 x) {
  // The series of zeta would multiply nothing by infinity.
  if (x >= 0.5) return isinf(x) ? 0 : zeta_of(2, x);
  f64 sine = ::sin(PI * x);
  return PI * PI / (sine * sine) - zeta_of(2, 1 - x);
}

__device__ f64 polygamma_of(f64 x, i64 n) {
  if (n == 0) return digamma_of(x);
  if (n == 1) return trigamma_of(x);
  return (n % 2 == 0 ? -1.0 : 1.0) * ::exp(::lgamma(n + 1.0)) * zeta_of(n + 1.0, x);
}

// The incomplete gamma function below x, or above it.
__device__ f64 incomplete(f64 a, f64 x, bool above) {
  f64 lower = 0;
  if (a < 0 || x < 0 || a != a || x != x) return not_a_number();
  if (a == 0) lower = x > 0 ? 1 : not_a_number();
  else if (x == 0) lower = 0;
  else if (!finite(a)) lower = finite(x) ? 0 : not_a_number();
  else if (!finite(x)) lower = 1;
  else {
    f64 front = ::exp(a * ::log(x) - x - ::lgamma(a));
    if (x <= 1 || x <= a) {
      f64 term = 1 / a, sum = term, at = a;
      for (int k = 0; k < 100000; ++k) {
        at += 1;
        term *= x / at;
        sum += term;
        if (term < sum * 1e-17) break;
      }
      lower = sum * front;
    } else {
      const f64 tiny = 1e-300;
      f64 b = x + 1 - a, c = 1 / tiny, d = 1 / (b == 0 ? tiny : b), fraction = d;
      for (int k = 1; k < 100000; ++k) {
        f64 step = -(f64)k * (k - a);
        b += 2;
        d = step * d + b;
        c = b + step / c;
        d = 1 / (d == 0 ? tiny : d);
        c = c == 0 ? tiny : c;
        f64 change = d * c;
        fraction *= change;
        if (::fabs(change - 1) < 1e-16) break;
      }
      return above ? fraction * front : 1 - fraction * front;
    }
  }
  return above ? 1 - lower : lower;
}

__device__ f64 modified_series(f64 v, f64 x) {
  f64 term = v == 0 ? 1 : 0.5 * x, sum = term;
  for (f64 k = 1; ::fabs(term) > ::fabs(sum) * 1e-17; k += 1) {
    term *= 0.25 * x * x / (k * (k + v));
    sum += term;
  }
  return sum;
}

// The modified function of the first kind, over exp(|x|) if it is scaled.
__device__ f64 modified(f64 v, f64 x, bool scaled) {
  if (x != x) return x;
  f64 far = ::fabs(x), value;
  if (!finite(x)) value = scaled ? 0 : infinity();
  else if (far < 30) value = modified_series(v, far) * (scaled ? ::exp(-far) : 1);
  else {
    f64 term = 1, sum = 1;
    for (f64 k = 1; ::fabs(term) > 1e-17 && k < 60; k += 1) {
      f64 odd = 2 * k - 1;
      term *= -(4 * v * v - odd * odd) / (8 * k * far);
      sum += term;
    }
    value = sum / ::sqrt(2 * PI * far);
    f64 half = ::exp(0.5 * far);
    if (!scaled) value = half * value * half;
  }
  return v == 1 && x < 0 ? -value : value;
}

// exp(x) times the modified function of the second kind, for x from 2 up.
__device__ f64 second_kind_far(f64 v, f64 x) {
  f64 sum = 0.5, end = ::acosh(1 + 42 / x);
  for (f64 t = 0.0625; t <= end; t += 0.0625) sum += ::exp(-x * (::cosh(t) - 1)) * ::cosh(v * t);
  return sum * 0.0625;
}

__device__ f64 second_kind(f64 v, f64 x, bool scaled) {
  if (x == 0) return infinity();
  if (x < 0 || x != x) return not_a_number();
  if (x > 2) return second_kind_far(v, x) * (scaled ? 1 : ::exp(-x));
  const f64 euler = 0.5772156649015329;
  f64 quarter = 0.25 * x * x, term = 1, lower = 0, upper = 1, sum = v == 0 ? 0 : 1 - 2 * euler;
  for (f64 k = 1; k < 40 && term > 1e-18; k += 1) {
    term *= quarter / (k * (k + v));
    lower += 1 / k;
    upper += 1 / (k + 1);
    sum += term * (v == 0 ? lower : lower + upper - 2 * euler);
  }
  f64 near = ::log(0.5 * x);
  f64 value = v == 0 ? sum - (near + euler) * modified_series(0, x) : 1 / x + near * modified_series(1, x) - 0.25 * x * sum;
  return scaled ? value * ::exp(x) : value;
}

__device__ f64 airy(f64 x) {
  if (!finite(x)) return not_a_number();
  f64 zeta = 2.0 / 3.0 * ::fabs(x) * ::sqrt(::fabs(x));
  if (x > 103.892) return 0;
  if (x > 2.5) return ::sqrt(x / 3) / PI * second_kind_far(1.0 / 3.0, zeta) * ::exp(-zeta);
  if (x > -7.5) {
    f64 cube = x * x * x, f = 1, g = x, even = 1, odd = x;
    for (f64 k = 3; k < 300 && (::fabs(f) > 1e-18 * ::fabs(even) || ::fabs(g) > 1e-18 * ::fabs(odd)); k += 3) {
      f *= cube / ((k - 1) * k);
      g *= cube / (k * (k + 1));
      even += f;
      odd += g;
    }
    return 0.3550280538878172 * even - 0.2588194037928068 * odd;
  }
  f64 term = 1, cosine = 1, sine = 0;
  for (int k = 1; k < 30 && ::fabs(term) > 1e-17; ++k) {
    f64 next = term * (6.0 * k - 5) * (6.0 * k - 1) / (72.0 * k * zeta);
    if (next > term) break;
    term = next;
    if (k % 4 == 1) sine += term;
    else if (k % 4 == 2) cosine -= term;
    else if (k % 4 == 3) sine -= term;
    else cosine += term;
  }
  f64 phase = zeta - PI / 4;
  return (::cos(phase) * cosine + ::sin(phase) * sine) / (::sqrt(PI) * ::sqrt(::sqrt(-x)));
}

// Orthogonal polynomials by recurrence: member n of a family that starts with 1 and `first`.
enum Family { CHEBYSHEV, HERMITE_H, HERMITE_HE, LAGUERRE, LEGENDRE };
__device__ f64 recur(Family family, f64 x, f64 n, f64 first) {
  n = ::trunc(n);
  if (!(n >= 0)) return 0;
  if (n == 0) return 1;
  f64 before = 1, now = first;
  for (f64 k = 1; k < n && finite(now); k += 1) {
    f64 next = family == CHEBYSHEV    ? 2 * x * now - before
               : family == HERMITE_H  ? 2 * (x * now - k * before)
               : family == HERMITE_HE ? x * now - k * before
               : family == LAGUERRE   ? ((2 * k + 1 - x) * now - k * before) / (k + 1)
                                      : ((2 * k + 1) * x * now - k * before) / (k + 1);
    before = now;
    now = next;
  }
  return x != x ? x : now;
}
__device__ f64 chebyshev_t(f64 x, f64 n) {
  return n > 40 && ::fabs(x) < 1 ? ::cos(::trunc(n) * ::acos(x)) : recur(CHEBYSHEV, x, n, x);
}
__device__ f64 chebyshev_u(f64 x, f64 n) {
  f64 angle = ::acos(x);
  return n > 40 && ::fabs(x) < 1 ? ::sin((::trunc(n) + 1) * angle) / ::sin(angle) : recur(CHEBYSHEV, x, n, 2 * x);
}
__device__ f64 chebyshev_v(f64 x, f64 n) {
  f64 half = 0.5 * ::acos(x);
  return n > 40 && ::fabs(x) < 1 ? ::cos((2 * ::trunc(n) + 1) * half) / ::cos(half) : recur(CHEBYSHEV, x, n, 2 * x - 1);
}
__device__ f64 chebyshev_w(f64 x, f64 n) {
  f64 half = 0.5 * ::acos(x);
  return n > 40 && ::fabs(x) < 1 ? ::sin((2 * ::trunc(n) + 1) * half) / ::sin(half) : recur(CHEBYSHEV, x, n, 2 * x + 1);
}

__device__ f64 log_normal_mass(f64 x) {
  const f64 half_root = 0.70710678118654752440;
  return x < -1 ? ::log(0.5 * ::erfcx(-x * half_root)) - 0.5 * x * x : ::log1p(-0.5 * ::erfc(x * half_root));
}
// p is how close to 0 and 1 an element is let, or NaN.
__device__ f64 odds(f64 x, f64 eps) {
  if (eps == eps) x = x < eps ? eps : x > 1 - eps ? 1 - eps : x;
  return ::log(x / (1 - x));
}

ONE(digamma, digamma_of(v))
ONE(erfc, ::erfc(v))
ONE(erfinv, ::erfinv(v))
ONE(i0, modified(0, v, false))
ONE(lgamma, ::lgamma(v))
ONE(sinc, v == 0 ? 1 : ::sin(PI * v) / (PI * v))
ONE(polygamma, polygamma_of(v, (i64)p))
ONE(logit, odds(v, (f64)p))
ONE(special_airy_ai, airy(v))
ONE(special_bessel_j0, ::j0(v))
ONE(special_bessel_j1, ::j1(v))
ONE(special_bessel_y0, v == 0 ? -infinity() : v < 0 ? not_a_number() : ::y0(v))
ONE(special_bessel_y1, v == 0 ? -infinity() : v < 0 ? not_a_number() : ::y1(v))
ONE(special_entr, v != v ? v : v > 0 ? -v * ::log(v) : v == 0 ? 0 : -infinity())
ONE(special_erfcx, ::erfcx(v))
ONE(special_i0e, modified(0, v, true))
ONE(special_i1, modified(1, v, false))
ONE(special_i1e, modified(1, v, true))
ONE(special_log_ndtr, log_normal_mass(v))
ONE(special_modified_bessel_i0, modified(0, v, false))
ONE(special_modified_bessel_i1, modified(1, v, false))
ONE(special_modified_bessel_k0, second_kind(0, v, false))
ONE(special_modified_bessel_k1, second_kind(1, v, false))
ONE(special_ndtr, ::normcdf(v))
ONE(special_ndtri, v < 0 || v > 1 || v != v ? not_a_number() : ::normcdfinv(v))
ONE(special_scaled_modified_bessel_k0, second_kind(0, v, true))
ONE(special_scaled_modified_bessel_k1, second_kind(1, v, true))
ONE(special_spherical_bessel_j0, v == 0 ? 1 : v == v && !finite(v) ? 0 : ::sin(v) / v)
TWO(igamma, incomplete(v, w, false))
TWO(igammac, incomplete(v, w, true))
TWO(special_xlog1py, w != w ? w : v == 0 ? 0 : v * ::log1p(w))
TWO(special_zeta, zeta_of(v, w))
TWO(special_chebyshev_polynomial_t, chebyshev_t(v, w))
TWO(special_chebyshev_polynomial_u, chebyshev_u(v, w))
TWO(special_chebyshev_polynomial_v, chebyshev_v(v, w))
TWO(special_chebyshev_polynomial_w, chebyshev_w(v, w))
TWO(special_hermite_polynomial_h, recur(HERMITE_H, v, w, 2 * v))
TWO(special_hermite_polynomial_he, recur(HERMITE_HE, v, w, v))
TWO(special_laguerre_polynomial_l, recur(LAGUERRE, v, w, 1 - v))
TWO(special_legendre_polynomial_p, recur(LEGENDRE, v, w, v))
TWO(special_shifted_chebyshev_polynomial_t, chebyshev_t(2 * v - 1, w))
TWO(special_shifted_chebyshev_polynomial_u, chebyshev_u(2 * v - 1, w))
TWO(special_shifted_chebyshev_polynomial_v, chebyshev_v(2 * v - 1, w))
TWO(special_shifted_chebyshev_polynomial_w, chebyshev_w(2 * v - 1, w))
