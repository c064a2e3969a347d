
// Attention of half types by tensor cores, without a mask, for operands whose rows are packed (see
// `Rows`): what attention_halves.cu does for any operands, at the speed that training wants. Rows
// of fewer than D elements are padded with zeros in shared memory. Products add up in f32; weights
// are rounded to the half type between two products. A line after this text names the dtype and D.
//
// A block has one tile of queries or keys, whose rows it keeps (`Kept`), and goes over the other
// side in tiles that are copied to shared memory while it works on those before. No sum depends on
// the order of blocks, so results are the same each time. The gradients of queries and of keys are
// two passes, each of which makes the weights again.

// How far the scores of a row may rise above what they were divided by, as a power of 2, before
// the row's results are made smaller: weights of up to 256 are as exact as those of up to 1.
const f32 SLACK = 8;

// The block's tile and its head. With a causal mask the tiles that see most go first, for all
// heads, so that none of them is left at the end; without, the tiles of a head go together, since
// they read the same, unless there are more heads than a grid has rows.
struct Unit {
  int first;
  u32 head;
};
__device__ __forceinline__ Unit unit_of(i64 heads, int tile, bool causal, bool last_see_most) {
  bool heads_first = causal || heads > 65535;
  u32 turn = heads_first ? blockIdx.y : blockIdx.x, tiles = heads_first ? gridDim.y : gridDim.x;
  return Unit{(int)(last_see_most ? tiles - 1 - turn : turn) * tile, heads_first ? blockIdx.x : blockIdx.y};
}

// The result of WARPS times 16 M queries, and the logarithm of each one's sum.
template <typename T, int D, int M, int WARPS, int KEYS, int STAGES>
__device__ __forceinline__ void forward(const Shape &shape, const Heads &query, const Heads &key, const Heads &value, const Heads &out, f32 *sums) {
  const int own_count = 16 * M, queries = own_count * WARPS, threads = 32 * WARPS, tile_bytes = KEYS * 2 * D;
  const int stage_bytes = 2 * tile_bytes, ring_bytes = STAGES * stage_bytes;
  static_assert(ring_bytes >= queries * 2 * D, "results go out by way of the ring");
  typedef Kept<D, M, WARPS> Own;
  alignas(1024) __shared__ u8 buffer[ring_bytes + Own::bytes];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, keys = (int)shape.keys;
  bool causal = shape.causal != 0;
  Unit unit = unit_of(shape.heads, queries, causal, true);
  // The end of the rows of those who multiply together.
  int own = unit.first + warp * own_count, last = unit.first + (warp / TOGETHER + 1) * TOGETHER * own_count;
  int seen = causal && unit.first + queries < keys ? unit.first + queries : keys;
  u32 key_head = shape.group == 1 ? unit.head : unit.head / (u32)shape.group;
  Rows of_keys = rows_of(key, key_head, shape.keys, shape.width), of_values = rows_of(value, key_head, shape.keys, shape.values);
  u32 ring = shared_address(buffer);
  Own rows;
  rows.bring(ring + ring_bytes, rows_of(query, unit.head, shape.queries, shape.width), unit.first);
#pragma unroll
  for (int i = 0; i < STAGES - 1; ++i) {
    fetch<D, KEYS, threads>(ring + i * stage_bytes, of_keys, i * KEYS);
    fetch<D, KEYS, threads>(ring + i * stage_bytes + tile_bytes, of_values, i * KEYS);
    fetched_so_far();
  }
  f32 results[M][D / 8][4], tops[M][2], totals[M][2], scale = (f32)shape.scale * LOG2_E;
  clear(results);
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) tops[m][half] = lowest<f32>(), totals[m][half] = 0;
  u32 at_key = right_place<D>(false), at_value = right_place<D>(true) + tile_bytes;
  int stage = 0;
  for (int at = 0; at < seen; at += KEYS) {
    wait_for_all_but<STAGES - 2>();
    show_copies();
    __syncthreads();
    const int ahead = (STAGES - 1) * KEYS;
    if (at + ahead < seen) {
      u32 next = ring + (stage == 0 ? STAGES - 1 : stage - 1) * stage_bytes;
      fetch<D, KEYS, threads>(next, of_keys, at + ahead);
      fetch<D, KEYS, threads>(next + tile_bytes, of_values, at + ahead);
    }
    fetched_so_far();
    u32 tile = uniform(ring + stage * stage_bytes);
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    if (!causal || at < last) {
      f32 weights[M][KEYS / 8][4];
      begin_products();
      row_products<T, D, true>(weights, rows, tile + at_key);
      finish_products_but<0>();
      if ((causal && at + KEYS > own + 1) || at + KEYS > keys) hide(weights, causal, keys, own, at);
      f32 highest[M][2];
      bool rises = false;
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          f32 top = lowest<f32>();
#pragma unroll
          for (int n = 0; n < KEYS / 8; ++n) top = fmaxf(top, fmaxf(weights[m][n][2 * half], weights[m][n][2 * half + 1]));
          top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
          top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
          highest[m][half] = top * scale;
          rises |= highest[m][half] > tops[m][half] + SLACK;
        }
      if (__any_sync(~0u, rises)) {
#pragma unroll
        for (int m = 0; m < M; ++m)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            f32 top = fmaxf(tops[m][half], highest[m][half]);
            f32 shrink = top == lowest<f32>() ? 1.0f : power_of_two(tops[m][half] - top);
            tops[m][half] = top;
            totals[m][half] *= shrink;
#pragma unroll
            for (int n = 0; n < D / 8; ++n) {
              results[m][n][2 * half] *= shrink;
              results[m][n][2 * half + 1] *= shrink;
            }
          }
      }
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          f32 top = tops[m][half] == lowest<f32>() ? 0.0f : tops[m][half];
#pragma unroll
          for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              f32 &weight = weights[m][n][2 * half + i];
              weight = power_of_two(weight * scale - top);
              totals[m][half] += weight;
            }
        }
      weigh<T, D>(results, weights, tile + at_value);
      finish_products_but<0>();
    }
  }
  f32 by[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      f32 total = totals[m][half];
      total += __shfl_xor_sync(~0u, total, 1);
      total += __shfl_xor_sync(~0u, total, 2);
      // A query that sees nothing gets nothing.
      by[m][half] = total == 0 ? 0.0f : reciprocal(total);
      int row = own + m * 16 + half * 8 + lane / 4;
      if (sums && lane % 4 == 0 && row < shape.queries)
        sums[unit.head * shape.queries + row] = tops[m][half] * LN_2 + logf(total);
    }
  // Copies of tiles that do not exist may be on their way.
  wait_for_all_but<0>();
  __syncthreads();
  put_rows<T, D, M>(results, by, buffer + warp * own_count * 2 * D, rows_of(out, unit.head, shape.queries, shape.values), own);
}

// The logarithm of a query's sum in units of the logarithm of 2: a query that sees nothing has no
// weights, nor has one past the end.
__device__ __forceinline__ f32 sum_of(const f32 *sums, int row, int count) {
  f32 sum = row < count ? sums[row] : lowest<f32>();
  return sum == lowest<f32>() ? infinite() : sum * LOG2_E;
}

// The products of two words' low halves and of their high halves, added up.
__device__ __forceinline__ f32 word_product(bf16, u32 a, u32 b) {
  return __uint_as_float(a << 16) * __uint_as_float(b << 16) + __uint_as_float(a & 0xffff0000u) * __uint_as_float(b & 0xffff0000u);
}
__device__ __forceinline__ f32 word_product(f16, u32 a, u32 b) {
  return load(f16{(u16)a}) * load(f16{(u16)b}) + load(f16{(u16)(a >> 16)}) * load(f16{(u16)(b >> 16)});
}

// The gradients of WARPS times 16 M queries, in tiles of KEYS and parts of PART of them. On the way
// it writes the product of each row's result and gradient, which the gradients of keys need.
template <typename T, int D, int M, int WARPS, int KEYS, int PART, int STAGES>
__device__ __forceinline__ void backward_queries(const Shape &shape, const Heads &query, const Heads &key, const Heads &value, const Heads &result,
                                                 const Heads &grad, const f32 *sums, f32 *along, const Heads &to_query) {
  const int own_count = 16 * M, queries = own_count * WARPS, threads = 32 * WARPS, tile_bytes = KEYS * 2 * D;
  const int stage_bytes = 2 * tile_bytes, ring_bytes = STAGES * stage_bytes;
  static_assert(ring_bytes >= queries * 2 * D, "results go out by way of the ring");
  typedef Kept<D, M, WARPS> Own;
  alignas(1024) __shared__ u8 buffer[ring_bytes + 2 * Own::bytes];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, keys = (int)shape.keys;
  bool causal = shape.causal != 0;
  Unit unit = unit_of(shape.heads, queries, causal, true);
  // The end of the rows of those who multiply together.
  int own = unit.first + warp * own_count, last = unit.first + (warp / TOGETHER + 1) * TOGETHER * own_count;
  int seen = causal && unit.first + queries < keys ? unit.first + queries : keys;
  u32 key_head = shape.group == 1 ? unit.head : unit.head / (u32)shape.group;
  Rows of_keys = rows_of(key, key_head, shape.keys, shape.width), of_values = rows_of(value, key_head, shape.keys, shape.values);
  u32 ring = shared_address(buffer);
  Own rows, grads;
  Rows of_results = rows_of(result, unit.head, shape.queries, shape.values), of_grads = rows_of(grad, unit.head, shape.queries, shape.values);
  rows.bring(ring + ring_bytes, rows_of(query, unit.head, shape.queries, shape.width), unit.first);
  grads.bring(ring + ring_bytes + Own::bytes, of_grads, unit.first);
#pragma unroll
  for (int i = 0; i < STAGES - 1; ++i) {
    fetch<D, KEYS, threads>(ring + i * stage_bytes, of_keys, i * KEYS);
    fetch<D, KEYS, threads>(ring + i * stage_bytes + tile_bytes, of_values, i * KEYS);
    fetched_so_far();
  }
  f32 logarithms[M][2], products[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = own + m * 16 + half * 8 + lane / 4;
      f32 product = 0;
#pragma unroll
      for (int k = 0; k < D; k += 8) product += word_product(T(), word(of_results, row, k + lane % 4 * 2), word(of_grads, row, k + lane % 4 * 2));
      product += __shfl_xor_sync(~0u, product, 1);
      product += __shfl_xor_sync(~0u, product, 2);
      if (lane % 4 == 0 && row < shape.queries) along[unit.head * shape.queries + row] = product;
      products[m][half] = product;
      logarithms[m][half] = sum_of(sums + unit.head * shape.queries, row, (int)shape.queries);
    }
  f32 results[M][D / 8][4], scale = (f32)shape.scale * LOG2_E;
  clear(results);
  u32 at_key = right_place<D>(false), at_turned = right_place<D>(true);
  int stage = 0;
  for (int at = 0; at < seen; at += KEYS) {
    wait_for_all_but<STAGES - 2>();
    show_copies();
    __syncthreads();
    const int ahead = (STAGES - 1) * KEYS;
    if (at + ahead < seen) {
      u32 next = ring + (stage == 0 ? STAGES - 1 : stage - 1) * stage_bytes;
      fetch<D, KEYS, threads>(next, of_keys, at + ahead);
      fetch<D, KEYS, threads>(next + tile_bytes, of_values, at + ahead);
    }
    fetched_so_far();
    u32 tile = uniform(ring + stage * stage_bytes);
    stage = stage + 1 == STAGES ? 0 : stage + 1;
#pragma unroll
    for (int part = 0; part < KEYS; part += PART) {
      int first = at + part;
      u32 from = tile + part * 2 * D;
      if (causal && first >= last) break;
      f32 weights[M][PART / 8][4], slopes[M][PART / 8][4];
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int n = 0; n < PART / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) slopes[m][n][i] = -products[m][i / 2];
      settle(slopes);
      begin_products();
      row_products<T, D, true>(weights, rows, from + at_key);
      row_products<T, D, false>(slopes, grads, from + tile_bytes + at_key);
      finish_products_but<1>();
      if ((causal && first + PART > own + 1) || first + PART > keys) hide(weights, causal, keys, own, first);
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int n = 0; n < PART / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) weights[m][n][i] = power_of_two(weights[m][n][i] * scale - logarithms[m][i / 2]);
      finish_products_but<0>();
      scale_by(slopes, weights);
      weigh<T, D>(results, slopes, from + at_turned);
      finish_products_but<0>();
    }
  }
  f32 by[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m) by[m][0] = by[m][1] = (f32)shape.scale;
  wait_for_all_but<0>();
  __syncthreads();
  put_rows<T, D, M>(results, by, buffer + warp * own_count * 2 * D, rows_of(to_query, unit.head, shape.queries, shape.width), own);
}

// The gradients of WARPS times 16 M keys and values, in tiles of QUERIES and parts of PART of them.
// Tiles lie turned here, a row a key.
template <typename T, int D, int M, int WARPS, int QUERIES, int PART, int STAGES>
__device__ __forceinline__ void backward_keys(const Shape &shape, const Heads &query, const Heads &key, const Heads &value, const Heads &grad,
                                              const f32 *sums, const f32 *along, const Heads &to_key, const Heads &to_value) {
  const int own_count = 16 * M, keys = own_count * WARPS, threads = 32 * WARPS, tile_bytes = QUERIES * 2 * D;
  const int stage_bytes = 2 * tile_bytes, ring_bytes = STAGES * stage_bytes;
  static_assert(ring_bytes >= keys * 2 * D, "results go out by way of the ring");
  static_assert(threads >= 2 * QUERIES, "a thread for each number of a query");
  typedef Kept<D, M, WARPS> Own;
  // As many bytes as the launch says: in a group of warps more than a block has without asking.
  extern __shared__ u8 dynamic[];
  u8 *buffer = dynamic + (1024 - shared_address(dynamic) % 1024) % 1024;
  // Of each query the logarithm of its sum, then minus the product of its result and gradient.
  __shared__ f32 numbers[STAGES][2 * QUERIES];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, count = (int)shape.queries;
  u32 sharing = (u32)shape.group;
  bool causal = shape.causal != 0;
  Unit unit = unit_of(sharing == 1 ? shape.heads : (u32)shape.heads / sharing, keys, causal, false);
  // The first row of those who multiply together.
  int own = unit.first + warp * own_count, group = unit.first + warp / TOGETHER * TOGETHER * own_count;
  int begin = causal ? unit.first : 0;
  u32 head = unit.head * sharing, last_head = head + sharing;
  u32 ring = shared_address(buffer), after = ring + ring_bytes;
  Own key_rows, value_rows;
  key_rows.bring(after, rows_of(key, unit.head, shape.keys, shape.width), unit.first);
  value_rows.bring(after + Own::bytes, rows_of(value, unit.head, shape.keys, shape.values), unit.first);
  Rows of_queries, of_grads;
  f32 number = 0;
  // Starts the way of the next tile of queries, of the first head first.
  u32 next_head = head;
  int next_at = begin;
  auto start = [&](int stage) {
    if (next_head < last_head) {
      if (next_at == begin) {
        of_queries = rows_of(query, next_head, shape.queries, shape.width);
        of_grads = rows_of(grad, next_head, shape.queries, shape.values);
      }
      fetch<D, QUERIES, threads>(ring + stage * stage_bytes, of_queries, next_at);
      fetch<D, QUERIES, threads>(ring + stage * stage_bytes + tile_bytes, of_grads, next_at);
      int row = next_at + threadIdx.x % QUERIES;
      if (threadIdx.x < QUERIES) number = sum_of(sums + next_head * shape.queries, row, count);
      else if (threadIdx.x < 2 * QUERIES) number = row < count ? -along[next_head * shape.queries + row] : 0.0f;
      next_at += QUERIES;
      if (next_at >= count) next_at = begin, ++next_head;
    }
    fetched_so_far();
  };
  auto keep_number = [&](int stage) {
    if (threadIdx.x < 2 * QUERIES) numbers[stage][threadIdx.x] = number;
  };
  if (begin >= count) last_head = head;
#pragma unroll
  for (int i = 0; i < STAGES - 1; ++i) {
    start(i);
    keep_number(i);
  }
  f32 of_key[M][D / 8][4], of_value[M][D / 8][4], scale = (f32)shape.scale * LOG2_E;
  clear(of_key);
  clear(of_value);
  u32 at_row = right_place<D>(false), at_turned = right_place<D>(true);
  int stage = 0, at = begin;
  while (head < last_head) {
    wait_for_all_but<STAGES - 2>();
    show_copies();
    __syncthreads();
    int free = stage == 0 ? STAGES - 1 : stage - 1;
    start(free);
    u32 tile = uniform(ring + stage * stage_bytes);
#pragma unroll 1
    for (int part = 0; part < QUERIES; part += PART) {
      int first = at + part;
      u32 from = tile + part * 2 * D;
      if (causal && first + PART <= group) continue;
      f32 weights[M][PART / 8][4], slopes[M][PART / 8][4];
      const f32 *logarithms = numbers[stage] + part + lane % 4 * 2, *products = logarithms + QUERIES;
#pragma unroll
      for (int n = 0; n < PART / 8; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          f32 product = products[n * 8 + i];
#pragma unroll
          for (int m = 0; m < M; ++m) slopes[m][n][i] = slopes[m][n][2 + i] = product;
        }
      settle(slopes);
      begin_products();
      row_products<T, D, true>(weights, key_rows, from + at_row);
      row_products<T, D, false>(slopes, value_rows, from + tile_bytes + at_row);
      finish_products_but<1>();
      // Keys past the end have rows of zeros and are not written; queries past the end have no
      // weights.
      if (causal && first < own + own_count - 1) {
#pragma unroll
        for (int m = 0; m < M; ++m)
#pragma unroll
          for (int n = 0; n < PART / 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i)
              if (first + n * 8 + lane % 4 * 2 + i % 2 < own + m * 16 + i / 2 * 8 + lane / 4) weights[m][n][i] = lowest<f32>();
      }
#pragma unroll
      for (int n = 0; n < PART / 8; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          f32 logarithm = logarithms[n * 8 + i];
#pragma unroll
          for (int m = 0; m < M; ++m)
#pragma unroll
            for (int half = 0; half < 4; half += 2) {
              f32 &weight = weights[m][n][half + i];
              weight = power_of_two(weight * scale - logarithm);
            }
        }
      // A group of warps begins one product while the other is made; a warp alone saves registers.
      if (TOGETHER == 1) scale_by(slopes, weights);
      weigh<T, D>(of_value, weights, from + tile_bytes + at_turned);
      finish_products_but<1>();
      if (TOGETHER > 1) scale_by(slopes, weights);
      weigh<T, D>(of_key, slopes, from + at_turned);
      finish_products_but<0>();
    }
    keep_number(free);
    stage = stage + 1 == STAGES ? 0 : stage + 1;
    at += QUERIES;
    if (at >= count) at = begin, ++head;
  }
  f32 by[M][2], one[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m) by[m][0] = by[m][1] = (f32)shape.scale, one[m][0] = one[m][1] = 1;
  __syncthreads();
  u8 *part = buffer + warp * own_count * 2 * D;
  put_rows<T, D, M>(of_key, by, part, rows_of(to_key, unit.head, shape.keys, shape.width), own);
  put_rows<T, D, M>(of_value, one, part, rows_of(to_value, unit.head, shape.keys, shape.values), own);
}

#define ATTENTION(type, D)                                                                                                                   \
  KERNEL_BY(128, Tiling<D>::forward_blocks, attention_packed_##type##_##D)(Shape shape, Heads query, Heads key, Heads value, Heads out,      \
                                                                           f32 *sums) {                                                      \
    in_turn();                                                                                                                               \
    typedef Tiling<D> By;                                                                                                                    \
    forward<type, D, By::forward_own, 4, By::forward_keys, 2>(shape, query, key, value, out, sums);                                          \
  }                                                                                                                                          \
  KERNEL_BY(128, Tiling<D>::queries_blocks, attention_packed_queries_##type##_##D)(Shape shape, Heads query, Heads key, Heads value,         \
                                                                                   Heads result, Heads grad, const f32 *sums, f32 *along,    \
                                                                                   Heads to_query) {                                         \
    in_turn();                                                                                                                               \
    typedef Tiling<D> By;                                                                                                                    \
    backward_queries<type, D, By::queries_own, 4, By::queries_keys, By::queries_part, 2>(shape, query, key, value, result, grad, sums,       \
                                                                                        along, to_query);                                    \
  }                                                                                                                                          \
  KERNEL_BY(128, Tiling<D>::keys_blocks, attention_packed_keys_##type##_##D)(Shape shape, Heads query, Heads key, Heads value, Heads grad,   \
                                                                             const f32 *sums, const f32 *along, Heads to_key,                \
                                                                             Heads to_value) {                                               \
    in_turn();                                                                                                                               \
    typedef Tiling<D> By;                                                                                                                    \
    backward_keys<type, D, By::keys_own, 4, By::keys_queries, By::keys_part, 2>(shape, query, key, value, grad, sums, along, to_key,         \
                                                                               to_value);                                                    \
  }
