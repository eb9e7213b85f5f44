// What both commands that export share: the folder and what is said of it.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cuda/export/exported.h"

namespace fuseline {

// InputError (--to) before the work: the folder is in the way.
void check_export_folder(const std::string& folder, bool force);
void write_export(const cuda::Exported& e, const std::string& folder, bool force);
std::string export_text_of(const cuda::Exported& e, const std::string& folder);
nlohmann::ordered_json export_json_of(const cuda::Exported& e, const std::string& folder);

}  // namespace fuseline
