// A command's work on all its ranks, with a journal of what is finished.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/sharing.h"
#include "sim/ranks/journal.h"
#include "sim/ranks/ranks.h"

namespace fuseline {

struct SharedStart {
  std::string what;   // "sweep of 60 cells"
  std::string asked;  // all that decides what the work gives
  std::optional<std::filesystem::path> journal{};
  bool resume = false;
  std::function<void()> check{};  // at the first rank, before the journal is opened
};

// Every rank must call it before it does anything else together. The journal is the first rank's,
// where there is one. InputError at every rank: another build, other data files or another command
// at one of them; what `check` says; a journal that cannot be had (Journal).
std::unique_ptr<Journal> begin_together(Ranks& ranks, const SharedStart& start);

// Pieces go to threads and ranks as they become free.
class RankSharing : public Sharing {
 public:
  // Both must outlive it; `journal` may be null. `threads` of this rank; 0: one for each core.
  // `stop` counts at the first rank: no further piece is begun.
  RankSharing(Ranks& ranks, Journal* journal, std::size_t threads = 0,
              const std::atomic<bool>* stop = nullptr)
      : ranks_(ranks), journal_(journal), threads_(threads), stop_(stop) {}

  SharedTexts texts(const std::string& name, std::size_t count, const Work& work,
                    const Progress& progress) override;
  bool agreed(bool mine) override;
  [[nodiscard]] std::size_t width() const override;

 private:
  bool here(const std::vector<std::size_t>& open, const Work& work,
            const std::function<void(std::size_t, std::string)>& take, const Progress& progress);

  Ranks& ranks_;
  Journal* journal_;
  std::size_t threads_;
  const std::atomic<bool>* stop_;
  std::size_t begun_ = 0;  // pieces of all calls: a journal counts on
};

}  // namespace fuseline
