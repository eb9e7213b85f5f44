// Measured blocks of other number formats and other routing: each is a case of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "sim/measured/measurement_write.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

BlockCase tiny_case() { return {.model = "tiny", .execution = "eager", .workload = {.seq = 128}}; }

class MeasuredFormats : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            (std::string("measured_formats_") +
             testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
             std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
    folder_ = root_ / "mine";
  }
  fs::path root_, folder_;
};

// The same sizes with other weights, and with other routing, are other blocks.
TEST_F(MeasuredFormats, BlocksOfOtherFormatsStandBesideEachOther) {
  std::vector<BlockCase> cases;
  MeasuredKernel first, second;
  first.site = first.kernel = "a";
  first.time = microseconds(4);
  second.site = second.kernel = "b";
  second.time = microseconds(5);
  for (const char* weights : {"bf16", "int4", "fp8-block"}) {
    cases.push_back(tiny_case());
    cases.back().workload.formats.weights = parse_stored_weight(weights, "", "bf16");
  }
  cases.push_back(tiny_case());
  cases.back().workload.routing = {.name = "loads.csv", .shares = {0.25, 0.75}};
  for (const BlockCase& c : cases)
    for (const double us : {400.0, 500.0}) {  // the second takes the place of the first
      Measurements m;
      m.blocks.push_back(
          {.block = c, .time = {microseconds(us), microseconds(us), microseconds(us)}});
      m.traces.push_back({c, {first, second}});
      write_measurements(folder_, m, ExistingFolder::extend);
    }
  const Measurements all = load_measurements(folder_.string());
  ASSERT_EQ(all.blocks.size(), cases.size());
  ASSERT_EQ(all.traces.size(), cases.size());
  for (const BlockCase& c : cases) {
    SCOPED_TRACE(c.label());
    const auto found = find_block(all, c);
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->time.median.value(), 500e-6, 1e-12);
    EXPECT_TRUE(find_trace(all, c));
  }
}

TEST_F(MeasuredFormats, FormatsAndRoutingThatCannotBeAreRefused) {
  const auto refused = [&](const std::string& column, const std::string& cell) {
    const fs::path file = root_ / "block.csv";
    std::ofstream(file) << "model,execution,phase,batch,seq,context,ms_median,ms_min,ms_max,"
                        << column << "\ntiny,coda,forward,1,128,0,1,1,1," << cell << "\n";
    try {
      load_measurements(file.string());
      ADD_FAILURE() << column << " = " << cell << " was read";
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().field, column) << cell;
      EXPECT_EQ(error.problem().line, 2) << cell;
      EXPECT_FALSE(error.problem().allowed.empty()) << cell;
    }
    fs::remove(file);
  };
  refused("weights", "int5");
  refused("activations", "int4");
  refused("kv", "fp9");
  for (const char* routing :
       {"loads.csv", "loads.csv: 0.5 0.5", "a: shares", "a: shares 0.5 0.4", "a: shares 1 nan",
        "a: tokens 0 0", "a: tokens 3 -1", "a: tokens 3.5", ": tokens 3", "a: tokens 3x"})
    refused("routing", routing);
}

}  // namespace
}  // namespace fuseline
