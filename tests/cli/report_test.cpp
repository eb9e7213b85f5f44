// report, --trace and --plot: files for people and for viewers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/data_dir.h"
#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> small_report(std::vector<std::string> more) {
  std::vector<std::string> args = {more.front(), "--model", "tinyllama", "--gpu",     "rtx4090",
                                   "--seq",      "256",     "--policy",  "eager,coda"};
  args.insert(args.end(), more.begin() + 1, more.end());
  return args;
}

// Every start of an element has its end, in order; <br>-like elements are not used in the body.
std::string unbalanced(const std::string& page) {
  std::vector<std::string> open;
  for (std::size_t at = page.find("<body"); (at = page.find('<', at)) != std::string::npos; ++at) {
    const std::size_t end = page.find('>', at);
    std::string tag = page.substr(at + 1, end - at - 1);
    if (tag.back() == '/' || tag[0] == '!') continue;
    const bool closes = tag[0] == '/';
    tag = tag.substr(closes ? 1 : 0);
    tag = tag.substr(0, tag.find_first_of(" \n"));
    if (!closes) {
      open.push_back(tag);
    } else if (open.empty() || open.back() != tag) {
      return tag;
    } else {
      open.pop_back();
    }
    if (tag == "body" && closes) break;
  }
  return open.empty() ? "" : open.back();
}

class Report : public ::testing::Test {
 protected:
  static const std::string& page() {
    static const std::string text = cli(small_report({"report"})).out;
    return text;
  }
};

TEST_F(Report, IsOnePageThatNeedsNothingElse) {
  EXPECT_THAT(page(), HasSubstr("<!DOCTYPE html>"));
  for (const char* outside : {"<script", "<link", "src=", "@import", "url("})
    EXPECT_THAT(page(), Not(HasSubstr(outside)));
  EXPECT_EQ(unbalanced(page()), "");
}

TEST_F(Report, HasTheNumbersThatPredictPrints) {
  const json said = json::parse(cli(small_report({"predict", "--format", "json"})).out);
  for (const json& p : said["predictions"]) {
    char time[32];
    std::snprintf(time, sizeof time, "%.1f", p["time_us"].get<double>());
    EXPECT_THAT(page(), HasSubstr("<td class=\"n\">" + std::string(time) + "</td>"));
    for (const json& k : p["kernels"])
      EXPECT_THAT(page(), HasSubstr("<th scope=\"row\">" + k["name"].get<std::string>() + "</th>"));
  }
}

TEST_F(Report, SaysHowSureItsGpuIs) {
  EXPECT_THAT(page(), HasSubstr("class=\"standing\""));
  EXPECT_THAT(page(), HasSubstr("UNCALIBRATED"));
}

TEST_F(Report, HasTheCommandsThatGiveItsNumbers) {
  EXPECT_THAT(page(), HasSubstr("fuseline predict --model tinyllama --gpu rtx4090 --seq 256 "
                                "--policy eager,coda --kernels\n"));
}

TEST_F(Report, CanBeReadWithoutSeeing) {
  EXPECT_THAT(page(), HasSubstr("<html lang=\"en\">"));
  std::size_t drawings = 0;
  for (std::size_t at = 0; (at = page().find("<svg", at)) != std::string::npos; ++at) {
    ++drawings;
    const std::string head = page().substr(at, page().find("</desc>", at) - at);
    EXPECT_THAT(head, HasSubstr("role=\"img\""));
    EXPECT_THAT(head, HasSubstr("<title>"));
  }
  EXPECT_EQ(drawings, 5U);  // times, traffic, kernels, and a plan for each policy
  EXPECT_THAT(page(), HasSubstr("<caption>"));
}

TEST_F(Report, TakesMeasuredRuns) {
  const std::string folder = (data_dir() / "measurements" / "h200-pytorch").string();
  const CliRun run = cli({"report", "--model", "llama2-7b", "--gpu", "h200", "--policy", "eager",
                          "--measurements", folder});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("measured µs"));
  EXPECT_THAT(run.out, HasSubstr("Measured on "));
}

TEST_F(Report, RefusesAFolderThatCannotBeWrittenBeforeItWorks) {
  const CliRun run = cli(small_report({"report", "--output", "/nowhere/report.html"}));
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--output"));
}

TEST(ChromeTrace, HasPredictedAndMeasuredKernelsEndToEnd) {
  const std::string path = temporary_file("trace.json", "");
  const std::string scenario = (data_dir() / "llama2-7b-h200.toml").string();
  const CliRun run =
      cli({"predict", scenario, "--policy", "eager", "--format", "csv", "--trace", path});
  ASSERT_EQ(run.status, 0) << run.err;
  const json trace = json::parse(read_text(path));
  std::map<int, double> ends;
  std::set<std::string> rows;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name")
      rows.insert(event["args"]["name"].get<std::string>());
    if (event["ph"] != "X") continue;
    double& end = ends[event["tid"].get<int>()];
    EXPECT_NEAR(event["ts"].get<double>(), end, 1e-6 * (end + 1));
    EXPECT_GT(event["dur"].get<double>(), 0);
    end = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_THAT(rows, ::testing::ElementsAre("measured, end to end", "predicted"));
  EXPECT_EQ(ends.size(), 2U);
}

TEST(SweepPlot, DrawsALineForEachPolicy) {
  const std::string path = temporary_file("sweep.svg", "");
  const CliRun run = cli({"sweep", "--model", "tinyllama", "--seq", "128:512:x2", "--policy",
                          "eager,coda", "--plot", path});
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string svg = read_text(path);
  EXPECT_THAT(svg, HasSubstr(">eager</text>"));
  EXPECT_THAT(svg, HasSubstr(">coda</text>"));
  EXPECT_THAT(svg, HasSubstr(">seq</text>"));
}

TEST(SweepPlot, RefusesAGridInWhichNoSizeVaries) {
  const std::string path = temporary_file("unchanged.svg", "as it was");
  const CliRun run = cli(
      {"sweep", "--model", "tinyllama", "--seq", "128", "--policy", "eager,coda", "--plot", path});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("no size varies"));
  EXPECT_EQ(read_text(path), "as it was");
}

}  // namespace
}  // namespace fuseline
