// There is no include guard on purpose: AVX-512 kernels without VPOPCNTDQ
// include this after their madd(). It counts bits with a table of half bytes.

static inline __m512i bits_of_half_bytes(__m512i x) {
  const __m512i counts = _mm512_broadcast_i32x4(
      _mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
  return _mm512_shuffle_epi8(counts, _mm512_and_si512(x, _mm512_set1_epi8(15)));
}

static inline __m512i add_bits(__m512i sum, __m512i x) {
  const __m512i bytes = _mm512_add_epi8(
      bits_of_half_bytes(x), bits_of_half_bytes(_mm512_srli_epi16(x, 4)));
  return madd(sum, _mm512_maddubs_epi16(bytes, _mm512_set1_epi8(1)),
              _mm512_set1_epi16(1));
}
