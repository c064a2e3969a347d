// Where numbers belong in sorted sequences, by halving; and how many fall into each bin. Operands
// are contiguous. Floats are compared as f64, integers as i64.

template <typename C> __device__ __forceinline__ bool not_number(C x) { return x != x; }

// One sequence serves all values if `row` is 0; else each row of values has its own.
template <typename C>
__device__ void search_sorted(i64 n, i64 length, i64 row, i32 right, i32 sequence_code, i32 code, i32 out_code, const void *sequences,
                              const void *values, void *out) {
  for (i64 i = first_index(); i < n; i += all_threads()) {
    C value = widest<C>(values, i, code);
    i64 first = row ? i / row * length : 0, low = 0, high = length;
    while (low < high) {
      i64 middle = low + (high - low) / 2;
      C there = widest<C>(sequences, first + middle, sequence_code);
      // A NaN belongs behind all; one in the sequence is gone past.
      bool goes_on = right ? !(there > value) : !(there >= value);
      if (goes_on) low = middle + 1;
      else high = middle;
    }
    keep<i64>(out, i, out_code, low);
  }
}

#define SEARCH(name, C)                                                                             \
  KERNEL(name)(i64 n, i64 length, i64 row, i32 right, i32 sequence_code, i32 code, i32 out_code,    \
                                  const void *sequences, const void *values, void *out) {           \
    in_turn();                                                                                      \
    search_sorted<C>(n, length, row, right, sequence_code, code, out_code, sequences, values, out); \
  }
SEARCH(searchsorted_real, f64)
SEARCH(searchsorted_whole, i64)

// How elements are put into `count` bins: they are the bins' numbers, bins have one width from low
// to high, or edges part them.
enum Way { NUMBERED, EVEN, EDGES };
struct Bins {
  i64 count;
  i32 way;
  f64 low, high;
  i32 code, edge_code;
  const void *x, *edges;
};

// The bin of an element; `count` if it has none.
__device__ i64 bin_of(const Bins &bins, i64 i) {
  if (bins.way == NUMBERED) {
    i64 bin = element<i64>(bins.x, i, bins.code);
    return bin >= 0 && bin < bins.count ? bin : bins.count;
  }
  f64 value = widest<f64>(bins.x, i, bins.code);
  if (bins.way == EVEN) {
    if (!(value >= bins.low && value <= bins.high)) return bins.count;
    // In the CPU's order, so that what lies on an edge falls to the same side.
    f64 place = (value - bins.low) * (f64)bins.count / (bins.high - bins.low);
    return !(place > 0) ? 0 : place >= (f64)bins.count ? bins.count - 1 : (i64)place;
  }
  f64 first = widest<f64>(bins.edges, 0, bins.edge_code), last = widest<f64>(bins.edges, bins.count, bins.edge_code);
  if (!(value >= first && value <= last)) return bins.count;
  i64 low = 0, high = bins.count;
  while (low < high) {
    i64 middle = low + (high - low) / 2;
    if (widest<f64>(bins.edges, middle, bins.edge_code) <= value) low = middle + 1;
    else high = middle;
  }
  return max(low, 1ll) - 1;
}

#define BINS i64 count, i32 way, f64 low, f64 high, i32 code, i32 edge_code, const void *x, const void *edges
#define GIVEN {count, way, low, high, code, edge_code, x, edges}

KERNEL(histogram_clear)(i64 count, u64 *counts) {
  in_turn();
  for (i64 i = first_index(); i < count; i += all_threads()) counts[i] = 0;
}

// Counts of whole numbers: the order in which they are added does not matter.
KERNEL(histogram_count)(i64 n, BINS, u64 *counts) {
  in_turn();
  const int most = 4096;
  __shared__ u32 own[most];
  Bins bins = GIVEN;
  bool in_block = count <= most;
  if (in_block) {
    for (int bin = threadIdx.x; bin < count; bin += blockDim.x) own[bin] = 0;
    __syncthreads();
  }
  for (i64 i = first_index(); i < n; i += all_threads()) {
    i64 bin = bin_of(bins, i);
    if (bin == count) continue;
    if (in_block) atomicAdd(&own[bin], 1u);
    else atomicAdd(&counts[bin], 1ull);
  }
  if (in_block) {
    __syncthreads();
    for (int bin = threadIdx.x; bin < count; bin += blockDim.x)
      if (own[bin]) atomicAdd(&counts[bin], (u64)own[bin]);
  }
}

KERNEL(histogram_finish)(i64 count, i32 out_code, const u64 *counts, void *out) {
  in_turn();
  for (i64 i = first_index(); i < count; i += all_threads()) keep<f64>(out, i, out_code, (f64)counts[i]);
}

// The bins as keys of a sort, for weights, which are added in the order of their elements.
KERNEL(histogram_keys)(i64 n, BINS, u32 *keys) {
  in_turn();
  Bins bins = GIVEN;
  for (i64 i = first_index(); i < n; i += all_threads()) keys[i] = (u32)bin_of(bins, i);
}

__device__ i64 first_not_below(const u32 *keys, i64 n, u32 key) {
  i64 low = 0, high = n;
  while (low < high) {
    i64 middle = low + (high - low) / 2;
    if (keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

// A warp a bin.
KERNEL(histogram_weigh)(i64 n, i64 count, i32 weight_code, i32 out_code, const u32 *keys, const u32 *positions,
                                           const void *weights, void *out) {
  in_turn();
  i64 lane = threadIdx.x & 31;
  for (i64 bin = first_index() / 32; bin < count; bin += all_threads() / 32) {
    i64 from = first_not_below(keys, n, (u32)bin), to = first_not_below(keys, n, (u32)bin + 1);
    f64 sum = 0;
    for (i64 i = from + lane; i < to; i += 32) sum += widest<f64>(weights, positions[i], weight_code);
    for (int distance = 16; distance > 0; distance >>= 1) sum += __shfl_down_sync(~0u, sum, distance);
    if (lane == 0) keep<f64>(out, bin, out_code, sum);
  }
}
