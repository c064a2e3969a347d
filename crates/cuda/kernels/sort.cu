// Stable sorting of lines. Short lines are sorted by a block in shared memory. Long ones are a
// radix sort of (key, position) pairs, least significant digit first, eight bits a pass: each
// block counts the digits of its part of a line, the counts are summed up along the parts, and
// each block brings its part's pairs to their places in order, by way of shared memory, so that
// neighbours are written together.

const int PLACES = 256, THREADS = 256, WARPS = THREADS / 32, ITEMS = 8, TILE = THREADS * ITEMS;
const int SHORT = 2048;

// The keys of all lines, one line after the other, and which of their bits differ, if asked for.
template <typename K>
__device__ void make_keys(i64 lines, i64 length, const Strided &outer, i64 step, i32 descending, i32 code, const void *x, K *keys,
                          u64 *differing) {
  u64 first = directed(key_of(x, 0, code), code, descending), found = 0;
  for (i64 i = first_index(); i < lines * length; i += all_threads()) {
    i64 line = lines == 1 ? 0 : i / length, at[1];
    locate<1>(outer, line, at);
    u64 key = directed(key_of(x, at[0] + (i - line * length) * step, code), code, descending);
    keys[i] = (K)key;
    found |= key ^ first;
  }
  if (!differing) return;
#pragma unroll
  for (int distance = 16; distance > 0; distance >>= 1) found |= __shfl_xor_sync(~0u, found, distance);
  if ((threadIdx.x & 31) == 0 && found != 0) atomicOr(differing, found);
}

template <typename K> __device__ __forceinline__ u32 digit_of(K key, i32 shift) { return (u32)(key >> shift) & (PLACES - 1); }

// Where a pass finds the pairs of its keys, and whether there is anything to do: passes over digits
// in which no two keys differ are left out. Without bits that differ all are gone through.
struct Pass {
  bool runs, first;
  int from;
};

__device__ __forceinline__ int digits_before(u64 differing, i32 shift) {
  int digits = 0;
  for (i32 at = 0; at < shift; at += 8) digits += ((differing >> at) & (PLACES - 1)) != 0;
  return digits;
}

__device__ __forceinline__ Pass pass_at(const u64 *differing, i32 shift) {
  u64 bits = differing ? *differing : ~0ull;
  int before = digits_before(bits, shift);
  return {((bits >> shift) & (PLACES - 1)) != 0, before == 0, before & 1};
}

KERNEL(sort_reset)(u64 *differing) {
  in_turn();
  if (first_index() == 0) *differing = 0;
}

// How often each digit occurs in each part: counts[row][digit][part].
template <typename K>
__device__ void count_digits(i64 rows, i64 length, i64 parts, i64 span, i32 shift, const u64 *differing, const K *keys, const K *other_keys,
                             u32 *counts) {
  __shared__ u32 found[PLACES];
  Pass pass = pass_at(differing, shift);
  if (!pass.runs) return;
  if (pass.from) keys = other_keys;
  for (i64 job = blockIdx.x; job < rows * parts; job += gridDim.x) {
    i64 row = job / parts, part = job - row * parts;
    found[threadIdx.x] = 0;
    __syncthreads();
    const K *line = keys + row * length;
    i64 end = min((part + 1) * span, length);
    for (i64 i = part * span + threadIdx.x; i < end; i += THREADS) atomicAdd(&found[digit_of(line[i], shift)], 1u);
    __syncthreads();
    counts[(row * PLACES + threadIdx.x) * parts + part] = found[threadIdx.x];
    __syncthreads();
  }
}

__device__ __forceinline__ u32 warp_inclusive(u32 value) {
  int lane = threadIdx.x & 31;
#pragma unroll
  for (int distance = 1; distance < 32; distance <<= 1) {
    u32 before = __shfl_up_sync(~0u, value, distance);
    if (lane >= distance) value += before;
  }
  return value;
}

// Sums counts up along the parts, a warp for each digit of each row: what comes before a part
// takes its place, and the sum of all goes to `totals`.
KERNEL(sort_sums)(i64 digits, i64 parts, i32 shift, const u64 *differing, u32 *counts, u32 *totals) {
  in_turn();
  if (!pass_at(differing, shift).runs) return;
  int lane = threadIdx.x & 31;
  for (i64 digit = first_index() / 32; digit < digits; digit += all_threads() / 32) {
    u32 before = 0;
    for (i64 first = 0; first < parts; first += 32) {
      i64 at = digit * parts + first + lane;
      bool inside = first + lane < parts;
      u32 own = inside ? counts[at] : 0, sum = warp_inclusive(own);
      if (inside) counts[at] = before + sum - own;
      before += __shfl_sync(~0u, sum, 31);
    }
    if (lane == 0) totals[digit] = before;
  }
}

// The sum of what threads before this one have.
__device__ u32 block_exclusive(u32 own) {
  __shared__ u32 warps[WARPS];
  u32 sum = warp_inclusive(own);
  if ((threadIdx.x & 31) == 31) warps[threadIdx.x >> 5] = sum;
  __syncthreads();
  u32 before = sum - own;
  for (int warp = 0; warp < (int)(threadIdx.x >> 5); ++warp) before += warps[warp];
  __syncthreads();
  return before;
}

// The lanes whose digit is this one's, among those that have one.
__device__ __forceinline__ u32 same_digit(bool valid, u32 digit) {
  u32 same = __ballot_sync(~0u, valid);
#pragma unroll
  for (int bit = 1; bit < PLACES; bit <<= 1) {
    u32 with = __ballot_sync(~0u, valid && (digit & bit));
    same &= digit & bit ? with : ~with;
  }
  return same;
}

// Without `positions` only the keys are sorted.
template <typename K>
__device__ void place_pairs(i64 rows, i64 length, i64 parts, i64 span, i32 shift, const u64 *differing, K *keys, K *other_keys,
                            u32 *positions, u32 *other_positions, const u32 *counts, const u32 *totals) {
  Pass pass = pass_at(differing, shift);
  if (!pass.runs) return;
  K *keys_out = pass.from ? keys : other_keys;
  u32 *positions_out = pass.from ? positions : other_positions;
  if (pass.from) keys = other_keys, positions = other_positions;
  __shared__ u32 own[WARPS][PLACES];
  // How much further a pair of each digit goes than its place in the sorted tile.
  __shared__ u32 further[PLACES];
  __shared__ K staged[TILE];
  __shared__ u32 staged_positions[TILE];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (i64 job = blockIdx.x; job < rows * parts; job += gridDim.x) {
    i64 row = job / parts, part = job - row * parts, start = row * length;
    i64 digit_line = row * PLACES + threadIdx.x;
    // Where the next pair of this thread's digit goes.
    u32 next = block_exclusive(totals[digit_line]) + counts[digit_line * parts + part];
    i64 end = min((part + 1) * span, length);
    for (i64 tile = part * span; tile < end; tile += TILE) {
      for (int w = 0; w < WARPS; ++w) own[w][threadIdx.x] = 0;
      __syncthreads();
      // A warp has consecutive pairs, and counts each before the next.
      i64 base = tile + warp * (TILE / WARPS) + lane;
      K kept[ITEMS];
      u32 rank[ITEMS];
#pragma unroll
      for (int k = 0; k < ITEMS; ++k) kept[k] = base + 32 * k < end ? keys[start + base + 32 * k] : 0;
#pragma unroll
      for (int k = 0; k < ITEMS; ++k) {
        bool valid = base + 32 * k < end;
        u32 digit = digit_of(kept[k], shift), same = same_digit(valid, digit);
        u32 before = __popc(same & ((1u << lane) - 1));
        rank[k] = own[warp][digit] + before;
        __syncwarp();
        if (valid && before == 0) own[warp][digit] += __popc(same);
        __syncwarp();
      }
      __syncthreads();
      u32 found = 0;
      for (int w = 0; w < WARPS; ++w) found += own[w][threadIdx.x];
      u32 at = block_exclusive(found);
      further[threadIdx.x] = next - at;
      next += found;
      for (int w = 0; w < WARPS; ++w) {
        u32 count = own[w][threadIdx.x];
        own[w][threadIdx.x] = at;
        at += count;
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < ITEMS; ++k) {
        i64 from = base + 32 * k;
        if (from >= end) continue;
        u32 place = own[warp][digit_of(kept[k], shift)] + rank[k];
        staged[place] = kept[k];
        if (positions) staged_positions[place] = pass.first ? (u32)from : positions[start + from];
      }
      __syncthreads();
      int count = (int)min((i64)TILE, end - tile);
      for (int place = threadIdx.x; place < count; place += THREADS) {
        K key = staged[place];
        i64 to = start + (u32)(place + further[digit_of(key, shift)]);
        keys_out[to] = key;
        if (positions) positions_out[to] = staged_positions[place];
      }
      __syncthreads();
    }
  }
}

#define RADIX(K)                                                                                                                            \
  KERNEL(sort_keys_##K)(i64 lines, i64 length, Strided outer, i64 step, i32 descending, i32 code, const void *x, K *keys, u64 *differing) { \
    in_turn();                                                                                                                              \
    make_keys<K>(lines, length, outer, step, descending, code, x, keys, differing);                                                         \
  }                                                                                                                                         \
  KERNEL(sort_count_##K)(i64 rows, i64 length, i64 parts, i64 span, i32 shift, const u64 *differing, const K *keys,                         \
                         const K *other_keys, u32 *counts) {                                                                                \
    in_turn();                                                                                                                              \
    count_digits<K>(rows, length, parts, span, shift, differing, keys, other_keys, counts);                                                 \
  }                                                                                                                                         \
  KERNEL_BY(THREADS, 4, sort_place_##K)(i64 rows, i64 length, i64 parts, i64 span, i32 shift, const u64 *differing, K *keys, K *other_keys, \
                         u32 *positions, u32 *other_positions, const u32 *counts, const u32 *totals) {                                      \
    in_turn();                                                                                                                              \
    place_pairs<K>(rows, length, parts, span, shift, differing, keys, other_keys, positions, other_positions, counts, totals);              \
  }
RADIX(u32)
RADIX(u64)

// The first `kept` elements of each line by their sorted positions, and those positions; whole
// numbers are made of their keys. Operands of `outer`: x, values, indices.
KERNEL(sort_gather)(i64 lines, i64 length, i64 kept, Strided outer, i64 x_step, i64 value_step, i64 index_step,
                                       i32 descending, i32 code, const void *x, const u64 *differing, const void *keys,
                                       const void *other_keys, const u32 *positions, const u32 *other_positions, void *values,
                                       i64 *indices) {
  in_turn();
  int passes = differing ? digits_before(*differing, 64) : 2;
  if (passes & 1) keys = other_keys, positions = other_positions;
  for (i64 i = first_index(); i < lines * kept; i += all_threads()) {
    i64 line = lines == 1 ? 0 : i / kept, rank = i - line * kept, at[3], from = line * length + rank;
    locate<3>(outer, line, at);
    // Keys that are all equal stay where they were.
    i64 position = passes == 0 ? rank : positions[from], to = at[1] + rank * value_step;
    if (code == I64) put_key(values, to, directed(((const u64 *)keys)[from], code, descending), code);
    else if (code == I32) put_key(values, to, directed(((const u32 *)keys)[from], code, descending), code);
    else copy_element(values, to, x, at[0] + position * x_step, code);
    indices[at[2] + rank * index_step] = position;
  }
}

// The elements of sorted keys.
KERNEL(sort_values)(i64 n, i32 code, const u64 *differing, const void *keys, const void *other_keys, void *values) {
  in_turn();
  if (differing && (digits_before(*differing, 64) & 1)) keys = other_keys;
  bool wide = key_bits(code) == 64;
  for (i64 i = first_index(); i < n; i += all_threads())
    put_key(values, i, wide ? ((const u64 *)keys)[i] : ((const u32 *)keys)[i], code);
}

// Whole lines of up to SHORT elements, a block a line; `room` is the power of two that holds one.
KERNEL(sort_short)(i64 lines, i64 length, i64 kept, Strided outer, i64 x_step, i64 value_step, i64 index_step,
                                      i32 descending, i32 room, i32 code, const void *x, void *values, i64 *indices) {
  in_turn();
  __shared__ u64 keys[SHORT];
  __shared__ u32 positions[SHORT];
  for (i64 line = blockIdx.x; line < lines; line += gridDim.x) {
    i64 at[3];
    locate<3>(outer, line, at);
    for (int i = threadIdx.x; i < room; i += blockDim.x) {
      // What fills up is greater than every pair.
      keys[i] = i < length ? directed(key_of(x, at[0] + i * x_step, code), code, descending) : ~0ull;
      positions[i] = i < length ? (u32)i : ~0u;
    }
    __syncthreads();
    sort_pairs(keys, positions, room);
    for (int i = threadIdx.x; i < kept; i += blockDim.x) {
      i64 position = positions[i];
      copy_element(values, at[1] + i * value_step, x, at[0] + position * x_step, code);
      indices[at[2] + i * index_step] = position;
    }
    __syncthreads();
  }
}
