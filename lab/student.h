// Who does a lab: the id and the course's secret decide the shapes, the same on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/secret.h"

namespace fuseline::lab {

class Student {
 public:
  // InputError (field --student) unless 1 to 64 letters, digits, '.', '_', '-' or '@'.
  explicit Student(std::string id, CourseSecret secret = CourseSecret::self_study());
  // Somebody new: "self-" and eight digits by chance.
  static Student unnamed(CourseSecret secret);

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] const CourseSecret& secret() const { return secret_; }

  // One of the values, by the id, the secret and what it is for ("lab1.batch").
  [[nodiscard]] std::int64_t pick(const std::string& what,
                                  const std::vector<std::int64_t>& values) const;
  [[nodiscard]] std::string pick_name(const std::string& what,
                                      const std::vector<std::string>& values) const;
  // From least to most, both included.
  [[nodiscard]] std::int64_t between(const std::string& what, std::int64_t least,
                                     std::int64_t most) const;
  // A factor of sixteenths from 5/16 to 31/16 and not 1, which float holds exactly.
  [[nodiscard]] double factor(const std::string& what) const;

 private:
  [[nodiscard]] std::uint64_t draw(const std::string& what) const;
  std::string id_;
  CourseSecret secret_;
};

}  // namespace fuseline::lab
