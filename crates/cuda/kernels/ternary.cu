// Functions of three operands, x, y and z; p is the host number.

TAIL_REAL(lerp, {
  // Without a third operand the weight is the number.
  T weight = c ? z : p;
  T way = y - x;
  return ::fabs(weight) < (T)0.5 ? x + weight * way : y - way * ((T)1 - weight);
})
TAIL_REAL(addcmul, return x + p * y * z;)
TAIL_WHOLE(addcmul, return x + p * y * z;)
TAIL_REAL(addcdiv, return x + p * y / z;)
TAIL_REAL(clamp, {
  T above = x < y || y != y ? y : x;
  T within = above > z || z != z ? z : above;
  return x != x || above != above ? x + above : within;
})
TAIL_WHOLE(clamp, {
  T above = x < y ? y : x;
  return above > z ? z : above;
})
