// Elementwise kernels of one input, and the fused derivatives, which take [grad, saved].

template <typename T, typename F>
__device__ void map1(i64 n, const Strided &s, int dense, const T *x, T *out, F f) {
  typedef typename Compute<T>::number C;
  const int wide = 16 / sizeof(T);
  i64 step = all_threads();
  if (dense) {
    i64 packs = aligned(x) && aligned(out) ? n / wide : 0;
    auto fetch = [&](i64 i) { return ((const Pack<T> *)x)[i]; };
    four_at_once(packs, fetch, [&](i64 i, Pack<T> p) {
#pragma unroll
      for (int k = 0; k < wide; ++k) p.v[k] = Store<T>::from(f((C)load(p.v[k])));
      ((Pack<T> *)out)[i] = p;
    });
    for (i64 i = packs * wide + first_index(); i < n; i += step) out[i] = Store<T>::from(f((C)load(x[i])));
    return;
  }
  for (i64 i = first_index(); i < n; i += step) {
    i64 at[2];
    locate<2>(s, i, at);
    out[at[0]] = Store<T>::from(f((C)load(x[at[1]])));
  }
}

template <typename C> struct Math;
template <> struct Math<f32> {
  static __device__ f32 exp(f32 x) { return expf(x); }
  static __device__ f32 log(f32 x) { return logf(x); }
  static __device__ f32 log1p(f32 x) { return log1pf(x); }
  static __device__ f32 tanh(f32 x) { return tanhf(x); }
  static __device__ f32 erf(f32 x) { return erff(x); }
  static __device__ f32 sqrt(f32 x) { return sqrtf(x); }
  static __device__ f32 rsqrt(f32 x) { return 1.0f / sqrtf(x); }
  static __device__ f32 abs(f32 x) { return fabsf(x); }
};
template <> struct Math<f64> {
  static __device__ f64 exp(f64 x) { return ::exp(x); }
  static __device__ f64 log(f64 x) { return ::log(x); }
  static __device__ f64 log1p(f64 x) { return ::log1p(x); }
  static __device__ f64 tanh(f64 x) { return ::tanh(x); }
  static __device__ f64 erf(f64 x) { return ::erf(x); }
  static __device__ f64 sqrt(f64 x) { return ::sqrt(x); }
  static __device__ f64 rsqrt(f64 x) { return 1.0 / ::sqrt(x); }
  static __device__ f64 abs(f64 x) { return ::fabs(x); }
};

#define EXPRESSION(name, body) \
  struct name { template <typename C> __device__ C operator()(C x) const { return body; } };

EXPRESSION(Exp, Math<C>::exp(x))
EXPRESSION(Log, Math<C>::log(x))
EXPRESSION(Log1p, Math<C>::log1p(x))
EXPRESSION(Tanh, Math<C>::tanh(x))
EXPRESSION(Erf, Math<C>::erf(x))
EXPRESSION(Sqrt, Math<C>::sqrt(x))
EXPRESSION(Rsqrt, Math<C>::rsqrt(x))
EXPRESSION(Reciprocal, (C)1 / x)
EXPRESSION(Sigmoid, (C)1 / ((C)1 + Math<C>::exp(-x)))
EXPRESSION(Gelu, (C)0.5 * x * ((C)1 + Math<C>::erf(x * (C)0.70710678118654752440)))
EXPRESSION(GeluTanh, (C)0.5 * x * ((C)1 + Math<C>::tanh((C)0.79788456080286535588 * (x + (C)0.044715 * x * x * x))))
// NaN is kept: it is not smaller than 0.
EXPRESSION(Relu, x < (C)0 ? (C)0 : x)
EXPRESSION(Neg, -x)
EXPRESSION(Abs, x < (C)0 ? -x : x)
EXPRESSION(Sign, (C)((x > (C)0) - (x < (C)0)))

#define UNARY(name, type, expression)                                                                    \
  extern "C" __global__ void name##_##type(i64 n, Strided s, i32 dense, const type *x, type *out) {      \
    map1<type>(n, s, dense, x, out, expression());                                                       \
  }
#define UNARY_FLOATS(name, expression) \
  UNARY(name, f32, expression) UNARY(name, f64, expression) UNARY(name, f16, expression) UNARY(name, bf16, expression)
#define UNARY_NUMBERS(name, expression) \
  UNARY_FLOATS(name, expression) UNARY(name, i64, expression) UNARY(name, i32, expression) UNARY(name, u8, expression)

UNARY_FLOATS(exp, Exp)
UNARY_FLOATS(log, Log)
UNARY_FLOATS(log1p, Log1p)
UNARY_FLOATS(tanh, Tanh)
UNARY_FLOATS(erf, Erf)
UNARY_FLOATS(sqrt, Sqrt)
UNARY_FLOATS(rsqrt, Rsqrt)
UNARY_FLOATS(reciprocal, Reciprocal)
UNARY_FLOATS(sigmoid, Sigmoid)
UNARY_FLOATS(gelu, Gelu)
UNARY_FLOATS(gelu_tanh, GeluTanh)
UNARY_NUMBERS(relu, Relu)
UNARY_NUMBERS(neg, Neg)
UNARY_NUMBERS(abs, Abs)
UNARY_NUMBERS(sign, Sign)
UNARY(sign, truth, Sign)

template <typename T, typename F>
__device__ void map_grad(i64 n, const Strided &s, int dense, const T *grad, const T *saved, T *out, F f) {
  typedef typename Compute<T>::number C;
  for (i64 i = first_index(); i < n; i += all_threads()) {
    i64 at[3] = {i, i, i};
    if (!dense) locate<3>(s, i, at);
    out[at[0]] = Store<T>::from(f((C)load(grad[at[1]]), (C)load(saved[at[2]])));
  }
}

#define DERIVATIVE(name, body) \
  struct name { template <typename C> __device__ C operator()(C g, C y) const { body } };

DERIVATIVE(ReluBackward, return y > (C)0 ? g : (C)0;)
DERIVATIVE(TanhBackward, return g * ((C)1 - y * y);)
DERIVATIVE(SigmoidBackward, return g * y * ((C)1 - y);)
DERIVATIVE(GeluBackward, {
  C mass = (C)0.5 * ((C)1 + Math<C>::erf(y * (C)0.70710678118654752440));
  C density = (C)0.39894228040143267794 * Math<C>::exp((C)-0.5 * y * y);
  return g * (mass + y * density);
})
DERIVATIVE(GeluTanhBackward, {
  C square = y * y;
  C t = Math<C>::tanh((C)0.79788456080286535588 * y * ((C)1 + (C)0.044715 * square));
  C slope = (C)0.79788456080286535588 * ((C)1 + (C)0.134145 * square);
  return g * (C)0.5 * ((C)1 + t + y * ((C)1 - t * t) * slope);
})

#define GRAD(name, type, expression)                                                                               \
  extern "C" __global__ void name##_##type(i64 n, Strided s, i32 dense, const type *grad, const type *saved,       \
                                           type *out) {                                                            \
    map_grad<type>(n, s, dense, grad, saved, out, expression());                                                   \
  }
#define GRAD_FLOATS(name, expression) \
  GRAD(name, f32, expression) GRAD(name, f64, expression) GRAD(name, f16, expression) GRAD(name, bf16, expression)

GRAD_FLOATS(relu_backward, ReluBackward)
GRAD_FLOATS(tanh_backward, TanhBackward)
GRAD_FLOATS(sigmoid_backward, SigmoidBackward)
GRAD_FLOATS(gelu_backward, GeluBackward)
GRAD_FLOATS(gelu_tanh_backward, GeluTanhBackward)
