#include "model/import/step_names.h"

#include <algorithm>
#include <cctype>

namespace fuseline {

std::string language_name(const std::string& text, const std::string& otherwise) {
  constexpr std::size_t kLongest = 40;
  std::string name;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 128 && std::isalnum(byte) != 0)
      name += static_cast<char>(std::tolower(byte));
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty()) return otherwise;
  return std::isdigit(static_cast<unsigned char>(name.front())) != 0 ? otherwise + "_" + name
                                                                     : name;
}

StepNames::StepNames(const Draft& draft, const Widths& widths, std::set<std::string> taken)
    : draft_(draft), widths_(widths), taken_(std::move(taken)), steps_(draft.steps.size()) {
  // The stream and what the block gives are called first, so that nobody takes their names.
  for (std::size_t i = 0; i < draft_.matrices.size(); ++i)
    if (draft_.matrices[i].kind == MatrixKind::input)
      names_[draft_.all_of(i)] = unused(language_name(draft_.matrices[i].name, "input"));
  const char* last = "y";
  for (const MatrixColumns& output : draft_.outputs) {
    if (!names_.contains(output)) names_[output] = unused(last);
    last = "z";
  }
  ask_for_names();
  for (std::size_t i = 0; i < draft_.steps.size(); ++i)
    if (draft_.steps[i].live) name_step(i);
}

// Readers come behind, so they ask first; a rotation asks for what it was asked for.
void StepNames::ask_for_names() {
  for (std::size_t i = draft_.steps.size(); i-- > 0;) {
    const DraftStep& step = draft_.steps[i];
    if (!step.live) continue;
    for (std::size_t r = 0; r < step.reads.size(); ++r) {
      if (r < step.behind.size()) {
        wanted_.emplace(step.reads[r], Wanted{step.behind[r], step.joint});
      }
      if (!step.hands_on || r >= step.writes.size()) continue;
      const auto asked = wanted_.find(draft_.all_of(step.writes[r]));
      if (asked != wanted_.end()) {
        const Wanted handed = asked->second;
        wanted_.insert_or_assign(step.reads[r], handed);
      }
    }
  }
}

// What reads it knows best, then what it reads, then the module it comes from.
StepName StepNames::name_of_product(const DraftStep& step) const {
  const std::size_t result = step.writes.front();
  if (!step.name.site.empty()) return step.name;
  if (const auto asked = wanted_.find(draft_.all_of(result)); asked != wanted_.end())
    return asked->second.name;
  for (const MatrixColumns& part : widths_.parts(result)) {
    const auto asked = wanted_.find(part);
    if (asked != wanted_.end() && asked->second.joint) return *asked->second.joint;
  }
  const auto maker = draft_.matrices[step.reads.front().matrix].made_by;
  if (maker && draft_.steps[*maker].ahead) return *draft_.steps[*maker].ahead;
  std::string owner = draft_.matrices[step.reads[1].matrix].name;
  if (owner.ends_with(".weight")) owner.resize(owner.size() - std::string(".weight").size());
  const std::string module = language_name(owner.substr(owner.rfind('.') + 1), "linear");
  return {.site = module, .result = module, .weight = module};
}

void StepNames::name_step(std::size_t at) {
  const DraftStep& step = draft_.steps[at];
  StepName name = step.call == "linear" ? name_of_product(step) : step.name;
  if (step.hands_on && step.writes.size() == 1) {
    const auto asked = wanted_.find(draft_.all_of(step.writes.front()));
    const std::string role = asked == wanted_.end() ? "x" : asked->second.name.result;
    name.op += "_" + role;
    name.result = role + name.result;
  }
  if (name.counted) {
    const std::string count = std::to_string(++counts_[name.site]);
    name.site += count;
    if (const std::size_t mark = name.result.find('#'); mark != std::string::npos)
      name.result.replace(mark, 1, count);
  }
  NamedStep& named = steps_[at];
  named.label = name.op.empty() ? name.site : name.site + "/" + name.op;
  for (std::size_t i = 0; i < step.writes.size(); ++i) {
    const MatrixColumns all = draft_.all_of(step.writes[i]);
    if (!names_.contains(all)) {
      names_[all] = unused(i == 1 && !name.second.empty() ? name.second : name.result);
    }
    named.results.push_back(names_[all]);
    int number = 0;
    for (const MatrixColumns& part : widths_.parts(step.writes[i])) {
      ++number;
      if (names_.contains(part)) continue;
      const auto asked = wanted_.find(part);
      names_[part] = unused(asked != wanted_.end() ? asked->second.name.result
                                                   : name.result + "_" + std::to_string(number));
    }
  }
  name_weights(step, !name.weight.empty() ? name.weight : !name.op.empty() ? name.op : name.site);
}

void StepNames::name_weights(const DraftStep& step, const std::string& base) {
  bool first = step.call != "+";
  for (const MatrixColumns& read : step.reads) {
    const DraftMatrix& matrix = draft_.matrices[read.matrix];
    if (matrix.kind == MatrixKind::weight) {
      if (!names_.contains(read)) names_[read] = unused((first ? "w_" : "b_") + base);
      first = false;
    } else if (matrix.kind == MatrixKind::table && !names_.contains(read)) {
      names_[read] = unused(matrix.name.substr(0, matrix.name.find(' ')));
    }
  }
}

std::string StepNames::unused(const std::string& name) {
  std::string free = taken_.unused(name);
  taken_.add(free);
  return free;
}

}  // namespace fuseline
