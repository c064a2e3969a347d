// Arithmetic on two operands. `side` says where the second comes from: 0 a tensor, 1 a number on
// the right, 2 a number on the left. `dense` says how they lie: 1 one after another, 2 in runs of
// whole packs that start at whole packs, 0 in any way.

template <typename T> struct Number {
  static __device__ typename Compute<T>::number of(f64 real, i64 whole) { return (typename Compute<T>::number)real; }
};
template <> struct Number<i64> { static __device__ i64 of(f64 real, i64 whole) { return whole; } };
template <> struct Number<i32> { static __device__ i32 of(f64 real, i64 whole) { return (i32)whole; } };
template <> struct Number<i16> { static __device__ i16 of(f64 real, i64 whole) { return (i16)whole; } };
template <> struct Number<i8> { static __device__ i8 of(f64 real, i64 whole) { return (i8)whole; } };
template <> struct Number<u8> { static __device__ u8 of(f64 real, i64 whole) { return (u8)whole; } };
template <> struct Number<truth> { static __device__ i32 of(f64 real, i64 whole) { return whole != 0; } };

template <typename T, typename F>
__device__ void map2(i64 n, const Strided &s, int dense, const T *a, const T *b, T *out, int side, f64 real, i64 whole,
                     F f) {
  typedef typename Compute<T>::number C;
  const int wide = 16 / sizeof(T);
  C number = Number<T>::of(real, whole);
  i64 step = all_threads();
  bool packed = aligned(a) && aligned(out) && (side != 0 || aligned(b));
  if (dense == 2 && packed && side == 0) {
    // Four at once would take registers that the dense ones have threads for.
    for (i64 i = first_index(); i < n / wide; i += step) {
      i64 at[3];
      locate<3>(s, i * wide, at);
      Pack<T> p = *(const Pack<T> *)(a + at[1]), q = *(const Pack<T> *)(b + at[2]);
#pragma unroll
      for (int k = 0; k < wide; ++k) p.v[k] = Store<T>::from(f((C)load(p.v[k]), (C)load(q.v[k])));
      *(Pack<T> *)(out + at[0]) = p;
    }
    return;
  }
  if (dense == 1) {
    i64 packs = packed ? n / wide : 0;
    if (side == 0) {
      struct Both { Pack<T> p, q; };
      auto both = [&](i64 i) { return Both{((const Pack<T> *)a)[i], ((const Pack<T> *)b)[i]}; };
      four_at_once(packs, both, [&](i64 i, Both x) {
#pragma unroll
        for (int k = 0; k < wide; ++k) x.p.v[k] = Store<T>::from(f((C)load(x.p.v[k]), (C)load(x.q.v[k])));
        ((Pack<T> *)out)[i] = x.p;
      });
    } else {
      auto left = [&](i64 i) { return ((const Pack<T> *)a)[i]; };
      four_at_once(packs, left, [&](i64 i, Pack<T> p) {
#pragma unroll
        for (int k = 0; k < wide; ++k) {
          C x = (C)load(p.v[k]);
          p.v[k] = Store<T>::from(side == 1 ? f(x, number) : f(number, x));
        }
        ((Pack<T> *)out)[i] = p;
      });
    }
    for (i64 i = packs * wide + first_index(); i < n; i += step) {
      C x = (C)load(a[i]);
      C y = side == 0 ? (C)load(b[i]) : number;
      out[i] = Store<T>::from(side == 2 ? f(number, x) : f(x, y));
    }
    return;
  }
  for (i64 i = first_index(); i < n; i += step) {
    i64 at[3];
    locate<3>(s, i, at);
    C x = (C)load(a[at[1]]);
    C y = side == 0 ? (C)load(b[at[2]]) : number;
    out[at[0]] = Store<T>::from(side == 2 ? f(number, x) : f(x, y));
  }
}

template <typename C> struct Add { C alpha; __device__ C operator()(C x, C y) const { return x + alpha * y; } };
template <typename C> struct Sub { C alpha; __device__ C operator()(C x, C y) const { return x - alpha * y; } };
template <typename C> struct Mul { C alpha; __device__ C operator()(C x, C y) const { return x * y; } };
template <typename C> struct Div { C alpha; __device__ C operator()(C x, C y) const { return x / y; } };
// NaN wins: a comparison with it is false, so it is asked for by `!=`.
template <typename C> struct Maximum {
  C alpha;
  __device__ C operator()(C x, C y) const { return x != x || x > y ? x : y; }
};
template <typename C> struct Minimum {
  C alpha;
  __device__ C operator()(C x, C y) const { return x != x || x < y ? x : y; }
};

#define BINARY(name, type, Op)                                                                          \
  KERNEL(name##_##type)(i64 n, Strided s, i32 dense, const type *a, const type *b, type *out,           \
                                           i32 side, f64 real, i64 whole, f64 alpha, i64 whole_alpha) { \
    in_turn();                                                                                          \
    typedef Compute<type>::number C;                                                                    \
    Op<C> op = {(C)Number<type>::of(alpha, whole_alpha)};                                               \
    map2<type>(n, s, dense, a, b, out, side, real, whole, op);                                          \
  }
#define BINARY_FLOATS(name, Op) BINARY(name, f32, Op) BINARY(name, f64, Op) BINARY(name, f16, Op) BINARY(name, bf16, Op)
#define BINARY_ALL(name, Op) \
  BINARY_FLOATS(name, Op) BINARY(name, i64, Op) BINARY(name, i32, Op) BINARY(name, i16, Op) BINARY(name, i8, Op) \
  BINARY(name, u8, Op) BINARY(name, truth, Op)

BINARY_ALL(add, Add)
BINARY_ALL(sub, Sub)
BINARY_ALL(mul, Mul)
BINARY_FLOATS(div, Div)
BINARY_ALL(maximum, Maximum)
BINARY_ALL(minimum, Minimum)
