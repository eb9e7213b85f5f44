// Pieces of work on the threads of this process.
#pragma once

#include <atomic>

#include "base/sharing.h"

namespace fuseline {

class ThreadSharing : public Sharing {
 public:
  // `threads`: 0: one for each core that the process may use. `stop`: no further piece is begun.
  explicit ThreadSharing(unsigned threads = 0, const std::atomic<bool>* stop = nullptr)
      : threads_(threads), stop_(stop) {}

  SharedTexts texts(const std::string& name, std::size_t count, const Work& work,
                    const Progress& progress) override;
  bool agreed(bool mine) override { return mine; }
  [[nodiscard]] std::size_t width() const override;

 private:
  unsigned threads_;
  const std::atomic<bool>* stop_;
};

}  // namespace fuseline
