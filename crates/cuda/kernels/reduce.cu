// Reductions: folds of elements of any dtype to a result of any dtype, floats in f64 and integers
// in i64. `outer` locates an output's first input element (operand 0) and the output itself
// (operand 1); the elements folded into it are `step` apart, or where `inner` says if `step` is
// negative.
//
// A team of threads folds an output, or one of its `parts`: one thread where outputs are
// neighbours in memory, a warp, or the block. States of parts lie in `states` ([parts][outputs])
// until a second run joins them, or of columns a kernel of its own. Which threads fold what depends
// on sizes alone, so results never vary. Dense rows of the common float dtypes have kernels of
// their own for the common folds, which read 16 bytes at a time into a fold's `Fast`.

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

// What folds that add up share.
template <typename C> struct Adding {
  typedef Total<C> State;
  static __device__ State start(const Ask &) { return {0}; }
  static __device__ State join(State a, State b, const Ask &) { return {a.value + b.value}; }
};

// Sums, over `b` for means. Within four elements they are in f32: the CPU's lanes are longer.
struct Sums : Adding<f64> {
  typedef f64 Number;
  static __device__ void add(State &state, f64 x, i64, const Ask &) { state.value += x; }
  static __device__ void finish(State state, void *out, i64 at, i32 code, const Ask &ask) {
    keep<f64>(out, at, code, ask.b == 1 ? state.value : state.value / ask.b);
  }
  struct Fast {
    f64 value;
    __device__ Fast(const Ask &) : value(0) {}
    __device__ __forceinline__ void take(const f32 (&x)[4], int) { value += (x[0] + x[1]) + (x[2] + x[3]); }
    __device__ State state(i64) const { return {value}; }
  };
};

// The root of the sum of squares.
struct Squares : Adding<f64> {
  typedef f64 Number;
  static __device__ void add(State &state, f64 x, i64, const Ask &) { state.value += x * x; }
  static __device__ void finish(State state, void *out, i64 at, i32 code, const Ask &) { keep<f64>(out, at, code, ::sqrt(state.value)); }
  struct Fast {
    f64 even, odd;
    __device__ Fast(const Ask &) : even(0), odd(0) {}
    __device__ __forceinline__ void take(const f32 (&x)[4], int) {
      even += (f64)x[0] * x[0];
      odd += (f64)x[1] * x[1];
      even += (f64)x[2] * x[2];
      odd += (f64)x[3] * x[3];
    }
    __device__ State state(i64) const { return {even + odd}; }
  };
};

// Sums of rarer terms, and extremes of absolute values.
enum Term { NOT_NAN, ABSOLUTE, POWER, NOT_ZERO, MOST, LEAST };

struct Terms {
  typedef f64 Number;
  typedef Total<f64> State;
  static __device__ State start(const Ask &ask) { return {ask.mode == LEAST ? infinity() : 0}; }
  static __device__ f64 term(f64 x, const Ask &ask) {
    switch (ask.mode) {
      case NOT_NAN: return not_number(x) ? 0 : x;
      case POWER: return ::pow(::fabs(x), ask.a);
      case NOT_ZERO: return x != 0;
      default: return ::fabs(x);
    }
  }
  static __device__ void add(State &state, f64 x, i64, const Ask &ask) { state = join(state, {term(x, ask)}, ask); }
  static __device__ State join(State a, State b, const Ask &ask) {
    if (ask.mode < MOST) return {a.value + b.value};
    bool keeps = ask.mode == MOST ? b.value < a.value : a.value < b.value;
    return keeps || not_number(a.value) ? a : b;
  }
  static __device__ void finish(State state, void *out, i64 at, i32 code, const Ask &ask) {
    keep<f64>(out, at, code, ask.mode == POWER ? ::pow(state.value, 1 / ask.a) : state.value);
  }
};

// How many elements are not zero, and whether any or all are.
enum Truths { COUNT, ANY, ALL };

template <typename C> struct Nonzero : Adding<i64> {
  typedef C Number;
  static __device__ void add(State &state, C x, i64, const Ask &) { state.value += x != 0; }
  static __device__ void finish(State state, void *out, i64 at, i32 code, const Ask &ask) {
    i64 value = ask.mode == COUNT ? state.value : ask.mode == ANY ? state.value > 0 : state.value == ask.count;
    keep<i64>(out, at, code, value);
  }
};

struct WholeSum : Adding<i64> {
  typedef i64 Number;
  static __device__ void add(State &state, i64 x, i64, const Ask &) { state.value += x; }
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
struct Moment { f64 count, around, sum, squares; };

struct Moments {
  typedef f64 Number;
  typedef Moment State;
  static __device__ State start(const Ask &) { return {0, 0, 0, 0}; }
  static __device__ __forceinline__ void take_one(State &state, f64 x) {
    f64 apart = x - state.around;
    state.sum += apart;
    state.squares += apart * apart;
  }
  static __device__ void add(State &state, f64 x, i64, const Ask &ask) {
    if (ask.narrow) {
      if (state.count == 0) state.around = x;
      take_one(state, x);
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
    return {count, a.around + apart * share, 0, a.squares + b.squares + apart * (apart * a.count * share)};
  }
  // `a` is the correction; mode 1 takes the root.
  static __device__ void finish(State state, void *out, i64 at, i32 code, const Ask &ask) {
    f64 rest = ::fmax(state.count - ask.a, 0.0);
    f64 spread = state.squares - state.sum * state.sum / state.count;
    // A NaN stays one.
    f64 variance = state.count == 0 ? nan_number() : (spread < 0 ? 0 : spread) / rest;
    keep<f64>(out, at, code, ask.mode == 1 ? ::sqrt(variance) : variance);
  }
  struct Fast {
    State own;
    i32 fours;
    __device__ Fast(const Ask &ask) : own(start(ask)), fours(0) {}
    __device__ __forceinline__ void take(const f32 (&x)[4], int) {
      if (fours++ == 0) own.around = x[0];
#pragma unroll
      for (int k = 0; k < 4; ++k) take_one(own, x[k]);
    }
    __device__ State state(i64) const { return {4.0 * fours, own.around, own.sum, own.squares}; }
  };
};

// exp(top) times sum: a sum of exponentials that cannot overflow.
struct Exponentials { f64 top, sum; };

struct LogSumExp {
  typedef f64 Number;
  typedef Exponentials State;
  static __device__ State start(const Ask &) { return {-infinity(), 0}; }
  static __device__ f64 exponential(f64 x, const Ask &ask) { return ask.narrow ? (f64)::expf((f32)x) : ::exp(x); }
  static __device__ void add(State &state, f64 x, i64, const Ask &ask) {
    // exp(-inf) is nothing; equal infinities have no difference.
    bool rises = x > state.top;
    f64 apart = x == state.top ? 0 : rises ? state.top - x : x - state.top, part = exponential(apart, ask);
    state.sum = rises ? state.sum * part + 1 : state.sum + (x == -infinity() ? 0 : part);
    if (rises) state.top = x;
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

// The first place of the largest (mode 1 or 3) or smallest (0 or 2) element, and with modes from 2
// on the element itself; a NaN is both. A place below 0 stands for no element.
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
    return (ask.mode & 1 ? a.value > b.value : a.value < b.value) ? a : b;
  }
  static __device__ void finish(State state, void *out, i64 at, i32 code, const Ask &ask) {
    if (ask.mode >= 2) keep<C>(out, at, code, state.value);
    else keep<i64>(out, at, code, state.place);
  }
  // By opposites if the smallest is wanted. A NaN is the best.
  struct Fast {
    f32 best, sign;
    int first, place;
    __device__ Fast(const Ask &ask) : best(-(f32)infinity()), sign(ask.mode & 1 ? 1.0f : -1.0f), first(-1), place(-1) {}
    __device__ __forceinline__ void take(const f32 (&x)[4], int index) {
      if (first < 0) first = index;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        f32 value = x[k] * sign;
        bool takes = !(value <= best) && best == best;
        best = takes ? value : best;
        place = takes ? index + k : place;
      }
    }
    // Elements that are all infinitely bad have a first as well.
    __device__ State state(i64 from) const {
      int found = place < 0 ? first : place;
      return {(C)best * (C)sign, found < 0 ? -1 : from + found};
    }
  };
};

template <typename S> union Words {
  S state;
  u64 words[sizeof(S) / 8];
};

// Joins the states of a team; its first thread has the result.
template <typename P> __device__ __forceinline__ typename P::State team_join(typename P::State state, int team, const Ask &ask) {
  typedef typename P::State S;
  __shared__ S warps[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, rounds = team > 32 ? 2 : 1;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll 1
    for (int distance = 16; distance > 0; distance >>= 1) {
      Words<S> own, other;
      own.state = state;
      for (int k = 0; k < (int)(sizeof(S) / 8); ++k) other.words[k] = __shfl_down_sync(~0u, own.words[k], distance);
      state = P::join(state, other.state, ask);
    }
    if (rounds == 2 && round == 0) {
      __syncthreads();
      if (lane == 0) warps[warp] = state;
      __syncthreads();
      state = lane < (blockDim.x >> 5) ? warps[lane] : P::start(ask);
    }
  }
  return state;
}

// Elements from..to of a dense row by packs, and one by one what lies before and behind them. There
// are fewer than 2^31.
template <typename P, typename T>
__device__ __forceinline__ typename P::State fold_packs(const T *row, i64 from, i64 to, int lane, int team, const Ask &ask) {
  const int wide = 16 / sizeof(T);
  row += from;
  int length = (int)(to - from), head = min((int)((16 - ((u64)row & 15)) & 15) / (int)sizeof(T), length);
  const Pack<T> *packs = (const Pack<T> *)(row + head);
  int count = (length - head) / wide, loose = length - count * wide;
  typename P::Fast fast(ask);
  auto take = [&](const Pack<T> &pack, int i) {
#pragma unroll
    for (int k = 0; k < wide; k += 4) {
      f32 four[4] = {number(pack, k), number(pack, k + 1), number(pack, k + 2), number(pack, k + 3)};
      fast.take(four, head + i * wide + k);
    }
  };
  int i = lane;
  // Four loads are on their way at once: one does not keep the memory busy.
  for (; i < count - 3 * team; i += 4 * team) {
    Pack<T> four[4] = {packs[i], packs[i + team], packs[i + 2 * team], packs[i + 3 * team]};
#pragma unroll
    for (int j = 0; j < 4; ++j) take(four[j], i + j * team);
  }
  for (; i < count; i += team) take(packs[i], i);
  typename P::State state = fast.state(from);
  for (int j = lane; j < loose; j += team) {
    int index = j < head ? j : j + count * wide;
    P::add(state, load(row[index]), from + index, ask);
  }
  return state;
}

// Folds of dense rows; the second run is the other kernel's.
template <typename P, typename T>
__device__ void fold_rows(i64 outputs, i64 parts, const Strided &outer, int team, const Ask &ask, i32 out_code, const T *x, void *out,
                          void *states) {
  typedef typename P::State S;
  i64 teams = blockDim.x / team, length = (ask.count + parts - 1) / parts;
  int lane = threadIdx.x % team;
  for (i64 job = blockIdx.x * teams + threadIdx.x / team; job < outputs * parts; job += gridDim.x * teams) {
    i64 part = job / outputs, output = job - part * outputs, at[2];
    locate<2>(outer, output, at);
    i64 from = min(part * length, ask.count), to = min(from + length, ask.count);
    S state = team_join<P>(fold_packs<P, T>(x + at[0], from, to, lane, team, ask), team, ask);
    if (lane != 0) continue;
    if (parts == 1) P::finish(state, out, at[1], out_code, ask);
    else ((S *)states)[job] = state;
  }
}

// Sums down the columns of rows that begin `step` elements apart: a thread takes the columns of a
// pack, a block the rows of a part. `join_columns` or the second run joins the parts; a single one
// is finished here.
template <typename T>
__device__ void sum_columns(i64 columns, i64 rows, i64 step, i64 parts, const Ask &ask, i32 out_code, const T *x, void *out, f64 *states) {
  // So many packs of a thread are on their way at once.
  const int wide = 16 / sizeof(T), warps = 8, ahead = 8;
  __shared__ f64 sums[warps][32 * wide];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  i64 first = ((i64)blockIdx.x * 32 + lane) * wide, length = (rows + parts - 1) / parts;
  i64 row = blockIdx.y * length, to = min(row + length, rows);
  f64 total[wide];
#pragma unroll
  for (int k = 0; k < wide; ++k) total[k] = 0;
  if (first < columns) {
    for (row += warp; row < to; row += ahead * warps) {
      Pack<T> next[ahead];
#pragma unroll
      for (int j = 0; j < ahead; ++j) {
        i64 at = row + j * warps;
        // Rows that are not there count 0, so that the last ones do not come one by one.
        next[j] = at < to ? *(const Pack<T> *)(x + at * step + first) : Pack<T>{};
      }
#pragma unroll
      for (int k = 0; k < wide; ++k) {
#pragma unroll
        for (int j = 0; j < ahead; j += 4)
          total[k] += (number(next[j], k) + number(next[j + 1], k)) + (number(next[j + 2], k) + number(next[j + 3], k));
      }
    }
  }
#pragma unroll
  for (int k = 0; k < wide; ++k) sums[warp][lane * wide + k] = total[k];
  __syncthreads();
  for (int i = threadIdx.x; i < 32 * wide; i += blockDim.x) {
    i64 column = (i64)blockIdx.x * 32 * wide + i;
    if (column >= columns) return;
    f64 sum = 0;
    for (int j = 0; j < warps; ++j) sum += sums[j][i];
    if (parts == 1) Sums::finish({sum}, out, column, out_code, ask);
    else states[blockIdx.y * columns + column] = sum;
  }
}

// Up to four elements `step` apart. All of them are on their way at once: one does not keep the
// memory busy. A call, because every dtype in every fold would take long to compile.
template <typename C> struct Four { C a, b, c, d; };
template <typename C, typename T> __device__ __forceinline__ Four<C> fetch_as(const T *x, i64 step, i64 count) {
  Four<C> four = {(C)load(x[0]), 0, 0, 0};
  if (count > 1) four.b = load(x[step]);
  if (count > 2) four.c = load(x[2 * step]);
  if (count > 3) four.d = load(x[3 * step]);
  return four;
}
template <typename C> __device__ __noinline__ Four<C> fetch(const void *x, i64 at, i64 step, i64 count, i32 code) {
  switch (code) {
    case BOOL: return fetch_as<C>((const truth *)x + at, step, count);
    case U8: return fetch_as<C>((const u8 *)x + at, step, count);
    case I8: return fetch_as<C>((const i8 *)x + at, step, count);
    case I16: return fetch_as<C>((const i16 *)x + at, step, count);
    case I32: return fetch_as<C>((const i32 *)x + at, step, count);
    case I64: return fetch_as<C>((const i64 *)x + at, step, count);
    case F16: return fetch_as<C>((const f16 *)x + at, step, count);
    case BF16: return fetch_as<C>((const bf16 *)x + at, step, count);
    case F32: return fetch_as<C>((const f32 *)x + at, step, count);
    default: return fetch_as<C>((const f64 *)x + at, step, count);
  }
}

template <typename P>
__device__ void fold(i64 outputs, i64 parts, const Strided &outer, const Strided &inner, i64 step, int team, bool joins, const Ask &ask,
                     i32 code, i32 out_code, const void *x, void *out, void *memory) {
  typedef typename P::State S;
  typedef typename P::Number C;
  S *states = (S *)memory;
  i64 teams = blockDim.x / team, length = (ask.count + parts - 1) / parts;
  int lane = threadIdx.x % team;
  i64 jobs = joins ? outputs : outputs * parts;
  for (i64 job = blockIdx.x * teams + threadIdx.x / team; job < jobs; job += gridDim.x * teams) {
    i64 part = job / outputs, output = job - part * outputs, at[2];
    locate<2>(outer, output, at);
    i64 from = part * length, to = min(from + length, ask.count);
    S state = P::start(ask);
    if (joins) {
      for (i64 i = lane; i < parts; i += team) state = P::join(state, states[i * outputs + output], ask);
    } else {
      i64 each = step < 0 ? team : 4 * team;
      for (i64 i = from + lane; i < to; i += each) {
        i64 first[1] = {i * step};
        if (step < 0) locate<1>(inner, i, first);
        Four<C> four = fetch<C>(x, at[0] + first[0], step * team, step < 0 ? 1 : to - i > 3 * team ? 4 : (to - i + team - 1) / team, code);
#pragma unroll 1
        for (i64 j = i; j < to && j < i + each; j += team) {
          P::add(state, four.a, j, ask);
          four = {four.b, four.c, four.d, four.d};
        }
      }
    }
    if (team > 1) state = team_join<P>(state, team, ask);
    if (lane != 0) continue;
    if (joins || parts == 1) P::finish(state, out, at[1], out_code, ask);
    else states[job] = state;
  }
}

#define FOLD(name, P)                                                                                                    \
  KERNEL(name)(i64 outputs, i64 parts, i64 count, Strided outer, Strided inner, i64 step, i32 team, i32 joins, i32 mode, \
               f64 a, f64 b, i32 code, i32 out_code, const void *x, void *out, void *states) {                           \
    in_turn();                                                                                                           \
    Ask ask = {mode, count, a, b, code != F64};                                                                          \
    fold<P>(outputs, parts, outer, inner, step, team, joins, ask, code, out_code, x, out, states);                       \
  }
FOLD(sums_real, Sums)
FOLD(squares_real, Squares)
FOLD(terms_real, Terms)
FOLD(nonzero_real, Nonzero<f64>)
FOLD(nonzero_whole, Nonzero<i64>)
FOLD(sums_whole, WholeSum)
FOLD(product_real, Product<f64>)
FOLD(product_whole, Product<i64>)
FOLD(moments_real, Moments)
FOLD(logsumexp_real, LogSumExp)
FOLD(place_real, Place<f64>)
FOLD(place_whole, Place<i64>)

#define ROWS(name, type, P)                                                                                      \
  KERNEL(name##_rows_##type)(i64 outputs, i64 parts, i64 count, Strided outer, i32 team, i32 mode, f64 a, f64 b, \
                             i32 out_code, const type *x, void *out, void *states) {                             \
    in_turn();                                                                                                   \
    Ask ask = {mode, count, a, b, true};                                                                         \
    fold_rows<P, type>(outputs, parts, outer, team, ask, out_code, x, out, states);                              \
  }
#define ROWS_OF(name, P) ROWS(name, f32, P) ROWS(name, f16, P) ROWS(name, bf16, P)
ROWS_OF(sums, Sums)
ROWS_OF(squares, Squares)
ROWS_OF(moments, Moments)
ROWS_OF(place, Place<f64>)

// Joins the parts of 32 neighbouring columns: a lane a column, each warp every so many parts.
__device__ void join_columns(i64 columns, i64 parts, const Ask &ask, i32 out_code, const f64 *states, void *out) {
  const int warps = 16, ahead = 4;
  __shared__ f64 sums[warps][32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  i64 column = (i64)blockIdx.x * 32 + lane;
  f64 sum = 0;
  if (column < columns) {
    for (i64 part = warp; part < parts; part += ahead * warps) {
      f64 next[ahead];
#pragma unroll
      for (int j = 0; j < ahead; ++j) next[j] = part + j * warps < parts ? states[(part + j * warps) * columns + column] : 0;
#pragma unroll
      for (int j = 0; j < ahead; ++j) sum += next[j];
    }
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= columns) return;
  sum = 0;
  for (int j = 0; j < warps; ++j) sum += sums[j][lane];
  Sums::finish({sum}, out, column, out_code, ask);
}

KERNEL_OF(512, sums_columns_join)(i64 columns, i64 parts, f64 divisor, i32 code, const f64 *states, void *out) {
  in_turn();
  join_columns(columns, parts, Ask{0, 0, 0, divisor, true}, code, states, out);
}

#define COLUMNS(type)                                                                                               \
  KERNEL_OF(256, sums_columns_##type)(i64 columns, i64 rows, i64 step, i64 parts, i32 mode, f64 a, f64 b, i32 code, \
                                      const type *x, void *out, f64 *states) {                                      \
    in_turn();                                                                                                      \
    sum_columns<type>(columns, rows, step, parts, Ask{mode, rows, a, b, true}, code, x, out, states);               \
  }
COLUMNS(f32)
COLUMNS(f16)
COLUMNS(bf16)
