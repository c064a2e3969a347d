// Attention in tiles of queries and keys, forward under the largest score so far, backward from the
// logarithms of the rows' sums: the matrix of scores never exists whole. Backward computes each
// tile of scores twice, once for the gradients of a tile of keys and once for those of a tile of
// queries, so that every sum is one block's and its order fixed. Operands of any strides and dtype
// are loaded into shared memory as what is computed in.

// Queries and keys of a tile, a thread's part of a side, and columns of a result that one block
// makes.
template <typename C> struct Tile { static const int side = 64, part = 4; };
template <> struct Tile<f64> { static const int side = 32, part = 2; };
const int COLUMNS = 64;
// Elements of rows that are multiplied at a time.
const int DEPTH = 32;

template <typename C, int N> struct alignas(16) Run { C v[N]; };

// Shared memory of a block: factors of a product, and a tile of weights.
template <typename C> struct Buffers {
  static const int side = Tile<C>::side, pitch = DEPTH + 4, weights_pitch = side + 4;
  alignas(16) C factors[side * (2 * pitch > COLUMNS ? 2 * pitch : COLUMNS)];
  alignas(16) C weights[side * weights_pitch];
  C rows[2 * side];
};

__device__ __forceinline__ f32 exponential(f32 x) { return expf(x); }
__device__ __forceinline__ f64 exponential(f64 x) { return exp(x); }

// Copies a tile of rows from `first` on and `width` columns from `column` on; zeros beyond the end.
template <typename C, int width>
__device__ void fetch(C *to, int pitch, const Heads &of, i64 start, i64 first, i64 rows, i64 column, i64 columns) {
  const void *from = (const void *)of.address;
  i32 code = (i32)of.code;
  for (int i = threadIdx.x; i < Tile<C>::side * width; i += blockDim.x) {
    int r = i / width, c = i % width;
    C value = 0;
    if (first + r < rows && column + c < columns) value = element<C>(from, start + (first + r) * of.row + (column + c) * of.column, code);
    to[r * pitch + c] = value;
  }
}

// `sums` += rows of a tile of `a` times rows of a tile of `b`: a thread's rows are neighbours, its
// columns 16 apart.
template <typename C>
__device__ void row_products(Buffers<C> &shared, C (&sums)[Tile<C>::part][Tile<C>::part], const Heads &a, i64 a_start, i64 a_first,
                             i64 a_rows, const Heads &b, i64 b_start, i64 b_first, i64 b_rows, i64 length) {
  const int part = Tile<C>::part, side = Tile<C>::side, pitch = Buffers<C>::pitch;
  int across = threadIdx.x % 16, down = threadIdx.x / 16;
  C *left = shared.factors, *right = shared.factors + side * pitch;
  for (i64 at = 0; at < length; at += DEPTH) {
    __syncthreads();
    fetch<C, DEPTH>(left, pitch, a, a_start, a_first, a_rows, at, length);
    fetch<C, DEPTH>(right, pitch, b, b_start, b_first, b_rows, at, length);
    __syncthreads();
#pragma unroll 1
    for (int d = 0; d < DEPTH; d += 4) {
      Run<C, 4> x[part], y[part];
#pragma unroll
      for (int i = 0; i < part; ++i) x[i] = *(const Run<C, 4> *)&left[(down * part + i) * pitch + d];
#pragma unroll
      for (int j = 0; j < part; ++j) y[j] = *(const Run<C, 4> *)&right[(across + 16 * j) * pitch + d];
#pragma unroll
      for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int i = 0; i < part; ++i)
#pragma unroll
          for (int j = 0; j < part; ++j) sums[i][j] += x[i].v[k] * y[j].v[k];
    }
  }
}

// Puts a thread's part of a tile where `weigh` and `weigh_turned` read it.
template <typename C> __device__ void put_weights(Buffers<C> &shared, const C (&own)[Tile<C>::part][Tile<C>::part]) {
  const int part = Tile<C>::part;
  int across = threadIdx.x % 16, down = threadIdx.x / 16;
#pragma unroll
  for (int i = 0; i < part; ++i)
#pragma unroll
    for (int j = 0; j < part; ++j) shared.weights[(down * part + i) * Buffers<C>::weights_pitch + across + 16 * j] = own[i][j];
}

// `sums` += the tile of weights times the tile of factors; a thread's rows and columns are
// neighbours.
template <typename C> __device__ void weigh(const Buffers<C> &shared, C (&sums)[Tile<C>::part][4]) {
  const int part = Tile<C>::part, side = Tile<C>::side;
  int across = threadIdx.x % 16, down = threadIdx.x / 16;
#pragma unroll 1
  for (int k = 0; k < side; k += 4) {
    Run<C, 4> w[part];
#pragma unroll
    for (int i = 0; i < part; ++i) w[i] = *(const Run<C, 4> *)&shared.weights[(down * part + i) * Buffers<C>::weights_pitch + k];
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      Run<C, 4> x = *(const Run<C, 4> *)&shared.factors[(k + u) * COLUMNS + 4 * across];
#pragma unroll
      for (int i = 0; i < part; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] += w[i].v[u] * x.v[j];
    }
  }
}

// The same with the tile of weights turned.
template <typename C> __device__ void weigh_turned(const Buffers<C> &shared, C (&sums)[Tile<C>::part][4]) {
  const int part = Tile<C>::part, side = Tile<C>::side;
  int across = threadIdx.x % 16, down = threadIdx.x / 16;
#pragma unroll 1
  for (int k = 0; k < side; ++k) {
    Run<C, part> w = *(const Run<C, part> *)&shared.weights[k * Buffers<C>::weights_pitch + down * part];
    Run<C, 4> x = *(const Run<C, 4> *)&shared.factors[k * COLUMNS + 4 * across];
#pragma unroll
    for (int i = 0; i < part; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[i][j] += w.v[i] * x.v[j];
  }
}

// Scores of a tile: scaled, with the mask, and minus infinity where a query sees nothing.
template <typename C>
__device__ void scores_of(Buffers<C> &shared, C (&scores)[Tile<C>::part][Tile<C>::part], const Shape &shape, const Heads &query, i64 query_start,
                          i64 first_query, const Heads &key, i64 key_start, i64 first_key, const Heads &mask, i64 mask_start) {
  const int part = Tile<C>::part;
  int across = threadIdx.x % 16, down = threadIdx.x / 16;
#pragma unroll
  for (int i = 0; i < part; ++i)
#pragma unroll
    for (int j = 0; j < part; ++j) scores[i][j] = 0;
  row_products<C>(shared, scores, query, query_start, first_query, shape.queries, key, key_start, first_key, shape.keys, shape.width);
#pragma unroll
  for (int i = 0; i < part; ++i)
#pragma unroll
    for (int j = 0; j < part; ++j) {
      i64 q = first_query + down * part + i, k = first_key + across + 16 * j;
      C score = scores[i][j] * (C)shape.scale;
      if (q >= shape.queries || k >= shape.keys || (shape.causal && k > q)) {
        score = lowest<C>();
      } else if (mask.address) {
        C added = element<C>((const void *)mask.address, mask_start + q * mask.row + k * mask.column, (i32)mask.code);
        if (mask.code != BOOL) score += added;
        else if (added == 0) score = lowest<C>();
      }
      scores[i][j] = score;
    }
}

// Of the 16 threads that share rows.
template <typename C> __device__ C row_largest(C value) {
#pragma unroll
  for (int distance = 8; distance > 0; distance >>= 1) {
    C other = __shfl_xor_sync(~0u, value, distance);
    value = other > value ? other : value;
  }
  return value;
}
template <typename C> __device__ C row_sum(C value) {
#pragma unroll
  for (int distance = 8; distance > 0; distance >>= 1) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

// A block makes `COLUMNS` columns of the results of one tile of queries.
template <typename C>
__device__ void forward(const Shape &shape, const Heads &query, const Heads &key, const Heads &value, const Heads &mask, const Heads &out, C *sums) {
  const int part = Tile<C>::part, side = Tile<C>::side;
  __shared__ Buffers<C> shared;
  int across = threadIdx.x % 16, down = threadIdx.x / 16;
  i64 tiles = (shape.queries + side - 1) / side, chunks = (shape.values + COLUMNS - 1) / COLUMNS;
  if (chunks == 0) chunks = 1;
  for (i64 unit = blockIdx.x; unit < shape.heads * chunks * tiles; unit += gridDim.x) {
    // The last tiles of queries see most keys: they go first.
    i64 first = (tiles - 1 - unit % tiles) * side, chunk = unit / tiles % chunks, head = unit / tiles / chunks;
    i64 key_head = head / shape.group;
    i64 query_start = query.start(head), key_start = key.start(key_head), value_start = value.start(key_head);
    i64 mask_start = mask.address ? mask.start(head) : 0;
    i64 seen = shape.causal && first + side < shape.keys ? first + side : shape.keys;
    C results[part][4] = {}, tops[part], totals[part] = {};
#pragma unroll
    for (int i = 0; i < part; ++i) tops[i] = lowest<C>();
    for (i64 at = 0; at < seen; at += side) {
      C weights[part][part];
      scores_of<C>(shared, weights, shape, query, query_start, first, key, key_start, at, mask, mask_start);
#pragma unroll
      for (int i = 0; i < part; ++i) {
        C top = tops[i], total = 0;
#pragma unroll
        for (int j = 0; j < part; ++j) top = weights[i][j] > top ? weights[i][j] : top;
        top = row_largest(top);
        bool nothing = top == lowest<C>();
#pragma unroll
        for (int j = 0; j < part; ++j) {
          weights[i][j] = nothing ? (C)0 : exponential(weights[i][j] - top);
          total += weights[i][j];
        }
        C shrink = nothing ? (C)1 : exponential(tops[i] - top);
        totals[i] = totals[i] * shrink + row_sum(total);
        tops[i] = top;
#pragma unroll
        for (int j = 0; j < 4; ++j) results[i][j] *= shrink;
      }
      __syncthreads();
      put_weights<C>(shared, weights);
      fetch<C, COLUMNS>(shared.factors, COLUMNS, value, value_start, at, shape.keys, chunk * COLUMNS, shape.values);
      __syncthreads();
      weigh<C>(shared, results);
    }
#pragma unroll
    for (int i = 0; i < part; ++i) {
      i64 row = first + down * part + i;
      if (row >= shape.queries) continue;
      i64 to = out.start(head) + row * out.row;
      // A query that sees nothing gets nothing.
      C scale = totals[i] == 0 ? (C)0 : 1 / totals[i];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        i64 column = chunk * COLUMNS + 4 * across + j;
        if (column < shape.values) keep<C>((void *)out.address, to + column * out.column, (i32)out.code, results[i][j] * scale);
      }
      if (sums && chunk == 0 && across == 0) sums[head * shape.queries + row] = (C)((f64)tops[i] + log((f64)totals[i]));
    }
  }
}

// What backward reads.
template <typename C> struct Saved {
  const Heads &query, &key, &value, &mask, &grad;
  const C *sums, *along;
};

// The weights of a tile and the gradients of its scores.
template <typename C>
__device__ void slopes_of(Buffers<C> &shared, C (&weights)[Tile<C>::part][Tile<C>::part], C (&slopes)[Tile<C>::part][Tile<C>::part],
                          const Shape &shape, const Saved<C> &saved, i64 head, i64 first_query, i64 first_key) {
  const int part = Tile<C>::part, side = Tile<C>::side;
  int down = threadIdx.x / 16;
  i64 key_head = head / shape.group, mask_start = saved.mask.address ? saved.mask.start(head) : 0;
  // Read after the synchronisations of the products.
  __syncthreads();
  for (int i = threadIdx.x; i < side; i += blockDim.x) {
    bool there = first_query + i < shape.queries;
    i64 row = head * shape.queries + first_query + i;
    shared.rows[i] = there ? saved.sums[row] : lowest<C>();
    shared.rows[side + i] = there ? saved.along[row] : (C)0;
  }
  scores_of<C>(shared, weights, shape, saved.query, saved.query.start(head), first_query, saved.key, saved.key.start(key_head), first_key,
               saved.mask, mask_start);
#pragma unroll
  for (int i = 0; i < part; ++i)
#pragma unroll
    for (int j = 0; j < part; ++j) slopes[i][j] = 0;
  row_products<C>(shared, slopes, saved.grad, saved.grad.start(head), first_query, shape.queries, saved.value, saved.value.start(key_head),
                  first_key, shape.keys, shape.values);
  __syncthreads();
#pragma unroll
  for (int i = 0; i < part; ++i) {
    C sum = shared.rows[down * part + i], along = shared.rows[side + down * part + i];
#pragma unroll
    for (int j = 0; j < part; ++j) {
      weights[i][j] = sum == lowest<C>() ? (C)0 : exponential(weights[i][j] - sum);
      slopes[i][j] = weights[i][j] * (slopes[i][j] - along) * (C)shape.scale;
    }
  }
}

// Writes a thread's part of a tile of gradients.
template <typename C>
__device__ void put_rows(const C (&own)[Tile<C>::part][4], const Heads &out, i64 head, i64 first, i64 rows, i64 column, i64 columns) {
  int across = threadIdx.x % 16, down = threadIdx.x / 16;
  i64 start = out.start(head);
#pragma unroll
  for (int i = 0; i < Tile<C>::part; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      i64 row = first + down * Tile<C>::part + i, at = column + 4 * across + j;
      if (row < rows && at < columns) keep<C>((void *)out.address, start + row * out.row + at * out.column, (i32)out.code, own[i][j]);
    }
}

// A block makes `COLUMNS` columns of the gradients of a tile of keys and values, or of a tile of
// queries: the units of the keys come first.
template <typename C>
__device__ void backward(const Shape &shape, const Saved<C> &saved, const Heads &to_query, const Heads &to_key, const Heads &to_value) {
  const int part = Tile<C>::part, side = Tile<C>::side;
  __shared__ Buffers<C> shared;
  i64 widest = shape.width > shape.values ? shape.width : shape.values;
  i64 key_tiles = (shape.keys + side - 1) / side, key_chunks = (widest + COLUMNS - 1) / COLUMNS;
  i64 query_tiles = (shape.queries + side - 1) / side, query_chunks = (shape.width + COLUMNS - 1) / COLUMNS;
  i64 key_units = shape.heads / shape.group * key_chunks * key_tiles;
  for (i64 unit = blockIdx.x; unit < key_units + shape.heads * query_chunks * query_tiles; unit += gridDim.x) {
    bool of_keys = unit < key_units;
    i64 own = of_keys ? unit : unit - key_units, tiles = of_keys ? key_tiles : query_tiles;
    i64 chunks = of_keys ? key_chunks : query_chunks;
    i64 column = own / tiles % chunks * COLUMNS, own_head = own / tiles / chunks;
    // Those that have most to do go first.
    i64 first = (of_keys ? own % tiles : tiles - 1 - own % tiles) * side;
    i64 seen = shape.causal && first + side < shape.keys ? first + side : shape.keys;
    i64 begin = of_keys && shape.causal ? first : 0, end = of_keys ? shape.queries : seen;
    i64 head = of_keys ? own_head * shape.group : own_head, last_head = of_keys ? head + shape.group : head + 1;
    C sums[part][4] = {}, of_value[part][4] = {};
    for (; head < last_head; ++head) {
      for (i64 at = begin; at < end; at += side) {
        C weights[part][part], slopes[part][part];
        slopes_of<C>(shared, weights, slopes, shape, saved, head, of_keys ? at : first, of_keys ? first : at);
        if (of_keys) {
          put_weights<C>(shared, weights);
          fetch<C, COLUMNS>(shared.factors, COLUMNS, saved.grad, saved.grad.start(head), at, shape.queries, column, shape.values);
          __syncthreads();
          weigh_turned<C>(shared, of_value);
          __syncthreads();
          fetch<C, COLUMNS>(shared.factors, COLUMNS, saved.query, saved.query.start(head), at, shape.queries, column, shape.width);
        } else {
          fetch<C, COLUMNS>(shared.factors, COLUMNS, saved.key, saved.key.start(head / shape.group), at, shape.keys, column, shape.width);
        }
        put_weights<C>(shared, slopes);
        __syncthreads();
        if (of_keys) weigh_turned<C>(shared, sums);
        else weigh<C>(shared, sums);
      }
    }
    if (of_keys) {
      put_rows<C>(sums, to_key, own_head, first, shape.keys, column, shape.width);
      put_rows<C>(of_value, to_value, own_head, first, shape.keys, column, shape.values);
    } else {
      put_rows<C>(sums, to_query, own_head, first, shape.queries, column, shape.width);
    }
  }
}

#define ATTENTION(C)                                                                                                                              \
  KERNEL_OF(256, attention_##C)(Shape shape, Heads query, Heads key, Heads value, Heads mask,                                                     \
                                                                  Heads out, C *sums) {                                                           \
    in_turn();                                                                                                                                    \
    forward<C>(shape, query, key, value, mask, out, sums);                                                                                        \
  }                                                                                                                                               \
  KERNEL(attention_products_##C)(Shape shape, Heads grad, Heads result, C *along) {                                                               \
    in_turn();                                                                                                                                    \
    products<C>(shape, grad, result, along);                                                                                                      \
  }                                                                                                                                               \
  KERNEL_OF(256, attention_backward_##C)(Shape shape, Heads query, Heads key, Heads value, Heads mask, Heads grad, const C *sums, const C *along, \
                             Heads to_query, Heads to_key, Heads to_value) {                                                                      \
    in_turn();                                                                                                                                    \
    Saved<C> saved = {query, key, value, mask, grad, sums, along};                                                                                \
    backward<C>(shape, saved, to_query, to_key, to_value);                                                                                        \
  }
ATTENTION(f32)
ATTENTION(f64)
