#include "cuda/run/rival_turns.h"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::cuda {

namespace {

// Whether the block is one of cuda/rivals/pytorch_open.py.
bool is_open(const ModelConfig& config) {
  return config.is_all("moe") || config.is_all("mmdit") || config.is_all("mamba2");
}

std::string open_refusal(const ModelConfig& config, const Workload& workload) {
  const std::string& block = config.blocks.front().block;
  if (workload.phase == Phase::train) return "it does not train blocks of " + block;
  if (workload.phase == Phase::decode && block != "moe")
    return "it does not decode with blocks of " + block;
  if (workload.formats.weights.quantised()) return "it computes with weights in bf16";
  if (config.qkv_bias || config.out_bias || config.mlp_bias)
    return fmt::format("its {} block has the biases of the shipped models", block);
  return {};
}

// "moe:D=4096:F=14336:...": what the model gives the block's parameters.
std::string open_sizes(const ModelConfig& config) {
  std::string text = config.blocks.front().block;
  for (const auto& [name, size] : {std::pair{"D", config.D},
                                   {"F", config.F},
                                   {"H", config.H},
                                   {"Hkv", config.Hkv},
                                   {"d", config.d}})
    if (size > 0) text += fmt::format(":{}={}", name, size);
  for (const ParameterValues* values : {&config.values, &config.blocks.front().values})
    for (const auto& [name, value] : *values)
      text += fmt::format(":{}={}", name,
                          std::visit([](auto v) { return static_cast<double>(v); }, value));
  return text;
}

}  // namespace

std::string rival_script(const ModelConfig& config) {
  return is_open(config) ? "pytorch_open.py" : "pytorch_blocks.py";
}

const std::vector<std::string>& rival_executions() {
  static const std::vector<std::string> names = {"eager", "composed", "torch-compile"};
  return names;
}

std::string rival_refusal(const ModelConfig& config, const Workload& workload) {
  if (workload.dtype != Dtype::bf16)
    return fmt::format("it computes in bf16, not in {}", name_of(workload.dtype));
  if (workload.phase == Phase::decode && workload.seq != 1)
    return fmt::format("it decodes one token at a time, not {}", workload.seq);
  if (config.sliding_window != 0 && config.sliding_window < workload.kv_tokens())
    return fmt::format("its attention sees all {} tokens, not a window of {}", workload.kv_tokens(),
                       config.sliding_window);
  if (is_open(config)) return open_refusal(config, workload);
  const bool gpt = config.is_all("gpt");
  if (!gpt && !config.is_all("llama"))
    return fmt::format("it has the blocks llama and gpt, not '{}'", config.blocks.front().block);
  if (config.out_bias != gpt || config.mlp_bias != gpt)
    return fmt::format("its {} block has {} biases behind attention and in the MLP",
                       config.blocks.front().block, gpt ? "always" : "no");
  return {};
}

std::string rival_arguments(const ModelConfig& config, const Workload& workload,
                            const std::vector<std::string>& executions) {
  const bool decode = workload.phase == Phase::decode;
  const std::string block =
      is_open(config)
          ? "--open " + open_sizes(config)
          : fmt::format("--custom {},{},{},{},{},{},{}", config.blocks.front().block, config.D,
                        config.F, config.H, config.Hkv, config.d, config.qkv_bias ? 1 : 0);
  return fmt::format("--serve {} --executions {} --phases {} {} {}{}{}", block,
                     fmt::join(executions, ","), name_of(workload.phase),
                     decode ? "--decode-shapes" : "--shapes", workload.batch, decode ? '@' : 'x',
                     decode ? workload.context : workload.seq);
}

void RivalTurns::start(const std::string& command, const ModelConfig& config,
                       const Workload& workload, const std::vector<std::string>& executions,
                       const std::atomic<bool>* stop, RivalLimits limits) {
  wanted_ = executions;
  if (wanted_.empty()) return;
  const std::string why = rival_refusal(config, workload);
  if (!why.empty()) return leave_out("not the same block: " + why);
  try {
    process_ = std::make_unique<RivalProcess>(
        command + " " + rival_arguments(config, workload, wanted_), stop, limits);
  } catch (const MissingError& error) {
    leave_out(error.what());
  }
}

void RivalTurns::get_ready() {
  if (!process_) return;
  try {
    const std::vector<RivalBlock> blocks = process_->get_ready(wanted_.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (!blocks[i].problem.empty()) {
        notes_.push_back(fmt::format("rival {} left out: {}", wanted_[i], blocks[i].problem));
        continue;
      }
      framework_ = blocks[i].framework;
      ready_.push_back(wanted_[i]);
      places_.push_back(i);
    }
  } catch (const MissingError& error) {
    leave_out(error.what());
  }
}

std::optional<std::vector<Seconds>> RivalTurns::burst(std::size_t i, int warm_ups, int replays) {
  try {
    return process_->replay(places_.at(i), warm_ups, replays);
  } catch (const MissingError& error) {
    leave_out(error.what());
  }
  return std::nullopt;
}

void RivalTurns::leave_out(const std::string& why) {
  notes_.push_back("rivals left out: " + why);
  process_.reset();
  ready_.clear();
}

}  // namespace fuseline::cuda
