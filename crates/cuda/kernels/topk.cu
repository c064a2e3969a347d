// The k least pairs of (key, position) of each line, or of its parts, in order: the digits of the
// k-th key are found one after the other from the top by counting, then what is below it is
// collected, and the first of those that equal it. A block a part. The pairs of parts are
// candidates, from which a second run finds those of the line.

const int PLACES = 256, THREADS = 256, WARPS = THREADS / 32, MOST = 1024;

// Where a run reads: elements of x, or candidates of a first run, in the order of their positions
// where keys are equal.
struct Source {
  const void *x;
  i64 start, step;
  i32 code;
  bool descending;
  const u64 *keys;
  const u32 *positions;

  __device__ __forceinline__ u64 key(i64 i) const {
    return keys ? keys[start + i] : directed(key_of(x, start + i * step, code), code, descending);
  }
  __device__ __forceinline__ u32 position(i64 i) const { return keys ? positions[start + i] : (u32)i; }
};

// The sum of what threads before this one have; `all` is that of every thread.
__device__ u32 block_exclusive(u32 own, u32 &all) {
  __shared__ u32 warps[WARPS];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  u32 sum = own;
#pragma unroll
  for (int distance = 1; distance < 32; distance <<= 1) {
    u32 before = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += before;
  }
  __syncthreads();
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  u32 before = sum - own;
  all = 0;
#pragma unroll
  for (int w = 0; w < WARPS; ++w) {
    if (w < warp) before += warps[w];
    all += warps[w];
  }
  return before;
}

// What is known of the k-th key: keys that are below `prefix` under `mask` are in, and `equal` of
// those that are it.
struct Bound {
  u64 prefix, mask;
  u32 equal;
};

__device__ Bound find_bound(const Source &source, i64 from, i64 to, u32 k) {
  __shared__ u32 found[PLACES];
  __shared__ u32 chosen, below, inside;
  Bound bound = {0, 0, k};
  for (i32 shift = key_bits(source.code) - 8; shift >= 0; shift -= 8) {
    found[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll 4
    for (i64 i = from + threadIdx.x; i < to; i += THREADS) {
      u64 key = source.key(i);
      if ((key & bound.mask) == bound.prefix) atomicAdd(&found[(u32)(key >> shift) & (PLACES - 1)], 1u);
    }
    __syncthreads();
    u32 own = found[threadIdx.x], all, before = block_exclusive(own, all);
    if (before < bound.equal && bound.equal <= before + own) chosen = threadIdx.x, below = before, inside = own;
    __syncthreads();
    bound.prefix |= (u64)chosen << shift;
    bound.mask |= (u64)(PLACES - 1) << shift;
    bound.equal -= below;
    // All that have these digits are in: the others need not be told apart.
    bool decided = inside == bound.equal;
    __syncthreads();
    if (decided) break;
  }
  return bound;
}

// Brings the pairs that are in to shared memory, in order. The first of those on the bound are
// told by their rank; where the others land does not matter, since all are sorted.
__device__ void collect(const Source &source, i64 from, i64 to, Bound bound, u32 k, int room, u64 *keys, u32 *positions) {
  __shared__ u32 filled;
  for (int i = threadIdx.x; i < room; i += THREADS) keys[i] = ~0ull, positions[i] = ~0u;
  if (threadIdx.x == 0) filled = 0;
  __syncthreads();
  u32 seen = 0;
  for (i64 tile = from; tile < to; tile += THREADS) {
    i64 i = tile + threadIdx.x;
    u64 key = i < to ? source.key(i) : 0;
    bool is_in = i < to && (key & bound.mask) < bound.prefix;
    bool on_bound = i < to && (key & bound.mask) == bound.prefix;
    if (__syncthreads_or(on_bound && seen < bound.equal)) {
      u32 all, rank = seen + block_exclusive(on_bound, all);
      is_in = is_in || (on_bound && rank < bound.equal);
      seen += all;
    }
    if (is_in) {
      u32 slot = atomicAdd(&filled, 1u);
      keys[slot] = key;
      positions[slot] = source.position(i);
    }
  }
  __syncthreads();
  sort_pairs(keys, positions, room);
}

// Operands of `outer`: x, values, indices. Lines have `parts` parts of `span` elements, or as many
// candidates of a first run. Results are candidates for another run if `keys_out` is given.
KERNEL_BY(THREADS, 4, topk)(i64 lines, i64 length, i64 parts, i64 span, Strided outer, i64 x_step, i64 value_step, i64 index_step, i32 k,
                            i32 room, i32 descending, i32 code, const void *x, const u64 *keys_in, const u32 *positions_in, u64 *keys_out,
                            u32 *positions_out, void *values, i64 *indices) {
  in_turn();
  __shared__ u64 keys[MOST];
  __shared__ u32 positions[MOST];
  for (i64 job = blockIdx.x; job < lines * parts; job += gridDim.x) {
    i64 line = job / parts, part = job - line * parts, at[3];
    locate<3>(outer, line, at);
    Source source = {x, keys_in ? line * length : at[0], x_step, code, descending != 0, keys_in, positions_in};
    i64 from = part * span, to = min(from + span, length);
    // A last part may be shorter than k.
    u32 wanted = (u32)min((i64)k, to - from);
    Bound bound = find_bound(source, from, to, wanted);
    collect(source, from, to, bound, wanted, room, keys, positions);
    for (int i = threadIdx.x; i < k; i += THREADS) {
      if (keys_out) {
        keys_out[job * k + i] = keys[i];
        positions_out[job * k + i] = positions[i];
      } else {
        i64 position = positions[i];
        copy_element(values, at[1] + i * value_step, x, at[0] + position * x_step, code);
        indices[at[2] + i * index_step] = position;
      }
    }
    __syncthreads();
  }
}
