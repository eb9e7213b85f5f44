// What is said on a command line: sizes, formats, names. A line each: "seq=2048". Nothing is
// predicted, and no name may be a path, so that no file outside the repository is read.
#include <map>

#include "base/error.h"
#include "base/lists.h"
#include "sim/selection/gemm_request.h"
#include "sim/selection/selection.h"
#include "sim/selection/size_list.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

void read_words(const std::string& bytes) {
  if (bytes.find('/') != std::string::npos || bytes.find('.') != std::string::npos)
    throw InputError({.message = "no paths here"});
  std::map<std::string, std::string> said;
  for (const std::string& line : split_list(bytes, '\n'))
    if (const std::size_t at = line.find('='); at != std::string::npos)
      said[line.substr(0, at)] = line.substr(at + 1);
  const auto word = [&](const char* name) {
    const auto at = said.find(name);
    return at == said.end() ? std::nullopt : std::optional(at->second);
  };
  if (const auto sizes = word("sizes"))
    static_cast<void>(parse_sizes("--seq", *sizes, 1, std::int64_t{1} << 24));
  if (word("m")) {
    static_cast<void>(resolve_gemm({.m = word("m"),
                                    .n = word("n"),
                                    .k = word("k"),
                                    .gpu = word("gpu"),
                                    .dtype = word("dtype"),
                                    .weights = word("weights"),
                                    .activations = word("activations"),
                                    .operands = word("operands"),
                                    .run = word("run"),
                                    .fidelity = word("fidelity")}));
    return;
  }
  SelectionWords words;
  words.model = word("model");
  words.gpu = word("gpu");
  words.phase = word("phase");
  words.batch = word("batch");
  words.seq = word("seq");
  words.context = word("context");
  words.policy = word("policy");
  words.fidelity = word("fidelity");
  words.layers = word("layers");
  words.weights = word("weights");
  words.activations = word("activations");
  words.kv = word("kv");
  static_cast<void>(resolve_selection(std::optional<std::string>(), words));
}

const Registered command_words(
    {.name = "command_words", .dictionary = "words", .seeds = {}, .read = read_words});

}  // namespace
}  // namespace fuseline::fuzz
