// How often a test of random cases runs.
#pragma once

namespace fuseline::test {

// All rounds, or a third of them under the sanitizers, where one takes five to ten times as long
// and the first rounds have met the code already. The presets dev and release run all of them.
constexpr int rounds(int all) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return (all + 2) / 3;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return (all + 2) / 3;
#else
  return all;
#endif
#else
  return all;
#endif
}

}  // namespace fuseline::test
