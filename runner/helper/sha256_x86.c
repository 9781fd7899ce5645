#include "sha256.h"

#if defined __x86_64__ && !defined WITHOUT_SHA_NI
#include <cpuid.h>
#include <immintrin.h>

bool sha256_is_built_in(void) {
  unsigned a, b, c, d, extended;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !__get_cpuid_count(7, 0, &a, &extended, &d, &d)) return false;
  return c & bit_SSSE3 && c & bit_SSE4_1 && extended & bit_SHA;
}

/*
 * Four rounds take four words w[0] to w[3] of the message, and these become the words 16 rounds later (Intel, "Intel SHA Extensions", 2013).
 * The instructions want the state as the halves ABEF and CDGH.
 */
__attribute__((target("sha,sse4.1,ssse3"))) void sha256_add_blocks(uint32_t state[8], const unsigned char *at, size_t count) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
  __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (; count > 0; count--, at += 64) {
    __m128i abef_before = abef, cdgh_before = cdgh, w[4];
    for (int i = 0; i < 4; i++) w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(at + 16 * i)), big_endian);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
      __m128i sum = _mm_add_epi32(w[i % 4], _mm_loadu_si128((const __m128i *)(SHA256_K + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      if (i >= 12) continue;
      __m128i minus_7 = _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4);
      w[i % 4] = _mm_add_epi32(_mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]), minus_7);
      w[i % 4] = _mm_sha256msg2_epu32(w[i % 4], w[(i + 3) % 4]);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#else
bool sha256_is_built_in(void) { return false; }
void sha256_add_blocks(uint32_t state[8], const unsigned char *at, size_t count) { (void)state, (void)at, (void)count; }
#endif
