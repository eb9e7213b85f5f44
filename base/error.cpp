#include "base/error.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <initializer_list>

#include "base/printable.h"
#include "base/units.h"

namespace fuseline {

namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Levenshtein distance, case-insensitive; O(|a|·|b|) time, O(|b|) space.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

// "  12 | q = rms_norm(x)" and a mark below the column. Of a long line the part around the column.
std::string shown_line(const InputProblem& problem) {
  constexpr std::size_t kBefore = 60, kMost = 120;
  const std::size_t column = problem.column > 0 ? static_cast<std::size_t>(problem.column) - 1 : 0;
  const MarkedLine line = marked_line(problem.shown, column, kBefore, kMost);
  const std::string number = std::to_string(problem.line);
  return "  " + number + " | " + line.text + "\n  " + std::string(number.size(), ' ') + " | " +
         std::string(line.mark, ' ') + "^";
}

}  // namespace

void throw_count_overflow(const char* unit) {
  throw InputError({.message = std::string("a count of ") + unit + " exceeds 64 bits",
                    .allowed = "smaller dimensions"});
}

InputError::InputError(InputProblem problem)
    : std::runtime_error(format_problem(problem)), problem_(std::move(problem)) {}

// The parts may hold what the user wrote, of any length and with any bytes.
std::string format_problem(const InputProblem& problem) {
  constexpr std::size_t kLongestValue = 200, kLongestPath = 1000, kLongestMessage = 4000;
  InputProblem p = problem;
  p.file = printable(p.file, kLongestPath);
  for (std::string* part : {&p.field, &p.value, &p.nearest})
    *part = printable(*part, kLongestValue);
  p.message = printable_lines(p.message, kLongestMessage);  // a compiler's has lines of its own
  p.allowed = printable(p.allowed, kLongestMessage);
  std::string text;
  const auto add = [&text](std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) text.append(part);
  };
  if (!p.file.empty()) {
    add({p.file});
    if (p.line > 0) add({":", std::to_string(p.line)});
    if (p.line > 0 && p.column > 0) add({":", std::to_string(p.column)});
    add({": "});
  }
  add({p.field});
  if (!p.value.empty()) add({p.field.empty() ? "'" : " = '", p.value, "'"});
  if (!p.field.empty() || !p.value.empty()) add({": "});
  add({p.message});
  if (!p.allowed.empty()) add({"; allowed: ", p.allowed});
  if (!p.nearest.empty()) add({"; did you mean '", p.nearest, "'?"});
  if (!p.shown.empty()) add({"\n", shown_line(p)});
  return text;
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  // Two longer ones would be compared for minutes, and nobody would see where they differ.
  constexpr std::size_t kLongestName = 200;
  std::string best;
  if (name.size() > kLongestName) return best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 2) + 1;
  for (const std::string& candidate : candidates) {
    // No need to look: as many characters as the lengths differ by must be added or taken away.
    if (candidate.size() >= name.size() + best_distance) continue;
    if (name.size() >= candidate.size() + best_distance) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

void fail_assertion(const char* condition, const char* file, int line, std::string_view context) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": assertion '" + condition +
                      "' failed: " + std::string(context));
}

}  // namespace fuseline
