// Shipped files of GPUs and models, read once.
#pragma once

#include <string>

#include "model/config/model_files.h"
#include "sim/gpu/gpu.h"

namespace fuseline::gui {

// As load_gpu() and load_model(). A shipped file is read once, until read_files_again(); a path's
// file may change while somebody edits it, and is read each time.
Gpu gpu_read_once(const std::string& name_or_path);
ModelConfig model_read_once(const std::string& name_or_path);
void read_files_again();

}  // namespace fuseline::gui
