// Every fuzz target reads its corpus, and some thousand changed inputs, always the same ones. The
// fuzzer itself is scripts/fuzz.sh.
#include <gtest/gtest.h>

#include <exception>
#include <filesystem>
#include <set>
#include <string>

#include <fmt/format.h>

#include "tests/fuzz/mutator.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {

// Names the test cases in the output.
void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

namespace {

namespace fs = std::filesystem;

struct Counts {
  int accepted = 0, refused = 0;
};

void read_and_count(const Target& target, const std::string& bytes, const std::string& what,
                    Counts& counts) {
  try {
    (read_once(target, bytes) == Outcome::accepted ? counts.accepted : counts.refused)++;
  } catch (const std::exception& error) {
    ADD_FAILURE() << what << ": " << error.what() << "; the input is\n"
                  << (bytes.size() < 4000 ? bytes : fmt::format("{} bytes", bytes.size()));
  }
}

class ReplayedTargets : public testing::TestWithParam<Target> {};
class LongReplayedTargets : public testing::TestWithParam<Target> {};

void read_changed_inputs(const Target& target, int inputs) {
  const std::vector<Input> good = inputs_of(target);
  ASSERT_FALSE(good.empty());
  const std::vector<std::string> words = words_of(target);
  ASSERT_FALSE(words.empty()) << "no words in the dictionary '" << target.dictionary << "'";
  Mutator mutate(4711, words);
  Counts counts;
  for (int i = 0; i < inputs; ++i) {
    const Input& seed = good[static_cast<std::size_t>(i) % good.size()];
    const Input& other = good[static_cast<std::size_t>(i * 7 + 3) % good.size()];
    read_and_count(target, mutate(seed.bytes, other.bytes),
                   fmt::format("change {} of {}", i, seed.name), counts);
  }
  fmt::print("{}: {} accepted, {} refused\n", target.name, counts.accepted, counts.refused);
  // Inputs that are all accepted test one path of the reader only.
  EXPECT_GT(counts.refused, 0);
}

TEST_P(ReplayedTargets, ReadsItsCorpus) {
  Counts counts;
  for (const Input& input : inputs_of(GetParam()))
    read_and_count(GetParam(), input.bytes, input.name, counts);
  // A reader that refuses all of them is never tried beyond its first line.
  EXPECT_GT(counts.accepted, 0);
}

TEST_P(ReplayedTargets, ReadsChangedInputs) { read_changed_inputs(GetParam(), 150); }
TEST_P(LongReplayedTargets, ReadsChangedInputs) { read_changed_inputs(GetParam(), 5000); }

std::string name_of(const testing::TestParamInfo<Target>& given) { return given.param.name; }
INSTANTIATE_TEST_SUITE_P(Fuzz, ReplayedTargets, testing::ValuesIn(targets()), name_of);
INSTANTIATE_TEST_SUITE_P(Fuzz, LongReplayedTargets, testing::ValuesIn(targets()), name_of);

TEST(FuzzTargets, HaveOneNameEachAndEveryCorpusATarget) {
  std::set<std::string> names;
  for (const Target& target : targets()) EXPECT_TRUE(names.insert(target.name).second);
  EXPECT_GE(names.size(), 20U);
  for (const fs::directory_entry& folder :
       fs::directory_iterator(fs::path(FUSELINE_SOURCE_DIR) / "tests/fuzz/corpora"))
    EXPECT_TRUE(names.contains(folder.path().filename().string())) << folder.path();
}

// What the words above promise: a reader that throws another exception is found.
TEST(FuzzTargets, AReaderThatThrowsAnythingElseIsFound) {
  const Target target{
      .name = "bad", .dictionary = "toml", .seeds = {}, .read = [](const std::string& bytes) {
        (void)bytes.at(3);
      }};
  EXPECT_THROW(read_once(target, "abc"), std::logic_error);
  EXPECT_EQ(read_once(target, "abcd"), Outcome::accepted);
}

}  // namespace
}  // namespace fuseline::fuzz
