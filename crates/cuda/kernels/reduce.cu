// Reductions. `outer` locates an output's first input element (operand 0) and the output itself
// (operand 1); `inner` walks the elements that are folded into it. Each output is folded by `parts`
// blocks, whose partial results lie in `partial` ([outputs][parts]) until `_finish` folds those.
// With parts == 1 the result is written at once.

template <typename C> struct Sum {
  static __device__ C start() { return (C)0; }
  static __device__ C fold(C a, C b) { return a + b; }
};
template <typename C> struct Infinite;
template <> struct Infinite<f32> { static __device__ f32 value() { return __int_as_float(0x7f800000); } };
template <> struct Infinite<f64> { static __device__ f64 value() { return __longlong_as_double(0x7ff0000000000000LL); } };
template <> struct Infinite<i64> { static __device__ i64 value() { return 0x7fffffffffffffffLL; } };
template <typename C> struct Amax {
  static __device__ C start() { return -Infinite<C>::value() - (C)(sizeof(C) == 8 && (C)0.5 == (C)0); }
  static __device__ C fold(C a, C b) { return a != a || a > b ? a : b; }
};
template <typename C> struct Amin {
  static __device__ C start() { return Infinite<C>::value(); }
  static __device__ C fold(C a, C b) { return a != a || a < b ? a : b; }
};

// Folds a block's values; thread 0 has the result.
template <typename C, typename R> __device__ C block_fold(C value) {
  __shared__ C warps[32];
  for (int distance = 16; distance > 0; distance >>= 1) value = R::fold(value, __shfl_down_sync(~0u, value, distance));
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = lane < (blockDim.x >> 5) ? warps[lane] : R::start();
    for (int distance = 16; distance > 0; distance >>= 1) value = R::fold(value, __shfl_down_sync(~0u, value, distance));
  }
  __syncthreads();
  return value;
}

template <typename T, typename O, typename C, typename R>
__device__ void reduce(i64 outputs, i64 count, const Strided &outer, const Strided &inner, int dense, i64 parts, f64 scale,
                       const T *x, O *out, C *partial) {
  for (i64 job = blockIdx.x; job < outputs * parts; job += gridDim.x) {
    i64 output = job / parts, part = job - output * parts;
    i64 at[2];
    locate<2>(outer, output, at);
    const T *base = x + at[0];
    i64 length = (count + parts - 1) / parts;
    i64 from = part * length, to = min(from + length, count);
    C value = R::start();
    if (dense) {
      const int wide = 16 / sizeof(T);
      i64 head = from;
      while (head < to && ((u64)(base + head) & 15)) ++head;
      for (i64 i = from + threadIdx.x; i < head; i += blockDim.x) value = R::fold(value, (C)load(base[i]));
      i64 packs = (to - head) / wide;
      const Pack<T> *p = (const Pack<T> *)(base + head);
      C lanes[wide];
#pragma unroll
      for (int k = 0; k < wide; ++k) lanes[k] = R::start();
      i64 i = threadIdx.x, side = blockDim.x;
      // Four loads are on their way at once: one does not keep the memory busy.
      for (; i + 3 * side < packs; i += 4 * side) {
        Pack<T> four[4] = {p[i], p[i + side], p[i + 2 * side], p[i + 3 * side]};
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
          for (int k = 0; k < wide; ++k) lanes[k] = R::fold(lanes[k], (C)load(four[j].v[k]));
      }
      for (; i < packs; i += side) {
        Pack<T> pack = p[i];
#pragma unroll
        for (int k = 0; k < wide; ++k) lanes[k] = R::fold(lanes[k], (C)load(pack.v[k]));
      }
#pragma unroll
      for (int k = 0; k < wide; ++k) value = R::fold(value, lanes[k]);
      for (i64 i = head + packs * wide + threadIdx.x; i < to; i += blockDim.x) value = R::fold(value, (C)load(base[i]));
    } else {
      for (i64 i = from + threadIdx.x; i < to; i += blockDim.x) {
        i64 inside[1];
        locate<1>(inner, i, inside);
        value = R::fold(value, (C)load(base[inside[0]]));
      }
    }
    value = block_fold<C, R>(value);
    if (threadIdx.x == 0) {
      if (parts == 1)
        out[at[1]] = Store<O>::from((C)(scale == 1.0 ? value : (C)(value * scale)));
      else
        partial[job] = value;
    }
  }
}

template <typename O, typename C, typename R>
__device__ void finish(i64 outputs, const Strided &outer, i64 parts, f64 scale, O *out, const C *partial) {
  for (i64 output = blockIdx.x; output < outputs; output += gridDim.x) {
    C value = R::start();
    for (i64 i = threadIdx.x; i < parts; i += blockDim.x) value = R::fold(value, partial[output * parts + i]);
    value = block_fold<C, R>(value);
    if (threadIdx.x == 0) {
      i64 at[2];
      locate<2>(outer, output, at);
      out[at[1]] = Store<O>::from((C)(scale == 1.0 ? value : (C)(value * scale)));
    }
  }
}

#define REDUCE(name, type, result, compute, R)                                                                     \
  KERNEL(name##_##type)(i64 outputs, i64 count, Strided outer, Strided inner, i32 dense, i64 parts,                \
                                           f64 scale, const type *x, result *out, compute *partial) {              \
    reduce<type, result, compute, R<compute>>(outputs, count, outer, inner, dense, parts, scale, x, out, partial); \
  }                                                                                                                \
  KERNEL(name##_##type##_finish)(i64 outputs, Strided outer, i64 parts, f64 scale, result *out,                    \
                                                    const compute *partial) {                                      \
    finish<result, compute, R<compute>>(outputs, outer, parts, scale, out, partial);                               \
  }

REDUCE(sum, f32, f32, f32, Sum)
REDUCE(sum, f64, f64, f64, Sum)
REDUCE(sum, f16, f16, f32, Sum)
REDUCE(sum, bf16, bf16, f32, Sum)
REDUCE(sum, i64, i64, i64, Sum)
REDUCE(sum, i32, i64, i64, Sum)
REDUCE(sum, i16, i64, i64, Sum)
REDUCE(sum, i8, i64, i64, Sum)
REDUCE(sum, u8, i64, i64, Sum)
REDUCE(sum, truth, i64, i64, Sum)
#define EXTREME(name, R)          \
  REDUCE(name, f32, f32, f32, R)  \
  REDUCE(name, f64, f64, f64, R)  \
  REDUCE(name, f16, f16, f32, R)  \
  REDUCE(name, bf16, bf16, f32, R) \
  REDUCE(name, i64, i64, i64, R)  \
  REDUCE(name, i32, i32, i64, R)  \
  REDUCE(name, i16, i16, i64, R)  \
  REDUCE(name, i8, i8, i64, R)    \
  REDUCE(name, u8, u8, i64, R)    \
  REDUCE(name, truth, truth, i64, R)
EXTREME(amax, Amax)
EXTREME(amin, Amin)
