// Folds of the long tail: any dtype to any dtype, floats in f64 and integers in i64. `outer`
// locates an output's first input element (operand 0) and the output itself (operand 1); the
// elements folded into it are `step` apart, or where `inner` says if `step` is negative.
//
// A team of threads folds an output, or one of its `parts`: one thread where outputs are
// neighbours in memory, a warp, or the block. States of parts lie in `partial` ([parts][outputs])
// until `_finish` joins them. Which threads fold what depends on sizes alone, so results never
// vary.

// What a fold is asked: one of its modes, the elements of an output, two numbers, and whether
// elements are narrower than f64.
struct Ask {
  i32 mode;
  i64 count;
  f64 a, b;
  bool narrow;
};

template <typename C> __device__ __forceinline__ bool not_number(C x) { return x != x; }
__device__ __forceinline__ f64 infinity() { return __longlong_as_double(0x7ff0000000000000LL); }
__device__ __forceinline__ f64 nan_number() { return __longlong_as_double(0x7ff8000000000000LL); }

template <typename C> struct Total { C value; };

// Sums of terms, and extremes of absolute values.
enum Term { PLAIN, NOT_NAN, ABSOLUTE, POWER, SQUARE, NOT_ZERO, MOST, LEAST };

__device__ __noinline__ f64 rare_term(i32 mode, f64 x, f64 power) {
  switch (mode) {
    case NOT_NAN: return not_number(x) ? 0 : x;
    case POWER: return ::pow(::fabs(x), power);
    case NOT_ZERO: return x != 0;
    default: return ::fabs(x);
  }
}

struct Terms {
  typedef f64 Number;
  typedef Total<f64> State;
  static __device__ State start(const Ask &ask) { return {ask.mode == LEAST ? infinity() : 0}; }
  static __device__ void add(State &state, f64 x, i64, const Ask &ask) {
    f64 term = ask.mode == PLAIN ? x : ask.mode == SQUARE ? x * x : rare_term(ask.mode, x, ask.a);
    state = join(state, {term}, ask);
  }
  static __device__ State join(State a, State b, const Ask &ask) {
    if (ask.mode < MOST) return {a.value + b.value};
    bool keeps = ask.mode == MOST ? b.value < a.value : a.value < b.value;
    return keeps || not_number(a.value) ? a : b;
  }
  static __device__ void finish(State state, void *out, i64 at, i32 code, const Ask &ask) {
    f64 value = state.value;
    if (ask.mode == SQUARE) value = ::sqrt(value);
    if (ask.mode == POWER) value = ::pow(value, 1 / ask.a);
    keep<f64>(out, at, code, ask.b == 1 ? value : value / ask.b);
  }
};

// How many elements are not zero, and whether any or all are.
enum Truths { COUNT, ANY, ALL };

template <typename C> struct Nonzero {
  typedef C Number;
  typedef Total<i64> State;
  static __device__ State start(const Ask &) { return {0}; }
  static __device__ void add(State &state, C x, i64, const Ask &) { state.value += x != 0; }
  static __device__ State join(State a, State b, const Ask &) { return {a.value + b.value}; }
  static __device__ void finish(State state, void *out, i64 at, i32 code, const Ask &ask) {
    i64 value = ask.mode == COUNT ? state.value : ask.mode == ANY ? state.value > 0 : state.value == ask.count;
    keep<i64>(out, at, code, value);
  }
};

struct WholeSum {
  typedef i64 Number;
  typedef Total<i64> State;
  static __device__ State start(const Ask &) { return {0}; }
  static __device__ void add(State &state, i64 x, i64, const Ask &) { state.value += x; }
  static __device__ State join(State a, State b, const Ask &) { return {a.value + b.value}; }
  static __device__ void finish(State state, void *out, i64 at, i32 code, const Ask &) { keep<i64>(out, at, code, state.value); }
};

template <typename C> struct Product {
  typedef C Number;
  typedef Total<C> State;
  static __device__ State start(const Ask &) { return {1}; }
  static __device__ void add(State &state, C x, i64, const Ask &) { state.value *= x; }
  static __device__ State join(State a, State b, const Ask &) { return {a.value * b.value}; }
  static __device__ void finish(State state, void *out, i64 at, i32 code, const Ask &) { keep<C>(out, at, code, state.value); }
};

// Sums of the distances from one of the elements, and of their squares; for f64 `around` is the
// mean of what was seen so far. The CPU's twin says why.
struct Moment {
  f64 count, around, sum, squares;
};

struct Moments {
  typedef f64 Number;
  typedef Moment State;
  static __device__ State start(const Ask &) { return {0, 0, 0, 0}; }
  static __device__ void add(State &state, f64 x, i64, const Ask &ask) {
    if (ask.narrow) {
      if (state.count == 0) state.around = x;
      f64 apart = x - state.around;
      state.sum += apart;
      state.squares += apart * apart;
      state.count += 1;
      return;
    }
    state.count += 1;
    f64 apart = x - state.around;
    state.around += apart / state.count;
    state.squares += apart * (x - state.around);
  }
  static __device__ State join(State a, State b, const Ask &ask) {
    f64 count = a.count + b.count;
    if (ask.narrow) {
      f64 around = a.count == 0 ? b.around : a.around;
      f64 apart = b.count == 0 ? 0 : b.around - around;
      return {count, around, a.sum + b.sum + b.count * apart, a.squares + b.squares + apart * (2 * b.sum + b.count * apart)};
    }
    f64 share = count == 0 ? 0 : b.count / count, apart = b.around - a.around;
    return {count, a.around + apart * share, 0, a.squares + b.squares + apart * apart * a.count * share};
  }
  // `a` is the correction; mode 1 takes the root.
  static __device__ void finish(State state, void *out, i64 at, i32 code, const Ask &ask) {
    f64 rest = ::fmax(state.count - ask.a, 0.0);
    f64 spread = state.squares - state.sum * state.sum / state.count;
    // A NaN stays one.
    f64 variance = state.count == 0 ? nan_number() : (spread < 0 ? 0 : spread) / rest;
    keep<f64>(out, at, code, ask.mode == 1 ? ::sqrt(variance) : variance);
  }
};

// exp(top) times sum: a sum of exponentials that cannot overflow.
struct Exponentials {
  f64 top, sum;
};

struct LogSumExp {
  typedef f64 Number;
  typedef Exponentials State;
  static __device__ State start(const Ask &) { return {-infinity(), 0}; }
  static __device__ f64 exponential(f64 x, const Ask &ask) { return ask.narrow ? (f64)::expf((f32)x) : ::exp(x); }
  static __device__ void add(State &state, f64 x, i64, const Ask &ask) {
    if (x > state.top) {
      state.sum = state.sum * exponential(state.top - x, ask) + 1;
      state.top = x;
    } else if (x == state.top) {
      // exp(-inf) is nothing; equal infinities have no difference.
      state.sum += x != -infinity();
    } else {
      state.sum += exponential(x - state.top, ask);
    }
  }
  static __device__ State join(State a, State b, const Ask &ask) {
    if (b.top > a.top) {
      State swapped = a;
      a = b;
      b = swapped;
    }
    return {a.top, a.top == b.top ? a.sum + b.sum : a.sum + b.sum * ::exp(b.top - a.top)};
  }
  static __device__ void finish(State state, void *out, i64 at, i32 code, const Ask &) {
    keep<f64>(out, at, code, state.sum == 0 ? -infinity() : state.top + ::log(state.sum));
  }
};

// The first place of the largest (mode 1) or smallest element; a NaN is both. A place below 0
// stands for no element.
template <typename C> struct Found {
  C value;
  i64 place;
};

template <typename C> struct Place {
  typedef C Number;
  typedef Found<C> State;
  static __device__ State start(const Ask &) { return {0, -1}; }
  static __device__ void add(State &state, C x, i64 index, const Ask &ask) { state = join(state, {x, index}, ask); }
  static __device__ State join(State a, State b, const Ask &ask) {
    if (a.place < 0) return b;
    if (b.place < 0) return a;
    bool first = a.place < b.place;
    if (not_number(a.value) || not_number(b.value)) return not_number(a.value) && (first || !not_number(b.value)) ? a : b;
    if (a.value == b.value) return first ? a : b;
    return (ask.mode == 1 ? a.value > b.value : a.value < b.value) ? a : b;
  }
  static __device__ void finish(State state, void *out, i64 at, i32 code, const Ask &) { keep<i64>(out, at, code, state.place); }
};

template <typename S> union Words {
  S state;
  u64 words[sizeof(S) / 8];
};

// Joins the states of a warp; lane 0 has the result.
template <typename P> __device__ __noinline__ typename P::State warp_join(typename P::State state, const Ask &ask) {
  typedef typename P::State S;
#pragma unroll 1
  for (int distance = 16; distance > 0; distance >>= 1) {
    Words<S> own, other;
    own.state = state;
    for (int k = 0; k < (int)(sizeof(S) / 8); ++k) other.words[k] = __shfl_down_sync(~0u, own.words[k], distance);
    state = P::join(state, other.state, ask);
  }
  return state;
}

// Joins the states of a block; thread 0 has the result.
template <typename P> __device__ typename P::State block_join(typename P::State state, const Ask &ask) {
  __shared__ typename P::State warps[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  state = warp_join<P>(state, ask);
  __syncthreads();
  if (lane == 0) warps[warp] = state;
  __syncthreads();
  if (warp == 0) {
    state = lane < (blockDim.x >> 5) ? warps[lane] : P::start(ask);
    state = warp_join<P>(state, ask);
  }
  return state;
}

__device__ __forceinline__ i64 inside(const Strided &inner, i64 i) {
  i64 at[1];
  locate<1>(inner, i, at);
  return at[0];
}

template <typename P>
__device__ void fold(i64 outputs, i64 parts, const Strided &outer, const Strided &inner, i64 step, i32 team, const Ask &ask, i32 code,
                     i32 out_code, const void *x, void *out, void *partial) {
  typedef typename P::State S;
  typedef typename P::Number C;
  i64 teams = blockDim.x / team, lane = threadIdx.x % team;
  i64 length = (ask.count + parts - 1) / parts;
  for (i64 job = blockIdx.x * teams + threadIdx.x / team; job < outputs * parts; job += gridDim.x * teams) {
    i64 part = job / outputs, output = job - part * outputs, at[2];
    locate<2>(outer, output, at);
    i64 from = part * length, to = min(from + length, ask.count), i = from + lane;
    S state = P::start(ask);
    // Four loads are on their way at once: one does not keep the memory busy.
    for (; i < to; i += 4 * team) {
      C four[4];
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (i + k * team < to) four[k] = widest<C>(x, at[0] + (step >= 0 ? (i + k * team) * step : inside(inner, i + k * team)), code);
#pragma unroll 1
      for (int k = 0; k < 4; ++k) {
        if (i + k * team < to) P::add(state, four[0], i + k * team, ask);
        four[0] = four[1], four[1] = four[2], four[2] = four[3];
      }
    }
    if (team == 32) state = warp_join<P>(state, ask);
    else if (team > 32) state = block_join<P>(state, ask);
    if (lane == 0) {
      if (parts == 1) P::finish(state, out, at[1], out_code, ask);
      else ((S *)partial)[job] = state;
    }
  }
}

// A warp an output.
template <typename P>
__device__ void finish(i64 outputs, i64 parts, const Strided &outer, const Ask &ask, i32 out_code, void *out, const void *partial) {
  typedef typename P::State S;
  i64 warps = blockDim.x / 32, lane = threadIdx.x % 32;
  for (i64 output = blockIdx.x * warps + threadIdx.x / 32; output < outputs; output += gridDim.x * warps) {
    S state = P::start(ask);
    for (i64 part = lane; part < parts; part += 32) state = P::join(state, ((const S *)partial)[part * outputs + output], ask);
    state = warp_join<P>(state, ask);
    if (lane == 0) {
      i64 at[2];
      locate<2>(outer, output, at);
      P::finish(state, out, at[1], out_code, ask);
    }
  }
}

#define FOLD(name, P)                                                                                              \
  KERNEL(name)(i64 outputs, i64 parts, i64 count, Strided outer, Strided inner, i64 step, i32 team, i32 mode,      \
                                  f64 a, f64 b, i32 code, i32 out_code, const void *x, void *out, void *partial) { \
    Ask ask = {mode, count, a, b, code != F64};                                                                    \
    fold<P>(outputs, parts, outer, inner, step, team, ask, code, out_code, x, out, partial);                       \
  }                                                                                                                \
  KERNEL(name##_finish)(i64 outputs, i64 parts, i64 count, Strided outer, i32 mode, f64 a, f64 b, i32 code,        \
                                           i32 out_code, void *out, const void *partial) {                         \
    Ask ask = {mode, count, a, b, code != F64};                                                                    \
    finish<P>(outputs, parts, outer, ask, out_code, out, partial);                                                 \
  }
FOLD(terms_real, Terms)
FOLD(nonzero_real, Nonzero<f64>)
FOLD(nonzero_whole, Nonzero<i64>)
FOLD(sum_whole, WholeSum)
FOLD(product_real, Product<f64>)
FOLD(product_whole, Product<i64>)
FOLD(moments_real, Moments)
FOLD(logsumexp_real, LogSumExp)
FOLD(place_real, Place<f64>)
FOLD(place_whole, Place<i64>)
