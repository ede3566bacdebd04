// There is no include guard on purpose: NEON kernels with the dot product
// extension, which sums four products of bytes in one instruction, include
// this.

/// Sums differences as products with 1.
struct ByteDifferences {
  static constexpr std::int64_t most = std::int64_t{1} << 60;  // no limit
  uint32x4_t sum = vdupq_n_u32(0);
  inline void add(uint8x16_t a, uint8x16_t b) {
    sum = vdotq_u32(sum, vabdq_u8(a, b), vdupq_n_u8(1));
  }
  inline uint32x4_t added_to(uint32x4_t total) const {
    return vaddq_u32(total, sum);
  }
};

static inline int8x16_t load_signed(const std::int32_t* p) {
  return vreinterpretq_s8_s32(vld1q_s32(p));
}
