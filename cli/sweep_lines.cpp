#include "cli/sweep_lines.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/sqlite_table.h"
#include "cli/long_work.h"
#include "cli/output_file.h"
#include "cli/shared_run.h"
#include "sim/ranks/hand_out.h"
#include "sim/ranks/journal.h"
#include "sim/ranks/ranks.h"
#include "sim/ranks/shared_work.h"
#include "sim/report/predict_csv.h"

namespace fuseline {

namespace {

constexpr std::size_t kCheckedFirst = 2'000;  // cells that are all checked before the first is run

// What the first rank keeps of a sweep.
struct Kept {
  std::unique_ptr<Journal> journal;
  std::vector<std::string> lines;  // of each cell; empty: not yet
  std::vector<std::size_t> open;
};

// What the first rank does before the sweep begins.
void check_output(const SweepLines& how) {
  if (!how.output) return;
  check_writable(*how.output, "--output");
  if (!how.resume || keeps_journal(*how.output)) return;
  throw InputError({.file = kCommandLine,
                    .field = "--resume",
                    .value = *how.output,
                    .message = "is no file that a sweep could go on with",
                    .allowed = "--output FILE"});
}

Kept opened(const SweepGrid& grid, std::unique_ptr<Journal> journal) {
  Kept kept;
  kept.journal = std::move(journal);
  kept.lines.resize(grid.cells());
  if (kept.journal)
    for (const auto& [cell, lines] : kept.journal->finished())
      if (cell < kept.lines.size()) kept.lines[cell] = lines;
  for (std::size_t i = 0; i < kept.lines.size(); ++i)
    if (kept.lines[i].empty()) kept.open.push_back(i);
  return kept;
}

std::string lines_of_cell(const SweepGrid& grid, std::size_t number) {
  const SweptCase swept = predict_cell(grid.cell(number));
  return predictions_csv_rows(swept.what, swept.predictions);
}

// False: it was stopped.
bool run(Ranks& ranks, const SweepGrid& grid, Kept& kept) {
  const InterruptGuard guard;
  ProgressBar bar;
  const std::size_t before = kept.lines.size() - kept.open.size();
  HandOut how;
  how.work = [&](std::size_t cell) { return lines_of_cell(grid, cell); };
  how.take = [&](std::size_t cell, const std::string& lines) {
    if (kept.journal) kept.journal->add(cell, lines);
    kept.lines[cell] = lines;
  };
  how.stop = InterruptGuard::flag();
  how.progress = [&](std::size_t done, std::size_t) {
    bar.show(fmt::format("{} of {} cells{}", before + done, kept.lines.size(),
                         ranks.count() > 1 ? fmt::format(" on {} ranks", ranks.count()) : ""),
             static_cast<double>(before + done) / static_cast<double>(kept.lines.size()));
  };
  return hand_out(ranks, kept.open, how);
}

struct Swept {
  bool first = true, finished = false;
  Kept kept;
};

Swept swept_on_all_ranks(const SweepGrid& grid, const SweepLines& how) {
  Ranks ranks;
  SharedStart start{.what = fmt::format("sweep of {} cells", grid.cells()),
                    .asked = how.asked,
                    .resume = how.resume,
                    .check = [&how] { check_output(how); }};
  if (how.output && keeps_journal(*how.output)) start.journal = journal_of(*how.output);
  Swept out{.first = ranks.first(), .finished = false, .kept = {}};
  out.kept = opened(grid, begin_together(ranks, start));
  out.finished = run(ranks, grid, out.kept);
  return out;
}

}  // namespace

CommandResult sweep_lines(const SweepGrid& grid, const SweepLines& how) {
  if (grid.cells() <= kCheckedFirst)
    for (std::size_t i = 0; i < grid.cells(); ++i) static_cast<void>(grid.cell(i));
  Swept swept = swept_on_all_ranks(grid, how);
  if (!swept.first) return {};
  Kept& kept = swept.kept;
  if (!swept.finished) {
    if (kept.journal)
      fmt::print(stderr,
                 "fuseline: stopped; {} of {} cells are kept in {}: the same command with --resume "
                 "goes on\n",
                 kept.journal->finished().size(), grid.cells(), journal_of(*how.output));
    end_as_interrupted();
  }
  std::string text = predictions_csv_header();
  for (const std::string& lines : kept.lines) text += lines;
  if (!how.output) return {std::move(text), {}, ExitStatus::done};
  write_file_atomically(*how.output,
                        named_as_sqlite(*how.output) ? sqlite_of_csv("predictions", text) : text);
  if (kept.journal) kept.journal->remove();
  return {{}, fmt::format("fuseline: written {}\n", *how.output), ExitStatus::done};
}

}  // namespace fuseline
