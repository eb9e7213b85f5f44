#include "sim/selection/selection_text.h"

#include <algorithm>
#include <array>

namespace fuseline {

namespace {

struct Option {
  const char* name;
  std::optional<std::string> SelectionWords::*word;
  bool simulation = false;
};

constexpr std::array<Option, 19> kOptions = {{
    {"--model", &SelectionWords::model},
    {"--block", &SelectionWords::block},
    {"--gpu", &SelectionWords::gpu},
    {"--phase", &SelectionWords::phase},
    {"--batch", &SelectionWords::batch},
    {"--seq", &SelectionWords::seq},
    {"--context", &SelectionWords::context},
    {"--dtype", &SelectionWords::dtype},
    {"--weights", &SelectionWords::weights},
    {"--activations", &SelectionWords::activations},
    {"--kv", &SelectionWords::kv},
    {"--routing", &SelectionWords::routing},
    {"--policy", &SelectionWords::policy},
    {"--fidelity", &SelectionWords::fidelity, true},
    {"--layers", &SelectionWords::layers, true},
    {"--launch", &SelectionWords::launch, true},
    {"--image", &SelectionWords::image, true},
    {"--steps", &SelectionWords::steps, true},
    {"--guidance", &SelectionWords::guidance, true},
}};

// As it is where a shell takes it so, else between single quotes.
std::string shell_quoted(const std::string& text) {
  const bool plain = !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string("-_./,:@+=").find(c) != std::string::npos;
  });
  if (plain) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string options_text(const std::optional<std::string>& scenario_path,
                         const SelectionWords& words, bool simulation) {
  std::string text;
  if (scenario_path) text += " " + shell_quoted(*scenario_path);
  for (const Option& option : kOptions) {
    const auto& word = words.*option.word;
    if (word && (simulation || !option.simulation))
      text += std::string(" ") + option.name + " " + shell_quoted(*word);
  }
  return text.empty() ? text : text.substr(1);
}

}  // namespace fuseline
