// Packs on their way from global to shared memory while a thread does something else. A thread may
// read what it fetched itself once it has waited; others must be told.

__device__ __forceinline__ void fetch_pack(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
#else
  *(Pack<u32> *)to = *(const Pack<u32> *)from;
#endif
}

// Ends a group of fetches.
__device__ __forceinline__ void fetched_so_far() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for all groups but the last N.
template <int N> __device__ __forceinline__ void wait_for_all_but() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}
