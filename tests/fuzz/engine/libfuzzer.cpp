// libFuzzer's entry. FUSELINE_FUZZ_TARGET chooses the target:
//   without it    the program says which there are, a line each: name, dictionary, seeds
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/fuzz/target.h"

namespace {

fuseline::fuzz::Target chosen;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("FUSELINE_FUZZ_TARGET");
  for (const fuseline::fuzz::Target& target : fuseline::fuzz::targets()) {
    if (name == nullptr)
      fmt::print("{} {} {}\n", target.name, target.dictionary, fmt::join(target.seeds, " "));
    else if (target.name == name)
      chosen = target;
  }
  if (name == nullptr) std::exit(0);
  if (chosen.read == nullptr) {
    fmt::print(stderr, "FUSELINE_FUZZ_TARGET = '{}': there is no such target\n", name);
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string bytes(data, data + size);
    static_cast<void>(fuseline::fuzz::read_once(chosen, bytes));
  } catch (const std::exception& error) {
    fmt::print(stderr, "fuzz: {}\n", error.what());
    std::abort();  // libFuzzer keeps the input
  }
  return 0;
}
