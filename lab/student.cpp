#include "lab/student.h"

#include <algorithm>

#include "model/error.h"

namespace fuseline::lab {

namespace {

bool may_stand_in_id(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-' || c == '@';
}

}  // namespace

std::uint64_t stable_hash(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  hash = (hash ^ (hash >> 30U)) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ (hash >> 27U)) * 0x94d049bb133111ebU;
  return hash ^ (hash >> 31U);
}

Student::Student(std::string id) : id_(std::move(id)) {
  if (!id_.empty() && id_.size() <= 64 && std::ranges::all_of(id_, may_stand_in_id)) return;
  throw InputError({.file = "command line",
                    .field = "--student",
                    .value = id_.empty() ? "\"\"" : id_,
                    .message = "is not a student id",
                    .allowed = "1 to 64 letters, digits, '.', '_', '-' and '@'"});
}

std::uint64_t Student::draw(const std::string& what) const { return stable_hash(id_ + "/" + what); }

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

}  // namespace fuseline::lab
