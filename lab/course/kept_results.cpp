#include "lab/course/kept_results.h"

#include <system_error>

#include <fmt/format.h>

#include "base/data_files.h"
#include "base/error.h"
#include "base/output_file.h"
#include "base/version.h"
#include "lab/hmac.h"
#include "lab/report.h"
#include "lab/workspace.h"

namespace fuseline::lab {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kNameDigitsOfResult = 12;
constexpr Bytes kLargestResult{std::int64_t{4} << 20};

// What is in a file, or why it cannot be read: both are part of what is judged.
std::string content_of(const fs::path& file) {
  try {
    require_plain_file(file);
    return "text/" + read_input_file(file);
  } catch (const InputError& error) {
    return "error/" + error.problem().message;
  }
}

}  // namespace

std::string fingerprint(const fs::path& folder, const std::vector<std::string>& files,
                        const std::string& student, int lab, const CourseSecret& secret) {
  std::string all = fmt::format("{}/{}/{}/{}", kVersion, secret.name(), lab, student);
  for (const std::string& name : files) {
    all += fmt::format("/{}/{}", name, hex_of(sha256(content_of(folder / name))));
  }
  return hex_of(sha256(all));
}

std::string KeptResults::name(const std::string& student, int lab, const std::string& fingerprint) {
  return fmt::format("{}/{}-{}.json", student, default_folder(lab),
                     fingerprint.substr(0, kNameDigitsOfResult));
}

std::optional<LabResult> KeptResults::find(const std::string& student, int lab,
                                           const std::string& fingerprint) const {
  const fs::path file = folder_ / name(student, lab, fingerprint);
  std::error_code failed;
  if (!fs::is_regular_file(file, failed)) return std::nullopt;
  try {
    LabResult result = result_of_json(read_input_file(file, kLargestResult), file.string());
    if (result.lab != lab) return std::nullopt;
    return result;
  } catch (const InputError&) {
    return std::nullopt;  // it is judged again and the file replaced
  }
}

void KeptResults::keep(const std::string& student, int lab, const std::string& fingerprint,
                       const LabResult& result) const {
  const fs::path file = folder_ / name(student, lab, fingerprint);
  std::error_code failed;
  fs::create_directories(file.parent_path(), failed);
  replace_file(file, result_json(result));
}

}  // namespace fuseline::lab
