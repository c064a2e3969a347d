
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

// An operand whose address is 0 is the number in its place.
template <typename C, typename F>
__device__ void tail(i64 n, const Strided &s, i32 dense, u64 codes, void *out, const void *x, const void *y, const void *z, Numbers<C> given,
                     F f) {
  for (i64 i = first_index(); i < n; i += all_threads()) {
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
    typedef C T;                                                                                                                 \
    Numbers<C> given = {chosen<C>(ra, wa), chosen<C>(rb, wb), chosen<C>(rc, wc)};                                                \
    C p = (C)p_, q = (C)q_, r = (C)r_;                                                                                           \
    (void)p, (void)q, (void)r;                                                                                                   \
    tail<C>(n, s, dense, codes, out, a, b, c, given, [=](C x, C y, C z) -> C { (void)y, (void)z; __VA_ARGS__ });                 \
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
