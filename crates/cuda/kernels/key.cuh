// Sort keys: an element as an unsigned number whose order is PyTorch's order, as the CPU's
// `sort/key.rs` has it. NaN is the greatest value and all NaNs are equal; -0 equals +0.

__device__ __forceinline__ i32 key_bits(i32 code) {
  return code <= I8 ? 8 : code == I16 || code == F16 || code == BF16 ? 16 : code == I32 || code == F32 ? 32 : 64;
}

__device__ __forceinline__ u64 low_bits(i32 bits) { return ~0ull >> (64 - bits); }

// Negative numbers count down from the sign bit, so they are mirrored; -0 joins +0. `greatest` is
// the pattern of infinity.
__device__ __forceinline__ u64 float_key(u64 word, i32 bits, u64 greatest) {
  u64 sign = 1ull << (bits - 1), all = low_bits(bits);
  if ((word & ~sign) > greatest) return all;
  if (!(word & sign)) return word | sign;
  return word == sign ? sign : ~word & all;
}

__device__ __noinline__ u64 rare_key(const void *x, i64 at, i32 code) {
  switch (code) {
    case BOOL: return ((const u8 *)x)[at] != 0;
    case U8: return ((const u8 *)x)[at];
    case I8: return ((const u8 *)x)[at] ^ 0x80;
    case I16: return ((const u16 *)x)[at] ^ 0x8000;
    case F16: return float_key(((const u16 *)x)[at], 16, 0x7c00);
    case BF16: return float_key(((const u16 *)x)[at], 16, 0x7f80);
    default: return float_key(((const u64 *)x)[at], 64, 0x7ff0000000000000ull);
  }
}

// The key of an element, in its low `key_bits`.
__device__ __forceinline__ u64 key_of(const void *x, i64 at, i32 code) {
  if (code == F32) return float_key(((const u32 *)x)[at], 32, 0x7f800000);
  if (code == I32) return ((const u32 *)x)[at] ^ 0x80000000u;
  if (code == I64) return ((const u64 *)x)[at] ^ 1ull << 63;
  return rare_key(x, at, code);
}

// Writes the element that has a key, where that says all: any NaN, and +0 for both zeros.
__device__ __forceinline__ void put_key(void *to, i64 at, u64 key, i32 code) {
  i32 bits = key_bits(code);
  u64 sign = 1ull << (bits - 1), word = key;
  if (code == F32 || code == F64 || code == F16 || code == BF16) word = key & sign ? key ^ sign : ~key;
  else if (code != BOOL && code != U8) word = key ^ sign;
  switch (bits) {
    case 8: ((u8 *)to)[at] = (u8)word; break;
    case 16: ((u16 *)to)[at] = (u16)word; break;
    case 32: ((u32 *)to)[at] = (u32)word; break;
    default: ((u64 *)to)[at] = word; break;
  }
}

// The key in sorting direction: mirrored for descending, which keeps equal keys in their order.
__device__ __forceinline__ u64 directed(u64 key, i32 code, bool descending) {
  return descending ? ~key & low_bits(key_bits(code)) : key;
}

// Copies an element of any dtype.
__device__ __forceinline__ void copy_element(void *to, i64 to_at, const void *from, i64 at, i32 code) {
  switch (key_bits(code)) {
    case 8: ((u8 *)to)[to_at] = ((const u8 *)from)[at]; break;
    case 16: ((u16 *)to)[to_at] = ((const u16 *)from)[at]; break;
    case 32: ((u32 *)to)[to_at] = ((const u32 *)from)[at]; break;
    default: ((u64 *)to)[to_at] = ((const u64 *)from)[at]; break;
  }
}

// A key and the position that it came from. Pairs of one line differ, and their order is the
// stable order of their elements.
__device__ __forceinline__ bool pair_below(u64 key, u32 position, u64 other_key, u32 other_position) {
  return key < other_key || (key == other_key && position < other_position);
}

// Sorts `count` pairs in shared memory, a power of two, with the whole block. The caller
// synchronises before; after it every thread sees the order.
__device__ void sort_pairs(u64 *keys, u32 *positions, int count) {
  for (int size = 2; size <= count; size <<= 1) {
    for (int distance = size >> 1; distance > 0; distance >>= 1) {
      for (int pair = threadIdx.x; pair < count >> 1; pair += blockDim.x) {
        int a = 2 * pair - (pair & (distance - 1)), b = a + distance;
        bool rises = !(a & size);
        u64 key_a = keys[a], key_b = keys[b];
        u32 at_a = positions[a], at_b = positions[b];
        if (pair_below(key_b, at_b, key_a, at_a) == rises) {
          keys[a] = key_b, keys[b] = key_a;
          positions[a] = at_b, positions[b] = at_a;
        }
      }
      __syncthreads();
    }
  }
}
