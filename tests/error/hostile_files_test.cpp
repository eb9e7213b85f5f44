// Every option that names a file to read, with every kind of thing that can stand under a file's
// name; every option that names a file to write, likewise. Whatever it is, the command ends soon,
// with the status of a user's mistake or of something missing, one message that names it, and no
// other file written.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/temporary_folder.h"
#include "tests/error/run_program.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// FILE stands for the hostile file.
struct Reader {
  const char* name;
  Words arguments;
  const char* ending = "";
  // Some readers take any bytes, and some report what is wrong within their usual output.
  std::vector<std::string> accepts{};
  bool reports = false;
};

// Names the test cases in the output.
void PrintTo(const Reader& reader, std::ostream* out) { *out << reader.name; }

const std::string kRoot = FUSELINE_SOURCE_DIR;
const std::string kMeasuredFolder = kRoot + "/scenarios/measurements/h200-fuseline";

std::vector<Reader> readers() {
  return {
      {"scenario", {"predict", "FILE"}, ".toml"},
      {"model", {"predict", "--model", "FILE", "--gpu", "h200"}, ".toml"},
      {"config", {"predict", "--model", "FILE", "--gpu", "h200"}, ".json"},
      {"gpu", {"gemm", "--m", "1", "--n", "1", "--k", "1", "--gpu", "FILE"}, ".toml"},
      {"block", {"predict", "--block", "FILE", "--gpu", "h200"}, ".block"},
      {"plan", {"predict", "--model", "tinyllama", "--plan", "FILE"}, ".fuse"},
      {"routing", {"predict", "--model", "mixtral-8x7b", "--routing", "FILE"}, ".csv"},
      {"program", {"program", "check", "FILE"}, ".fuse"},
      {"swept", {"sweep", "FILE"}, ".toml"},
      {"reported", {"report", "FILE"}, ".toml"},
      {"measurement", {"compare", "FILE"}, ".csv"},
      {"compared", {"compare", "FILE", kMeasuredFolder}, ".json"},
      {"claims", {"audit", "--claims", "FILE"}, ".toml"},
      {"figures", {"judge", "FILE"}, ".csv"},
      {"saved", {"diff", "FILE", "FILE"}, ".json"},
      {"calibrated", {"calibrate", "FILE", "--gpu", "h200"}, ".csv"},
      {"gemm_table", {"calibrate", "--gemm-table", "FILE", "--gpu", "h200"}, ".csv"},
      {"counters",
       {"import", "ncu", "FILE", "--model", "gpt2-xl", "--gpu", "h200", "--policy", "eager",
        "--phase", "forward", "--seq", "2048", "--output", "out"},
       ".csv"},
      {"graph", {"import", "graph", "FILE"}, ".json"},
      {"archive", {"import", "graph", "FILE"}, ".pt2"},
      {"trace",
       {"import", "trace", "FILE", "--model", "tinyllama", "--gpu", "h200", "--phase", "forward",
        "--seq", "2048"},
       ".json"},
      {"shapes", {"search", "--model", "tinyllama", "--distribution", "FILE"}, ".csv"},
      {"secret", {"lab", "start", "1", "--secret", "FILE", "--dir", "out"}, "", {"noise"}},
      {"lab_folder", {"lab", "check", "1", "--dir", "FILE"}, "", {}, true},
      {"students", {"course", "init", "out", "--students", "FILE"}, ".csv"},
      {"course", {"course", "grade", "FILE"}, ""},
  };
}

// What may stand there. Each makes it under the path.
struct HostileInput {
  const char* name;
  std::function<void(const fs::path&)> make;
};

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void make_socket(const fs::path& path) {
  const int made = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = path.string();
  ASSERT_LT(name.size(), sizeof address.sun_path);
  name.copy(address.sun_path, name.size());
  ASSERT_EQ(bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  close(made);
}

std::vector<HostileInput> hostile_files() {
  const auto text = [](const std::string& bytes) {
    return [bytes](const fs::path& path) { write(path, bytes); };
  };
  std::string noise;
  for (unsigned i = 0, state = 1; i < 4096; ++i) {
    state = state * 1103515245 + 12345;
    noise += static_cast<char>(state >> 16);
  }
  return {
      {"nothing", [](const fs::path&) {}},
      {"an_empty_folder", [](const fs::path& path) { fs::create_directory(path); }},
      {"a_pipe", [](const fs::path& path) { mkfifo(path.c_str(), 0666); }},
      {"a_socket", make_socket},
      {"a_link_in_a_circle", [](const fs::path& path) { fs::create_symlink(path, path); }},
      {"a_link_to_nothing", [](const fs::path& path) { fs::create_symlink("none", path); }},
      {"a_device_without_end", [](const fs::path& path) { fs::create_symlink("/dev/zero", path); }},
      {"an_empty_file", text("")},
      {"one_byte", text("\xff")},
      {"zero_bytes", text(std::string(5000, '\0'))},
      {"noise", text(noise)},
      {"a_long_line", text(std::string(3'000'000, 'a'))},
      {"many_lines", text([] {
         std::string lines;
         for (int i = 0; i < 300'000; ++i) lines += "a,b\n";
         return lines;
       }())},
      {"deep_brackets", text(std::string(100'000, '['))},
      {"deep_braces", text([] {
         std::string braces;
         for (int i = 0; i < 50'000; ++i) braces += "{\"a\":";
         return braces;
       }())},
      {"utf16", text(std::string("\xff\xfe"
                                 "a\0b\0\n\0",
                                 8))},
      {"a_terabyte_of_nothing",
       [](const fs::path& path) {
         write(path, "");
         // A file with a hole takes no room on the disk.
         if (truncate(path.c_str(), off_t{1} << 40) != 0) write(path, "a");
       }},
  };
}

class HostileFiles : public testing::TestWithParam<Reader> {};

TEST_P(HostileFiles, AreRefusedWithAMessage) {
  for (const HostileInput& hostile : hostile_files()) {
    const TemporaryFolder folder("hostile");
    const fs::path path = folder.path() / (std::string("h") + GetParam().ending);
    hostile.make(path);
    Words arguments = GetParam().arguments;
    for (std::string& word : arguments)
      if (word == "FILE") word = path.string();
    const std::string what =
        fmt::format("{} as fuseline {}", hostile.name, fmt::join(arguments, " "));
    const ProgramRun run = run_program(arguments);
    if (!run.available) GTEST_SKIP() << "the program is not built";
    const auto& accepts = GetParam().accepts;
    if (std::ranges::find(accepts, hostile.name) != accepts.end()) {
      EXPECT_EQ(run.status, 0) << what << "\n" << run.error;
      continue;
    }
    EXPECT_TRUE(run.status == 2 || run.status == 3) << what << ": status " << run.status << "\n"
                                                    << run.error.substr(0, 2000);
    if (!GetParam().reports) {
      EXPECT_EQ(run.output, "") << what;
    }
    EXPECT_TRUE(run.files_left.empty()) << what << " left " << run.files_left.front();
    EXPECT_NE(run.error.find("fuseline: "), std::string::npos) << what << ": " << run.error;
    EXPECT_NE(run.error.find(path.filename().string()), std::string::npos)
        << what << ": the message does not name the file: " << run.error.substr(0, 2000);
    EXPECT_LT(run.error.size(), 6000U) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Readers, HostileFiles, testing::ValuesIn(readers()),
                         [](const auto& given) { return std::string(given.param.name); });

std::vector<Reader> writers() {
  const Words small = {"--model", "tinyllama", "--gpu", "h200", "--seq", "64", "--policy", "coda"};
  const auto with = [&](Words words, const Words& more) {
    words.insert(words.end(), small.begin(), small.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  return {
      {"predict", with({"predict"}, {"--output", "FILE"}), ".json"},
      {"predict_plot", with({"predict"}, {"--plot", "FILE"}), ".svg"},
      {"predict_trace", with({"predict"}, {"--trace", "FILE"}), ".json"},
      {"explain", with({"explain"}, {"--output", "FILE"}), ".txt"},
      {"explain_plot", with({"explain"}, {"--plot", "FILE"}), ".svg"},
      {"sweep", with({"sweep"}, {"--output", "FILE"}), ".csv"},
      {"report", with({"report"}, {"--output", "FILE"}), ".html"},
      {"gradient",
       {"program", "gradient", kRoot + "/docs/handbook/swish.fuse", "--output", "FILE"},
       ".fuse"},
      {"graph",
       {"import", "graph", kRoot + "/tests/model/import/graphs/llama.json", "--output", "FILE"},
       ".block"},
      {"verdict",
       {"verdict", "--model", "llama2-7b-mlp", "--gpu", "h200", "--batch", "1", "--seq", "64",
        "--policy", "per-operator", "--output", "FILE"},
       ".json"},
  };
}

std::vector<HostileInput> hostile_places() {
  return {
      {"a_folder", [](const fs::path& path) { fs::create_directory(path); }},
      {"a_folder_with_a_file",
       [](const fs::path& path) {
         fs::create_directory(path);
         write(path / "kept", "kept");
       }},
      {"a_pipe_that_nobody_reads", [](const fs::path& path) { mkfifo(path.c_str(), 0666); }},
      {"a_socket", make_socket},
      {"a_link_in_a_circle", [](const fs::path& path) { fs::create_symlink(path, path); }},
      {"a_link_into_a_missing_folder",
       [](const fs::path& path) { fs::create_symlink("none/none", path); }},
      {"a_full_device", [](const fs::path& path) { fs::create_symlink("/dev/full", path); }},
  };
}

class HostilePlaces : public testing::TestWithParam<Reader> {};

TEST_P(HostilePlaces, AreRefusedWithAMessage) {
  for (const HostileInput& hostile : hostile_places()) {
    const TemporaryFolder folder("hostile");
    const fs::path path = folder.path() / (std::string("h") + GetParam().ending);
    hostile.make(path);
    const auto kind_before = fs::symlink_status(path).type();
    Words arguments = GetParam().arguments;
    for (std::string& word : arguments)
      if (word == "FILE") word = path.string();
    const std::string what =
        fmt::format("{} for fuseline {}", hostile.name, fmt::join(arguments, " "));
    const ProgramRun run = run_program(arguments);
    if (!run.available) GTEST_SKIP() << "the program is not built";
    EXPECT_TRUE(run.status == 2 || run.status == 3) << what << ": status " << run.status << "\n"
                                                    << run.error;
    EXPECT_NE(run.error.find("fuseline: "), std::string::npos) << what << ": " << run.error;
    // What stood there stands there, and nothing half-written lies beside it.
    EXPECT_EQ(fs::symlink_status(path).type(), kind_before) << what;
    std::size_t beside = 0;
    for (const auto& entry : fs::directory_iterator(folder.path()))
      beside += entry.path() == path ? 0U : 1U;
    EXPECT_EQ(beside, 0U) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Writers, HostilePlaces, testing::ValuesIn(writers()),
                         [](const auto& given) { return std::string(given.param.name); });

}  // namespace
}  // namespace fuseline
