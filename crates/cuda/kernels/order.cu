// Positions in the order of their keys, equal keys in the order of the positions: a radix sort of 8
// bits a pass. Each block has a part of the items. A pass counts the digits of each part, finds
// where each part's items of each digit start, and moves the items there.

#define DIGITS 256
#define EACH 8

__device__ __forceinline__ u32 digit_of(u64 key, i32 shift) { return (u32)(key >> shift) & (DIGITS - 1); }

// 256 threads a block; `counts` is [digits][blocks].
template <typename K> __device__ void order_count(i64 n, i64 length, i32 shift, const K *keys, u32 *counts) {
  __shared__ u32 own[DIGITS];
  own[threadIdx.x] = 0;
  __syncthreads();
  i64 from = blockIdx.x * length, to = min(from + length, n);
  for (i64 i = from + threadIdx.x; i < to; i += blockDim.x) atomicAdd(&own[digit_of(keys[i], shift)], 1u);
  __syncthreads();
  counts[(i64)threadIdx.x * gridDim.x + blockIdx.x] = own[threadIdx.x];
}

// Sums of a block's values up to and with each thread's. `warps` has room for one a warp.
__device__ u32 summed_up(u32 value, u32 *warps) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int distance = 1; distance < 32; distance <<= 1) {
    u32 before = __shfl_up_sync(~0u, value, distance);
    if (lane >= distance) value += before;
  }
  if (lane == 31) warps[warp] = value;
  __syncthreads();
  for (int w = 0; w < warp; ++w) value += warps[w];
  __syncthreads();
  return value;
}

// A block of 512 threads for each digit: its counts, one a part, become sums of those before; the
// sum of all goes to `totals`. There are at most 512 parts.
KERNEL(order_starts)(i64 parts, u32 *counts, u32 *totals) {
  __shared__ u32 warps[16];
  u32 *own = counts + blockIdx.x * parts;
  u32 count = threadIdx.x < parts ? own[threadIdx.x] : 0;
  u32 sum = summed_up(count, warps);
  if (threadIdx.x < parts) own[threadIdx.x] = sum - count;
  if (threadIdx.x == blockDim.x - 1) totals[blockIdx.x] = sum;
}

// 256 threads a block. Without `positions` an item's position is its place.
template <typename K>
__device__ void order_move(i64 n, i64 length, i32 shift, const K *keys, const u32 *positions, K *keys_out, u32 *positions_out,
                           const u32 *counts, const u32 *totals) {
  // Where the block's next item of each digit goes, and how many each warp has of it.
  __shared__ u32 next[DIGITS];
  __shared__ u32 held[8][DIGITS];
  __shared__ u32 warps[8];
  int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  u32 total = totals[t];
  next[t] = summed_up(total, warps) - total + counts[(i64)t * gridDim.x + blockIdx.x];
  i64 from = blockIdx.x * length, to = min(from + length, n);
  for (i64 tile = from; tile < to; tile += EACH * DIGITS) {
#pragma unroll
    for (int w = 0; w < 8; ++w) held[w][t] = 0;
    __syncthreads();
    K key[EACH];
    u32 position[EACH], rank[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      i64 i = tile + warp * (EACH * 32) + k * 32 + lane;
      bool in = i < to;
      key[k] = in ? keys[i] : 0;
      position[k] = in ? (positions ? positions[i] : (u32)i) : 0;
      u32 digit = in ? digit_of(key[k], shift) : DIGITS;
      u32 peers = __match_any_sync(~0u, digit);
      u32 before = __popc(peers & ((1u << lane) - 1));
      u32 old = in ? held[warp][digit] : 0;
      __syncwarp();
      if (in && before == 0) held[warp][digit] = old + __popc(peers);
      __syncwarp();
      rank[k] = old + before;
    }
    __syncthreads();
    u32 running = next[t];
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      u32 count = held[w][t];
      held[w][t] = running;
      running += count;
    }
    next[t] = running;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
      i64 i = tile + warp * (EACH * 32) + k * 32 + lane;
      if (i < to) {
        u32 place = held[warp][digit_of(key[k], shift)] + rank[k];
        keys_out[place] = key[k];
        positions_out[place] = position[k];
      }
    }
    __syncthreads();
  }
}

#define ORDER(K)                                                                                         \
  KERNEL(order_count_##K)(i64 n, i64 length, i32 shift, const K *keys, u32 *counts) {                    \
    order_count<K>(n, length, shift, keys, counts);                                                      \
  }                                                                                                      \
  KERNEL(order_move_##K)(i64 n, i64 length, i32 shift, const K *keys, const u32 *positions, K *keys_out, \
                                            u32 *positions_out, const u32 *counts, const u32 *totals) {  \
    order_move<K>(n, length, shift, keys, positions, keys_out, positions_out, counts, totals);           \
  }
ORDER(u32)
ORDER(u64)
