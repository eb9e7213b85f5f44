// A lab that somebody adds: what the handbook's chapter on extending quotes.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "lab/labs/parts.h"
#include "lab/workspace.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

namespace fs = std::filesystem;

Lab lab_of_one_product(const Student& student) {
  const std::int64_t M = student.pick("lab99.rows", {2048, 3072, 4096});
  const std::int64_t K = student.pick("lab99.depth", {1024, 1536, 2560});
  const GemmWork work = gemm_work(M, 4096, K);
  const double bytes = work.bytes.as_double();

  Lab lab;
  lab.intro = fmt::format(
      "Your product: y[M, N] = x[M, K] w[N, K]^T in bf16 with M = {}, N = 4096, K = {}.", M, K);
  lab.tasks = {
      {.id = "99.1",
       .text = "How many bytes does it move at least?",
       .key = byte_key(bytes, {{bytes / 2, "that counts elements: each has 2 bytes"},
                               {2 * bytes, "that is fp32: bf16 has 2 bytes an element"}}),
       .hints = {"Three matrices.", "2 bytes x (M K + N K + M N)."}},
      {.id = "99.2",
       .text = "Twice as many rows. What becomes of the bytes?",
       .key = ChoiceKey{{{"a", "they double", "w is as large as before"},
                         {"b", "they grow less", ""},
                         {"c", "they stay", "x and y are twice as large"}}},
       .hints = {"Which of the three matrices have M rows?"}},
  };
  return lab;
}

// Everything around a lab takes it as it is: the task sheet, the file of answers, the check.
TEST(OwnLab, IsStartedAnsweredAndJudgedAsTheOthersAre) {
  const Student ada("ada");
  const Lab lab = lab_of_one_product(ada);
  const fs::path folder = test::new_folder() / "work";
  make_workspace(lab, ada, folder);
  EXPECT_NE(test::read_file(folder / "README.md").find("How many bytes"), std::string::npos);

  const auto judged = [&](const std::map<std::string, std::string>& answers) {
    test::write_file(folder / "answers.toml", answers_text(lab, ada, answers));
    return check_lab(lab, read_answers(folder / "answers.toml", lab), folder);
  };
  EXPECT_TRUE(judged(right_answers(lab)).passed());
  EXPECT_EQ(judged({}).points(), 0);
  EXPECT_EQ(judged(with_wrong_numbers(lab)).tasks[0].diagnosis,
            "that counts elements: each has 2 bytes");
  EXPECT_EQ(judged(with_wrong_choices(lab)).points(), 1);
  EXPECT_NE(lab_of_one_product(Student("grace")).intro, lab.intro);
}

}  // namespace
}  // namespace fuseline::lab
