#include "sim/ranks/shared_work.h"

#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel_for.h"
#include "base/piece_text.h"
#include "sim/ranks/hand_out.h"
#include "sim/ranks/identity.h"

namespace fuseline {

std::unique_ptr<Journal> begin_together(Ranks& ranks, const SharedStart& start) {
  const std::string identity = start.journal || ranks.count() > 1 ? program_identity() : "";
  const std::vector<std::string> identities =
      ranks.gather(identity + ", command " + TextHash().add(start.asked).text());
  std::unique_ptr<Journal> journal;
  std::exception_ptr refused;
  if (ranks.first()) {
    try {
      refuse_mixed_ranks(identities);
      if (start.check) start.check();
      if (start.journal)
        journal = std::make_unique<Journal>(
            *start.journal,
            fmt::format("{}, {} by {}", start.what, TextHash().add(start.asked).text(), identity),
            start.resume);
    } catch (...) {
      refused = std::current_exception();
    }
  }
  if (ranks.broadcast(refused ? "refused" : "begin") != "begin" && !ranks.first())
    throw InputError({.message = "the first rank refused the work, and says why"});
  if (refused) std::rethrow_exception(refused);
  return journal;
}

std::size_t RankSharing::width() const {
  const std::size_t threads =
      threads_ > 0 ? threads_ : static_cast<std::size_t>(available_threads());
  return threads * static_cast<std::size_t>(ranks_.count());
}

bool RankSharing::agreed(bool mine) { return ranks_.broadcast(mine ? "1" : "0") == "1"; }

// One process needs no messages.
bool RankSharing::here(const std::vector<std::size_t>& open, const Work& work,
                       const std::function<void(std::size_t, std::string)>& take,
                       const Progress& progress) {
  std::mutex mutex;
  ParallelOptions parallel;
  parallel.threads = static_cast<unsigned>(threads_);
  parallel.stop = stop_;
  parallel.progress = progress;
  return parallel_for(
      open.size(),
      [&](std::size_t i) {
        std::string text = work(open[i]);
        const std::scoped_lock lock(mutex);
        take(open[i], std::move(text));
      },
      parallel);
}

SharedTexts RankSharing::texts(const std::string& name, std::size_t count, const Work& work,
                               const Progress& progress) {
  const std::size_t first = std::exchange(begun_, begun_ + count);
  const std::string mark = TextHash().add(name).text() + " ";
  SharedTexts out{.texts = std::vector<std::string>(count)};
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < count; ++i) {
    if (journal_ != nullptr) {
      const auto found = journal_->finished().find(first + i);
      if (found != journal_->finished().end() && found->second.starts_with(mark)) {
        out.texts[i] = found->second.substr(mark.size());
        continue;
      }
    }
    open.push_back(i);
  }
  const auto take = [&](std::size_t i, std::string text) {
    // Where there is nothing to keep, or it was stopped in the middle, it is done again.
    if (journal_ != nullptr && !text.empty()) journal_->add(first + i, mark + text);
    out.texts[i] = std::move(text);
  };
  if (ranks_.count() == 1) {
    out.all = here(open, work, take, progress);
    return out;
  }
  const bool finished = hand_out(
      ranks_, open,
      {.work = work, .take = take, .threads = threads_, .stop = stop_, .progress = progress});
  PieceWriter all;
  if (ranks_.first()) {
    all.flag(finished);
    for (const std::string& text : out.texts) all.word(text);
  }
  const std::string said = ranks_.broadcast(std::move(all).text());
  if (!ranks_.first()) {
    PieceReader reader(said);
    out.all = reader.flag();
    for (std::string& text : out.texts) text = reader.word();
  } else {
    out.all = finished;
  }
  return out;
}

}  // namespace fuseline
