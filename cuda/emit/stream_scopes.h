// The scopes of a generated stream or row body: statements at one place of the space each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "cuda/emit/names.h"
#include "cuda/emit/stream_parameters.h"
#include "model/primitives/parts.h"

namespace fuseline::cuda {

// Statements of an inner scope (a lambda) run at places that are found from the outer one's; the
// rows are the same.
struct StreamScope {
  std::string place = "place";
  std::int64_t cols = 0;  // of the space there
  int indent = 4;
  StreamScope* outer = nullptr;
  std::string text{};
  std::map<std::pair<Value, int>, std::string> names{};          // of values at a part
  std::map<std::pair<int, std::int64_t>, std::string> places{};  // of parts and narrower values
};

class StreamScopes {
 public:
  StreamScopes(const Program& program, StreamParameters& parameters, std::int64_t cols);

  // Of the struct's run, after_block and finish, and of the walk that stores what a walked row
  // makes.
  StreamScope run, after_block, finish, last_walk;
  int part = -1;  // where statements are made: index into the program's parts

  [[nodiscard]] StreamScope& current() { return *current_; }
  [[nodiscard]] bool in_run() const { return current_ == &run; }
  [[nodiscard]] const EpilogueParts& parts() const { return parts_; }
  // Statements go to `scope` while `f` runs.
  template <class F>
  auto at(StreamScope& scope, F&& f) {
    struct Back {
      StreamScopes& scopes;
      StreamScope* to;
      ~Back() { scopes.current_ = to; }
    } back{*this, std::exchange(current_, &scope)};
    return f();
  }
  // A lambda's, within the current one.
  StreamScope inner(const char* place, std::int64_t cols);
  void line(const std::string& text);
  // `const auto NAME = CODE;`; returns the name.
  std::string variable(const std::string& wanted, const std::string& code);

  // The place of the current part, and that of a value with so many columns of it, where 8 of the
  // space are `each` of its own.
  std::string here() { return place_of_part(part); }
  std::string place_of(std::int64_t cols, int each = 8);
  std::string unique(const std::string& wanted) { return taken_.unique(wanted); }

 private:
  std::string place_of_part(int index);
  [[nodiscard]] const Part& part_at(int index) const {
    return parts_.parts[static_cast<std::size_t>(index)];
  }
  const Program& program_;
  StreamParameters& parameters_;
  EpilogueParts parts_;
  Names taken_;
  StreamScope* current_ = &run;
};

// `walk(place, [&](const auto& step) { ... });` of a scope's statements.
std::string walk_text(const StreamScope& scope);

}  // namespace fuseline::cuda
