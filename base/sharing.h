// Work of many pieces that threads and processes may share.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace fuseline {

// What each piece gave, in their order; empty where it was stopped before that one.
struct SharedTexts {
  std::vector<std::string> texts;
  bool all = true;
};

// Every process runs the same program, and shares its pieces through this. What follows from texts
// is then the same at every process, however many there are.
class Sharing {
 public:
  // On several threads at once. What it throws is thrown at every process.
  using Work = std::function<std::string(std::size_t piece)>;
  using Progress = std::function<void(std::size_t done, std::size_t count)>;

  virtual ~Sharing() = default;

  // work(0) ... work(count - 1), each once, somewhere. Every process must call it, in the same
  // order and with the same name and count. `name` says what the pieces are: where unfinished work
  // goes on, a finished piece of the same name and place is not done again.
  virtual SharedTexts texts(const std::string& name, std::size_t count, const Work& work,
                            const Progress& progress = {}) = 0;
  // What the first process says, at every one: of what they may see differently, like the time.
  virtual bool agreed(bool mine) = 0;
  // How many pieces may be in work at once.
  [[nodiscard]] virtual std::size_t width() const = 0;
};

// One thread of one process: the one that calls.
class NoSharing : public Sharing {
 public:
  SharedTexts texts(const std::string& name, std::size_t count, const Work& work,
                    const Progress& progress) override {
    static_cast<void>(name);
    SharedTexts out;
    for (std::size_t i = 0; i < count; ++i) {
      out.texts.push_back(work(i));
      if (progress) progress(i + 1, count);
    }
    return out;
  }
  bool agreed(bool mine) override { return mine; }
  [[nodiscard]] std::size_t width() const override { return 1; }
};

}  // namespace fuseline
