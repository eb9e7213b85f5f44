// What each verb of `program` does with one file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

// What of an answer is wanted: one form costs less than all of them.
enum class AnswerForm { text, json, line };

// As written on the command line.
struct ProgramOptions {
  std::optional<std::string> gpu, format, output, kernel, threads, seed, sizes, replays, rounds, to,
      of, kept;
  std::vector<std::string> words;
  bool watch = false, no_counters = false, force = false;
  AnswerForm form = AnswerForm::text;
};

// GPUs that were loaded for files before. Several threads may ask.
class LoadedGpus {
 public:
  std::shared_ptr<const Gpu> load(const std::string& name);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Gpu>> known_;
};

// What the verb says of the file, in the form that is asked for.
struct ProgramAnswer {
  std::string text;             // for people; empty where there are mistakes
  std::string mistakes;         // as text
  std::string in_a_line{};      // for one of many files
  nlohmann::ordered_json json;  // one object with everything
  ExitStatus status = ExitStatus::done;
};

// InputError: an option's value, a file that is not there.
ProgramAnswer answer_program(const std::string& verb, const std::string& path,
                             const ProgramOptions& options, LoadedGpus& gpus);

// The object of a file that gives no answer: it cannot be read, or something is missing here.
nlohmann::ordered_json no_answer_json(const std::string& verb, const std::string& path,
                                      const std::string& why);

}  // namespace fuseline
