// The text of lab/harness and of the labs' stubs, so that checks need no source tree.
#pragma once

#include <map>
#include <string>

namespace fuseline::lab {

// By path in the source tree: "lab/harness/harness.cpp", "docs/labs/03-pointwise-fusion/stub.cpp".
const std::map<std::string, std::string>& embedded_files();

}  // namespace fuseline::lab
