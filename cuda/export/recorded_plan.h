// A plan's launches as data: machine code, grids, and parameters in which the places of addresses
// are known, so that others can fill in their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cuda/driver/recorded_driver.h"
#include "model/plan.h"
#include "sim/gpu/gpu.h"

namespace fuseline::cuda {

// Where an address points: a tensor of the plan (at least 0), or workspace -1 - target.
struct AddressPlace {
  int parameter = 0;        // of the launch
  std::int64_t offset = 0;  // in its bytes
  int target = 0;
  std::int64_t addend = 0;  // bytes behind the target's first
};
struct MapPlace {
  AddressPlace at;  // of the 128 bytes; target and addend are those of the map's address
  RecordedMap map;
};
// A launch that is a product alone, which a library may do as well: out = a b, each transposed
// where it is stored so. Targets as in AddressPlace.
struct LibraryProduct {
  int a = 0, b = 0, out = 0;
  bool a_transposed = false, b_transposed = false;
};
struct RecordedLaunch {
  std::string program, function;
  int code = 0;  // index into RecordedPlan::codes
  LaunchShape shape{};
  std::vector<std::vector<std::byte>> parameters{};  // zeros where addresses and maps go
  std::vector<AddressPlace> addresses{};
  std::vector<MapPlace> maps{};
  std::optional<LibraryProduct> product{};
};
struct RecordedWorkspace {
  std::int64_t bytes = 0;
  std::vector<std::byte> contents{};  // empty: zeros
};
struct RecordedCode {
  std::string name;  // of its files
  std::string text, ptx{}, log{};
  std::vector<char> cubin{};
};

struct RecordedPlan {
  std::vector<RecordedLaunch> launches;
  std::vector<RecordedWorkspace> workspaces;
  std::vector<RecordedCode> codes;
  std::string toolkit, architecture;
};

// The launches that the described GPU gets, with the tiles that a prediction for it has. A target
// of at least 0 is the tensor's id. MissingError: no toolkit, or a kernel that no code of ours
// runs. InternalError: a parameter's address belongs to nothing.
RecordedPlan record_plan(const Plan& plan, const Gpu& gpu, int threads);

}  // namespace fuseline::cuda
