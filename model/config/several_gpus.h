// Several GPUs are refused by name until they are built.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

inline constexpr const char* kSeveralGpusMessage =
    "several GPUs are not built yet; every prediction is of one GPU";

// Option and field names that ask for several GPUs, without dashes and in any spelling of
// separators: "gpus", "tp", "tensor-parallel-size".
bool asks_for_several_gpus(std::string_view word);

// "8xh100", "8 x h100", "8*h100" → "h100"; "h100x8" too where the part before the x is `known`.
// Nothing for a text that counts no GPUs.
std::optional<std::string> counted_gpu(const std::string& text,
                                       const std::vector<std::string>& known);

}  // namespace fuseline
