// What the steps, tensors and weights of a draft are called in its text.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/used_names.h"
#include "model/import/draft.h"
#include "model/import/widths.h"

namespace fuseline {

struct NamedStep {
  std::string label;                 // "gateup/gate_up", empty: none
  std::vector<std::string> results;  // of what it writes
};

class StepNames {
 public:
  // `taken`: words of the language and letters.
  StepNames(const Draft& draft, const Widths& widths, std::set<std::string> taken);

  [[nodiscard]] const NamedStep& step(std::size_t at) const { return steps_[at]; }
  // Of a tensor, a part of one, a weight or a table.
  [[nodiscard]] const std::string& of(const MatrixColumns& range) const { return names_.at(range); }

 private:
  struct Wanted {
    StepName name;
    std::optional<StepName> joint;
  };
  void ask_for_names();
  [[nodiscard]] StepName name_of_product(const DraftStep& step) const;
  void name_step(std::size_t at);
  void name_weights(const DraftStep& step, const std::string& base);
  std::string unused(const std::string& name);

  const Draft& draft_;
  const Widths& widths_;
  UsedNames taken_;
  std::map<MatrixColumns, Wanted> wanted_;
  std::map<MatrixColumns, std::string> names_;
  std::map<std::string, int> counts_;
  std::vector<NamedStep> steps_;
};

// A name of the language: letters, digits and underscores.
std::string language_name(const std::string& text, const std::string& otherwise);

}  // namespace fuseline
