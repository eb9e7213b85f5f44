// What commands share that several ranks may run together: who speaks, and what is kept.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "sim/ranks/shared_work.h"

namespace fuseline {

// One rank of several speaks of a mistake that all have: the first one. mpirun then ends the
// others. A mistake that the first does not have is spoken of a few seconds later.
CommandResult one_rank_speaks(const std::function<CommandResult()>& command);

// All that decides what a command gives: its words but --resume and those that say where to write,
// and the bytes of the files that they name.
std::string asked_for(const Arguments& args);

// Where unfinished work into a file is kept.
std::string journal_of(const std::string& output);
// A pipe, a device or our own standard output keeps no journal: it cannot be gone on with.
bool keeps_journal(const std::string& output);

// A command's work on all its ranks, from here to its end. It keeps a journal beside its output
// where there are several ranks, and where --resume was said.
class SharedRun {
 public:
  // `what`: "search". InputError as begin_together; --resume without an output that can be gone on
  // with.
  SharedRun(const std::string& what, const Arguments& args,
            const std::optional<std::string>& output, bool resume);
  ~SharedRun();
  SharedRun(const SharedRun&) = delete;
  SharedRun& operator=(const SharedRun&) = delete;

  [[nodiscard]] Sharing& sharing() { return *sharing_; }
  [[nodiscard]] bool first() const { return ranks_.first(); }
  // The output is written: what was kept goes.
  void done();

 private:
  Ranks ranks_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<RankSharing> sharing_;
};

}  // namespace fuseline
