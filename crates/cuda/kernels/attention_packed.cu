
// Attention of half types by tensor cores, without a mask, for operands whose rows are packed (see
// `Rows`): what attention_halves.cu does for any operands, at the speed that training wants. Rows
// of fewer than D elements are padded with zeros in shared memory. Products add up in f32; weights
// are rounded to the half type between two products. A line after this text names the dtype and D.
//
// A block has one tile of queries or keys, whose rows its warps keep in registers, and goes over
// the other side in tiles that are copied to shared memory while it works on those before. No sum
// depends on the order of blocks, so results are the same each time.

// How far the scores of a row may rise above what they were divided by, as a power of 2, before
// the row's results are made smaller: weights of up to 256 are as exact as those of up to 1.
const f32 SLACK = 8;

// The block's tile and its head. With a causal mask the tiles that see most go first, so that none
// of them is left at the end; without, the tiles of a head go together, since they read the same.
struct Unit {
  int first;
  u32 head;
};
__device__ __forceinline__ Unit unit_of(u32 heads, int tile, bool causal, bool last_see_most) {
  u32 tiles = gridDim.x / heads, turn = causal ? blockIdx.x / heads : blockIdx.x % tiles;
  u32 head = causal ? blockIdx.x % heads : blockIdx.x / tiles;
  return Unit{(int)(last_see_most ? tiles - 1 - turn : turn) * tile, head};
}

// The result of WARPS times 16 M queries, and the logarithm of each one's sum.
template <typename T, int D, int M, int WARPS, int KEYS>
__device__ __forceinline__ void forward(const Shape &shape, const Heads &query, const Heads &key, const Heads &value, const Heads &out, f32 *sums) {
  const int own_count = 16 * M, queries = own_count * WARPS, threads = 32 * WARPS, tile_bytes = KEYS * 2 * D;
  const int all_bytes = 4 * tile_bytes > queries * 2 * D ? 4 * tile_bytes : queries * 2 * D;
  alignas(256) __shared__ u8 buffer[all_bytes];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, keys = (int)shape.keys;
  bool causal = shape.causal != 0;
  Unit unit = unit_of((u32)shape.heads, queries, causal, true);
  int own = unit.first + warp * own_count, seen = causal && unit.first + queries < keys ? unit.first + queries : keys;
  u32 key_head = unit.head / (u32)shape.group;
  Rows of_keys = rows_of(key, key_head, shape.keys, shape.width), of_values = rows_of(value, key_head, shape.keys, shape.values);
  u32 tile = shared_address(buffer), next = tile + 2 * tile_bytes;
  fetch<D, KEYS, threads>(tile, of_keys, 0);
  fetch<D, KEYS, threads>(tile + tile_bytes, of_values, 0);
  fetched_so_far();
  u32 rows[M][D / 16][4];
  own_rows<D, M>(rows, rows_of(query, unit.head, shape.queries, shape.width), own);
  f32 results[M][D / 8][4], tops[M][2], totals[M][2], scale = (f32)shape.scale * LOG2_E;
  clear(results);
#pragma unroll
  for (int m = 0; m < M; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) tops[m][half] = lowest<f32>(), totals[m][half] = 0;
  u32 at_key = right_place<D>(false), at_value = right_place<D>(true) + tile_bytes;
  for (int at = 0; at < seen; at += KEYS) {
    wait_for_all();
    __syncthreads();
    if (at + KEYS < seen) {
      fetch<D, KEYS, threads>(next, of_keys, at + KEYS);
      fetch<D, KEYS, threads>(next + tile_bytes, of_values, at + KEYS);
      fetched_so_far();
    }
    if (!causal || at < own + own_count) {
      f32 weights[M][KEYS / 8][4];
      clear(weights);
      row_products<T, D>(weights, rows, tile + at_key);
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
    }
    u32 last = tile;
    tile = next;
    next = last;
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
      by[m][half] = total == 0 ? 0.0f : 1 / total;
      int row = own + m * 16 + half * 8 + lane / 4;
      if (sums && lane % 4 == 0 && row < shape.queries)
        sums[unit.head * shape.queries + row] = tops[m][half] * LN_2 + logf(total);
    }
  // Without keys the first copy is still on its way.
  wait_for_all();
  __syncthreads();
  put_rows<T, D, M>(results, by, buffer + warp * own_count * 2 * D, rows_of(out, unit.head, shape.queries, shape.values), own);
}

// The logarithm of a query's sum in units of the logarithm of 2: a query that sees nothing has no
// weights, nor has one past the end.
__device__ __forceinline__ f32 sum_of(const f32 *sums, int row, int count) {
  f32 sum = row < count ? sums[row] : lowest<f32>();
  return sum == lowest<f32>() ? infinite() : sum * LOG2_E;
}

// The product of two numbers each in two words of half types, added up.
__device__ __forceinline__ f32 word_product(bf16, u32 a, u32 b) {
  return __uint_as_float(a << 16) * __uint_as_float(b << 16) + __uint_as_float(a & 0xffff0000u) * __uint_as_float(b & 0xffff0000u);
}
__device__ __forceinline__ f32 word_product(f16, u32 a, u32 b) {
  return load(f16{(u16)a}) * load(f16{(u16)b}) + load(f16{(u16)(a >> 16)}) * load(f16{(u16)(b >> 16)});
}

// The gradients of WARPS times 16 M queries, in tiles of KEYS and parts of PART of them. On the way
// it writes the product of each row's result and gradient, which the gradients of keys need.
template <typename T, int D, int M, int WARPS, int KEYS, int PART>
__device__ __forceinline__ void backward_queries(const Shape &shape, const Heads &query, const Heads &key, const Heads &value, const Heads &result,
                                                 const Heads &grad, const f32 *sums, f32 *along, const Heads &to_query) {
  const int own_count = 16 * M, queries = own_count * WARPS, threads = 32 * WARPS, tile_bytes = KEYS * 2 * D;
  const int all_bytes = 4 * tile_bytes > queries * 2 * D ? 4 * tile_bytes : queries * 2 * D;
  alignas(256) __shared__ u8 buffer[all_bytes];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, keys = (int)shape.keys;
  bool causal = shape.causal != 0;
  Unit unit = unit_of((u32)shape.heads, queries, causal, true);
  int own = unit.first + warp * own_count, seen = causal && unit.first + queries < keys ? unit.first + queries : keys;
  u32 key_head = unit.head / (u32)shape.group;
  Rows of_keys = rows_of(key, key_head, shape.keys, shape.width), of_values = rows_of(value, key_head, shape.keys, shape.values);
  u32 tile = shared_address(buffer), next = tile + 2 * tile_bytes;
  fetch<D, KEYS, threads>(tile, of_keys, 0);
  fetch<D, KEYS, threads>(tile + tile_bytes, of_values, 0);
  fetched_so_far();
  u32 rows[M][D / 16][4], grads[M][D / 16][4];
  own_rows<D, M>(grads, rows_of(grad, unit.head, shape.queries, shape.values), own);
  f32 logarithms[M][2], products[M][2];
  {
    own_rows<D, M>(rows, rows_of(result, unit.head, shape.queries, shape.values), own);
    const f32 *head_sums = sums + unit.head * shape.queries;
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        f32 product = 0;
#pragma unroll
        for (int k = 0; k < D / 16; ++k) {
          product += word_product(T(), rows[m][k][half], grads[m][k][half]);
          product += word_product(T(), rows[m][k][half + 2], grads[m][k][half + 2]);
        }
        product += __shfl_xor_sync(~0u, product, 1);
        product += __shfl_xor_sync(~0u, product, 2);
        int row = own + m * 16 + half * 8 + lane / 4;
        if (lane % 4 == 0 && row < shape.queries) along[unit.head * shape.queries + row] = product;
        products[m][half] = product;
        logarithms[m][half] = sum_of(head_sums, row, (int)shape.queries);
      }
  }
  own_rows<D, M>(rows, rows_of(query, unit.head, shape.queries, shape.width), own);
  f32 results[M][D / 8][4], scale = (f32)shape.scale * LOG2_E;
  clear(results);
  u32 at_key = right_place<D>(false), at_turned = right_place<D>(true);
  for (int at = 0; at < seen; at += KEYS) {
    wait_for_all();
    __syncthreads();
    if (at + KEYS < seen) {
      fetch<D, KEYS, threads>(next, of_keys, at + KEYS);
      fetch<D, KEYS, threads>(next + tile_bytes, of_values, at + KEYS);
      fetched_so_far();
    }
#pragma unroll
    for (int part = 0; part < KEYS; part += PART) {
      int first = at + part;
      u32 from = tile + part * 2 * D;
      if (causal && first >= own + own_count) break;
      f32 weights[M][PART / 8][4], slopes[M][PART / 8][4];
      clear(weights);
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int n = 0; n < PART / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) slopes[m][n][i] = -products[m][i / 2];
      row_products<T, D>(weights, rows, from + at_key);
      row_products<T, D>(slopes, grads, from + tile_bytes + at_key);
      if ((causal && first + PART > own + 1) || first + PART > keys) hide(weights, causal, keys, own, first);
#pragma unroll
      for (int m = 0; m < M; ++m)
#pragma unroll
        for (int n = 0; n < PART / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) slopes[m][n][i] *= power_of_two(weights[m][n][i] * scale - logarithms[m][i / 2]);
      weigh<T, D>(results, slopes, from + at_turned);
    }
    u32 last = tile;
    tile = next;
    next = last;
  }
  f32 by[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m) by[m][0] = by[m][1] = (f32)shape.scale;
  wait_for_all();
  __syncthreads();
  put_rows<T, D, M>(results, by, buffer + warp * own_count * 2 * D, rows_of(to_query, unit.head, shape.queries, shape.width), own);
}

// The gradients of WARPS times 16 M keys and values, in tiles of QUERIES and parts of PART of them.
// Tiles lie turned here, a row a key.
template <typename T, int D, int M, int WARPS, int QUERIES, int PART>
__device__ __forceinline__ void backward_keys(const Shape &shape, const Heads &query, const Heads &key, const Heads &value, const Heads &grad,
                                              const f32 *sums, const f32 *along, const Heads &to_key, const Heads &to_value) {
  const int own_count = 16 * M, keys = own_count * WARPS, threads = 32 * WARPS, tile_bytes = QUERIES * 2 * D;
  const int all_bytes = 4 * tile_bytes > keys * 2 * D ? 4 * tile_bytes : keys * 2 * D;
  static_assert(threads >= 2 * QUERIES, "a thread for each number of a query");
  alignas(256) __shared__ u8 buffer[all_bytes];
  // Of each query the logarithm of its sum, then the product of its result and gradient.
  __shared__ f32 numbers[2][2 * QUERIES];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, count = (int)shape.queries;
  u32 group = (u32)shape.group;
  bool causal = shape.causal != 0;
  Unit unit = unit_of((u32)shape.heads / group, keys, causal, false);
  int own = unit.first + warp * own_count, begin = causal ? unit.first : 0;
  u32 head = unit.head * group, last_head = head + group;
  u32 tile = shared_address(buffer), next = tile + 2 * tile_bytes;
  int stage = 0;
  Rows of_queries, of_grads;
  f32 number = 0;
  // Starts the way of a tile of queries of a head.
  auto start = [&](u32 to, u32 head, int at) {
    if (at == begin) {
      of_queries = rows_of(query, head, shape.queries, shape.width);
      of_grads = rows_of(grad, head, shape.queries, shape.values);
    }
    fetch<D, QUERIES, threads>(to, of_queries, at);
    fetch<D, QUERIES, threads>(to + tile_bytes, of_grads, at);
    fetched_so_far();
    int place = threadIdx.x % QUERIES;
    if (threadIdx.x < QUERIES) number = sum_of(sums + head * shape.queries, at + place, count);
    else if (threadIdx.x < 2 * QUERIES) number = at + place < count ? along[head * shape.queries + at + place] : 0.0f;
  };
  bool any = begin < count;
  if (any) {
    start(tile, head, begin);
    if (threadIdx.x < 2 * QUERIES) numbers[0][threadIdx.x] = number;
  }
  u32 key_rows[M][D / 16][4], value_rows[M][D / 16][4];
  own_rows<D, M>(key_rows, rows_of(key, unit.head, shape.keys, shape.width), own);
  own_rows<D, M>(value_rows, rows_of(value, unit.head, shape.keys, shape.values), own);
  f32 of_key[M][D / 8][4], of_value[M][D / 8][4], scale = (f32)shape.scale * LOG2_E;
  clear(of_key);
  clear(of_value);
  u32 at_row = right_place<D>(false), at_turned = right_place<D>(true);
  int at = begin;
  while (any) {
    wait_for_all();
    __syncthreads();
    int next_at = at + QUERIES;
    u32 next_head = head;
    if (next_at >= count) next_at = begin, ++next_head;
    any = next_head < last_head;
    if (any) start(next, next_head, next_at);
#pragma unroll 1
    for (int part = 0; part < QUERIES; part += PART) {
      int first = at + part;
      u32 from = tile + part * 2 * D;
      if (causal && first + PART <= own) continue;
      f32 weights[M][PART / 8][4], slopes[M][PART / 8][4];
      const f32 *logarithms = numbers[stage] + part + lane % 4 * 2, *products = logarithms + QUERIES;
      clear(weights);
#pragma unroll
      for (int n = 0; n < PART / 8; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          f32 product = products[n * 8 + i];
#pragma unroll
          for (int m = 0; m < M; ++m) slopes[m][n][i] = slopes[m][n][2 + i] = -product;
        }
      row_products<T, D>(weights, key_rows, from + at_row);
      row_products<T, D>(slopes, value_rows, from + tile_bytes + at_row);
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
              slopes[m][n][half + i] *= weight;
            }
        }
      weigh<T, D>(of_value, weights, from + tile_bytes + at_turned);
      weigh<T, D>(of_key, slopes, from + at_turned);
    }
    stage ^= 1;
    if (any && threadIdx.x < 2 * QUERIES) numbers[stage][threadIdx.x] = number;
    u32 last = tile;
    tile = next;
    next = last;
    at = next_at;
    head = next_head;
  }
  f32 by[M][2], one[M][2];
#pragma unroll
  for (int m = 0; m < M; ++m) by[m][0] = by[m][1] = (f32)shape.scale, one[m][0] = one[m][1] = 1;
  __syncthreads();
  u8 *part = buffer + warp * own_count * 2 * D;
  put_rows<T, D, M>(of_key, by, part, rows_of(to_key, unit.head, shape.keys, shape.width), own);
  put_rows<T, D, M>(of_value, one, part, rows_of(to_value, unit.head, shape.keys, shape.values), own);
}

// How many 16 rows a warp has, rows of a tile in shared memory, rows of its parts, and blocks of a
// multiprocessor: what fits the registers and was fastest on an H200. Four warps a block; the
// launch knows how many rows that makes.
template <int D> struct Tiling;
template <> struct Tiling<64> {
  static const int forward_own = 2, forward_keys = 64;
  static const int queries_own = 2, queries_keys = 64, queries_part = 32;
  static const int keys_own = 1, keys_queries = 64, keys_part = 32;
};
template <> struct Tiling<128> {
  static const int forward_own = 1, forward_keys = 32;
  static const int queries_own = 1, queries_keys = 32, queries_part = 32;
  static const int keys_own = 1, keys_queries = 32, keys_part = 16;
};

#define ATTENTION(type, D)                                                                                                                   \
  KERNEL_BY(128, D == 64 ? 2 : 3, attention_packed_##type##_##D)(Shape shape, Heads query, Heads key, Heads value, Heads out, f32 *sums) {   \
    typedef Tiling<D> By;                                                                                                                    \
    forward<type, D, By::forward_own, 4, By::forward_keys>(shape, query, key, value, out, sums);                                             \
  }                                                                                                                                          \
  KERNEL_BY(128, 2, attention_packed_queries_##type##_##D)(Shape shape, Heads query, Heads key, Heads value, Heads result, Heads grad,       \
                                                           const f32 *sums, f32 *along, Heads to_query) {                                    \
    typedef Tiling<D> By;                                                                                                                    \
    backward_queries<type, D, By::queries_own, 4, By::queries_keys, By::queries_part>(shape, query, key, value, result, grad, sums, along,   \
                                                                                     to_query);                                              \
  }                                                                                                                                          \
  KERNEL_BY(128, D == 64 ? 3 : 2, attention_packed_keys_##type##_##D)(Shape shape, Heads query, Heads key, Heads value, Heads grad,          \
                                                                      const f32 *sums, const f32 *along, Heads to_key, Heads to_value) {     \
    typedef Tiling<D> By;                                                                                                                    \
    backward_keys<type, D, By::keys_own, 4, By::keys_queries, By::keys_part>(shape, query, key, value, grad, sums, along, to_key, to_value); \
  }
