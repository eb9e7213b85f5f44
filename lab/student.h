// Who does a lab: the id decides the shapes, the same on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline::lab {

inline constexpr const char* kDefaultStudent = "me";

// 64-bit FNV-1a of the text's bytes (Fowler, Noll, Vo), its bits mixed once more (the finalizer of
// splitmix64) so that remainders of it are even.
std::uint64_t stable_hash(const std::string& text);

class Student {
 public:
  // InputError (field --student) unless 1 to 64 letters, digits, '.', '_', '-' or '@'.
  explicit Student(std::string id = kDefaultStudent);
  [[nodiscard]] const std::string& id() const { return id_; }

  // One of the values, by the id and what it is for ("lab1.batch").
  [[nodiscard]] std::int64_t pick(const std::string& what,
                                  const std::vector<std::int64_t>& values) const;
  [[nodiscard]] std::string pick_name(const std::string& what,
                                      const std::vector<std::string>& values) const;
  // From least to most, both included.
  [[nodiscard]] std::int64_t between(const std::string& what, std::int64_t least,
                                     std::int64_t most) const;

 private:
  [[nodiscard]] std::uint64_t draw(const std::string& what) const;
  std::string id_;
};

}  // namespace fuseline::lab
