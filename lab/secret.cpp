#include "lab/secret.h"

#include <cstdlib>

#include <fmt/format.h>

#include "base/data_files.h"
#include "base/error.h"
#include "lab/hmac.h"

namespace fuseline::lab {

namespace {

constexpr std::size_t kLeastBytes = 16;
constexpr Bytes kMostBytes{4096};
constexpr std::size_t kNameDigits = 8;
constexpr std::size_t kTagDigits = 20;

// Public: it makes self-study folders the same on every machine and protects nothing.
constexpr const char* kSelfStudyText = "fuseline: labs for self-study, not a secret";

}  // namespace

CourseSecret::CourseSecret(std::string text, std::string name, std::filesystem::path file)
    : text_(std::move(text)), name_(std::move(name)), file_(std::move(file)) {
  if (name_.empty()) name_ = hex_of(hmac_sha256(text_, "name of this secret"), kNameDigits);
}

CourseSecret CourseSecret::self_study() { return {kSelfStudyText, "self-study", {}}; }

CourseSecret CourseSecret::from_text(std::string text) { return {std::move(text), {}, {}}; }

CourseSecret CourseSecret::from_file(const std::filesystem::path& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) {
    throw InputError({.file = path.string(),
                      .message = "is no file that could hold a course's secret",
                      .allowed = "a text file with at least 16 characters"});
  }
  std::string text = read_input_file(path, kMostBytes);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.size() < kLeastBytes) {
    throw InputError(
        {.file = path.string(),
         .message = fmt::format("holds {} characters, too few for a secret", text.size()),
         .allowed = "at least 16 that nobody can guess, as from: "
                    "head -c 24 /dev/urandom | base64"});
  }
  return {std::move(text), {}, path};
}

CourseSecret CourseSecret::chosen(const std::optional<std::string>& option) {
  if (option) return from_file(*option);
  const char* named = std::getenv(kSecretVariable);
  if (named != nullptr && *named != '\0') return from_file(named);
  return self_study();
}

std::uint64_t CourseSecret::number(const std::string& what) const {
  const Digest digest = hmac_sha256(text_, "number/" + what);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) number = (number << 8U) | digest[i];
  return number;
}

std::string CourseSecret::tag(const std::string& student, int lab) const {
  return hex_of(hmac_sha256(text_, fmt::format("folder/{}/{}", lab, student)), kTagDigits);
}

}  // namespace fuseline::lab
