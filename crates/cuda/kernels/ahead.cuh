// Lines that a team of threads takes one after the other: while it works on one, the next is on its
// way to shared memory. They begin at multiples of 16 bytes, are as long as one, and are held
// whole: `kept` packs a thread.
template <typename T, bool by_warp, int kept> struct Ahead {
  static const int wide = 16 / sizeof(T);
  int packs;

  __device__ static int at(int j) { return Team<by_warp>::place() + j * Team<by_warp>::threads(); }

  // Where this thread's pack is in shared memory, for lines in turn.
  __device__ __forceinline__ static Pack<T> *slot(int turn, int j) {
    extern __shared__ Pack<u32> ahead[];
    return (Pack<T> *)ahead + (turn * kept + j) * blockDim.x + threadIdx.x;
  }

  // Starts to fetch a line, if it is there.
  __device__ __forceinline__ void ask(const T *line, int turn, bool is_there) const {
    if (is_there) {
#pragma unroll
      for (int j = 0; j < kept; ++j)
        if (at(j) < packs) fetch_pack(slot(turn, j), (const Pack<T> *)line + at(j));
    }
    fetched_so_far();
  }

  // Calls `use(i, pack i)` for the thread's packs of a line that was waited for.
  template <typename Use> __device__ __forceinline__ void each(int turn, Use use) const {
#pragma unroll
    for (int j = 0; j < kept; ++j) {
      if (at(j) >= packs) continue;
      Pack<T> pack = *slot(turn, j);
      use(at(j), pack);
    }
  }
};
