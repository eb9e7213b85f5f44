#include "cuda/compile/shared_library.h"

#include <dlfcn.h>

#include <utility>

#include "base/error.h"

namespace fuseline::cuda {

SharedLibrary::SharedLibrary(const std::vector<std::string>& names, const std::string& what) {
  std::string reasons;
  for (const std::string& name : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle_ != nullptr) {
      name_ = name;
      return;
    }
    reasons += std::string(reasons.empty() ? "" : "; ") + dlerror();
  }
  throw MissingError(what + " (" + reasons + ")");
}

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

SharedLibrary::SharedLibrary(SharedLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}

SharedLibrary& SharedLibrary::operator=(SharedLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(name_, other.name_);
  return *this;
}

void* SharedLibrary::symbol(const std::string& name) const {
  void* found = dlsym(handle_, name.c_str());
  if (found == nullptr)
    throw MissingError(name_ + " has no function " + name + ": it is older than fuseline needs");
  return found;
}

}  // namespace fuseline::cuda
