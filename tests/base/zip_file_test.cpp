#include "base/zip_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <utility>
#include <vector>

#include "base/error.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::vector<std::string> kNames = {"models/model.json", "old.json"};

class ZipFile : public testing::Test {
 protected:
  void TearDown() override { fs::remove(path_); }

  // Entries by name; stored as PyTorch stores them, or deflated.
  void write(const std::vector<std::pair<std::string, std::string>>& entries,
             zip_int32_t method = ZIP_CM_STORE) const {
    fs::remove(path_);
    zip_t* archive = zip_open(path_.c_str(), ZIP_CREATE, nullptr);
    for (const auto& [name, text] : entries) {
      const zip_int64_t at =
          zip_file_add(archive, name.c_str(),
                       zip_source_buffer(archive, text.data(), text.size(), 0), ZIP_FL_ENC_UTF_8);
      zip_set_file_compression(archive, static_cast<zip_uint64_t>(at), method, 0);
    }
    ASSERT_EQ(zip_close(archive), 0);
  }

  [[nodiscard]] std::string refusal() const {
    try {
      static_cast<void>(read_zip_entry(path_, kNames, Bytes(1 << 20)));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  [[nodiscard]] std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void overwrite(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  const fs::path path_ = testing::TempDir() + "archive.pt2";
};

TEST_F(ZipFile, ReadsOneEntryBehindAnyFolder) {
  for (const zip_int32_t method : {ZIP_CM_STORE, ZIP_CM_DEFLATE}) {
    write({{"layer/data/weights/weight_0", std::string(5000, 'w')},
           {"layer/models/model.json", "{\"a\": 1}"},
           {"layer/data/constants/model.json", "no"}},
          method);
    EXPECT_TRUE(is_zip_file(path_));
    EXPECT_EQ(read_zip_entry(path_, kNames, Bytes(1 << 20)), "{\"a\": 1}");
  }
}

TEST_F(ZipFile, TakesTheFirstNameThatIsThere) {
  write({{"old.json", "old"}, {"layer/models/model.json", "new"}});
  EXPECT_EQ(read_zip_entry(path_, kNames, Bytes(1 << 20)), "new");
  write({{"old.json", "old"}, {"layer/notold.json", "no"}});
  EXPECT_EQ(read_zip_entry(path_, kNames, Bytes(1 << 20)), "old");
}

TEST_F(ZipFile, RefusesWhatHasNoSuchEntry) {
  write({{"layer/models/another.json", "{}"}, {"xmodels/model.json.txt", "{}"}});
  EXPECT_THAT(refusal(), HasSubstr("the archive has no such file; allowed: models/model.json or "
                                   "old.json"));
}

// 2 MiB of zeros are 2 kB in the archive.
TEST_F(ZipFile, RefusesAnEntryThatIsTooLargeBeforeItIsRead) {
  write({{"layer/models/model.json", std::string(2 << 20, '\0')}}, ZIP_CM_DEFLATE);
  EXPECT_LT(fs::file_size(path_), 10'000U);
  EXPECT_THAT(refusal(), HasSubstr("layer/models/model.json = '2097152 bytes': is too large"));
}

TEST_F(ZipFile, RefusesAnArchiveThatEndsEarly) {
  write({{"layer/models/model.json", std::string(3000, 'x')}});
  const std::string whole = bytes();
  for (const std::size_t size : {whole.size() - 1, whole.size() / 2, std::size_t{30}}) {
    overwrite(whole.substr(0, size));
    EXPECT_THAT(refusal(), HasSubstr("the archive cannot be read")) << size;
  }
}

TEST_F(ZipFile, RefusesAChangedEntryByItsSum) {
  write({{"layer/models/model.json", std::string(3000, 'x')}});
  std::string changed = bytes();
  changed[changed.find("xxxx") + 1000] = 'y';
  overwrite(changed);
  EXPECT_THAT(refusal(), HasSubstr("layer/models/model.json"));
}

// Whatever is changed, there is a text or one message.
TEST_F(ZipFile, AnyBytesAreReadOrRefused) {
  write({{"a/old.json", std::string(40, 'x')}, {"layer/models/model.json", "{}"}});
  const std::string whole = bytes();
  std::mt19937 random(20261123);
  for (int i = 0; i < 400; ++i) {
    std::string changed = whole;
    for (int n = 0; n <= i % 4; ++n)
      changed[random() % changed.size()] = static_cast<char>(random() % 256);
    overwrite(changed);
    try {
      EXPECT_LE(read_zip_entry(path_, kNames, Bytes(1 << 20)).size(), std::size_t{1} << 20);
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()), "");
    }
  }
}

TEST_F(ZipFile, OtherFilesAreNone) {
  overwrite("PK");
  EXPECT_FALSE(is_zip_file(path_));
  overwrite("{\"format\": 1}");
  EXPECT_FALSE(is_zip_file(path_));
  EXPECT_FALSE(is_zip_file(testing::TempDir()));
  EXPECT_FALSE(is_zip_file("/nowhere/at/all"));
}

}  // namespace
}  // namespace fuseline
