// Why a plan looks the way it does, as data for a window and as text for a terminal.
#pragma once

#include <string>
#include <vector>

#include "model/plan.h"

namespace fuseline {

struct KernelExplanation {
  std::string name;
  std::string kind;
  std::string implementation;
  std::vector<std::string> operators;
  std::vector<std::string> programs;        // one text per phase
  std::vector<std::string> beside{};        // further launches, by name
  bool in_pieces = false;                   // they do all of its work
  std::vector<std::string> instructions{};  // of the first SM, of a block in one launch
  std::string predicted{};                  // what it takes, in words; empty where nobody asked
};

struct TensorExplanation {
  std::string name;
  std::string shape;  // "[2048, 4096] bf16"
  std::string role;
  std::string home;                    // "HBM", "on chip", "HBM, columns 8192:12288 only"
  std::string producer;                // kernel that stores it; empty for inputs
  std::vector<std::string> consumers;  // kernels that load it
  Bytes bytes;                         // what is stored, or the whole tensor
};

struct EdgeExplanation {
  std::string from;
  std::string to;
  std::string tensor;
  bool fused = false;
  std::string reason;
};

struct Explanation {
  std::string policy;
  std::vector<std::string> rewrites;
  std::vector<KernelExplanation> kernels;
  std::vector<TensorExplanation> tensors;
  std::vector<EdgeExplanation> edges;
  std::vector<std::string> preparation;  // what is done once to inputs and weights
};

Explanation explain(const Plan& plan);

// The explanation as text of at most 100 columns: kernels with programs, homes, reasons.
std::string explain_text(const Explanation& explanation);

}  // namespace fuseline
