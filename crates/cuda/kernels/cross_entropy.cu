// The likelihood of target classes, from log-probabilities (nll_loss) and from scores
// (cross_entropy), and the gradients of both. Rows are scores of classes, `inner` elements apart.
// What is reduced over rows goes through one pair of sums a block, added up in order by one block.

// Sums of losses and of weights.
struct Total { f64 loss, weight; };

struct Rows {
  i64 outer, classes, inner;
  __device__ i64 count() const { return outer * inner; }
  __device__ i64 start(i64 row) const {
    return inner == 1 ? row * classes : row / inner * inner * classes + row % inner;
  }
};

// What the targets count for: mirrors `Terms` in Rust.
struct Terms {
  i64 ignored;
  f64 smoothing;
  // 0 the losses themselves, 1 their mean, 2 their sum.
  i64 reduction;
  // Of the elements, for `fetched` and `put`.
  i64 width;
};

template <typename C> __device__ C lowest();
template <> __device__ __forceinline__ f32 lowest<f32>() { return __int_as_float((int)0xff800000); }
template <> __device__ __forceinline__ f64 lowest<f64>() { return __longlong_as_double((i64)0xfff0000000000000ull); }
template <typename C> __device__ C not_a_number();
template <> __device__ __forceinline__ f32 not_a_number<f32>() { return __int_as_float(0x7fc00000); }
template <> __device__ __forceinline__ f64 not_a_number<f64>() { return __longlong_as_double(0x7ff8000000000000ll); }
__device__ __forceinline__ f32 exponential(f32 x) { return expf(x); }
__device__ __forceinline__ f64 exponential(f64 x) { return exp(x); }
// Halves keep less than the fast one gives.
template <typename T> __device__ __forceinline__ typename Compute<T>::number exponential_of(typename Compute<T>::number x) {
  if constexpr (sizeof(T) == 2) return __expf(x);
  else return exponential(x);
}
__device__ __forceinline__ f32 logarithm(f32 x) { return logf(x); }
__device__ __forceinline__ f64 logarithm(f64 x) { return log(x); }

// The largest score so far and the sum of exp(score - largest). A NaN is left for the sum to carry.
template <typename C> struct Moments {
  C top, sum;

  __device__ Moments() : top(lowest<C>()), sum(0) {}

  // Nothing is subtracted from scores of minus infinity, so that they count 0 and not NaN.
  __device__ C base() const { return top == lowest<C>() ? (C)0 : top; }

  __device__ void raise(C other) {
    if (!(other > top)) return;
    sum *= exponential(top - other);
    top = other;
  }

  __device__ void take(C score) {
    raise(score);
    sum += exponential(score - base());
  }

  __device__ void merge(C other_top, C other_sum) {
    C larger = other_top > top ? other_top : top;
    C from = larger == lowest<C>() ? (C)0 : larger;
    sum = sum * exponential(top - from) + other_sum * exponential(other_top - from);
    top = larger;
  }

  // A row of minus infinities alone is no distribution.
  __device__ C log_sum() const { return top == lowest<C>() ? not_a_number<C>() : logarithm(sum); }
};

template <typename C> __device__ Moments<C> block_moments(Moments<C> own) {
  __shared__ C tops[32], sums[32];
  for (int distance = 16; distance > 0; distance >>= 1) {
    C top = __shfl_xor_sync(~0u, own.top, distance), sum = __shfl_xor_sync(~0u, own.sum, distance);
    own.merge(top, sum);
  }
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) {
    tops[warp] = own.top;
    sums[warp] = own.sum;
  }
  __syncthreads();
  int warps = blockDim.x >> 5;
  own = Moments<C>();
  if (lane < warps) {
    own.top = tops[lane];
    own.sum = sums[lane];
  }
  for (int distance = 16; distance > 0; distance >>= 1) {
    C top = __shfl_xor_sync(~0u, own.top, distance), sum = __shfl_xor_sync(~0u, own.sum, distance);
    own.merge(top, sum);
  }
  __syncthreads();
  return own;
}

template <typename C> __device__ __forceinline__ f64 share(const void *weight, i64 class_, i64 width) {
  return weight ? (f64)fetched<C>(weight, class_, width) : 1.0;
}

// The sum of the classes' weights, by a whole block.
template <typename C> __device__ f64 all_shares(const void *weight, i64 classes, i64 width) {
  if (!weight) return (f64)classes;
  f64 sum = 0;
  for (i64 i = threadIdx.x; i < classes; i += blockDim.x) sum += (f64)fetched<C>(weight, i, width);
  return block_sum(sum);
}

// Whether a target is a class that counts; tells of one that is none.
__device__ __forceinline__ bool counts(const Terms &terms, const Rows &rows, i64 target, const Fault &fault) {
  return target != terms.ignored && within(fault, target, rows.classes, 1);
}

// The loss of a row whose scores, `inner` apart, were spread over all classes by `spread`.
template <typename C>
__device__ Total loss_of(const Terms &terms, const Rows &rows, const void *x, i64 start, i64 target, const void *weight, C top, C log_sum,
                         f64 spread, const Fault &fault) {
  Total total = {0, 0};
  if (!counts(terms, rows, target, fault)) return total;
  total.weight = share<C>(weight, target, terms.width);
  C score = fetched<C>(x, start + target * rows.inner, terms.width);
  total.loss = (f64)(log_sum - (score - top)) * total.weight;
  if (terms.smoothing != 0) total.loss = total.loss * (1 - terms.smoothing) + spread / (f64)rows.classes * terms.smoothing;
  return total;
}

// A block a row, whose scores lie side by side.
template <typename T>
__device__ void by_row(Rows rows, Terms terms, const T *x, const i64 *targets, const T *weight, T *loss, typename Compute<T>::number *tops,
                       typename Compute<T>::number *log_sums, Total *totals, Fault fault) {
  typedef typename Compute<T>::number C;
  const int wide = 16 / sizeof(T);
  bool packed = rows.classes % wide == 0 && aligned(x);
  f64 weights = terms.smoothing != 0 ? all_shares<C>(weight, rows.classes, terms.width) : 0;
  Total sum = {0, 0};
  for (i64 row = blockIdx.x; row < rows.outer; row += gridDim.x) {
    const T *line = x + row * rows.classes;
    Moments<C> own;
    if (packed) {
      const Pack<T> *packs = (const Pack<T> *)line;
      const i64 count = rows.classes / wide, step = blockDim.x;
      // So many packs are asked for at once.
      const int ahead = 4;
      for (i64 first = threadIdx.x; first < count; first += ahead * step) {
        Pack<T> next[ahead];
#pragma unroll
        for (int j = 0; j < ahead; ++j)
          if (first + j * step < count) next[j] = packs[first + j * step];
#pragma unroll
        for (int j = 0; j < ahead; ++j) {
          if (first + j * step >= count) break;
          C values[wide], top = lowest<C>();
#pragma unroll
          for (int k = 0; k < wide; ++k) {
            values[k] = (C)load(next[j].v[k]);
            top = values[k] > top ? values[k] : top;
          }
          own.raise(top);
          C base = own.base(), part = 0;
#pragma unroll
          for (int k = 0; k < wide; ++k) part += exponential_of<T>(values[k] - base);
          own.sum += part;
        }
      }
    } else {
      for (i64 i = threadIdx.x; i < rows.classes; i += blockDim.x) own.take((C)load(line[i]));
    }
    own = block_moments(own);
    C log_sum = own.log_sum();
    f64 spread = 0;
    if (terms.smoothing != 0) {
      for (i64 i = threadIdx.x; i < rows.classes; i += blockDim.x) spread += share<C>(weight, i, terms.width) * (f64)((C)load(line[i]) - own.top);
      spread = weights * (f64)log_sum - block_sum(spread);
    }
    if (threadIdx.x == 0) {
      Total total = loss_of<C>(terms, rows, x, row * rows.classes, targets[row], weight, own.top, log_sum, spread, fault);
      if (terms.reduction == 0) loss[row] = Store<T>::from(total.loss);
      if (tops) {
        tops[row] = own.top;
        log_sums[row] = log_sum;
      }
      sum.loss += total.loss;
      sum.weight += total.weight;
    }
  }
  if (threadIdx.x == 0) totals[blockIdx.x] = sum;
}

// A thread a row: neighbouring rows lie side by side.
template <typename C>
__device__ void by_column(Rows rows, Terms terms, const void *x, const i64 *targets, const void *weight, void *loss, C *tops, C *log_sums,
                          Total *totals, Fault fault) {
  f64 weights = terms.smoothing != 0 ? all_shares<C>(weight, rows.classes, terms.width) : 0;
  Total sum = {0, 0};
  for (i64 row = first_index(); row < rows.count(); row += all_threads()) {
    i64 start = rows.start(row);
    Moments<C> own;
    for (i64 i = 0; i < rows.classes; ++i) own.take(fetched<C>(x, start + i * rows.inner, terms.width));
    C log_sum = own.log_sum();
    f64 spread = 0;
    if (terms.smoothing != 0) {
      for (i64 i = 0; i < rows.classes; ++i)
        spread += share<C>(weight, i, terms.width) * (f64)(fetched<C>(x, start + i * rows.inner, terms.width) - own.top);
      spread = weights * (f64)log_sum - spread;
    }
    Total total = loss_of<C>(terms, rows, x, start, targets[row], weight, own.top, log_sum, spread, fault);
    if (terms.reduction == 0) put<C>(loss, row, terms.width, (C)total.loss);
    if (tops) {
      tops[row] = own.top;
      log_sums[row] = log_sum;
    }
    sum.loss += total.loss;
    sum.weight += total.weight;
  }
  sum.loss = block_sum(sum.loss);
  sum.weight = block_sum(sum.weight);
  if (threadIdx.x == 0) totals[blockIdx.x] = sum;
}

// A thread a row of log-probabilities.
template <typename C>
__device__ void likelihood(Rows rows, Terms terms, const void *x, const i64 *targets, const void *weight, void *loss, Total *totals,
                           Fault fault) {
  Total sum = {0, 0};
  for (i64 row = first_index(); row < rows.count(); row += all_threads()) {
    i64 target = targets[row];
    Total own = {0, 0};
    if (counts(terms, rows, target, fault)) {
      own.weight = share<C>(weight, target, terms.width);
      own.loss = -(f64)fetched<C>(x, rows.start(row) + target * rows.inner, terms.width) * own.weight;
    }
    if (terms.reduction == 0) put<C>(loss, row, terms.width, (C)own.loss);
    sum.loss += own.loss;
    sum.weight += own.weight;
  }
  sum.loss = block_sum(sum.loss);
  sum.weight = block_sum(sum.weight);
  if (threadIdx.x == 0) totals[blockIdx.x] = sum;
}

// One block adds up what the others left.
template <typename C> __device__ void finish(i64 blocks, Terms terms, const Total *totals, void *loss, C *weight) {
  Total sum = {0, 0};
  for (i64 i = threadIdx.x; i < blocks; i += blockDim.x) {
    sum.loss += totals[i].loss;
    sum.weight += totals[i].weight;
  }
  sum.loss = block_sum(sum.loss);
  sum.weight = block_sum(sum.weight);
  if (threadIdx.x != 0) return;
  if (terms.reduction == 1) put<C>(loss, 0, terms.width, (C)(sum.loss / sum.weight));
  if (terms.reduction == 2) put<C>(loss, 0, terms.width, (C)sum.loss);
  if (weight) weight[0] = (C)sum.weight;
}

// The gradients of log-probabilities at the targets; the rest was filled with zeros.
template <typename C>
__device__ void likelihood_backward(Rows rows, Terms terms, const void *grad, const i64 *targets, const void *weight, const C *divisor,
                                    void *out) {
  f64 by = terms.reduction == 1 ? (f64)divisor[0] : 1.0;
  for (i64 row = first_index(); row < rows.count(); row += all_threads()) {
    i64 target = targets[row];
    if (target == terms.ignored || target < 0 || target >= rows.classes) continue;
    f64 own = (f64)fetched<C>(grad, terms.reduction == 0 ? row : 0, terms.width);
    put<C>(out, rows.start(row) + target * rows.inner, terms.width, (C)(-own * share<C>(weight, target, terms.width) / by));
  }
}

// What multiplies a row's probabilities, the classes' weights and the target's own place.
struct Factors {
  f64 probability, spread, own;
  i64 target;
  bool counts;
};

template <typename C>
__device__ Factors factors_of(const Rows &rows, const Terms &terms, i64 row, const void *grad, const i64 *targets, const void *weight,
                              f64 weights, f64 divisor) {
  i64 target = targets[row];
  Factors by = {0, 0, 0, target, target != terms.ignored && target >= 0 && target < rows.classes};
  if (!by.counts) return by;
  f64 slope = (f64)fetched<C>(grad, terms.reduction == 0 ? row : 0, terms.width) / divisor;
  f64 own = (1 - terms.smoothing) * share<C>(weight, target, terms.width), each = terms.smoothing / (f64)rows.classes;
  by.probability = slope * (own + each * weights);
  by.spread = slope * each;
  by.own = slope * own;
  return by;
}

template <typename C>
__device__ __forceinline__ C slope_of(const Factors &by, i64 class_, C score, C top, C log_sum, C scale, const void *weight, i64 width) {
  C probability = exponential(score - top - log_sum);
  if (class_ == by.target) {
    // The largest terms of the row cancel here.
    f64 spread = by.spread == 0 ? 0 : by.spread * share<C>(weight, class_, width);
    return (C)((f64)probability * by.probability - spread - by.own);
  }
  C value = probability * scale;
  return by.spread == 0 ? value : value - (C)(by.spread * share<C>(weight, class_, width));
}

template <typename T>
__device__ void backward_by_row(Rows rows, Terms terms, const T *grad, const T *x, const i64 *targets, const T *weight,
                                const typename Compute<T>::number *divisor, const typename Compute<T>::number *tops,
                                const typename Compute<T>::number *log_sums, T *out) {
  typedef typename Compute<T>::number C;
  const int wide = 16 / sizeof(T);
  bool packed = rows.classes % wide == 0 && aligned(x) && aligned(out);
  f64 weights = terms.smoothing != 0 ? all_shares<C>(weight, rows.classes, terms.width) : 0;
  f64 mean = terms.reduction == 1 ? (f64)divisor[0] : 1.0;
  for (i64 row = blockIdx.x; row < rows.outer; row += gridDim.x) {
    Factors by = factors_of<C>(rows, terms, row, grad, targets, weight, weights, mean);
    C top = tops[row], log_sum = log_sums[row], scale = (C)by.probability;
    const T *line = x + row * rows.classes;
    T *to = out + row * rows.classes;
    if (packed) {
      for (i64 i = threadIdx.x; i < rows.classes / wide; i += blockDim.x) {
        Pack<T> pack = ((const Pack<T> *)line)[i], result;
#pragma unroll
        for (int k = 0; k < wide; ++k) {
          C value = by.counts ? slope_of(by, i * wide + k, (C)load(pack.v[k]), top, log_sum, scale, weight, terms.width) : (C)0;
          result.v[k] = Store<T>::from(value);
        }
        ((Pack<T> *)to)[i] = result;
      }
    } else {
      for (i64 i = threadIdx.x; i < rows.classes; i += blockDim.x) {
        C value = by.counts ? slope_of(by, i, (C)load(line[i]), top, log_sum, scale, weight, terms.width) : (C)0;
        to[i] = Store<T>::from(value);
      }
    }
  }
}

template <typename C>
__device__ void backward_by_column(Rows rows, Terms terms, const void *grad, const void *x, const i64 *targets, const void *weight,
                                   const C *divisor, const C *tops, const C *log_sums, void *out) {
  f64 weights = terms.smoothing != 0 ? all_shares<C>(weight, rows.classes, terms.width) : 0;
  f64 mean = terms.reduction == 1 ? (f64)divisor[0] : 1.0;
  i64 n = rows.count() * rows.classes;
  for (i64 i = first_index(); i < n; i += all_threads()) {
    i64 place = i % rows.inner, rest = i / rows.inner;
    i64 class_ = rest % rows.classes, row = rest / rows.classes * rows.inner + place;
    Factors by = factors_of<C>(rows, terms, row, grad, targets, weight, weights, mean);
    C value = 0;
    C score = fetched<C>(x, i, terms.width);
    if (by.counts) value = slope_of<C>(by, class_, score, tops[row], log_sums[row], (C)by.probability, weight, terms.width);
    put<C>(out, i, terms.width, value);
  }
}

#define ROWS(type)                                                                                                                 \
  KERNEL(cross_entropy_rows_##type)(Rows rows, Terms terms, const type *x, const i64 *targets, const type *weight,                 \
                                                       type *loss, Compute<type>::number *tops, Compute<type>::number *log_sums,   \
                                                       Total *totals, Fault fault) {                                               \
    by_row<type>(rows, terms, x, targets, weight, loss, tops, log_sums, totals, fault);                                            \
  }                                                                                                                                \
  KERNEL(cross_entropy_backward_rows_##type)(                                                                                      \
      Rows rows, Terms terms, const type *grad, const type *x, const i64 *targets, const type *weight,                             \
      const Compute<type>::number *divisor, const Compute<type>::number *tops, const Compute<type>::number *log_sums, type *out) { \
    backward_by_row<type>(rows, terms, grad, x, targets, weight, divisor, tops, log_sums, out);                                    \
  }
ROWS(f32)
ROWS(f64)
ROWS(f16)
ROWS(bf16)

#define OTHERS(C)                                                                                                         \
  KERNEL(cross_entropy_columns_##C)(Rows rows, Terms terms, const void *x, const i64 *targets, const void *weight,        \
                                                       void *loss, C *tops, C *log_sums, Total *totals, Fault fault) {    \
    by_column<C>(rows, terms, x, targets, weight, loss, tops, log_sums, totals, fault);                                   \
  }                                                                                                                       \
  KERNEL(nll_loss_##C)(Rows rows, Terms terms, const void *x, const i64 *targets, const void *weight, void *loss,         \
                                          Total *totals, Fault fault) {                                                   \
    likelihood<C>(rows, terms, x, targets, weight, loss, totals, fault);                                                  \
  }                                                                                                                       \
  KERNEL(loss_finish_##C)(i64 blocks, Terms terms, const Total *totals, void *loss, C *weight) {                          \
    finish<C>(blocks, terms, totals, loss, weight);                                                                       \
  }                                                                                                                       \
  KERNEL(nll_loss_backward_##C)(Rows rows, Terms terms, const void *grad, const i64 *targets, const void *weight,         \
                                                   const C *divisor, void *out) {                                         \
    likelihood_backward<C>(rows, terms, grad, targets, weight, divisor, out);                                             \
  }                                                                                                                       \
  KERNEL(cross_entropy_backward_columns_##C)(Rows rows, Terms terms, const void *grad, const void *x,                     \
                                                                const i64 *targets, const void *weight, const C *divisor, \
                                                                const C *tops, const C *log_sums, void *out) {            \
    backward_by_column<C>(rows, terms, grad, x, targets, weight, divisor, tops, log_sums, out);                           \
  }
OTHERS(f32)
OTHERS(f64)
