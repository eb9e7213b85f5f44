#include "cuda/compile/cache_key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cuda/compile/device_headers.h"
#include "cuda/emit/comment.h"

namespace fuseline::cuda {

std::string cache_key(const Compiler& compiler, const SmCode& code, const Source& source) {
  const ToolkitVersion version = compiler.version();
  return fmt::format("cuda {}.{}\n{}\n{}", version.major, version.minor,
                     fmt::join(compiler.options(code), " "),
                     join_headers(source.name, std::string(without_comment(source.text))));
}

}  // namespace fuseline::cuda
