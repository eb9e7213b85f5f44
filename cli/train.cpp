// fuseline train: trains a small model through plans and in fp64, and judges the loss curves.
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/selection.h"
#include "cli/train_output.h"

namespace fuseline {

namespace {

constexpr const char* kTrainedModel = "char-llama";
constexpr std::int64_t kMostSteps = 1'000'000;

struct TrainTexts {
  std::optional<std::string> model, gpu, batch, seq, dtype, policy, steps, seed, threads, out,
      format;
};

// The selection's rules for names and sizes; what training has no use for is not asked.
Selection selection_of(const TrainTexts& texts) {
  SelectionTexts s;
  s.model = texts.model.value_or(kTrainedModel);
  s.gpu = texts.gpu;
  s.phase = "train";
  s.batch = texts.batch.value_or("8");
  s.seq = texts.seq.value_or("64");
  s.dtype = texts.dtype;
  s.policy = texts.policy.value_or("unfused,coda");
  return resolve_selection(std::nullopt, s);
}

training::TrainOptions options_of(const TrainTexts& texts) {
  training::TrainOptions o;
  o.steps = parse_whole_number("--steps", texts.steps.value_or("300"), 1, kMostSteps);
  o.seed = static_cast<std::uint64_t>(parse_whole_number("--seed", texts.seed.value_or("1"), 0,
                                                         std::numeric_limits<std::int64_t>::max()));
  o.workers.threads =
      texts.threads
          ? static_cast<int>(parse_whole_number("--threads", *texts.threads, 1, kMostThreads))
          : executor::available_threads();
  o.workers.stop = InterruptGuard::flag();
  return o;
}

}  // namespace

CommandResult train_command(const Arguments& args) {
  TrainTexts texts;
  Options options(
      "train",
      "Trains a small character-level model through the plans of policies, executed on the CPU, "
      "and "
      "in fp64, with the same weights and batches, and judges the loss curves.",
      {"fuseline train", "fuseline train --policy unfused,torch-compile,coda --output curves.csv",
       "fuseline train --steps 50 --dtype fp16 --seed 2"});
  options.text("--model", "NAME|FILE", "a shipped model, a TOML file (char-llama)", texts.model);
  options.text("--gpu", "NAME|FILE", "whose tiles the executor takes (h100)", texts.gpu);
  options.text("--batch", "B", "sequences of a step (8)", texts.batch);
  options.text("--seq", "T", "characters per sequence (64)", texts.seq);
  options.text("--dtype", "bf16|fp16|fp32", "storage type of the plans (bf16)", texts.dtype);
  options.text("--policy", "P,P,...", "policies, or 'all' (unfused,coda)", texts.policy);
  options.text("--steps", "N", "of AdamW (300)", texts.steps);
  options.text("--seed", "N", "of text, batches and first weights (1)", texts.seed);
  options.text("--threads", "N", "threads (all cores); results do not depend on them",
               texts.threads);
  options.text("--output", "FILE.csv", "writes the loss curves there", texts.out);
  options.text("--format", "table|json", "what to print (table)", texts.format);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  const std::string format =
      parse_word("--format", texts.format.value_or("table"), {"table", "json"});
  training::TrainOptions train = options_of(texts);
  const Selection selection = selection_of(texts);
  if (texts.out) check_writable(*texts.out, "--output");
  const TrainedModel what{selection.model, selection.workload, train.steps, train.seed};

  const training::Training training = run_long_work([&](const ShowProgress& show) {
    train.progress = show;
    return training::train(selection.model, selection.workload, selection.policies, selection.gpu,
                           train);
  });

  const training::Verdict verdict = training::judge(training);
  std::string messages;
  if (texts.out) {
    write_file_atomically(*texts.out, training::curves_csv(training), "--output");
    messages = fmt::format("fuseline: written {}\n", *texts.out);
  }
  if (!verdict.passed()) messages += "fuseline: " + verdict.line() + "\n";
  return {format == "json" ? training_json(what, training, verdict)
                           : training_table(what, training, verdict),
          std::move(messages), verdict.passed() ? ExitStatus::done : ExitStatus::check_failed};
}

}  // namespace fuseline
