// Text as the comment that a generated source opens with.
#pragma once

#include <string>
#include <string_view>

namespace fuseline::cuda {

// Every line behind //.
std::string as_comment(const std::string& text);

// The source without its first comment: what kernels are the same code by.
std::string_view without_comment(std::string_view source);

}  // namespace fuseline::cuda
