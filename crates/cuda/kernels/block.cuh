// Sums over a warp and over a block; every thread has them.

template <typename C> __device__ C warp_sum(C value) {
  for (int distance = 16; distance > 0; distance >>= 1) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

template <typename C> __device__ C block_sum(C value) {
  __shared__ C warps[32];
  value = warp_sum(value);
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  value = warp_sum(lane < (blockDim.x >> 5) ? warps[lane] : (C)0);
  __syncthreads();
  return value;
}

