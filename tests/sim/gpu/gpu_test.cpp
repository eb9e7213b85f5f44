#include "sim/gpu/gpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "base/data_dir.h"
#include "base/data_files.h"
#include "base/error.h"
#include "base/toml_file.h"
#include "model/config/scenario.h"
#include "sim/block/estimate.h"
#include "sim/gpu/constant_table.h"
#include "sim/gpu/gpu_file.h"

namespace fuseline {
namespace {

// A GPU whose numbers are all different, so that swapped fields show.
const std::map<std::string, std::string>& numbers() {
  static const std::map<std::string, std::string> all = {{"sm_count", "100|1"},
                                                         {"sm_clock_boost", "2000|MHz"},
                                                         {"sm_clock_base", "1.5|GHz"},
                                                         {"tensor_clock", "1900|MHz"},
                                                         {"tensor_bf16_dense", "800|TFLOP/s"},
                                                         {"tensor_fp16_dense", "801|TFLOP/s"},
                                                         {"tensor_fp8_dense", "1.6|PFLOP/s"},
                                                         {"fp32_vector", "50|TFLOP/s"},
                                                         {"hbm_capacity", "80|GB"},
                                                         {"hbm_bandwidth", "3.35|TB/s"},
                                                         {"hbm_bandwidth_sustained", "3000|GB/s"},
                                                         {"l2_capacity", "50.5|MiB"},
                                                         {"l2_partitions", "2|1"},
                                                         {"l2_bandwidth", "7000|GB/s"},
                                                         {"smem_per_sm", "228|KiB"},
                                                         {"smem_per_block_max", "227|KiB"},
                                                         {"smem_bandwidth_per_sm", "64|B/clk"},
                                                         {"register_file_per_sm", "256|KiB"},
                                                         {"max_threads_per_sm", "1536|1"},
                                                         {"tdp", "650|W"},
                                                         {"tiny_kernel_graph", "1.25|us"}};
  return all;
}

std::string inline_number(
    const std::string& value_and_unit,
    const std::string& rest = "source = \"sheet\", date = \"2024-03\", status = \"datasheet\"") {
  const std::size_t bar = value_and_unit.find('|');
  return "{ value = " + value_and_unit.substr(0, bar) + ", unit = \"" +
         value_and_unit.substr(bar + 1) + "\", " + rest + " }";
}

constexpr const char* kHead =
    "name = \"g\"\ntitle = \"G\"\naliases = [\"gg\"]\narchitecture = \"hopper\"\n"
    "compute_capability = \"9.0\"\ncalibrated = true\n";

// The file with some numbers written otherwise; an empty text leaves the number out.
std::string file_with(const std::map<std::string, std::string>& changes = {}) {
  std::string text = kHead;
  for (const auto& [key, value] : numbers()) {
    const auto change = changes.find(key);
    if (change == changes.end()) {
      text += key + " = " + inline_number(value) + "\n";
    } else if (!change->second.empty()) {
      text += key + " = " + change->second + "\n";
    }
  }
  return text;
}

// Reads each architecture once.
std::shared_ptr<const Architecture> architecture_of(const std::string& name) {
  static std::map<std::string, std::shared_ptr<const Architecture>> read;
  auto& architecture = read[name];
  if (architecture == nullptr) architecture = load_architecture(name);
  return architecture;
}

Gpu read(const std::string& text) {
  return read_gpu(TomlTable::parse(text, "g.toml"), architecture_of);
}

InputProblem gpu_problem(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().file, "g.toml");
    return error.problem();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

InputProblem unknown_gpu(const std::string& name) {
  try {
    load_gpu(name);
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << name << " was accepted";
  return {};
}

TEST(ReadGpu, ConvertsEveryNumberToItsBaseUnit) {
  const Gpu g = read(file_with());
  EXPECT_EQ(g.name, "g");
  EXPECT_EQ(g.title, "G");
  EXPECT_EQ(g.aliases, std::vector<std::string>{"gg"});
  EXPECT_EQ(g.architecture->name, "hopper");
  EXPECT_EQ(g.compute_capability, "9.0");
  EXPECT_TRUE(g.calibrated);
  EXPECT_EQ(g.sm_count, 100);
  EXPECT_DOUBLE_EQ(g.sm_clock.value(), 2.0e9);
  EXPECT_DOUBLE_EQ(g.sm_clock_base.value(), 1.5e9);
  EXPECT_DOUBLE_EQ(g.tensor_clock.value(), 1.9e9);
  EXPECT_DOUBLE_EQ(g.tensor_bf16.value(), 8.00e14);
  EXPECT_DOUBLE_EQ(g.tensor_fp16.value(), 8.01e14);
  EXPECT_DOUBLE_EQ(g.tensor_fp8.value(), 1.6e15);
  EXPECT_DOUBLE_EQ(g.vector_fp32.value(), 5e13);
  EXPECT_EQ(g.hbm_capacity.value(), 80'000'000'000);
  EXPECT_DOUBLE_EQ(g.hbm_bandwidth.value(), 3.35e12);
  EXPECT_DOUBLE_EQ(g.hbm_bandwidth_sustained.value(), 3.0e12);
  EXPECT_EQ(g.l2_capacity.value(), 101 * 512 * 1024);
  EXPECT_EQ(g.l2_partitions, 2);
  EXPECT_DOUBLE_EQ(g.l2_bandwidth.value(), 7e12);
  EXPECT_EQ(g.smem_per_sm.value(), 228 * 1024);
  EXPECT_EQ(g.smem_per_block_max.value(), 227 * 1024);
  EXPECT_EQ(g.smem_bytes_per_clock, 64);
  EXPECT_EQ(g.registers_per_sm.value(), 256 * 1024);
  EXPECT_EQ(g.max_threads_per_sm, 1536);
  EXPECT_DOUBLE_EQ(g.tdp.value(), 650);
  EXPECT_DOUBLE_EQ(g.tiny_kernel.value(), 1.25e-6);
}

TEST(ReadGpu, GbAndGibDiffer) {
  EXPECT_EQ(read(file_with({{"hbm_capacity", inline_number("24|GiB")}})).hbm_capacity.value(),
            24LL << 30);
}

TEST(ReadGpu, KeepsTheSourceOfEveryNumber) {
  const Gpu g = read(file_with());
  EXPECT_EQ(g.sources.size(), numbers().size());
  EXPECT_EQ(g.sources.at("sm_clock_boost"), "2000 MHz (sheet, 2024-03, datasheet)");
}

TEST(ReadGpu, EveryNumberIsNeeded) {
  for (const auto& [key, value] : numbers()) {
    const InputProblem p = gpu_problem(file_with({{key, ""}}));
    EXPECT_EQ(p.field, key);
    EXPECT_EQ(p.message, "the number is missing");
    const std::string unit = value.substr(value.find('|') + 1);
    EXPECT_NE(p.allowed.find(unit), std::string::npos) << p.allowed;
  }
}

TEST(ReadGpu, EveryNumberRefusesAUnitOfAnotherKind) {
  for (const auto& [key, value] : numbers()) {
    const std::string wrong = value.ends_with("|W") ? "us" : "W";
    const InputProblem p = gpu_problem(
        file_with({{key, inline_number(value.substr(0, value.find('|') + 1) + wrong)}}));
    EXPECT_EQ(p.field, key + ".unit");
    EXPECT_EQ(p.value, wrong);
    EXPECT_GT(p.line, 6);
    EXPECT_NE(p.message.find("wrong unit"), std::string::npos) << p.message;
    EXPECT_NE(p.allowed.find(value.substr(value.find('|') + 1)), std::string::npos) << p.allowed;
  }
}

TEST(ReadGpu, UnitsAreSpelledExactly) {
  for (const char* unit : {"Mib", "MIB", "Mbit", "", "MiB "}) {
    const InputProblem p =
        gpu_problem(file_with({{"l2_capacity", inline_number(std::string("50|") + unit)}}));
    EXPECT_EQ(p.field, "l2_capacity.unit") << unit;
  }
}

TEST(ReadGpu, EveryNumberRefusesAbsurdValues) {
  for (const auto& [key, value] : numbers()) {
    const std::string unit = value.substr(value.find('|'));
    for (const char* bad : {"-1", "1e18", "nan", "inf", "\"5\"", "true"}) {
      const InputProblem p = gpu_problem(file_with({{key, inline_number(bad + unit)}}));
      EXPECT_EQ(p.field, key + ".value") << bad;
    }
    if (key != "tensor_fp8_dense") {
      EXPECT_EQ(gpu_problem(file_with({{key, inline_number("0" + unit)}})).field, key + ".value");
    }
  }
}

TEST(ReadGpu, OnlyFp8MayBeAbsentAsZero) {
  EXPECT_EQ(read(file_with({{"tensor_fp8_dense", inline_number("0|TFLOP/s")}})).tensor_fp8.value(),
            0);
}

TEST(ReadGpu, CountsAndBytesAreWhole) {
  EXPECT_EQ(gpu_problem(file_with({{"sm_count", inline_number("100.5|1")}})).field,
            "sm_count.value");
  EXPECT_EQ(gpu_problem(file_with({{"smem_per_sm", inline_number("228.0001|KiB")}})).field,
            "smem_per_sm.value");
}

TEST(ReadGpu, ANumberNeedsUnitSourceDateAndStatus) {
  const auto problem = [](const std::string& rest) {
    return gpu_problem(file_with({{"tdp", inline_number("650|W", rest)}}));
  };
  EXPECT_EQ(problem("date = \"2024\", status = \"datasheet\"").field, "tdp.source");
  EXPECT_EQ(problem("source = \"s\", status = \"datasheet\"").field, "tdp.date");
  EXPECT_EQ(problem("source = \"s\", date = \"2024\"").field, "tdp.status");
  const InputProblem p = problem("source = \"s\", date = \"2024\", status = \"datashet\"");
  EXPECT_EQ(p.nearest, "datasheet");
  EXPECT_EQ(problem("source = \"s\", date = \"2024\", status = \"fitted\", note = \"x\"").field,
            "tdp.note");
  for (const char* date : {"24", "2024-3", "March 2024", "2024/03", "2024-03-1x"}) {
    EXPECT_EQ(
        problem("source = \"s\", status = \"fitted\", date = \"" + std::string(date) + "\"").field,
        "tdp.date")
        << date;
  }
  EXPECT_EQ(gpu_problem(file_with({{"tdp", "650"}})).field, "tdp");
  EXPECT_EQ(gpu_problem(file_with({{"tdp", "{ value = 650 }"}})).field, "tdp.unit");
}

TEST(ReadGpu, NumbersMustBeInOrder) {
  EXPECT_EQ(gpu_problem(file_with({{"sm_clock_base", inline_number("2001|MHz")}})).field,
            "sm_clock_base.value");
  EXPECT_EQ(gpu_problem(file_with({{"hbm_bandwidth_sustained", inline_number("3.4|TB/s")}})).field,
            "hbm_bandwidth_sustained.value");
  EXPECT_EQ(gpu_problem(file_with({{"smem_per_block_max", inline_number("229|KiB")}})).field,
            "smem_per_block_max.value");
}

TEST(ReadGpu, ArchitectureAndComputeCapabilityAgree) {
  std::string text = file_with();
  text.replace(text.find("\"hopper\""), 8, "\"hoper\"");
  InputProblem p = gpu_problem(text);
  EXPECT_EQ(p.field, "architecture");
  EXPECT_EQ(p.nearest, "hopper");
  text = file_with();
  text.replace(text.find("\"9.0\""), 5, "\"8.0\"");
  p = gpu_problem(text);
  EXPECT_EQ(p.field, "compute_capability");
  EXPECT_EQ(p.allowed, "9.0");
}

TEST(ReadGpu, UnknownFieldsGiveTheNearest) {
  const InputProblem p = gpu_problem("l2_bandwith = 1\n" + file_with());
  EXPECT_EQ(p.message, "unknown field");
  EXPECT_EQ(p.line, 1);
  EXPECT_EQ(p.nearest, "l2_bandwidth");
}

TEST(ReadGpu, ReadsFittedConstants) {
  const char* fitted = "source = \"block.csv\", date = \"2026-11-20\", status = \"fitted\"";
  const Gpu g =
      read(file_with() + "[calibration]\nstream.ramp_us = " + inline_number("0.75|us", fitted) +
           "\npower.tensor_pj_per_flop = " + inline_number("1.5|pJ/FLOP", fitted) + "\n");
  EXPECT_EQ(g.constants.power.tensor_pj_per_flop, 1.5);
  EXPECT_DOUBLE_EQ(to_us(g.constants.stream.ramp), 0.75);
  EXPECT_EQ(g.constants.stream.hbm_fraction, g.architecture->constants.stream.hbm_fraction);
  EXPECT_EQ(g.sources.at("calibration.stream.ramp_us"), "0.75 us (block.csv, 2026-11-20, fitted)");
  EXPECT_FALSE(read(file_with()).sources.contains("calibration.stream.ramp_us"));
}

TEST(ReadGpu, NamesOfConstantsMayBeWrittenWithDotsOrInQuotesOrInSections) {
  const std::string number =
      inline_number("2|us", "source = \"s\", date = \"2026\", status = \"fitted\"");
  for (const std::string& lines :
       {"[calibration]\ngemm.start_us = " + number, "[calibration]\n\"gemm.start_us\" = " + number,
        "[calibration.gemm]\nstart_us = " + number}) {
    EXPECT_DOUBLE_EQ(to_us(read(file_with() + lines + "\n").constants.gemm.start), 2.0) << lines;
  }
}

TEST(ReadGpu, CalibrationHoldsOnlyFittedNumbers) {
  const auto problem = [](const std::string& line) {
    return gpu_problem(file_with() + "[calibration]\n" + line + "\n");
  };
  EXPECT_EQ(problem("stream.ramp_us = " + inline_number("0.75|us")).field,
            "calibration.stream.ramp_us.status");
  EXPECT_EQ(problem("stream.ramp_us = 0.75").field, "calibration.stream.ramp_us");
  EXPECT_EQ(problem("stream.ramp_us = {}").field, "calibration.stream.ramp_us.value");
  EXPECT_EQ(problem("stream.ramp_us = { unit = \"us\" }").field,
            "calibration.stream.ramp_us.value");
  EXPECT_EQ(problem("stream.ramp_us = " + inline_number("nan|us",
                                                        "source = \"s\", date = \"2024\", "
                                                        "status = \"fitted\""))
                .field,
            "calibration.stream.ramp_us.value");
}

TEST(ReadGpu, ConstantsMustLieInTheirRangeAndHaveTheirUnit) {
  const auto problem = [](const std::string& name, const std::string& value_and_unit) {
    return gpu_problem(
        file_with() + "[calibration]\n" + name + " = " +
        inline_number(value_and_unit, "source = \"s\", date = \"2026\", status = \"fitted\"") +
        "\n");
  };
  for (const ConstantInfo& constant : constant_table()) {
    const std::string name = constant.name;
    const std::string unit = constant.unit;
    for (const char* value : {"-1", "1e15", "-1e-300"}) {
      const InputProblem p = problem(name, std::string(value) + "|" + unit);
      EXPECT_EQ(p.field, "calibration." + name + ".value") << value;
      EXPECT_EQ(p.file, "g.toml");
      EXPECT_GT(p.line, 0);
      EXPECT_EQ(p.allowed.find("a number from "), 0U) << p.allowed;
    }
  }
  EXPECT_EQ(problem("gemm.start_us", "2|ms").allowed, "us");
  EXPECT_EQ(problem("power.reaction_ms", "50|us").allowed, "ms");
  EXPECT_EQ(problem("gemm.sm_fetch_bytes_per_cycle", "50|GB/s").allowed, "B/clock");
}

TEST(ReadGpu, RefusesConstantsThatNoModelHas) {
  const InputProblem p = gpu_problem(
      file_with() + "[calibration]\ngemm.start_ms = " +
      inline_number("2|us", "source = \"s\", date = \"2026\", status = \"fitted\"") + "\n");
  EXPECT_EQ(p.field, "calibration.gemm.start_ms");
  EXPECT_EQ(p.nearest, "gemm.start_us");
}

TEST(Gpu, ConsumerBlackwellRunsAdasKernels) {
  const Gpu desktop = load_gpu("rtx5090");
  EXPECT_EQ(desktop.architecture->inherits, "ada");
  EXPECT_TRUE(has_feature(desktop, Feature::mma_sync));
  EXPECT_FALSE(has_feature(desktop, Feature::bulk_copy));
  EXPECT_TRUE(has_feature(load_gpu("b200"), Feature::bulk_copy));
  EXPECT_TRUE(has_feature(load_gpu("h100"), Feature::wgmma));
  EXPECT_FALSE(has_feature(Gpu(), Feature::mma_sync)) << "a GPU without an architecture has none";
}

// Mutations of a good file either give a GPU within the ranges or are the user's error.
TEST(ReadGpu, MutatedFilesNeverCrash) {
  const std::string good = file_with();
  std::mt19937 random(20261120);
  const std::string alphabet = "0123456789.-+e\"={}[]#\n ,_azN\\\x01\xff";
  const auto below = [&random](std::size_t n) { return random() % n; };
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (std::size_t edits = 1 + below(3); edits > 0; --edits) {
      const std::size_t at = below(text.size());
      switch (below(3)) {
        case 0:
          text[at] = alphabet[below(alphabet.size())];
          break;
        case 1:
          text.erase(at, 1 + below(8));
          break;
        default:
          text.insert(at, 1, alphabet[below(alphabet.size())]);
          break;
      }
    }
    try {
      const Gpu g = read(text);
      ++accepted;
      ASSERT_GE(g.sm_count, 1);
      ASSERT_GE(g.hbm_bandwidth.value(), g.hbm_bandwidth_sustained.value());
    } catch (const InputError&) {
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 3000);
}

class ShippedGpu : public testing::TestWithParam<std::string> {};

TEST_P(ShippedGpu, LoadsUnderItsNameAndAliases) {
  const Gpu g = load_gpu(GetParam());
  EXPECT_EQ(g.name, GetParam());
  EXPECT_EQ(load_gpu((data_dir() / "gpus" / (g.name + ".toml")).string()).name, g.name);
  for (const std::string& alias : g.aliases) EXPECT_EQ(load_gpu(alias).name, g.name) << alias;
}

// Tensor rate over SMs and quoted clock is a power of two of FLOP per clock, within 2 %.
TEST_P(ShippedGpu, TensorRateFitsSmsAndClock) {
  const Gpu g = load_gpu(GetParam());
  const double per_clock =
      g.tensor_bf16.value() / (static_cast<double>(g.sm_count) * g.tensor_clock.value());
  const double power = std::exp2(std::round(std::log2(per_clock)));
  EXPECT_NEAR(per_clock / power, 1.0, 0.02) << per_clock;
}

INSTANTIATE_TEST_SUITE_P(All, ShippedGpu, testing::ValuesIn(gpu_names()), [](const auto& p) {
  std::string name = p.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(GpuNames, HoldEveryGpuOfTheContract) {
  const std::vector<std::string> names = gpu_names();
  for (const char* name :
       {"a100-sxm-40gb", "a100-sxm-80gb", "a100-pcie-40gb", "a100-pcie-80gb", "h100-sxm",
        "h100-pcie", "h200", "l40s", "rtx3090", "rtx4090", "rtx5090", "b200"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

TEST(GpuNames, AreUniqueWithTheirAliases) {
  std::set<std::string> seen;
  for (const std::string& name : gpu_names()) {
    EXPECT_TRUE(seen.insert(name).second) << name;
    for (const std::string& alias : load_gpu(name).aliases) {
      EXPECT_TRUE(seen.insert(alias).second) << alias;
    }
  }
}

TEST(LoadGpu, ShortNamesMeanTheCommonPart) {
  EXPECT_EQ(load_gpu("h100").name, "h100-sxm");
  EXPECT_EQ(load_gpu("a100").name, "a100-sxm-80gb");
}

TEST(LoadGpu, UnknownNamesGiveTheNearest) {
  InputProblem p = unknown_gpu("rtx4080x");
  EXPECT_EQ(p.field, "gpu");
  EXPECT_EQ(p.message, "unknown gpu");
  EXPECT_EQ(p.nearest, "rtx4090");
  EXPECT_EQ(unknown_gpu("H2000").nearest, "h200");
  p = unknown_gpu("gpus/none.toml");
  EXPECT_EQ(p.message, "no such file");
}

// model/ may not include sim/, so the words are written twice.
TEST(FidelityWords, AreTheSimulatorsNames) {
  EXPECT_EQ(fidelity_words(),
            (std::vector<std::string>{name_of(Fidelity::roofline), name_of(Fidelity::hierarchy)}));
}

}  // namespace
}  // namespace fuseline
