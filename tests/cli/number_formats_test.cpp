// --weights and quantised config.json files through the whole program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json predicted(std::vector<std::string> more) {
  std::vector<std::string> args = {"predict", "--gpu",    "h200", "--phase",  "decode", "--context",
                                   "256",     "--policy", "coda", "--format", "json"};
  args.insert(args.end(), more.begin(), more.end());
  const CliRun run = cli(args);
  EXPECT_EQ(run.status, 0) << run.err;
  return run.status == 0 ? json::parse(run.out) : json();
}

TEST(WeightsOption, IsNamedInTheOutputAndTakesFewerBytes) {
  const json plain = predicted({"--model", "tinyllama"});
  const json codes = predicted({"--model", "tinyllama", "--weights", "int4:64"});
  EXPECT_EQ(plain.at("weights"), "bf16");
  EXPECT_EQ(codes.at("weights"), "int4:64");
  const auto read = [](const json& j) {
    return j.at("predictions")[0].at("hbm_read_bytes").get<double>();
  };
  EXPECT_LT(read(codes), 0.35 * read(plain));
  EXPECT_EQ(predicted({"--model", "tinyllama", "--weights", "bf16"}), plain);
}

TEST(WeightsOption, ReplacesWhatTheModelsFileSays) {
  const std::string file = temporary_file("awq/config.json", R"({"model_type": "llama",
    "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 1000, "max_position_embeddings": 512,
    "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 64,
                            "zero_point": true}})");
  EXPECT_EQ(predicted({"--model", file}).at("weights"), "int4-zero:64");
  EXPECT_EQ(predicted({"--model", file, "--weights", "fp8"}).at("weights"), "fp8");
  EXPECT_EQ(predicted({"--model", file, "--weights", "bf16"}).at("weights"), "bf16");
}

TEST(WeightsOption, IsVerified) {
  const CliRun run = cli({"verify", "--model", "char-llama", "--seq", "17", "--weights", "nvfp4",
                          "--policy", "eager,coda", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json j = json::parse(run.out);
  EXPECT_EQ(j.at("weights"), "nvfp4");
  EXPECT_TRUE(j.at("passed").get<bool>());
}

TEST(WeightsOption, OfAnotherNameIsRefused) {
  const CliRun unknown = cli({"predict", "--weights", "int5"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--weights = 'int5'"));
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'int4'?"));
  const CliRun trained = cli({"predict", "--weights", "int8", "--phase", "train"});
  EXPECT_EQ(trained.status, 2);
  EXPECT_THAT(trained.err, HasSubstr("--weights = 'int8'"));
}

TEST(WeightsOption, IsTakenByOneGemm) {
  const auto bytes = [](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"gemm", "--m",        "16",    "--n",  "4096",
                                     "--k",  "4096",       "--gpu", "h200", "--format",
                                     "json", "--operands", "cold"};
    args.insert(args.end(), more.begin(), more.end());
    const CliRun run = cli(args);
    EXPECT_EQ(run.status, 0) << run.err;
    return json::parse(run.out).at("hbm_read_bytes").get<std::int64_t>();
  };
  const std::int64_t x = 16 * 4096 * 2;
  EXPECT_EQ(bytes({"--weights", "int4"}), 4096 * 4096 / 2 + 4096 * 32 * 2 + x);
  EXPECT_EQ(bytes({"--weights", "fp8", "--bias"}), 4096 * 4096 + 4096 * 4 + x + 4096 * 2);
  EXPECT_EQ(bytes({"--weights", "bf16"}), bytes({}));
  const CliRun odd =
      cli({"gemm", "--m", "16", "--n", "64", "--k", "33", "--gpu", "h200", "--weights", "mxfp4"});
  EXPECT_EQ(odd.status, 2);
  EXPECT_THAT(odd.err, HasSubstr("--k = '33'"));
}

TEST(WeightsOption, HasKernelsForRealGpus) {
  const auto source = [](const char* format) {
    return cli({"explain", "--cuda", "--model", "tinyllama", "--weights", format, "--policy",
                "coda", "--kernel", "oproj", "--output", "/dev/null"});
  };
  EXPECT_EQ(source("int4").status, 0) << source("int4").err;
  // Threads load whole vectors of 8 codes, which have one scale.
  const CliRun odd = source("int4:4");
  EXPECT_EQ(odd.status, 3) << odd.err;
  EXPECT_THAT(odd.err, HasSubstr("int4:4 whose groups are no multiple of 8 columns"));
}

TEST(CacheOption, HalvesWhatDecodeReadsOfTheCache) {
  const auto decoded = [](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"--model", "tinyllama", "--batch", "64"};
    args.insert(args.end(), more.begin(), more.end());
    return predicted(args);
  };
  const json plain = decoded({});
  EXPECT_EQ(plain.at("kv"), "bf16");
  EXPECT_EQ(decoded({"--kv", "bf16"}), plain);
  const auto read = [](const json& j) {
    return j.at("predictions")[0].at("hbm_read_bytes").get<double>();
  };
  const json fp8 = decoded({"--kv", "fp8"});
  EXPECT_EQ(fp8.at("kv"), "fp8");
  EXPECT_EQ(fp8.at("weights"), "bf16");
  // 4 heads of 64 for K and V of 64 sequences of 256 tokens, of which the last ones are in L2
  // still: a byte less for each number, and for int8 4 bytes more for each head.
  const double numbers = 64 * 256 * 2 * 256;
  EXPECT_NEAR(read(plain) - read(fp8), numbers, 0.02 * numbers);
  EXPECT_NEAR(read(decoded({"--kv", "int8"})) - read(fp8), numbers / 64 * 4, 0.002 * numbers);
}

TEST(CacheOption, GoesWithFormatsOfWeightsAndOfFiles) {
  const std::string file =
      temporary_file("kv/config.json", R"({"model_type": "llama", "hidden_size": 256,
    "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 512,
    "quantization_config": {"quant_method": "fp8", "kv_cache_quant_algo": "FP8"}})");
  const json of_file = predicted({"--model", file});
  EXPECT_EQ(of_file.at("weights"), "fp8");
  EXPECT_EQ(of_file.at("kv"), "fp8");
  const json cache = predicted({"--model", file, "--kv", "int8"});
  EXPECT_EQ(cache.at("weights"), "fp8");
  EXPECT_EQ(cache.at("kv"), "int8");
  const json weights = predicted({"--model", file, "--weights", "int4"});
  EXPECT_EQ(weights.at("weights"), "int4");
  EXPECT_EQ(weights.at("kv"), "fp8");
  EXPECT_EQ(predicted({"--model", file, "--kv", "bf16"}).at("kv"), "bf16");
}

// Products of codes by codes, beside weights of their own kind.
TEST(ActivationsOption, MultipliesCodes) {
  const auto of = [](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"--model", "llama2-7b", "--batch", "1024"};
    args.insert(args.end(), more.begin(), more.end());
    return predicted(args);
  };
  const json plain = of({"--weights", "fp8"});
  EXPECT_EQ(plain.at("activations"), "bf16");
  const json codes = of({"--weights", "fp8", "--activations", "fp8"});
  EXPECT_EQ(codes.at("activations"), "fp8");
  const auto time = [](const json& j) {
    return j.at("predictions")[0].at("time_us").get<double>();
  };
  EXPECT_LT(time(codes), time(plain));
}

TEST(ActivationsOption, GoesWithTheWeightsOfTheFile) {
  const std::string file =
      temporary_file("activations/config.json", R"({"model_type": "llama", "hidden_size": 256,
    "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 512,
    "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic",
    "weight_block_size": [128, 128]}})");
  const json of_file = predicted({"--model", file});
  EXPECT_EQ(of_file.at("weights"), "fp8-block");
  EXPECT_EQ(of_file.at("activations"), "fp8-block");
  EXPECT_EQ(predicted({"--model", file, "--activations", "bf16"}).at("activations"), "bf16");
  EXPECT_EQ(predicted({"--model", file, "--weights", "int4"}).at("activations"), "bf16");
}

TEST(ActivationsOption, IsTakenByOneGemm) {
  const auto gemm = [](const std::string& k, const std::vector<std::string>& more) {
    std::vector<std::string> args = {"gemm", "--m", "2048",  "--n", "4096",
                                     "--k",  k,     "--gpu", "h200"};
    args.insert(args.end(), more.begin(), more.end());
    return cli(args);
  };
  const auto parsed = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"--weights", "fp8", "--format", "json"};
    args.insert(args.end(), more.begin(), more.end());
    const CliRun run = gemm("4096", args);
    EXPECT_EQ(run.status, 0) << run.err;
    return json::parse(run.out);
  };
  const json numbers = parsed({}), codes = parsed({"--activations", "fp8"});
  EXPECT_LT(codes.at("time_us").get<double>(), 0.7 * numbers.at("time_us").get<double>());
  // A byte less for each number of x, and a scale for each row.
  EXPECT_EQ(numbers.at("hbm_compulsory_bytes").get<std::int64_t>() -
                codes.at("hbm_compulsory_bytes").get<std::int64_t>(),
            2048 * 4096 - 2048 * 4);
  EXPECT_THAT(gemm("4096", {"--activations", "fp8"}).err,
              HasSubstr("--activations = 'fp8': is multiplied by weights in fp8"));
  EXPECT_THAT(gemm("100", {"--weights", "fp8-block", "--activations", "fp8-block"}).err,
              HasSubstr("--k = '100': rows of x are no whole groups of 128"));
}

TEST(ActivationsOption, IsVerified) {
  for (const char* format : {"fp8", "int8"}) {
    const CliRun run = cli({"verify", "--model", "char-llama", "--seq", "33", "--weights", format,
                            "--activations", format, "--policy", "all", "--format", "json"});
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_EQ(json::parse(run.out).at("activations"), format);
  }
}

TEST(ActivationsOption, IsRefusedWithTheReason) {
  const struct {
    std::vector<std::string> args;
    const char* says;
  } cases[] = {
      {{"predict", "--activations", "fp9"}, "did you mean 'fp8'?"},
      {{"predict", "--activations", "fp8"},
       "--activations = 'fp8': is multiplied by weights in fp8, not in bf16"},
      {{"predict", "--weights", "fp8", "--activations", "fp8", "--gpu", "a100"},
       "the file of the GPU a100-sxm-80gb gives its tensor cores no such rate (tensor_fp8_dense)"},
      {{"predict", "--model", "gpt2-xl", "--weights", "fp8-block", "--activations", "fp8-block"},
       "rows of 1600 columns are no whole groups of 128"}};
  for (const auto& c : cases) {
    const CliRun run = cli(c.args);
    EXPECT_EQ(run.status, 2) << run.out;
    EXPECT_THAT(run.err, HasSubstr(c.says));
  }
}

TEST(CacheOption, IsVerified) {
  for (const char* format : {"fp8", "int8"}) {
    const CliRun run =
        cli({"verify", "--model", "char-llama", "--phase", "decode", "--seq", "3", "--context",
             "40", "--kv", format, "--policy", "all", "--format", "json"});
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_EQ(json::parse(run.out).at("kv"), format);
  }
}

TEST(CacheOption, IsRefusedWhereItHasNoMeaning) {
  const CliRun unknown = cli({"predict", "--kv", "int4"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--kv = 'int4'"));
  EXPECT_THAT(unknown.err, HasSubstr("bf16, fp8, int8"));
  const CliRun trained = cli({"predict", "--kv", "fp8", "--phase", "train"});
  EXPECT_EQ(trained.status, 2);
  EXPECT_THAT(trained.err, HasSubstr("--kv = 'fp8'"));
}

TEST(CacheOption, HasKernelsForRealGpus) {
  const auto source = [](const char* format, const char* policy, const char* kernel,
                         const char* model = "tinyllama") {
    return cli({"explain", "--cuda", "--model", model, "--phase", "decode", "--kv", format,
                "--policy", policy, "--kernel", kernel, "--output", "/dev/null"});
  };
  for (const char* format : {"fp8", "int8"})
    for (const char* kernel : {"attention", "kvcache"}) {
      const CliRun run = source(format, "per-operator", kernel);
      EXPECT_EQ(run.status, 0) << format << " " << kernel << ": " << run.err;
    }
  // Scales of heads that a product's epilogue makes; not yet behind a norm of the heads.
  EXPECT_EQ(source("int8", "coda", "qkv").status, 0);
  const CliRun run = source("int8", "coda", "qkv", "qwen3-8b");
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_THAT(run.err, HasSubstr("sums over heads of 128 columns"));
}

}  // namespace
}  // namespace fuseline
