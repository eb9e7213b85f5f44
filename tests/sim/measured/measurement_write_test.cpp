#include "sim/measured/measurement_write.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <sstream>

#include "base/error.h"
#include "model/activation_formats/stored_activation.h"
#include "sim/measured/measurement_table.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

BlockCase forward_case(std::int64_t seq) {
  return {.model = "tiny", .execution = "eager", .workload = {.seq = seq}};
}

MeasuredBlock block_of(std::int64_t seq, double us) {
  return {.block = forward_case(seq),
          .time = {microseconds(us), microseconds(us - 1), microseconds(us + 1)}};
}

MeasuredKernel kernel_of(const std::string& name, std::int64_t bytes) {
  return {.site = "qkv",
          .kernel = name,
          .time = microseconds(4.032),
          .hbm_read = Bytes(bytes),
          .hbm_write = Bytes(0),
          .l2 = Bytes(bytes)};
}

// Every number and text that a table or meta.toml carries, so that two measurements compare as one
// text. Times in picoseconds and clocks in kilohertz: what the files keep.
std::string all_of(const Measurements& m) {
  std::ostringstream out;
  const auto ps = [](Seconds s) { return std::llround(s.value() * 1e12); };
  const auto name = [&](const BlockCase& c) {
    out << c.label() << "|" << c.workload.context << "|" << name_of(c.workload.dtype) << "|"
        << routing_line(c.workload.routing) << "|";
  };
  const auto times = [&](const SpreadOfTimes& t) {
    out << ps(t.median) << "|" << ps(t.least) << "|" << ps(t.most) << "|";
  };
  const auto optional = [&](const auto& value) {
    if (value) out << value->value();
    out << "|";
  };
  const auto clock = [&](const std::optional<Hertz>& value) {
    if (value) out << std::llround(value->value() * 1e-3);
    out << "|";
  };
  const auto block = [&](const MeasuredBlock& b) {
    name(b.block);
    times(b.time);
    out << b.timer << "|" << b.throttle << "|";
    clock(b.sm_clock_median);
    clock(b.sm_clock_least);
    optional(b.power);
    if (b.checked) out << *b.checked;
    optional(b.hbm_read);
    optional(b.hbm_write);
    optional(b.l2);
    out << "\n";
  };
  for (const MeasuredBlock& b : m.blocks) block(b);
  out << "rivals\n";
  for (const MeasuredBlock& b : m.rivals) block(b);
  for (const MeasuredTrace& t : m.traces) {
    name(t.block);
    for (const MeasuredKernel& k : t.kernels) {
      out << k.site << "|" << k.kernel << "|" << k.grid << "|" << k.block << "|" << k.tile << "|"
          << ps(k.time) << "|" << k.hbm_read.value() << "|" << k.hbm_write.value() << "|"
          << k.l2.value() << "|" << (k.recorded_kind ? name_of(*k.recorded_kind) : "") << "|"
          << (k.time_in_graph ? ps(*k.time_in_graph) : -1) << "\n";
    }
  }
  for (const MeasuredGemm& g : m.gemms) {
    out << g.m << "|" << g.n << "|" << g.k << "|";
    times(g.time);
    out << "\n";
  }
  const MeasurementMeta& meta = m.meta;
  for (const std::string& text :
       {meta.title, meta.gpu, meta.device, meta.driver, meta.toolkit, meta.framework, meta.date,
        meta.clocks, meta.command, meta.version, meta.counters, meta.launches}) {
    out << text << "\n";
  }
  for (const std::string& note : meta.notes) out << note << "\n";
  out << meta.raster_clusters.value_or(-1) << "\n";
  return out.str();
}

// Random measurements: odd texts, optional fields there or not.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  Measurements measurements() {
    Measurements m;
    for (std::int64_t i = up_to(4); i >= 0; --i) m.blocks.push_back(block(i));
    for (std::int64_t i = up_to(2); i > 0; --i) m.rivals.push_back(block(i));
    for (std::int64_t i = up_to(3); i > 0; --i) m.traces.push_back(trace(i));
    for (std::int64_t i = up_to(3); i > 0; --i) m.gemms.push_back({i, 8 * i, 64, times()});
    m.meta.title = text();
    m.meta.driver = text();
    m.meta.counters = text();
    if (up_to(1) > 0) m.meta.raster_clusters = up_to(20);
    if (up_to(1) > 0) m.meta.launches = kOverlappingLaunches;
    for (std::int64_t i = up_to(2); i > 0; --i) m.meta.notes.push_back(text() + ".");
    return m;
  }

 private:
  std::int64_t up_to(std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random_);
  }
  bool coin() { return up_to(1) == 1; }
  std::string text() {
    static const std::vector<std::string> kTexts = {"",
                                                    "nvjet_sm90",
                                                    "void f<a, b>(T const*)",
                                                    "say \"hi\", twice",
                                                    "#1",
                                                    "back\\slash",
                                                    "µs = [x]",
                                                    " padded "};
    return kTexts[static_cast<std::size_t>(up_to(static_cast<std::int64_t>(kTexts.size()) - 1))];
  }
  // Up to 10 s in whole picoseconds.
  Seconds time() { return Seconds(static_cast<double>(1 + up_to(10'000'000'000'000)) * 1e-12); }
  SpreadOfTimes times() {
    std::vector<Seconds> t = {time(), time(), time()};
    std::sort(t.begin(), t.end());
    return {.median = t[1], .least = t[0], .most = t[2]};
  }
  Bytes bytes() { return Bytes(up_to(std::int64_t{1} << 60)); }
  BlockCase block_case(std::int64_t i) {
    BlockCase c = forward_case(i + 1);
    c.model = "#" + text();
    c.workload.dtype = coin() ? Dtype::bf16 : Dtype::fp16;
    if (coin()) {
      c.workload.phase = Phase::decode;
      c.workload.context = c.workload.seq + up_to(100);
    }
    const std::string plain = name_of(c.workload.dtype);
    Formats& formats = c.workload.formats;
    if (coin()) formats.weights = parse_stored_weight(coin() ? "fp8" : "int4:64", "", plain);
    if (coin() && formats.weights.name() == "fp8")
      formats.activations = parse_stored_activation("fp8", "", plain);
    if (coin()) formats.cache = parse_stored_cache("int8", "", plain);
    if (coin()) c.workload.routing = {.name = "uniform"};
    if (coin()) c.workload.routing = {.name = "a, b: c.csv", .shares = {0.1, 0, 0.9}};
    if (coin()) c.workload.routing = {.name = "counted.csv", .rows = {up_to(100), up_to(1 << 30)}};
    return c;
  }
  MeasuredBlock block(std::int64_t i) {
    MeasuredBlock b{.block = block_case(i), .time = times()};
    b.timer = text();
    b.throttle = text();
    if (coin()) b.sm_clock_median = Hertz(1e3 * static_cast<double>(1 + up_to(3'000'000)));
    if (coin()) b.sm_clock_least = Hertz(1e3 * static_cast<double>(1 + up_to(3'000'000)));
    if (coin()) b.power = Watts(0.125 * static_cast<double>(1 + up_to(8000)));
    if (coin()) b.checked = coin() ? 0.0 : 1e-3 * static_cast<double>(1 + up_to(1000));
    if (coin()) b.hbm_read = bytes();
    if (coin()) b.hbm_write = bytes();
    if (coin()) b.l2 = bytes();
    return b;
  }
  MeasuredTrace trace(std::int64_t i) {
    MeasuredTrace t{block_case(100 + i), {}};
    for (std::int64_t k = up_to(5); k >= 0; --k) {
      MeasuredKernel kernel = kernel_of(text(), 0);
      kernel.site = text();
      kernel.hbm_read = bytes();
      kernel.hbm_write = bytes();
      kernel.time = time();
      kernel.grid = text();
      kernel.tile = text();
      if (coin()) kernel.recorded_kind = coin() ? KernelKind::gemm : KernelKind::block;
      if (coin()) kernel.time_in_graph = time();
      t.kernels.push_back(kernel);
    }
    return t;
  }

  std::mt19937 random_;
};

class MeasurementWriteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            (std::string("measurement_write_") +
             testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
             std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
    folder_ = root_ / "mine";
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / name, std::ios::binary) << text;
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
  // Drafts and old folders that should be gone.
  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(root_)) {
      out.insert(entry.path().filename().string());
    }
    return out;
  }
  static Measurements one_block(double us = 500) {
    Measurements m;
    m.blocks.push_back(block_of(128, us));
    m.meta.gpu = "h200";
    return m;
  }
  fs::path root_, folder_;
};

// One folder, extended block by block: what is recorded of it grows and stays readable.
TEST_F(MeasurementWriteTest, TwoHundredCommandsOfOneFolderAreAllRecorded) {
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    Measurements m;
    MeasuredBlock block;
    block.block = {.model = "llama2-7b", .execution = "coda", .workload = {.seq = 1 + i}};
    block.time = {Seconds(1e-3), Seconds(1e-3), Seconds(1e-3)};
    m.blocks.push_back(block);
    m.meta.command = "fuseline measure --model llama2-7b --seq " + std::to_string(1 + i);
    expected += (i == 0 ? "" : "\n") + m.meta.command;
    write_measurements(folder_, m, ExistingFolder::extend);
  }
  // Once more: nothing new.
  Measurements again = load_measurements(folder_.string());
  again.meta.command = "fuseline measure --model llama2-7b --seq 20";
  write_measurements(folder_, again, ExistingFolder::extend);
  EXPECT_EQ(load_measurements(folder_.string()).meta.command, expected);
}

TEST_F(MeasurementWriteTest, WhatIsWrittenIsReadBack) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const Measurements m = Generator(seed).measurements();
    write_measurements(folder_, m, ExistingFolder::replace);
    ASSERT_EQ(all_of(load_measurements(folder_.string())), all_of(m));
  }
  EXPECT_EQ(names(), std::set<std::string>{"mine"});
}

TEST_F(MeasurementWriteTest, ShippedMeasurementsComeBackTextByText) {
  const std::string shipped =
      std::string(FUSELINE_SOURCE_DIR) + "/scenarios/measurements/h200-pytorch";
  const Measurements m = load_measurements(shipped);
  write_measurements(folder_, m);
  const Measurements again = load_measurements(folder_.string());
  EXPECT_EQ(all_of(again), all_of(m));
  for (std::size_t i = 0; i < m.blocks.size(); ++i) {
    EXPECT_EQ(again.blocks[i].time.median.value(), m.blocks[i].time.median.value());
  }
  // No optional column appears that was not there.
  const std::string header = blocks_csv(m.blocks).substr(0, blocks_csv(m.blocks).find('\n'));
  EXPECT_EQ(header, "model,execution,phase,batch,seq,context,ms_median,ms_min,ms_max,timer");
}

TEST_F(MeasurementWriteTest, NumbersStandInTheirUnits) {
  MeasuredBlock b = block_of(128, 500);
  b.sm_clock_median = Hertz(1.98e9);
  b.power = Watts(612.5);
  b.checked = 0.0025;
  b.hbm_read = Bytes(7);
  EXPECT_EQ(blocks_csv(std::vector{b}),
            "model,execution,phase,batch,seq,context,ms_median,ms_min,ms_max,sm_mhz_median,"
            "power_w,checked,hbm_read_bytes\n"
            "tiny,eager,forward,1,128,0,0.5,0.499,0.501,1980,612.5,0.0025,7\n");
}

TEST_F(MeasurementWriteTest, ARecordedKindWinsOverTheName) {
  MeasuredKernel k = kernel_of("fused_everything", 1);
  EXPECT_EQ(k.kind(), KernelKind::pointwise);
  k.recorded_kind = KernelKind::gemm;
  Measurements m;
  m.traces.push_back({forward_case(8), {k}});
  write_measurements(folder_, m);
  EXPECT_EQ(load_measurements(folder_.string()).traces[0].kernels[0].kind(), KernelKind::gemm);
}

TEST_F(MeasurementWriteTest, AFolderThatIsThereIsRefused) {
  write_measurements(folder_, one_block());
  const std::string before = text_of(folder_ / "block.csv");
  const InputProblem p = problem_of([&] { write_measurements(folder_, one_block(900)); });
  EXPECT_EQ(p.file, folder_.string());
  EXPECT_EQ(text_of(folder_ / "block.csv"), before);
  EXPECT_EQ(names(), std::set<std::string>{"mine"});
}

TEST_F(MeasurementWriteTest, ReplacingKeepsNothing) {
  Measurements first = one_block();
  first.gemms.push_back({1, 2, 3, {microseconds(2), microseconds(1), microseconds(3)}});
  write_measurements(folder_, first);
  write_measurements(folder_ / "", one_block(900), ExistingFolder::replace);
  const Measurements m = load_measurements(folder_.string());
  EXPECT_TRUE(m.gemms.empty());
  EXPECT_NEAR(to_us(m.blocks.at(0).time.median), 900, 1e-6);
}

TEST_F(MeasurementWriteTest, AFolderOfOtherThingsIsNotReplaced) {
  write("thesis.txt", "years");
  const InputProblem p =
      problem_of([&] { write_measurements(folder_, one_block(), ExistingFolder::replace); });
  EXPECT_EQ(p.value, "thesis.txt");
  EXPECT_EQ(text_of(folder_ / "thesis.txt"), "years");
}

TEST_F(MeasurementWriteTest, ExtendingAddsAndReplacesCases) {
  Measurements first = one_block();
  first.blocks.push_back(block_of(256, 700));
  first.meta.date = "2026-11-20";
  write_measurements(folder_, first);
  write("README.md", "kept");

  Measurements second = one_block(510);
  second.traces.push_back({forward_case(128), {kernel_of("nvjet", 5)}});
  second.meta.date = "2026-11-21";
  write_measurements(folder_, second, ExistingFolder::extend);

  const Measurements m = load_measurements(folder_.string());
  ASSERT_EQ(m.blocks.size(), 2U);
  EXPECT_NEAR(to_us(m.blocks[0].time.median), 510, 1e-6);
  EXPECT_NEAR(to_us(m.blocks[1].time.median), 700, 1e-6);
  EXPECT_EQ(m.traces.size(), 1U);
  EXPECT_EQ(m.meta.date, "2026-11-20; 2026-11-21");
  EXPECT_EQ(text_of(folder_ / "README.md"), "kept");
}

TEST_F(MeasurementWriteTest, RivalsAreExtendedAndReplacedLikeBlocks) {
  Measurements first = one_block();
  first.rivals = {block_of(128, 600), block_of(256, 800)};
  write_measurements(folder_, first);
  Measurements second = one_block(510);
  second.rivals = {block_of(256, 810), block_of(512, 990)};
  write_measurements(folder_, second, ExistingFolder::extend);
  const Measurements m = load_measurements(folder_.string());
  EXPECT_EQ(m.blocks.size(), 1U);
  ASSERT_EQ(m.rivals.size(), 3U);
  EXPECT_NEAR(to_us(m.rivals[0].time.median), 600, 1e-6);
  EXPECT_NEAR(to_us(m.rivals[1].time.median), 810, 1e-6);
  EXPECT_NEAR(to_us(m.rivals[2].time.median), 990, 1e-6);

  // One without rivals has no such file, also where there was one.
  write_measurements(folder_, one_block(), ExistingFolder::replace);
  EXPECT_FALSE(fs::exists(folder_ / "rivals.csv"));
}

TEST_F(MeasurementWriteTest, RivalsAloneAreNoMeasurement) {
  Measurements rivals;
  rivals.rivals = {block_of(128, 600)};
  EXPECT_THROW(write_measurements(folder_, rivals), InputError);
  write("rivals.csv", blocks_csv(rivals.rivals));
  EXPECT_EQ(problem_of([&] { load_measurements(folder_.string()); }).file, folder_.string());
  // As a file it is read by its name.
  EXPECT_EQ(load_measurements((folder_ / "rivals.csv").string()).rivals.size(), 1U);
}

TEST_F(MeasurementWriteTest, TwoGpusDoNotShareAFolder) {
  write_measurements(folder_, one_block());
  Measurements other = one_block();
  other.meta.gpu = "h100";
  const InputProblem p =
      problem_of([&] { write_measurements(folder_, other, ExistingFolder::extend); });
  EXPECT_EQ(p.field, "gpu");
  EXPECT_EQ(p.value, "h100");
  // Neither do two ways to sweep tiles, by one of which the folder is predicted.
  other = one_block();
  other.meta.raster_clusters = 8;
  const InputProblem swept =
      problem_of([&] { write_measurements(folder_, other, ExistingFolder::extend); });
  EXPECT_EQ(swept.field, "raster_clusters");
  EXPECT_EQ(swept.value, "8");
  other = one_block();
  other.meta.launches = kOverlappingLaunches;
  const InputProblem launched =
      problem_of([&] { write_measurements(folder_, other, ExistingFolder::extend); });
  EXPECT_EQ(launched.field, "launches");
  EXPECT_EQ(launched.value, kOverlappingLaunches);
}

TEST_F(MeasurementWriteTest, LaunchesOverlapOrAreNotMentioned) {
  write_measurements(folder_, one_block());
  std::ofstream(folder_ / "meta.toml", std::ios::app) << "launches = \"stream\"\n";
  const InputProblem p = problem_of([&] { load_measurements(folder_.string()); });
  EXPECT_EQ(p.field, "launches");
  EXPECT_EQ(p.value, "stream");
  EXPECT_THAT(p.allowed, testing::HasSubstr(kOverlappingLaunches));
}

TEST_F(MeasurementWriteTest, FoldersWithSuchNamesAreNotOurs) {
  // What an earlier version used for itself, by the number of its process.
  const fs::path beside = folder_.string() + "." + std::to_string(getpid()) + ".part";
  fs::create_directory(beside);
  std::ofstream(beside / "mine") << "x";
  write_measurements(folder_, one_block());
  EXPECT_TRUE(fs::exists(beside / "mine"));
}

TEST_F(MeasurementWriteTest, LinksStayLinks) {
  fs::create_directory(root_ / "there");
  fs::create_directory_symlink("there", folder_);
  write_measurements(folder_, one_block(), ExistingFolder::replace);
  EXPECT_TRUE(fs::is_symlink(folder_));
  EXPECT_TRUE(fs::exists(root_ / "there" / "block.csv"));
  // One that leads to its own folder is no endless tree.
  fs::create_directory_symlink(".", root_ / "there" / "self");
  write_measurements(folder_, one_block(), ExistingFolder::extend);
  EXPECT_TRUE(fs::is_symlink(root_ / "there" / "self"));
}

TEST_F(MeasurementWriteTest, ExtendingLosesNoColumn) {
  write("gemm.csv", "m,n,k,bias,us_median,us_min,us_max\n1,2,3,0,1,1,1\n");
  const InputProblem p =
      problem_of([&] { write_measurements(folder_, one_block(), ExistingFolder::extend); });
  EXPECT_EQ(p.field, "bias");
}

TEST_F(MeasurementWriteTest, RefusesWhatCannotBeWritten) {
  EXPECT_THROW(write_measurements(folder_, {}), InputError);
  EXPECT_THROW(write_measurements(root_ / "none" / "mine", one_block()), InputError);
  EXPECT_THROW(write_measurements("", one_block()), InputError);
  std::ofstream(root_ / "file") << "x";
  EXPECT_THROW(write_measurements(root_ / "file", one_block(), ExistingFolder::replace),
               InputError);

  Measurements lines;
  lines.traces.push_back({forward_case(8), {kernel_of("two\nlines", 1)}});
  EXPECT_EQ(problem_of([&] { write_measurements(folder_, lines); }).field, "kernel");
  Measurements latin = one_block();
  latin.meta.title = "caf\xE9";
  EXPECT_EQ(problem_of([&] { write_measurements(folder_, latin); }).field, "title");
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(MeasurementWriteTest, BadOptionalCellsAreRefused) {
  const std::string head = "model,execution,phase,batch,seq,context,ms_median,ms_min,ms_max,";
  const std::string row = "tiny,eager,forward,1,8,0,1,1,1,";
  for (const auto& [column, cell] :
       {std::pair("sm_mhz_median", "0"), std::pair("sm_mhz_min", "fast"),
        std::pair("power_w", "-1"), std::pair("checked", "nan"), std::pair("hbm_read_bytes", "1.5"),
        std::pair("hbm_write_bytes", "-1"), std::pair("l2_bytes", "1e3"),
        std::pair("dtype", "int8")}) {
    SCOPED_TRACE(column);
    write("block.csv", head + column + "\n" + row + cell + "\n");
    const InputProblem p = problem_of([&] { load_measurements(folder_.string()); });
    EXPECT_EQ(p.field, column);
    EXPECT_EQ(p.line, 2);
    // An empty cell is a value that was not recorded.
    write("block.csv", head + column + "\n" + row + "\n");
    EXPECT_EQ(load_measurements(folder_.string()).blocks.size(), 1U);
  }
}

}  // namespace
}  // namespace fuseline
