#include "sim/measured/measurement.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBlockHeader =
    "model,execution,phase,batch,seq,context,ms_median,ms_min,ms_max,timer\n";
constexpr const char* kKernelHeader =
    "model,execution,phase,batch,seq,context,order,operator,kernel,grid,block,us,dram_read_bytes,"
    "dram_write_bytes,l2_bytes\n";
constexpr const char* kGemmHeader = "m,n,k,us_median,us_min,us_max,tflops\n";

class MeasurementTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              (std::string("measurement_") +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
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
  fs::path folder_;
};

TEST_F(MeasurementTest, ReadsAFolderWithUnits) {
  write("block.csv", std::string(kBlockHeader) + "tiny,eager,forward,2,128,0,0.5,0.4,0.75,graph\n");
  write("gemm.csv", std::string(kGemmHeader) + "128,256,512,8.0,7.5,9.0,1\n");
  write("kernels.csv",
        std::string(kKernelHeader) +
            "tiny,eager,decode,1,1,64,3,qkv,nvjet_sm90,\"(2, 1, 1)\",x,4.0,100,20,300\n"
            "tiny,eager,decode,1,1,64,5,,softmax,x,x,2.0,1,2,3\n");
  write("meta.toml", "gpu = \"h200\"\ndriver = \"580\"\n");

  const Measurements m = load_measurements(folder_.string());

  ASSERT_EQ(m.blocks.size(), 1U);
  EXPECT_DOUBLE_EQ(to_us(m.blocks[0].time.median), 500.0);
  EXPECT_EQ(m.blocks[0].block.workload.rows(), 256);
  ASSERT_EQ(m.gemms.size(), 1U);
  EXPECT_DOUBLE_EQ(to_us(m.gemms[0].time.most), 9.0);
  ASSERT_EQ(m.traces.size(), 1U);
  ASSERT_EQ(m.traces[0].kernels.size(), 2U);
  EXPECT_EQ(m.traces[0].hbm_read(), Bytes(101));
  EXPECT_EQ(m.traces[0].hbm_write(), Bytes(22));
  EXPECT_EQ(m.meta.gpu, "h200");
  EXPECT_EQ(m.meta.driver, "580");
}

TEST_F(MeasurementTest, ReadsTheShippedMeasurements) {
  const Measurements m =
      load_measurements(std::string(FUSELINE_SOURCE_DIR) + "/scenarios/measurements/h200-pytorch");
  EXPECT_EQ(m.blocks.size(), 74U);
  EXPECT_EQ(m.traces.size(), 10U);
  EXPECT_EQ(m.gemms.size(), 80U);
  EXPECT_EQ(m.meta.gpu, "h200");
  const auto block = find_block(
      m, {"llama2-7b", "eager", {.phase = Phase::forward, .batch = 1, .seq = 2048, .context = 0}});
  ASSERT_TRUE(block);
  EXPECT_NEAR(to_us(block->time.median), 1530.29, 1e-6);
  const auto trace = find_trace(
      m, {"llama2-7b", "eager", {.phase = Phase::decode, .batch = 1, .seq = 1, .context = 2048}});
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->kernels.size(), 26U);
  EXPECT_FALSE(find_block(
      m, {"llama2-7b", "coda", {.phase = Phase::forward, .batch = 1, .seq = 2048, .context = 0}}));
}

TEST_F(MeasurementTest, TellsTheTableByItsHeader) {
  const std::string path = write("anything.csv", std::string(kGemmHeader) + "1,2,3,1,1,1,1\n");
  EXPECT_EQ(load_measurements(path).gemms.size(), 1U);
}

TEST_F(MeasurementTest, TellsKernelKindsFromNames) {
  const auto kind = [](const char* name) {
    MeasuredKernel k;
    k.kernel = name;
    return k.kind();
  };
  EXPECT_EQ(kind("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"), KernelKind::gemm);
  EXPECT_EQ(kind("void cublasLt::splitKreduce_kernel<32, 16, int, float>"), KernelKind::reduction);
  EXPECT_EQ(kind("void cudnn::lean_reduction_kernel<0, 0, 0>"), KernelKind::attention);
  EXPECT_EQ(kind("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16"),
            KernelKind::attention);
  EXPECT_EQ(kind("void at::<unnamed>::vectorized_layer_norm_kernel<c10::BFloat16>"),
            KernelKind::norm);
  EXPECT_EQ(kind("triton_red_fused__fused_rms_norm_0"), KernelKind::norm);
  EXPECT_EQ(kind("triton_poi_fused__scaled_dot_product_cudnn_attention_add"),
            KernelKind::pointwise);
  EXPECT_EQ(kind("void at::vectorized_elementwise_kernel<8>"), KernelKind::pointwise);
}

TEST_F(MeasurementTest, RefusesWhatIsNotThere) {
  EXPECT_THROW(load_measurements((folder_ / "none").string()), InputError);
  EXPECT_THROW(load_measurements(folder_.string()), InputError);  // no CSV in it
  EXPECT_THROW(load_measurements(write("block.csv", "")), InputError);
}

TEST_F(MeasurementTest, RefusesAHeaderOfNoMeasurement) {
  const InputProblem p = problem_of([&] { load_measurements(write("x.csv", "a,b\n1,2\n")); });
  EXPECT_NE(p.allowed.find("block.csv"), std::string::npos);
}

struct BadRow {
  const char* row;
  const char* field;
};

// Printed by name, so that no address appears in a test's name.
void PrintTo(const BadRow& bad, std::ostream* out) { *out << bad.row; }

class BadBlockRow : public MeasurementTest, public ::testing::WithParamInterface<BadRow> {};

TEST_P(BadBlockRow, IsRefusedWithLineAndColumn) {
  const std::string path = write("block.csv", std::string(kBlockHeader) +
                                                  "tiny,eager,forward,2,128,0,0.5,0.4,0.6,graph\n" +
                                                  GetParam().row + "\n");
  const InputProblem p = problem_of([&] { load_measurements(path); });
  EXPECT_EQ(p.line, 3);
  EXPECT_EQ(p.field, GetParam().field);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, BadBlockRow,
    ::testing::Values(BadRow{",eager,forward,1,1,0,1,1,1,g", "model"},
                      BadRow{"tiny,,forward,1,1,0,1,1,1,g", "execution"},
                      BadRow{"tiny,eager,forwrd,1,1,0,1,1,1,g", "phase"},
                      BadRow{"tiny,eager,forward,0,1,0,1,1,1,g", "batch"},
                      BadRow{"tiny,eager,forward,1,1.5,0,1,1,1,g", "seq"},
                      BadRow{"tiny,eager,decode,1,4,2,1,1,1,g", "context"},
                      BadRow{"tiny,eager,forward,1,1,0,nan,1,1,g", "ms_median"},
                      BadRow{"tiny,eager,forward,1,1,0,1,-1,1,g", "ms_min"},
                      BadRow{"tiny,eager,forward,1,1,0,2,0.5,1,g", "ms_median"}),
    [](const auto& p) { return std::string(p.param.field) + "_" + std::to_string(p.index); });

TEST_F(MeasurementTest, RefusesKernelsOutOfOrder) {
  const std::string row = "tiny,eager,forward,1,8,0,";
  const std::string rest = ",qkv,nvjet,x,x,4.0,100,20,300\n";
  const std::string path =
      write("kernels.csv", std::string(kKernelHeader) + row + "1" + rest + row + "1" + rest);
  const InputProblem p = problem_of([&] { load_measurements(path); });
  EXPECT_EQ(p.field, "order");
  EXPECT_EQ(p.line, 3);
}

TEST_F(MeasurementTest, RefusesABlockInTwoPlaces) {
  const std::string a = "tiny,eager,forward,1,8,0,", b = "tiny,eager,forward,2,8,0,";
  const std::string rest = ",qkv,nvjet,x,x,4.0,100,20,300\n";
  const std::string path = write(
      "kernels.csv", std::string(kKernelHeader) + a + "0" + rest + b + "0" + rest + a + "1" + rest);
  EXPECT_EQ(problem_of([&] { load_measurements(path); }).line, 4);
}

TEST_F(MeasurementTest, RefusesBadMeta) {
  write("gemm.csv", std::string(kGemmHeader) + "1,2,3,1,1,1,1\n");
  write("meta.toml", "gpu = 200\n");
  EXPECT_THROW(load_measurements(folder_.string()), InputError);
  write("meta.toml", "gpu = \n");
  EXPECT_EQ(problem_of([&] { load_measurements(folder_.string()); }).line, 1);
}

}  // namespace
}  // namespace fuseline
