// A library that is opened at run time and declared by hand: nothing is linked to it, none of its
// headers is needed.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

namespace mblas::bench {

class SharedLibrary {
 public:
  /// Opens the file at `path`, or the one that the loader finds under that name.
  /// Status::BackendUnavailable, with the loader's reason, where it cannot.
  explicit SharedLibrary(const std::string& path);

  /// The file that was opened.
  const std::string& path() const { return path_; }

  /// The function, or null. What the library was linked with is searched too.
  template <class F>
  F* find(const char* name) const {
    static_assert(std::is_function_v<F>);
    return reinterpret_cast<F*>(symbol(name));
  }
  /// The function; Status::BackendUnavailable names the one that is missing.
  template <class F>
  F* get(const char* name) const {
    return reinterpret_cast<F*>(required(name));
  }

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  void* symbol(const char* name) const;
  void* required(const char* name) const;

  std::string path_;
  std::unique_ptr<void, Close> handle_;
};

}  // namespace mblas::bench
