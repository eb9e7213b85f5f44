#include "lab/object_file.h"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace fuseline::lab {

namespace {

using Header = Elf64_Ehdr;
using Section = Elf64_Shdr;
using Symbol = Elf64_Sym;

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  template <typename T>
  [[nodiscard]] T at(std::uint64_t offset) const {
    T value;
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof value) fail();
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  [[nodiscard]] std::string text(std::uint64_t offset) const {
    const std::size_t end = offset < bytes_.size() ? bytes_.find('\0', offset) : std::string::npos;
    if (end == std::string::npos) fail();
    return bytes_.substr(offset, end - offset);
  }

  [[noreturn]] static void fail() {
    throw MissingError("the C++ compiler makes no ELF objects for this machine: name g++ in CXX");
  }

 private:
  const std::string& bytes_;
};

// Sections that the loader or the language's start and end use; no variable lies there.
bool holds_variables(const Section& s, const std::string& name) {
  if ((s.sh_flags & SHF_ALLOC) == 0 || (s.sh_flags & SHF_WRITE) == 0) return false;
  if (s.sh_type != SHT_PROGBITS && s.sh_type != SHT_NOBITS) return false;
  return !name.starts_with(".data.rel.ro") && name.find("DW.ref.") == std::string::npos;
}

// What cannot be called: data in a section that holds no code.
bool is_variable(const Symbol& symbol, const std::vector<Section>& sections) {
  const auto type = ELF64_ST_TYPE(symbol.st_info);
  return (type == STT_OBJECT || type == STT_TLS) && symbol.st_shndx < sections.size() &&
         (sections[symbol.st_shndx].sh_flags & SHF_EXECINSTR) == 0;
}

// More than any machine has is as good as more than any chip has.
Bytes bytes_of(std::uint64_t size) {
  return Bytes(static_cast<std::int64_t>(std::min(size, std::uint64_t{1} << 40U)));
}

}  // namespace

ObjectFile read_object(const std::string& bytes) {
  const Reader reader(bytes);
  const auto header = reader.at<Header>(0);
  const bool little = std::endian::native == std::endian::little;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != (little ? ELFDATA2LSB : ELFDATA2MSB) || header.e_type != ET_REL) {
    Reader::fail();
  }
  std::vector<Section> sections;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    sections.push_back(reader.at<Section>(header.e_shoff + i * sizeof(Section)));
  }
  if (header.e_shstrndx >= sections.size()) Reader::fail();
  const std::uint64_t names = sections[header.e_shstrndx].sh_offset;

  ObjectFile out;
  for (const Section& s : sections) {
    if (holds_variables(s, reader.text(names + s.sh_name))) {
      out.static_storage += bytes_of(s.sh_size);
    }
    if (s.sh_type == SHT_PREINIT_ARRAY) out.runs_early = true;
    if (s.sh_type != SHT_SYMTAB || s.sh_link >= sections.size()) continue;
    for (std::uint64_t at = sizeof(Symbol); at < s.sh_size; at += sizeof(Symbol)) {
      const auto symbol = reader.at<Symbol>(s.sh_offset + at);
      const std::string name = reader.text(sections[s.sh_link].sh_offset + symbol.st_name);
      if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC) out.runs_early = true;
      const bool common = symbol.st_shndx == SHN_COMMON;
      if (common) out.static_storage += bytes_of(symbol.st_size);
      if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL || name.empty()) continue;
      if (symbol.st_shndx == SHN_UNDEF) {
        out.needs.push_back(name);
      } else if (!common && !is_variable(symbol, sections)) {
        out.defines.push_back(name);
      }
    }
  }
  return out;
}

}  // namespace fuseline::lab
