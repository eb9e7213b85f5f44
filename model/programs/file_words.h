// Words of a plan's text for what has names with spaces, or none, elsewhere.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/plan.h"

namespace fuseline::words {

std::string of(Implementation implementation);  // "epilogue_GEMM"
std::string of(Relation relation);              // "gradient_of"
std::optional<Implementation> implementation(const std::string& word);
std::optional<KernelKind> kernel_kind(const std::string& word);
std::optional<Relation> relation(const std::string& word);
std::optional<Role> role(const std::string& word);
std::optional<Dtype> dtype(const std::string& word);
std::vector<std::string> implementations();
std::vector<std::string> dtypes();

}  // namespace fuseline::words
