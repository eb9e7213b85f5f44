#include "lab/student.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::lab {

namespace {

bool may_stand_in_id(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-' || c == '@';
}

}  // namespace

Student::Student(std::string id, CourseSecret secret)
    : id_(std::move(id)), secret_(std::move(secret)) {
  if (!id_.empty() && id_.size() <= 64 && std::ranges::all_of(id_, may_stand_in_id)) return;
  throw InputError({.file = "command line",
                    .field = "--student",
                    .value = id_.empty() ? "\"\"" : id_,
                    .message = "is not a student id",
                    .allowed = "1 to 64 letters, digits, '.', '_', '-' and '@'"});
}

Student Student::unnamed(CourseSecret secret) {
  std::random_device random;
  return Student(fmt::format("self-{:08x}", random()), std::move(secret));
}

std::uint64_t Student::draw(const std::string& what) const {
  return secret_.number(id_ + "/" + what);
}

std::int64_t Student::pick(const std::string& what, const std::vector<std::int64_t>& values) const {
  FUSELINE_ASSERT(!values.empty(), what);
  return values[draw(what) % values.size()];
}

std::string Student::pick_name(const std::string& what,
                               const std::vector<std::string>& values) const {
  FUSELINE_ASSERT(!values.empty(), what);
  return values[draw(what) % values.size()];
}

std::int64_t Student::between(const std::string& what, std::int64_t least,
                              std::int64_t most) const {
  FUSELINE_ASSERT(least <= most, what);
  return least +
         static_cast<std::int64_t>(draw(what) % static_cast<std::uint64_t>(most - least + 1));
}

double Student::factor(const std::string& what) const {
  const std::int64_t below_one = between(what, 5, 30);
  return static_cast<double>(below_one < 16 ? below_one : below_one + 1) / 16;
}

}  // namespace fuseline::lab
