// The files of an exported folder, as texts.
#pragma once

#include <map>
#include <string>

#include "cuda/export/exported.h"

namespace fuseline::cuda {

// By path within the folder: NAME.cu, NAME.ptx and NAME.cubin of each kernel, the device headers
// below source/, fuseline_kernels.h, .c and .py, kernels.json, README.md.
std::map<std::string, std::string> export_files(const Exported& exported);

// Each of them.
std::string kernels_json(const Exported& exported);
std::string launcher_header(const Exported& exported);
std::string launcher_source(const Exported& exported);
std::string export_page(const Exported& exported);

// A name as C and Python can have it: "dx(2)" becomes "dx_2_".
std::string identifier(const std::string& name);

}  // namespace fuseline::cuda
