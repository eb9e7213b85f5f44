// What the simulator's tests share: small models, a GPU to vary, plans of them.
#pragma once

#include <memory>
#include <string>

#include "model/config/config.h"
#include "model/policy.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

inline ModelConfig small_llama() {
  ModelConfig c;
  c.name = "small-llama";
  c.layers = 4;
  c.D = 256;
  c.F = 704;
  c.H = 4;
  c.Hkv = 2;
  c.d = 64;
  c.V = 1000;
  c.max_positions = 4096;
  return c;
}

inline ModelConfig small_gpt() {
  ModelConfig c = small_llama();
  c.name = "small-gpt";
  c.blocks = {{.block = "gpt"}};
  c.entry = "embed_positions";
  c.exit = "head_layer_norm";
  c.F = 1024;
  c.Hkv = c.H;
  c.qkv_bias = c.out_bias = c.mlp_bias = true;
  return c;
}

// The dimensions of LLaMA-2-7B.
inline ModelConfig llama_7b() {
  ModelConfig c = small_llama();
  c.name = "llama-7b-like";
  c.layers = 32;
  c.D = 4096;
  c.F = 11008;
  c.H = c.Hkv = 32;
  c.d = 128;
  c.V = 32000;
  return c;
}

inline Workload forward(std::int64_t batch, std::int64_t seq) {
  return {.phase = Phase::forward, .batch = batch, .seq = seq, .context = 0, .dtype = Dtype::bf16};
}

inline Workload decode(std::int64_t batch, std::int64_t seq, std::int64_t context) {
  return {
      .phase = Phase::decode, .batch = batch, .seq = seq, .context = context, .dtype = Dtype::bf16};
}

// Numbers of an H200, independent of the shipped file.
inline Gpu test_gpu() {
  Gpu gpu;
  gpu.name = "test-gpu";
  gpu.sm_count = 132;
  gpu.sm_clock = Hertz(1.98e9);
  gpu.sm_clock_base = Hertz(1.59e9);
  gpu.tensor_clock = Hertz(1.83e9);
  gpu.tensor_bf16 = gpu.tensor_fp16 = FlopsPerSecond(989.4e12);
  gpu.vector_fp32 = FlopsPerSecond(66.9e12);
  gpu.hbm_capacity = Bytes(141'000'000'000);
  gpu.hbm_bandwidth = BytesPerSecond(4.8e12);
  gpu.hbm_bandwidth_sustained = BytesPerSecond(4.5e12);
  gpu.l2_capacity = Bytes(60 << 20);
  gpu.l2_partitions = 2;
  gpu.l2_bandwidth = BytesPerSecond(9.7e12);
  gpu.smem_per_sm = Bytes(228 << 10);
  gpu.smem_per_block_max = Bytes(227 << 10);
  gpu.registers_per_sm = Bytes(256 << 10);
  gpu.tdp = Watts(700);
  gpu.tiny_kernel = microseconds(1.161);
  static const std::shared_ptr<const Architecture> hopper = load_architecture("hopper");
  set_architecture(gpu, hopper);
  return gpu;
}

inline const std::string kPolicies[] = {
    "unfused",      "composed", "eager",         "per-operator", "flash-attention",
    "tensorrt-llm", "xla",      "torch-compile", "coda",         "whole-block"};

}  // namespace fuseline
