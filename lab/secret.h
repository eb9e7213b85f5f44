// What a course's keys are made from, beside a student's id. Who knows the secret can compute every
// key and every folder's tag; it never lies in a student's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace fuseline::lab {

// Names a file with the secret where no option does.
inline constexpr const char* kSecretVariable = "FUSELINE_LAB_SECRET";

class CourseSecret {
 public:
  // The one that stands in the source of fuseline, for people who learn by themselves. It keeps
  // nothing secret.
  static CourseSecret self_study();

  // The text of a file, without the line end at its end. InputError: no regular file, fewer than 16
  // or more than 4,096 bytes. No message holds the text.
  static CourseSecret from_file(const std::filesystem::path& path);

  // Of the file that an option names, else of the one that the environment names, else
  // self_study().
  static CourseSecret chosen(const std::optional<std::string>& option);

  // For tests and for programs that keep secrets elsewhere.
  static CourseSecret from_text(std::string text);

  [[nodiscard]] bool is_self_study() const { return name_ == "self-study"; }
  // "self-study", or eight digits that say which secret it is and nothing of what is in it.
  [[nodiscard]] const std::string& name() const { return name_; }
  // Its file; empty when there is none.
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }

  // A number that depends on the secret and on every character of `what`.
  [[nodiscard]] std::uint64_t number(const std::string& what) const;
  // Says that a lab's folder was made for this id: 20 hexadecimal digits.
  [[nodiscard]] std::string tag(const std::string& student, int lab) const;

 private:
  CourseSecret(std::string text, std::string name, std::filesystem::path file);
  std::string text_;
  std::string name_;
  std::filesystem::path file_;
};

}  // namespace fuseline::lab
