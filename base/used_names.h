// Names of which each is used once, and the numbers that make others of them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

namespace fuseline {

class UsedNames {
 public:
  UsedNames() = default;
  explicit UsedNames(std::set<std::string> names) : names_(std::move(names)) {}

  // False where the name was used already.
  bool add(const std::string& name) { return names_.insert(name).second; }

  // The name, or the first of name_2, name_3, ... that is not used.
  [[nodiscard]] std::string unused(const std::string& name) const {
    if (!names_.contains(name)) return name;
    // Names stay used, so the search begins where the last one ended: a block may have thousands
    // of the same name.
    for (int& number = numbers_.try_emplace(name, 2).first->second;; ++number) {
      std::string next = name + "_" + std::to_string(number);
      if (!names_.contains(next)) return next;
    }
  }

 private:
  std::set<std::string> names_;
  mutable std::map<std::string, int> numbers_;  // all smaller ones are used
};

}  // namespace fuseline
