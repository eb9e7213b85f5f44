// One subcommand's options: names, help, parsing. CLI11 does the work behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own name
class App;
}

namespace fuseline {

// Where an InputError lies that no file holds.
inline constexpr const char* kCommandLine = "command line";
inline constexpr std::int64_t kMostThreads = 1024;

class Options {
 public:
  // `examples`: command lines shown at the end of the help.
  Options(const std::string& command, const std::string& summary,
          const std::vector<std::string>& examples);
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // Bound variables must outlive parse(). A text option that is given twice keeps the last value.
  void text(const std::string& name, const std::string& placeholder, const std::string& help,
            std::optional<std::string>& value);
  void flag(const std::string& name, const std::string& help, bool& value);
  void positional(const std::string& name, const std::string& help,
                  std::vector<std::string>& values, std::size_t at_most);

  // False when the help was asked for. InputError: unknown option (nearest name), missing value,
  // too many arguments.
  [[nodiscard]] bool parse(const std::vector<std::string>& args);
  [[nodiscard]] std::string help() const;

 private:
  std::unique_ptr<CLI::App> app_;
  std::vector<std::string> names_;
  std::size_t positionals_at_most_ = 0;
  std::vector<std::string>* positionals_ = nullptr;
};

// A dimension from the command line: digits only, in [least, most]. InputError names the option.
std::int64_t parse_whole_number(const std::string& option, const std::string& text,
                                std::int64_t least, std::int64_t most);

// A number in [least, most], as in "0.5", "2" or "1e-3". InputError names the option.
double parse_number(const std::string& option, const std::string& text, double least, double most);

// The words of a closed set. InputError with the nearest word otherwise.
const std::string& parse_word(const std::string& option, const std::string& text,
                              const std::vector<std::string>& allowed);

// "a, b c,d" at ',' → a, b c, d: spaces around a part go, those within belong to it.
std::vector<std::string> split_list(const std::string& text, char at);

// The parts between commas. InputError for an empty part and for a part given twice.
std::vector<std::string> parse_list(const std::string& option, const std::string& text);

}  // namespace fuseline
