#include "gui/model/command_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "model/config/routing_loads.h"

namespace fuseline::gui {

namespace {

class CommandWords {
 public:
  explicit CommandWords(std::string first) : text_(std::move(first)) {}
  CommandWords& add(const std::string& option, const std::string& value) {
    text_ += " " + option + " " + shell_word(value);
    return *this;
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string in_words(const Setup& setup, const std::vector<std::string>& policies,
                     const std::optional<std::int64_t>& layers, const std::string& plan) {
  const Workload& w = setup.workload;
  CommandWords words("fuseline predict");
  if (!setup.model.empty()) words.add("--model", setup.model);
  if (!setup.change.block.empty()) words.add("--block", setup.change.block);
  words.add("--gpu", setup.gpu).add("--phase", name_of(w.phase));
  words.add("--batch", std::to_string(w.batch)).add("--seq", std::to_string(w.seq));
  if (w.phase == Phase::decode) words.add("--context", std::to_string(w.context));
  if (w.dtype != Dtype::bf16) words.add("--dtype", name_of(w.dtype));
  if (!w.formats.weights.name().empty()) words.add("--weights", w.formats.weights.name());
  if (!w.formats.activations.name().empty())
    words.add("--activations", w.formats.activations.name());
  if (!w.formats.cache.name().empty()) words.add("--kv", w.formats.cache.name());
  if (!w.routing.name.empty()) words.add("--routing", w.routing.name);
  if (setup.fidelity != Fidelity::hierarchy) words.add("--fidelity", name_of(setup.fidelity));
  if (!layers || *layers != 1) words.add("--layers", layers ? std::to_string(*layers) : "all");
  if (!plan.empty()) return words.add("--plan", plan).take();
  return words.add("--policy", fmt::format("{}", fmt::join(policies, ","))).take();
}

CommandText of_session(const std::string& file, const std::string& why) {
  const std::string name = file.empty() ? "SESSION.toml" : file;
  return {"fuseline predict " + shell_word(name),
          file.empty() ? "save the session first: " + why : "save the session: " + why};
}

CommandText text_of(const Document& document, const Setup& setup, const std::vector<Run>& runs,
                    const std::string& file) {
  if (!setup.what_if.is_neutral()) return of_session(file, "\"what if\" is not said in words");
  if (!setup.change.text.empty()) return of_session(file, "the block's text was edited");
  std::vector<std::string> policies;
  for (const Run& run : runs) {
    if (run.is_custom()) return of_session(file, "chosen edges are not said in words");
    if (!run.plan_text.empty())
      return {{}, "the plan's text was edited: save it into a file first"};
    if (!run.plan.empty() && runs.size() > 1)
      return {{}, "a plan's file is predicted on its own: choose its run"};
    if (std::ranges::find(policies, run.policy) == policies.end()) policies.push_back(run.policy);
  }
  if (policies.empty()) return {{}, "only measured runs: nothing is predicted"};
  return {in_words(setup, policies, document.layers, runs.front().plan)};
}

}  // namespace

std::string shell_word(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string("_-./,:=@%+").find(c) != std::string::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

CommandText command_of(const Document& document, const std::string& file) {
  std::vector<Run> runs;
  for (const Run& run : document.runs.all())
    if (!run.is_measurement() && !run.setup) runs.push_back(run);
  return text_of(document, document.setup, runs, file);
}

CommandText command_of_run(const Document& document, const Run& run, const std::string& file) {
  if (run.is_measurement()) return {{}, "it was measured: `fuseline measure` does that"};
  // A session's file is predicted under the session's own setup.
  if (run.setup && (run.is_custom() || !run.setup->what_if.is_neutral()))
    return {{}, "the run is pinned: unpin it, so that the session is about it"};
  return text_of(document, setup_of(document, run), {run}, file);
}

}  // namespace fuseline::gui
