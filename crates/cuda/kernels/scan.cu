// Scans along lines: running sums, products, logarithms of sums of exponentials, extremes with
// their places, and the linear recurrence. Floats run in f64 and integers in i64, whatever the
// dtype. A team of threads scans a line, or one of its `parts`: one thread where lines lie side by
// side, a warp, or the block. Long lines take three runs: the parts' totals, what comes before
// each part, and the results. Who joins what depends on sizes alone.

// Operands of the lines' layout: x, the result, and a third that some scans have.
struct Data {
  const void *x;
  void *out, *third;
  i32 code, mode;
  bool reverse;
  i64 length, starts[3], steps[3];

  // The place of step `i` in an operand.
  __device__ __forceinline__ i64 at(int operand, i64 i) const {
    return starts[operand] + (reverse ? length - 1 - i : i) * steps[operand];
  }
};

enum Kind { SUM, PRODUCT, LOGSUMEXP };

__device__ __noinline__ f64 log_add_exp(f64 a, f64 b) {
  f64 low = a < b ? a : b, high = a < b ? b : a;
  if (a != a || b != b) return a + b;
  // Equal infinities have no difference.
  return low == high && low - low != 0 ? low : high + ::log1p(::exp(low - high));
}

template <typename C> struct Running {
  struct State { C value; };
  static __device__ __forceinline__ State nothing(i32 mode) { return {(C)(mode == PRODUCT)}; }
  static __device__ __forceinline__ State join(State a, State b, i32 mode) {
    return {mode == SUM ? a.value + b.value : a.value * b.value};
  }
  static __device__ __forceinline__ State load(const Data &d, i64 i) { return {widest<C>(d.x, d.at(0, i), d.code)}; }
  static __device__ __forceinline__ void store(const Data &d, i64 i, State s) { keep<C>(d.out, d.at(1, i), d.code, s.value); }
};

struct Exponentials {
  struct State { f64 value; };
  static __device__ State nothing(i32) { return {__longlong_as_double(0xfff0000000000000LL)}; }
  static __device__ State join(State a, State b, i32) { return {log_add_exp(a.value, b.value)}; }
  static __device__ State load(const Data &d, i64 i) { return {widest<f64>(d.x, d.at(0, i), d.code)}; }
  static __device__ void store(const Data &d, i64 i, State s) { keep<f64>(d.out, d.at(1, i), d.code, s.value); }
};

// The largest (mode 1) or smallest so far; among equals the last, and a NaN stays. A place below 0
// stands for no element.
template <typename C> struct Extreme {
  struct State { C value; i64 place; };
  static __device__ State nothing(i32) { return {0, -1}; }
  static __device__ State join(State a, State b, i32 mode) {
    if (b.place < 0) return a;
    bool below = mode == 1 ? b.value < a.value : a.value < b.value;
    return a.place < 0 || b.value != b.value || (a.value == a.value && !below) ? b : a;
  }
  static __device__ State load(const Data &d, i64 i) { return {widest<C>(d.x, d.at(0, i), d.code), i}; }
  static __device__ void store(const Data &d, i64 i, State s) {
    keep<C>(d.out, d.at(1, i), d.code, s.value);
    ((i64 *)d.third)[d.at(2, i)] = s.place;
  }
};

// T(k) = g(k) + a(k - 1) T(k - 1) as maps that are applied one after the other. From the end, step
// i's factor is that of its own place.
struct Linear {
  struct State { f64 factor, value; };
  static __device__ State nothing(i32) { return {1, 0}; }
  static __device__ State join(State a, State b, i32) { return {a.factor * b.factor, b.factor * a.value + b.value}; }
  static __device__ State load(const Data &d, i64 i) {
    f64 factor = i == 0 ? 0 : widest<f64>(d.third, d.at(2, d.reverse ? i : i - 1), d.code);
    return {factor, widest<f64>(d.x, d.at(0, i), d.code)};
  }
  static __device__ void store(const Data &d, i64 i, State s) { keep<f64>(d.out, d.at(1, i), d.code, s.value); }
};

template <typename S> union Words {
  S state;
  u64 words[sizeof(S) / 8];
};

template <typename S> __device__ __forceinline__ S from_lane(S state, int lane) {
  Words<S> own, other;
  own.state = state;
#pragma unroll
  for (int k = 0; k < (int)(sizeof(S) / 8); ++k) other.words[k] = __shfl_sync(~0u, own.words[k], lane);
  return other.state;
}

// What the threads before this one in its team have, joined; false for the first. `all` is that of
// the whole team.
template <typename P>
__device__ bool before_in_team(typename P::State own, int team, i32 mode, typename P::State &before, typename P::State &all) {
  typedef typename P::State S;
  __shared__ S warps[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll 1
  for (int distance = 1; distance < 32; distance <<= 1) {
    S other = from_lane(own, max(lane - distance, 0));
    if (lane >= distance) own = P::join(other, own, mode);
  }
  before = from_lane(own, max(lane - 1, 0));
  all = from_lane(own, 31);
  bool any = lane > 0;
  if (team == 32) return any;
  __syncthreads();
  if (lane == 31) warps[warp] = own;
  __syncthreads();
  all = warps[0];
#pragma unroll 1
  for (int w = 1; w <= (int)(blockDim.x >> 5); ++w) {
    if (w == warp) {
      before = any ? P::join(all, before, mode) : all;
      any = true;
    }
    if (w < (int)(blockDim.x >> 5)) all = P::join(all, warps[w], mode);
  }
  return any;
}

const int EACH = 4;

// Scans steps from..to with a team, from `carry` if there is one, and gives what comes out at the
// end.
template <typename P, typename Load, typename Use>
__device__ typename P::State scan_part(i64 from, i64 to, int team, i32 mode, bool carries, typename P::State carry, Load load, Use use) {
  typedef typename P::State S;
  if (team == 1) {
    for (i64 i = from; i < to; ++i) {
      carry = carries ? P::join(carry, load(i), mode) : load(i);
      carries = true;
      use(i, carry);
    }
    return carry;
  }
  for (i64 tile = from; tile < to; tile += (i64)team * EACH) {
    i64 first = tile + (i64)(threadIdx.x % team) * EACH;
    S own[EACH], before, all;
#pragma unroll
    for (int k = 0; k < EACH; ++k) own[k] = first + k < to ? load(first + k) : P::nothing(mode);
#pragma unroll
    for (int k = 1; k < EACH; ++k) own[k] = P::join(own[k - 1], own[k], mode);
    bool any = before_in_team<P>(own[EACH - 1], team, mode, before, all);
    if (carries) before = any ? P::join(carry, before, mode) : carry;
    any = any || carries;
#pragma unroll
    for (int k = 0; k < EACH; ++k)
      if (first + k < to) use(first + k, any ? P::join(before, own[k], mode) : own[k]);
    carry = carries ? P::join(carry, all, mode) : all;
    carries = true;
  }
  return carry;
}

enum Phase { WHOLE, TOTALS, CARRIES, RESULTS };

// states[line][part]: totals, then everything up to the end of each part.
template <typename P>
__device__ void scan(i64 lines, i64 parts, const Strided &outer, int team, i32 phase, Data data, void *memory) {
  typedef typename P::State S;
  S *states = (S *)memory;
  i64 teams = blockDim.x / team, span = (data.length + parts - 1) / parts;
  i64 jobs = phase == CARRIES ? lines : lines * parts;
  for (i64 job = blockIdx.x * teams + threadIdx.x / team; job < jobs; job += gridDim.x * teams) {
    i64 part = job / lines, line = job - part * lines, from = part * span, to = min(from + span, data.length);
    locate<3>(outer, line, data.starts);
    if (phase == CARRIES) from = 0, to = parts;
    bool carries = phase == RESULTS && part > 0;
    S carry = carries ? states[line * parts + part - 1] : P::nothing(data.mode);
    S last = scan_part<P>(
        from, to, team, data.mode, carries, carry, [&](i64 i) { return phase == CARRIES ? states[line * parts + i] : P::load(data, i); },
        [&](i64 i, S state) {
          if (phase == CARRIES) states[line * parts + i] = state;
          else if (phase != TOTALS) P::store(data, i, state);
        });
    if (phase == TOTALS && threadIdx.x % team == 0) states[line * parts + part] = last;
  }
}

#define SCAN(name, ...)                                                                                                        \
  KERNEL(name)(i64 lines, i64 length, i64 parts, Strided outer, i64 x_step, i64 out_step, i64 third_step,                      \
                                  i32 team, i32 reverse, i32 mode, i32 phase, i32 code, const void *x, void *out, void *third, \
                                  void *states) {                                                                              \
    in_turn();                                                                                                                 \
    Data data = {x, out, third, code, mode, reverse != 0, length, {0, 0, 0}, {x_step, out_step, third_step}};                  \
    scan<__VA_ARGS__>(lines, parts, outer, team, phase, data, states);                                                         \
  }
SCAN(scan_real, Running<f64>)
SCAN(scan_whole, Running<i64>)
SCAN(scan_logsumexp, Exponentials)
SCAN(scan_extreme_real, Extreme<f64>)
SCAN(scan_extreme_whole, Extreme<i64>)
SCAN(scan_linear, Linear)
