// Files of GPUs, read once.
#pragma once

#include <string>

#include "sim/gpu/gpu.h"

namespace fuseline::gui {

// As load_gpu(). A shipped GPU's file is read once, until read_gpus_again(); a path's file may
// change while somebody edits it, and is read each time.
Gpu gpu_read_once(const std::string& name_or_path);
void read_gpus_again();

}  // namespace fuseline::gui
