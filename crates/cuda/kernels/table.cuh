// A table of tensors as one run of elements: every block takes a chunk of one of them, four
// elements at a time where they lie on multiples of 16 bytes. What is in a table's entry, and what
// happens to the elements, is its kernel's (`optim.cu`, `unscale.cu`); an entry has at least
// `count` elements, and `chunks`, which counts the chunks of its tensor and of all before it.

// One or four elements, moved at once.
template <typename T, int N> struct alignas(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) Some { T v[N]; };

// The part of the table's tensor `place` that this block takes.
struct Part {
  int place;
  i64 from, to;
};

template <typename Table> __device__ __forceinline__ Part part_of_block(const Table &table) {
  __shared__ int found;
  if (threadIdx.x == 0) {
    int low = 0, high = (int)table.entries - 1;
    while (low < high) {
      int middle = (low + high) / 2;
      if (table.entry[middle].chunks > (i64)blockIdx.x)
        high = middle;
      else
        low = middle + 1;
    }
    found = low;
  }
  __syncthreads();
  i64 before = found ? table.entry[found - 1].chunks : 0;
  i64 from = ((i64)blockIdx.x - before) * table.chunk;
  return {found, from, min(from + table.chunk, table.entry[found].count)};
}

// Four elements of a part, or one.
struct Four { static const int count = 4; };
struct One { static const int count = 1; };

// Calls `body` for all elements of a part: with `Four()` and the index of the first of four, or
// with `One()`. `addresses` are those of all operands, or-ed: whether fours lie on multiples of 16
// bytes.
template <typename Body> __device__ __forceinline__ void over_part(Part part, u64 addresses, const Body &body) {
  i64 from = part.from;
  if ((addresses & 15) == 0) {
    i64 whole = from + (part.to - from) / 4 * 4;
    for (i64 i = from + 4 * (i64)threadIdx.x; i < whole; i += 4 * (i64)blockDim.x) body(Four(), i);
    from = whole;
  }
  for (i64 i = from + threadIdx.x; i < part.to; i += blockDim.x) body(One(), i);
}

