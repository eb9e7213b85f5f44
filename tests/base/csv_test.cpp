#include "base/csv.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.h"

namespace fuseline {
namespace {

class CsvTest : public ::testing::Test {
 protected:
  std::string file(const std::string& text) {
    const std::string path = testing::TempDir() + "/csv_test_" +
                             testing::UnitTest::GetInstance()->current_test_info()->name() + ".csv";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static InputProblem problem_of(const std::function<void()>& act) {
    try {
      act();
    } catch (const InputError& error) {
      return error.problem();
    }
    ADD_FAILURE() << "no InputError";
    return {};
  }
};

TEST_F(CsvTest, ReadsCellsQuotesAndLineNumbers) {
  const CsvTable csv(file("a,b\n1,\"x,\"\"y\"\"\"\n\n# a remark\n2,z\r\n"));
  ASSERT_EQ(csv.rows(), 2U);
  EXPECT_EQ(csv.text(0, "b"), "x,\"y\"");
  EXPECT_EQ(csv.text(1, "b"), "z");
  EXPECT_EQ(csv.whole(1, "a"), 2);
  EXPECT_EQ(csv.line(1), 5);
}

TEST_F(CsvTest, RefusesAnEmptyFileAndAHeaderAlone) {
  EXPECT_THROW(CsvTable(file("")), InputError);
  EXPECT_THROW(CsvTable(file("a,b\n")), InputError);
  EXPECT_THROW(CsvTable("/nonexistent/block.csv"), InputError);
  const std::string folder = testing::TempDir();
  EXPECT_THROW(CsvTable{folder}, InputError);
}

TEST_F(CsvTest, NamesTheLineOfAWrongCellCount) {
  const InputProblem p = problem_of([&] { CsvTable csv(file("a,b\n1,2\n3\n")); });
  EXPECT_EQ(p.line, 3);
  EXPECT_NE(p.allowed.find('2'), std::string::npos);
}

TEST_F(CsvTest, RefusesAQuoteThatIsNeverClosed) {
  EXPECT_EQ(problem_of([&] { CsvTable csv(file("a,b\n1,\"2\n")); }).line, 2);
}

TEST_F(CsvTest, NamesColumnAndValueOfABadNumber) {
  const CsvTable csv(file("m,us\n1.5,abc\n-1,0\n7 ,inf\n"));
  for (const std::size_t row : {0U, 1U, 2U}) {
    const InputProblem whole = problem_of([&] { static_cast<void>(csv.whole(row, "m", 1)); });
    EXPECT_EQ(whole.field, "m");
    EXPECT_EQ(whole.value, csv.text(row, "m"));
    EXPECT_EQ(whole.line, static_cast<int>(row) + 2);
    EXPECT_EQ(problem_of([&] { static_cast<void>(csv.positive(row, "us")); }).value,
              csv.text(row, "us"));
  }
}

TEST_F(CsvTest, SuggestsTheNearestColumn) {
  const CsvTable csv(file("batch,seq\n1,2\n"));
  EXPECT_EQ(problem_of([&] { static_cast<void>(csv.whole(0, "batsh")); }).nearest, "batch");
}

}  // namespace
}  // namespace fuseline
