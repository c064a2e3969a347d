// Reading where indices say. An element is a run of bytes here: what is read is written as it is,
// and where everything is aligned a run of 16 bytes counts as one element.

struct alignas(16) Wide { u64 v[2]; };
template <typename T> __device__ __forceinline__ T nothing() { return (T)0; }
template <> __device__ __forceinline__ Wide nothing<Wide>() { return Wide{{0, 0}}; }

// Operands of `s`: the output, the index, and x without its stride along the indexed dimension.
template <typename T>
__device__ void gather(i64 n, const Strided &s, const T *x, const i64 *index, T *out, i64 size, i64 stride, i64 dim, const Fault &fault) {
  auto fetch = [&](i64 i) {
    i64 at[3];
    locate<3>(s, i, at);
    i64 place = index[at[1]];
    struct Found { T value; i64 to; };
    return Found{within(fault, place, size, dim) ? x[at[2] + place * stride] : nothing<T>(), at[0]};
  };
  for (i64 i = first_index(); i < n; i += 2 * all_threads()) {
    // Two on their way at once.
    auto first = fetch(i);
    i64 next = i + all_threads();
    if (next < n) {
      auto second = fetch(next);
      out[second.to] = second.value;
    }
    out[first.to] = first.value;
  }
}

// Operands of `s`: the output, the list of offsets, and x without the indexed dimensions. An offset
// below 0 stands for an index out of range.
template <typename T> __device__ void index_read(i64 n, const Strided &s, const T *x, const i64 *list, i64 shift, T *out) {
  for (i64 i = first_index(); i < n; i += all_threads()) {
    i64 at[3];
    locate<3>(s, i, at);
    i64 offset = list[at[1]];
    out[at[0]] = offset < 0 ? nothing<T>() : x[at[2] + (offset >> shift)];
  }
}

// Runs of `columns` elements that one index moves together: `lanes` threads a run, four elements of
// each on their way at once. `offset` says where in x the run at a place of the index starts; below
// 0 is nowhere.
template <typename T, typename Offset>
__device__ void read_runs(i64 runs, i64 columns, i32 lanes, const Strided &s, const T *x, T *out, Offset offset) {
  i64 side = blockDim.x / lanes, own = threadIdx.x / lanes, lane = threadIdx.x & (lanes - 1);
  i64 chunks = (columns + 4 * lanes - 1) / (4 * lanes), groups = (runs + side - 1) / side;
  for (i64 job = blockIdx.x; job < groups * chunks; job += gridDim.x) {
    i64 group = job / chunks, run = group * side + own;
    if (run >= runs) continue;
    i64 at[3];
    locate<3>(s, run, at);
    i64 from = offset(at[1]), column = (job - group * chunks) * 4 * lanes + lane;
    const T *source = x + at[2] + from;
    T *target = out + at[0];
    T v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = from >= 0 && column + k * lanes < columns ? source[column + k * lanes] : nothing<T>();
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (column + k * lanes < columns) target[column + k * lanes] = v[k];
  }
}
#define RUNS(bytes, T)                                                                                            \
  KERNEL(gather_runs_##bytes)(i64 runs, i64 columns, i32 lanes, Strided s, const T *x, const i64 *index, T *out,  \
                                                 i64 size, i64 stride, i64 dim, Fault fault) {                    \
    in_turn();                                                                                                    \
    read_runs<T>(runs, columns, lanes, s, x, out, [&](i64 at) {                                                   \
      i64 place = index[at];                                                                                      \
      return within(fault, place, size, dim) ? place * stride : -1;                                               \
    });                                                                                                           \
  }                                                                                                               \
  KERNEL(index_runs_##bytes)(i64 runs, i64 columns, i32 lanes, Strided s, const T *x, const i64 *list, i64 shift, \
                                                T *out) {                                                         \
    in_turn();                                                                                                    \
    read_runs<T>(runs, columns, lanes, s, x, out, [&](i64 at) { return list[at] < 0 ? -1 : list[at] >> shift; }); \
  }
RUNS(4, u32)
RUNS(16, Wide)

#define INDEX(bytes, T)                                                                                         \
  KERNEL(gather_##bytes)(i64 n, Strided s, const T *x, const i64 *index, T *out, i64 size, i64 stride, i64 dim, \
                                            Fault fault) {                                                      \
    in_turn();                                                                                                  \
    gather<T>(n, s, x, index, out, size, stride, dim, fault);                                                   \
  }                                                                                                             \
  KERNEL(index_##bytes)(i64 n, Strided s, const T *x, const i64 *list, i64 shift, T *out) {                     \
    in_turn();                                                                                                  \
    index_read<T>(n, s, x, list, shift, out);                                                                   \
  }
INDEX(1, u8)
INDEX(2, u16)
INDEX(4, u32)
INDEX(8, u64)
INDEX(16, Wide)

// Adds the offsets of one index tensor to the list: operands of `s` are the list and the index.
// Negative indices count from the end. One out of range makes the offset negative for good.
KERNEL(index_offsets)(i64 n, Strided s, i64 *list, const i64 *index, i64 size, i64 stride, i64 dim, i32 first,
                                         Fault fault) {
  in_turn();
  for (i64 i = first_index(); i < n; i += all_threads()) {
    i64 at[2];
    locate<2>(s, i, at);
    i64 given = index[at[1]];
    i64 place = given < 0 ? given + size : given;
    bool good = (u64)place < (u64)size;
    if (!good) tell(fault, 0, given, dim, size);
    i64 before = first ? 0 : list[at[0]];
    list[at[0]] = good && before >= 0 ? before + place * stride : -1;
  }
}
