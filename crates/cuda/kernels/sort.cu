// Stable sorting of lines. Short lines are sorted by a block in shared memory. Long ones are a
// radix sort of (key, position) pairs, least significant digit first, eight bits a pass: each
// block counts the digits of its part of a line, the counts are summed up along the parts, and
// each block brings its part's pairs to their places in order.

const int PLACES = 256, THREADS = 256, WARPS = THREADS / 32, ITEMS = 8, TILE = THREADS * ITEMS;
const int SHORT = 2048;

// The keys of all lines, one line after the other.
template <typename K>
__device__ void make_keys(i64 lines, i64 length, const Strided &outer, i64 step, i32 descending, i32 code, const void *x, K *keys) {
  for (i64 i = first_index(); i < lines * length; i += all_threads()) {
    i64 line = i / length, at[1];
    locate<1>(outer, line, at);
    keys[i] = (K)directed(key_of(x, at[0] + (i - line * length) * step, code), code, descending);
  }
}

template <typename K> __device__ __forceinline__ u32 digit_of(K key, i32 shift) { return (u32)(key >> shift) & (PLACES - 1); }

// How often each digit occurs in each part: counts[row][digit][part].
template <typename K>
__device__ void count_digits(i64 rows, i64 length, i64 parts, i64 span, i32 shift, const K *keys, u32 *counts) {
  __shared__ u32 found[PLACES];
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
KERNEL(sort_sums)(i64 digits, i64 parts, u32 *counts, u32 *totals) {
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

template <typename K>
__device__ void place_pairs(i64 rows, i64 length, i64 parts, i64 span, i32 shift, i32 first, const K *keys, const u32 *positions,
                            K *keys_out, u32 *positions_out, const u32 *counts, const u32 *totals) {
  __shared__ u32 next[PLACES];
  __shared__ u32 own[WARPS][PLACES];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (i64 job = blockIdx.x; job < rows * parts; job += gridDim.x) {
    i64 row = job / parts, part = job - row * parts, start = row * length;
    i64 digit_line = row * PLACES + threadIdx.x;
    next[threadIdx.x] = block_exclusive(totals[digit_line]) + counts[digit_line * parts + part];
    i64 end = min((part + 1) * span, length);
    for (i64 tile = part * span; tile < end; tile += TILE) {
      for (int w = 0; w < WARPS; ++w) own[w][threadIdx.x] = 0;
      __syncthreads();
      // A warp has consecutive pairs, and counts each before the next.
      i64 base = tile + warp * (TILE / WARPS) + lane;
      K kept[ITEMS];
      u32 rank[ITEMS];
#pragma unroll
      for (int k = 0; k < ITEMS; ++k) {
        bool valid = base + 32 * k < end;
        kept[k] = valid ? keys[start + base + 32 * k] : 0;
        u32 digit = digit_of(kept[k], shift), same = same_digit(valid, digit);
        u32 before = __popc(same & ((1u << lane) - 1));
        rank[k] = own[warp][digit] + before;
        __syncwarp();
        if (valid && before == 0) own[warp][digit] += __popc(same);
        __syncwarp();
      }
      __syncthreads();
      u32 at = next[threadIdx.x];
      for (int w = 0; w < WARPS; ++w) {
        u32 count = own[w][threadIdx.x];
        own[w][threadIdx.x] = at;
        at += count;
      }
      next[threadIdx.x] = at;
      __syncthreads();
#pragma unroll
      for (int k = 0; k < ITEMS; ++k) {
        i64 from = base + 32 * k;
        if (from >= end) continue;
        i64 to = start + own[warp][digit_of(kept[k], shift)] + rank[k];
        keys_out[to] = kept[k];
        positions_out[to] = first ? (u32)from : positions[start + from];
      }
      __syncthreads();
    }
    __syncthreads();
  }
}

#define RADIX(K)                                                                                                       \
  KERNEL(sort_keys_##K)(i64 lines, i64 length, Strided outer, i64 step, i32 descending, i32 code,                      \
                                           const void *x, K *keys) {                                                   \
    make_keys<K>(lines, length, outer, step, descending, code, x, keys);                                               \
  }                                                                                                                    \
  KERNEL(sort_count_##K)(i64 rows, i64 length, i64 parts, i64 span, i32 shift, const K *keys, u32 *counts) {           \
    count_digits<K>(rows, length, parts, span, shift, keys, counts);                                                   \
  }                                                                                                                    \
  KERNEL(sort_place_##K)(i64 rows, i64 length, i64 parts, i64 span, i32 shift, i32 first, const K *keys,               \
                                            const u32 *positions, K *keys_out, u32 *positions_out, const u32 *counts,  \
                                            const u32 *totals) {                                                       \
    place_pairs<K>(rows, length, parts, span, shift, first, keys, positions, keys_out, positions_out, counts, totals); \
  }
RADIX(u32)
RADIX(u64)

// The first `kept` elements of each line by their sorted positions, and those positions. Operands
// of `outer`: x, values, indices.
KERNEL(sort_gather)(i64 lines, i64 length, i64 kept, Strided outer, i64 x_step, i64 value_step, i64 index_step,
                                       i32 code, const void *x, const u32 *positions, void *values, i64 *indices) {
  for (i64 i = first_index(); i < lines * kept; i += all_threads()) {
    i64 line = i / kept, rank = i - line * kept, at[3];
    locate<3>(outer, line, at);
    i64 position = positions[line * length + rank];
    copy_element(values, at[1] + rank * value_step, x, at[0] + position * x_step, code);
    indices[at[2] + rank * index_step] = position;
  }
}

// Whole lines of up to SHORT elements, a block a line; `room` is the power of two that holds one.
KERNEL(sort_short)(i64 lines, i64 length, i64 kept, Strided outer, i64 x_step, i64 value_step, i64 index_step,
                                      i32 descending, i32 room, i32 code, const void *x, void *values, i64 *indices) {
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
