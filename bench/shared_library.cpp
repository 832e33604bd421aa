#include "shared_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include "mblas/error.hpp"

namespace mblas::bench {

// Libraries with threads of their own do not survive being unloaded.
void SharedLibrary::Close::operator()(void*) const {}

SharedLibrary::SharedLibrary(const std::string& path)
    : path_(path), handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_) throw Error(Status::BackendUnavailable, fmt::format("cannot load {}", dlerror()));
  link_map* map = nullptr;
  if (dlinfo(handle_.get(), RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name)
    path_ = map->l_name;
}

void* SharedLibrary::symbol(const char* name) const { return dlsym(handle_.get(), name); }

void* SharedLibrary::required(const char* name) const {
  if (void* found = symbol(name)) return found;
  throw Error(Status::BackendUnavailable, fmt::format("{} has no function {}", path_, name));
}

}  // namespace mblas::bench
