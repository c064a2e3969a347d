// The norms of many tensors over a table of them (`table.cuh`): each block adds up the squares of a
// chunk, then a block for each tensor adds up its chunks' sums, in their order. The twin of
// `kernels/elementwise/src/optim/norms.rs`.

// A tensor whose elements fill their memory. Mirrors `Table` in Rust.
struct Entry {
  u64 x;
  i64 count, chunks;
};
const int ENTRIES = 1000;
struct Table {
  f64 *sums;
  i64 entries, chunk;
  Entry entry[ENTRIES];
};

template <typename T> __device__ void squares(const Table &table) {
  Part part = part_of_block(table);
  const T *x = (const T *)table.entry[part.place].x;
  f64 sum = 0;
  over_part(part, (u64)x, [&](auto some, i64 i) {
    Some<T, some.count> values = *(const Some<T, some.count> *)(x + i);
#pragma unroll
    for (int k = 0; k < some.count; ++k) {
      f64 value = (f64)load(values.v[k]);
      sum += value * value;
    }
  });
  sum = block_sum(sum);
  if (threadIdx.x == 0) table.sums[blockIdx.x] = sum;
}

// The roots; `out` has a number for each entry.
template <typename T> __device__ void roots(const Table &table, T *out) {
  i64 first = blockIdx.x ? table.entry[blockIdx.x - 1].chunks : 0;
  f64 sum = 0;
  for (i64 i = first + threadIdx.x; i < table.entry[blockIdx.x].chunks; i += blockDim.x) sum += table.sums[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = Store<T>::from((typename Compute<T>::number)::sqrt(sum));
}

#define NORMS(T)                                                                                          \
  KERNEL(norms_squares_##T)(const __grid_constant__ Table table) {                                        \
    in_turn();                                                                                            \
    squares<T>(table);                                                                                    \
  }                                                                                                       \
  KERNEL(norms_roots_##T)(const __grid_constant__ Table table, T *out) {                                  \
    in_turn();                                                                                            \
    roots<T>(table, out);                                                                                 \
  }
NORMS(f32)
NORMS(f64)
NORMS(f16)
NORMS(bf16)
