// Online softmax, the one step everything is built on.
//
// A part of a row is summed up by two numbers: its maximum m, and l, the sum of exp(x - m). Two parts become
// one: the sum that was taken against the smaller maximum is repaired, and then the sums may be added.
//
// Source    Milakov & Gimelshein 2018, arXiv:1805.02867, algorithm 3 and section 3.1
#pragma once

// What an empty part has for a maximum. Finite, so that LOWEST - LOWEST is 0 and not NaN.
constexpr float LOWEST = -3.402823466e38f;

__device__ inline void merge(float &m, float &l, float m_other, float l_other) {
  const float m_new = fmaxf(m, m_other);
  l = l * expf(m - m_new) + l_other * expf(m_other - m_new);
  m = m_new;
}
