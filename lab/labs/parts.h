// What several labs compute their keys with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "lab/function_key.h"
#include "lab/lab.h"
#include "model/graph.h"
#include "model/programs/program_file.h"
#include "sim/gpu/gpu.h"

namespace fuseline::lab {

// Attention as three operators ("scores", "softmax", "context") on q, k, v [B·N, H·d], all in one
// type. `causal`: as in a decoder; otherwise every query sees every key.
struct AttentionShape {
  std::int64_t B = 1, H = 1, T = 1, S = 1, d = 1;
  Dtype dtype = Dtype::fp16;
  bool causal = false;
  double scale = 0;  // of the scores; 0: 1 / sqrt(d)
};
Graph attention_graph(const AttentionShape& shape);

// Bytes when the three operators are kernels of their own, and when they are one; FLOPs of the two
// products.
struct AttentionWork {
  Bytes one_operand;  // Q alone, as large as K, V and Y when T = S
  Bytes one_matrix;   // the scores alone, as large as the probabilities
  Bytes unfused;
  Bytes fused;
  Flops products;
};
AttentionWork attention_work(const AttentionShape& shape);

// Bytes of all tensors of this role.
Bytes bytes_of_role(const Graph& graph, Role role);

// One GEMM "gemm": y[M,N] = x[M,K] w[N,K]^T.
Graph gemm_graph(std::int64_t M, std::int64_t N, std::int64_t K, Dtype dtype = Dtype::bf16);
struct GemmWork {
  Bytes bytes;  // compulsory
  Flops flops;
};
GemmWork gemm_work(std::int64_t M, std::int64_t N, std::int64_t K);

// The longer of FLOPs at the dense bf16 peak and bytes at the datasheet bandwidth.
Seconds roofline_time(Flops flops, Bytes bytes, const Gpu& gpu);
double ridge_point(const Gpu& gpu);  // FLOP/B

// "**NVIDIA A100** (312 TFLOP/s dense bf16 and fp16, HBM 2039 GB/s by datasheet)".
std::string describe_ceilings(const Gpu& gpu);

NumberKey byte_key(double bytes, std::vector<Mistake> mistakes, const std::string& unit = "MB");
NumberKey time_key(double seconds, std::vector<Mistake> mistakes, const std::string& unit = "us");
NumberKey ratio_key(double ratio, std::vector<Mistake> mistakes, const std::string& unit = "x");
NumberKey whole_key(std::int64_t number, std::vector<Mistake> mistakes);

// Programs that the lab itself wrote, so a mistake in them is fuseline's.
ProgramFile own_programs(const std::string& text);

// Values that bf16 can express, normal around 0 with outliers; the same on every machine.
std::vector<double> bf16_values(const std::string& name, std::int64_t rows, std::int64_t cols,
                                std::uint64_t seed);

// Relative L2 error that storing in bf16 and sums of so many fp32 terms allow
// (model/operators/operator_table.h).
double stored_tolerance(std::int64_t sum_length);

}  // namespace fuseline::lab
