#include "cli/verify_blocks.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/long_work.h"
#include "cli/table.h"
#include "cli/verify_output.h"
#include "model/policy.h"
#include "sim/executor/small_blocks.h"
#include "sim/selection/words.h"

namespace fuseline {

namespace {

using executor::SmallBlock;
using executor::SmallCase;

void refuse_other_words(const SelectionWords& words, const std::optional<std::string>& scenario) {
  const std::vector<std::pair<const char*, const std::optional<std::string>*>> refused = {
      {"SCENARIO.toml", &scenario},
      {"--model", &words.model},
      {"--gpu", &words.gpu},
      {"--batch", &words.batch},
      {"--seq", &words.seq},
      {"--context", &words.context},
      {"--dtype", &words.dtype},
      {"--weights", &words.weights},
      {"--activations", &words.activations},
      {"--kv", &words.kv},
      {"--routing", &words.routing},
      {"--image", &words.image},
      {"--plan", &words.plan}};
  for (const auto& [name, text] : refused)
    if (*text)
      throw InputError({.file = kCommandLine,
                        .field = name,
                        .value = **text,
                        .message = "--all-blocks has sizes and formats of its own",
                        .allowed = "--policy, --phase and --block beside it"});
}

std::vector<SmallBlock> chosen_blocks(const SelectionWords& words) {
  std::vector<SmallBlock> blocks = executor::small_blocks();
  if (!words.block) return blocks;
  std::vector<std::string> names;
  for (const SmallBlock& b : blocks)
    if (std::ranges::find(names, b.config.blocks.front().block) == names.end())
      names.push_back(b.config.blocks.front().block);
  const std::string name = parse_word("--block", *words.block, names);
  std::erase_if(blocks, [&](const SmallBlock& b) { return b.config.blocks.front().block != name; });
  return blocks;
}

std::vector<SmallCase> chosen_cases(const SmallBlock& block, const SelectionWords& words) {
  std::vector<SmallCase> cases = executor::cases_of(block);
  if (words.phase)
    std::erase_if(cases, [&](const SmallCase& c) { return name_of(c.work.phase) != *words.phase; });
  return cases;
}

std::vector<std::string> that_train(std::vector<std::string> names) {
  for (const PolicyInfo& policy : policies())
    if (!policy.trains) std::erase(names, policy.name);
  return names;
}

// Of one block.
struct Tried {
  std::int64_t cases = 0, plans = 0, failed = 0;
  double worst = 0;
  std::string worst_of;
  std::vector<std::string> failures;

  void add(const SmallCase& c, const executor::Verification& done) {
    ++cases;
    for (const executor::VerifiedPolicy& p : done.policies) {
      ++plans;
      if (!p.passed()) ++failed;
      for (const executor::ComparedTensor& t : p.tensors)
        if (t.ratio > worst) {
          worst = t.ratio;
          worst_of = fmt::format("{}, {}", p.policy, c.what);
        }
    }
    if (!done.passed()) failures.push_back(c.what + ": " + first_failure(done));
  }
};

std::string table_of(const std::vector<SmallBlock>& blocks, const std::vector<Tried>& tried) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Tried& t = tried[i];
    rows.push_back({blocks[i].name, std::to_string(t.cases), std::to_string(t.plans),
                    std::to_string(t.failed), t.plans > 0 ? fmt::format("{:.2f}", t.worst) : "-",
                    t.worst_of, t.failed > 0 ? "FAIL" : "pass"});
  }
  return format_table({{"block", Align::left},
                       {"cases"},
                       {"plans"},
                       {"failed"},
                       {"worst ratio"},
                       {"of", Align::left},
                       {"", Align::left}},
                      rows);
}

}  // namespace

CommandResult verify_all_blocks(const SelectionWords& words,
                                const std::optional<std::string>& scenario,
                                executor::VerifyOptions options) {
  refuse_other_words(words, scenario);
  const std::vector<std::string> asked = parse_policies(words.policy.value_or("all"));
  if (words.phase)
    static_cast<void>(parse_word("--phase", *words.phase, {"forward", "decode", "train"}));
  const std::vector<SmallBlock> blocks = chosen_blocks(words);
  const Gpu gpu = load_gpu("h200");
  std::vector<Tried> tried(blocks.size());
  run_long_work([&](const ShowProgress& show) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::vector<SmallCase> cases = chosen_cases(blocks[i], words);
      for (std::size_t j = 0; j < cases.size(); ++j) {
        show(blocks[i].name + ", " + cases[j].what,
             (static_cast<double>(i) + static_cast<double>(j) / static_cast<double>(cases.size())) /
                 static_cast<double>(blocks.size()));
        const std::vector<std::string> names =
            cases[j].work.phase == Phase::train ? that_train(asked) : asked;
        if (names.empty()) continue;
        tried[i].add(cases[j],
                     executor::verify(blocks[i].config, cases[j].work, names, gpu, options));
      }
    }
    return true;
  });

  std::string text =
      "every shipped block at small sizes, in every phase, type and number format; "
      "tiles as on h200\n";
  text +=
      wrap(fmt::format("a plan fails where an error against fp64 is {:g} times the unfused "
                       "plan's, or where its bytes are not those of the prediction",
                       executor::kWorstRatio));
  text += "\n" + table_of(blocks, tried);
  std::int64_t plans = 0, failed = 0;
  std::string messages;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    plans += tried[i].plans;
    failed += tried[i].failed;
    for (const std::string& failure : tried[i].failures)
      messages += fmt::format("fuseline: verify failed: {}, {}\n", blocks[i].name, failure);
  }
  text += fmt::format("{} plans, {} failed\n", plans, failed);
  return {text, messages, failed > 0 ? ExitStatus::check_failed : ExitStatus::done};
}

}  // namespace fuseline
