// Runs of equal elements: of rows of a contiguous matrix, and the longest one of each sorted line
// (the mode). And the order of rows, compared element by element.

const int THREADS = 256, WARPS = THREADS / 32;

// A contiguous matrix.
struct Rows {
  i64 count, width;
  i32 code;
  const void *x;

  __device__ __forceinline__ u64 key(i64 row, i64 column) const { return key_of(x, row * width + column, code); }

  // Whether a row is another than the one before. A NaN equals nothing.
  __device__ bool starts(i64 row) const {
    if (row >= count) return false;
    u64 nan = code >= F16 ? low_bits(key_bits(code)) : 0;
    bool same = row > 0;
    for (i64 column = 0; same && column < width; ++column) {
      u64 own = key(row, column);
      same = own == key(row - 1, column) && !(code >= F16 && own == nan);
    }
    return !same;
  }

  // Whether row a stands before row b, told by their elements alone.
  __device__ bool below(i64 a, i64 b) const {
    for (i64 column = 0; column < width; ++column) {
      u64 left = key(a, column), right = key(b, column);
      if (left != right) return left < right;
    }
    return false;
  }
};

// How many runs begin among the rows of each block.
KERNEL(runs_count)(i64 count, i64 width, i32 code, const void *x, i64 length, i64 *counts) {
  in_turn();
  __shared__ u32 warps[WARPS];
  Rows rows = {count, width, code, x};
  i64 from = blockIdx.x * length, to = min(from + length, count);
  u32 found = 0;
  for (i64 row = from + threadIdx.x; row < to; row += THREADS) found += rows.starts(row);
  for (int distance = 16; distance > 0; distance >>= 1) found += __shfl_down_sync(~0u, found, distance);
  if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = found;
  __syncthreads();
  if (threadIdx.x == 0) {
    i64 all = 0;
    for (int warp = 0; warp < WARPS; ++warp) all += warps[warp];
    counts[blockIdx.x] = all;
  }
}

// The run of every row, if `ids` is given, and the row that each of `runs` runs begins with:
// `starts` says how many begin before each block's rows.
KERNEL(runs_begin)(i64 count, i64 width, i32 code, const void *x, i64 length, const i64 *starts, i64 runs, i64 *ids,
                                      i64 *begins) {
  in_turn();
  __shared__ u32 warps[WARPS];
  Rows rows = {count, width, code, x};
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  i64 from = blockIdx.x * length, to = min(from + length, count), next = starts[blockIdx.x];
  for (i64 tile = from; tile < to; tile += THREADS) {
    i64 row = tile + threadIdx.x;
    bool begins_here = row < to && rows.starts(row);
    u32 all = __ballot_sync(~0u, begins_here);
    if (lane == 0) warps[warp] = __popc(all);
    __syncthreads();
    i64 run = next + __popc(all & ~0u >> (31 - lane)) - 1;
    for (int w = 0; w < WARPS; ++w) {
      if (w < warp) run += warps[w];
      next += warps[w];
    }
    if (row < to && ids) ids[row] = run;
    // Data that changed since they were counted writes no more.
    if (begins_here && run < runs) begins[run] = row;
    __syncthreads();
  }
}

// The first row of each run, and its length if `lengths` is given.
KERNEL(runs_finish)(i64 count, i64 width, i32 code, const void *x, i64 runs, const i64 *begins, void *first,
                                       i64 *lengths) {
  in_turn();
  for (i64 i = first_index(); i < runs * width; i += all_threads()) {
    i64 run = i / width;
    copy_element(first, i, x, begins[run] * width + (i - run * width), code);
  }
  for (i64 run = first_index(); lengths && run < runs; run += all_threads())
    lengths[run] = (run + 1 < runs ? begins[run + 1] : count) - begins[run];
}

KERNEL(order_start)(i64 count, i64 *order) {
  in_turn();
  for (i64 i = first_index(); i < count; i += all_threads()) order[i] = i;
}

// Merges neighbouring runs of `length` rows that are in order: each row finds by halving how many
// of the other run stand before it. Equal rows stay as they are.
KERNEL(order_merge)(i64 count, i64 width, i32 code, const void *x, i64 length, const i64 *from, i64 *to) {
  in_turn();
  Rows rows = {count, width, code, x};
  for (i64 i = first_index(); i < count; i += all_threads()) {
    i64 start = i / (2 * length) * 2 * length, middle = min(start + length, count), end = min(middle + length, count), own = from[i];
    bool is_left = i < middle;
    i64 other = is_left ? middle : start, low = 0, high = is_left ? end - middle : middle - start;
    while (low < high) {
      i64 half = low + (high - low) / 2, there = from[other + half];
      bool stands_before = is_left ? rows.below(there, own) : !rows.below(own, there);
      if (stands_before) low = half + 1;
      else high = half;
    }
    to[start + (i - (is_left ? start : middle)) + low] = own;
  }
}

// The element that each sorted line has most often, the least of several, and where its last came
// from. A block a line. Operands of `outer`: sorted, places, values, positions.
KERNEL(mode)(i64 lines, i64 length, Strided outer, i64 step, i64 place_step, i32 code, const void *sorted,
                                const i64 *places, void *values, i64 *positions) {
  in_turn();
  __shared__ i64 warps[WARPS], longest_of[WARPS], best_of[WARPS];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (i64 line = blockIdx.x; line < lines; line += gridDim.x) {
    i64 at[4];
    locate<4>(outer, line, at);
    // Where the run of the tile before begins, and the longest run up to one of this thread's
    // elements.
    i64 carried = 0, longest = 0, best = 0;
    for (i64 tile = 0; tile < length; tile += THREADS) {
      i64 i = tile + threadIdx.x;
      bool begins = i > 0 && i < length && key_of(sorted, at[0] + i * step, code) != key_of(sorted, at[0] + (i - 1) * step, code);
      i64 begun = begins ? i : 0;
      for (int distance = 1; distance < 32; distance <<= 1) begun = max(begun, __shfl_up_sync(~0u, begun, distance));
      if (lane == 31) warps[warp] = begun;
      __syncthreads();
      begun = max(begun, carried);
      for (int w = 0; w < WARPS; ++w) {
        if (w < warp) begun = max(begun, warps[w]);
        carried = max(carried, warps[w]);
      }
      if (i < length && i + 1 - begun > longest) longest = i + 1 - begun, best = i;
      __syncthreads();
    }
    // Of equal lengths the first.
    for (int distance = 16; distance > 0; distance >>= 1) {
      i64 other = __shfl_down_sync(~0u, longest, distance), there = __shfl_down_sync(~0u, best, distance);
      if (other > longest || (other == longest && there < best)) longest = other, best = there;
    }
    if (lane == 0) longest_of[warp] = longest, best_of[warp] = best;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int w = 1; w < WARPS; ++w)
        if (longest_of[w] > longest || (longest_of[w] == longest && best_of[w] < best)) longest = longest_of[w], best = best_of[w];
      copy_element(values, at[2], sorted, at[0] + best * step, code);
      positions[at[3]] = places[at[1] + best * place_step];
    }
    __syncthreads();
  }
}
