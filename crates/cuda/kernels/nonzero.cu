// Where a tensor is not zero, in row-major order. The elements are cut into one part a block: parts
// are counted, the counts summed up, and then each block writes its own rows.

// The bytes of one element under a mask that drops the sign of floats: -0.0 is zero, NaN is not.
__device__ __forceinline__ bool is_nonzero(const void *x, i64 at, i32 bytes, u64 mask) {
  u64 bits;
  switch (bytes) {
    case 1: bits = ((const u8 *)x)[at]; break;
    case 2: bits = ((const u16 *)x)[at]; break;
    case 4: bits = ((const u32 *)x)[at]; break;
    default: bits = ((const u64 *)x)[at]; break;
  }
  return (bits & mask) != 0;
}

__device__ __forceinline__ bool found(i64 i, i64 to, const Strided &s, const void *x, i32 bytes, u64 mask) {
  if (i >= to) return false;
  i64 at[1];
  locate<1>(s, i, at);
  return is_nonzero(x, at[0], bytes, mask);
}

// Block b of `parts` takes the elements from b * length on.
KERNEL(nonzero_count)(i64 n, i64 length, Strided s, i32 bytes, u64 mask, const void *x, i64 *counts) {
  in_turn();
  __shared__ i64 warps[32];
  i64 from = blockIdx.x * length, to = min(from + length, n), count = 0;
  for (i64 i = from + threadIdx.x; i < to; i += blockDim.x) count += found(i, to, s, x, bytes, mask);
  for (int distance = 16; distance > 0; distance >>= 1) count += __shfl_down_sync(~0u, count, distance);
  if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = count;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < (int)(blockDim.x >> 5); ++w) count += warps[w];
    counts[blockIdx.x] = count;
  }
}

// One block of 1024 threads turns the counts into where each part's rows start; their sum follows
// the last.
KERNEL(nonzero_starts)(i64 parts, i64 *counts) {
  in_turn();
  __shared__ i64 sums[1024];
  i64 each = (parts + blockDim.x - 1) / blockDim.x;
  i64 from = min(threadIdx.x * each, parts), to = min(from + each, parts), own = 0;
  for (i64 i = from; i < to; ++i) own += counts[i];
  sums[threadIdx.x] = own;
  __syncthreads();
  for (int distance = 1; distance < blockDim.x; distance <<= 1) {
    i64 before = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
    __syncthreads();
  }
  i64 start = sums[threadIdx.x] - own;
  for (i64 i = from; i < to; ++i) {
    i64 count = counts[i];
    counts[i] = start;
    start += count;
  }
  if (threadIdx.x == blockDim.x - 1) counts[parts] = sums[threadIdx.x];
}

// The tensor's own sizes, the outermost first.
struct Sizes {
  i64 rank;
  i64 sizes[32];
};

// `rows` is how many rows the output has: data that changed meanwhile writes no more.
KERNEL(nonzero_write)(i64 n, i64 length, Strided s, i32 bytes, u64 mask, const void *x, const i64 *starts,
                                         Sizes shape, i64 rows, i64 row_stride, i64 column_stride, i64 *out) {
  in_turn();
  __shared__ i32 warps[32];
  i64 from = blockIdx.x * length, to = min(from + length, n), next = starts[blockIdx.x];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, all = blockDim.x >> 5;
  for (i64 base = from; base < to; base += blockDim.x) {
    i64 i = base + threadIdx.x;
    bool own = found(i, to, s, x, bytes, mask);
    u32 held = __ballot_sync(~0u, own);
    if (lane == 0) warps[warp] = __popc(held);
    __syncthreads();
    i32 before = 0, together = 0;
    for (int w = 0; w < all; ++w) {
      before += w < warp ? warps[w] : 0;
      together += warps[w];
    }
    i64 row = next + before + __popc(held & ((1u << lane) - 1));
    if (own && row < rows) {
      i64 rest = i;
      for (int d = (int)shape.rank - 1; d >= 0; --d) {
        i64 size = shape.sizes[d], left = rest / size;
        out[row * row_stride + d * column_stride] = rest - left * size;
        rest = left;
      }
    }
    next += together;
    __syncthreads();
  }
}
