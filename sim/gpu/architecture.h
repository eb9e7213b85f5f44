// A GPU architecture, all of it data: scenarios/architectures/*.toml. GPUs of one architecture
// share its constants, its tiles and the instructions that kernels may use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/gemm_tile.h"
#include "sim/gpu/constants.h"
#include "sim/gpu/provenance.h"

namespace fuseline {

// What kernels need of the hardware. Code asks for these and never compares architectures.
enum class Feature : std::uint8_t {
  mma_sync,       // NVIDIA's warp-wide matrix instruction
  wgmma,          // the warp-group matrix instruction of compute capability 9.0
  bulk_copy,      // copies of whole tiles that one thread starts (TMA)
  clusters,       // thread blocks that read each other's shared memory
  tensor_memory,  // accumulators in a memory of their own
  mfma,           // AMD's wave-wide matrix instruction
};
const char* name_of(Feature feature);

// A constant as its file gives it.
struct ConstantOrigin {
  Provenance number;           // status "inherited" where another architecture's file gives it
  double least = 0, most = 0;  // what a GPU's file and a fit may set
  std::string file;            // the architecture whose file gives the value
  std::string first_status;    // the status in that file
};

struct Architecture {
  std::string name;   // "hopper"
  std::string title;  // "NVIDIA Hopper"
  std::string inherits;
  std::vector<std::string> compute_capabilities;
  std::set<Feature> features;
  Constants constants;
  std::map<std::string, ConstantOrigin> origins;  // every constant by name
  TileMenu tiles;
};

class TomlTable;

// A name of scenarios/architectures or a path. InputError: unknown name (nearest), a constant that
// neither this file nor one it inherits from gives, a value outside its own range, a wrong unit or
// status, a circle of files that inherit.
std::shared_ptr<const Architecture> load_architecture(const std::string& name_or_path);
std::vector<std::string> architecture_names();

// What load_architecture() takes for the architecture that a field of a file names: a name as it is
// written, or a path, which starts at the folder of that file. InputError at the field: no such
// name or file (nearest), a folder.
std::string architecture_of_field(const TomlTable& table, const std::string& key);

}  // namespace fuseline
