// Activations of networks, of x with host numbers p, q and r; their derivatives have the gradient
// in x and what was saved in y.

template <typename T> __device__ __forceinline__ T logistic(T x) { return (T)1 / ((T)1 + ::exp(-x)); }
template <typename T> __device__ __forceinline__ T soft(T x) { return (x > 0 ? x : (T)0) + ::log1p(::exp(-::fabs(x))); }
template <typename T> __device__ __forceinline__ T between(T x, T low, T high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}
#define REAL(name, value) TAIL_REAL(name, return value;)

REAL(silu, x / ((T)1 + ::exp(-x)))
TAIL_REAL(silu_backward, {
  T s = logistic(y);
  return x * s * ((T)1 + y * ((T)1 - s));
})
REAL(mish, x * ::tanh(soft(x)))
TAIL_REAL(mish_backward, {
  T t = ::tanh(soft(y));
  return x * (t + y * logistic(y) * ((T)1 - t * t));
})
REAL(softplus, x * p > q ? x : soft(x * p) / p)
REAL(softplus_backward, y * p > q ? x : x * logistic(y * p))
REAL(logsigmoid, -soft(-x))
REAL(logsigmoid_backward, x * logistic(-y))
REAL(elu, x > 0 ? x * q : ::expm1(x * r) * p * q)
REAL(elu_backward, y <= 0 ? x * r * p * q * ::exp(y * r) : x * q)
REAL(leaky_relu, x > 0 ? x : x * p)
REAL(leaky_relu_backward, y > 0 ? x : x * p)
REAL(hardtanh, between(x, p, q))
TAIL_WHOLE(hardtanh, return between(x, p, q);)
REAL(hardtanh_backward, y <= p || y >= q ? (T)0 : x)
REAL(hardsigmoid, between(x + 3, (T)0, (T)6) / 6)
REAL(hardsigmoid_backward, y > -3 && y < 3 ? x / 6 : (T)0)
REAL(hardswish, x * between(x + 3, (T)0, (T)6) / 6)
REAL(hardswish_backward, y <= -3 ? (T)0 : y < 3 ? x * (y / 3 + (T)0.5) : x)
REAL(hardshrink, x >= -p && x <= p ? (T)0 : x)
REAL(shrink_backward, y >= -p && y <= p ? (T)0 : x)
REAL(softshrink, x > p ? x - p : x < -p ? x + p : x * 0)
REAL(threshold, x <= p ? q : x)
TAIL_WHOLE(threshold, return x <= p ? q : x;)
REAL(threshold_backward, y <= p ? (T)0 : x)
REAL(prelu, x > 0 ? x : y * x)
