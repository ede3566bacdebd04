// There is no include guard on purpose: AVX-512 kernels with VNNI, which sum
// two products of 16 bits, or four of 8, in one instruction, include this.

static inline __m512i madd(__m512i sum, __m512i a, __m512i b) {
  return _mm512_dpwssd_epi32(sum, a, b);
}

/// Adds 128 to the bytes of b, which the instruction reads as unsigned.
static inline __m512i madd_bytes(__m512i sum, __m512i a, __m512i b) {
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0x80808080u));
  return _mm512_dpbusd_epi32(sum, _mm512_xor_si512(b, high), a);
}
static inline __m512i first_of_bytes(__m512i offset) { return offset; }
static inline __m512i madd_counts(__m512i sum, __m512i a, __m512i b) {
  return _mm512_dpbusd_epi32(sum, b, a);
}
