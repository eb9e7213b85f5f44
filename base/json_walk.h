// JSON that is too large to hold: its values one after the other, each with the names that lead to
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fuseline {

// Told of every value in the order of the text. `path`: of each object around it the name under
// which the value stands, of each array an empty name:
//   {"traceEvents": [{"dur": 3}]}  ->  number({"traceEvents", "", "dur"}, 3)
class JsonVisitor {
 public:
  using Path = std::vector<std::string>;

  JsonVisitor() = default;
  JsonVisitor(const JsonVisitor&) = delete;
  JsonVisitor& operator=(const JsonVisitor&) = delete;
  virtual ~JsonVisitor() = default;

  virtual void text(const Path& path, const std::string& value) = 0;
  virtual void number(const Path& path, double value) = 0;
  // A boolean or null.
  virtual void other(const Path& path) = 0;
  virtual void begin(const Path& path, bool object) = 0;
  virtual void end(const Path& path, bool object) = 0;
};

// Keeps nothing of the text. InputError as parse_json, and what the visitor throws.
void walk_json(const std::string& text, const std::string& file, JsonVisitor& visitor);

}  // namespace fuseline
