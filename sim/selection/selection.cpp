#include "sim/selection/selection.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/data_files.h"
#include "base/error.h"
#include "model/activation_formats/stored_activation.h"
#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "model/programs/legality.h"
#include "model/programs/program_file.h"
#include "sim/gpu/plan_target.h"
#include "sim/gpu/what_if.h"
#include "sim/selection/known_files.h"
#include "sim/selection/plan_file.h"
#include "sim/selection/simulation_size.h"

namespace fuseline {

namespace {

constexpr const char* kDefaultModel = "llama2-7b";
constexpr const char* kDefaultGpu = "h100";
constexpr double kLeastPrice = 1e-6, kMostPrice = 1e6;
constexpr std::int64_t kDefaultTokens = 2048;  // of a forward pass, or of decode's context

Scenario default_scenario() {
  Scenario s;
  s.model = kDefaultModel;
  s.gpu = kDefaultGpu;
  s.fidelity = name_of(Fidelity::hierarchy);
  for (const PolicyInfo& p : policies()) s.policies.push_back(p.name);
  s.workload.seq = kDefaultTokens;
  return s;
}

std::int64_t dimension(const char* option, const std::string& text) {
  return parse_whole_number(option, text, 1, kLargestDimension);
}

template <class Parse>
auto format_option(const char* option, const std::string& text, Dtype plain, Parse parse) {
  try {
    return parse(text, option, name_of(plain));
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    problem.file = kCommandLine;
    throw InputError(std::move(problem));
  }
}

RoutingLoads routing_option(const std::string& text) {
  try {
    return parse_routing(text, "--routing");
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    if (problem.file.empty()) problem.file = kCommandLine;
    throw InputError(std::move(problem));
  }
}

void leave_training_policies(std::vector<std::string>& names) {
  for (const PolicyInfo& p : policies()) {
    if (!p.trains) std::erase(names, p.name);
  }
}

// A phase that the command line changes brings its own default sizes: a scenario's sequence is not
// a number of new tokens in decode.
Workload resolve_workload(const SelectionWords& texts, Workload w) {
  if (texts.phase) {
    const Phase phase =
        parse_phase(parse_word("--phase", *texts.phase, {"forward", "train", "decode"}), "--phase");
    if ((phase == Phase::decode) != (w.phase == Phase::decode)) {
      w.seq = phase == Phase::decode ? 1 : kDefaultTokens;
      w.context = phase == Phase::decode ? kDefaultTokens : 0;
    }
    w.phase = phase;
  }
  if (texts.batch) w.batch = dimension("--batch", *texts.batch);
  if (texts.seq) w.seq = dimension("--seq", *texts.seq);
  if (texts.context) w.context = dimension("--context", *texts.context);
  if (texts.dtype) {
    w.dtype = parse_dtype(parse_word("--dtype", *texts.dtype, {"bf16", "fp16", "fp32"}), "--dtype");
  }
  if (texts.weights) w.formats.weights = weights_option(*texts.weights, w.dtype);
  if (texts.kv) w.formats.cache = format_option("--kv", *texts.kv, w.dtype, parse_stored_cache);
  if (texts.routing) w.routing = routing_option(*texts.routing);
  if (texts.activations) w.formats.activations = activations_option(*texts.activations, w.dtype);
  return w;
}

// What neither the scenario nor the command line says is as the model's file says that it is
// stored.
void take_formats_of_model(const SelectionWords& texts, const Formats& of_model, Formats& formats) {
  // Activations are multiplied by weights of their own kind, so the model's go with its weights.
  const bool of_file = !texts.weights && !formats.weights.quantised();
  if (of_file) formats.weights = of_model.weights;
  if (of_file && !texts.activations && !formats.activations.quantised())
    formats.activations = of_model.activations;
  if (!texts.kv && !formats.cache.quantised()) formats.cache = of_model.cache;
}

// check_workload names the field; here it is the option of that name.
void check_sizes(const Workload& workload, const ModelConfig& model,
                 const std::optional<std::string>& scenario_path) {
  try {
    check_workload(workload, model);
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    if (problem.file.empty()) {
      problem.file = scenario_path ? *scenario_path + " with the command line" : kCommandLine;
      if (!scenario_path && !problem.field.empty()) problem.field = "--" + problem.field;
    }
    throw InputError(std::move(problem));
  }
}

// The command line's names get the command line into their errors, a scenario's its file.
template <class Load>
auto load_named(const char* option, const std::optional<std::string>& from_command_line,
                const std::string& name, Load load, const std::string& scenario = {}) {
  try {
    return load(name);
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    if (from_command_line && problem.file.empty()) {
      problem.file = kCommandLine;
      problem.field = option;
    } else if (problem.file.empty()) {
      problem.file = scenario;
    }
    throw InputError(std::move(problem));
  }
}

// "512" or "1024x768", in whole tokens of the model.
ImageRun parse_image(const std::string& text, const ModelConfig& model) {
  const std::int64_t edge = model.pixels_per_token;
  const auto refuse = [&](const std::string& message, const std::string& allowed) {
    throw InputError({.file = kCommandLine,
                      .field = "--image",
                      .value = text,
                      .message = message,
                      .allowed = allowed});
  };
  if (edge == 0)
    refuse("the tokens of " + model.name + " are no image",
           "a diffusion model, such as sd3-medium");
  const std::size_t cross = text.find('x');
  const std::int64_t most = edge << 12;
  ImageRun image;
  image.width = parse_whole_number("--image", text.substr(0, cross), edge, most);
  image.height = cross == std::string::npos
                     ? image.width
                     : parse_whole_number("--image", text.substr(cross + 1), edge, most);
  if (image.width % edge != 0 || image.height % edge != 0)
    refuse("does not divide into tokens",
           fmt::format("edges that are multiples of {} pixels", edge));
  return image;
}

// The workload of one step: the image's tokens, and two branches of each image with guidance.
void apply_image(const SelectionWords& texts, Selection& s) {
  if (!texts.image) {
    for (const auto& [option, text] :
         {std::pair{"--steps", &texts.steps}, {"--guidance", &texts.guidance}})
      if (*text)
        throw InputError({.file = kCommandLine,
                          .field = option,
                          .value = **text,
                          .message = "belongs to an image",
                          .allowed = "with --image"});
    return;
  }
  if (texts.seq)
    throw InputError({.file = kCommandLine,
                      .field = "--seq",
                      .value = *texts.seq,
                      .message = "--image says how many tokens there are",
                      .allowed = "one of the two"});
  ImageRun image = parse_image(*texts.image, s.model);
  constexpr std::int64_t kMostSteps = 10'000;
  if (texts.steps) image.steps = parse_whole_number("--steps", *texts.steps, 1, kMostSteps);
  if (texts.guidance)
    image.guided = parse_word("--guidance", *texts.guidance, {"yes", "no"}) == "yes";
  const std::int64_t edge = s.model.pixels_per_token;
  s.workload.seq = image.width / edge * (image.height / edge);
  if (image.guided) s.workload.batch *= 2;
  s.layers.reset();
  s.image = image;
}

}  // namespace

Gpu load_gpu_option(const std::optional<std::string>& text) {
  if (text) return load_named("--gpu", text, *text, load_gpu);
  throw InputError({.file = kCommandLine,
                    .field = "--gpu",
                    .message = "is missing",
                    .allowed = fmt::format("{}, or a TOML file", fmt::join(gpu_names(), ", "))});
}

StoredWeight activations_option(const std::string& text, Dtype plain) {
  return format_option("--activations", text, plain, parse_stored_activation);
}

StoredWeight weights_option(const std::string& text, Dtype plain) {
  return format_option("--weights", text, plain, parse_stored_weight);
}

Fidelity parse_fidelity(const std::string& text) {
  return parse_word("--fidelity", text, fidelity_words()) == name_of(Fidelity::roofline)
             ? Fidelity::roofline
             : Fidelity::hierarchy;
}

Launching parse_launching(const std::string& text, const std::vector<std::string>& allowed) {
  const std::string word = parse_word("--launch", text, allowed);
  for (const Launching launching : {Launching::graph, Launching::overlap, Launching::stream})
    if (word == name_of(launching)) return launching;
  FUSELINE_ASSERT(false, word);
}

MoneyPerHour parse_price(const std::string& text, const std::optional<std::int64_t>& layers) {
  const MoneyPerHour price(parse_number("--price-per-hour", text, kLeastPrice, kMostPrice));
  if (!layers) return price;
  throw InputError({.file = kCommandLine,
                    .field = "--price-per-hour",
                    .value = text,
                    .message = "needs the whole model: tokens are not made by a part of it",
                    .allowed = "with --layers all"});
}

Plan plan_of(const Selection& selection, const std::string& policy) {
  if (selection.plan && selection.plan->policy == policy) {
    check_same_block(*selection.plan, build_block(selection.model, selection.workload),
                     selection.model.name, kCommandLine, "--plan");
    return *selection.plan;
  }
  return make_plan(policy, selection.model, selection.workload, selection.custom,
                   plan_target(selection.gpu));
}

std::vector<std::string> parse_policies(const std::string& text, bool with_custom) {
  std::vector<std::string> names;
  for (const PolicyInfo& p : policies()) names.push_back(p.name);
  if (with_custom) names.emplace_back(kCustomPolicy);
  if (text == "all") return names;
  std::vector<std::string> chosen = parse_list("--policy", text);
  for (std::string& name : chosen) {
    name = without_version("--policy", name);
    parse_word("--policy", name, names);
  }
  for (auto name = chosen.begin(); name != chosen.end(); ++name) {
    if (std::find(chosen.begin(), name, *name) == name) continue;
    throw InputError({.file = kCommandLine,
                      .field = "--policy",
                      .value = text,
                      .message = "names " + *name + " twice",
                      .allowed = "every policy once"});
  }
  return chosen;
}

Selection resolve_selection(const std::optional<std::string>& scenario_path,
                            const SelectionWords& texts) {
  std::optional<Scenario> read;
  if (scenario_path) read = load_scenario(*scenario_path);
  return resolve_selection(read, scenario_path, texts);
}

Selection resolve_selection(const std::optional<Scenario>& read,
                            const std::optional<std::string>& scenario_path,
                            const SelectionWords& texts) {
  KnownFiles none;
  return resolve_selection(read, scenario_path, texts, none);
}

Selection resolve_selection(const std::optional<Scenario>& read,
                            const std::optional<std::string>& scenario_path,
                            const SelectionWords& texts, KnownFiles& known) {
  const Scenario scenario = read ? *read : default_scenario();
  Selection s;
  std::optional<ProgramFile> plan;
  if (texts.plan) {
    if (texts.policy)
      throw InputError({.file = kCommandLine,
                        .field = "--policy",
                        .value = *texts.policy,
                        .message = "--plan takes the place of a policy",
                        .allowed = "one of the two"});
    plan = read_program_file(*texts.plan);
    s.plan = plan_of_file(*plan);
  }
  s.title = scenario.title;
  s.workload = resolve_workload(texts, scenario.workload);
  s.policies =
      texts.policy ? parse_policies(*texts.policy, scenario.custom.has_value()) : scenario.policies;
  if (s.plan) s.policies = {s.plan->policy};
  if (scenario.custom) s.custom = *scenario.custom;
  // Policies named for this phase must support it; of "all", those that do are meant.
  const bool named = texts.policy ? *texts.policy != "all" : scenario_path && !texts.phase;
  if (!named && s.workload.phase == Phase::train) leave_training_policies(s.policies);
  s.fidelity = parse_fidelity(texts.fidelity.value_or(scenario.fidelity));
  s.launching = parse_launching(texts.launch.value_or(name_of(Launching::graph)));
  s.layers = scenario.layers;
  if (texts.layers == "all") {
    s.layers.reset();
  } else if (texts.layers) {
    s.layers = parse_whole_number("--layers", *texts.layers, 1, kMostLayers);
  }
  const std::string file = scenario_path.value_or("");
  const bool block_alone = texts.block && !texts.model && !scenario_path;
  // Another block on the command line takes the place of the scenario's.
  const BlockChange change = texts.block ? BlockChange{} : scenario.change;
  if (!block_alone)
    s.model = load_named(
        "--model", texts.model, texts.model.value_or(scenario.model),
        [&](const std::string& name) {
          return known.model(name, [&](const std::string& n) { return load_model(n, change); });
        },
        file);
  if (texts.block)
    s.model = load_named("--block", texts.block, *texts.block, [&](const std::string& block) {
      return block_alone ? model_of_block(block) : with_block(std::move(s.model), block);
    });
  const bool of_plan = plan && !plan->target.empty();
  s.gpu = load_named(
      "--gpu", texts.gpu, texts.gpu.value_or(of_plan ? plan->target : scenario.gpu),
      [&](const std::string& name) { return known.gpu(name, load_gpu); }, file);
  if (!texts.gpu) s.gpu = with_what_if(std::move(s.gpu), scenario.what_if);
  take_formats_of_model(texts, s.model.formats, s.workload.formats);
  if (!scenario.measurements.empty()) s.measurements = scenario.measurements.string();
  apply_image(texts, s);
  check_sizes(s.workload, s.model, scenario_path);
  check_simulation_size(s, scenario_path);
  return s;
}

}  // namespace fuseline
