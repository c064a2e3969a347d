// Keys that sort.cu has sorted, of 32 bits or 64. Those equal to `bad`, the largest, count for
// nothing.

struct Keys {
  const void *first;
  i64 count;
  u64 bad;
  i64 wide;
};
__device__ __forceinline__ u64 key_at(const Keys &keys, i64 i) {
  return keys.wide ? ((const u64 *)keys.first)[i] : ((const u32 *)keys.first)[i];
}
__device__ __forceinline__ bool starts(const Keys &keys, i64 i, u64 key) { return i == 0 || key_at(keys, i - 1) != key; }
__device__ __forceinline__ bool ends(const Keys &keys, i64 i, u64 key) { return i + 1 == keys.count || key_at(keys, i + 1) != key; }

// Where the run of keys equal to `key` that starts at i ends; a warp looks together.
__device__ __forceinline__ i64 end_of(const Keys &keys, i64 i, u64 key) {
  i64 end = i + 1 + (threadIdx.x & 31);
  for (;;) {
    u32 others = ~__ballot_sync(~0u, end < keys.count && key_at(keys, end) == key);
    if (others) return end - (threadIdx.x & 31) + __ffs(others) - 1;
    end += 32;
  }
}

