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

template <typename C> __device__ C block_sum(C value) {
  __shared__ C warps[32];
  for (int distance = 16; distance > 0; distance >>= 1) value += __shfl_xor_sync(~0u, value, distance);
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  value = lane < (blockDim.x >> 5) ? warps[lane] : (C)0;
  for (int distance = 16; distance > 0; distance >>= 1) value += __shfl_xor_sync(~0u, value, distance);
  __syncthreads();
  return value;
}

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

template <typename C> __device__ C lowest();
template <> __device__ __forceinline__ f32 lowest<f32>() { return __int_as_float((int)0xff800000); }
template <> __device__ __forceinline__ f64 lowest<f64>() { return __longlong_as_double((i64)0xfff0000000000000ull); }
__device__ __forceinline__ f32 exponential(f32 x) { return expf(x); }
__device__ __forceinline__ f64 exponential(f64 x) { return exp(x); }

template <typename T> __device__ __forceinline__ f64 share(const T *weights, i64 at) { return weights ? (f64)weights[at] : 1.0; }

__device__ __forceinline__ bool counts_for(const Terms &terms, i64 target) {
  return target != terms.ignored && target >= 0 && target < terms.classes;
}

// One block: what a mean divides by, and the sum of the classes' weights.
template <typename T> __device__ void counts(const Terms &terms, i64 rows, const i64 *targets, const T *weights, Counts *out,
                                              const Fault &fault) {
  f64 counted = 0, total = 0;
  for (i64 row = threadIdx.x; row < rows; row += blockDim.x)
    if (targets[row] != terms.ignored && within(fault, targets[row], terms.classes, 1)) counted += share(weights, targets[row]);
  for (i64 i = threadIdx.x; weights && i < terms.classes; i += blockDim.x) total += (f64)weights[i];
  counted = block_sum(counted);
  total = block_sum(total);
  if (threadIdx.x != 0) return;
  out->scale = terms.reduction == 1 ? 1 / counted : 1;
  out->total = weights ? total : (f64)terms.classes;
}

// A block a row. `targets`, `grads`, `losses` and `loss` start at the block of rows.
template <typename T>
__device__ void of_rows(const Terms &terms, i64 rows, T *scores, const i64 *targets, const T *bias, const T *weights, const T *grads,
                        const Counts *given, f64 *losses, T *loss) {
  i64 classes = terms.classes;
  f64 total = given->total, smoothing = terms.smoothing, part = smoothing / (f64)classes;
  for (i64 row = blockIdx.x; row < rows; row += gridDim.x) {
    T *line = scores + row * classes;
    i64 target = targets[row];
    if (!counts_for(terms, target)) {
      if (terms.slopes)
        for (i64 i = threadIdx.x; i < classes; i += blockDim.x) line[i] = 0;
      if (threadIdx.x == 0 && losses) losses[row] = 0;
      if (threadIdx.x == 0 && loss) loss[row] = 0;
      continue;
    }
    T top = lowest<T>();
    f64 spread = 0;
    for (i64 i = threadIdx.x; i < classes; i += blockDim.x) {
      T score = line[i];
      if (bias) line[i] = score += bias[i];
      top = larger(top, score);
      if (smoothing != 0) spread += (f64)score * share(weights, i);
    }
    top = block_largest(top);
    f64 own = (f64)line[target];
    if (smoothing != 0) spread = block_sum(spread);
    T sum = 0;
    for (i64 i = threadIdx.x; i < classes; i += blockDim.x) sum += exponential(line[i] - top);
    f64 all = block_sum((f64)sum), log_sum = (f64)top + log(all), weight = share(weights, target);
    if (threadIdx.x == 0) {
      f64 value = (1 - smoothing) * weight * (log_sum - own) + part * (total * log_sum - spread);
      if (losses) losses[row] = value;
      if (loss) loss[row] = (T)value;
    }
    if (!terms.slopes) continue;
    f64 scale = grads ? (f64)grads[row] : given->scale;
    T slope = (T)(scale * ((1 - smoothing) * weight + part * total) / all), each = (T)(scale * part);
    T at_target = (T)(scale * (1 - smoothing) * weight);
    for (i64 i = threadIdx.x; i < classes; i += blockDim.x) {
      T value = exponential(line[i] - top) * slope;
      if (smoothing != 0) value -= weights ? each * weights[i] : each;
      line[i] = i == target ? value - at_target : value;
    }
  }
}

// One block adds up the losses.
template <typename T> __device__ void add_losses(i64 rows, const f64 *losses, const Counts *given, T *loss) {
  f64 sum = 0;
  for (i64 row = threadIdx.x; row < rows; row += blockDim.x) sum += losses[row];
  sum = block_sum(sum);
  if (threadIdx.x == 0) loss[0] = (T)(sum * given->scale);
}

// A thread a class adds a block's gradients to that of the bias.
template <typename T> __device__ void add_columns(i64 rows, i64 classes, i32 is_first, const T *scores, T *out) {
  for (i64 i = first_index(); i < classes; i += all_threads()) {
    f64 sum = is_first ? 0.0 : (f64)out[i];
    for (i64 row = 0; row < rows; ++row) sum += (f64)scores[row * classes + i];
    out[i] = (T)sum;
  }
}

#define LINEAR_CROSS_ENTROPY(type)                                                                                        \
  KERNEL(linear_counts_##type)(Terms terms, i64 rows, const i64 *targets, const type *weights, Counts *out,               \
                                                  Fault fault) {                                                          \
    counts<type>(terms, rows, targets, weights, out, fault);                                                              \
  }                                                                                                                       \
  KERNEL(linear_rows_##type)(Terms terms, i64 rows, type *scores, const i64 *targets, const type *bias,                   \
                                                const type *weights, const type *grads, const Counts *given, f64 *losses, \
                                                type *loss) {                                                             \
    of_rows<type>(terms, rows, scores, targets, bias, weights, grads, given, losses, loss);                               \
  }                                                                                                                       \
  KERNEL(linear_losses_##type)(i64 rows, const f64 *losses, const Counts *given, type *loss) {                            \
    add_losses<type>(rows, losses, given, loss);                                                                          \
  }                                                                                                                       \
  KERNEL(linear_bias_##type)(i64 rows, i64 classes, i32 is_first, const type *scores, type *out) {                        \
    add_columns<type>(rows, classes, is_first, scores, out);                                                              \
  }
LINEAR_CROSS_ENTROPY(f32)
LINEAR_CROSS_ENTROPY(f64)
