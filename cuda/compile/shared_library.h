// A shared library opened while the program runs, so that one binary starts on machines without
// it.
#pragma once

#include <string>
#include <vector>

namespace fuseline::cuda {

class SharedLibrary {
 public:
  // The first of `names` (file names or paths) that opens. MissingError with `what` and every
  // reason when none does.
  SharedLibrary(const std::vector<std::string>& names, const std::string& what);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;
  SharedLibrary(SharedLibrary&& other) noexcept;
  SharedLibrary& operator=(SharedLibrary&& other) noexcept;

  // MissingError when the library has no such symbol: it is older than needed.
  [[nodiscard]] void* symbol(const std::string& name) const;
  // As symbol(), typed like the variable that it fills.
  template <class Function>
  void load(Function& function, const std::string& name) const {
    function = reinterpret_cast<Function>(symbol(name));
  }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace fuseline::cuda
