// Attention of half types by tensor cores: the same tiles as attention.cu, for rows of up to D
// elements, which are padded with zeros in shared memory. Products add up in f32; weights are
// rounded to the half type between two products. A line after this text names the dtype and D, so
// that nobody waits for kernels that he does not use.
//
// A warp has 16 rows of a tile. Of a 16 x 8 tile of sums a thread has two neighbours in row lane /
// 4 and two in the row 8 below, from column lane % 4 * 2 on.

// Rows of D elements in shared memory, 16 bytes apart more than they are long, so that the rows of
// a matrix lie in different banks.
template <int D> struct Line { static const int pitch = D + 8; };

// 16 rows from `row` on and 16 columns from `column` on, as a left factor.
template <int D> __device__ __forceinline__ void left(u32 (&a)[4], const u16 *from, int row, int column) {
  int lane = threadIdx.x & 31;
  load_four(a, shared_address(from + (row + (lane & 15)) * Line<D>::pitch + column + (lane >> 4) * 8));
}
// A right factor whose columns are 16 rows from `row` on: [0] and [1] are its first 8 columns.
template <int D> __device__ __forceinline__ void right(u32 (&b)[4], const u16 *from, int row, int column) {
  int lane = threadIdx.x & 31, matrix = lane >> 3;
  load_four(b, shared_address(from + (row + (matrix >> 1) * 8 + (lane & 7)) * Line<D>::pitch + column + (matrix & 1) * 8));
}
// A right factor whose rows are 16 rows from `row` on: [0] and [1] are its first 8 columns.
template <int D> __device__ __forceinline__ void right_turned(u32 (&b)[4], const u16 *from, int row, int column) {
  int lane = threadIdx.x & 31, matrix = lane >> 3;
  load_four_turned(b, shared_address(from + (row + (matrix & 1) * 8 + (lane & 7)) * Line<D>::pitch + column + (matrix >> 1) * 8));
}

// Threads of a block.
const int THREADS = 128;

// Up to eight elements one by one.
__device__ __noinline__ Pack<u16> gathered(const u16 *from, i64 step, i64 count) {
  Pack<u16> pack = {};
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (k < count) pack.v[k] = from[k * step];
  return pack;
}

// A thread's part of COUNT rows on their way to shared memory: all loads are under way before the
// first is stored. Zeros beyond the end and past the width.
template <int D, int COUNT> struct Carried {
  static const int own = COUNT * D / 8 / THREADS;
  Pack<u16> packs[own];

  __device__ __forceinline__ void load(const Heads &of, i64 start, i64 first, i64 rows, i64 width) {
    const u16 *from = (const u16 *)of.address + start + first * of.row;
    bool packed = of.column == 1 && of.row % 8 == 0 && width % 8 == 0 && aligned(from);
#pragma unroll
    for (int i = 0; i < own; ++i) packs[i] = Pack<u16>{};
    if (packed) {
#pragma unroll
      for (int i = 0; i < own; ++i)
        if (first + row(i) < rows && column(i) < width) packs[i] = *(const Pack<u16> *)(from + row(i) * of.row + column(i));
    } else {
#pragma unroll 1
      for (int i = 0; i < own; ++i) {
        Pack<u16> pack = {};
        if (first + row(i) < rows && column(i) < width) pack = gathered(from + row(i) * of.row + column(i) * of.column, of.column, width - column(i));
#pragma unroll
        for (int k = 0; k < own; ++k)
          if (k == i) packs[k] = pack;
      }
    }
  }

  __device__ __forceinline__ void store(u16 *to) const {
#pragma unroll
    for (int i = 0; i < own; ++i) *(Pack<u16> *)(to + row(i) * Line<D>::pitch + column(i)) = packs[i];
  }

  static __device__ __forceinline__ int row(int i) { return (threadIdx.x + i * THREADS) / (D / 8); }
  static __device__ __forceinline__ int column(int i) { return (threadIdx.x + i * THREADS) % (D / 8) * 8; }
};

// Copies COUNT rows from `first` on of two operands into shared memory.
template <int D, int COUNT>
__device__ __forceinline__ void fetch_both(u16 *to_a, const Heads &a, i64 a_start, i64 a_width, u16 *to_b, const Heads &b, i64 b_start, i64 b_width,
                                           i64 first, i64 rows) {
  Carried<D, COUNT> of_a, of_b;
  of_a.load(a, a_start, first, rows, a_width);
  of_b.load(b, b_start, first, rows, b_width);
  of_a.store(to_a);
  of_b.store(to_b);
}

template <int N> __device__ __forceinline__ void clear(f32 (&tiles)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int k = 0; k < 4; ++k) tiles[n][k] = 0;
}

// `sums` (16 x 8 N) = rows in `a` times rows of `from`, both of D elements.
template <typename T, int D, int N>
__device__ __forceinline__ void row_products(f32 (&sums)[N][4], const u32 (&a)[D / 16][4], const u16 *from) {
  clear(sums);
#pragma unroll
  for (int k = 0; k < D / 16; ++k)
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      u32 b[4];
      right<D>(b, from, n * 8, k * 16);
      multiply(T(), sums[n], a[k], b[0], b[1]);
      multiply(T(), sums[n + 1], a[k], b[2], b[3]);
    }
}

// `sums` (16 x D) += weights (16 x 8 N) times rows of `from`.
template <typename T, int D, int N>
__device__ __forceinline__ void weigh(f32 (&sums)[D / 8][4], const f32 (&weights)[N][4], const u16 *from) {
#pragma unroll
  for (int k = 0; k < N; k += 2) {
    u32 a[4] = {pair(T(), weights[k][0], weights[k][1]), pair(T(), weights[k][2], weights[k][3]),
                pair(T(), weights[k + 1][0], weights[k + 1][1]), pair(T(), weights[k + 1][2], weights[k + 1][3])};
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      u32 b[4];
      right_turned<D>(b, from, k * 8, n * 8);
      multiply(T(), sums[n], a, b[0], b[1]);
      multiply(T(), sums[n + 1], a, b[2], b[3]);
    }
  }
}

template <int D> __device__ __forceinline__ void left_rows(u32 (&a)[D / 16][4], const u16 *from, int row) {
#pragma unroll
  for (int k = 0; k < D / 16; ++k) left<D>(a[k], from, row, k * 16);
}

// What the queries of a head see.
struct View {
  const void *mask;
  i64 start, row, column, queries, keys;
  i32 code, causal;
};

__device__ __forceinline__ View view_of(const Shape &shape, const Heads &mask, i64 head) {
  i64 start = mask.address ? mask.start(head) : 0;
  return View{(const void *)mask.address, start, mask.row, mask.column, shape.queries, shape.keys, (i32)mask.code, (i32)shape.causal};
}

// A score in units of the logarithm of 2, with the mask; minus infinity where nothing is seen. A
// call, because few masks are given.
__device__ __noinline__ f32 seen_score(const View &view, f32 score, i64 q, i64 k) {
  if (q >= view.queries || k >= view.keys || (view.causal && k > q)) return lowest<f32>();
  if (!view.mask) return score;
  f32 added = element<f32>(view.mask, view.start + q * view.row + k * view.column, view.code);
  if (view.code != BOOL) return score + added * LOG2_E;
  return added == 0 ? lowest<f32>() : score;
}

// Whether `count` queries from `q` on see all of the `length` keys from `k` on, and no mask is
// added.
__device__ __forceinline__ bool sees_all(const View &view, i64 q, i64 count, i64 k, i64 length) {
  return !view.mask && q + count <= view.queries && k + length <= view.keys && (!view.causal || k + length - 1 <= q);
}

// Scales a warp's products of queries and keys and takes out what is not seen. Rows are queries,
// or, `turned`, keys. Most tiles are only scaled.
template <bool turned, int N>
__device__ __forceinline__ void finish_scores(f32 (&scores)[N][4], const View &view, f32 scale, i64 first_row, i64 first_column) {
  int lane = threadIdx.x & 31, first = lane % 4 * 2;
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int k = 0; k < 4; ++k) scores[n][k] *= scale;
  if (view.mask) {
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        i64 row = first_row + lane / 4 + k / 2 * 8, column = first_column + n * 8 + first + k % 2;
        scores[n][k] = seen_score(view, scores[n][k], turned ? column : row, turned ? row : column);
      }
    return;
  }
  bool whole = turned ? sees_all(view, first_column, 8 * N, first_row, 16) : sees_all(view, first_row, 16, first_column, 8 * N);
  if (whole) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    // The columns that go with this row: from, until.
    i64 row = first_row + lane / 4 + half * 8, from = turned && view.causal ? row - first_column : 0;
    i64 until = (turned ? view.queries : view.causal && row + 1 < view.keys ? row + 1 : view.keys) - first_column;
    if (row >= (turned ? view.keys : view.queries)) until = 0;
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        i64 column = n * 8 + first + k;
        if (column < from || column >= until) scores[n][2 * half + k] = lowest<f32>();
      }
  }
}

// Writes a warp's 16 rows of up to D columns from its sums, times `by`.
template <typename T, int D>
__device__ void put_rows(const f32 (&sums)[D / 8][4], const f32 (&by)[2], const Heads &out, i64 head, i64 first, i64 rows, i64 columns) {
  int lane = threadIdx.x & 31;
  T *to = (T *)out.address + out.start(head);
#pragma unroll
  for (int n = 0; n < D / 8; ++n)
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      i64 row = first + lane / 4 + k / 2 * 8, column = n * 8 + lane % 4 * 2 + k % 2;
      if (row < rows && column < columns) to[row * out.row + column * out.column] = Store<T>::from(sums[n][k] * by[k / 2]);
    }
}

// Four warps: 64 queries of a head.
template <typename T, int D>
__device__ void forward(const Shape &shape, const Heads &query, const Heads &key, const Heads &value, const Heads &mask, const Heads &out, f32 *sums) {
  const int KEYS = 64, QUERIES = 64, pitch = Line<D>::pitch;
  alignas(16) __shared__ u16 buffer[2 * KEYS * pitch];
  u16 *keys = buffer, *values = buffer + KEYS * pitch;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  f32 scale = (f32)shape.scale * LOG2_E;
  i64 tiles = (shape.queries + QUERIES - 1) / QUERIES;
  for (i64 unit = blockIdx.x; unit < shape.heads * tiles; unit += gridDim.x) {
    // The last tiles of queries see most keys: they go first.
    i64 first = (tiles - 1 - unit % tiles) * QUERIES, head = unit / tiles, key_head = head / shape.group;
    i64 key_start = key.start(key_head), value_start = value.start(key_head);
    View view = view_of(shape, mask, head);
    i64 own = first + warp * 16, seen = shape.causal && first + QUERIES < shape.keys ? first + QUERIES : shape.keys;
    u32 queries[D / 16][4];
    __syncthreads();
    Carried<D, QUERIES> own_queries;
    own_queries.load(query, query.start(head), first, shape.queries, shape.width);
    own_queries.store(buffer);
    __syncthreads();
    left_rows<D>(queries, buffer, warp * 16);
    f32 results[D / 8][4], tops[2] = {lowest<f32>(), lowest<f32>()}, totals[2] = {0, 0};
    clear(results);
    for (i64 at = 0; at < seen; at += KEYS) {
      __syncthreads();
      fetch_both<D, KEYS>(keys, key, key_start, shape.width, values, value, value_start, shape.values, at, shape.keys);
      __syncthreads();
      if (shape.causal && at > own + 15) continue;
      f32 weights[KEYS / 8][4];
      row_products<T, D, KEYS / 8>(weights, queries, keys);
      finish_scores<false>(weights, view, scale, own, at);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        f32 top = tops[half], total = 0;
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
          for (int k = 0; k < 2; ++k) {
            f32 score = weights[n][2 * half + k];
            top = score > top ? score : top;
          }
#pragma unroll
        for (int distance = 1; distance <= 2; distance <<= 1) {
          f32 other = __shfl_xor_sync(~0u, top, distance);
          top = other > top ? other : top;
        }
        bool nothing = top == lowest<f32>();
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
          for (int k = 0; k < 2; ++k) {
            f32 &weight = weights[n][2 * half + k];
            weight = nothing ? 0.0f : exp2f(weight - top);
            total += weight;
          }
        f32 shrink = nothing ? 1.0f : exp2f(tops[half] - top);
        totals[half] = totals[half] * shrink + total;
        tops[half] = top;
#pragma unroll
        for (int n = 0; n < D / 8; ++n) {
          results[n][2 * half] *= shrink;
          results[n][2 * half + 1] *= shrink;
        }
      }
      weigh<T, D, KEYS / 8>(results, weights, values);
    }
    f32 by[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      f32 total = totals[half];
      total += __shfl_xor_sync(~0u, total, 1);
      total += __shfl_xor_sync(~0u, total, 2);
      // A query that sees nothing gets nothing.
      by[half] = total == 0 ? 0.0f : 1 / total;
      i64 row = own + lane / 4 + half * 8;
      if (sums && lane % 4 == 0 && row < shape.queries) sums[head * shape.queries + row] = tops[half] * LN_2 + logf(total);
    }
    put_rows<T, D>(results, by, out, head, own, shape.queries, shape.values);
  }
}

// What backward reads.
struct Saved {
  const Heads &query, &key, &value, &mask, &grad;
  const f32 *sums, *along;
};

// Weights from scores and the row's logarithm of its sum, in units of the logarithm of 2.
__device__ __forceinline__ f32 weight_of(f32 score, f32 sum) { return exp2f(score - sum); }

// The logarithm of a query's sum as `weight_of` takes it: a query that sees nothing has no weights.
__device__ __forceinline__ f32 sum_of(const Shape &shape, const Saved &saved, i64 head, i64 row) {
  if (row >= shape.queries) return infinite();
  f32 sum = saved.sums[head * shape.queries + row];
  return sum == lowest<f32>() ? infinite() : sum * LOG2_E;
}
__device__ __forceinline__ f32 along_of(const Shape &shape, const Saved &saved, i64 head, i64 row) {
  return row < shape.queries ? saved.along[head * shape.queries + row] : 0.0f;
}

// Four warps: the gradients of 64 keys and values. Tiles lie turned here, a row a key.
template <typename T, int D> __device__ void backward_keys(const Shape &shape, const Saved &saved, const Heads &to_key, const Heads &to_value) {
  const int KEYS = 64, QUERIES = D == 64 ? 64 : 16, pitch = Line<D>::pitch;
  alignas(16) __shared__ u16 keys[KEYS * pitch], values[KEYS * pitch], queries[QUERIES * pitch], grads[QUERIES * pitch];
  __shared__ f32 sums[QUERIES], along[QUERIES];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  f32 scale = (f32)shape.scale * LOG2_E;
  i64 tiles = (shape.keys + KEYS - 1) / KEYS;
  for (i64 unit = blockIdx.x; unit < shape.heads / shape.group * tiles; unit += gridDim.x) {
    i64 first = unit % tiles * KEYS, key_head = unit / tiles, own = first + warp * 16;
    __syncthreads();
    fetch_both<D, KEYS>(keys, saved.key, saved.key.start(key_head), shape.width, values, saved.value, saved.value.start(key_head),
                        shape.values, first, shape.keys);
    f32 of_key[D / 8][4], of_value[D / 8][4];
    clear(of_key);
    clear(of_value);
    for (i64 head = key_head * shape.group; head < (key_head + 1) * shape.group; ++head) {
      i64 query_start = saved.query.start(head), grad_start = saved.grad.start(head);
      View view = view_of(shape, saved.mask, head);
      for (i64 at = shape.causal ? first : 0; at < shape.queries; at += QUERIES) {
        __syncthreads();
        fetch_both<D, QUERIES>(queries, saved.query, query_start, shape.width, grads, saved.grad, grad_start, shape.values, at, shape.queries);
        for (int i = threadIdx.x; i < QUERIES; i += blockDim.x) {
          sums[i] = sum_of(shape, saved, head, at + i);
          along[i] = along_of(shape, saved, head, at + i);
        }
        __syncthreads();
        if (shape.causal && at + QUERIES <= own) continue;
        f32 weights[QUERIES / 8][4], slopes[QUERIES / 8][4];
        u32 a[D / 16][4];
        left_rows<D>(a, keys, warp * 16);
        row_products<T, D, QUERIES / 8>(weights, a, queries);
        left_rows<D>(a, values, warp * 16);
        row_products<T, D, QUERIES / 8>(slopes, a, grads);
        finish_scores<true>(weights, view, scale, own, at);
#pragma unroll
        for (int n = 0; n < QUERIES / 8; ++n)
#pragma unroll
          for (int k = 0; k < 4; ++k) {
            int column = n * 8 + lane % 4 * 2 + k % 2;
            weights[n][k] = weight_of(weights[n][k], sums[column]);
            slopes[n][k] = weights[n][k] * (slopes[n][k] - along[column]);
          }
        weigh<T, D, QUERIES / 8>(of_value, weights, grads);
        weigh<T, D, QUERIES / 8>(of_key, slopes, queries);
      }
    }
    f32 by[2] = {(f32)shape.scale, (f32)shape.scale}, one[2] = {1, 1};
    put_rows<T, D>(of_key, by, to_key, key_head, own, shape.keys, shape.width);
    put_rows<T, D>(of_value, one, to_value, key_head, own, shape.keys, shape.values);
  }
}

// Four warps: the gradients of 64 queries.
template <typename T, int D> __device__ void backward_queries(const Shape &shape, const Saved &saved, const Heads &to_query) {
  const int KEYS = D == 64 ? 64 : 32, QUERIES = 64, pitch = Line<D>::pitch;
  alignas(16) __shared__ u16 buffer[2 * QUERIES * pitch];
  u16 *keys = buffer, *values = buffer + QUERIES * pitch;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  f32 scale = (f32)shape.scale * LOG2_E;
  i64 tiles = (shape.queries + QUERIES - 1) / QUERIES;
  for (i64 unit = blockIdx.x; unit < shape.heads * tiles; unit += gridDim.x) {
    i64 first = (tiles - 1 - unit % tiles) * QUERIES, head = unit / tiles, key_head = head / shape.group, own = first + warp * 16;
    i64 key_start = saved.key.start(key_head), value_start = saved.value.start(key_head);
    View view = view_of(shape, saved.mask, head);
    i64 seen = shape.causal && first + QUERIES < shape.keys ? first + QUERIES : shape.keys;
    u32 queries[D / 16][4], grads[D / 16][4];
    __syncthreads();
    fetch_both<D, QUERIES>(keys, saved.query, saved.query.start(head), shape.width, values, saved.grad, saved.grad.start(head), shape.values,
                           first, shape.queries);
    __syncthreads();
    left_rows<D>(queries, keys, warp * 16);
    left_rows<D>(grads, values, warp * 16);
    f32 sums[2], along[2], results[D / 8][4];
    clear(results);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      sums[half] = sum_of(shape, saved, head, own + lane / 4 + half * 8);
      along[half] = along_of(shape, saved, head, own + lane / 4 + half * 8);
    }
    for (i64 at = 0; at < seen; at += KEYS) {
      __syncthreads();
      fetch_both<D, KEYS>(keys, saved.key, key_start, shape.width, values, saved.value, value_start, shape.values, at, shape.keys);
      __syncthreads();
      if (shape.causal && at > own + 15) continue;
      f32 weights[KEYS / 8][4], slopes[KEYS / 8][4];
      row_products<T, D, KEYS / 8>(weights, queries, keys);
      row_products<T, D, KEYS / 8>(slopes, grads, values);
      finish_scores<false>(weights, view, scale, own, at);
#pragma unroll
      for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
        for (int k = 0; k < 4; ++k) slopes[n][k] = weight_of(weights[n][k], sums[k / 2]) * (slopes[n][k] - along[k / 2]);
      weigh<T, D, KEYS / 8>(results, slopes, keys);
    }
    f32 by[2] = {(f32)shape.scale, (f32)shape.scale};
    put_rows<T, D>(results, by, to_query, head, own, shape.queries, shape.width);
  }
}

#define ATTENTION(type, D)                                                                                                                  \
  KERNEL_OF(128, attention_##type##_##D)(Shape shape, Heads query, Heads key, Heads value,                                                  \
                                                                           Heads mask, Heads out, f32 *sums) {                              \
    in_turn();                                                                                                                              \
    forward<type, D>(shape, query, key, value, mask, out, sums);                                                                            \
  }                                                                                                                                         \
  KERNEL(attention_products_##type##_##D)(Shape shape, Heads grad, Heads result, f32 *along) {                                              \
    in_turn();                                                                                                                              \
    products<f32>(shape, grad, result, along);                                                                                              \
  }                                                                                                                                         \
  KERNEL_OF(128, attention_keys_##type##_##D)(Shape shape, Heads query, Heads key, Heads value, Heads mask, Heads grad, const f32 *sums,    \
                                  const f32 *along, Heads to_key, Heads to_value) {                                                         \
    in_turn();                                                                                                                              \
    Saved saved = {query, key, value, mask, grad, sums, along};                                                                             \
    backward_keys<type, D>(shape, saved, to_key, to_value);                                                                                 \
  }                                                                                                                                         \
  KERNEL_OF(128, attention_queries_##type##_##D)(Shape shape, Heads query, Heads key, Heads value, Heads mask, Heads grad, const f32 *sums, \
                                     const f32 *along, Heads to_query) {                                                                    \
    in_turn();                                                                                                                              \
    Saved saved = {query, key, value, mask, grad, sums, along};                                                                             \
    backward_queries<type, D>(shape, saved, to_query);                                                                                      \
  }
