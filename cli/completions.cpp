#include "cli/completions.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace fuseline {

namespace {

bool is_word(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0 ||
           std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-';
  });
}

// "table|json|csv" → table json csv; of "expected|uniform|FILE" the words alone.
std::vector<std::string> words_of_value(const std::string& value) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find('|', begin), value.size());
    const std::string part = value.substr(begin, end - begin);
    if (is_word(part)) out.push_back(part);
    begin = end + 1;
  }
  return out;
}

// "--gpu" → "gpus" where that can be listed.
std::string topic_of_option(const std::string& option, const std::vector<std::string>& topics) {
  const std::string name = option.substr(option.find_first_not_of('-'));
  std::vector<std::string> plurals = {name + "s"};
  if (name.ends_with("y")) plurals.push_back(name.substr(0, name.size() - 1) + "ies");
  for (const std::string& plural : plurals)
    if (std::find(topics.begin(), topics.end(), plural) != topics.end()) return plural;
  return {};
}

bool takes_path(const std::string& value) {
  for (const char* part : {"FILE", "FOLDER", "DIR", ".toml", ".json", ".csv", ".fuse"})
    if (value.find(part) != std::string::npos) return true;
  return false;
}

// What stands behind an option, as a line of the script.
std::string candidates(const OptionDescription& option, const std::vector<std::string>& topics) {
  std::string out;
  const std::string topic = topic_of_option(option.name, topics);
  const std::vector<std::string> words = words_of_value(option.value);
  const bool list = option.value.find(",...") != std::string::npos;
  if (!topic.empty())
    out +=
        fmt::format(" _fuseline_words{} \"$(_fuseline_names {})\";", list ? "_of_list" : "", topic);
  if (!words.empty()) out += fmt::format(" _fuseline_words \"{}\";", fmt::join(words, " "));
  if (takes_path(option.value)) out += " _fuseline_paths;";
  return out;
}

std::string command_case(const CommandDescription& c, const std::vector<std::string>& topics) {
  std::string out = fmt::format("    \"{}\")\n      case \"$prev\" in\n", c.name);
  std::vector<std::string> names = {"--help"};
  for (const OptionDescription& o : c.options) {
    names.push_back(o.name);
    if (!o.value.empty())
      out += fmt::format("        {}){} return ;;\n", o.name, candidates(o, topics));
  }
  std::string arguments;
  if (!c.words.empty())
    arguments +=
        fmt::format(" [[ $at_first == 1 ]] && _fuseline_words \"{}\";", fmt::join(c.words, " "));
  if (takes_path(c.argument) || takes_path(c.argument_help)) arguments += " _fuseline_paths;";
  return out +
         fmt::format(
             "      esac\n      if [[ $cur == -* ]]; then _fuseline_words \"{}\"; else {} :; fi "
             ";;\n",
             fmt::join(names, " "), arguments);
}

}  // namespace

std::string bash_completions(const std::vector<CommandDescription>& commands,
                             const std::vector<std::string>& topics) {
  std::vector<std::string> verbs, cases;
  std::string nested;
  for (const CommandDescription& c : commands) {
    if (c.name.find(' ') == std::string::npos) verbs.push_back(c.name);
    cases.push_back(command_case(c, topics));
    if (c.words_are_commands)
      for (const std::string& word : c.words)
        if (std::any_of(commands.begin(), commands.end(), [&](const CommandDescription& other) {
              return other.name == c.name + " " + word;
            }))
          nested +=
              fmt::format("    \"{0} {1}\") command=\"{0} {1}\"; at_first=0 ;;\n", c.name, word);
  }
  return fmt::format(
      R"(# Completions of fuseline for bash. Made by: fuseline --completion bash
_fuseline_names() {{ "${{COMP_WORDS[0]}}" --names "$1" 2>/dev/null; }}
_fuseline_words() {{ COMPREPLY+=($(compgen -W "$1" -- "$cur")); }}
_fuseline_words_of_list() {{
  local before=
  [[ $cur == *,* ]] && before=${{cur%,*}},
  COMPREPLY+=($(compgen -P "$before" -W "$1" -- "${{cur##*,}}"))
}}
_fuseline_paths() {{
  compopt -o filenames 2>/dev/null
  COMPREPLY+=($(compgen -f -- "$cur"))
}}
_fuseline() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command=${{COMP_WORDS[1]}} at_first=0
  local IFS=$' \t\n'
  COMPREPLY=()
  if [[ $COMP_CWORD == 1 ]]; then
    _fuseline_words "{} --help --version --man --completion --names"
    return
  fi
  [[ $COMP_CWORD == 2 ]] && at_first=1
  if [[ $COMP_CWORD -gt 2 ]]; then
    case "$command ${{COMP_WORDS[2]}}" in
{}    esac
  fi
  case "$command" in
    --completion) _fuseline_words bash ;;
    --names) _fuseline_words "{}" ;;
{}  esac
}}
complete -F _fuseline fuseline
)",
      fmt::join(verbs, " "), nested, fmt::join(topics, " "), fmt::join(cases, ""));
}

}  // namespace fuseline
