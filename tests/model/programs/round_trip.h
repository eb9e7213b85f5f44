// Reading what was printed gives the same plan, by what tells plans apart.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "model/plan.h"
#include "model/programs/legality.h"
#include "model/programs/program_file.h"

namespace fuseline::test {

inline std::string first_difference(const std::string& a, const std::string& b) {
  std::size_t line = 1, begin = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] != b[i])
      return "line " + std::to_string(line) + ":\n" + a.substr(begin, a.find('\n', i) - begin) +
             "\n" + b.substr(begin, b.find('\n', i) - begin);
    if (a[i] == '\n') {
      ++line;
      begin = i + 1;
    }
  }
  return a.size() == b.size() ? "none" : "one text is longer";
}

inline std::string said(const std::vector<Diagnosis>& diagnoses) {
  std::string text;
  for (const Diagnosis& d : diagnoses) {
    if (text.size() > 3000) return text + "...\n";
    text += "[" + d.rule + "] " + format_problem(d.problem) + "\n";
  }
  return text;
}

// What simulator and executor ask of a plan, primitive by primitive.
inline void expect_same_programs(const Plan& a, const Plan& b) {
  ASSERT_EQ(a.kernels.size(), b.kernels.size());
  for (std::size_t k = 0; k < a.kernels.size(); ++k) {
    ASSERT_EQ(a.kernels[k].phases.size(), b.kernels[k].phases.size());
    EXPECT_EQ(a.kernels[k].ops, b.kernels[k].ops) << a.kernels[k].name;
    EXPECT_EQ(a.kernels[k].implementation, b.kernels[k].implementation) << a.kernels[k].name;
    for (std::size_t p = 0; p < a.kernels[k].phases.size(); ++p) {
      const Program& x = a.kernels[k].phases[p];
      const Program& y = b.kernels[k].phases[p];
      EXPECT_EQ(loads(x), loads(y)) << x.name;
      EXPECT_EQ(stores(x), stores(y)) << x.name;
      ASSERT_EQ(x.body.size(), y.body.size()) << x.name;
    }
  }
}

// The plan that was read.
inline Plan expect_round_trip(const Plan& plan, const std::string& what) {
  const std::string text = plan_text(plan, "h100");
  const ProgramFile read = read_program_text(text, what);
  EXPECT_TRUE(read.readable()) << what << "\n" << said(read.diagnoses);
  if (!read.readable()) return plan;
  const std::string again = plan_text(read.plan, read.target);
  EXPECT_TRUE(again == text) << what << ": " << first_difference(text, again);
  expect_same_programs(plan, read.plan);
  const std::vector<Diagnosis> wrong = check_programs(read);
  EXPECT_TRUE(wrong.empty()) << what << "\n" << said(wrong);
  return read.plan;
}

}  // namespace fuseline::test
