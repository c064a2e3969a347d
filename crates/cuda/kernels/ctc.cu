// Connectionist temporal classification: a block a sequence, a thread for every so many states.
// Sums are computed in f64; those that forward keeps are of the input's dtype.

// Sequences of a launch, whose lengths travel as arguments. Mirrors `Part` in Rust.
const int MOST = 64;
struct Part {
  // The first sequence, how many there are here and in all.
  i64 first, count, sequences;
  // Steps, classes, and states of the longest sequence.
  i64 steps, classes, width;
  i64 blank, zero_infinity;
  i64 input_lengths[MOST], target_lengths[MOST], target_starts[MOST];
};

__device__ __forceinline__ f64 nothing() { return __longlong_as_double((i64)0xfff0000000000000ull); }

__device__ __forceinline__ f64 log_add(f64 a, f64 b) {
  f64 top = fmax(a, b);
  return top == nothing() ? top : top + log(exp(a - top) + exp(b - top));
}

// One sequence.
template <typename T> struct Sequence {
  const T *log_probs;
  const i64 *labels;
  i64 step, blank, classes, steps, states;

  // A blank, or a label; one that is none of the classes is told of, and counts as a blank.
  __device__ i64 class_of(i64 state) const {
    if (state % 2 == 0) return blank;
    i64 label = labels[state / 2];
    return label >= 0 && label < classes ? label : blank;
  }
  __device__ f64 log_prob(i64 at, i64 class_) const { return (f64)log_probs[at * step + class_]; }
  // Labels that differ need no blank between.
  __device__ bool skips(i64 state) const { return state >= 2 && class_of(state) != class_of(state - 2); }
};

template <typename T> __device__ Sequence<T> sequence(const Part &part, i64 own, const T *log_probs, const i64 *labels) {
  Sequence<T> of;
  of.log_probs = log_probs + (part.first + own) * part.classes;
  of.labels = labels + part.target_starts[own];
  of.step = part.sequences * part.classes;
  of.blank = part.blank;
  of.classes = part.classes;
  of.steps = part.input_lengths[own];
  of.states = 2 * part.target_lengths[own] + 1;
  return of;
}

template <typename T> __device__ void forward(const Part &part, const T *log_probs, const i64 *labels, T *losses, T *all_sums,
                                               const Fault &fault) {
  i64 own = blockIdx.x, width = part.width;
  Sequence<T> of = sequence(part, own, log_probs, labels);
  T *sums = all_sums + (part.first + own) * part.steps * width;
  for (i64 i = threadIdx.x; i < part.steps * width; i += blockDim.x) sums[i] = (T)nothing();
  for (i64 i = threadIdx.x; i < of.states / 2; i += blockDim.x) within(fault, of.labels[i], part.classes, 2);
  __syncthreads();
  if (of.steps == 0) {
    if (threadIdx.x == 0) losses[part.first + own] = of.states == 1 ? (T)0 : (T)-nothing();
    return;
  }
  if (threadIdx.x < 2 && threadIdx.x < of.states) sums[threadIdx.x] = (T)of.log_prob(0, of.class_of(threadIdx.x));
  for (i64 step = 1; step < of.steps; ++step) {
    __syncthreads();
    const T *before = sums + (step - 1) * width;
    for (i64 state = threadIdx.x; state < of.states; state += blockDim.x) {
      f64 sum = (f64)before[state];
      if (state >= 1) sum = log_add(sum, (f64)before[state - 1]);
      if (of.skips(state)) sum = log_add(sum, (f64)before[state - 2]);
      sums[step * width + state] = (T)(sum + of.log_prob(step, of.class_of(state)));
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  const T *last = sums + (of.steps - 1) * width;
  f64 sum = (f64)last[of.states - 1];
  if (of.states > 1) sum = log_add(sum, (f64)last[of.states - 2]);
  losses[part.first + own] = (T)-sum;
}

__device__ f64 block_log_sum(f64 value) {
  __shared__ f64 warps[32];
  for (int distance = 16; distance > 0; distance >>= 1) value = log_add(value, __shfl_xor_sync(~0u, value, distance));
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  value = lane < (blockDim.x >> 5) ? warps[lane] : nothing();
  for (int distance = 16; distance > 0; distance >>= 1) value = log_add(value, __shfl_xor_sync(~0u, value, distance));
  __syncthreads();
  return value;
}

// The logarithms of the sums of all paths through each class at a step, from forward and backward
// sums. The first state of a class adds up the others.
template <typename T> __device__ void add_by_class(const Sequence<T> &of, const T *forward_sums, const f64 *here, f64 *by_class) {
  for (i64 i = threadIdx.x; i < of.classes; i += blockDim.x) by_class[i] = nothing();
  __syncthreads();
  f64 blanks = nothing();
  for (i64 state = threadIdx.x; state < of.states; state += blockDim.x) {
    i64 class_ = of.class_of(state);
    if (class_ == of.blank) {
      blanks = log_add(blanks, (f64)forward_sums[state] + here[state]);
      continue;
    }
    bool first = true;
    for (i64 other = 1; other < state && first; other += 2) first = of.class_of(other) != class_;
    if (!first) continue;
    f64 sum = nothing();
    for (i64 other = state; other < of.states; other += 2)
      if (of.class_of(other) == class_) sum = log_add(sum, (f64)forward_sums[other] + here[other]);
    by_class[class_] = sum;
  }
  blanks = block_log_sum(blanks);
  if (threadIdx.x == 0) by_class[of.blank] = blanks;
  __syncthreads();
}

template <typename T>
__device__ void backward(const Part &part, const T *grads, const T *log_probs, const i64 *labels, const T *losses, const T *all_sums,
                         f64 *scratch, T *out) {
  i64 own = blockIdx.x, index = part.first + own, width = part.width;
  Sequence<T> of = sequence(part, own, log_probs, labels);
  const T *sums = all_sums + index * part.steps * width;
  f64 *here = scratch + index * (2 * width + part.classes), *after = here + width, *by_class = after + width;
  f64 grad = (f64)grads[index], loss = (f64)losses[index];
  T *to = out + index * part.classes;
  i64 steps = part.zero_infinity && loss == -nothing() ? 0 : of.steps;
  for (i64 step = steps; step < part.steps; ++step)
    for (i64 i = threadIdx.x; i < part.classes; i += blockDim.x) to[step * of.step + i] = 0;
  for (i64 step = steps - 1; step >= 0; --step) {
    for (i64 state = threadIdx.x; state < of.states; state += blockDim.x) {
      f64 emitted = of.log_prob(step, of.class_of(state)), sum;
      if (step + 1 == of.steps) {
        sum = state + 2 >= of.states ? emitted : nothing();
      } else {
        sum = after[state];
        if (state + 1 < of.states) sum = log_add(sum, after[state + 1]);
        if (state + 2 < of.states && of.skips(state + 2)) sum = log_add(sum, after[state + 2]);
        sum += emitted;
      }
      here[state] = sum;
    }
    __syncthreads();
    add_by_class(of, sums + step * width, here, by_class);
    for (i64 i = threadIdx.x; i < part.classes; i += blockDim.x) {
      f64 log_prob = of.log_prob(step, i), taken = exp(by_class[i] + loss - log_prob);
      to[step * of.step + i] = (T)((exp(log_prob) - taken) * grad);
    }
    __syncthreads();
    f64 *other = here;
    here = after;
    after = other;
  }
}

#define CTC(type)                                                                                                      \
  KERNEL(ctc_loss_##type)(Part part, const type *log_probs, const i64 *labels, type *losses, type *sums,               \
                                             Fault fault) {                                                            \
    in_turn();                                                                                                         \
    forward<type>(part, log_probs, labels, losses, sums, fault);                                                       \
  }                                                                                                                    \
  KERNEL(ctc_loss_backward_##type)(Part part, const type *grads, const type *log_probs, const i64 *labels,             \
                                                      const type *losses, const type *sums, f64 *scratch, type *out) { \
    in_turn();                                                                                                         \
    backward<type>(part, grads, log_probs, labels, losses, sums, scratch, out);                                        \
  }
CTC(f32)
CTC(f64)
