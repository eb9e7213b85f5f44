// A whole course: 50 students, four labs, 200 submissions as a learning platform unpacks them,
// right, wrong, broken and hostile. Each gets the row that it deserves, and none holds the others
// up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <functional>

#include <fmt/format.h>

#include "base/error.h"
#include "lab/course/course_folder.h"
#include "lab/course/gradebook.h"
#include "lab/course/grading.h"
#include "lab/workspace.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

namespace fs = std::filesystem;

// What is handed in, and what it is worth: `lost` points of all, or none at all.
struct Case {
  std::string name;
  std::function<void(const fs::path& folder)> make{};  // of right answers something else
  RowStatus status = RowStatus::graded;
  bool worthless = false;
  std::string note{};  // a part of it
};

class LongCourseTrial : public ::testing::Test {
 protected:
  static constexpr int kStudents = 50;

  LongCourseTrial() {
    CourseStart start{.folder = folder_, .settings = {.name = "a trial"}, .students = {}};
    for (const int lab : {1, 2, 3, 7}) start.settings.labs.push_back({lab, {}});
    for (int i = 0; i < kStudents; ++i) start.students.push_back(fmt::format("s{:03}", i));
    make_course(start);
    course_ = load_course(folder_);
  }

  [[nodiscard]] fs::path place(const std::string& student, int lab) const {
    return course_.submissions() /
           fmt::format("{}_{}_assignsubmission_file/lab-{:02}", student, 4711 + lab, lab);
  }

  // Right answers of the student in every task, the function or plan too.
  void hand_in(const std::string& student, int lab) const {
    const Student who(student, course_.secret);
    const Lab made = make_lab(lab, who);
    const fs::path to = place(student, lab);
    fs::create_directories(to.parent_path());
    fs::copy(course_.student_folder(student, lab), to);
    test::write_file(to / "answers.toml", answers_text(made, who, right_answers(made)));
    if (lab == 3) {
      test::write_file(to / "stub.cpp",
                       with_factor(test::read_file(test::solutions(3) / "right.cpp.in"), made));
    }
    if (lab == 7) {
      const std::string plan = test::read_file(to / "plan.toml");
      test::write_file(to / "plan.toml", plan.substr(0, plan.find("[custom]\n")) +
                                             test::read_file(test::solutions(7) / "right.toml"));
    }
  }

  void answer(const std::string& student, int lab,
              const std::map<std::string, std::string>& answers) const {
    const Student who(student, course_.secret);
    test::write_file(place(student, lab) / "answers.toml",
                     answers_text(make_lab(lab, who), who, answers));
  }

  // Ways to hand in answers.
  std::vector<Case> answer_cases(const std::string& student, int lab,
                                 const std::string& neighbour) const {
    const Student who(student, course_.secret);
    const Lab made = make_lab(lab, who);
    const auto write = [](const std::string& text) {
      return [text](const fs::path& f) { test::write_file(f / "answers.toml", text); };
    };
    return {
        {"right", [](const fs::path&) {}, RowStatus::graded, false, ""},
        {"wrong numbers",
         [=, this](const fs::path&) { answer(student, lab, with_wrong_numbers(made)); }},
        {"wrong choices",
         [=, this](const fs::path&) { answer(student, lab, with_wrong_choices(made)); }},
        {"nothing answered", [=, this](const fs::path&) { answer(student, lab, {}); }},
        {"the neighbour's folder",
         [=, this](const fs::path& f) {
           fs::remove_all(f);
           fs::copy(course_.student_folder(neighbour, lab), f);
         },
         RowStatus::not_theirs, true, "another student's"},
        {"a made-up tag",
         write(fmt::format("lab = {}\nstudent = \"{}\"\nsecret = \"{}\"\ntag = "
                           "\"0123\"\n[answers]\n",
                           lab, student, course_.secret.name())),
         RowStatus::not_theirs, true, "was not started for"},
        {"self-study", write(answers_text(made, Student(student), right_answers(made))),
         RowStatus::not_theirs, true, "another secret"},
        {"no TOML", write("lab = "), RowStatus::broken, true, ""},
        {"bytes",
         write(std::string("\x7f"
                           "ELF\0\1\2\xff",
                           8)),
         RowStatus::broken, true, ""},
        {"a huge file", write(std::string(3 << 20, 'x')), RowStatus::broken, true, ""},
        {"a link to the secret",
         [this](const fs::path& f) {
           fs::remove(f / "answers.toml");
           fs::create_symlink(fs::absolute(folder_ / "secret.txt"), f / "answers.toml");
         },
         RowStatus::hostile, true, "is no plain file"},
        {"a pipe",
         [](const fs::path& f) {
           fs::remove(f / "answers.toml");
           ASSERT_EQ(mkfifo((f / "answers.toml").c_str(), 0600), 0);
         },
         RowStatus::hostile, true, "is no plain file"},
        {"no answers.toml", [](const fs::path& f) { fs::remove(f / "answers.toml"); },
         RowStatus::broken, true, ""},
        {"nothing", [](const fs::path& f) { fs::remove_all(f.parent_path()); }, RowStatus::missing,
         true, "nothing was handed in"},
    };
  }

  // Ways to hand in the function of lab 3: what stands before it, and its first lines.
  struct FunctionCase {
    std::string name, before, first;
    RowStatus status = RowStatus::graded;
    std::string diagnosis;  // a part of it
  };
  std::vector<FunctionCase> function_cases() const {
    const std::string raw =
        "long r; asm volatile(\"syscall\" : \"=a\"(r) : \"a\"({}L), \"D\"({}L), \"S\"(1L), "
        "\"d\"(0L) : \"rcx\", \"r11\", \"memory\"); if (r < 0) __builtin_trap();";
    return {
        {"right", "", "", RowStatus::graded, ""},
        {"an endless loop", "", "volatile bool on = true; while (on) {}", RowStatus::graded,
         "longer than 10 s"},
        {"a flood", "#include <cstdio>", "while (true) std::puts(\"hello\");", RowStatus::graded,
         "printed more"},
        {"a memory bomb", "#include <cstdlib>\n#include <cstring>",
         "while (true) { void* p = std::malloc(1 << 20); if (!p) std::abort(); std::memset(p, 1, "
         "1 << 20); }",
         RowStatus::graded, ""},
        {"a fork bomb", "#include <unistd.h>", "while (true) fork();", RowStatus::hostile, "fork"},
        {"a raw fork bomb", "", fmt::format(fmt::runtime(raw), 57, 0), RowStatus::graded, ""},
        {"a trace", "#include <sys/ptrace.h>", "ptrace(PTRACE_TRACEME, 0, 0, 0);",
         RowStatus::hostile, "ptrace"},
        {"a socket", "", fmt::format(fmt::runtime(raw), 41, 2), RowStatus::graded, ""},
        {"the secret included",
         "#include \"" + fs::absolute(folder_ / "secret.txt").string() + "\"", "",
         RowStatus::graded, "does not compile"},
        {"a file opened", "#include <cstdio>",
         "if (std::fopen(\"/etc/passwd\", \"r\") == nullptr) return;", RowStatus::graded, ""},
        {"done at once", "#include <cstdint>\n#include <unistd.h>",
         "std::uint64_t ask[4] = {5, 0, 0, 0}; if (write(3, ask, sizeof ask) < 0) return;",
         RowStatus::hostile, "said itself that it was done"},
        {"system replaced",
         "#include <unistd.h>\nextern \"C\" ssize_t write(int, const void*, "
         "size_t n) { return n; }",
         "", RowStatus::hostile, "is defined"},
        {"no C++", "this is no C++", "", RowStatus::graded, "does not compile"},
    };
  }

  static void put_into_stub(const fs::path& folder, const FunctionCase& c) {
    std::string text = test::read_file(folder / "stub.cpp");
    const std::string head = "float eps) {\n";
    const std::size_t at = text.find(head);
    ASSERT_NE(at, std::string::npos);
    text.insert(at + head.size(), c.first + "\n");
    test::write_file(folder / "stub.cpp", c.before + "\n" + text);
  }

  Grading grade() {
    return grade_course(
        course_,
        {.submissions = course_.submissions(), .submitted = {}, .again = false, .parallel = {}});
  }

  fs::path folder_ = test::new_folder() / "course";
  Course course_;
};

TEST_F(LongCourseTrial, TwoHundredSubmissionsGetTheRowsThatTheyDeserve) {
  std::map<std::pair<std::string, int>, Case> wanted;
  std::map<std::string, FunctionCase> functions;
  for (int i = 0; i < kStudents; ++i) {
    const std::string& student = course_.students[static_cast<std::size_t>(i)];
    const std::string& neighbour = course_.students[static_cast<std::size_t>((i + 1) % kStudents)];
    for (const int lab : {1, 2, 3, 7}) {
      hand_in(student, lab);
      if (lab == 3) {
        const auto cases = function_cases();
        functions[student] = cases[static_cast<std::size_t>(i) % cases.size()];
        put_into_stub(place(student, lab), functions[student]);
        continue;
      }
      const auto cases = answer_cases(student, lab, neighbour);
      // Each lab begins elsewhere in the list. What removes the student's whole place is for those
      // who handed in each lab at a place of its own, as here.
      const Case& c = cases[static_cast<std::size_t>(i + 3 * lab) % cases.size()];
      c.make(place(student, lab));
      wanted[{student, lab}] = c;
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  const Grading grading = grade();
  const auto took = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(grading.rows.size(), 200U);
  std::map<std::string, int> rows;
  for (const GradeRow& row : grading.rows) {
    ++rows[name_of(row.status)];
    if (row.lab == 3) {
      const FunctionCase& c = functions.at(row.student);
      SCOPED_TRACE(c.name);
      EXPECT_EQ(name_of(row.status), std::string(name_of(c.status))) << row.note;
      EXPECT_EQ(row.points, c.name == "right" ? row.of : row.of - 3) << row.note;
      const std::string result = test::read_file(course_.grades() / row.result);
      EXPECT_THAT(result, ::testing::HasSubstr(c.diagnosis));
      continue;
    }
    const Case& c = wanted.at({row.student, row.lab});
    SCOPED_TRACE(fmt::format("{} lab {}: {}", row.student, row.lab, c.name));
    EXPECT_EQ(name_of(row.status), std::string(name_of(c.status))) << row.note;
    EXPECT_THAT(row.note, ::testing::HasSubstr(c.note));
    EXPECT_TRUE(!c.worthless || row.points == 0);
    EXPECT_EQ(row.points == row.of, c.name == "right");
  }
  // Nothing of the secret is in what students may see.
  const std::string secret = test::read_file(folder_ / "secret.txt").substr(0, 48);
  for (const auto& entry : fs::recursive_directory_iterator(course_.grades())) {
    if (entry.is_directory()) continue;
    EXPECT_EQ(test::read_file(entry.path()).find(secret), std::string::npos) << entry.path();
  }
  std::string counts;
  for (const auto& [name, count] : rows) counts += fmt::format(" {} {}", count, name);
  const double seconds = std::chrono::duration<double>(took).count();
  std::printf("200 rows in %.1f s:%s\n%s", seconds, counts.c_str(),
              gradebook_csv(grading).substr(0, 1200).c_str());
  // Once more: nothing is judged again.
  const Grading again = grade();
  EXPECT_EQ(again.judged, 0U);
  EXPECT_EQ(gradebook_csv(again), gradebook_csv(grading));
}

}  // namespace
}  // namespace fuseline::lab
