// Which sources compiled as expected in an earlier run.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/uuid/detail/sha1.hpp>

#include "cuda/compile/cache_key.h"
#include "cuda/compile/compiler.h"
#include "cuda/compile/cubin_cache.h"

namespace fuseline::test {

using cuda::Compiler;
using cuda::CubinCache;
using cuda::SmTarget;
using cuda::Source;

// Sources that passed in an earlier run are not compiled again: the compiler gives the same for the
// same text, device headers, options and toolkit. What is expected is part of the key, so whoever
// expects more writes it there. FUSELINE_COMPILE_AGAIN=1 compiles all of them. They are remembered
// in the folder FUSELINE_PASSED_KERNELS, which clones share as they share ccache's, or else in the
// build's. With FUSELINE_KERNELS_OF_DAY=N only the sixth that is N's, modulo 6, is compiled of the
// others: ./test.sh asks for that, because a changed device header changes the text of every
// kernel. The day is the source's, whatever is expected of it.
class Passed {
 public:
  Passed(const Compiler& compiler, SmTarget target, const Source& source,
         const std::string& expected)
      : source_(digest(cuda::cache_key(compiler, target, source))),
        key_(digest(source_ + "\n" + expected)) {}

  [[nodiscard]] bool before() const {
    return std::getenv("FUSELINE_COMPILE_AGAIN") == nullptr && store().find(key_).has_value();
  }
  void remember() const { store().store(key_, {'+'}); }
  // Whether it waits for another day.
  [[nodiscard]] bool waits() const {
    const char* day = std::getenv("FUSELINE_KERNELS_OF_DAY");
    return day != nullptr &&
           std::stoull(source_.substr(0, 8), nullptr, 16) % kDays != std::stoull(day) % kDays;
  }

 private:
  static constexpr unsigned kDays = 6;  // until all are compiled

  // A key holds all device headers, a hundred thousand characters, and there are thousands of keys:
  // their SHA-1 stands for them, so that all of them find room.
  static std::string digest(const std::string& key) {
    boost::uuids::detail::sha1 sha;
    sha.process_bytes(key.data(), key.size());
    boost::uuids::detail::sha1::digest_type words;
    sha.get_digest(words);
    return fmt::format("{:08x}", fmt::join(words, ""));
  }
  static CubinCache store() {
    // Next to this process's own folder, which does not outlive it (tests/main.cpp).
    const char* shared = std::getenv("FUSELINE_PASSED_KERNELS");
    return {shared != nullptr
                ? std::filesystem::path(shared)
                : std::filesystem::path(std::getenv("FUSELINE_TEST_STORE")) / "kernels-that-passed",
            Bytes(64 << 20)};
  }
  std::string source_;
  std::string key_;
};

}  // namespace fuseline::test
