// What a command does when the system fails it: no permission, a full disk, no memory. Each call
// that opens, writes, renames or allocates fails once, one run each. Then the command ends with a
// documented status and one message, and a file that was there is the old one or the new one,
// whole. A few of the calls of each command are tried every time, all of them by ./test.sh --long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace fuseline {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

struct Faulted {
  const char* name;
  bool writes;                         // a file
  std::vector<std::string> arguments;  // OUT stands for a folder of the run's own
  Files before;                        // files that are there already, below OUT
  // Commands that nothing fails, which make more of them. What they make counts as old.
  std::vector<std::vector<std::string>> prepare{};
};

std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Files files_below(const fs::path& folder) {
  Files all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      all[entry.path().lexically_relative(folder).string()] = read_all(entry.path());
  }
  return all;
}

// Names the test cases in the output.
void PrintTo(const Faulted& command, std::ostream* out) { *out << command.name; }

struct Fault {
  std::string call;
  long at = 0;  // 0: none
  int error = EIO;
  bool and_later = false;
};

struct FaultedRun {
  int status = -1;  // 128 and more: a signal
  std::string error;
  Files files;
  long calls = -1;  // the library did not say: it was not loaded
};

class FaultedCommands : public ::testing::TestWithParam<Faulted> {
 protected:
  // One processor, and so one thread: calls come in the same order in every run, and none of them
  // is OpenMP's own, whose library ends the program where it gets no memory.
  FaultedCommands() {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed)) continue;
      CPU_ZERO(&allowed);
      CPU_SET(cpu, &allowed);
      sched_setaffinity(0, sizeof allowed, &allowed);
      return;
    }
  }

  void SetUp() override {
    before_ = GetParam().before;
    for (const std::vector<std::string>& words : GetParam().prepare) {
      const FaultedRun made = run(words, {.call = "none"});
      ASSERT_EQ(made.status, 0) << made.error;
      before_ = made.files;
    }
  }

  FaultedRun run(const Fault& fault) { return run(GetParam().arguments, fault); }

  FaultedRun run(const std::vector<std::string>& arguments, const Fault& fault) {
    fs::remove_all(root_);
    const fs::path out = root_ / "out";
    fs::create_directories(out);
    for (const auto& [name, text] : before_) {
      fs::create_directories((out / name).parent_path());
      std::ofstream(out / name, std::ios::binary) << text;
      // A course's secret must be readable by its owner alone.
      if (name.ends_with("secret.txt"))
        fs::permissions(out / name, fs::perms::owner_read | fs::perms::owner_write);
    }
    // An empty folder is no file, and so not among them.
    if (fs::exists(out / "course")) fs::create_directories(out / "course/submissions");
    // env starts the program: what stands before it is loaded without the library.
    std::string command = fmt::format(
        "cd '{}' && XDG_CACHE_HOME='{}' OMP_NUM_THREADS=2 timeout 60 env LD_PRELOAD='{}' "
        "FUSELINE_FAIL_CALL={} FUSELINE_FAIL_AT={} FUSELINE_FAIL_ERROR={} FUSELINE_FAIL_ON={} "
        "FUSELINE_CALL_COUNT='{}' '{}'",
        FUSELINE_SOURCE_DIR, (root_ / "cache").string(), FUSELINE_FAILING_CALLS, fault.call,
        fault.at, fault.error, fault.and_later ? 1 : 0, (root_ / "count").string(),
        FUSELINE_BINARY);
    for (std::string word : arguments) {
      if (const std::size_t at = word.find("OUT"); at != std::string::npos)
        word.replace(at, 3, out.string());
      command += " '" + word + "'";
    }
    command += fmt::format(" >'{0}/stdout' 2>'{0}/stderr' </dev/null", root_.string());
    const int ended = std::system(command.c_str());
    FaultedRun result;
    result.status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
    result.error = read_all(root_ / "stderr");
    result.files = files_below(out);
    if (std::ifstream count(root_ / "count"); count) count >> result.calls;
    return result;
  }

  // Which of so many calls fail, one run each: all of a few, else the first ones and a spread.
  static std::vector<long> chosen_of(long calls, long most) {
    std::vector<long> at;
    for (long i = 1; i <= std::min(calls, most); ++i)
      at.push_back(calls <= most || i <= most / 2
                       ? i
                       : most / 2 + (i - most / 2) * (calls - most / 2) / (most - most / 2));
    return at;
  }

  // Whether tables of a course's grades have as many lines, and pages of feedback as many labs.
  static bool same_parts(const std::string& name, const std::string& a, const std::string& b) {
    if (!a.ends_with('\n')) return false;
    if (name.ends_with("gradebook.csv") || name.ends_with("tasks.csv"))
      return std::ranges::count(a, '\n') == std::ranges::count(b, '\n');
    if (name.find("/feedback/") == std::string::npos) return false;
    const auto labs = [](const std::string& text) {
      std::size_t count = 0;
      for (std::size_t at = 0; (at = text.find("\n## Lab ", at)) != std::string::npos; ++at)
        ++count;
      return count;
    };
    return labs(a) == labs(b);
  }

  void expect_whole(const FaultedRun& got, const Files& after, bool and_later,
                    const std::string& what) const {
    for (const auto& [name, text] : got.files) {
      // Where nothing can be opened any more, a folder that was begun cannot be removed either.
      if (and_later && name.starts_with(".fuseline-")) continue;
      const auto old = before_.find(name);
      const auto made = after.find(name);
      const bool is_old = old != before_.end() && old->second == text;
      const bool is_new = made != after.end() && made->second == text;
      // What could not be read is said in results, in the gradebook and in what students get back,
      // so these are other ones. But they are whole: no student's line and no lab is missing.
      const bool is_result = name.ends_with(".json")
                                 ? nlohmann::json::accept(text)
                                 : made != after.end() && same_parts(name, text, made->second);
      EXPECT_TRUE(is_old || is_new || is_result)
          << what << ": '" << name << "' holds " << text.size()
          << " bytes that are neither the old nor the new file\n"
          << got.error;
    }
    for (const auto& [name, text] : before_)
      EXPECT_TRUE(got.files.contains(name)) << what << ": '" << name << "' is gone";
  }

  void try_all(const std::string& call, long most, const std::vector<int>& errors,
               bool both = false) {
    const FaultedRun whole = run({.call = call});
    // A lab that nobody answered is checked, and not passed.
    ASSERT_TRUE(whole.status == 0 || whole.status == 1) << whole.error;
    // Without calls there is nothing to fail, and this test would show nothing.
    ASSERT_GE(whole.calls, 0) << "the library was not loaded";
    const bool writes = call == "write" || call == "rename";
    if (call == "open" || call == "memory" || (writes && GetParam().writes)) {
      ASSERT_GT(whole.calls, 0) << call;
    }
    int failed = 0;
    const std::vector<long> chosen = chosen_of(whole.calls, most);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const long at = chosen[i];
      for (const int error : errors) {
        for (const bool and_later : {false, true}) {
          if (call == "memory" && and_later) continue;  // no message without memory
          // Of a few calls one fails once and the next one for good.
          if (call != "memory" && !both && (i % 2 == 1) != and_later) continue;
          const FaultedRun got = run({call, at, error, and_later});
          const std::string what = fmt::format("{} {} of {}, {}{}", call, at, whole.calls,
                                               std::strerror(error), and_later ? ", for good" : "");
          EXPECT_TRUE(got.status == whole.status || got.status == 2 || got.status == 3)
              << what << ": status " << got.status << "\n"
              << got.error;
          if (got.status != whole.status) {
            ++failed;
            // The message itself may be what cannot be written.
            if (call != "write") {
              EXPECT_THAT(got.error, ::testing::HasSubstr("fuseline: ")) << what;
            }
          }
          expect_whole(got, whole.files, and_later, what);
        }
      }
    }
    fmt::print("{}: {} calls, {} runs ended with a message\n", call, whole.calls, failed);
  }

  fs::path root_ = fs::path(::testing::TempDir()) / "faulted";
  Files before_;
};

class FailingCalls : public FaultedCommands {};
class LongFailingCalls : public FaultedCommands {};

TEST_P(FailingCalls, FilesThatCannotBeOpened) { try_all("open", 8, {EACCES}); }
TEST_P(FailingCalls, ADiskThatIsFull) { try_all("write", 6, {ENOSPC}); }
TEST_P(FailingCalls, FilesThatCannotTakeTheirPlace) { try_all("rename", 6, {EIO}); }
TEST_P(FailingCalls, ADiskThatFailsWhenItIsSynchronised) { try_all("sync", 6, {EIO}); }
TEST_P(FailingCalls, FoldersThatCannotBeMade) { try_all("folder", 6, {EACCES}); }
TEST_P(FailingCalls, NoMemory) { try_all("memory", 12, {ENOMEM}); }

// Every third allocation of a command with few: GCC 12 destroyed the strings of a list without a
// type twice, where a later member of the struct around it found no memory.
class ShortCommand : public FaultedCommands {};
TEST_P(ShortCommand, MayFindNoMemoryAnywhere) { try_all("memory", 240, {ENOMEM}); }

TEST_P(LongFailingCalls, FilesThatCannotBeOpened) { try_all("open", 200, {EACCES, EMFILE}, true); }
TEST_P(LongFailingCalls, ADiskThatIsFull) { try_all("write", 200, {ENOSPC, EIO}, true); }
TEST_P(LongFailingCalls, FilesThatCannotTakeTheirPlace) { try_all("rename", 200, {EIO}, true); }
TEST_P(LongFailingCalls, ADiskThatFailsWhenItIsSynchronised) { try_all("sync", 200, {EIO}, true); }
TEST_P(LongFailingCalls, FoldersThatCannotBeMade) {
  try_all("folder", 200, {EACCES, ENOSPC}, true);
}
TEST_P(LongFailingCalls, NoMemory) { try_all("memory", 200, {ENOMEM}); }

std::vector<Faulted> commands() {
  const std::vector<std::string> small = {"--model", "tinyllama", "--gpu", "h200", "--seq", "128"};
  const auto with = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), small.begin(), small.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::vector<std::string> course = {"course", "init", "OUT/course", "--student",       "ada",
                                           "--labs", "1",    "--deadline", "2026-11-02 23:59"};
  return {
      {"predict", false, with({"predict"}, {"--policy", "coda"}), {}},
      {"drawings",
       true,
       with({"predict"}, {"--policy", "coda", "--output", "OUT/p.txt", "--plot", "OUT/p.svg",
                          "--trace", "OUT/p.json"}),
       {{"p.txt", "an older table\n"}, {"p.svg", "an older picture\n"}}},
      {"explain",
       true,
       with({"explain"}, {"--policy", "coda", "--format", "program", "--output", "OUT/p.fuse"}),
       {{"p.fuse", "an older plan\n"}}},
      {"sweep",
       true,
       {"sweep", "--model", "tinyllama", "--gpu", "h200", "--seq", "64,128", "--policy",
        "eager,coda", "--output", "OUT/s.csv", "--plot", "OUT/s.svg"},
       {{"s.csv", "an older table\n"}, {"s.svg", "an older picture\n"}}},
      {"report",
       true,
       with({"report"}, {"--policy", "eager,coda", "--output", "OUT/r.html"}),
       {{"r.html", "an older report\n"}}},
      {"graph",
       true,
       {"import", "graph", "tests/model/import/graphs/llama.json", "--output", "OUT/l.block"},
       {{"l.block", "an older block\n"}}},
      {"counters",
       true,
       {"import", "ncu", "docs/nsight-compute.csv", "--model", "gpt2-xl", "--gpu", "h200",
        "--policy", "eager", "--phase", "forward", "--seq", "2048", "--date", "2026-11-20",
        "--output", "OUT/measured"},
       {}},
      {"trace",
       true,
       {"import", "trace", "docs/torch-trace.json", "--model", "tinyllama", "--gpu", "h200",
        "--phase", "decode", "--context", "2048", "--date", "2026-11-20", "--output",
        "OUT/measured"},
       {}},
      {"gradient",
       true,
       {"program", "gradient", "docs/handbook/swish.fuse", "--kept", "OUT/kept.fuse"},
       {{"kept.fuse", "an older program\n"}}},
      {"lab", true, {"lab", "start", "1", "--student", "ada", "--dir", "OUT/lab-01"}, {}},
      {"checked_lab",
       true,
       {"lab", "report", "--dir", "OUT", "--result", "OUT/result.json"},
       {{"result.json", "an older result\n"}},
       {{"lab", "start", "1", "--student", "ada", "--dir", "OUT/lab-01"}}},
      // The student who comes later: what is there stays, and the secret above all.
      {"course", true, {"course", "init", "OUT/course", "--student", "bob"}, {}, {course}},
      {"graded_course",
       true,
       {"course", "grade", "OUT/course"},
       {},
       {course,
        {"lab", "staff", "1", "--student", "ada", "--secret", "OUT/course/secret.txt", "--dir",
         "OUT/course/submissions/ada"}}},
  };
}

INSTANTIATE_TEST_SUITE_P(Commands, FailingCalls, ::testing::ValuesIn(commands()),
                         [](const auto& given) { return std::string(given.param.name); });
INSTANTIATE_TEST_SUITE_P(Commands, ShortCommand,
                         ::testing::Values(Faulted{"policies", false, {"list", "policies"}, {}}),
                         [](const auto& given) { return std::string(given.param.name); });
INSTANTIATE_TEST_SUITE_P(Commands, LongFailingCalls, ::testing::ValuesIn(commands()),
                         [](const auto& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace fuseline
