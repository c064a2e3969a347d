
// The long tail of elementwise functions: one kernel for each function and each type that it
// computes in (f32, f64, i64), which loads and stores every dtype by its code. The CPU's twin is
// `chunked.rs`.

// The order of DType in Rust.
enum Code { BOOL, U8, I8, I16, I32, I64, F16, BF16, F32, F64 };

// The dtype that a type is computed in without conversion.
template <typename C> struct Own;
template <> struct Own<f32> { static const i32 code = F32; };
template <> struct Own<f64> { static const i32 code = F64; };
template <> struct Own<i64> { static const i32 code = I64; };

// Other dtypes are a call: a switch of ten in every kernel would take a minute to compile.
template <typename C> __device__ __noinline__ C converted(const void *p, i64 at, i32 code) {
  switch (code) {
    case BOOL: return (C)load(((const truth *)p)[at]);
    case U8: return (C)((const u8 *)p)[at];
    case I8: return (C)((const i8 *)p)[at];
    case I16: return (C)((const i16 *)p)[at];
    case I32: return (C)((const i32 *)p)[at];
    case I64: return (C)((const i64 *)p)[at];
    case F16: return (C)load(((const f16 *)p)[at]);
    case BF16: return (C)load(((const bf16 *)p)[at]);
    case F32: return (C)((const f32 *)p)[at];
    default: return (C)((const f64 *)p)[at];
  }
}

template <typename C> __device__ __forceinline__ C element(const void *p, i64 at, i32 code) {
  return code == Own<C>::code ? ((const C *)p)[at] : converted<C>(p, at, code);
}

template <typename C> __device__ __noinline__ void convert(void *p, i64 at, i32 code, C x) {
  switch (code) {
    case BOOL: ((truth *)p)[at] = Store<truth>::from(x); break;
    case U8: ((u8 *)p)[at] = (u8)(i64)x; break;
    case I8: ((i8 *)p)[at] = (i8)(i64)x; break;
    case I16: ((i16 *)p)[at] = (i16)(i64)x; break;
    case I32: ((i32 *)p)[at] = (i32)(i64)x; break;
    case I64: ((i64 *)p)[at] = (i64)x; break;
    case F16: ((f16 *)p)[at] = Store<f16>::from(x); break;
    case BF16: ((bf16 *)p)[at] = Store<bf16>::from(x); break;
    case F32: ((f32 *)p)[at] = (f32)x; break;
    default: ((f64 *)p)[at] = (f64)x; break;
  }
}

template <typename C> __device__ __forceinline__ void keep(void *p, i64 at, i32 code, C x) {
  if (code == Own<C>::code) ((C *)p)[at] = x;
  else convert<C>(p, at, code, x);
}

template <typename C> struct Numbers { C a, b, c; };
template <typename C> __device__ __forceinline__ C chosen(f64 real, i64 whole) { return (C)real; }
template <> __device__ __forceinline__ i64 chosen<i64>(f64 real, i64 whole) { return whole; }

// Four neighbours at once, of float32 or a half type; other dtypes are not hot.
struct Quad { f32 v[4]; };
struct alignas(8) Halves { u16 v[4]; };
__device__ __forceinline__ bool has_quads(const void *p, i32 code) {
  return code == F32 ? ((u64)p & 15) == 0 : (code == F16 || code == BF16) && ((u64)p & 7) == 0;
}
__device__ __noinline__ Quad quad_of_halves(const void *p, i64 i, i32 code) {
  Halves x = ((const Halves *)p)[i];
  Quad y;
#pragma unroll
  for (int k = 0; k < 4; ++k) y.v[k] = code == F16 ? load(f16{x.v[k]}) : load(bf16{x.v[k]});
  return y;
}
__device__ __noinline__ void keep_quad_of_halves(void *p, i64 i, i32 code, Quad x) {
  Halves y;
#pragma unroll
  for (int k = 0; k < 4; ++k) y.v[k] = code == F16 ? Store<f16>::from(x.v[k]).bits : Store<bf16>::from(x.v[k]).bits;
  ((Halves *)p)[i] = y;
}
__device__ __forceinline__ Quad quad(const void *p, i64 i, i32 code) {
  if (code != F32) return quad_of_halves(p, i, code);
  Pack<f32> x = ((const Pack<f32> *)p)[i];
  return Quad{{x.v[0], x.v[1], x.v[2], x.v[3]}};
}
__device__ __forceinline__ void keep_quad(void *p, i64 i, i32 code, const Quad &x) {
  if (code != F32) return keep_quad_of_halves(p, i, code, x);
  ((Pack<f32> *)p)[i] = Pack<f32>{{x.v[0], x.v[1], x.v[2], x.v[3]}};
}

// Files of functions that are long to compile and seldom called turn this off: four at once are
// five copies of the function.
#define TAIL_QUADS true

// An operand whose address is 0 is the number in its place.
template <bool QUADS, typename C, typename F>
__device__ void tail(i64 n, const Strided &s, i32 dense, u64 codes, void *out, const void *x, const void *y, const void *z, Numbers<C> given,
                     F f) {
  i64 done = 0;
  if constexpr (QUADS && Own<C>::code == F32) {
    i32 to = (i32)(codes & 255), cx = (i32)(codes >> 8 & 255), cy = (i32)(codes >> 16 & 255), cz = (i32)(codes >> 24 & 255);
    bool all = dense && has_quads(out, to) && (!x || has_quads(x, cx)) && (!y || has_quads(y, cy)) && (!z || has_quads(z, cz));
    i64 quads = all ? n / 4 : 0;
    for (i64 i = first_index(); i < quads; i += all_threads()) {
      Quad a = {{given.a, given.a, given.a, given.a}}, b = {{given.b, given.b, given.b, given.b}},
           c = {{given.c, given.c, given.c, given.c}};
      if (x) a = quad(x, i, cx);
      if (y) b = quad(y, i, cy);
      if (z) c = quad(z, i, cz);
#pragma unroll
      for (int k = 0; k < 4; ++k) a.v[k] = f(a.v[k], b.v[k], c.v[k]);
      keep_quad(out, i, to, a);
    }
    done = quads * 4;
  }
  for (i64 i = done + first_index(); i < n; i += all_threads()) {
    i64 at[4] = {i, i, i, i};
    if (!dense) locate<4>(s, i, at);
    C a = x ? element<C>(x, at[1], (i32)(codes >> 8 & 255)) : given.a;
    C b = y ? element<C>(y, at[2], (i32)(codes >> 16 & 255)) : given.b;
    C c = z ? element<C>(z, at[3], (i32)(codes >> 24 & 255)) : given.c;
    keep<C>(out, at[0], (i32)(codes & 255), f(a, b, c));
  }
}

// A kernel of operands x, y and z and host numbers p, q and r, computed in C.
#define TAIL_IN(name, C, ...)                                                                                                    \
  KERNEL(name##_##C)(i64 n, Strided s, i32 dense, u64 codes, void *out, const void *a, const void *b,                            \
                                        const void *c, f64 ra, f64 rb, f64 rc, i64 wa, i64 wb, i64 wc, f64 p_, f64 q_, f64 r_) { \
    in_turn();                                                                                                                   \
    typedef C T;                                                                                                                 \
    Numbers<C> given = {chosen<C>(ra, wa), chosen<C>(rb, wb), chosen<C>(rc, wc)};                                                \
    C p = (C)p_, q = (C)q_, r = (C)r_;                                                                                           \
    (void)p, (void)q, (void)r;                                                                                                   \
    tail<TAIL_QUADS, C>(n, s, dense, codes, out, a, b, c, given, [=](C x, C y, C z) -> C { (void)y, (void)z; __VA_ARGS__ });     \
  }
#define TAIL_REAL(name, ...) TAIL_IN(name, f32, __VA_ARGS__) TAIL_IN(name, f64, __VA_ARGS__)
#define TAIL_WHOLE(name, ...) TAIL_IN(name, i64, __VA_ARGS__)

// An element in f64 or i64, the wider of the types that its class is computed in. Floats are read
// in line: kernels that fold them are as fast as memory.
template <typename C> __device__ __forceinline__ C widest(const void *p, i64 at, i32 code) { return element<C>(p, at, code); }
template <> __device__ __forceinline__ f64 widest<f64>(const void *p, i64 at, i32 code) {
  if (code == F32) return ((const f32 *)p)[at];
  if (code == BF16) return load(((const bf16 *)p)[at]);
  if (code == F16) return load(((const f16 *)p)[at]);
  return element<f64>(p, at, code);
}
