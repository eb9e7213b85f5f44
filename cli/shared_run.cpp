#include "cli/shared_run.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <thread>
#include <vector>

#include "base/data_files.h"
#include "base/error.h"
#include "base/path_kind.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"

namespace fuseline {

namespace {

// Options that say where to write.
constexpr std::array<std::string_view, 2> kWritten = {"--output", "--plot"};

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool says_where_to_write(const std::string& word) {
  return std::ranges::any_of(kWritten, [&](std::string_view option) {
    return word.starts_with(option) && word.size() > option.size() && word[option.size()] == '=';
  });
}

// mpirun ends all ranks when one ends with an error, also one that has not printed its message yet.
// So the others give the first, which usually has the same error, time to print it and to end. It
// is a mistake of this rank alone if nobody has ended it by then.
void wait_for_the_first_rank() {
  constexpr std::chrono::seconds kTimeToSpeak{5};
  if (Ranks::rank_in_environment() > 0) std::this_thread::sleep_for(kTimeToSpeak);
}

void refuse_resume(const std::string& what, const std::optional<std::string>& output) {
  if (output && keeps_journal(*output)) return;
  throw InputError({.file = kCommandLine,
                    .field = "--resume",
                    .value = output.value_or(""),
                    .message = output ? "is no file that " + what + " could go on with"
                                      : "goes on with what is kept beside a file",
                    .allowed = "--output FILE"});
}

}  // namespace

CommandResult one_rank_speaks(const std::function<CommandResult()>& command) {
  try {
    return command();
  } catch (const InputError&) {
    wait_for_the_first_rank();
    throw;
  } catch (const MissingError&) {
    wait_for_the_first_rank();
    throw;
  }
}

std::string asked_for(const Arguments& args) {
  std::string text;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& word = args[i];
    if (word == "--resume" || says_where_to_write(word)) continue;
    if (std::ranges::find(kWritten, word) != kWritten.end()) {
      ++i;
      continue;
    }
    text += word + "\n";
    for (const std::string& part : split_at_commas(word))
      if (std::error_code none; std::filesystem::is_regular_file(part, none))
        text += read_input_file(part) + "\n";
  }
  return text;
}

std::string journal_of(const std::string& output) { return output + ".journal"; }

bool keeps_journal(const std::string& output) {
  const PathKind kind = kind_of_path(output);
  return !own_descriptor(output) && (kind == PathKind::missing || kind == PathKind::regular);
}

SharedRun::SharedRun(const std::string& what, const Arguments& args,
                     const std::optional<std::string>& output, bool resume) {
  if (!ranks_.first()) StillWorking::hush();
  SharedStart start{.what = what, .asked = asked_for(args), .resume = resume};
  start.check = [&] {
    if (resume) refuse_resume(what, output);
    if (output) check_writable(*output, "--output");
  };
  if (output && (resume || ranks_.count() > 1) && keeps_journal(*output))
    start.journal = journal_of(*output);
  journal_ = begin_together(ranks_, start);
  sharing_ = std::make_unique<RankSharing>(ranks_, journal_.get(), 0, InterruptGuard::flag());
}

SharedRun::~SharedRun() = default;

void SharedRun::done() {
  if (journal_) journal_->remove();
}

}  // namespace fuseline
