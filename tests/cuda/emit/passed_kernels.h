// Which sources compiled as expected in an earlier run, here or where the ledger was written.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/uuid/detail/sha1.hpp>

#include "cuda/compile/cache_key.h"
#include "cuda/compile/compiler.h"
#include "cuda/compile/cubin_cache.h"
#include "tests/cuda/emit/kernel_ledger.h"

namespace fuseline::test {

using cuda::Compiler;
using cuda::CubinCache;
using cuda::SmTarget;
using cuda::Source;

// Sources that passed in an earlier run are not compiled again: the compiler gives the same for the
// same text, device headers, options and toolkit. What is expected is part of the key, so whoever
// expects more writes it there. FUSELINE_COMPILE_AGAIN=1 compiles all of them. They are remembered
// in the folder FUSELINE_PASSED_KERNELS, which clones share as they share ccache's, or else in the
// build's. With FUSELINE_KERNELS_OF_DAY=N, as ./test.sh sets it, a source that the ledger lists is
// compiled on its day alone (kernel_ledger.h); one that is not listed is always compiled. The day
// is the source's, whatever is expected of it. The keys of all that passed, now or before, are
// written behind one another to the file FUSELINE_LOG_OF_KERNELS, of which the ledger is made.
class Passed {
 public:
  Passed(const Compiler& compiler, SmTarget target, const Source& source,
         const std::string& expected)
      : source_(digest(cuda::cache_key(compiler, target, source))),
        key_(digest(source_ + "\n" + expected)) {}

  // Whether it need not be compiled now.
  [[nodiscard]] bool known() const {
    if (std::getenv("FUSELINE_COMPILE_AGAIN") != nullptr) return false;
    if (store().find(key_).has_value()) {
      log();
      return true;
    }
    const char* day = std::getenv("FUSELINE_KERNELS_OF_DAY");
    return day != nullptr && shipped_ledger().lists(key_) && !is_of_day(source_, std::stoull(day));
  }
  void remember() const {
    store().store(key_, {'+'});
    log();
  }

 private:
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
  static const KernelLedger& shipped_ledger() {
    static const KernelLedger ledger(FUSELINE_SOURCE_DIR "/tests/cuda/emit/passed_kernels.txt");
    return ledger;
  }
  void log() const {
    const char* file = std::getenv("FUSELINE_LOG_OF_KERNELS");
    // One write at the end of the file, so that processes and threads may write at the same time.
    if (file != nullptr) std::ofstream(file, std::ios::app) << KernelLedger::line_of(key_) + "\n";
  }

  std::string source_;
  std::string key_;
};

}  // namespace fuseline::test
