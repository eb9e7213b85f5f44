#include "base/thread_sharing.h"

#include "base/parallel_for.h"

namespace fuseline {

SharedTexts ThreadSharing::texts(const std::string& name, std::size_t count, const Work& work,
                                 const Progress& progress) {
  static_cast<void>(name);
  SharedTexts out{.texts = std::vector<std::string>(count)};
  ParallelOptions parallel;
  parallel.threads = threads_;
  parallel.stop = stop_;
  parallel.progress = progress;
  out.all = parallel_for(
      count, [&](std::size_t i) { out.texts[i] = work(i); }, parallel);
  return out;
}

std::size_t ThreadSharing::width() const {
  return threads_ > 0 ? threads_ : static_cast<std::size_t>(available_threads());
}

}  // namespace fuseline
