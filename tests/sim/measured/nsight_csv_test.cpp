#include "sim/measured/nsight_csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "sim/measured/measurement_table.h"
#include "sim/measured/nsight_table.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

// As `ncu --csv --page raw` prints it: log lines, header, units, a line per kernel.
constexpr const char* kRawHeader =
    R"("ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum","lts__t_bytes.sum")";
constexpr const char* kRawUnits =
    R"("","","","","","","","","","","","byte","byte","nsecond","byte")";

// Cells in quotes, as the tool prints them; `rest` is already in quotes.
std::string line_of(const std::vector<std::string>& cells, const std::string& rest = "") {
  std::string text;
  for (const std::string& c : cells) text += (text.empty() ? "\"" : ",\"") + c + "\"";
  return text + (rest.empty() ? "" : "," + rest) + "\n";
}

std::string raw_row(int id, const std::string& name, const std::string& metrics) {
  return line_of({std::to_string(id), "77", "python", "localhost", name, "1", "7", "(384, 1, 1)",
                  "(2, 66, 1)", "0", "9.0"},
                 metrics);
}

std::string raw(const std::string& rows, const std::string& units = kRawUnits) {
  return "==PROF== Connected to process 77\n" + std::string(kRawHeader) + "\n" + units + "\n" +
         rows + "==PROF== Disconnected from process 77\n";
}

// As `ncu --csv` prints it: a line per metric.
constexpr const char* kLongHeader =
    R"("ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value")";

std::string long_row(int id, const std::string& name, const std::string& metric,
                     const std::string& unit, const std::string& value) {
  return line_of({std::to_string(id), "77", "python", "localhost", name, "1", "7", "(128, 1, 1)",
                  "(64, 1, 1)", "0", "8.0", "Command line profiler metrics", metric, unit, value});
}

std::string long_kernel(int id, const std::string& name) {
  return long_row(id, name, "dram__bytes_read.sum", "Mbyte", "2.5") +
         long_row(id, name, "dram__bytes_write.sum", "Kbyte", "1,024.50") +
         long_row(id, name, "gpu__time_duration.sum", "us", "41.28") +
         long_row(id, name, "lts__t_bytes.sum", "Gbyte", "1.25");
}

class NsightCsvTest : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '_');
    const fs::path path = fs::path(testing::TempDir()) / ("nsight_" + name + ".csv");
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  NsightReport read(const std::string& text) { return read_nsight_csv(write(text)); }
  InputProblem problem_of(const std::string& text) {
    try {
      read(text);
    } catch (const InputError& error) {
      return error.problem();
    }
    ADD_FAILURE() << "no InputError";
    return {};
  }
};

TEST_F(NsightCsvTest, ReadsTheRawPage) {
  const NsightReport r = read(raw(
      raw_row(0, "nvjet_sm90_tst", R"("19,399,424","16774656","46,688","287,475,616")") +
      raw_row(1, "void at::native::(anonymous namespace)::f<a, b>(T)", R"("0","12","1.5","3")")));
  ASSERT_EQ(r.kernels.size(), 2U);
  const NsightKernel& k = r.kernels[0];
  EXPECT_EQ(k.kernel.kernel, "nvjet_sm90_tst");
  EXPECT_DOUBLE_EQ(to_us(k.kernel.time), 46.688);
  EXPECT_EQ(k.kernel.hbm_read, Bytes(19399424));
  EXPECT_EQ(k.kernel.hbm_write, Bytes(16774656));
  EXPECT_EQ(k.kernel.l2, Bytes(287475616));
  EXPECT_EQ(k.kernel.grid, "(2, 66, 1)");
  EXPECT_EQ(k.kernel.block, "(384, 1, 1)");
  EXPECT_EQ(k.kernel.site, "");
  EXPECT_EQ(k.process, "77");
  EXPECT_EQ(k.device, "0");
  EXPECT_EQ(k.compute_capability, "9.0");
  EXPECT_EQ(k.line, 4);
  EXPECT_EQ(r.kernels[1].kernel.kernel, "void at::<unnamed>::f<a, b>(T)");
  EXPECT_FALSE(r.rounded);
}

TEST_F(NsightCsvTest, ReadsALinePerMetricWithScaledUnits) {
  const NsightReport r =
      read("some output of the program, \"quoted\"\n==PROF== x\n" + std::string(kLongHeader) +
           "\n" + long_kernel(0, "a") + "a line of the program\n" + long_kernel(1, "b"));
  ASSERT_EQ(r.kernels.size(), 2U);
  EXPECT_EQ(r.kernels[0].kernel.hbm_read, Bytes(2'500'000));
  EXPECT_EQ(r.kernels[0].kernel.hbm_write, Bytes(1'024'500));
  EXPECT_EQ(r.kernels[0].kernel.l2, Bytes(1'250'000'000));
  EXPECT_DOUBLE_EQ(to_us(r.kernels[0].kernel.time), 41.28);
  EXPECT_EQ(r.kernels[1].kernel.kernel, "b");
  EXPECT_TRUE(r.rounded);
}

TEST_F(NsightCsvTest, TakesTheSectionsDurationForTheTime) {
  const std::string text = std::string(kLongHeader) + "\n" +
                           long_row(0, "a", "dram__bytes_read.sum", "byte", "1") +
                           long_row(0, "a", "dram__bytes_write.sum", "byte", "2") +
                           long_row(0, "a", "", "", "") +  // a rule's line has no metric
                           long_row(0, "a", "lts__t_bytes.sum", "byte", "3");
  EXPECT_EQ(problem_of(text).field, "gpu__time_duration.sum");
  const NsightReport r = read(text + long_row(0, "a", "Duration", "msecond", "2"));
  ASSERT_EQ(r.kernels.size(), 1U);
  EXPECT_DOUBLE_EQ(to_us(r.kernels[0].kernel.time), 2000);
}

TEST_F(NsightCsvTest, FormsAgree) {
  const NsightReport rows =
      read(raw(raw_row(0, "a", R"("2.5","1.0245","41.28","1,250")"),
               R"("","","","","","","","","","","","Mbyte","Mbyte","usecond","Mbyte")"));
  const NsightReport metrics = read(std::string(kLongHeader) + "\n" + long_kernel(0, "a"));
  const MeasuredKernel &a = rows.kernels.at(0).kernel, &b = metrics.kernels.at(0).kernel;
  EXPECT_EQ(a.hbm_read, b.hbm_read);
  EXPECT_EQ(a.hbm_write, b.hbm_write);
  EXPECT_EQ(a.l2, b.l2);
  EXPECT_EQ(a.time, b.time);
}

TEST_F(NsightCsvTest, TakesSitesFromNvtxRanges) {
  const std::string range =
      "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg";
  const auto row = [](int id, const std::string& ranges) {
    return std::to_string(id) + ",77,\"" + ranges + "\",\"f(op=no)\",2,3,4,5\n";
  };
  const NsightReport r =
      read("ID,Process ID," + range +
           ",Kernel Name,gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,"
           "lts__t_bytes.sum\n,,,,us,byte,byte,byte\n" +
           row(0, R"(1 ""<default domain>:cfg=a~b:none"" ""<default domain>:op=norm1:none"" )") +
           row(1, R"(1 ""<default domain>:op=x:none"" ""<default domain>:op=gate-up:none"" )") +
           row(2, ""));
  ASSERT_EQ(r.kernels.size(), 3U);
  EXPECT_EQ(r.kernels[0].kernel.site, "norm1");
  EXPECT_EQ(r.kernels[1].kernel.site, "gate-up");  // the innermost
  EXPECT_EQ(r.kernels[2].kernel.site, "");         // not from the kernel's name
}

TEST_F(NsightCsvTest, KeepsTheKindThatTheWholeNameTells) {
  const std::string name = std::string(95, 'x') + "_flash_fwd_kernel";
  const NsightReport r = read(raw(raw_row(0, name, R"("1","1","1","1")") +
                                  raw_row(1, "nvjet_short", R"("1","1","1","1")")));
  EXPECT_EQ(r.kernels[0].kernel.kernel, std::string(90, 'x'));
  EXPECT_EQ(r.kernels[0].kernel.kind(), KernelKind::attention);
  EXPECT_FALSE(r.kernels[1].kernel.recorded_kind);
}

TEST_F(NsightCsvTest, SkipsABomAndRepeatedHeaders) {
  const std::string one = raw(raw_row(0, "a", R"("1","1","1","1")"));
  const std::string other = raw(raw_row(0, "b", R"("1","1","2","1")"),
                                R"("","","","","","","","","","","","byte","byte","us","byte")");
  const NsightReport r = read("\xEF\xBB\xBF" + std::string(kRawHeader) + "\r\n" + kRawUnits +
                              "\r\n" + raw_row(0, "c", R"("1","1","1","1")") + one + other);
  ASSERT_EQ(r.kernels.size(), 3U);
  EXPECT_DOUBLE_EQ(to_us(r.kernels[1].kernel.time), 0.001);
  EXPECT_DOUBLE_EQ(to_us(r.kernels[2].kernel.time), 2);  // its own row of units
}

TEST_F(NsightCsvTest, AQuotedCellMaySpanLines) {
  const NsightReport r = read(raw(raw_row(0, "f<a,\n  \"\"b\"\">", R"("1","1","1","1")") +
                                  raw_row(1, "g", R"("1","1","1","1")")));
  ASSERT_EQ(r.kernels.size(), 2U);
  EXPECT_EQ(r.kernels[0].kernel.kernel, "f<a,   \"b\">");
  EXPECT_EQ(r.kernels[1].line, 6);
}

TEST_F(NsightCsvTest, AMissingMetricNamesTheCommand) {
  std::string text = raw(raw_row(0, "a", R"("1","1","1","1")"));
  const std::size_t at = text.find("lts__t_bytes.sum");
  text.replace(at, 16, "lts__t_bytes.avg");
  const InputProblem p = problem_of(text);
  EXPECT_EQ(p.field, "lts__t_bytes.sum");
  EXPECT_NE(p.allowed.find(std::string("--metrics ") + kNsightMetrics), std::string::npos);
  EXPECT_EQ(p.nearest, "lts__t_bytes.avg");
  EXPECT_EQ(p.line, 2);
}

struct BadValue {
  const char* metrics;
  const char* field;
  const char* value;
};

void PrintTo(const BadValue& bad, std::ostream* out) { *out << bad.metrics; }

class BadNsightValue : public NsightCsvTest, public ::testing::WithParamInterface<BadValue> {};

TEST_P(BadNsightValue, IsRefusedWithLineAndMetric) {
  const InputProblem p =
      problem_of(raw(raw_row(0, "a", R"("1","1","1","1")") + raw_row(1, "b", GetParam().metrics)));
  EXPECT_EQ(p.line, 5);
  EXPECT_EQ(p.field, GetParam().field);
  EXPECT_EQ(p.value, GetParam().value);
}

INSTANTIATE_TEST_SUITE_P(
    Values, BadNsightValue,
    ::testing::Values(BadValue{R"("","1","1","1")", "dram__bytes_read.sum", ""},
                      BadValue{R"("1","n/a","1","1")", "dram__bytes_write.sum", "n/a"},
                      BadValue{R"("1","1","0","1")", "gpu__time_duration.sum", "0"},
                      BadValue{R"("1","1","-5","1")", "gpu__time_duration.sum", "-5"},
                      BadValue{R"("1","1","1","1,23")", "lts__t_bytes.sum", "1,23"},
                      BadValue{R"("1","1","1",",123")", "lts__t_bytes.sum", ",123"},
                      BadValue{R"("1","1","1","1234,567")", "lts__t_bytes.sum", "1234,567"},
                      BadValue{R"("1","1","1","1.234,5")", "lts__t_bytes.sum", "1.234,5"},
                      BadValue{R"("1","1","1","nan")", "lts__t_bytes.sum", "nan"},
                      BadValue{R"("1","1","1","7 byte")", "lts__t_bytes.sum", "7 byte"}),
    [](const auto& p) { return std::to_string(p.index); });

TEST_F(NsightCsvTest, RefusesUnknownUnits) {
  const std::string row = raw_row(0, "a", R"("1","1","1","1")");
  const InputProblem bytes =
      problem_of(raw(row, R"("","","","","","","","","","","","byte","sector","nsecond","byte")"));
  EXPECT_EQ(bytes.field, "dram__bytes_write.sum");
  EXPECT_EQ(bytes.value, "sector");
  const InputProblem time =
      problem_of(raw(row, R"("","","","","","","","","","","","byte","byte","cycle","byte")"));
  EXPECT_EQ(time.field, "gpu__time_duration.sum");
  EXPECT_EQ(time.value, "cycle");
}

TEST_F(NsightCsvTest, RefusesFilesThatAreNoTable) {
  EXPECT_THROW(read_nsight_csv("/no/such/file.csv"), InputError);
  EXPECT_THROW(read(""), InputError);
  EXPECT_NE(problem_of("model,execution\na,b\n").message.find("no table"), std::string::npos);
  EXPECT_NE(problem_of("==ERROR== ERR_NVGPUCTRPERM: no permission\n").message.find("not allowed"),
            std::string::npos);
  EXPECT_NE(problem_of("==WARNING== No kernels were profiled.\n").message.find("no kernel"),
            std::string::npos);
  EXPECT_NE(problem_of(std::string("\xFF\xFE\"\0", 4)).message.find("UTF-16"), std::string::npos);
  EXPECT_NE(problem_of(std::string(kRawHeader) + "\n").message.find("no kernel"),
            std::string::npos);
  EXPECT_NE(problem_of(raw("")).message.find("no kernel"), std::string::npos);
  EXPECT_EQ(problem_of(raw("\"0\",\"77\",\"cut\"\n")).line, 4);
  EXPECT_NE(problem_of(raw("\"0\",\"77\",\"cut\n")).message.find("never closed"),
            std::string::npos);
  const std::string no_units =
      std::string(kRawHeader) + "\n" + raw_row(0, "a", R"("1","1","1","1")");
  EXPECT_NE(problem_of(no_units).message.find("no row of units"), std::string::npos);
}

// Random edits, always the same: only InputError may be thrown, and what is accepted can be written
// as a measurement.
TEST_F(NsightCsvTest, EditedFilesAreReadOrRefused) {
  const std::vector<std::string> texts = {
      raw(raw_row(0, "nvjet", R"("19,399,424","1","46,688","287")") +
          raw_row(1, "f<a, b>", R"("0","12","1.5","3")")),
      std::string(kLongHeader) + "\n" + long_kernel(0, "a") + long_kernel(1, "b")};
  const std::vector<std::string> pieces = {"\"", ",",    "\n", "-",    "9",    "1e999",   ".",
                                           "==", "byte", "ID", "\"\"", "\x01", "\xff\xfe"};
  std::mt19937 random(4711);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  int accepted = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = texts[below(texts.size())];
    for (std::size_t edits = 1 + below(2); edits > 0; --edits) {
      text.replace(below(text.size()), below(12), pieces[below(pieces.size())]);
    }
    try {
      MeasuredTrace trace{{.model = "m", .execution = "e", .workload = {}}, {}};
      for (const NsightKernel& k : read(text).kernels) trace.kernels.push_back(k.kernel);
      EXPECT_NO_THROW(kernels_csv(std::vector{trace})) << text;
      ++accepted;
    } catch (const InputError& error) {
      EXPECT_FALSE(error.problem().message.empty()) << text;
      ++refused;
    }
  }
  EXPECT_GT(accepted, 30);
  EXPECT_GT(refused, 30);
}

TEST(NsightUnits, ArePowersOfAThousand) {
  const std::string file = "f";
  const NsightCell cell{file, 1, "m"};
  EXPECT_EQ(nsight_bytes("1.5", "byte", cell), Bytes(2));
  EXPECT_EQ(nsight_bytes("1,234.567", "KB", cell), Bytes(1'234'567));
  EXPECT_EQ(nsight_bytes("3", "Tbyte", cell), Bytes(3'000'000'000'000));
  EXPECT_THROW(nsight_bytes("3", "KiB", cell), InputError);
  EXPECT_THROW(nsight_bytes("10,000,000", "Tbyte", cell), InputError);
  for (const char* unit : {"ns", "nsecond"}) {
    EXPECT_DOUBLE_EQ(nsight_time("1,500", unit, cell).value(), 1.5e-6);
  }
  EXPECT_DOUBLE_EQ(nsight_time("2", "second", cell).value(), 2);
  EXPECT_THROW(nsight_time("2", "", cell), InputError);
}

}  // namespace
}  // namespace fuseline
