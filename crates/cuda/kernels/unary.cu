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

#define UNARY(name, type, Function)                                              \
  KERNEL(name##_##type)(i64 n, Strided s, i32 dense, const type *x, type *out) { \
    in_turn();                                                                   \
    map1<type>(n, s, dense, x, out, Function());                                 \
  }
// A function of x, of type C: f32 (for the 16-bit types too) or f64; for numbers also the integers.
#define FUNCTION(Name, body) \
  struct Name { template <typename C> __device__ C operator()(C x) const { return body; } };
#define UNARY_FLOATS(name, Name, body) \
  FUNCTION(Name, body) UNARY(name, f32, Name) UNARY(name, f64, Name) UNARY(name, f16, Name) UNARY(name, bf16, Name)
#define UNARY_NUMBERS(name, Name, body)                                                               \
  UNARY_FLOATS(name, Name, body) UNARY(name, i64, Name) UNARY(name, i32, Name) UNARY(name, i16, Name) \
  UNARY(name, i8, Name) UNARY(name, u8, Name)

// The share of the normal distribution below x, and its density, as GELU has them: the value is x
// times the share. Halves keep less than a short way gives: a polynomial for the error function,
// within 2e-7 of it, and within 1 % of shares above 1e-15.
template <typename T> struct NormalShare {
  typedef typename Compute<T>::number C;
  C share, slope;
  __device__ __forceinline__ NormalShare(C x) {
    if constexpr (sizeof(T) == 2) {
      f32 far = ::fabs(x) * 0.70710678f, density = exponential<T>(-far * far), t = __fdividef(1.0f, 1.0f + 0.3275911f * far);
      f32 beyond = t * (0.127414796f + t * (-0.142248368f + t * (0.710706871f + t * (-0.726576013f + t * 0.530702714f)))) * density;
      share = x < 0 ? beyond : 1 - beyond;
      slope = 0.39894228f * density;
    } else {
      share = (C)0.5 * ((C)1 + ::erf(x * (C)0.70710678118654752440));
      slope = (C)0.39894228040143267794 * ::exp((C)-0.5 * x * x);
    }
  }
};

// The same for the approximation by tanh.
template <typename T> struct TanhShare {
  typedef typename Compute<T>::number C;
  C share, slope;
  __device__ __forceinline__ TanhShare(C x) {
    C square = x * x, inner = (C)0.79788456080286535588 * x * ((C)1 + (C)0.044715 * square);
    if constexpr (sizeof(T) == 2) share = __fdividef(1.0f, 1.0f + exponential<T>(-2 * inner));
    else share = (C)0.5 * ((C)1 + ::tanh(inner));
    slope = 2 * share * (1 - share) * (C)0.79788456080286535588 * ((C)1 + (C)0.134145 * square);
  }
};

// GELU by one of them, and its derivative.
template <typename Share> struct Gelu {
  template <typename C> __device__ C operator()(C x) const { return x * Share(x).share; }
};
template <typename Share> struct GeluBackward {
  template <typename C> __device__ C operator()(C g, C y) const {
    Share of(y);
    return g * (of.share + y * of.slope);
  }
};

UNARY_FLOATS(exp, Exp, ::exp(x))
UNARY_FLOATS(log, Log, ::log(x))
UNARY_FLOATS(log1p, Log1p, ::log1p(x))
UNARY_FLOATS(tanh, Tanh, ::tanh(x))
UNARY_FLOATS(erf, Erf, ::erf(x))
UNARY_FLOATS(sqrt, Sqrt, ::sqrt(x))
UNARY_FLOATS(rsqrt, Rsqrt, (C)1 / ::sqrt(x))
UNARY_FLOATS(reciprocal, Reciprocal, (C)1 / x)
UNARY_FLOATS(sigmoid, Sigmoid, (C)1 / ((C)1 + ::exp(-x)))
// NaN is kept: it is not smaller than 0.
UNARY_NUMBERS(relu, Relu, x < (C)0 ? (C)0 : x)
UNARY_NUMBERS(neg, Neg, -x)
UNARY_NUMBERS(abs, Abs, x < (C)0 ? -x : x)
UNARY_NUMBERS(sign, Sign, (C)((x > (C)0) - (x < (C)0)))
UNARY(sign, truth, Sign)

template <typename T, typename F>
__device__ void map_grad(i64 n, const Strided &s, int dense, const T *grad, const T *saved, T *out, F f) {
  typedef typename Compute<T>::number C;
  const int wide = 16 / sizeof(T);
  i64 packs = dense && aligned(grad) && aligned(saved) && aligned(out) ? n / wide : 0;
  for (i64 i = first_index(); i < packs; i += all_threads()) {
    Pack<T> g = ((const Pack<T> *)grad)[i], y = ((const Pack<T> *)saved)[i];
#pragma unroll
    for (int k = 0; k < wide; ++k) g.v[k] = Store<T>::from(f((C)load(g.v[k]), (C)load(y.v[k])));
    ((Pack<T> *)out)[i] = g;
  }
  for (i64 i = packs * wide + first_index(); i < n; i += all_threads()) {
    i64 at[3] = {i, i, i};
    if (!dense) locate<3>(s, i, at);
    out[at[0]] = Store<T>::from(f((C)load(grad[at[1]]), (C)load(saved[at[2]])));
  }
}

#define DERIVATIVE(name, body) \
  struct name { template <typename C> __device__ C operator()(C g, C y) const { body } };

// For a NaN the gradient, as on the CPU.
DERIVATIVE(ReluBackward, return y <= (C)0 ? (C)0 : g;)
DERIVATIVE(TanhBackward, return g * ((C)1 - y * y);)
DERIVATIVE(SigmoidBackward, return g * y * ((C)1 - y);)
#define GRAD(name, type, expression)                                                      \
  KERNEL(name##_##type)(i64 n, Strided s, i32 dense, const type *grad, const type *saved, \
                                           type *out) {                                   \
    in_turn();                                                                            \
    map_grad<type>(n, s, dense, grad, saved, out, expression());                          \
  }
#define GRAD_FLOATS(name, expression) \
  GRAD(name, f32, expression) GRAD(name, f64, expression) GRAD(name, f16, expression) GRAD(name, bf16, expression)

GRAD_FLOATS(relu_backward, ReluBackward)
GRAD_FLOATS(tanh_backward, TanhBackward)
GRAD_FLOATS(sigmoid_backward, SigmoidBackward)

// The gradient of x from [grad, x], and the value, from one reading. Operands of `s`: the gradient
// of x, the value, the gradient of the value, x.
template <typename T, typename Share>
__device__ void gelu_both(i64 n, const Strided &s, int dense, const T *grad, const T *x, T *slope, T *value) {
  typedef typename Compute<T>::number C;
  const int wide = 16 / sizeof(T);
  auto both = [](T &g, T &y) {
    C at = (C)load(y);
    Share of(at);
    g = Store<T>::from((C)load(g) * (of.share + at * of.slope));
    y = Store<T>::from(at * of.share);
  };
  i64 packs = dense && aligned(grad) && aligned(x) && aligned(slope) && aligned(value) ? n / wide : 0;
  for (i64 i = first_index(); i < packs; i += all_threads()) {
    Pack<T> g = ((const Pack<T> *)grad)[i], y = ((const Pack<T> *)x)[i];
#pragma unroll
    for (int k = 0; k < wide; ++k) both(g.v[k], y.v[k]);
    ((Pack<T> *)slope)[i] = g;
    ((Pack<T> *)value)[i] = y;
  }
  for (i64 i = packs * wide + first_index(); i < n; i += all_threads()) {
    i64 at[4] = {i, i, i, i};
    if (!dense) locate<4>(s, i, at);
    T g = grad[at[2]], y = x[at[3]];
    both(g, y);
    slope[at[0]] = g;
    value[at[1]] = y;
  }
}

#define GELUS(name, type, Share)                                                                                      \
  UNARY(name, type, Gelu<Share<type>>)                                                                                \
  GRAD(name##_backward, type, GeluBackward<Share<type>>)                                                              \
  KERNEL(name##_both_##type)(i64 n, Strided s, i32 dense, const type *grad, const type *x, type *slope, type *value) {\
    in_turn();                                                                                                        \
    gelu_both<type, Share<type>>(n, s, dense, grad, x, slope, value);                                                 \
  }
#define GELUS_OF(type) GELUS(gelu, type, NormalShare) GELUS(gelu_tanh, type, TanhShare)
GELUS_OF(f32)
GELUS_OF(f64)
GELUS_OF(f16)
GELUS_OF(bf16)
