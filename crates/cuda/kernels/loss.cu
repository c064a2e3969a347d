// Losses that compare each element with its target, and their slopes: the derivative by the input
// times the incoming gradient.

template <typename C> __device__ C at_least(C x, C least) { return x < least ? least : x; }

template <typename C> struct Mse {
  static __device__ C loss(C x, C t, C) { return (x - t) * (x - t); }
  static __device__ C slope(C x, C t, C g, C) { return (C)2 * (x - t) * g; }
};
template <typename C> struct SmoothL1 {
  static __device__ C loss(C x, C t, C beta) {
    C d = x < t ? t - x : x - t;
    return d < beta ? (C)0.5 * d * d / beta : d - (C)0.5 * beta;
  }
  static __device__ C slope(C x, C t, C g, C beta) {
    C d = x - t;
    return d <= -beta ? -g : d >= beta ? g : d * g / beta;
  }
};
template <typename C> struct Huber {
  static __device__ C loss(C x, C t, C delta) {
    C d = x < t ? t - x : x - t;
    return d <= delta ? (C)0.5 * d * d : delta * (d - (C)0.5 * delta);
  }
  static __device__ C slope(C x, C t, C g, C delta) {
    C d = x - t;
    return d <= -delta ? -delta * g : d >= delta ? delta * g : d * g;
  }
};
// A number that is no probability gives NaN; the host refuses it, which no kernel can without
// ending its context.
template <typename C> struct Bce {
  static __device__ C loss(C x, C t, C) {
    if (!(x >= (C)0 && x <= (C)1)) return (C)(0.0 / 0.0);
    return (t - (C)1) * at_least((C)::log1p(-x), (C)-100) - t * at_least((C)::log(x), (C)-100);
  }
  static __device__ C slope(C x, C t, C g, C) { return g * (x - t) / at_least(((C)1 - x) * x, (C)1e-12); }
};
template <typename C> struct BceLogits {
  static __device__ C loss(C x, C t, C) {
    C size = x < (C)0 ? -x : x;
    return ((C)1 - t) * x + ((C)::log1p(::exp(-size)) + at_least(-x, (C)0));
  }
  static __device__ C slope(C x, C t, C g, C) { return ((C)1 / ((C)1 + ::exp(-x)) - t) * g; }
};

#define LOSS(name, type, Op)                                                                        \
  KERNEL(name##_loss_##type)(i64 n, Strided s, type *out, const type *x, const type *t,             \
                                                f64 number) {                                       \
    in_turn();                                                                                      \
    typedef Compute<type>::number C;                                                                \
    for (i64 i = first_index(); i < n; i += all_threads()) {                                        \
      i64 at[3];                                                                                    \
      locate<3>(s, i, at);                                                                          \
      out[at[0]] = Store<type>::from(Op<C>::loss((C)load(x[at[1]]), (C)load(t[at[2]]), (C)number)); \
    }                                                                                               \
  }                                                                                                 \
  KERNEL(name##_slope_##type)(i64 n, Strided s, type *out, const type *x, const type *t,            \
                                                 const type *grad, f64 number) {                    \
    in_turn();                                                                                      \
    typedef Compute<type>::number C;                                                                \
    for (i64 i = first_index(); i < n; i += all_threads()) {                                        \
      i64 at[4];                                                                                    \
      locate<4>(s, i, at);                                                                          \
      out[at[0]] = Store<type>::from(                                                               \
          Op<C>::slope((C)load(x[at[1]]), (C)load(t[at[2]]), (C)load(grad[at[3]]), (C)number));     \
    }                                                                                               \
  }
#define LOSS_FLOATS(name, Op) LOSS(name, f32, Op) LOSS(name, f64, Op) LOSS(name, f16, Op) LOSS(name, bf16, Op)

LOSS_FLOATS(mse, Mse)
LOSS_FLOATS(smooth_l1, SmoothL1)
LOSS_FLOATS(huber, Huber)
LOSS_FLOATS(binary_cross_entropy, Bce)
LOSS_FLOATS(binary_cross_entropy_with_logits, BceLogits)
