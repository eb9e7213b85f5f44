// Changes texts at random, always the same way for the same seed.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace fuseline::fuzz {

class Mutator {
 public:
  Mutator(unsigned seed, std::vector<std::string> words)
      : random_(seed), words_(std::move(words)) {}

  // With one to four changes; pieces of `other` may come in.
  std::string operator()(std::string text, const std::string& other) {
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) edit(text, other);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }

  void edit(std::string& text, const std::string& other) {
    const std::size_t at = below(text.size() + 1);
    switch (below(6)) {
      case 0:
        text.insert(at, words_[below(words_.size())]);
        break;
      case 1:
        text.replace(at, below(4), words_[below(words_.size())]);
        break;
      case 2:
        text.erase(at, below(16));
        break;
      case 3:
        text.insert(at, 1, static_cast<char>(below(256)));
        break;
      case 4:
        text.insert(at, other.substr(below(other.size() + 1), below(64)));
        break;
      default:
        text.insert(at, text.substr(below(text.size() + 1), below(64)));
        break;
    }
  }

  std::mt19937 random_;
  std::vector<std::string> words_;
};

}  // namespace fuseline::fuzz
