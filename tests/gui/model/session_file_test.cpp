#include "gui/model/session_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "base/data_dir.h"
#include "base/error.h"
#include "gui/model/fusion_edits.h"
#include "tests/cli/cli_run.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SessionFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        (std::string("session_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name = "s.toml") const {
    return (folder_ / name).string();
  }
  [[nodiscard]] std::string written(const std::string& text) const {
    std::ofstream(path()) << text;
    return path();
  }
  fs::path folder_;
};

// Everything that a session can hold.
Document full_document() {
  Document d = test::small_document({"eager", "coda"});
  d.title = "with \"quotes\", a \\ and ü";
  d.setup.what_if = {.hbm_bandwidth = 1.5, .l2_capacity = 0.25};
  d.setup.workload.dtype = Dtype::fp16;
  d.layers.reset();
  d.measurements = default_document().measurements;
  d.runs.add({.name = "mine",
              .policy = kCustomPolicy,
              .custom = {{"interleave_gate_up"}, {{"gate_up", "swiglu"}, {"down", "residual2"}}}});
  d.runs.add({.name = "a plan of a file", .policy = "coda", .plan = "/plans/own.fuse"});
  gui::Setup pinned = with_phase(test::small_setup(), Phase::decode);
  pinned.fidelity = Fidelity::roofline;
  pinned.what_if.sm_clock = 0.5;
  const RunId other = d.runs.add({.name = "other, \"pinned\"", .policy = "xla", .setup = pinned});
  d.runs.add({.policy = "eager", .measurements = default_document().measurements});
  d.runs.set_baseline(other);
  return d;
}

// Ids are given anew when a file is read.
void expect_same(const Document& a, const Document& b) {
  EXPECT_EQ(a.title, b.title);
  EXPECT_EQ(a.setup, b.setup);
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.measurements.empty(), b.measurements.empty());
  if (!a.measurements.empty()) {
    EXPECT_TRUE(fs::equivalent(a.measurements, b.measurements));
  }
  ASSERT_EQ(a.runs.all().size(), b.runs.all().size());
  for (std::size_t i = 0; i < a.runs.all().size(); ++i) {
    const gui::Run &x = a.runs.all()[i], &y = b.runs.all()[i];
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.policy, y.policy);
    EXPECT_EQ(x.is_measurement(), y.is_measurement());
    EXPECT_EQ(x.custom, y.custom);
    EXPECT_EQ(x.setup, y.setup);
  }
  EXPECT_EQ(a.runs.at(a.runs.baseline()).name, b.runs.at(b.runs.baseline()).name);
}

TEST_F(SessionFile, EverythingComesBack) {
  const Document d = full_document();
  save_document(d, path());
  const LoadedDocument loaded = load_document(path());
  EXPECT_THAT(loaded.notes, IsEmpty());
  expect_same(loaded.document, d);
  // And the second time nothing changes any more.
  save_document(loaded.document, path("again.toml"));
  expect_same(load_document(path("again.toml")).document, loaded.document);
}

TEST_F(SessionFile, TheCommandLineReadsItAndPredictsTheSameNumbers) {
  Document d = test::small_document({"eager"});
  d.setup.what_if.hbm_bandwidth = 2;
  d.runs.add(
      {.policy = kCustomPolicy, .custom = {{"interleave_gate_up"}, {{"gate_up", "swiglu"}}}});
  save_document(d, path());
  const CliRun run = cli({"predict", path(), "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json predictions = json::parse(run.out).at("predictions");
  const Results results = test::results_of(d);
  ASSERT_EQ(predictions.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(predictions[i].at("policy"), results.runs[i].run.policy);
    EXPECT_EQ(predictions[i].at("hbm_read_bytes"), results.runs[i].result->totals.hbm_read.value());
    EXPECT_EQ(predictions[i].at("time_us"), to_us(results.runs[i].result->totals.time));
  }
  EXPECT_EQ(cli({"explain", path(), "--policy", "custom"}).status, 0);
}

TEST_F(SessionFile, EveryShippedScenarioOpens) {
  for (const std::string& name : scenario_names()) {
    const LoadedDocument loaded = load_document((data_dir() / (name + ".toml")).string());
    EXPECT_FALSE(loaded.document.runs.all().empty()) << name;
    save_document(loaded.document, path());
    expect_same(load_document(path()).document, loaded.document);
  }
}

TEST_F(SessionFile, MeasurementsThatAreNotThereAreANoteAndNotAnError) {
  const LoadedDocument loaded =
      load_document(written("title = \"t\"\nmodel = \"tinyllama\"\ngpu = \"h200\"\nseq = 256\n"
                            "policies = [\"eager\"]\nmeasurements = \"nowhere\"\n"));
  ASSERT_EQ(loaded.notes.size(), 1U);
  EXPECT_THAT(loaded.notes[0], HasSubstr("nowhere"));
  EXPECT_EQ(loaded.document.runs.all().size(), 1U);
}

TEST_F(SessionFile, ErrorsNameFileLineAndReason) {
  const std::string head =
      "title = \"t\"\nmodel = \"tinyllama\"\ngpu = \"h200\"\npolicies = [\"eager\"]\n";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"[[runs]]\nname = \"a\"\npolicy = \"eagr\"\n", ":7:10: runs[0].policy"},
      {"[[runs]]\nname = \"a\"\npolicy = \"eager\"\non_chip = []\n",
       "only a prediction under custom"},
      {"[[runs]]\nname = \"a\"\npolicy = \"custom\"\non_chip = [\"a b\"]\n", "is not an edge"},
      {"[[runs]]\nname = \"a\"\npolicy = \"custom\"\nrewrites = [\"merge_rop\"]\n",
       "did you mean 'merge_rope'"},
      {"[[runs]]\nname = \"a\"\npolicy = \"xla\"\n[[runs]]\nname = \"a\"\npolicy = \"xla\"\n",
       "an earlier run has the same name"},
      {"[[runs]]\nname = \"a\"\npolicy = \"xla\"\n[runs.setup]\nmodel = \"tinylama\"\ngpu = "
       "\"h200\"\n",
       "(of run a)"},
      {"[[runs]]\nname = \"a\"\npolicy = \"xla\"\n[runs.setup]\nmodel = \"tinyllama\"\n",
       "runs[0].setup.gpu: the field is missing"},
      {"runs = []\n", "holds no run"},
      {"runs = 3\n", "is not a list of tables"},
      {"[what_if]\nhbm_bandwidth = 100\n", ":6:17: what_if.hbm_bandwidth = '100': is too large"},
      {"[what_if]\nbandwidth = 2\n", "unknown field"},
      {"[gui]\nbaseline = \"b\"\n[[runs]]\nname = \"a\"\npolicy = \"xla\"\n", "gui.baseline = 'b'"},
      {"[custom]\nrewrite = []\n", "did you mean 'rewrites'"},
  };
  for (const auto& [text, message] : wrong) {
    try {
      static_cast<void>(load_document(written(head + text)));
      ADD_FAILURE() << "accepted:\n" << text;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path())) << text;
      EXPECT_THAT(error.what(), HasSubstr(message)) << text;
    }
  }
  EXPECT_THROW(static_cast<void>(load_document(path("not-there.toml"))), InputError);
}

TEST_F(SessionFile, PolicyCustomNeedsItsTable) {
  const std::string head = "title = \"t\"\nmodel = \"tinyllama\"\ngpu = \"h200\"\n";
  EXPECT_THROW(static_cast<void>(load_document(written(head + "policies = [\"custom\"]\n"))),
               InputError);
  const LoadedDocument loaded = load_document(written(
      head + "seq = 256\npolicies = [\"custom\"]\n[custom]\non_chip = [\"down -> residual2\"]\n"));
  EXPECT_THAT(loaded.document.runs.all().front().custom.on_chip,
              ElementsAre(OnChipEdge{"down", "residual2"}));
}

TEST_F(SessionFile, AFailedSaveLeavesTheOldFileAndNothingElse) {
  save_document(test::small_document(), path());
  EXPECT_THROW(save_document(test::small_document(), folder_ / "none" / "s.toml"), InputError);
  EXPECT_THROW(save_document(test::small_document(), folder_), InputError);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

// Bytes taken out, put in and doubled: loading gives a document or an InputError, never more.
TEST_F(SessionFile, BrokenFilesAreRefusedAndNeverMore) {
  const std::string text = document_text(full_document(), folder_);
  std::mt19937 random(3);
  for (int i = 0; i < 150; ++i) {
    std::string broken = text;
    const std::size_t at = random() % broken.size();
    switch (i % 3) {
      case 0:
        broken.erase(at, 1 + random() % 5);
        break;
      case 1:
        broken.insert(at, 1, "\"[]={}\n\\0"[random() % 9]);
        break;
      default:
        broken.resize(at);
    }
    try {
      const LoadedDocument loaded = load_document(written(broken));
      EXPECT_FALSE(loaded.document.runs.all().empty());
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()), "");
    }
  }
}

// What was measured has no plan of its own to be predicted.
TEST_F(SessionFile, AMeasuredRunHasNoPlanOfAFile) {
  const std::string text = document_text(full_document(), folder_);
  ASSERT_THAT(text, HasSubstr("plan = \"/plans/own.fuse\"\n"));
  EXPECT_NO_THROW((void)load_document(written(text)));
  std::string wrong = text;
  const std::string plan = "plan = \"/plans/own.fuse\"\n";
  wrong.insert(wrong.find(plan), "measurements = \"somewhere\"\n");
  try {
    (void)load_document(written(wrong));
    FAIL() << wrong;
  } catch (const InputError& e) {
    EXPECT_EQ(e.problem().field, "runs[3].plan");
    EXPECT_THAT(e.problem().message, HasSubstr("only a prediction has it"));
  }
}

TEST_F(SessionFile, RecentFilesAreUniqueNewestFirstAndStillThere) {
  RecentFiles recent(folder_);
  EXPECT_THAT(recent.list(), IsEmpty());
  for (const char* name : {"a.toml", "b.toml", "a.toml", "gone.toml"}) {
    std::ofstream(path(name)) << "x";
    recent.add(path(name));
  }
  fs::remove(path("gone.toml"));
  EXPECT_THAT(RecentFiles(folder_).list(), ElementsAre(path("a.toml"), path("b.toml")));
  for (int i = 0; i < 20; ++i) recent.add(written("x"));
  EXPECT_LE(recent.list().size(), RecentFiles::kMost);
  recent.clear();
  EXPECT_THAT(recent.list(), IsEmpty());
}

// Its process is still in the system's list until its parent asks.
TEST_F(SessionFile, AutosavedWorkIsFoundRightAfterAKill) {
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  const Document d = full_document();
  const pid_t child = fork();
  if (child == 0) {
    Autosave kept(folder_);
    kept.store(d, "");
    static_cast<void>(write(pipe_ends[1], "x", 1));
    pause();
    _exit(0);
  }
  char stored = 0;
  ASSERT_EQ(read(pipe_ends[0], &stored, 1), 1);
  EXPECT_THAT(Autosave(folder_).left_behind(), IsEmpty());  // it runs
  kill(child, SIGKILL);
  siginfo_t ended{};
  waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);  // dead, and not asked for
  EXPECT_EQ(Autosave(folder_).left_behind().size(), 1U);
  int status = 0;
  waitpid(child, &status, 0);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_F(SessionFile, AutosavedWorkIsFoundWhenItsWindowRunsNoLonger) {
  const Document d = full_document();
  const pid_t child = fork();
  if (child == 0) {
    Autosave(folder_).store(d, "/somewhere/original.toml");
    _exit(0);  // as a kill would: nothing is discarded
  }
  int status = 0;
  waitpid(child, &status, 0);
  Autosave mine(folder_);
  mine.store(d, "");  // a window that runs is no window's leftover
  const std::vector<Autosave::Left> left = mine.left_behind();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].original, "/somewhere/original.toml");
  expect_same(load_document(left[0].file.string()).document, d);
  mine.discard();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace fuseline::gui
