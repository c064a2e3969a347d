// Reading where indices say. An element is a run of bytes here: what is read is written as it is, and
// where everything is aligned a run of 16 bytes counts as one element.

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

#define INDEX(bytes, T)                                                                                         \
  KERNEL(gather_##bytes)(i64 n, Strided s, const T *x, const i64 *index, T *out, i64 size, i64 stride, i64 dim, \
                                            Fault fault) {                                                      \
    gather<T>(n, s, x, index, out, size, stride, dim, fault);                                                   \
  }                                                                                                             \
  KERNEL(index_##bytes)(i64 n, Strided s, const T *x, const i64 *list, i64 shift, T *out) {                     \
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
