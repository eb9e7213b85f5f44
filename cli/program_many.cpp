#include "cli/program_many.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel_for.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/selection.h"

namespace fuseline {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::vector<std::string> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    if (fs::is_directory(path, error))
      for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
        if (entry.path().extension() == ".fuse") found.push_back(entry.path().string());
    if (error || found.empty())
      throw InputError({.file = path,
                        .message = fs::is_directory(path) ? "the folder holds no text of programs"
                                                          : "there is no such file",
                        .allowed = "texts of programs, *.fuse, and folders that hold some"});
    std::ranges::sort(found);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

// The order in which the files are worked on: those of the same sizes follow each other, because
// what is kept of one, such as how its kernels move through the L2, then serves the next.
std::vector<std::size_t> order_by_sizes(const std::vector<std::string>& files) {
  std::vector<std::pair<std::string, std::size_t>> sizes;
  for (const std::string& path : files) {
    std::string all;
    std::ifstream file;
    std::error_code error;
    if (fs::is_regular_file(path, error)) file.open(path);  // a pipe can be read once
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("size ")) all += line + "\n";
    sizes.emplace_back(std::move(all), sizes.size());
  }
  std::ranges::sort(sizes);
  std::vector<std::size_t> order;
  for (const auto& [text, at] : sizes) order.push_back(at);
  return order;
}

struct Line {
  std::string text;
  ExitStatus status = ExitStatus::done;
};

Line line_of(const std::string& verb, const std::string& path, const ProgramOptions& options,
             LoadedGpus& gpus, bool json) {
  const auto failed = [&](const char* what, ExitStatus status) -> Line {
    if (!json) return {fmt::format("{}: {}\n", path, what), status};
    return {no_answer_json(verb, path, what)
                    .dump(-1, ' ', false, ordered_json::error_handler_t::replace) +
                "\n",
            status};
  };
  try {
    const ProgramAnswer a = answer_program(verb, path, options, gpus);
    if (!json) return {fmt::format("{}: {}\n", path, a.in_a_line), a.status};
    return {a.json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n", a.status};
  } catch (const InputError& e) {
    if (e.problem().file == kCommandLine) throw;  // an option, which is wrong for all files
    return failed(e.what(), ExitStatus::wrong_input);
  } catch (const MissingError& e) {
    return failed(e.what(), ExitStatus::something_missing);
  }
}

}  // namespace

CommandResult answer_programs(const std::string& verb, const std::vector<std::string>& paths,
                              const ProgramOptions& options, bool json) {
  const std::vector<std::string> files = files_of(paths);
  ProgramOptions each = options;
  unsigned threads = 0;  // all
  if (options.threads)
    threads =
        static_cast<unsigned>(parse_whole_number("--threads", *options.threads, 1, kMostThreads));
  each.threads = "1";  // files take turns, not parts of them
  each.form = json ? AnswerForm::json : AnswerForm::line;
  LoadedGpus gpus;
  std::vector<Line> lines(files.size());
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::size_t> order = order_by_sizes(files);
  run_long_work([&](const ShowProgress& show) {
    const auto work = [&](std::size_t i) {
      const std::size_t at = order[i];
      lines[at] = line_of(verb, files[at], each, gpus, json);
    };
    const bool all =
        parallel_for(files.size(), work,
                     {.threads = threads,
                      .stop = InterruptGuard::flag(),
                      .progress = [&](std::size_t done, std::size_t count) {
                        show(verb, static_cast<double>(done) / static_cast<double>(count));
                      }});
    if (!all) throw executor::Cancelled("");
    return true;
  });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CommandResult out;
  std::size_t well = 0;
  for (Line& line : lines) {
    out.output += line.text;
    well += line.status == ExitStatus::done ? 1 : 0;
    if (static_cast<int>(line.status) > static_cast<int>(out.status)) out.status = line.status;
  }
  out.messages = fmt::format("fuseline: {} files, {} without mistakes, {:.2f} s: {:.0f} a minute\n",
                             files.size(), well, took.count(),
                             static_cast<double>(files.size()) * 60 / std::max(1e-9, took.count()));
  return out;
}

}  // namespace fuseline
