#include "sim/selection/judge_request.h"

#include "base/data_dir.h"
#include "base/error.h"
#include "sim/selection/selection.h"

namespace fuseline {

std::vector<JudgedFigure> judge_figures(
    const std::optional<std::string>& file, const std::optional<std::string>& gpu,
    const std::function<void(std::size_t done, std::size_t count)>& progress) {
  const std::string path = file.value_or((data_dir() / "published" / "figures.csv").string());
  std::vector<PublishedFigure> published = load_published_figures(path);
  if (gpu) {
    const std::string name = load_gpu_option(gpu).name;
    std::erase_if(published, [&](const PublishedFigure& f) { return f.gpu != name; });
    if (published.empty()) {
      throw InputError({.file = kCommandLine,
                        .field = "--gpu",
                        .value = *gpu,
                        .message = "no figure was published of it",
                        .allowed = "a GPU of " + path});
    }
  }
  std::vector<JudgedFigure> figures;
  for (const PublishedFigure& f : published) {
    if (progress) progress(figures.size(), published.size());
    figures.push_back(judge(f));
  }
  return figures;
}

}  // namespace fuseline
