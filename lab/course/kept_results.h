// Results of submissions that were judged, one file each, so that a later run does not judge what
// did not change, and a run that was ended loses nothing but what was being judged.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lab/check.h"
#include "lab/secret.h"

namespace fuseline::lab {

// The contents of `files` in the folder, the student, the lab, the secret and fuseline's version:
// when all of it is as before, so is the result. 64 hexadecimal digits.
std::string fingerprint(const std::filesystem::path& folder, const std::vector<std::string>& files,
                        const std::string& student, int lab, const CourseSecret& secret);

class KeptResults {
 public:
  explicit KeptResults(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // "ada/lab-03-0123456789ab.json".
  [[nodiscard]] static std::string name(const std::string& student, int lab,
                                        const std::string& fingerprint);
  // Nothing when there is none, or its file was damaged.
  [[nodiscard]] std::optional<LabResult> find(const std::string& student, int lab,
                                              const std::string& fingerprint) const;
  // InputError: the file cannot be written.
  void keep(const std::string& student, int lab, const std::string& fingerprint,
            const LabResult& result) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace fuseline::lab
