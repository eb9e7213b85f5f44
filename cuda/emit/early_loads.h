// Loads of an epilogue that need no sums: the source of its `early`, which begins them, and of the
// structs that `run` finds them in (kernels/epilogue/run.cuh).
#pragma once

#include <map>
#include <string>

#include "cuda/emit/names.h"
#include "model/primitives/parts.h"
#include "model/primitives/primitives.h"

namespace fuseline::cuda {

class EarlyLoads {
 public:
  // Loads the value in a part (-1: the whole width) by `code`, a call that gives TableVectors.
  // Returns what `run` has for it. Other parts may load the same value, by code of their own.
  std::string load(Value value, const std::string& wanted_name, const EpilogueParts& parts,
                   int part, const std::string& code);
  [[nodiscard]] bool empty() const { return members_.empty(); }
  // The members that an epilogue's struct has for them.
  [[nodiscard]] std::string source() const;

 private:
  std::map<Value, std::string> members_;
  std::map<int, std::string> loads_;  // of each part
  std::map<int, std::string> scopes_;
  Names names_;
  std::string state_;  // the members' names
};

}  // namespace fuseline::cuda
