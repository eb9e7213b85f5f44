#include "sim/judge/band_rows.h"

#include <algorithm>
#include <filesystem>

#include "base/data_dir.h"
#include "base/error.h"
#include "base/path_kind.h"
#include "sim/judge/standard_predictors.h"

namespace fuseline {

namespace {

// Of standard_predictors().
constexpr std::size_t kHierarchy = 1, kLeftOut = 2;

void add_rows(const std::string& folder, std::vector<Residual>& rows) {
  const Measurements measurements = load_measurements(folder);
  if (measurements.meta.gpu.empty()) {
    throw InputError({.file = folder + "/meta.toml",
                      .field = "gpu",
                      .message = "is missing",
                      .allowed = "a name of scenarios/gpus"});
  }
  const Gpu gpu = load_gpu(measurements.meta.gpu);
  const std::vector<Predictor> predictors = standard_predictors(gpu, measurements);
  const std::optional<std::size_t> left_out =
      predictors.size() > kLeftOut ? std::optional(kLeftOut) : std::nullopt;
  for (const Scope scope : {Scope::inference, Scope::training}) {
    Measurements part = measurements;
    if (scope == Scope::training) part.gemms.clear();
    const ErrorTable table = validate(part, predictors, scope);
    std::ranges::copy(residuals_of(table, kHierarchy, left_out, gpu.name, standing_of(gpu),
                                   !measurements.meta.version.empty()),
                      std::back_inserter(rows));
  }
}

}  // namespace

std::vector<std::string> measurement_folders() {
  std::vector<std::string> folders;
  for (const auto& entry : folder_entries(data_dir() / "measurements")) {
    // Folders without blocks hold measurements of another kind: of programs, of exported kernels.
    if (kind_of_path(entry / "block.csv") != PathKind::missing) folders.push_back(entry.string());
  }
  return folders;
}

std::vector<Residual> band_rows(const std::vector<std::string>& folders,
                                const FolderProgress& progress) {
  std::vector<Residual> rows;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    if (progress) progress(i, folders.size());
    add_rows(folders[i], rows);
  }
  std::ranges::copy(gains_of(rows), std::back_inserter(rows));
  return rows;
}

}  // namespace fuseline
