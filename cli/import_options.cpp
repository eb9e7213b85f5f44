#include "cli/import_options.h"

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline {

void MeasuredTexts::add_to(Options& options) {
  options.text("--title", "TEXT", "what was measured", title);
  options.text("--device", "TEXT", "the GPU as its driver names it", device);
  options.text("--driver", "TEXT", "version of the driver", driver);
  options.text("--toolkit", "TEXT", "version of CUDA", toolkit);
  options.text("--framework", "TEXT", "what ran the block, with its version", framework);
  options.text("--date", "TEXT", "when it was measured", date);
  options.text("--clocks", "TEXT", "locked or not, and how high", clocks);
  options.text("--command", "TEXT", "the command that measured", command);
}

void MeasuredTexts::add_folder_to(Options& options) {
  options.text("--output", "FOLDER", "the measurement folder to write", output);
  options.flag("--extend", "add to a folder that is there; equal cases are replaced", extend);
  options.flag("--replace", "replace a measurement folder that is there", replace);
}

void MeasuredTexts::take(MeasurementMeta& meta, std::vector<std::string>& notes) const {
  struct Field {
    const char* option;
    const std::optional<std::string>& given;
    std::string& target;
    bool needed;
  };
  std::vector<std::string> unknown;
  for (const Field& f :
       {Field{"--title", title, meta.title, false}, Field{"--device", device, meta.device, true},
        Field{"--driver", driver, meta.driver, true},
        Field{"--toolkit", toolkit, meta.toolkit, true},
        Field{"--framework", framework, meta.framework, false},
        Field{"--date", date, meta.date, true}, Field{"--clocks", clocks, meta.clocks, true},
        Field{"--command", command, meta.command, false}}) {
    if (f.given) f.target = *f.given;
    if (f.needed && f.target.empty()) unknown.emplace_back(f.option);
  }
  if (!unknown.empty()) {
    notes.push_back(fmt::format("not recorded: {}", fmt::join(unknown, ", ")));
  }
}

ExistingFolder MeasuredTexts::existing() const {
  if (extend && replace) {
    throw InputError({.file = kCommandLine,
                      .field = "--replace",
                      .message = "contradicts --extend",
                      .allowed = "one of them"});
  }
  return extend    ? ExistingFolder::extend
         : replace ? ExistingFolder::replace
                   : ExistingFolder::refuse;
}

const std::string& required_option(const char* option, const std::optional<std::string>& text,
                                   const char* allowed) {
  if (text) return *text;
  throw InputError({.file = kCommandLine,
                    .field = option,
                    .message = "is missing: the file does not say it",
                    .allowed = allowed});
}

void check_profiled_block(const SelectionTexts& block) {
  if (!block.block) required_option("--model", block.model, "the model whose block was profiled");
  required_option("--gpu", block.gpu, "the GPU it ran on");
  const std::string& phase = required_option("--phase", block.phase, "forward, decode, train");
  if (phase == "decode") {
    required_option("--context", block.context, "tokens in the cache, the new ones included");
  } else {
    required_option("--seq", block.seq, "tokens per sequence");
  }
}

}  // namespace fuseline
