// The likelihood of target classes, from log-probabilities (nll_loss) and from scores
// (cross_entropy), and the gradients of both. Rows are scores of classes, `inner` elements apart.
// What is reduced over rows goes through one pair of sums a block, added up in order by one block.

// Packs of a row, or of a piece of one, that a thread holds, and pieces that are on their way or
// worked on; both mirror the launches.
const int KEPT = 8, PIECES = 3;

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

template <typename C> __device__ C not_a_number();
template <> __device__ __forceinline__ f32 not_a_number<f32>() { return __int_as_float(0x7fc00000); }
template <> __device__ __forceinline__ f64 not_a_number<f64>() { return __longlong_as_double(0x7ff8000000000000ll); }
__device__ __forceinline__ f32 logarithm(f32 x) { return logf(x); }
__device__ __forceinline__ f64 logarithm(f64 x) { return log(x); }

// The logarithm of the sum of exp(score - largest). A row of minus infinities alone is no
// distribution.
template <typename C> __device__ C log_sum_of(const Moments<C> &all) {
  return all.top == lowest<C>() ? not_a_number<C>() : logarithm(all.sum);
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

// A row's target and its score.
template <typename C> struct Aim {
  i64 target;
  bool counts;
  C score;

  __device__ Aim(const Terms &terms, const Rows &rows, const void *x, i64 start, i64 target, const Fault &fault)
      : target(target), counts(::counts(terms, rows, target, fault)), score(0) {
    if (counts) score = fetched<C>(x, start + target * rows.inner, terms.width);
  }
};

// The loss of a row whose scores, `inner` apart, were spread over all classes by `spread`.
template <typename C>
__device__ Total loss_of(const Terms &terms, const Rows &rows, const Aim<C> &aim, const void *weight, C top, C log_sum, f64 spread) {
  Total total = {0, 0};
  if (!aim.counts) return total;
  total.weight = share<C>(weight, aim.target, terms.width);
  total.loss = (f64)(log_sum - (aim.score - top)) * total.weight;
  if (terms.smoothing != 0) total.loss = total.loss * (1 - terms.smoothing) + spread / (f64)rows.classes * terms.smoothing;
  return total;
}

// What one thread of a row's team does once its moments are known.
template <typename T>
__device__ void settle_row(const Rows &rows, const Terms &terms, i64 row, const Aim<typename Compute<T>::number> &aim, const T *weight,
                           T *loss, typename Compute<T>::number *tops, typename Compute<T>::number *log_sums,
                           typename Compute<T>::number top, typename Compute<T>::number log_sum, f64 spread, Total &sum) {
  Total total = loss_of(terms, rows, aim, weight, top, log_sum, spread);
  if (terms.reduction == 0) loss[row] = Store<T>::from(total.loss);
  if (tops) {
    tops[row] = top;
    log_sums[row] = log_sum;
  }
  sum.loss += total.loss;
  sum.weight += total.weight;
}

// A team of threads a row that it holds whole.
template <typename T, bool by_warp>
__device__ void by_row_ahead(Rows rows, Terms terms, const T *x, const i64 *targets, const T *weight, T *loss,
                             typename Compute<T>::number *tops, typename Compute<T>::number *log_sums, Total *totals, Fault fault) {
  typedef typename Compute<T>::number C;
  typedef Ahead<T, by_warp, KEPT> Line;
  typedef Team<by_warp> Ours;
  const int wide = Line::wide;
  Line ahead = {(int)(rows.classes / wide)};
  Total sum = {0, 0};
  i64 row = Ours::first(), step = Ours::teams();
  int turn = 0;
  ahead.ask(x + row * rows.classes, 0, row < rows.outer);
  for (; row < rows.outer; row += step, turn ^= 1) {
    ahead.ask(x + (row + step) * rows.classes, turn ^ 1, row + step < rows.outer);
    wait_for_all_but<1>();
    Moments<C> own;
    ahead.each(turn, [&](int, const Pack<T> &pack) {
#pragma unroll
      for (int k = 0; k < wide; ++k) own.top = Larger::of(own.top, (C)number(pack, k));
    });
    own.top = Ours::template fold<Larger>(own.top, lowest<C>());
    C base = own.base();
    ahead.each(turn, [&](int, const Pack<T> &pack) {
#pragma unroll
      for (int k = 0; k < wide; ++k) own.sum += exponential<T>((C)number(pack, k) - base);
    });
    own.sum = Ours::sum(own.sum);
    if (Ours::place() == 0) {
      Aim<C> aim(terms, rows, x, row * rows.classes, targets[row], fault);
      settle_row(rows, terms, row, aim, weight, loss, tops, log_sums, own.top, log_sum_of(own), 0, sum);
    }
  }
  sum.loss = block_sum(sum.loss);
  sum.weight = block_sum(sum.weight);
  if (threadIdx.x == 0) totals[blockIdx.x] = sum;
}

// The larger ones of two halves each.
template <typename T> __device__ u32 larger_halves(u32 a, u32 b);
#if __CUDA_ARCH__ >= 800
template <> __device__ __forceinline__ u32 larger_halves<f16>(u32 a, u32 b) {
  asm("max.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
  return a;
}
template <> __device__ __forceinline__ u32 larger_halves<bf16>(u32 a, u32 b) {
  asm("max.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
  return a;
}
#endif

// The largest number of some packs of halves.
template <typename T, int N> __device__ __forceinline__ typename Compute<T>::number largest_of(const Pack<T> (&packs)[N]) {
  typedef typename Compute<T>::number C;
  C top = lowest<C>();
#if __CUDA_ARCH__ >= 800
  u32 tops = ((const u32(&)[4])packs[0])[0];
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int k = 0; k < 4; ++k) tops = larger_halves<T>(tops, ((const u32(&)[4])packs[j])[k]);
  const T(&both)[2] = (const T(&)[2])tops;
  return Larger::of(Larger::of(top, load(both[0])), load(both[1]));
#else
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int k = 0; k < 8; ++k) top = Larger::of(top, load(packs[j].v[k]));
  return top;
#endif
}

// The sum of exp(number - base) over some packs of halves. Where the base is not large, a number
// takes one multiplication that also subtracts; what rounding the base's own product loses is the
// same for all, and made good once.
template <typename T, int N> __device__ __forceinline__ f32 sum_below(f32 base, const Pack<T> (&packs)[N]) {
  f32 parts[4] = {0, 0, 0, 0};
  if (::fabsf(base) <= 65536.0f) {
    f32 shift = base * LOG2_E, lost = ::fmaf(base, LOG2_E, -shift);
#pragma unroll
    for (int j = 0; j < N; ++j)
#pragma unroll
      for (int k = 0; k < 8; ++k) parts[k % 4] += power_of_two(::fmaf(number(packs[j], k), LOG2_E, -shift));
    return ((parts[0] + parts[1]) + (parts[2] + parts[3])) * power_of_two(-lost);
  }
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int k = 0; k < 8; ++k) parts[k % 4] += exponential<T>(number(packs[j], k) - base);
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

// Rows of halves that begin at multiples of 16 bytes and are as long as one, a warp each. A
// row's pieces are on their way to shared memory one after the other, and those of the next row
// after them: a warp waits for nobody and goes on from row to row.
template <typename T>
__device__ void by_row_in_pieces(Rows rows, Terms terms, const T *x, const i64 *targets, const T *weight, T *loss,
                                 typename Compute<T>::number *tops, typename Compute<T>::number *log_sums, Total *totals, Fault fault) {
  typedef typename Compute<T>::number C;
  typedef Team<true> Warp;
  const int wide = 16 / sizeof(T), piece = 32 * KEPT;
  extern __shared__ Pack<u32> pieces[];
  int packs = (int)(rows.classes / wide);
  i64 step = Warp::teams();
  Pack<T> *slots = (Pack<T> *)pieces + (threadIdx.x >> 5) * PIECES * piece + Warp::place();
  // The next piece to ask for: its row, this lane's first pack of it, and the slot it goes to.
  i64 asked = Warp::first();
  int asked_at = Warp::place(), asked_slot = 0;
  auto ask = [&] {
    if (asked < rows.outer) {
      const Pack<T> *from = (const Pack<T> *)(x + asked * rows.classes) + asked_at;
      Pack<T> *to = slots + asked_slot * piece;
      // Nearly all pieces are whole, and ask nothing of a single pack.
      if (asked_at + (KEPT - 1) * 32 < packs) {
#pragma unroll
        for (int j = 0; j < KEPT; ++j) fetch_pack(to + j * 32, from + j * 32);
      } else {
#pragma unroll
        for (int j = 0; j < KEPT; ++j)
          if (asked_at + j * 32 < packs) fetch_pack(to + j * 32, from + j * 32);
      }
      asked_at += piece;
      if (asked_at - Warp::place() >= packs) {
        asked += step;
        asked_at = Warp::place();
      }
    }
    fetched_so_far();
    asked_slot = asked_slot + 1 == PIECES ? 0 : asked_slot + 1;
  };
#pragma unroll
  for (int i = 1; i < PIECES; ++i) ask();
  Total sum = {0, 0};
  int slot = 0;
  bool settles = Warp::place() == 0;
  i64 row = Warp::first(), next_target = settles && row < rows.outer ? targets[row] : terms.ignored;
  for (; row < rows.outer; row += step) {
    // A row's target is asked for a row before, and its score before the row is worked on: nobody
    // waits for them at its end.
    Aim<C> aim(terms, rows, x, row * rows.classes, next_target, fault);
    if (settles && row + step < rows.outer) next_target = targets[row + step];
    Moments<C> own;
    for (int at = Warp::place(); at - Warp::place() < packs; at += piece) {
      // The slot that this fills was read in the turn before, by this lane alone.
      ask();
      wait_for_all_but<PIECES - 1>();
      Pack<T> held[KEPT];
      if (at + (KEPT - 1) * 32 < packs) {
#pragma unroll
        for (int j = 0; j < KEPT; ++j) held[j] = slots[slot * piece + j * 32];
      } else {
        Pack<T> none;
#pragma unroll
        for (int k = 0; k < wide; ++k) none.v[k] = Store<T>::from(lowest<C>());
#pragma unroll
        for (int j = 0; j < KEPT; ++j) held[j] = at + j * 32 < packs ? slots[slot * piece + j * 32] : none;
      }
      own.raise(largest_of(held));
      own.sum += sum_below(own.base(), held);
      slot = slot + 1 == PIECES ? 0 : slot + 1;
    }
    own = warp_moments(own);
    if (settles) settle_row(rows, terms, row, aim, weight, loss, tops, log_sums, own.top, log_sum_of(own), 0, sum);
  }
  sum.loss = block_sum(sum.loss);
  sum.weight = block_sum(sum.weight);
  if (threadIdx.x == 0) totals[blockIdx.x] = sum;
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
  int turn = 0;
  for (i64 row = blockIdx.x; row < rows.outer; row += gridDim.x, turn ^= 1) {
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
            values[k] = (C)number(next[j], k);
            top = values[k] > top ? values[k] : top;
          }
          own.raise(top);
          C base = own.base(), part = 0;
#pragma unroll
          for (int k = 0; k < wide; ++k) part += exponential<T>(values[k] - base);
          own.sum += part;
        }
      }
    } else {
      for (i64 i = threadIdx.x; i < rows.classes; i += blockDim.x) own.take((C)load(line[i]));
    }
    own = team_moments<false>(own, turn);
    C log_sum = log_sum_of(own);
    f64 spread = 0;
    if (terms.smoothing != 0) {
      for (i64 i = threadIdx.x; i < rows.classes; i += blockDim.x) spread += share<C>(weight, i, terms.width) * (f64)((C)load(line[i]) - own.top);
      spread = weights * (f64)log_sum - block_sum(spread);
    }
    if (threadIdx.x == 0) {
      Aim<C> aim(terms, rows, x, row * rows.classes, targets[row], fault);
      settle_row(rows, terms, row, aim, weight, loss, tops, log_sums, own.top, log_sum, spread, sum);
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
    C log_sum = log_sum_of(own);
    f64 spread = 0;
    if (terms.smoothing != 0) {
      for (i64 i = 0; i < rows.classes; ++i)
        spread += share<C>(weight, i, terms.width) * (f64)(fetched<C>(x, start + i * rows.inner, terms.width) - own.top);
      spread = weights * (f64)log_sum - spread;
    }
    Aim<C> aim(terms, rows, x, start, targets[row], fault);
    Total total = loss_of(terms, rows, aim, weight, own.top, log_sum, spread);
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

// What the loss of every row counts for, if they are reduced.
template <typename C> __device__ f64 slope_of_all(const Terms &terms, const void *grad, const C *divisor) {
  if (terms.reduction == 0) return 0;
  f64 slope = (f64)fetched<C>(grad, 0, terms.width);
  return terms.reduction == 1 ? slope / (f64)divisor[0] : slope;
}

template <typename C>
__device__ Factors factors_of(const Rows &rows, const Terms &terms, i64 row, const void *grad, const i64 *targets, const void *weight,
                              f64 weights, f64 slope) {
  i64 target = targets[row];
  Factors by = {0, 0, 0, target, target != terms.ignored && target >= 0 && target < rows.classes};
  if (!by.counts) return by;
  if (terms.reduction == 0) slope = (f64)fetched<C>(grad, row, terms.width);
  f64 own = slope * share<C>(weight, target, terms.width);
  by.own = own;
  by.probability = own;
  if (terms.smoothing == 0) return by;
  by.spread = slope * terms.smoothing / (f64)rows.classes;
  by.own = own * (1 - terms.smoothing);
  by.probability = by.own + by.spread * weights;
  return by;
}

// The gradient of a class's score, from its probability.
template <typename C> __device__ __forceinline__ C slope_of(const Factors &by, i64 class_, C probability, const void *weight, i64 width) {
  if (class_ == by.target) {
    // The largest terms of the row cancel here.
    f64 spread = by.spread == 0 ? 0 : by.spread * share<C>(weight, class_, width);
    return (C)((f64)probability * by.probability - spread - by.own);
  }
  C value = probability * (C)by.probability;
  return by.spread == 0 ? value : value - (C)(by.spread * share<C>(weight, class_, width));
}

// Rows of neighbouring scores. `ahead`, they are held whole, by a team of threads each, and there
// is no smoothing; otherwise a block takes a row.
template <typename T, bool by_warp, bool is_ahead>
__device__ void backward_by_row(Rows rows, Terms terms, const T *grad, const T *x, const i64 *targets, const T *weight,
                                const typename Compute<T>::number *divisor, const typename Compute<T>::number *tops,
                                const typename Compute<T>::number *log_sums, T *out) {
  typedef typename Compute<T>::number C;
  typedef Ahead<T, by_warp, KEPT> Line;
  typedef Team<by_warp> Ours;
  const int wide = Line::wide;
  Line ahead = {(int)(rows.classes / wide)};
  bool packed = rows.classes % wide == 0 && aligned(x) && aligned(out);
  f64 weights = terms.smoothing != 0 ? all_shares<C>(weight, rows.classes, terms.width) : 0;
  f64 slope = slope_of_all<C>(terms, grad, divisor);
  i64 row = Ours::first(), step = Ours::teams();
  int turn = 0;
  if (is_ahead) ahead.ask(x + row * rows.classes, 0, row < rows.outer);
  for (; row < rows.outer; row += step, turn ^= 1) {
    if (is_ahead) ahead.ask(x + (row + step) * rows.classes, turn ^ 1, row + step < rows.outer);
    const T *scores = x + row * rows.classes;
    T *to = out + row * rows.classes;
    Factors by = factors_of<C>(rows, terms, row, grad, targets, weight, weights, slope);
    if (!by.counts) {
      for (i64 i = Ours::place(); i < rows.classes; i += Ours::threads()) to[i] = Store<T>::from((C)0);
      // What is still on its way here would land on the row after the next.
      if (is_ahead) wait_for_all_but<1>();
      continue;
    }
    C top = tops[row], log_sum = log_sums[row], scale = exponential<C>(-log_sum) * (C)by.probability;
    auto exact = [&](i64 i) {
      C probability = exponential<C>((C)load(scores[i]) - top - log_sum);
      return Store<T>::from(slope_of<C>(by, i, probability, weight, terms.width));
    };
    if (!is_ahead && (!packed || by.spread != 0)) {
      for (i64 i = Ours::place(); i < rows.classes; i += Ours::threads()) to[i] = exact(i);
      continue;
    }
    auto write = [&](i64 i, const Pack<T> &pack) {
      Pack<T> result;
#pragma unroll
      for (int k = 0; k < wide; ++k) result.v[k] = Store<T>::from(exponential<T>((C)number(pack, k) - top) * scale);
      ((Pack<T> *)to)[i] = result;
    };
    if (is_ahead) {
      wait_for_all_but<1>();
      ahead.each(turn, write);
    } else {
      for (i64 i = Ours::place(); i < ahead.packs; i += Ours::threads()) write(i, ((const Pack<T> *)scores)[i]);
    }
    // Written once more by the thread that wrote its pack.
    if (by.target / wide % Ours::threads() == Ours::place()) to[by.target] = exact(by.target);
  }
}

template <typename C>
__device__ void backward_by_column(Rows rows, Terms terms, const void *grad, const void *x, const i64 *targets, const void *weight,
                                   const C *divisor, const C *tops, const C *log_sums, void *out) {
  f64 weights = terms.smoothing != 0 ? all_shares<C>(weight, rows.classes, terms.width) : 0;
  f64 slope = slope_of_all<C>(terms, grad, divisor);
  i64 n = rows.count() * rows.classes;
  for (i64 i = first_index(); i < n; i += all_threads()) {
    i64 place = i % rows.inner, rest = i / rows.inner;
    i64 class_ = rest % rows.classes, row = rest / rows.classes * rows.inner + place;
    Factors by = factors_of<C>(rows, terms, row, grad, targets, weight, weights, slope);
    C value = 0, probability = exponential<C>(fetched<C>(x, i, terms.width) - tops[row] - log_sums[row]);
    if (by.counts) value = slope_of<C>(by, class_, probability, weight, terms.width);
    put<C>(out, i, terms.width, value);
  }
}

#define ROWS(type)                                                                                                                  \
  KERNEL_OF(128, cross_entropy_warps_##type)(Rows rows, Terms terms, const type *x, const i64 *targets, const type *weight,         \
                type *loss, Compute<type>::number *tops, Compute<type>::number *log_sums, Total *totals, Fault fault) {             \
    in_turn();                                                                                                                      \
    by_row_ahead<type, true>(rows, terms, x, targets, weight, loss, tops, log_sums, totals, fault);                                 \
  }                                                                                                                                 \
  KERNEL_OF(128, cross_entropy_backward_warps_##type)(Rows rows, Terms terms, const type *grad, const type *x, const i64 *targets,  \
                const type *weight, const Compute<type>::number *divisor, const Compute<type>::number *tops,                        \
                const Compute<type>::number *log_sums, type *out) {                                                                 \
    in_turn();                                                                                                                      \
    backward_by_row<type, true, true>(rows, terms, grad, x, targets, weight, divisor, tops, log_sums, out);                         \
  }                                                                                                                                 \
  KERNEL_OF(512, cross_entropy_blocks_##type)(Rows rows, Terms terms, const type *x, const i64 *targets, const type *weight,        \
                type *loss, Compute<type>::number *tops, Compute<type>::number *log_sums, Total *totals, Fault fault) {             \
    in_turn();                                                                                                                      \
    by_row_ahead<type, false>(rows, terms, x, targets, weight, loss, tops, log_sums, totals, fault);                                \
  }                                                                                                                                 \
  KERNEL_OF(512, cross_entropy_backward_blocks_##type)(Rows rows, Terms terms, const type *grad, const type *x, const i64 *targets, \
                const type *weight, const Compute<type>::number *divisor, const Compute<type>::number *tops,                        \
                const Compute<type>::number *log_sums, type *out) {                                                                 \
    in_turn();                                                                                                                      \
    backward_by_row<type, false, true>(rows, terms, grad, x, targets, weight, divisor, tops, log_sums, out);                        \
  }                                                                                                                                 \
  KERNEL_OF(512, cross_entropy_rows_##type)(Rows rows, Terms terms, const type *x, const i64 *targets, const type *weight,          \
                type *loss, Compute<type>::number *tops, Compute<type>::number *log_sums, Total *totals, Fault fault) {             \
    in_turn();                                                                                                                      \
    by_row<type>(rows, terms, x, targets, weight, loss, tops, log_sums, totals, fault);                                             \
  }                                                                                                                                 \
  KERNEL_OF(512, cross_entropy_backward_rows_##type)(Rows rows, Terms terms, const type *grad, const type *x, const i64 *targets,   \
                const type *weight, const Compute<type>::number *divisor, const Compute<type>::number *tops,                        \
                const Compute<type>::number *log_sums, type *out) {                                                                 \
    in_turn();                                                                                                                      \
    backward_by_row<type, false, false>(rows, terms, grad, x, targets, weight, divisor, tops, log_sums, out);                       \
  }
ROWS(f32)
ROWS(f64)
ROWS(f16)
ROWS(bf16)

#define PIECES_OF_ROWS(type)                                                                                                 \
  KERNEL_OF(128, cross_entropy_pieces_##type)(Rows rows, Terms terms, const type *x, const i64 *targets, const type *weight, \
                type *loss, Compute<type>::number *tops, Compute<type>::number *log_sums, Total *totals, Fault fault) {      \
    in_turn();                                                                                                               \
    by_row_in_pieces<type>(rows, terms, x, targets, weight, loss, tops, log_sums, totals, fault);                            \
  }
PIECES_OF_ROWS(f16)
PIECES_OF_ROWS(bf16)

#define OTHERS(C)                                                                                                         \
  KERNEL(cross_entropy_columns_##C)(Rows rows, Terms terms, const void *x, const i64 *targets, const void *weight,        \
                                                       void *loss, C *tops, C *log_sums, Total *totals, Fault fault) {    \
    in_turn();                                                                                                            \
    by_column<C>(rows, terms, x, targets, weight, loss, tops, log_sums, totals, fault);                                   \
  }                                                                                                                       \
  KERNEL(nll_loss_##C)(Rows rows, Terms terms, const void *x, const i64 *targets, const void *weight, void *loss,         \
                                          Total *totals, Fault fault) {                                                   \
    in_turn();                                                                                                            \
    likelihood<C>(rows, terms, x, targets, weight, loss, totals, fault);                                                  \
  }                                                                                                                       \
  KERNEL(loss_finish_##C)(i64 blocks, Terms terms, const Total *totals, void *loss, C *weight) {                          \
    in_turn();                                                                                                            \
    finish<C>(blocks, terms, totals, loss, weight);                                                                       \
  }                                                                                                                       \
  KERNEL(nll_loss_backward_##C)(Rows rows, Terms terms, const void *grad, const i64 *targets, const void *weight,         \
                                                   const C *divisor, void *out) {                                         \
    in_turn();                                                                                                            \
    likelihood_backward<C>(rows, terms, grad, targets, weight, divisor, out);                                             \
  }                                                                                                                       \
  KERNEL(cross_entropy_backward_columns_##C)(Rows rows, Terms terms, const void *grad, const void *x,                     \
                                                                const i64 *targets, const void *weight, const C *divisor, \
                                                                const C *tops, const C *log_sums, void *out) {            \
    in_turn();                                                                                                            \
    backward_by_column<C>(rows, terms, grad, x, targets, weight, divisor, tops, log_sums, out);                           \
  }
OTHERS(f32)
OTHERS(f64)
