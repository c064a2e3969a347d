// Softmax and its logarithm along lines of `length` elements, and their derivatives. `outer`
// locates the lines; strides along them are in elements. Two ways: a team of threads a line where
// its elements are neighbours (a warp, or the block if lines are long), and blocks of 32
// neighbouring lines otherwise.

template <typename C> struct Least;
template <> struct Least<f32> { static __device__ f32 value() { return __int_as_float(0xff800000); } };
template <> struct Least<f64> { static __device__ f64 value() { return __longlong_as_double(0xfff0000000000000LL); } };

// Halves keep less than the fast exponential gives.
template <typename T> __device__ __forceinline__ typename Compute<T>::number exponential(typename Compute<T>::number x) {
  if constexpr (sizeof(T) == 2) return __expf(x);
  else return ::exp(x);
}

// A NaN is left for the exponentials to carry.
struct Larger {
  template <typename C> static __device__ C of(C a, C b) { return b > a ? b : a; }
};
struct Plus {
  template <typename C> static __device__ C of(C a, C b) { return a + b; }
};

// Folds the values of a team, a warp or the whole block; every thread has the result.
template <typename F, typename C> __device__ __forceinline__ C team_fold(C value, C start, bool warp_alone) {
  __shared__ C warps[32];
  for (int distance = 16; distance > 0; distance >>= 1) value = F::of(value, __shfl_xor_sync(~0u, value, distance));
  if (warp_alone) return value;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  __syncthreads();
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  value = lane < (blockDim.x >> 5) ? warps[lane] : start;
  for (int distance = 16; distance > 0; distance >>= 1) value = F::of(value, __shfl_xor_sync(~0u, value, distance));
  return value;
}

// A thread's share of a line. Dense lines go 16 bytes at a time, and the first packs, asked for at
// once, stay in registers, so that a line of up to 4 packs a thread is read once.
template <typename T> struct Line {
  static const int kept = 4, wide = 16 / sizeof(T);
  Pack<T> own[kept];
  const T *line;
  i64 length, stride, packs;
  int lane, team;

  __device__ Line(const T *line, i64 length, i64 stride, bool packed, int lane, int team)
      : line(line), length(length), stride(stride), packs(packed ? length / wide : 0), lane(lane), team(team) {
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      i64 i = lane + (i64)j * team;
      if (i < packs) own[j] = ((const Pack<T> *)line)[i];
    }
  }

  // Calls `use(i, pack i)` for the thread's packs.
  template <typename Use> __device__ __forceinline__ void each_pack(Use use) const {
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      i64 i = lane + (i64)j * team;
      if (i < packs) use(i, own[j]);
    }
    for (i64 i = lane + (i64)kept * team; i < packs; i += team) use(i, ((const Pack<T> *)line)[i]);
  }

  // Calls `use(i, pack i, pack i of other)` for the thread's packs of two lines of one length.
  template <typename Use> __device__ __forceinline__ void each_pack_with(const Line &other, Use use) const {
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      i64 i = lane + (i64)j * team;
      if (i < packs) use(i, own[j], other.own[j]);
    }
    for (i64 i = lane + (i64)kept * team; i < packs; i += team) use(i, ((const Pack<T> *)line)[i], ((const Pack<T> *)other.line)[i]);
  }

  // Calls `use(x)` for the thread's elements.
  template <typename Use> __device__ __forceinline__ void each(Use use) const {
    typedef typename Compute<T>::number C;
    if (!packs) {
      for (i64 i = lane; i < length; i += team) use((C)load(line[i * stride]));
      return;
    }
    each_pack([&](i64, const Pack<T> &pack) {
#pragma unroll
      for (int k = 0; k < wide; ++k) use((C)load(pack.v[k]));
    });
  }
};

template <typename T>
__device__ void softmax_lines(i64 lines, i64 length, const Strided &outer, i64 x_step, i64 out_step, bool log, int team, const T *x,
                              T *out) {
  typedef typename Compute<T>::number C;
  const int wide = 16 / sizeof(T);
  int teams = blockDim.x / team, lane = threadIdx.x % team;
  bool warp_alone = team == 32;
  for (i64 index = (i64)blockIdx.x * teams + threadIdx.x / team; index < lines; index += (i64)gridDim.x * teams) {
    i64 at[2];
    locate<2>(outer, index, at);
    const T *from = x + at[0];
    T *to = out + at[1];
    bool packed = x_step == 1 && out_step == 1 && length % wide == 0 && aligned(from) && aligned(to);
    Line<T> line(from, length, x_step, packed, lane, team);
    C top = Least<C>::value();
    line.each([&](C value) { top = Larger::of(top, value); });
    top = team_fold<Larger>(top, Least<C>::value(), warp_alone);
    C total = 0;
    line.each([&](C value) { total += exponential<T>(value - top); });
    total = team_fold<Plus>(total, (C)0, warp_alone);
    C scale = (C)1 / total, shift = ::log(total);
    auto result = [&](C value) { return Store<T>::from(log ? value - top - shift : exponential<T>(value - top) * scale); };
    if (!packed) {
      for (i64 i = lane; i < length; i += team) to[i * out_step] = result((C)load(from[i * x_step]));
      continue;
    }
    line.each_pack([&](i64 i, const Pack<T> &pack) {
      Pack<T> y;
#pragma unroll
      for (int k = 0; k < wide; ++k) y.v[k] = result((C)load(pack.v[k]));
      ((Pack<T> *)to)[i] = y;
    });
  }
}

// What is summed: g y, or for the logarithm g; and the gradient of x: y (g - sum), or g - exp(y)
// sum.
template <typename C> __device__ __forceinline__ C term(bool log, C grad, C y) { return log ? grad : grad * y; }
template <typename T>
__device__ __forceinline__ typename Compute<T>::number gradient(bool log, typename Compute<T>::number grad, typename Compute<T>::number y,
                                                                typename Compute<T>::number sum) {
  return log ? grad - exponential<T>(y) * sum : y * (grad - sum);
}

template <typename T>
__device__ void backward_lines(i64 lines, i64 length, const Strided &outer, i64 grad_step, i64 y_step, i64 out_step, bool log, int team,
                               const T *grad, const T *y, T *out) {
  typedef typename Compute<T>::number C;
  const int wide = 16 / sizeof(T);
  int teams = blockDim.x / team, lane = threadIdx.x % team;
  for (i64 index = (i64)blockIdx.x * teams + threadIdx.x / team; index < lines; index += (i64)gridDim.x * teams) {
    i64 at[3];
    locate<3>(outer, index, at);
    const T *g = grad + at[0], *v = y + at[1];
    T *to = out + at[2];
    bool packed = grad_step == 1 && y_step == 1 && out_step == 1 && length % wide == 0 && aligned(g) && aligned(v) && aligned(to);
    Line<T> grads(g, length, grad_step, packed, lane, team), values(v, length, y_step, packed, lane, team);
    C total = 0;
    if (packed) {
      grads.each_pack_with(values, [&](i64, const Pack<T> &a, const Pack<T> &b) {
#pragma unroll
        for (int k = 0; k < wide; ++k) total += term<C>(log, load(a.v[k]), load(b.v[k]));
      });
    } else {
      for (i64 i = lane; i < length; i += team) total += term<C>(log, load(g[i * grad_step]), load(v[i * y_step]));
    }
    total = team_fold<Plus>(total, (C)0, team == 32);
    if (!packed) {
      for (i64 i = lane; i < length; i += team)
        to[i * out_step] = Store<T>::from(gradient<T>(log, load(g[i * grad_step]), load(v[i * y_step]), total));
      continue;
    }
    grads.each_pack_with(values, [&](i64 i, const Pack<T> &a, const Pack<T> &b) {
      Pack<T> result;
#pragma unroll
      for (int k = 0; k < wide; ++k) result.v[k] = Store<T>::from(gradient<T>(log, load(a.v[k]), load(b.v[k]), total));
      ((Pack<T> *)to)[i] = result;
    });
  }
}

// Blocks of 32 neighbouring lines: a lane a line, each warp every eighth element of it.
const int WARPS = 8;

// Folds what the warps have of each line, in the order of the warps.
template <typename F, typename C> __device__ __forceinline__ C across_warps(C value) {
  __shared__ C parts[WARPS][32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  __syncthreads();
  parts[warp][lane] = value;
  __syncthreads();
  value = parts[0][lane];
#pragma unroll
  for (int w = 1; w < WARPS; ++w) value = F::of(value, parts[w][lane]);
  return value;
}

template <typename T>
__device__ void softmax_columns(i64 lines, i64 length, const Strided &outer, i64 x_step, i64 out_step, bool log, const T *x, T *out) {
  typedef typename Compute<T>::number C;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (i64 first = (i64)blockIdx.x * 32; first < lines; first += (i64)gridDim.x * 32) {
    i64 index = first + lane, own = index < lines ? length : 0, at[2];
    locate<2>(outer, index < lines ? index : first, at);
    const T *from = x + at[0];
    T *to = out + at[1];
    C top = Least<C>::value(), total = 0;
    for (i64 i = warp; i < own; i += WARPS) top = Larger::of(top, (C)load(from[i * x_step]));
    top = across_warps<Larger>(top);
    for (i64 i = warp; i < own; i += WARPS) total += exponential<T>((C)load(from[i * x_step]) - top);
    total = across_warps<Plus>(total);
    C scale = (C)1 / total, shift = ::log(total);
    for (i64 i = warp; i < own; i += WARPS) {
      C value = (C)load(from[i * x_step]) - top;
      to[i * out_step] = Store<T>::from(log ? value - shift : exponential<T>(value) * scale);
    }
  }
}

template <typename T>
__device__ void backward_columns(i64 lines, i64 length, const Strided &outer, i64 grad_step, i64 y_step, i64 out_step, bool log,
                                 const T *grad, const T *y, T *out) {
  typedef typename Compute<T>::number C;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (i64 first = (i64)blockIdx.x * 32; first < lines; first += (i64)gridDim.x * 32) {
    i64 index = first + lane, own = index < lines ? length : 0, at[3];
    locate<3>(outer, index < lines ? index : first, at);
    const T *g = grad + at[0], *v = y + at[1];
    T *to = out + at[2];
    C total = 0;
    for (i64 i = warp; i < own; i += WARPS) total += term<C>(log, load(g[i * grad_step]), load(v[i * y_step]));
    total = across_warps<Plus>(total);
    for (i64 i = warp; i < own; i += WARPS)
      to[i * out_step] = Store<T>::from(gradient<T>(log, load(g[i * grad_step]), load(v[i * y_step]), total));
  }
}

// A team of 1 stands for blocks of neighbouring lines.
#define SOFTMAX(type)                                                                                                               \
  KERNEL_OF(512, softmax_##type)(i64 lines, i64 length, Strided outer, i64 x_step, i64 out_step, i32 log, i32 team,                 \
                                            const type *x, type *out) {                                                             \
    if (team == 1) softmax_columns<type>(lines, length, outer, x_step, out_step, log, x, out);                                      \
    else softmax_lines<type>(lines, length, outer, x_step, out_step, log, team, x, out);                                            \
  }                                                                                                                                 \
  KERNEL_OF(512, softmax_backward_##type)(i64 lines, i64 length, Strided outer, i64 grad_step, i64 y_step,                          \
                                                     i64 out_step, i32 log, i32 team, const type *grad, const type *y, type *out) { \
    if (team == 1) backward_columns<type>(lines, length, outer, grad_step, y_step, out_step, log, grad, y, out);                    \
    else backward_lines<type>(lines, length, outer, grad_step, y_step, out_step, log, team, grad, y, out);                          \
  }
SOFTMAX(f32)
SOFTMAX(f64)
SOFTMAX(f16)
SOFTMAX(bf16)
