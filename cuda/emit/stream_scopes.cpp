#include "cuda/emit/stream_scopes.h"

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::cuda {

StreamScopes::StreamScopes(const Program& program, StreamParameters& parameters, std::int64_t cols)
    : program_(program), parameters_(parameters), parts_(parts_of(program)) {
  for (const char* name : {"p", "state", "place", "block"}) taken_.unique(name);
  run.cols = after_block.cols = finish.cols = last_walk.cols = cols;
  last_walk.outer = &run;
  last_walk.place = "step";
  last_walk.indent = 6;
}

StreamScope StreamScopes::inner(const char* place, std::int64_t cols) {
  StreamScope scope;
  scope.place = taken_.unique(place);
  scope.cols = cols;
  scope.indent = current_->indent + 2;
  scope.outer = current_;
  return scope;
}

void StreamScopes::line(const std::string& text) {
  current_->text += std::string(static_cast<std::size_t>(current_->indent), ' ') + text + "\n";
}

std::string StreamScopes::variable(const std::string& wanted, const std::string& code) {
  const std::string name = taken_.unique(wanted);
  line(fmt::format("const auto {} = {};", name, code));
  return name;
}

std::string StreamScopes::place_of(std::int64_t cols, int each) {
  const std::string whole = here();
  const std::int64_t there = part >= 0 ? part_at(part).cols : current_->cols;
  const std::int64_t wanted = cols * 8 / each;
  if (wanted == there) return whole;
  // Groups of a narrow value behind a pair map can want more columns than are walked.
  if (wanted > there)
    throw MissingError(
        fmt::format("program {}: no kernel yet for values of {} columns in a walk over {}",
                    program_.name, wanted, there));
  std::string& narrow = current_->places[{part, wanted}];
  if (narrow.empty())
    narrow =
        variable("part", fmt::format("within({}, p.{})", whole, parameters_.count("cols", wanted)));
  return narrow;
}

std::string StreamScopes::place_of_part(int index) {
  if (index < 0) return current_->place;
  const Part& p = part_at(index);
  const std::string parent = place_of_part(p.parent);
  std::string& name = current_->places[{index, -1}];
  if (name.empty())
    name = variable(p.name, fmt::format("columns({}, {}, {})", parent, p.begin, p.cols));
  return name;
}

std::string walk_text(const StreamScope& scope) {
  return fmt::format("    walk(place, [&](const auto& {}) {{\n{}    }});\n", scope.place,
                     scope.text);
}

}  // namespace fuseline::cuda
