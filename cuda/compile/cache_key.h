// What tells one compiled source from another. Needs no toolkit: tests remember by it what
// compiled.
#pragma once

#include <string>

#include "cuda/compile/compiler.h"

namespace fuseline::cuda {

// Everything that the code depends on: toolkit, options, text with its headers, but for the comment
// that it opens with.
std::string cache_key(const Compiler& compiler, const SmCode& code, const Source& source);

}  // namespace fuseline::cuda
