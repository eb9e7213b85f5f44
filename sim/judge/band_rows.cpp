#include "sim/judge/band_rows.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/data_dir.h"
#include "base/error.h"
#include "base/path_kind.h"
#include "base/piece_text.h"
#include "sim/judge/measured_plans.h"
#include "sim/judge/standard_predictors.h"

namespace fuseline {

namespace {

// Of standard_predictors().
constexpr std::size_t kHierarchy = 1, kLeftOut = 2;

void add_rows(const std::string& folder, std::vector<Residual>& rows) {
  if (kind_of_path(std::filesystem::path(folder) / "plans.csv") != PathKind::missing) {
    std::ranges::copy(plan_rows(folder), std::back_inserter(rows));
    return;
  }
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

std::vector<std::string> folders_with(const char* file) {
  std::vector<std::string> folders;
  for (const auto& entry : folder_entries(data_dir() / "measurements")) {
    if (kind_of_path(entry / file) != PathKind::missing) folders.push_back(entry.string());
  }
  return folders;
}

std::string packed(const std::vector<Residual>& rows) {
  PieceWriter out;
  for (const Residual& r : rows) {
    for (const std::string* word : {&r.work.what, &r.work.phase, &r.work.maker, &r.work.kernels,
                                    &r.work.size, &r.work.apart, &r.model, &r.where, &r.gpu})
      out.word(*word);
    out.whole(static_cast<std::int64_t>(r.standing)).real(r.predicted).real(r.measured);
    out.whole(std::ssize(r.work.traits));
    for (const double trait : r.work.traits) out.real(trait);
    out.whole(std::ssize(r.kernels));
    for (const KernelOutline& k : r.kernels)
      out.word(k.key).real(k.seconds).whole(k.launches).flag(k.other);
  }
  return std::move(out).text();
}

void unpack(const std::string& text, std::vector<Residual>& rows) {
  for (PieceReader in(text); in.more();) {
    Residual r;
    for (std::string* word : {&r.work.what, &r.work.phase, &r.work.maker, &r.work.kernels,
                              &r.work.size, &r.work.apart, &r.model, &r.where, &r.gpu})
      *word = in.word();
    r.standing = static_cast<Standing>(in.whole());
    r.predicted = in.real();
    r.measured = in.real();
    for (std::int64_t left = in.whole(); left > 0; --left) r.work.traits.push_back(in.real());
    for (std::int64_t left = in.whole(); left > 0; --left) {
      KernelOutline k;
      k.key = in.word();
      k.seconds = in.real();
      k.launches = in.whole();
      k.other = in.flag();
      r.kernels.push_back(std::move(k));
    }
    rows.push_back(std::move(r));
  }
}

}  // namespace

// Folders without these hold measurements of another kind: of programs, of exported kernels.
std::vector<std::string> measurement_folders() { return folders_with("block.csv"); }
std::vector<std::string> plan_folders() { return folders_with("plans.csv"); }

std::vector<Residual> band_rows(const std::vector<std::string>& folders) {
  NoSharing alone;
  return band_rows(folders, alone);
}

std::vector<Residual> band_rows(const std::vector<std::string>& folders, Sharing& sharing,
                                const Sharing::Progress& progress) {
  std::string name = "rows of bands";
  for (const std::string& folder : folders) name += "\n" + folder;
  const auto work = [&](std::size_t i) {
    std::vector<Residual> rows;
    add_rows(folders[i], rows);
    return packed(rows);
  };
  const SharedTexts shared = sharing.texts(name, folders.size(), work, progress);
  FUSELINE_ASSERT(shared.all, "nobody stops the judging of measurements");
  std::vector<Residual> rows;
  for (const std::string& text : shared.texts) unpack(text, rows);
  std::ranges::copy(gains_of(rows), std::back_inserter(rows));
  for (Residual& r : rows) r.kernels.clear();  // rows are copied often, and only gains need them
  return rows;
}

}  // namespace fuseline
