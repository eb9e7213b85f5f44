// What the audit says of the shipped claims: verdicts as they are, ranges within 5 %. When the
// model changes, FUSELINE_UPDATE_GOLDEN=1 writes tests/golden/claims.csv again; docs/claims.md then
// changes too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "sim/judge/audit/audit.h"
#include "sim/judge/audit/claim_file.h"
#include "sim/judge/audit/report.h"

namespace fuseline::audit {
namespace {

using ::testing::HasSubstr;

const std::string kGolden = std::string(FUSELINE_SOURCE_DIR) + "/tests/golden/claims.csv";
const std::string kDocument = std::string(FUSELINE_SOURCE_DIR) + "/docs/claims.md";
constexpr double kTolerance = 0.05;

const Audit& shipped() {
  static const Audit audit = audit_claims(load_claims(shipped_claims()), shipped_measurements());
  return audit;
}

struct Golden {
  std::string verdict;
  double least = 0, most = 0, limit = 0;
};

Golden now(const Audited& a) {
  const Range range = predicted_range(a);
  return {name_of(a.verdict.judgement), range.least, range.most, boldest_limit(a)};
}

std::map<std::string, Golden> read_golden() {
  std::map<std::string, Golden> out;
  std::ifstream in(kGolden);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::stringstream cells(line);
    std::string id, cell;
    Golden g;
    std::getline(cells, id, ',');
    std::getline(cells, g.verdict, ',');
    for (double* number : {&g.least, &g.most, &g.limit}) {
      std::getline(cells, cell, ',');
      *number = std::stod(cell);
    }
    out[id] = g;
  }
  return out;
}

void write_golden() {
  std::ofstream out(kGolden);
  out << "id,verdict,least,most,limit\n";
  for (const Audited& a : shipped().claims) {
    const Golden g = now(a);
    out << a.claim.id << "," << g.verdict << "," << g.least << "," << g.most << "," << g.limit
        << "\n";
  }
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The text with its numbers taken out, and the numbers.
std::pair<std::string, std::vector<double>> apart(const std::string& text) {
  std::string rest;
  std::vector<double> numbers;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] < '0' || text[i] > '9') {
      rest += text[i++];
      continue;
    }
    std::string digits;
    while (i < text.size() && (std::isdigit(static_cast<unsigned char>(text[i])) != 0 ||
                               text[i] == '.' || text[i] == ',')) {
      if (text[i] != ',') digits += text[i];
      ++i;
    }
    rest += "#";
    numbers.push_back(std::strtod(digits.c_str(), nullptr));
  }
  return {rest, numbers};
}

void expect_judged_as_before() {
  if (std::getenv("FUSELINE_UPDATE_GOLDEN") != nullptr) write_golden();
  const std::map<std::string, Golden> golden = read_golden();
  EXPECT_EQ(golden.size(), shipped().claims.size());
  for (const Audited& a : shipped().claims) {
    SCOPED_TRACE(a.claim.id);
    ASSERT_TRUE(golden.contains(a.claim.id));
    const Golden& then = golden.at(a.claim.id);
    const Golden is = now(a);
    EXPECT_EQ(is.verdict, then.verdict) << a.verdict.reason;
    const double scale = kTolerance * std::max(std::abs(then.least), std::abs(then.most));
    EXPECT_NEAR(is.least, then.least, scale);
    EXPECT_NEAR(is.most, then.most, scale);
    EXPECT_NEAR(is.limit, then.limit, kTolerance * std::abs(then.limit));
  }
}

// The words are those of the document; numbers may be off as above, small ones by rounding.
void expect_those_of_the_document() {
  const std::string command = "fuseline audit --format markdown > docs/claims.md";
  const std::string made = audit_markdown(shipped(), command);
  if (std::getenv("FUSELINE_UPDATE_GOLDEN") != nullptr) std::ofstream(kDocument) << made;
  const auto [text, numbers] = apart(made);
  const auto [text_then, numbers_then] = apart(text_of(kDocument));
  EXPECT_EQ(text, text_then) << "make it again: " << command;
  ASSERT_EQ(numbers.size(), numbers_then.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_NEAR(numbers[i], numbers_then[i], 2 + kTolerance * numbers_then[i]);
  }
}

void expect_known_contradictions() {
  for (const Audited& a : shipped().claims) {
    if (!a.claim.id.ends_with("batch-1-latency")) continue;
    EXPECT_EQ(a.verdict.judgement, Judgement::contradicts);
    EXPECT_THAT(a.verdict.reason, HasSubstr("23 % fewer bytes"));
    // Bytes of the weights in the time after, at the utilisation after.
    const bool small = a.claim.id == "llama-7b-batch-1-latency";
    EXPECT_THAT(a.findings.back(), HasSubstr(small ? "a GPU of 527 GB/s" : "a GPU of 629 GB/s"));
  }
}

// One test, because the audit is most of the work and each test is a process of its own.
TEST(SlowShippedClaims, AreJudgedAsBeforeAndAsTheDocumentSays) {
  expect_judged_as_before();
  expect_those_of_the_document();
  expect_known_contradictions();
}

}  // namespace
}  // namespace fuseline::audit
