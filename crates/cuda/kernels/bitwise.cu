// Operands as bits and as truths, x and y. Truths come out as 0 and 1.

#define WHOLE(name, value) TAIL_WHOLE(name, return value;)
#define TRUTHS(name, value) TAIL_REAL(name, { bool u = x != 0, v = y != 0; return (T)(value); }) \
  TAIL_WHOLE(name, { bool u = x != 0, v = y != 0; return (T)(value); })

TRUTHS(logical_and, u && v)
TRUTHS(logical_or, u || v)
TRUTHS(logical_xor, u != v)
WHOLE(bitwise_and, x & y)
WHOLE(bitwise_or, x | y)
WHOLE(bitwise_xor, x ^ y)
// A bool is stored as whether it is nonzero: p says that it is one.
WHOLE(bitwise_not, p ? x == 0 : ~x)
// p is the number of bits of the dtype.
WHOLE(bitwise_left_shift, y < 0 || y >= p ? 0 : (i64)((u64)x << y))
WHOLE(bitwise_right_shift, y < 0 || y >= p ? x >> 63 : x >> y)

__device__ i64 divisor(i64 a, i64 b) {
  a = a < 0 ? -a : a;
  b = b < 0 ? -b : b;
  while (a != 0) {
    i64 rest = b % a;
    b = a;
    a = rest;
  }
  return b;
}
WHOLE(gcd, divisor(x, y))
TAIL_WHOLE(lcm, {
  i64 common = divisor(x, y);
  i64 multiple = common == 0 ? 0 : x / common * y;
  return multiple < 0 ? -multiple : multiple;
})
