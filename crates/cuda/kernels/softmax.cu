// Softmax and its logarithm along lines of `length` elements, and their derivatives. `outer`
// locates the lines; strides along them are in elements. Three ways: a warp or a block a line where
// its elements are neighbours, and blocks of 32 neighbouring lines otherwise.

// A thread's share of a line that begins at a multiple of 16 bytes and is as long as one, taken 16
// bytes at a time. The first `kept` packs, asked for at once, are held in registers as the numbers
// that are computed in. A line that has no more is read once; the rest of a longer one is read
// again from the caches.
template <typename T, bool by_warp, int kept> struct Share {
  typedef typename Compute<T>::number C;
  static const int wide = 16 / sizeof(T);
  C own[kept][wide];
  const Pack<T> *line;
  i64 packs;

  __device__ __forceinline__ static i64 at(int j) { return Team<by_warp>::place() + (i64)j * Team<by_warp>::threads(); }

  __device__ __forceinline__ Share(const T *in, i64 length) : line((const Pack<T> *)in), packs(length / wide) {
    Pack<T> first[kept];
#pragma unroll
    for (int j = 0; j < kept; ++j)
      if (at(j) < packs) first[j] = line[at(j)];
#pragma unroll
    for (int j = 0; j < kept; ++j) unpack(first[j], own[j]);
  }

  __device__ __forceinline__ static void unpack(const Pack<T> &pack, C (&values)[wide]) {
#pragma unroll
    for (int k = 0; k < wide; ++k) values[k] = (C)load(pack.v[k]);
  }

  // Calls `use(i, pack i)` for what is held, which it may change.
  template <typename Use> __device__ __forceinline__ void each_own(Use use) {
#pragma unroll
    for (int j = 0; j < kept; ++j)
      if (at(j) < packs) use(at(j), own[j]);
  }

  // Calls `use(i, pack i)` for the rest, read again.
  template <typename Use> __device__ __forceinline__ void each_other(Use use) const {
    for (i64 i = at(kept); i < packs; i += Team<by_warp>::threads()) {
      C values[wide];
      unpack(line[i], values);
      use(i, values);
    }
  }

  template <typename Use> __device__ __forceinline__ void each(Use use) {
    each_own(use);
    each_other(use);
  }

  // Calls `use(i, pack i, pack i of other)` for two lines of one length.
  template <typename Use> __device__ __forceinline__ void each_with(Share &other, Use use) {
#pragma unroll
    for (int j = 0; j < kept; ++j)
      if (at(j) < packs) use(at(j), own[j], other.own[j]);
    for (i64 i = at(kept); i < packs; i += Team<by_warp>::threads()) {
      C values[wide], others[wide];
      unpack(line[i], values);
      unpack(other.line[i], others);
      use(i, values, others);
    }
  }

  // Packs numbers up at `to`.
  __device__ __forceinline__ static void store(T *to, i64 i, const C (&values)[wide]) {
    Pack<T> pack;
#pragma unroll
    for (int k = 0; k < wide; ++k) pack.v[k] = Store<T>::from(values[k]);
    ((Pack<T> *)to)[i] = pack;
  }
};

template <typename T, bool by_warp>
__device__ void softmax_lines(i64 lines, i64 length, const Strided &outer, i64 x_step, i64 out_step, bool log, const T *x, T *out) {
  typedef typename Compute<T>::number C;
  typedef Team<by_warp> Ours;
  typedef Share<T, by_warp, 4> Line;
  for (i64 index = Ours::first(), turn = 0; index < lines; index += Ours::teams(), turn ^= 1) {
    i64 at[2];
    locate<2>(outer, index, at);
    const T *from = x + at[0];
    T *to = out + at[1];
    if (x_step != 1 || out_step != 1 || length % Line::wide != 0 || !aligned(from) || !aligned(to)) {
      C top = lowest<C>(), total = 0;
      for (i64 i = Ours::place(); i < length; i += Ours::threads()) top = Larger::of(top, (C)load(from[i * x_step]));
      top = Ours::template fold<Larger>(top, lowest<C>());
      for (i64 i = Ours::place(); i < length; i += Ours::threads()) total += exponential<T>((C)load(from[i * x_step]) - top);
      total = Ours::sum(total, 1);
      C scale = (C)1 / total, shift = ::log(total);
      for (i64 i = Ours::place(); i < length; i += Ours::threads()) {
        C value = (C)load(from[i * x_step]) - top;
        to[i * out_step] = Store<T>::from(log ? value - shift : exponential<T>(value) * scale);
      }
      continue;
    }
    Line line(from, length);
    Moments<C> own;
    line.each([&](i64, C(&values)[Line::wide]) {
#pragma unroll
      for (int k = 0; k < Line::wide; ++k) own.top = Larger::of(own.top, values[k]);
    });
    // What is held becomes its exponential below the thread's largest. For the logarithm it stays.
    C base = own.base();
    auto add = [&](i64, C(&values)[Line::wide]) {
#pragma unroll
      for (int k = 0; k < Line::wide; ++k) {
        C exponent = exponential<T>(values[k] - base);
        own.sum += exponent;
        if (!log) values[k] = exponent;
      }
    };
    line.each(add);
    Moments<C> all = team_moments<by_warp>(own, turn);
    C scale = exponential<C>(own.top - all.base()) / all.sum, shift = ::log(all.sum);
    auto finish = [&](i64 i, C(&values)[Line::wide]) {
#pragma unroll
      for (int k = 0; k < Line::wide; ++k) values[k] = log ? values[k] - all.top - shift : values[k] * scale;
      Line::store(to, i, values);
    };
    line.each_own(finish);
    line.each_other([&](i64 i, C(&values)[Line::wide]) {
      add(i, values);
      finish(i, values);
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

template <typename T, bool by_warp>
__device__ void backward_lines(i64 lines, i64 length, const Strided &outer, i64 grad_step, i64 y_step, i64 out_step, bool log,
                               const T *grad, const T *y, T *out) {
  typedef typename Compute<T>::number C;
  typedef Team<by_warp> Ours;
  typedef Share<T, by_warp, by_warp ? 4 : (int)sizeof(T)> Line;
  for (i64 index = Ours::first(), turn = 0; index < lines; index += Ours::teams(), turn ^= 1) {
    i64 at[3];
    locate<3>(outer, index, at);
    const T *g = grad + at[0], *v = y + at[1];
    T *to = out + at[2];
    C total = 0;
    bool packed = grad_step == 1 && y_step == 1 && out_step == 1 && length % Line::wide == 0;
    if (!packed || !aligned(g) || !aligned(v) || !aligned(to)) {
      for (i64 i = Ours::place(); i < length; i += Ours::threads()) total += term<C>(log, load(g[i * grad_step]), load(v[i * y_step]));
      total = Ours::sum(total, turn);
      for (i64 i = Ours::place(); i < length; i += Ours::threads())
        to[i * out_step] = Store<T>::from(gradient<T>(log, load(g[i * grad_step]), load(v[i * y_step]), total));
      continue;
    }
    Line grads(g, length), values(v, length);
    grads.each_with(values, [&](i64, C(&a)[Line::wide], C(&b)[Line::wide]) {
#pragma unroll
      for (int k = 0; k < Line::wide; ++k) total += term<C>(log, a[k], b[k]);
    });
    total = Ours::sum(total, turn);
    grads.each_with(values, [&](i64 i, C(&a)[Line::wide], C(&b)[Line::wide]) {
#pragma unroll
      for (int k = 0; k < Line::wide; ++k) a[k] = gradient<T>(log, a[k], b[k], total);
      Line::store(to, i, a);
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
    C top = lowest<C>(), total = 0;
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

#define SOFTMAX(type, blocks)                                                                                                               \
  KERNEL_BY(128, 6, softmax_by_warp_##type)(i64 lines, i64 length, Strided outer, i64 x_step, i64 out_step, i32 log, const type *x, \
                                         type *out) {                                                                               \
    in_turn();                                                                                                                      \
    softmax_lines<type, true>(lines, length, outer, x_step, out_step, log, x, out);                                                 \
  }                                                                                                                                 \
  KERNEL_BY(512, blocks, softmax_##type)(i64 lines, i64 length, Strided outer, i64 x_step, i64 out_step, i32 log, const type *x,         \
                                 type *out) {                                                                                       \
    in_turn();                                                                                                                      \
    softmax_lines<type, false>(lines, length, outer, x_step, out_step, log, x, out);                                                \
  }                                                                                                                                 \
  KERNEL_OF(256, softmax_columns_##type)(i64 lines, i64 length, Strided outer, i64 x_step, i64 out_step, i32 log, const type *x,    \
                                         type *out) {                                                                               \
    in_turn();                                                                                                                      \
    softmax_columns<type>(lines, length, outer, x_step, out_step, log, x, out);                                                     \
  }                                                                                                                                 \
  KERNEL_BY(128, 6, softmax_backward_by_warp_##type)(i64 lines, i64 length, Strided outer, i64 grad_step, i64 y_step, i64 out_step, \
                                                  i32 log, const type *grad, const type *y, type *out) {                            \
    in_turn();                                                                                                                      \
    backward_lines<type, true>(lines, length, outer, grad_step, y_step, out_step, log, grad, y, out);                               \
  }                                                                                                                                 \
  KERNEL_BY(512, 2, softmax_backward_##type)(i64 lines, i64 length, Strided outer, i64 grad_step, i64 y_step, i64 out_step,         \
                                          i32 log, const type *grad, const type *y, type *out) {                                    \
    in_turn();                                                                                                                      \
    backward_lines<type, false>(lines, length, outer, grad_step, y_step, out_step, log, grad, y, out);                              \
  }                                                                                                                                 \
  KERNEL_OF(256, softmax_backward_columns_##type)(i64 lines, i64 length, Strided outer, i64 grad_step, i64 y_step, i64 out_step,    \
                                                  i32 log, const type *grad, const type *y, type *out) {                            \
    in_turn();                                                                                                                      \
    backward_columns<type>(lines, length, outer, grad_step, y_step, out_step, log, grad, y, out);                                   \
  }
// With four packs of halves a thread needs more registers.
SOFTMAX(f32, 3)
SOFTMAX(f64, 3)
SOFTMAX(f16, 2)
SOFTMAX(bf16, 2)
