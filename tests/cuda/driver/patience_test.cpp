// A long wait for a GPU says what it waits for.
#include "cuda/driver/patience.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;

// Ends after `seconds`.
auto after(double seconds) {
  return [start = std::chrono::steady_clock::now(), seconds] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() >
           seconds;
  };
}

std::string said_while(double seconds, Seconds patience) {
  testing::internal::CaptureStderr();
  wait_patiently(after(seconds), "policy coda, kernel d_up", patience);
  return testing::internal::GetCapturedStderr();
}

TEST(Patience, SaysNothingOfWhatEndsInTime) {
  EXPECT_EQ(said_while(0, Seconds(20)), "");
  EXPECT_EQ(said_while(0.05, Seconds(20)), "");
}

TEST(Patience, NamesTheKernelOfALongWaitAndSaysSoLessAndLessOften) {
  const std::string said = said_while(0.5, Seconds(0.02));
  EXPECT_THAT(said, HasSubstr("the GPU has been at work for 0 s: policy coda, kernel d_up\n"));
  // At 0.02, 0.04, 0.08, 0.16 and 0.32 s, or less often on a busy machine.
  EXPECT_LE(std::count(said.begin(), said.end(), '\n'), 5);
}

TEST(Patience, PassesOnWhatTheQuestionThrows) {
  EXPECT_THROW(wait_patiently([]() -> bool { throw std::runtime_error("a fault"); }, "x"),
               std::runtime_error);
}

}  // namespace
}  // namespace fuseline::cuda
