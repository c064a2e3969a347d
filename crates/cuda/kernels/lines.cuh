// Lines of elements that a team of threads takes together: a warp, or the block.

// A NaN is left for what comes after to carry.
struct Larger {
  template <typename C> static __device__ C of(C a, C b) { return b > a ? b : a; }
};
struct Plus {
  template <typename C> static __device__ C of(C a, C b) { return a + b; }
};

// The thread's place in its team, its team's place among all, and what a team finds out together.
template <bool by_warp> struct Team {
  __device__ static int place() { return by_warp ? threadIdx.x & 31 : threadIdx.x; }
  __device__ static int threads() { return by_warp ? 32 : blockDim.x; }
  __device__ static i64 first() { return by_warp ? (i64)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5) : blockIdx.x; }
  __device__ static i64 teams() { return by_warp ? (i64)gridDim.x * (blockDim.x >> 5) : gridDim.x; }

  // Folds the threads' values; every thread has the result. A block's next fold of the same sort
  // needs the other `turn`, unless a barrier comes in between: a slow thread may still read.
  template <typename F, typename C> __device__ __forceinline__ static C fold(C value, C start, int turn = 0) {
    for (int distance = 16; distance > 0; distance >>= 1) value = F::of(value, __shfl_xor_sync(~0u, value, distance));
    if (by_warp) return value;
    __shared__ C warps[2][32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 0) warps[turn][warp] = value;
    __syncthreads();
    value = lane < (blockDim.x >> 5) ? warps[turn][lane] : start;
    for (int distance = 16; distance > 0; distance >>= 1) value = F::of(value, __shfl_xor_sync(~0u, value, distance));
    return value;
  }
  template <typename C> __device__ __forceinline__ static C sum(C value, int turn = 0) { return fold<Plus>(value, (C)0, turn); }
};
