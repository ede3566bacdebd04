#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/files/durable.hpp"

/// An empty folder that exists as long as this object.
struct Folder {
  Folder() {
    const std::filesystem::path parent = std::filesystem::temp_directory_path();
    path = (parent / ("fsknn-test-" + fsknn::random_word())).string();
    std::filesystem::create_directory(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string path;
};
