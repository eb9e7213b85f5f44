// Words of a request, as a command line or a call from Python gives them: numbers, words of a
// closed set, lists. Errors name the option, the value, and what is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline {

// Where an InputError lies that no file holds.
inline constexpr const char* kCommandLine = "command line";
inline constexpr std::int64_t kMostThreads = 1024;

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
