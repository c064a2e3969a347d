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

// Where the run of keys equal to `key` that i lies in ends; a warp looks together: at the next
// keys, since most runs are short, then at 32 places of what is left.
__device__ __forceinline__ i64 end_of(const Keys &keys, i64 i, u64 key) {
  int lane = threadIdx.x & 31;
  i64 low = i + 1, high = keys.count, step = 1;
  while (low < high) {
    i64 probe = low + (lane + 1) * step - 1;
    u32 others = ~__ballot_sync(~0u, probe < high && key_at(keys, probe) == key);
    int within = others ? __ffs(others) - 1 : 32;
    if (others) high = min(high, low + (within + 1) * step - 1);
    low += within * step;
    step = (high - low + 32) / 33;
  }
  return low;
}
