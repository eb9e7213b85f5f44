#include "tests/fuzz/target.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

#include "base/error.h"
#include "base/temporary_folder.h"

namespace fuseline::fuzz {

namespace {

namespace fs = std::filesystem;

std::vector<Target>& registered() {
  static std::vector<Target> all;
  return all;
}

const fs::path kRoot = FUSELINE_SOURCE_DIR;

std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> files_of(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename().string().ends_with(ending))
      files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

Registered::Registered(Target target) { registered().push_back(std::move(target)); }

std::vector<Target> targets() {
  std::vector<Target> all = registered();
  std::ranges::sort(all, {}, &Target::name);
  return all;
}

std::vector<Input> inputs_of(const Target& target) {
  std::vector<Input> inputs;
  for (const fs::path& file : files_of(kRoot / "tests/fuzz/corpora" / target.name, ""))
    inputs.push_back({file.filename().string(), read_all(file)});
  for (const std::string& seed : target.seeds) {
    const std::size_t star = seed.find('*');
    const auto files = star == std::string::npos
                           ? std::vector<fs::path>{kRoot / seed}
                           : files_of(kRoot / seed.substr(0, star), seed.substr(star + 1));
    for (const fs::path& file : files) {
      if (!fs::exists(file)) throw std::logic_error("there is no seed " + file.string());
      inputs.push_back({fs::relative(file, kRoot).string(), read_all(file)});
    }
  }
  return inputs;
}

std::vector<std::string> words_of(const Target& target) {
  std::ifstream in(kRoot / "tests/fuzz/dictionaries" / (target.dictionary + ".dict"));
  std::vector<std::string> words;
  for (std::string line; std::getline(in, line);) {
    if (line.size() < 2 || line.front() != '"') continue;  // a comment
    std::string word;
    for (std::size_t i = 1; i + 1 < line.size(); ++i) {
      if (line[i] != '\\') {
        word += line[i];
      } else if (line[i + 1] == 'x') {
        word += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
        i += 3;
      } else {
        word += line[++i];
      }
    }
    words.push_back(std::move(word));
  }
  return words;
}

Outcome read_once(const Target& target, const std::string& bytes) {
  try {
    target.read(bytes);
    return Outcome::accepted;
  } catch (const InputError& error) {
    if (error.problem().message.empty()) throw std::logic_error("an InputError without a message");
  } catch (const MissingError& error) {
    if (std::string(error.what()).empty())
      throw std::logic_error("a MissingError without a message");
  } catch (const std::exception& error) {
    throw std::logic_error(fmt::format("neither InputError nor MissingError: {}", error.what()));
  }
  return Outcome::refused;
}

std::string file_with(const std::string& bytes, const std::string& name) {
  static const TemporaryFolder folder("fuseline-fuzz");
  const fs::path path = folder.path() / name;
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  return path.string();
}

}  // namespace fuseline::fuzz
