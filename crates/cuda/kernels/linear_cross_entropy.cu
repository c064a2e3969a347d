// What comes between the products of a cross entropy of a linear map's results: the scores of a
// block of rows become the rows' losses and, if gradients are wanted, their own gradient.

// Mirrors `Terms` in Rust.
struct Terms {
  i64 classes, ignored;
  f64 smoothing;
  // 0 the losses themselves, 1 their mean, 2 their sum.
  i64 reduction;
  // Whether scores become gradients.
  i64 slopes;
};

// What each row's loss counts for, and the sum of the classes' weights.
struct Counts { f64 scale, total; };

// A NaN wins, so that the whole row becomes one.
template <typename C> __device__ __forceinline__ C larger(C a, C b) { return b > a || b != b ? b : a; }

template <typename C> __device__ C block_largest(C value) {
  __shared__ C warps[32];
  for (int distance = 16; distance > 0; distance >>= 1) value = larger(value, __shfl_xor_sync(~0u, value, distance));
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  value = warps[lane < (blockDim.x >> 5) ? lane : 0];
  for (int distance = 16; distance > 0; distance >>= 1) value = larger(value, __shfl_xor_sync(~0u, value, distance));
  __syncthreads();
  return value;
}

template <typename T> __device__ __forceinline__ f64 share(const T *weights, i64 at) { return weights ? (f64)load(weights[at]) : 1.0; }

__device__ __forceinline__ bool counts_for(const Terms &terms, i64 target) {
  return target != terms.ignored && target >= 0 && target < terms.classes;
}

// One block: what a mean divides by, and the sum of the classes' weights.
template <typename T> __device__ void counts(const Terms &terms, i64 rows, const i64 *targets, const T *weights, Counts *out,
                                              const Fault &fault) {
  f64 counted = 0, total = 0;
  for (i64 row = threadIdx.x; row < rows; row += blockDim.x)
    if (targets[row] != terms.ignored && within(fault, targets[row], terms.classes, 1)) counted += share(weights, targets[row]);
  for (i64 i = threadIdx.x; weights && i < terms.classes; i += blockDim.x) total += (f64)load(weights[i]);
  counted = block_sum(counted);
  total = block_sum(total);
  if (threadIdx.x != 0) return;
  out->scale = terms.reduction == 1 ? 1 / counted : 1;
  out->total = weights ? total : (f64)terms.classes;
}

// A row of scores that is read more than once. Where its length is a multiple of 16 bytes it is
// read and written by packs, four on their way at once; its first packs stay in shared memory,
// where a thread finds what it put there itself.
template <typename T> struct Line {
  static const int wide = 16 / sizeof(T), at_once = 4;
  typedef typename Compute<T>::number C;
  T *scores;
  i64 classes, kept;
  Pack<T> *own;

  // Calls `use(i, scores)` for the thread's scores, some at a time, from the i-th on; what it
  // leaves in them is written back if `writes`. The first reading of a row `fills` the memory.
  template <bool fills, bool writes, typename Use> __device__ __forceinline__ void each(Use use) const {
    if (classes % wide != 0) {
      for (i64 i = threadIdx.x; i < classes; i += blockDim.x) {
        C score[1] = {load(scores[i])};
        use(i, score);
        if (writes) scores[i] = Store<T>::from(score[0]);
      }
      return;
    }
    Pack<T> *row = (Pack<T> *)scores;
    i64 packs = classes / wide, side = blockDim.x;
    for (i64 first = threadIdx.x; first < packs; first += at_once * side) {
      Pack<T> some[at_once];
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        i64 at = first + j * side;
        if (at < packs) some[j] = !fills && at < kept ? own[at] : row[at];
      }
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        i64 at = first + j * side;
        if (at >= packs) continue;
        if (fills && at < kept) own[at] = some[j];
        C score[wide];
#pragma unroll
        for (int k = 0; k < wide; ++k) score[k] = load(some[j].v[k]);
        use(at * wide, score);
        if constexpr (writes) {
#pragma unroll
          for (int k = 0; k < wide; ++k) some[j].v[k] = Store<T>::from(score[k]);
          row[at] = some[j];
        }
      }
    }
  }
};

// A block a row. `targets`, `grads`, `losses` and `loss` start at the block of rows; `kept` packs
// of a row have room in shared memory.
template <typename T, typename C = typename Compute<T>::number>
__device__ void of_rows(const Terms &terms, i64 rows, T *scores, const i64 *targets, const T *bias, const T *weights, const C *grads,
                        const Counts *given, f64 *losses, C *loss, i64 kept) {
  extern __shared__ Pack<u32> held[];
  i64 classes = terms.classes;
  f64 total = given->total, smoothing = terms.smoothing, part = smoothing / (f64)classes;
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    Line<T> line = {scores + row * classes, classes, kept, (Pack<T> *)held};
    i64 target = targets[row];
    if (!counts_for(terms, target)) {
      if (terms.slopes)
        for (i64 i = threadIdx.x; i < classes; i += blockDim.x) line.scores[i] = Store<T>::from((C)0);
      if (threadIdx.x == 0 && losses) losses[row] = 0;
      if (threadIdx.x == 0 && loss) loss[row] = 0;
      continue;
    }
    auto biased = [&](i64 i, C score) { return bias ? score + load(bias[i]) : score; };
    // The largest score so far, and the sum of the exponentials of what the others are below it.
    C top = lowest<C>(), sum = 0;
    f64 spread = 0;
    line.template each<true, false>([&](i64 i, auto &some) {
      const int count = sizeof(some) / sizeof(C);
      C highest = top;
#pragma unroll
      for (int k = 0; k < count; ++k) {
        some[k] = biased(i + k, some[k]);
        highest = larger(highest, some[k]);
        if (smoothing != 0) spread += (f64)some[k] * share(weights, i + k);
      }
      // Scores of -inf alone count for nothing, and have no difference from the largest.
      if (highest == lowest<C>()) return;
      if (highest != top) sum *= exponential<T>(top - highest);
      top = highest;
#pragma unroll
      for (int k = 0; k < count; ++k) sum += exponential<T>(some[k] - top);
    });
    C own_top = top;
    top = block_largest(top);
    f64 own = (f64)biased(target, load(line.scores[target]));
    if (smoothing != 0) spread = block_sum(spread);
    f64 all = block_sum((f64)(sum * exponential<T>(own_top - top)));
    f64 log_sum = (f64)top + log(all), weight = share(weights, target);
    if (threadIdx.x == 0) {
      f64 value = (1 - smoothing) * weight * (log_sum - own) + part * (total * log_sum - spread);
      if (losses) losses[row] = value;
      if (loss) loss[row] = (C)value;
    }
    if (!terms.slopes) continue;
    f64 scale = grads ? (f64)grads[row] : given->scale;
    C slope = (C)(scale * ((1 - smoothing) * weight + part * total) / all), each = (C)(scale * part);
    C at_target = (C)(scale * (1 - smoothing) * weight);
    line.template each<false, true>([&](i64 i, auto &some) {
      const int count = sizeof(some) / sizeof(C);
#pragma unroll
      for (int k = 0; k < count; ++k) {
        C value = exponential<T>(biased(i + k, some[k]) - top) * slope;
        if (smoothing != 0) value -= weights ? each * load(weights[i + k]) : each;
        some[k] = i + k == target ? value - at_target : value;
      }
    });
  }
}

// One block adds up the losses.
template <typename C> __device__ void add_losses(i64 rows, const f64 *losses, const Counts *given, C *loss) {
  f64 sum = 0;
  for (i64 row = threadIdx.x; row < rows; row += blockDim.x) sum += losses[row];
  sum = block_sum(sum);
  if (threadIdx.x == 0) loss[0] = (C)(sum * given->scale);
}

// A thread a class adds a block's gradients to that of the bias.
template <typename T, typename C> __device__ void add_columns(i64 rows, i64 classes, i32 is_first, const T *scores, C *out) {
  for (i64 i = first_index(); i < classes; i += all_threads()) {
    f64 sum = is_first ? 0.0 : (f64)out[i];
    for (i64 row = 0; row < rows; ++row) sum += (f64)load(scores[row * classes + i]);
    out[i] = (C)sum;
  }
}

// Losses, their gradients and the sums over rows are of the type that is computed in.
#define LINEAR_CROSS_ENTROPY(type, number)                                                                                  \
  KERNEL(linear_counts_##type)(Terms terms, i64 rows, const i64 *targets, const type *weights, Counts *out, Fault fault) {  \
    in_turn();                                                                                                              \
    counts<type>(terms, rows, targets, weights, out, fault);                                                                \
  }                                                                                                                         \
  KERNEL_BY(512, 2, linear_rows_##type)(Terms terms, i64 rows, type *scores, const i64 *targets, const type *bias,          \
                                        const type *weights, const number *grads, const Counts *given, f64 *losses,         \
                                        number *loss, i64 kept) {                                                           \
    in_turn();                                                                                                              \
    of_rows<type>(terms, rows, scores, targets, bias, weights, grads, given, losses, loss, kept);                           \
  }                                                                                                                         \
  KERNEL(linear_losses_##type)(i64 rows, const f64 *losses, const Counts *given, number *loss) {                            \
    in_turn();                                                                                                              \
    add_losses<number>(rows, losses, given, loss);                                                                          \
  }                                                                                                                         \
  KERNEL(linear_bias_##type)(i64 rows, i64 classes, i32 is_first, const type *scores, number *out) {                        \
    in_turn();                                                                                                              \
    add_columns<type>(rows, classes, is_first, scores, out);                                                                \
  }
LINEAR_CROSS_ENTROPY(f32, f32)
LINEAR_CROSS_ENTROPY(f64, f64)
LINEAR_CROSS_ENTROPY(bf16, f32)
